"""Labels and runs of any source as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.tables.cells import (
    LARGEST_GRADE,
    checked_id,
    holds_half,
    iterated,
    label_grade,
    number_of,
    number_or_nan,
    query_text,
    shown,
)
from rag_selectivity.tables.exact import (
    STORES,
    as_frame,
    beir_labels,
    column_names,
    column_values,
    is_frame,
    is_large,
    kind_of,
    not_utf8,
    table_rows,
    trec_rows,
)
from rag_selectivity.tables.fast import FIELDS, ROLES, Kind, Odd, Scan, scan
from rag_selectivity.tables.ids import refuse_set
from rag_selectivity.tables.names import label_columns, ranking_columns, run_columns
from rag_selectivity.tables.remarks import NO_REMARKS, counted

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
        What was noticed; `rag_selectivity.tables.remarks` lists the codes.
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
    comments, width = 0, 4 if kind == "labels" else 0
    lines: list[int] = []
    cells: dict[str, list[Any]] = {}
    for line, fields in trec_rows(path):
        if fields[0].startswith(b"#"):
            comments += 1
            continue
        if not cells:
            width = width or (3 if len(fields) == 3 else 6)
            places = {role: place for place, role in enumerate(FIELDS[kind, width]) if role in ROLES}
            cells = {role: [] for role in places}
            each = [(cells[role].append, place) for role, place in places.items()]
        if len(fields) != width and not (long_tags and len(fields) > width == 6):
            raise InputError(f"{path}:{line}: {_wrong_width(fields, width)}")
        lines.append(line)
        try:
            for append, place in each:
                append(fields[place].decode())
        except UnicodeDecodeError:
            raise not_utf8(path, line) from None
    if not cells:
        labels = "file of labels is empty: there are no judgments in it"
        raise InputError(f"{path}: the {labels if kind == 'labels' else 'run file is empty'}")
    remarks = counted(label_comment_lines=comments) if kind == "labels" else counted(run_comment_lines=comments)
    return _Cells(cells, f"{path}:", lines, remarks=remarks)


def _wrong_width(fields: Sequence[bytes], width: int) -> str:
    kinds = {3: "3 fields (query passage rank)", 4: "4 fields (query, 0, passage, grade)"}
    expected = kinds.get(width, "6 fields (query Q0 passage rank score tag)")
    hint = {(6, 4): " (four fields: is this a qrels file?)", (4, 6): " (six fields: is this a run file?)"}
    mend = "; if an id holds a blank, write the file as TSV or JSONL" if len(fields) > width else ""
    if len(fields) > width == 6:
        mend += '; if only the tag does, give policy="trec_eval"'
    start = b" ".join(fields)[:60].decode("utf-8", "replace")
    found = f"found {len(fields)}{hint.get((width, len(fields)), '')}: {start!r}"
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
    """The cells of rows: of dicts, or of a query, a passage, and a grade or perhaps a score."""
    form = "(query, passage, grade)" if kind == "labels" else "(query, passage) or (query, passage, score)"
    refuse_set(source, what)
    expected = f"{what}: expected {form} rows, dicts, a DataFrame or a path"
    if not isinstance(source, Iterable):
        raise InputError(f"{expected}, got {type(source).__name__}")
    records = list(iterated(source, expected))
    if records and all(isinstance(record, Mapping) for record in records):
        return _table_cells(enumerate(records, 1), what, kind, ", row ")
    widths = list(map(_width, records))
    for record, width in zip(records, widths, strict=True):
        if width != 3 and (kind == "labels" or width != 2):
            raise InputError(f"{what}: expected {form}, got {record!r}")
        if width != widths[0]:
            raise InputError(f"{what}: query {record[0]!r} has {'no ' * (width == 2)}scores, unlike those before it")
    roles = ("query", "passage", "grade" if kind == "labels" else "score")
    columns = zip(*records, strict=True) if records else ((), (), ())
    return _Cells(dict(zip(roles, map(list, columns), strict=False)), what)


def _width(record: Any) -> int:
    """The number of values of a row; 0 for what is none."""
    try:
        return 0 if isinstance(record, (str, Mapping, Set)) else len(record)
    except TypeError:
        return 0


def _label_dict_cells(judgments: Mapping[Any, Any]) -> _Cells:
    """The cells of {query: {passage: grade}}; a list or set in place of a dict names the relevant passages."""
    cells: dict[str, list[Any]] = {"query": [], "passage": [], "grade": []}
    expected: list[bool] = []
    for query, judged in judgments.items():
        graded = isinstance(judged, Mapping)
        wrong = f"qrels of query {query!r}: expected {{passage: grade}} or a list of ids"
        if isinstance(judged, str):
            raise InputError(f"{wrong}, got {judged!r}")
        passages = list(judged if graded else iterated(judged, wrong))
        cells["query"] += [query] * len(passages)
        cells["passage"] += passages
        cells["grade"] += judged.values() if graded else [1] * len(passages)
        expected += [not graded] * len(passages)
    lists = counted(lists_as_labels=sum(not isinstance(judged, Mapping) for judged in judgments.values()))
    return _Cells(cells, "qrels", queries=judgments, expected=expected, remarks=lists)


def _run_dict_cells(lists: Mapping[Any, Any]) -> _Cells:
    """The cells of {query: [passage, …]}, {query: {passage: score}}, or {query: [(passage, score), …]}."""
    names = [query_text(query, "run") for query in lists]
    if len(set(names)) != len(names):
        raise InputError("run: two query ids are the same when written as text; make them different")
    cells: dict[str, list[Any]] = {"query": [], "passage": [], "score": []}
    for query, ranked in lists.items():
        refuse_set(ranked, f"run: query {query!r}")
        wrong = f"run: query {query!r}: expected a list of ids or {{passage: score}}"
        if isinstance(ranked, str):
            raise InputError(f"{wrong}, got {ranked!r}")
        plain = isinstance(ranked, dict)
        rows = list(ranked if plain else ranked.items() if isinstance(ranked, Mapping) else iterated(ranked, wrong))
        scored = bool(rows) and (plain or isinstance(rows[0], (tuple, list)))
        if rows and cells["query"] and scored != bool(cells["score"]):
            raise InputError(f"run: query {query!r} has {'' if scored else 'no '}scores, unlike those before it")
        cells["query"] += [query] * len(rows)
        if plain:
            cells["passage"] += rows
            cells["score"] += ranked.values()
            continue
        if scored:
            for pair in rows:
                if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                    raise InputError(f"run: query {query!r}: expected (passage, score) with a number, got {pair!r}")
            cells["score"] += [score for _, score in rows]
        cells["passage"] += [passage for passage, _ in rows] if scored else rows
    return _Cells({role: column for role, column in cells.items() if column or role != "score"}, "run", queries=names)


# -- columns of cells -------------------------------------------------------------------------------------


def _of_scan(found: Scan, kind: Kind) -> Columns:
    """The columns of a scan."""
    import polars as pl

    frame = pl.concat(found.rows())
    ids = [frame[role].to_list() for role in ("query", "passage")]
    if not len(frame):
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
    roles = ("score", "rank", "tokens")
    numbers: dict[str, Any] = {role: _numbers(cells, role) for role in roles if role in cells.columns}
    return _finished(replace(found, **numbers))


def _finished(found: Columns) -> Columns:
    """With the queries in order, and a remark on ranks that contradict the scores."""
    found = replace(found, queries=found.queries or tuple(dict.fromkeys(found.query)))
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
        if role != "rank" or "score" not in cells.columns:
            empty = (
                at for at, cell in enumerate(cells.columns[role]) if cell is None or (type(cell) is str and not cell)
            )
            missing += [(at, name) for at in islice(empty, 1)]
    for row, name in sorted(missing)[:1]:
        raise InputError(f"{cells.where(row)}: {name} is missing")


def _ids(cells: _Cells, role: str) -> list[str]:
    """A column of ids as texts."""
    column = cells.columns[role]
    types = set(map(type, column))
    if types <= {str, int}:
        texts = column if types <= {str} else list(map(str, column))
        text = "".join(texts)
        if all(texts) and "\0" not in text and not holds_half(text):
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
        if set(map(type, column)) == {str}:
            grade_of = {text: label_grade(text, "") for text in set(column)}
            return np.array(list(map(grade_of.__getitem__, column)), np.int64)
        return np.array([label_grade(cell, "") for cell in column], np.int64)
    except InputError:
        pairs = zip(column, cells.columns["query"], cells.columns["passage"], strict=True)
        for row, (cell, query, passage) in enumerate(pairs):
            label_grade(cell, f"{cells.where(row)}: query {query!r}, passage {passage!r}")
        raise


def _numbers(cells: _Cells, role: str) -> FloatArray | None:
    """A column of numbers that are not NaN; None for ranks of a table beside scores that are something else."""
    column = cells.columns[role]
    types = set(map(type, column))
    has_underscores = str in types and "_" in "".join(cell for cell in column if isinstance(cell, str))
    try:
        # In a third of the time.
        quick = column if types == {float} else map(number_of if has_underscores else float, column)
        numbers = np.fromiter(quick, np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array([number_or_nan(cell) for cell in column], np.float64)
    if role == "tokens":
        numbers[(numbers < 0) | np.isinf(numbers)] = np.nan
    wrong = np.flatnonzero(np.isnan(numbers))
    if not len(wrong):
        return numbers
    if role == "rank" and "score" in cells.columns and cells.names:
        return None
    where, cell = cells.where(int(wrong[0])), column[wrong[0]]
    if role == "tokens":
        raise InputError(f"{where}: {cell!r} is not a number of tokens; give a number ≥ 0")
    query, passage = (cells.columns[name][wrong[0]] for name in ("query", "passage"))
    raise InputError(f"{where}: query {query!r}, passage {passage!r}: the {role} {shown(cell)} is not a number")
