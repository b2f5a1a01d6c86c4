"""Lengths of passages in tokens, from their texts."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from rag_selectivity.data.cells import shown
from rag_selectivity.data.columns import token_count
from rag_selectivity.data.forms import AS_THEY_ARE, IdForm
from rag_selectivity.errors import InputError
from rag_selectivity.io.corpus_file import CorpusFile
from rag_selectivity.io.texts import read_texts

#: Four characters are about one token of English text.
CHARACTERS_A_TOKEN = 4

#: So many characters of a text in the message of an error are a part of the text, and no chance.
_REPEATED = 12


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
