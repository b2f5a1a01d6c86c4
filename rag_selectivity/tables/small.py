"""The one reader of small tables: rows with their places, a value for each query, passage or document, and texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rag_selectivity.errors import InputError, examples
from rag_selectivity.tables.cells import (
    cost_or_length,
    holds_half,
    is_missing,
    iterated,
    shown,
    whole_count,
)
from rag_selectivity.tables.exact import frame_columns, is_frame, read_records, rows_of_columns
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.names import COLUMNS, ROW_IDS, find_column, optional_column
from rag_selectivity.wording import counted

V = TypeVar("V")


def rows_of(source: Any, name: str, key: str = "query_id", value: str = "value") -> Iterator[tuple[str, Any]]:
    """(place, row) of a file, a frame, a list of rows or pairs, or a mapping; `name` is that of the argument.

    A mapping is {id: row} or {id: value}, a pair (id, value): the ids are the column `key`, the values the column
    `value`.

    >>> list(rows_of({"q1": 3}, "weights", value="weight"))
    [("weights['q1']", {'query_id': 'q1', 'weight': 3})]
    """
    if is_path(source):
        yield from ((f"{source}:{line}", row) for line, row in read_records(source))
    elif isinstance(source, Mapping):
        for id_, row in source.items():
            yield f"{name}[{id_!r}]", {key: id_, **(row if isinstance(row, Mapping) else {value: row})}
    else:
        if is_frame(source):
            source = rows_of_columns(frame_columns(source, f"{name} frame"))
        rows = iterated(source, f"{name}: give a file, a frame, a mapping or a list of rows")
        for number, row in enumerate(rows, 1):
            if isinstance(row, (tuple, list)) and len(row) == 2:
                row = {key: row[0], value: row[1]}
            if not isinstance(row, Mapping):
                raise InputError(f"{name}, row {number}: expected {{column: value}} or (id, value), got {shown(row)}")
            yield f"{name}, row {number}", {str(column): cell for column, cell in row.items()}


def query_of(row: Mapping[str, Any], where: str, form: IdForm = AS_THEY_ARE, names: Sequence[str] = ()) -> str:
    """The id of the query that a row is of, in a form."""
    return form.of_cell(row[find_column(tuple(row), "query", where, names)], where, "query")


def run_of(row: Mapping[str, Any], runs: Sequence[str], where: str, what: str) -> str:
    """The run that a row is of: by its column, which may be empty, or the only one there is."""
    column = optional_column(tuple(row), COLUMNS["run"])
    if column is not None:
        return "" if is_missing(row[column]) else str(row[column])
    if len(runs) == 1:
        return runs[0]
    raise InputError(
        f"{where}: the {what} do not say of which of the {len(runs)} runs they are: add a column run, or give them by "
        f"run, {{run: {what}}}"
    )


def per_query(
    source: Any, what: str, kind: type[V], *, name: str = "", form: IdForm = AS_THEY_ARE, column: str | None = None
) -> dict[str, V]:
    """{query: value} of a mapping, a frame, rows or a file.

    Parameters
    ----------
    source : {query: value}, DataFrame, rows or path
    what : str
        What the value is, by which its column is found: `weight`, `cluster`, `corpus size`, …
    kind : type
        float for finite numbers ≥ 0, int for whole numbers ≥ 0, str for names.
    name : str
        That of the argument, for errors. Default: that of the value.
    form : IdForm
        The form of the ids.
    column : str, optional
        The column of the values.

    Raises
    ------
    InputError
        If a column is missing, an id or a value is none, or a query has two values.

    >>> per_query([{"qid": 1, "weight": "2.5"}], "weight", float)
    {'1': 2.5}
    """
    return per("query", COLUMNS["query"], source, what, kind, name, form, column)


def per_passage(source: Any, what: str, kind: type[V], *, name: str = "", form: IdForm = AS_THEY_ARE) -> dict[str, V]:
    """{passage: value}, as `per_query`."""
    return per("passage", ROW_IDS["passage"], source, what, kind, name, form)


def per(
    of: str,
    ids: Sequence[str],
    source: Any,
    what: str,
    kind: type[Any],
    name: str = "",
    form: IdForm = AS_THEY_ARE,
    column: str | None = None,
) -> dict[str, Any]:
    """{id: value}, as `per_query`; `ids` are the names of the columns of ids."""
    accepted = COLUMNS[what] if column is None else (column,)
    columns: dict[tuple[str, ...], tuple[str, str]] = {}
    found: dict[str, Any] = {}
    for where, row in rows_of(source, name or what, ids[0], accepted[0]):
        shape = tuple(row)
        if shape not in columns:
            of_id = find_column(shape, of, where, ids)
            of_value = optional_column([each for each in shape if each != of_id], accepted)
            columns[shape] = of_id, of_value or find_column(shape, what, where, accepted)
        of_id, of_value = columns[shape]
        id_ = form.of_cell(row[of_id], where, of)
        value = _value(kind, row[of_value], where, what, of, id_)
        if found.setdefault(id_, value) != value:
            one, other = (f"{each:g}" if kind is float else each for each in (value, found[id_]))
            raise InputError(f"{where}: the {what} of {of} {id_!r} is {one}, and {other} before: keep one of them")
    return found


def _value(kind: type[Any], value: Any, where: str, what: str, of: str, id_: str) -> Any:
    """A cell as a name, a whole number or a finite number ≥ 0."""
    if kind is str:
        return AS_THEY_ARE.of_cell(value, where, what)
    if is_missing(value):
        raise InputError(f"{where}: {of} {id_!r} has no {what}: give a number")
    return (whole_count if kind is int else cost_or_length)(value, f"{where}: the {what} of {of} {id_!r}")


def path_and_column(text: str, name: str, otherwise: str = "") -> tuple[str, str | None]:
    """The file, and the column of `FILE:COLUMN`; `otherwise` says what else may be given.

    Raises
    ------
    InputError
        If there is no such file, or the name is empty.
    """
    file, colon, column = text.rpartition(":")
    if text == "-" or os.path.exists(text):
        return text, None
    if colon and (file == "-" or os.path.exists(file)):
        return file, column
    problem = f"there is no file {shown(text)}" if text else "the name is empty"
    mend = "give a table of query_id and columns (FILE, or FILE:COLUMN for one of them)"
    raise InputError(f"{name}: {problem}; {mend}{otherwise}")


# -- texts ------------------------------------------------------------------------------------------------


def passage_text(record: Mapping[str, Any], columns: Sequence[str] = COLUMNS["text"]) -> Any:
    """The text of a BEIR-like record, its title in front."""
    column = columns[0] if columns[0] in record else optional_column(tuple(record), (*columns, "text"))
    text = record[column] if column is not None else None
    # An answer is not a part of what has the title.
    title = record.get("title") if columns is COLUMNS["text"] else None
    return f"{title}\n{text}" if title and isinstance(text, str) and text else text if text is not None else title


def read_texts(source: Any, what: str, columns: Sequence[str] = COLUMNS["text"]) -> Iterator[tuple[str, str]]:
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
    for where, id_, text, row in _texts(source, what, columns):
        if not isinstance(text, str):
            column = find_column(tuple(row), "text", where, columns)
            raise InputError(f"{where}: {id_!r} has no text in column {column!r}, but {shown(text)}")
        if holds_half(text):
            raise InputError(f"{where}: the text of {id_!r} holds half of a surrogate pair, which is no character")
        yield id_, text


def read_ids(source: Any, what: str = "corpus") -> Iterator[str]:
    """The ids of what `read_texts` reads, also without texts."""
    # A mapping may fetch its texts when it is asked for them.
    return map(str, source) if isinstance(source, Mapping) else (id_ for _, id_, _, _ in _texts(source, what))


def _texts(
    source: Any, what: str, columns: Sequence[str] = COLUMNS["text"]
) -> Iterator[tuple[str, str, Any, Mapping[str, Any]]]:
    """(place, id, text, row) of whatever holds texts; an InputError at an id whose text is another than before."""
    known: dict[str, int] = {}
    for where, id_, row in _rows_of_texts(source, what, columns[0]):
        text = passage_text(row, columns)
        mark = hash(text) if isinstance(text, str) else 0
        if known.setdefault(id_, mark) != mark:
            again = () if isinstance(source, Iterator) else _rows_of_texts(source, what, columns[0])
            first = next((place for place, other, _ in again if other == id_), "an earlier row")
            raise InputError(
                f"{where}: {id_!r} has another text than in {first}: give each text an id of its own, or remove one of "
                f"the two"
            )
        yield where, id_, text, row


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


def _rows_of_texts(source: Any, what: str, of_text: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(place, id, row) of whatever holds texts."""
    kind = "passage" if what == "corpus" else "query"
    names = ROW_IDS[kind]
    if is_path(source):
        source = Path(source) / f"{what}.jsonl" if os.path.isdir(source) else Path(source)
    columns: dict[tuple[str, ...], str] = {}
    for where, row in rows_of(source, what, names[0], of_text):
        shape = tuple(row)
        if shape not in columns:
            columns[shape] = find_column(shape, kind, where, names)
        yield where, AS_THEY_ARE.of_cell(row[columns[shape]], where, kind), row
