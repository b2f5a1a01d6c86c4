"""Labels and runs of any source as columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
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
from rag_selectivity.tables.fast import Kind, Odd, scan
from rag_selectivity.tables.files import is_large, is_path
from rag_selectivity.tables.ids import IntArray, numbered, refuse_set
from rag_selectivity.tables.names import COLUMNS, columns_of, optional_column

FloatArray = NDArray[np.float64]
#: So many rows are held before they are turned into columns.
_SOME = 1000


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
    """Cells as they were given, by what they hold, and where they stand.

    Attributes
    ----------
    columns : {role: list}
    source : str
        What messages call the source; of a row, `before` and its place among `places` follow.
    names : {role: name of the column}
        Of a table; empty for TREC.
    counts : sequence of int
        Of a dict: how many rows each of its queries has.
    expected : list of bool or None
    remarks : {code: count}
    """

    columns: dict[str, list[Any]]
    source: str
    places: Sequence[int] = ()
    before: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    counts: Sequence[int] | None = None
    expected: list[bool] | None = None
    remarks: Counter[str] = field(default_factory=Counter)

    def where(self, row: int, role: str) -> str:
        """The place of a cell; an InputError if it is one of a table and holds nothing."""
        place = f"{self.source}{self.before}{self.places[row]}" if self.places else self.source
        if role in self.names and is_missing(self.columns[role][row]):
            raise InputError(f"{place}: {self.names[role]} is missing")
        if role == "query":
            return place
        of_query = row if self.counts is None else int(np.searchsorted(np.cumsum(self.counts), row, "right"))
        place = f"{place}: query {shown(self.columns['query'][of_query])}"
        return place if role == "passage" else f"{place}, passage {shown(self.columns['passage'][row])}"


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
    if is_path(source):
        path, name = Path(source), exact.kind_of(Path(source), format)
        if kind == "run" and (name in exact.STORES or name == "beir"):
            what = {"golden": "a golden set", "beir": "a folder"}.get(name, "a label store")
            raise InputError(f"{path} is {what} and holds no run; give the file of the run")
        if name == "beir":
            path, name = _beir_labels(path), "tsv"
        return _scanned(path, kind, name) or _checked(_of_file(path, name, kind, long_tags), kind)
    what = "qrels" if kind == "labels" else "run"
    if isinstance(source, Mapping):
        return _checked(_of_dict(source, what, kind), kind)
    return _checked((_of_frame if exact.is_frame(source) else _of_records)(source, what, kind), kind)


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


def _scanned(path: Path, kind: Kind, name: str) -> Columns | None:
    """The columns of a large and regular file; None for others, which are read line by line."""
    found = scan(path, kind, format=name) if is_large(path) else None
    if found is None:
        return None
    import polars as pl

    try:
        frame = pl.concat(found.rows())
    except Odd:
        return None
    if not len(frame):
        return None
    numbers: dict[str, Any] = {role: frame[role].to_numpy() for role in frame.columns[2:]}
    remarks = _chosen(found.names, kind, found.source)[1] if found.names else Counter[str]()
    lines = None if found.lines is None else np.arange(found.lines, found.lines + len(frame))
    queries, query = numbered(frame["query"].to_list())
    about: dict[str, Any] = {"source": found.source, "lines": lines, "remarks": +remarks}
    return Columns(tuple(queries), query, frame["passage"].to_list(), **about, **numbers)


# -- the cells of a source --------------------------------------------------------------------------------


def _of_file(path: Path, name: str, kind: Kind, long_tags: bool) -> _Cells:
    if name != "trec":
        return _of_rows(exact.table_rows(path, name), str(path), kind)
    comments = Counter[str]()
    cells = _of_rows(exact.trec_rows(path, kind, long_tags, comments), str(path), kind)
    cells.remarks, cells.names = comments, {}
    return cells


def _of_rows(rows: Iterator[tuple[int, Row]], source: str, kind: Kind, before: str = ":") -> _Cells:
    """The cells of rows with names; the first row has the names of all."""
    first = next(rows, None)
    if first is None:
        labels = "file of labels is empty: there are no judgments in it"
        raise InputError(f"{source}: the {labels if kind == 'labels' else 'run file is empty'}")
    names, remarks = _chosen(list(first[1]), kind, source)
    places: list[int] = []
    columns: dict[str, list[Any]] = {role: [] for role in names}
    rows = chain([first], rows)
    while some := list(islice(rows, _SOME)):
        places += [place for place, _ in some]
        for role, name in names.items():
            columns[role] += [row.get(name) for _, row in some]
    return _Cells(columns, source, places, before, names, remarks=remarks)


def _of_frame(frame: Any, what: str, kind: Kind) -> _Cells:
    source = f"{what} frame"
    frame = exact.as_frame(frame, source)
    names, remarks = _chosen(exact.column_names(frame), kind, source)
    values = exact.frame_columns(frame, names.values())
    columns = {role: values[name] for role, name in names.items()}
    return _Cells(columns, source, range(1, 1 + len(columns["query"])), ", row ", names, remarks=remarks)


def _chosen(names: Sequence[str], kind: Kind, where: str) -> tuple[dict[str, str], Counter[str]]:
    """The columns of a table by what they hold, and a remark on those of labels that belong into a run."""
    columns = columns_of(names, kind, where)
    ranking = {optional_column(names, COLUMNS[role]) for role in ("score", "rank")} - {None, columns.get("grade")}
    return columns, Counter(ranking_columns_in_labels=len(ranking) if kind == "labels" else 0)


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
    cells = _Cells({"query": [*lists], "passage": passages}, what, counts=counts)
    if kind == "labels":
        cells.expected = expected
    if values or kind == "labels":
        cells.columns["grade" if kind == "labels" else "score"] = values
    return cells


# -- the columns of cells ---------------------------------------------------------------------------------


def _checked(cells: _Cells, kind: Kind) -> Columns:
    """The columns of cells, each of which is checked."""
    queries, query = numbered(_ids(cells, "query"))
    if cells.counts is not None:
        if len(queries) < len(query) and kind == "run":
            raise InputError("run: two query ids are the same when written as text; make them different")
        query = np.repeat(query, cells.counts)
    found: dict[str, Any] = {"source": cells.source, "remarks": +cells.remarks}
    if cells.before == ":":
        found["lines"] = np.array(cells.places, np.int64)
    if kind == "labels":
        found["grade"] = _grades(cells)
        found["expected"] = None if cells.expected is None else np.array(cells.expected, bool)
    else:
        found |= {role: _numbers(cells, role) for role in ("score", "rank", "tokens") if role in cells.columns}
    return Columns(tuple(queries), query, _ids(cells, "passage"), **found)


def _ids(cells: _Cells, what: str) -> list[str]:
    """Ids as texts."""
    column = cells.columns[what]
    types = set(map(type, column))
    if types <= {str, int}:
        texts = list(column if types <= {str} else map(str, column))
        if all(texts) and id_fault("".join(texts) or "-") is None:
            return texts
    return [id_text(cell, cells.where(row, what), what) for row, cell in enumerate(column)]


def _grades(cells: _Cells) -> IntArray:
    column = cells.columns["grade"]
    try:
        grade_of = {cell: whole_grade(cell, "") for cell in set(column)}
        return np.fromiter(map(grade_of.__getitem__, column), np.int64, len(column))
    except (InputError, TypeError):
        return np.array([_grade(cell, cells.where(row, "grade")) for row, cell in enumerate(column)], np.int64)


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
    """A column of numbers that are not NaN; None for what a table calls rank beside scores."""
    column = cells.columns[role]
    is_text = str in set(map(type, column))
    try:
        exactly = is_text and "_" in "".join(cell for cell in column if isinstance(cell, str))
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
    where, value = cells.where(int(wrong[0]), role), shown(column[wrong[0]])
    if role == "tokens":
        raise InputError(f"{where}: {value} is not a number of tokens; give a number ≥ 0")
    raise InputError(f"{where}: the {role} {value} is not a number")
