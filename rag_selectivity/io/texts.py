"""Texts of queries and passages by their ids, from whatever holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.data.cells import checked_id, holds_half, id_fault, iterated, shown
from rag_selectivity.errors import InputError, examples
from rag_selectivity.io.reading import is_path, read_records
from rag_selectivity.io.record_text import TEXT_NAMES, passage_text
from rag_selectivity.io.texts_of_ids import TextsOfIds, two_texts
from rag_selectivity.tables.exact import (
    as_frame,
    column_names,
    column_values,
    first_bytes,
    is_folder,
    is_frame,
    text_lines,
)
from rag_selectivity.tables.names import PASSAGE_NAMES, QUERY_NAMES, find_column, optional_column
from rag_selectivity.wording import counted


def read_texts(
    source: Any,
    what: str,
    names: Sequence[str] = (*QUERY_NAMES, *PASSAGE_NAMES),
    columns: Sequence[str] = TEXT_NAMES,
) -> Iterator[tuple[str, str]]:
    """(id, text) of {id: text}, a frame, a file, or an iterable of records or pairs; titles go in front.

    `names` are further names of the id's column, `columns` the names of the text's, the most fitting first. An id may
    come several times with the same text; after the last row, one with two texts is an InputError with both places.
    """
    known = TextsOfIds()
    is_read_again = is_path(source) or is_frame(source) or isinstance(source, (Mapping, Sequence))
    ids: list[str] | None = None if is_read_again else []
    for id_, text in _checked(_texts(source, what, names), columns):
        known.add(id_, text)
        if ids is not None:
            ids.append(id_)
        yield id_, text
    for rows in known.differing():
        (first, id_of_first), (second, id_of_second) = _rows_at(rows, source, what, names, ids)
        if id_of_first == id_of_second:
            raise InputError(two_texts(id_of_first, first, second))


def _rows_at(
    rows: tuple[int, int], source: Any, what: str, names: Sequence[str], ids: Sequence[str] | None
) -> list[tuple[str, str]]:
    """The place and the id of two rows, by their numbers from 0."""
    if is_path(source):
        read = _file_texts(_file_of(source, what), names)
        return [(where, id_) for n, (where, id_, _) in enumerate(read) if n in rows]
    known = (id_ for _, id_, _ in _texts(source, what, names)) if ids is None else ids
    return [(f"{what}, row {n + 1}", id_) for n, id_ in enumerate(known) if n in rows]


def needed_texts(source: Any, what: str, names: Sequence[str], needed: Mapping[str, Any]) -> dict[str, str]:
    """The texts of the ids that are needed; an InputError that names those without one."""
    if isinstance(source, Mapping):
        # Only the texts that are needed are read: a mapping may fetch them when it is asked.
        by_id = source if all(isinstance(key, str) for key in source) else {str(k): v for k, v in source.items()}
        found = dict(checked_texts(((id_, by_id[id_]) for id_ in needed if id_ in by_id), what))
    else:
        found = {id_: text for id_, text in read_texts(source, what, names, TEXT_NAMES) if id_ in needed}
    missing = [id_ for id_ in needed if id_ not in found or (what == "queries" and not found[id_].strip())]
    if missing:
        raise InputError(
            f"{what}: {counted(len(missing), 'id')} without a text ({examples(missing)}); add the texts, or check that "
            f"all files use the same ids"
        )
    return found


def checked_texts(
    rows: Iterable[tuple[str, Any]], what: str, columns: Sequence[str] = TEXT_NAMES
) -> Iterator[tuple[str, str]]:
    """(id, text) of (id, text or record) rows; one without a text is an InputError."""
    return _checked(((what, id_, record) for id_, record in rows), columns)


def _checked(rows: Iterable[tuple[str, str, Any]], columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(id, text) of (place, id, text or record) rows."""
    for where, id_, record in rows:
        text = passage_text(record, columns) if isinstance(record, Mapping) else record
        if not isinstance(text, str):
            column = find_column(list(record), columns, "text", where) if isinstance(record, Mapping) else None
            named = "" if column is None else f" in column {column!r}"
            raise InputError(f"{where}: {id_!r} has no text{named}, but {shown(text)}")
        if not text.isascii() and holds_half(text):
            raise InputError(f"{where}: the text of {id_!r} holds half of a surrogate pair, which is no character")
        yield checked_id(id_, where, "text's"), text


def _texts(source: Any, what: str, names: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    """(place, id, text or record) of {id: text}, a frame, a file, or an iterable of records or pairs."""
    if isinstance(source, Mapping):
        yield from ((what, str(key), value) for key, value in source.items())
        return
    if is_frame(source):
        source = as_frame(source, f"{what} frame")
        columns = column_names(source)
        ids = column_values(source, find_column(columns, ("_id", "id", *names), "id", f"{what} frame"))
        values = {name: column_values(source, name) for name in columns}
        for i, id_ in enumerate(ids):
            yield f"{what} frame, row {i + 1}", str(id_), {name: column[i] for name, column in values.items()}
        return
    if is_path(source):
        yield from _file_texts(_file_of(source, what), names)
        return
    for record in iterated(source, f"{what}: give {{id: text}}, a frame, a file, or a list of (id, text)"):
        if isinstance(record, Mapping):
            yield what, str(record[find_column(list(record), ("_id", "id", *names), "id", what)]), record
        else:
            try:
                id_, text = record
            except (TypeError, ValueError):
                raise InputError(f"{what}: expected (id, text) or a dict, got {shown(record)}") from None
            yield what, str(id_), text


def _file_of(source: str | Path, what: str) -> Path:
    path = Path(source)
    return path / f"{what}.jsonl" if is_folder(path) else path


def _file_texts(path: Path, names: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    """(file:line, id, text or record) of a file."""
    first = first_bytes(path).split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r").split("\t")
    if len(first) == 2 and not first[0].startswith("{") and optional_column(first, ("_id", "id", *names)) is None:
        # MS MARCO's way: id, tab, text, and no header.
        for number, text_line in text_lines(path):
            id_, tab, text = text_line.partition("\t")
            if not tab:
                raise InputError(f"{path}:{number}: expected an id, a tab and a text")
            yield f"{path}:{number}", _file_id(id_, path, number), text
        return
    for line, record in read_records(path):
        column = find_column(list(record), ("_id", "id", *names), "id", f"{path}:{line}")
        if record[column] in (None, ""):
            raise InputError(f"{path}:{line}: the id is empty")
        yield f"{path}:{line}", _file_id(str(record[column]), path, line), record


def _file_id(text: str, path: Path, line: int) -> str:
    return text if id_fault(text) is None else checked_id(text, f"{path}:{line}", "text's")
