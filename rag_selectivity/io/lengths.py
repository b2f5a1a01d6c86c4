"""Lengths of passages in tokens, from tables and from texts."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from rag_selectivity.data.cells import shown, token_count
from rag_selectivity.data.forms import AS_THEY_ARE, IdForm
from rag_selectivity.errors import InputError
from rag_selectivity.io.corpus_file import CorpusFile
from rag_selectivity.io.reading import is_path, read_records
from rag_selectivity.io.texts import read_texts
from rag_selectivity.tables.exact import as_frame, column_names, column_values, is_frame
from rag_selectivity.tables.names import PASSAGE_NAMES, TOKEN_NAMES, find_column

#: Four characters are about one token of English text.
CHARACTERS_A_TOKEN = 4

#: So many characters of a text in the message of an error are a part of the text, and no chance.
_REPEATED = 12


def passage_tokens(tokens: Any, form: IdForm = AS_THEY_ARE) -> dict[str, float]:
    """{passage: tokens} from a mapping, a frame or a table, with the passages in a form.

    Raises
    ------
    InputError
        If a length is not a finite number ≥ 0, if a passage has two different lengths, or if a table lacks a column.

    >>> passage_tokens({"D1": 120, "D2": 80}, IdForm.of("casefold"))
    {'d1': 120.0, 'd2': 80.0}
    """
    lengths: dict[str, float] = {}
    for where, passage, value in _rows(tokens):
        name, length = form.of_cell(passage, where, "passage"), token_count(value, where)
        if lengths.setdefault(name, length) != length:
            raise InputError(
                f"{where}: passage {name!r} has {length:g} tokens here and {lengths[name]:g} before: keep one of them"
            )
    return lengths


def _rows(tokens: Any) -> Iterator[tuple[str, Any, Any]]:
    """(where, passage, tokens) rows."""
    if isinstance(tokens, Mapping):
        for passage, value in tokens.items():
            yield f"tokens of passage {passage!r}", passage, value
    elif is_frame(tokens):
        tokens = as_frame(tokens, "tokens frame")
        names = column_names(tokens)
        passages = column_values(tokens, find_column(names, ("_id", "id", *PASSAGE_NAMES), "passage", "tokens frame"))
        values = column_values(tokens, find_column(names, TOKEN_NAMES, "tokens", "tokens frame"))
        for passage, value in zip(passages, values, strict=True):
            yield f"tokens of passage {passage!r}", passage, value
    elif is_path(tokens):
        for line, row in read_records(tokens):
            where = f"{tokens}:{line}"
            passage = find_column(list(row), ("_id", "id", *PASSAGE_NAMES), "passage", where)
            yield where, row[passage], row[find_column(list(row), TOKEN_NAMES, "tokens", where)]
    else:
        raise InputError(f"tokens: expected {{passage: tokens}}, a DataFrame or a path, got {type(tokens).__name__}")


def counted_tokens(corpus: Any, tokenizer: Callable[[str], Any], form: IdForm = AS_THEY_ARE) -> dict[str, float]:
    """{passage: tokens} of the texts of a corpus, counted by a tokenizer; titles count.

    Parameters
    ----------
    corpus : {passage: text}, DataFrame, path, or iterable of records or pairs
    tokenizer : callable
        Gives the tokens of a text, or their number: `tiktoken.get_encoding(NAME).encode`, or a tokenizer of
        Transformers with its `encode`.

    Raises
    ------
    InputError
        If it gives neither or fails, or if a text is missing.

    >>> counted_tokens({"d1": "three short words"}, str.split)
    {'d1': 3.0}
    """
    lengths = {}
    name = _name_of(tokenizer)
    if not callable(tokenizer):
        raise InputError(f"the tokenizer {name} is no function; give one that takes a text")
    for passage, text in read_texts(corpus, "corpus"):
        try:
            found = tokenizer(text)
        except Exception as error:
            raise InputError(
                f"passage {passage!r}: the tokenizer {name} failed ({_without_text(error, text)}); it must give the "
                f"tokens of a text, or their number"
            ) from error
        try:
            number = found if isinstance(found, (int, float)) else len(found)
        except TypeError:
            raise InputError(
                f"passage {passage!r}: the tokenizer {name} gave {shown(found)}; it must give the tokens of a text, or "
                f"their number"
            ) from None
        lengths[form(passage)] = token_count(number, f"tokens of passage {passage!r}")
    return lengths


def _name_of(tokenizer: Any) -> str:
    """As a user imports it, `MODULE:FUNCTION`; of what has no name, its type."""
    named = tokenizer if hasattr(tokenizer, "__qualname__") else type(tokenizer)
    module = getattr(named, "__module__", None)
    return f"{module}:{named.__qualname__}" if module else str(named.__qualname__)


def _without_text(error: Exception, text: str) -> str:
    """The kind of an error, and its message unless that repeats a part of the text."""
    message = str(error)
    parts = (text[i : i + _REPEATED] for i in range(max(1, len(text) - _REPEATED + 1)))
    kind = type(error).__name__
    return kind if not message or any(part and part in message for part in parts) else f"{kind}: {message}"


def estimated_tokens(
    corpus: Any, form: IdForm = AS_THEY_ARE, passages: Container[str] | None = None
) -> dict[str, float]:
    """{passage: tokens} of the texts of a corpus, estimated at four characters a token; titles count.

    `corpus` is {passage: text}, a frame, a file, one that was read, or an iterable of records or pairs. `passages` are
    the only ones that are wanted, in the form.

    >>> estimated_tokens({"d1": "twelve chars"})
    {'d1': 3.0}
    """
    if isinstance(corpus, CorpusFile):
        lengths = corpus.characters()
    else:
        lengths = ((passage, len(text)) for passage, text in read_texts(corpus, "corpus"))
    known = ((form(passage), length) for passage, length in lengths) if form.changes_ids else lengths
    return {
        passage: length / CHARACTERS_A_TOKEN for passage, length in known if passages is None or passage in passages
    }
