"""Labels and runs of any source as columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.cells import (
    LARGEST_GRADE,
    checked_id,
    holds_half,
    iterated,
    label_grade,
    number_of,
    query_text,
    shown,
)
from rag_selectivity.data.remarks import NO_REMARKS, counted
from rag_selectivity.errors import InputError
from rag_selectivity.tables.exact import (
    STORES,
    as_frame,
    beir_labels,
    column_names,
    column_values,
    is_frame,
    is_large,
    kind_of,
    table_rows,
    trec_rows,
)
from rag_selectivity.tables.fast import FIELDS, Kind, Odd, Scan, scan
from rag_selectivity.tables.names import label_columns, ranking_columns, run_columns

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """The rows of labels or of a run, in their order.

    Attributes
    ----------
    query, passage : list of str
        The ids of each row.
    grade : int64[rows] or None
        Of labels; those below 0 are not judged.
    score, rank, tokens : float64[rows] or None
        Of a run; None if the source has none.
    queries : tuple of str
        All query ids in the order of their first appearance; those without rows too.
    expected : bool[rows] or None
        The labels that are expected ids without a grade; None if all have grades.
    source : str
        A name for messages.
    lines : int64[rows] or None
        The line of each row in the file.
    remarks : {code: count}
        What was noticed; `rag_selectivity.data.remarks` lists the codes.
    scale : str or None
        The scale of the grades, if the source names it, as a label store does.
    levels : tuple of int
        Grades that the judge could give, besides those that it gave.
    origins : LabelOrigins or None
        Where the labels come from, if the source says so.
    """

    query: list[str]
    passage: list[str]
    grade: IntArray | None = None
    score: FloatArray | None = None
    rank: FloatArray | None = None
    tokens: FloatArray | None = None
    queries: tuple[str, ...] = ()
    expected: NDArray[np.bool_] | None = None
    source: str = ""
    lines: IntArray | None = None
    remarks: Mapping[str, int] = field(default_factory=dict)
    scale: str | None = None
    levels: tuple[int, ...] = ()
    origins: Any = None

    def named(self, source: str) -> Columns:
        """The same columns of another source."""
        return replace(self, source=source)


@dataclass(frozen=True)
class _Cells:
    """Cells as they were given, by what they hold, and where they stand."""

    columns: dict[str, list[Any]]
    #: What stands before the line or the row in messages.
    source: str
    lines: list[int] | None = None
    #: The name of each column in its table.
    names: Mapping[str, str] | None = None
    queries: Iterable[Any] = ()
    expected: list[bool] | None = None
    remarks: Mapping[str, int] = field(default_factory=dict)

    def where(self, row: int) -> str:
        return self.source if self.lines is None else f"{self.source}{self.lines[row]}"


def labels(
    source: Any, *, format: str | None = None, judges: Sequence[str] | None = None, humans: bool = True
) -> Columns:
    """The labels of a dict, rows, a frame, a dataset, a file, a folder or a label store.

    Parameters
    ----------
    source : object
        {query: {passage: grade}} or {query: expected ids}, rows of (query, passage, grade) or dicts, a frame, a path.
    format : str, optional
        Of a file, if neither content nor suffix shows it.
    judges : sequence of str, optional
        Of a label store: whose labels count.
    humans : bool
        Of a label store: whether people's grades take the place of a judge's.

    Raises
    ------
    InputError
        Naming the place of what is wrong.

    >>> columns = labels({"q1": {"d1": 5, "d2": 1}, "q2": ["d7"]})
    >>> columns.query, columns.passage, columns.grade.tolist(), columns.expected.tolist()
    (['q1', 'q1', 'q2'], ['d1', 'd2', 'd7'], [5, 1, 1], [False, False, True])
    """
    if isinstance(source, (str, Path)):
        path, kind = Path(source), kind_of(Path(source), format)
        if kind in STORES:
            of_store: Columns = import_module(STORES[kind]).read_labels(kind, path, judges, humans)
            return of_store
        if judges:
            raise InputError(f"{path} is no label store: its labels have no judges to choose from")
        path = beir_labels(path) if kind == "beir" else path
        return _of_file(path, "tsv" if kind == "beir" else kind, "labels", format)
    return _of_object(source, "labels")


def run(source: Any, *, format: str | None = None, long_tags: bool = False) -> Columns:
    """The run of a dict, rows, a frame, a dataset or a file; with `long_tags`, a TREC line may have further fields.

    >>> columns = run({"q1": {"d1": 2.5}, "q2": {}})
    >>> columns.queries, columns.passage, columns.score.tolist()
    (('q1', 'q2'), ['d1'], [2.5])

    Raises
    ------
    InputError
        Naming the place of what is wrong.
    """
    if isinstance(source, (str, Path)):
        path, kind = Path(source), kind_of(Path(source), format)
        if kind in STORES or kind == "beir":
            what = {"golden": "a golden set", "beir": "a folder"}.get(kind, "a label store")
            raise InputError(f"{path} is {what} and holds no run; give the file of the run")
        return _of_file(path, kind, "run", format, long_tags)
    return _of_object(source, "run")


# -- what cells a source has ------------------------------------------------------------------------------


def _of_file(path: Path, name: str, kind: Kind, format: str | None, long_tags: bool = False) -> Columns:
    """By a scan where this is quicker and the file is regular, or line by line."""
    if is_large(path):
        found = scan(path, kind, format=format or name)
        try:
            if found is not None:
                return _of_scan(found, kind)
        except Odd:
            pass
    if name == "trec":
        return _of_cells(_trec_cells(path, kind, long_tags), kind)
    return _of_cells(_table_cells(table_rows(path, name), str(path), kind), kind)


def _of_object(source: Any, kind: Kind) -> Columns:
    if isinstance(source, Mapping):
        return _of_cells((_label_dict_cells if kind == "labels" else _run_dict_cells)(source), kind)
    what = "qrels" if kind == "labels" else kind
    if is_frame(source):
        frame = as_frame(source, f"{what} frame")
        chosen, remarks = _chosen(column_names(frame), kind, f"{what} frame")
        cells = {role: column_values(frame, name) for role, name in chosen.items()}
        rows = list(range(1, 1 + len(cells["query"])))
        return _of_cells(_Cells(cells, f"{what} frame, row ", rows, chosen, remarks=remarks), kind)
    return _of_cells(_record_cells(source, what, kind), kind)


def _chosen(names: Sequence[str], kind: Kind, where: str) -> tuple[dict[str, str], Mapping[str, int]]:
    """The columns of a table by what they hold, and a remark on those that belong elsewhere."""
    if kind == "run":
        return run_columns(names, where), NO_REMARKS
    columns = label_columns(names, where)
    return columns, counted(ranking_columns_in_labels=len(ranking_columns(names, columns["grade"])))


def _trec_cells(path: Path, kind: Kind, long_tags: bool) -> _Cells:
    """The fields of lines; those that begin with `#` are left out."""
    comments = 0
    lines: list[int] = []
    rows: list[Sequence[str]] = []
    width = 4 if kind == "labels" else 0
    for line, fields in trec_rows(path):
        if fields[0].startswith("#"):
            comments += 1
            continue
        width = width or (3 if len(fields) == 3 else 6)
        if len(fields) != width and not (long_tags and len(fields) > width == 6):
            raise InputError(f"{path}:{line}: {_wrong_width(fields, width)}")
        lines.append(line)
        rows.append(fields[:width])
    if not rows and kind == "labels":
        raise InputError(f"{path}: the file of labels is empty: there are no judgments in it")
    if not rows:
        raise InputError(f"{path}: the run file is empty")
    roles = FIELDS[kind, width]
    columns = {role: list(column) for role, column in zip(roles, zip(*rows, strict=True), strict=True)}
    remarks = counted(label_comment_lines=comments) if kind == "labels" else counted(run_comment_lines=comments)
    return _Cells(columns, f"{path}:", lines, remarks=remarks)


def _wrong_width(fields: Sequence[str], width: int) -> str:
    kinds = {3: "3 fields (query passage rank)", 4: "4 fields (query, 0, passage, grade)"}
    expected = kinds.get(width, "6 fields (query Q0 passage rank score tag)")
    hint = {(6, 4): " (four fields: is this a qrels file?)", (4, 6): " (six fields: is this a run file?)"}
    mend = "; if an id holds a blank, write the file as TSV or JSONL" if len(fields) > width else ""
    if len(fields) > width == 6:
        mend += '; if only the tag does, give policy="trec_eval"'
    found = f"found {len(fields)}{hint.get((width, len(fields)), '')}: {' '.join(fields)[:60]!r}"
    return f"expected {expected}, {found}{mend}"


def _table_cells(rows: Iterator[tuple[int, Mapping[str, Any]]], source: str, kind: Kind, mark: str = ":") -> _Cells:
    """The cells of rows with names; the first row has the names of all."""
    first = next(rows, None)
    if first is None:
        raise InputError(f"{source}: there are no rows")
    if {"query_hash", "passage_hash", "origins"} <= set(first[1]):
        raise InputError(
            f"{source} is an export of a label store, with every label of a pair and random controls: import it into "
            f"a store (rag-selectivity store import labels.db {Path(source).name}) and give the store"
        )
    chosen, remarks = _chosen(list(first[1]), kind, source)
    lines: list[int] = []
    cells: dict[str, list[Any]] = {role: [] for role in chosen}
    each = [(cells[role].append, name) for role, name in chosen.items()]
    for line, row in chain([first], rows):
        lines.append(line)
        for append, name in each:
            append(row.get(name))
    return _Cells(cells, f"{source}{mark}", lines, chosen, remarks=remarks)


def _record_cells(source: Any, what: str, kind: Kind) -> _Cells:
    """The cells of rows: of dicts, or of a query, a passage, and perhaps a grade or score."""
    form = "(query, passage, grade)" if kind == "labels" else "(query, passage) or (query, passage, score)"
    _refuse_set(source, what)
    given = iterated(source, f"{what}: expected {form} rows, dicts, a DataFrame or a path")
    first = next(given, None)
    if isinstance(first, Mapping):
        return _table_cells(enumerate(chain([first], given), 1), what, kind, ", row ")
    roles = ("query", "passage", "grade" if kind == "labels" else "score")
    cells: dict[str, list[Any]] = {role: [] for role in roles}
    width = 3 if kind == "labels" or first is None or not _is_row(first) else len(first)
    for record in () if first is None else chain([first], given):
        if not _is_row(record) or (len(record) != width and (kind == "labels" or len(record) not in (2, 3))):
            raise InputError(f"{what}: expected {form}, got {record!r}")
        if len(record) != width:
            raise InputError(f"{what}: query {record[0]!r} has {'no ' * (len(record) == 2)}scores, unlike others")
        for role, cell in zip(roles, record, strict=False):
            cells[role].append(cell)
    return _Cells({role: column for role, column in cells.items() if column or width == 3}, what)


def _is_row(record: Any) -> bool:
    """Whether a record is a sequence of two or three values."""
    try:
        return len(record) in (2, 3) and not isinstance(record, (str, Mapping, Set))
    except TypeError:
        return False


def _refuse_set(ranking: object, what: str) -> None:
    """An InputError for a set in the place of a ranking: its order changes from one process to the next."""
    if isinstance(ranking, (set, frozenset)):
        raise InputError(f"{what}: a set has no order; give a list, the best first")


def _label_dict_cells(judgments: Mapping[Any, Any]) -> _Cells:
    """The cells of {query: {passage: grade}}; a list or set in place of a dict names the relevant passages."""
    counts: list[int] = []
    passages: list[Any] = []
    grades: list[Any] = []
    expected: list[bool] = []
    for query, judged in judgments.items():
        before = len(passages)
        wrong = f"qrels of query {query!r}: expected {{passage: grade}} or a list of ids"
        if isinstance(judged, str):
            raise InputError(f"{wrong}, got {judged!r}")
        passages.extend(judged if isinstance(judged, Mapping) else iterated(judged, wrong))
        counts.append(len(passages) - before)
        grades.extend(judged.values() if isinstance(judged, Mapping) else repeat(1, counts[-1]))
        expected.extend(repeat(not isinstance(judged, Mapping), counts[-1]))
    queries = list(map(repeat, judgments, counts))
    return _Cells(
        {"query": list(chain.from_iterable(queries)), "passage": passages, "grade": grades},
        "qrels",
        queries=judgments,
        expected=expected,
        remarks=counted(lists_as_labels=sum(not isinstance(judged, Mapping) for judged in judgments.values())),
    )


def _run_dict_cells(lists: Mapping[Any, Any]) -> _Cells:
    """The cells of {query: [passage, …]}, {query: {passage: score}}, or {query: [(passage, score), …]}."""
    counts: list[int] = []
    passages: list[Any] = []
    scores: list[Any] = []
    scored: bool | None = None
    for query, ranked in lists.items():
        _refuse_set(ranked, f"run: query {query!r}")
        wrong = f"run: query {query!r}: expected a list of ids or {{passage: score}}"
        if isinstance(ranked, str):
            raise InputError(f"{wrong}, got {ranked!r}")
        rows = ranked if isinstance(ranked, (dict, list, tuple)) else list(iterated(ranked, wrong))
        if isinstance(ranked, Mapping) and not isinstance(ranked, dict):
            rows = dict(ranked)
        counts.append(len(rows))
        if not rows:
            continue
        has_scores = isinstance(rows, dict) or isinstance(rows[0], (tuple, list))
        if scored not in (None, has_scores):
            no = "" if has_scores else "no "
            raise InputError(f"run: query {query!r} has {no}scores, unlike those before it")
        scored = has_scores
        if not has_scores:
            passages += rows
            continue
        if isinstance(rows, dict):
            passages += rows
            scores += rows.values()
            continue
        for pair in rows:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise InputError(f"run: query {query!r}: expected (passage, score) with a number, got {pair!r}")
            passages.append(pair[0])
            scores.append(pair[1])
    query_cells = list(chain.from_iterable(map(repeat, lists, counts)))
    cells = {"query": query_cells, "passage": passages} | ({"score": scores} if scored else {})
    names = [query_text(query, "run") for query in lists]
    if len(set(names)) != len(names):
        raise InputError("run: two query ids are the same when written as text; make them different")
    return _Cells(cells, "run", queries=names)


# -- columns of cells -------------------------------------------------------------------------------------


def _of_scan(found: Scan, kind: Kind) -> Columns:
    """The columns of a scan."""
    (frame,) = found.collect()
    ids = [frame[role].to_list() for role in ("query", "passage")]
    if not len(frame) or any("\0" in "".join(column) for column in ids):
        raise Odd
    numbers: dict[str, Any] = {role: frame[role].to_numpy() for role in frame.columns[2:]}
    remarks = NO_REMARKS
    if kind == "labels" and found.names:
        remarks = _chosen(found.names, kind, found.source)[1]
    lines = None if found.lines is None else np.arange(found.lines, found.lines + len(frame))
    about = Columns(ids[0], ids[1], source=found.source, lines=lines, remarks=remarks)
    return _finished(replace(about, **numbers))


def _of_cells(cells: _Cells, kind: Kind) -> Columns:
    """The columns of cells, each of which is checked."""
    _refuse_missing(cells)
    query = _ids(cells, "query")
    passage = _ids(cells, "passage")
    queries = tuple(dict.fromkeys(query_text(each, cells.source) for each in cells.queries))
    source = cells.source.removesuffix(":").removesuffix(", row ")
    found = Columns(query, passage, queries=queries, source=source, remarks=cells.remarks)
    if cells.lines is not None and cells.source.endswith(":"):
        found = replace(found, lines=np.array(cells.lines, np.int64))
    if kind == "labels":
        expected = None if cells.expected is None else np.array(cells.expected, bool)
        return _finished(replace(found, grade=_grades(cells), expected=expected))
    numbers: dict[str, Any] = {
        role: _numbers(cells, role) for role in ("score", "rank", "tokens") if role in cells.columns
    }
    return _finished(replace(found, **numbers))


def _finished(found: Columns) -> Columns:
    """With the queries in order, and a remark on ranks that contradict the scores."""
    found = replace(found, queries=tuple(dict.fromkeys(chain(found.queries, found.query))))
    if found.score is None or found.rank is None:
        return found
    same = np.fromiter((one == other for one, other in pairwise(found.query)), bool, max(len(found.query) - 1, 0))
    against = rows_against_ranks(same, found.rank, found.score)
    return replace(found, remarks={**found.remarks, **counted(rank_against_score=against)})


def rows_against_ranks(same: NDArray[np.bool_], ranks: FloatArray, scores: FloatArray) -> int:
    """How many neighbouring rows have the better rank and the worse score; `same`: whether both have the same query.

    A better passage has a smaller rank and a larger score.
    """
    rising = (ranks[1:] > ranks[:-1]) & (scores[1:] > scores[:-1])
    falling = (ranks[1:] < ranks[:-1]) & (scores[1:] < scores[:-1])
    return int((same & (rising | falling)).sum())


def _refuse_missing(cells: _Cells) -> None:
    """An InputError for the first cell of a table that holds nothing; ranks beside scores need not be there."""
    missing = []
    for role, name in (cells.names or {}).items():
        column = cells.columns[role]
        if role != "rank" or "score" not in cells.columns:
            missing += [
                (row, name) for row, cell in enumerate(column) if cell is None or (type(cell) is str and not cell)
            ][:1]
    for row, name in sorted(missing)[:1]:
        raise InputError(f"{cells.where(row)}: {name} is missing")


def _ids(cells: _Cells, role: str) -> list[str]:
    """A column of ids as texts."""
    column = cells.columns[role]
    types = set(map(type, column))
    if types <= {str, int}:
        texts = column if types <= {str} else list(map(str, column))
        text = "".join(texts)
        if all(texts) and "\0" not in text and (text.isascii() or not holds_half(text)):
            return texts
    if role == "query":
        return [query_text(cell, cells.where(row)) for row, cell in enumerate(column)]
    return [_passage_text(cell, row, cells) for row, cell in enumerate(column)]


def _passage_text(cell: Any, row: int, cells: _Cells) -> str:
    if isinstance(cell, (int, np.integer)) and not isinstance(cell, bool):
        return str(cell)
    where = f"{cells.where(row)}: query {shown(cells.columns['query'][row])}"
    if not isinstance(cell, str):
        raise InputError(f"{where}: passage id {shown(cell)} ({type(cell).__name__}); ids must be strings or integers")
    return checked_id(cell, where, "passage")


def _grades(cells: _Cells) -> IntArray:
    column = cells.columns["grade"]
    try:
        if set(map(type, column)) <= {int} and all(abs(grade) < LARGEST_GRADE for grade in set(column)):
            return np.array(column, np.int64)
        # A text is read once; other values may be equal and of another type.
        known = {cell: label_grade(cell, "") for cell in set(column)} if set(map(type, column)) <= {str} else None
        return np.array([label_grade(c, "") for c in column] if known is None else [known[c] for c in column], np.int64)
    except (InputError, TypeError):
        pairs = zip(column, cells.columns["query"], cells.columns["passage"], strict=True)
        places = (
            (cell, f"{cells.where(row)}: query {query!r}, passage {passage!r}")
            for row, (cell, query, passage) in enumerate(pairs)
        )
        return np.array([label_grade(cell, place) for cell, place in places], np.int64)


def _numbers(cells: _Cells, role: str) -> FloatArray | None:
    """A column of numbers that are not NaN; None for ranks of a table beside scores that are something else."""
    column = cells.columns[role]
    try:
        plain = set(map(type, column)) <= {float}
        numbers = np.array(column if plain else list(map(number_of, column)), np.float64)
        if not np.isnan(numbers).any() and (role != "tokens" or bool(((numbers >= 0) & (numbers < math.inf)).all())):
            return numbers
    except (TypeError, ValueError):
        pass
    if role == "rank" and "score" in cells.columns and cells.names:
        return None
    row = next(row for row, cell in enumerate(column) if _is_wrong(cell, role))
    if role == "tokens":
        raise InputError(f"{cells.where(row)}: {column[row]!r} is not a number of tokens; give a number ≥ 0")
    query = cells.columns["query"][row]
    raise InputError(f"{cells.where(row)}: query {query!r}: the {role} {shown(column[row])} is not a number")


def _is_wrong(cell: Any, role: str) -> bool:
    try:
        number = number_of(cell)
    except (TypeError, ValueError):
        return True
    return number != number or (role == "tokens" and not 0 <= number < math.inf)
