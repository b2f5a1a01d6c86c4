"""Labels and runs of any source as columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.tables import exact
from rag_selectivity.tables.cells import (
    LARGEST_GRADE,
    id_fault,
    id_text,
    iterated,
    number_or_nan,
    shown,
    whole_grade,
)
from rag_selectivity.tables.exact import Row
from rag_selectivity.tables.fast import Kind, Odd, scan
from rag_selectivity.tables.files import damage_first, is_large, is_path
from rag_selectivity.tables.ids import IntArray, numbered, refuse_set
from rag_selectivity.tables.names import columns_of

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
    what = "qrels" if kind == "labels" else "run"
    if isinstance(source, Mapping):
        return _of_dict(source, what, kind)
    if not is_path(source):
        frame = exact.is_frame(source)
        rows = exact.frame_rows(source, f"{what} frame") if frame else _records(source, what, kind)
        return _of_rows(enumerate(rows, 1), f"{what} frame" if frame else what, kind, ", row ")
    path, name = Path(source), exact.kind_of(Path(source), format)
    if kind == "run" and (name in exact.STORES or name == "beir"):
        what = {"golden": "a golden set", "beir": "a folder"}.get(name, "a label store")
        raise InputError(f"{path} is {what} and holds no run; give the file of the run")
    if name == "beir":
        path, name = _beir_labels(path), "tsv"
    if is_large(path) and (found := _scanned(path, kind, name)) is not None:
        return found
    lines = exact.trec_rows(path, kind, long_tags) if name == "trec" else exact.read_records(path, name)
    with damage_first(path):
        return _of_rows(lines, str(path), kind, ":")


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
    found = scan(path, kind, format=name)
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
    lines = None if found.lines is None else np.arange(found.lines, found.lines + len(frame))
    queries, query = numbered(frame["query"].to_list())
    return Columns(tuple(queries), query, frame["passage"].to_list(), source=found.source, lines=lines, **numbers)


# -- rows, which are checked one by one -------------------------------------------------------------------


@dataclass(slots=True)
class _Place:
    """The place of a cell, which is written out for a message alone."""

    source: str
    before: str
    row: Any = None
    query: str | None = None
    passage: str | None = None

    def __str__(self) -> str:
        query = "" if self.query is None else f": query {self.query!r}"
        passage = "" if self.passage is None else f", passage {self.passage!r}"
        return f"{self.source}{self.before}{self.row}{query}{passage}"


def _of_rows(
    rows: Iterator[tuple[Any, Row]], source: str, kind: Kind, before: str, queries: Iterable[str] = ()
) -> Columns:
    """The columns of rows, the first of which has the names of all.

    Parameters
    ----------
    rows : iterator of (place, row)
    source, before : str
        What messages call a place: `run.trec` and `:`, then the number of the line.
    queries : iterable of str
        The queries that there are, those without rows too.
    """
    first = next(rows, None)
    if first is None and before == ":":
        raise InputError(f"{source}: the {'file of labels' if kind == 'labels' else 'run file'} is empty")
    names = {"query": "query", "passage": "passage"} if first is None else columns_of([*first[1]], kind, source)
    position = {query: i for i, query in enumerate(queries)}
    query: list[int] = []
    passages: list[str] = []
    places: list[Any] = []
    expected: list[bool] = []
    numbers: dict[str, list[float]] = {role: [] for role in names if role not in ("query", "passage")}
    # What a table calls rank beside scores may be anything.
    loose = "score" in names and "Q0" not in (first or ("", {}))[1]
    where: Any = _Place(source, before)
    for where.row, row in chain(() if first is None else [first], rows):
        where.query = where.passage = None
        where.query = id_text(row.get(names["query"]), where, "query")
        where.passage = id_text(row.get(names["passage"]), where, "passage")
        for role, column in numbers.items():
            column.append(_number(row.get(names[role]), role, where, loose))
        query.append(position.setdefault(where.query, len(position)))
        passages.append(where.passage)
        places.append(where.row)
        expected.append(row.get(_EXPECTED, False))
    types = {"grade": np.int64}
    if kind == "labels":
        numbers.setdefault("grade", [])
    return Columns(
        tuple(position),
        np.array(query, np.int64),
        passages,
        source=source,
        lines=np.array(places, np.int64) if before == ":" else None,
        expected=np.array(expected, bool) if any(expected) else None,
        **{role: np.array(column, types.get(role, np.float64)) for role, column in numbers.items()},  # type: ignore[arg-type]
    )


def _number(cell: Any, role: str, where: str, loose: bool) -> float:
    """A cell as the number that it must be; NaN for another rank if the rule for ranks is `loose`."""
    if role == "grade":
        return _grade(cell, where)
    number = float(cell) if isinstance(cell, (bool, np.bool_)) else number_or_nan(cell)
    if role == "tokens" and not 0 <= number < math.inf:
        raise InputError(f"{where}: {shown(cell)} is not a number of tokens; give a number ≥ 0")
    if math.isnan(number) and not (loose and role == "rank"):
        raise InputError(f"{where}: the {role} {shown(cell)} is not a number")
    return number


def _grade(cell: Any, where: str) -> int:
    """A grade as an int; a fractional one may be the score of a run."""
    try:
        return whole_grade(cell, where)
    except InputError as error:
        if number_or_nan(cell) % 1 > 0:
            raise InputError(f"{error}: is this a run? The labels come first") from None
        raise


def _records(source: Any, what: str, kind: Kind) -> Iterator[Row]:
    """Rows of dicts, or of a query, a passage, and a grade or perhaps a score."""
    form = "(query, passage, grade)" if kind == "labels" else "(query, passage) or (query, passage, score)"
    refuse_set(source, what)
    width = 0
    for record in iterated(source, f"{what}: expected {form} rows, dicts, a DataFrame or a path"):
        if isinstance(record, Mapping):
            yield dict(record)
            continue
        if not isinstance(record, (tuple, list)) or not (2 if kind == "run" else 3) <= len(record) <= 3:
            raise InputError(f"{what}: expected {form}, got {record!r}")
        width = width or len(record)
        if len(record) != width:
            raise _mixed(record[0], width == 2)
        yield dict(zip(("query", "passage", _VALUE[kind]), record, strict=False))


_VALUE = {"labels": "grade", "run": "score"}


def _mixed(query: Any, scored: bool) -> InputError:
    return InputError(f"run: query {query!r} has {'' if scored else 'no '}scores, unlike those before it")


# -- dicts ------------------------------------------------------------------------------------------------

#: Marks the row of an expected id, which has no grade of its own.
_EXPECTED = "expected id"


def _of_dict(lists: Mapping[Any, Any], what: str, kind: Kind) -> Columns:
    """The columns of {query: {passage: grade or score}}, {query: [passage, …]}, or {query: [(passage, score), …]}."""
    regular = _regular(lists, what, kind)
    if regular is not None:
        return regular
    queries = [id_text(query, what, "query") for query in lists]
    if len(set(queries)) < len(queries) and kind == "run":
        raise InputError("run: two query ids are the same when written as text; make them different")
    return _of_rows((("", row) for row in _dict_rows(lists, what, kind)), what, kind, "", dict.fromkeys(queries))


def _regular(lists: Mapping[Any, Any], what: str, kind: Kind) -> Columns | None:
    """The columns of a dict of dicts, or of lists, whose ids are texts and whole numbers; None for any other."""
    rows = list(lists.values())
    are_dicts = set(map(type, rows)) <= {dict}
    if not are_dicts and not set(map(type, rows)) <= {list, tuple}:
        return None
    queries, passages = _texts(lists), _texts(chain.from_iterable(rows))
    if queries is None or passages is None or len(set(queries)) < len(queries):
        return None
    about: dict[str, Any] = {"source": what}
    if are_dicts:
        numbers = np.array(list(chain.from_iterable(row.values() for row in rows)))
        if numbers.dtype.kind not in "biuf" and len(numbers):
            return None
        value = numbers.astype(np.float64)
        if kind == "labels":
            # NaN is no whole number either.
            if not ((np.abs(value) < LARGEST_GRADE) & (value == np.floor(value))).all():
                return None
            about["grade"] = value.astype(np.int64)
        elif np.isnan(value).any():
            return None
        elif len(value):
            about["score"] = value
    elif kind == "labels":
        about |= {"grade": np.ones(len(passages), np.int64), "expected": np.ones(len(passages), bool)}
    return Columns(tuple(queries), np.repeat(np.arange(len(rows)), list(map(len, rows))), passages, **about)


def _texts(ids: Iterable[Any]) -> list[str] | None:
    """Ids as texts; None if one is no text and no whole number, or cannot be an id."""
    listed = list(ids)
    types = set(map(type, listed))
    if not types <= {str, int}:
        return None
    texts = listed if types <= {str} else list(map(str, listed))
    return texts if all(texts) and id_fault("".join(texts) or "-") is None else None


def _dict_rows(lists: Mapping[Any, Any], what: str, kind: Kind) -> Iterator[Row]:
    """The rows of a dict of any of its forms."""
    form = "{passage: grade} or a list of ids" if kind == "labels" else "a list of ids or {passage: score}"
    scored: bool | None = None
    for query, row in lists.items():
        where = f"{what} of query {query!r}" if kind == "labels" else f"{what}: query {query!r}"
        if kind == "run":
            refuse_set(row, where)
        if isinstance(row, str):
            raise InputError(f"{where}: expected {form}, got {row!r}")
        for item in row.items() if isinstance(row, Mapping) else iterated(row, f"{where}: expected {form}"):
            if kind == "labels":
                passage, grade = item if isinstance(row, Mapping) else (item, 1)
                yield {"query": query, "passage": passage, "grade": grade, _EXPECTED: not isinstance(row, Mapping)}
                continue
            has_score = isinstance(item, (tuple, list))
            if has_score and len(item) != 2:
                raise InputError(f"{where}: expected (passage, score) with a number, got {item!r}")
            scored = has_score if scored is None else scored
            if scored != has_score:
                raise _mixed(query, has_score)
            pair = item if has_score else (item,)
            yield dict(zip(("query", "passage", "score"), (query, *pair), strict=False))
