"""Labels and runs of any source as columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.tables import exact
from rag_selectivity.tables.cells import (
    id_fault,
    id_text,
    is_missing,
    iterated,
    number_of,
    number_or_nan,
    shown,
    whole_grade,
)
from rag_selectivity.tables.exact import Row
from rag_selectivity.tables.fast import Kind, Odd, Scan, scan
from rag_selectivity.tables.files import is_large, is_path, not_utf8
from rag_selectivity.tables.ids import IntArray, numbered, refuse_set
from rag_selectivity.tables.names import COLUMNS, columns_of, optional_column

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """The rows of labels or of a run, in their order.

    Attributes
    ----------
    queries : tuple of str
        All query ids in the order of their first appearance; those without rows too.
    query : int64[rows]
        The position of each row's query in `queries`.
    passage : list of str
    grade : int64[rows] or None
        Of labels; those below 0 are not judged.
    score, rank, tokens : float64[rows] or None
        Of a run; None if the source has none.
    expected : bool[rows] or None
        The labels that are expected ids without a grade; None if all have grades.
    source : str
        A name for messages.
    lines : int64[rows] or None
        The line of each row in the file.
    remarks : {code: count}
        What was noticed; `rag_selectivity.evaluation.doubts` has the words of the codes.
    """

    queries: tuple[str, ...]
    query: IntArray
    passage: list[str]
    grade: IntArray | None = None
    score: FloatArray | None = None
    rank: FloatArray | None = None
    tokens: FloatArray | None = None
    expected: NDArray[np.bool_] | None = None
    source: str = ""
    lines: IntArray | None = None
    remarks: Counter[str] = field(default_factory=Counter)


@dataclass
class _Cells:
    """Cells as they were given, by what they hold, and where they stand."""

    columns: dict[str, list[Any]]
    source: str
    #: The place of each row, and what stands before it in messages.
    lines: Sequence[int] | None = None
    before: str = ""
    #: The name of each column in its table.
    names: Mapping[str, str] = field(default_factory=dict)
    #: Of a dict: its queries, and how many rows each has.
    queries: Sequence[Any] = ()
    counts: Sequence[int] = ()
    expected: list[bool] | None = None
    remarks: Counter[str] = field(default_factory=Counter)

    def where(self, row: int, role: str) -> str:
        """The place of a cell; an InputError if it is one of a table and holds nothing."""
        place = self.source if self.lines is None else f"{self.source}{self.before}{self.lines[row]}"
        if role in self.names and is_missing(self.columns[role][row]):
            raise InputError(f"{place}: {self.names[role]} is missing")
        return place

    def where_of_query(self, row: int, role: str) -> str:
        of_dict = self.queries[int(np.searchsorted(np.cumsum(self.counts), row, "right"))] if self.counts else None
        return f"{self.where(row, role)}: query {shown(self.columns['query'][row] if of_dict is None else of_dict)}"

    def where_of_pair(self, row: int, role: str) -> str:
        return f"{self.where_of_query(row, role)}, passage {shown(self.columns['passage'][row])}"


def read(source: Any, kind: Kind, *, format: str | None = None, long_tags: bool = False) -> Columns:
    """The labels or the run of a dict, rows, a frame, a dataset, a file or a folder.

    Parameters
    ----------
    source : object
        Labels: {query: {passage: grade}} or {query: expected ids}, rows of (query, passage, grade) or dicts, a frame, a
        path. A run: {query: [passage, …]}, {query: {passage: score}}, {query: [(passage, score), …]}, rows, and so on.
    kind : {"labels", "run"}
    format : str, optional
        Of a file, if neither content nor suffix shows it.
    long_tags : bool
        Whether a line of a TREC run may have further fields.

    Raises
    ------
    InputError
        Naming the place of what is wrong.

    >>> columns = read({"q1": {"d1": 5, "d2": 1}, "q2": ["d7"]}, "labels")
    >>> columns.query.tolist(), columns.passage, columns.grade.tolist(), columns.expected.tolist()
    ([0, 0, 1], ['d1', 'd2', 'd7'], [5, 1, 1], [False, False, True])
    >>> columns = read({"q1": {"d1": 2.5}, "q2": {}}, "run")
    >>> columns.queries, columns.passage, columns.score.tolist()
    (('q1', 'q2'), ['d1'], [2.5])
    """
    if not is_path(source):
        return _of_object(source, kind)
    path, name = Path(source), exact.kind_of(Path(source), format)
    if kind == "run" and (name in exact.STORES or name == "beir"):
        what = {"golden": "a golden set", "beir": "a folder"}.get(name, "a label store")
        raise InputError(f"{path} is {what} and holds no run; give the file of the run")
    return _of_file(_beir_labels(path), "tsv", kind) if name == "beir" else _of_file(path, name, kind, long_tags)


def _beir_labels(folder: Path) -> Path:
    """The judgments of a BEIR folder: `qrels/test.tsv`, or the only file there."""
    place = folder / "qrels" if (folder / "qrels").is_dir() else folder
    files = sorted(place.glob("*.tsv"))
    if not files:
        raise InputError(f"{folder}: no qrels/*.tsv in this folder")
    chosen = next((file for file in files if file.name == "test.tsv" or len(files) == 1), None)
    if chosen is None:
        raise InputError(f"{place}: several qrels ({', '.join(file.name for file in files)}); name one of them")
    return chosen


# -- the cells of a source --------------------------------------------------------------------------------


def _of_file(path: Path, name: str, kind: Kind, long_tags: bool = False) -> Columns:
    """By a scan where this is quicker and the file is regular, or line by line."""
    found = scan(path, kind, format=name) if is_large(path) else None
    if found is not None:
        try:
            return _of_scan(found, kind)
        except Odd:
            pass
    if name != "trec":
        return _checked(_of_rows(exact.table_rows(path, name), str(path), kind), kind)
    comments: list[int] = []
    rows = exact.trec_rows(path, kind, long_tags, comments)
    _, fields = next(rows, (0, ()))
    if not fields:
        raise _without_rows(str(path), kind)
    places = {role: fields.index(name) for role, name in columns_of(fields, kind, str(path)).items()}
    lines, texts = _gathered(rows, places, lambda fields, place: fields[place].decode(), path)
    remarks = Counter({f"{'label' if kind == 'labels' else 'run'}_comment_lines": len(comments)})
    return _checked(_Cells(texts, str(path), lines, ":", remarks=remarks), kind)


def _of_object(source: Any, kind: Kind) -> Columns:
    what = "qrels" if kind == "labels" else "run"
    if isinstance(source, Mapping):
        return _checked(_of_dict(source, what, kind), kind)
    if not exact.is_frame(source):
        return _checked(_of_records(source, what, kind), kind)
    frame = exact.as_frame(source, f"{what} frame")
    names, remarks = _chosen(exact.column_names(frame), kind, f"{what} frame")
    columns = exact.frame_columns(frame, what, names.values())
    cells = {role: columns[name] for role, name in names.items()}
    lines = range(1, 1 + len(cells["query"]))
    return _checked(_Cells(cells, f"{what} frame", lines, ", row ", names, remarks=remarks), kind)


def _chosen(names: Sequence[str], kind: Kind, where: str) -> tuple[dict[str, str], Counter[str]]:
    """The columns of a table by what they hold, and a remark on those of labels that belong into a run."""
    columns = columns_of(names, kind, where)
    ranking = {optional_column(names, COLUMNS[role]) for role in ("score", "rank")} - {None, columns.get("grade")}
    return columns, Counter(ranking_columns_in_labels=len(ranking) if kind == "labels" else 0)


def _of_rows(rows: Iterator[tuple[int, Row]], source: str, kind: Kind, before: str = ":") -> _Cells:
    """The cells of rows with names; the first row has the names of all."""
    first = next(rows, None)
    if first is None:
        raise _without_rows(source, kind)
    if {"query_hash", "passage_hash", "origins"} <= set(first[1]):
        raise InputError(
            f"{source} is an export of a label store, with every label of a pair and random controls: import it into "
            f"a store (rag-selectivity store import labels.db {Path(source).name}) and give the store"
        )
    names, remarks = _chosen(list(first[1]), kind, source)
    lines, cells = _gathered(chain([first], rows), names, dict.get, source)
    return _Cells(cells, source, lines, before, names, remarks=remarks)


def _without_rows(source: str, kind: Kind) -> InputError:
    labels = "file of labels is empty: there are no judgments in it"
    return InputError(f"{source}: the {labels if kind == 'labels' else 'run file is empty'}")


def _gathered(
    rows: Iterable[tuple[int, Any]], keys: Mapping[str, Any], take: Callable[[Any, Any], Any], source: str | Path
) -> tuple[list[int], dict[str, list[Any]]]:
    """The lines of rows, and the cells of some columns."""
    lines: list[int] = []
    cells: dict[str, list[Any]] = {role: [] for role in keys}
    each = [(cells[role].append, key) for role, key in keys.items()]
    for line, row in rows:
        lines.append(line)
        try:
            for append, key in each:
                append(take(row, key))
        except UnicodeDecodeError:
            raise not_utf8(source, line) from None
    return lines, cells


def _of_records(source: Any, what: str, kind: Kind) -> _Cells:
    """The cells of rows: of dicts, or of a query, a passage, and a grade or perhaps a score."""
    form = "(query, passage, grade)" if kind == "labels" else "(query, passage) or (query, passage, score)"
    refuse_set(source, what)
    records = list(iterated(source, f"{what}: expected {form} rows, dicts, a DataFrame or a path"))
    if records and all(isinstance(record, Mapping) for record in records):
        return _of_rows(enumerate(map(dict, records), 1), what, kind, ", row ")
    width = len(records[0]) if records and isinstance(records[0], (tuple, list)) else 3
    for record in records:
        if not isinstance(record, (tuple, list)) or not (2 if kind == "run" else 3) <= len(record) <= 3:
            raise InputError(f"{what}: expected {form}, got {record!r}")
        if len(record) != width:
            raise InputError(f"{what}: query {record[0]!r} has {'no ' * (width == 3)}scores, unlike those before it")
    roles = ("query", "passage", "grade" if kind == "labels" else "score")
    columns = map(list, zip(*records, strict=True)) if records else ([], [], [])
    return _Cells(dict(zip(roles, columns, strict=False)), what)


def _of_dict(lists: Mapping[Any, Any], what: str, kind: Kind) -> _Cells:
    """The cells of {query: {passage: grade or score}}, {query: [passage, …]}, or {query: [(passage, score), …]}."""
    passages: list[Any] = []
    values: list[Any] = []
    counts: list[int] = []
    expected: list[bool] = []
    for query, row in lists.items():
        where = f"{what} of query {query!r}" if kind == "labels" else f"{what}: query {query!r}"
        if kind == "run":
            refuse_set(row, where)
        form = "{passage: grade} or a list of ids" if kind == "labels" else "a list of ids or {passage: score}"
        if isinstance(row, str):
            raise InputError(f"{where}: expected {form}, got {row!r}")
        ids = list(iterated(row, f"{where}: expected {form}"))
        given = list(row.values()) if isinstance(row, Mapping) else [1] * len(ids) if kind == "labels" else []
        if kind == "run" and ids and isinstance(ids[0], (tuple, list)):
            for pair in ids:
                if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                    raise InputError(f"{where}: expected (passage, score) with a number, got {pair!r}")
            ids, given = map(list, zip(*ids, strict=True))
        if ids and passages and bool(given) != bool(values):
            raise InputError(f"run: query {query!r} has {'' if given else 'no '}scores, unlike those before it")
        passages += ids
        values += given
        counts.append(len(ids))
        expected += [not isinstance(row, Mapping)] * len(ids)
    columns = {"passage": passages} | ({} if kind == "run" else {"grade": values})
    cells = _Cells(columns, what, queries=[*lists], counts=counts)
    if kind == "labels":
        cells.expected = expected
    elif values:
        columns["score"] = values
    return cells


# -- the columns of cells ---------------------------------------------------------------------------------


def _of_scan(found: Scan, kind: Kind) -> Columns:
    """The columns of a scan."""
    import polars as pl

    frame = pl.concat(found.rows())
    if not len(frame):
        raise Odd
    numbers: dict[str, Any] = {role: frame[role].to_numpy() for role in frame.columns[2:]}
    remarks = _chosen(found.names, kind, found.source)[1] if found.names else Counter[str]()
    lines = None if found.lines is None else np.arange(found.lines, found.lines + len(frame))
    queries, query = numbered(frame["query"].to_list())
    about: dict[str, Any] = {"source": found.source, "lines": lines, "remarks": +remarks}
    return Columns(tuple(queries), query, frame["passage"].to_list(), **about, **numbers)


def _checked(cells: _Cells, kind: Kind) -> Columns:
    """The columns of cells, each of which is checked."""
    if "query" in cells.columns:
        queries, query = numbered(_ids(cells.columns["query"], "query", cells.where))
    else:
        queries, place = numbered(_ids(cells.queries, "query", lambda row, what: cells.source))
        query = np.repeat(place, cells.counts)
        if len(queries) < len(place) and kind == "run":
            raise InputError("run: two query ids are the same when written as text; make them different")
    found: dict[str, Any] = {"source": cells.source, "remarks": +cells.remarks}
    if cells.before == ":":
        found["lines"] = np.array(cells.lines, np.int64)
    if kind == "labels":
        found["grade"] = _grades(cells)
        found["expected"] = None if cells.expected is None else np.array(cells.expected, bool)
    else:
        found |= {role: _numbers(cells, role) for role in ("score", "rank", "tokens") if role in cells.columns}
    return Columns(tuple(queries), query, _ids(cells.columns["passage"], "passage", cells.where_of_query), **found)


def _ids(column: Sequence[Any], what: str, where: Callable[[int, str], str]) -> list[str]:
    """Ids as texts."""
    types = set(map(type, column))
    if types <= {str, int}:
        texts = list(column if types <= {str} else map(str, column))
        if all(texts) and id_fault("".join(texts) or "-") is None:
            return texts
    return [id_text(cell, where(row, what), what) for row, cell in enumerate(column)]


def _grades(cells: _Cells) -> IntArray:
    column = cells.columns["grade"]
    try:
        grade_of = {cell: whole_grade(cell, "") for cell in set(column)}
        return np.fromiter(map(grade_of.__getitem__, column), np.int64, len(column))
    except (InputError, TypeError):
        return np.array([_grade(cell, cells.where_of_pair(row, "grade")) for row, cell in enumerate(column)], np.int64)


def _grade(value: Any, where: str) -> int:
    """A grade as an int; a fractional one may be the score of a run."""
    try:
        return whole_grade(value, where)
    except InputError as error:
        number = number_or_nan(value)
        if math.isfinite(number) and not number.is_integer():
            raise InputError(f"{error}: is this a run? The labels come first") from None
        raise


def _numbers(cells: _Cells, role: str) -> FloatArray | None:
    """A column of numbers that are not NaN; None for ranks of a table beside scores that are something else."""
    column = cells.columns[role]
    is_text = str in set(map(type, column))
    try:
        exactly = is_text and any("_" in cell for cell in column if isinstance(cell, str))
        # In a third of the time.
        numbers = np.fromiter(map(number_of if exactly else float, column), np.float64, len(column))
    except (TypeError, ValueError, OverflowError):
        numbers = np.array([number_or_nan(cell) for cell in column], np.float64)
    if role == "tokens":
        numbers[(numbers < 0) | np.isinf(numbers)] = np.nan
    wrong = np.flatnonzero(np.isnan(numbers))
    if not len(wrong):
        return numbers
    if role == "rank" and "score" in cells.columns and cells.names:
        return None
    where, value = cells.where_of_pair(int(wrong[0]), role), shown(column[wrong[0]])
    if role == "tokens":
        raise InputError(f"{where}: {value} is not a number of tokens; give a number ≥ 0")
    raise InputError(f"{where}: the {role} {value} is not a number")
