"""Texts of queries and passages by their ids, from whatever holds them, and the lengths of passages in tokens."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.tables.cells import checked_id, holds_half, iterated, shown, token_count
from rag_selectivity.tables.exact import first_bytes, is_folder, is_frame, is_path, text_lines
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.names import PASSAGE_NAMES, QUERY_NAMES, TEXT_NAMES, find_column, optional_column
from rag_selectivity.tables.small import rows_with_id
from rag_selectivity.wording import counted

#: The columns of (id, text).
_PAIR = ("_id", "")
#: Four characters are about one token of English text.
CHARACTERS_A_TOKEN = 4
#: So many characters of a text in the message of an error are a part of the text, and no chance.
_REPEATED = 12


def passage_text(record: Mapping[str, Any], columns: Sequence[str] = TEXT_NAMES) -> Any:
    """The text of a BEIR-like record, its title in front."""
    column = columns[0] if columns[0] in record else optional_column(tuple(record), columns)
    text = record[column] if column is not None else None
    # An answer is not a part of what has the title.
    title = record.get("title") if columns is TEXT_NAMES else None
    return f"{title}\n{text}" if title and isinstance(text, str) and text else text if text is not None else title


def read_texts(source: Any, what: str, columns: Sequence[str] = TEXT_NAMES) -> Iterator[tuple[str, str]]:
    """(id, text) of {id: text}, a frame, a file, a folder, or an iterable of records or pairs; titles go in front.

    `what` is the name of the argument: passages are in a `corpus`, queries elsewhere. `columns` are the names of the
    text's column, the most fitting first. An id may come several times with the same text.

    Raises
    ------
    InputError
        If an id has no text, or two, with the place of the second and, where the source can be read again, the first.

    >>> list(read_texts([{"docid": "d1", "title": "Paris", "text": "A city."}], "corpus"))
    [('d1', 'Paris\\nA city.')]
    """

    def checked() -> Iterator[tuple[str, str, str]]:
        for where, id_, record in _rows(source, what):
            text = passage_text(record, columns) if isinstance(record, Mapping) else record
            if not isinstance(text, str):
                column = find_column(list(record), columns, "text", where) if isinstance(record, Mapping) else None
                named = "" if column is None else f" in column {column!r}"
                raise InputError(f"{where}: {id_!r} has no text{named}, but {shown(text)}")
            if holds_half(text):
                raise InputError(f"{where}: the text of {id_!r} holds half of a surrogate pair, which is no character")
            yield where, id_, text

    return _with_one_text(checked(), source, what)


def read_ids(source: Any, what: str = "corpus") -> Iterator[str]:
    """The ids of what `read_texts` reads, also without texts."""
    if isinstance(source, Mapping):
        # A mapping may fetch its texts when it is asked for them.
        return map(str, source)
    rows = _rows(source, what)
    texts = ((where, id_, passage_text(row) if isinstance(row, Mapping) else row) for where, id_, row in rows)
    return (id_ for id_, _ in _with_one_text(texts, source, what))


def _with_one_text(rows: Iterable[tuple[str, str, Any]], source: Any, what: str) -> Iterator[tuple[str, Any]]:
    """(id, text) of the rows; an InputError at an id whose text is another than before."""
    known: dict[str, int] = {}
    for where, id_, text in rows:
        mark = hash(text) if isinstance(text, str) else 0
        if known.setdefault(id_, mark) != mark:
            is_read_again = is_path(source) or is_frame(source) or isinstance(source, (Mapping, Sequence))
            again = _rows(source, what) if is_read_again else ()
            first = next((place for place, other, _ in again if other == id_), "an earlier row")
            raise InputError(
                f"{where}: {id_!r} has another text than in {first}: give each text an id of its own, or remove one of "
                f"the two"
            )
        yield id_, text


def needed_texts(source: Any, what: str, needed: Mapping[str, Any]) -> dict[str, str]:
    """The texts of the ids that are needed; an InputError that names those without one."""
    found = {id_: text for id_, text in read_texts(of_these(source, needed), what) if id_ in needed}
    missing = [id_ for id_ in needed if id_ not in found or (what == "queries" and not found[id_].strip())]
    if missing:
        raise InputError(
            f"{what}: {counted(len(missing), 'id')} without a text ({examples(missing)}); add the texts, or check that "
            f"all files use the same ids"
        )
    return found


def of_these(source: Any, ids: Iterable[str]) -> Any:
    """The rows of some ids of a mapping, which may fetch a text when it is asked for it; other sources as they are."""
    if not isinstance(source, Mapping):
        return source
    by_id = source if all(isinstance(key, str) for key in source) else {str(key): text for key, text in source.items()}
    return ((id_, by_id[id_]) for id_ in ids if id_ in by_id)


def _rows(source: Any, what: str) -> Iterator[tuple[str, str, Any]]:
    """(place, id, text or record) of whatever holds texts."""
    kind = "passage" if what == "corpus" else "query"
    names = ("_id", "id", *(PASSAGE_NAMES if kind == "passage" else QUERY_NAMES))
    if is_path(source):
        source = Path(source) / f"{what}.jsonl" if is_folder(Path(source)) else Path(source)
        if is_headless(source, names):
            yield from headless_lines(source, kind)
            return
    elif not is_frame(source):
        given = source.items() if isinstance(source, Mapping) else source
        rows = iterated(given, f"{what}: give {{id: text}}, a frame, a file, or a list of (id, text)")
        source = (_record(row, what) for row in rows)
    for where, row, column in rows_with_id(source, what, names, kind):
        yield where, AS_THEY_ARE.of_cell(row[column], where, kind), row[""] if tuple(row) == _PAIR else row


def _record(row: Any, what: str) -> Mapping[str, Any]:
    try:
        id_, text = (None, None) if isinstance(row, Mapping) else row
    except (TypeError, ValueError):
        raise InputError(f"{what}: expected (id, text) or a dict, got {shown(row)}") from None
    return row if isinstance(row, Mapping) else dict(zip(_PAIR, (str(id_), text), strict=True))


def is_headless(path: Path, names: Sequence[str]) -> bool:
    """Whether a file has an id, a tab and a text on each line and no header, as those of MS MARCO have."""
    first = first_bytes(path).split(b"\n", 1)[0].decode("utf-8", "replace").strip("\ufeff\r").split("\t")
    return len(first) == 2 and not first[0].startswith("{") and optional_column(first, names) is None


def headless_lines(path: Path, kind: str) -> Iterator[tuple[str, str, str]]:
    """(place, id, text) of such a file."""
    for number, line in text_lines(path):
        id_, tab, text = line.partition("\t")
        if not tab:
            raise InputError(f"{path}:{number}: expected an id, a tab and a text")
        yield f"{path}:{number}", checked_id(id_, f"{path}:{number}", kind), text


# -- tokens -----------------------------------------------------------------------------------------------


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
    named = tokenizer if hasattr(tokenizer, "__qualname__") else type(tokenizer)
    # As a user imports it.
    name = ":".join(filter(None, (getattr(named, "__module__", None), named.__qualname__)))
    if not callable(tokenizer):
        raise InputError(f"the tokenizer {name} is no function; give one that takes a text")
    lengths = {}
    for passage, text in read_texts(corpus, "corpus"):
        who, mend = f"passage {passage!r}: the tokenizer {name}", "it must give the tokens of a text, or their number"
        try:
            found = tokenizer(text)
        except Exception as error:
            raise InputError(f"{who} failed ({_without_text(error, text)}); {mend}") from error
        try:
            number = found if isinstance(found, (int, float)) else len(found)
        except TypeError:
            raise InputError(f"{who} gave {shown(found)}; {mend}") from None
        lengths[form(passage)] = token_count(number, f"tokens of passage {passage!r}")
    return lengths


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

    `corpus` is as in `counted_tokens`. `passages` are the only ones that are wanted, in the form.

    >>> estimated_tokens({"d1": "twelve chars"})
    {'d1': 3.0}
    """
    known = ((form(passage), len(text) / CHARACTERS_A_TOKEN) for passage, text in read_texts(corpus, "corpus"))
    return {passage: length for passage, length in known if passages is None or passage in passages}
