"""Labels and runs of any source as columns."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.tables import exact
from rag_selectivity.tables.cells import RULES, id_fault, id_text, iterated, number_or_nan, shown
from rag_selectivity.tables.exact import Row
from rag_selectivity.tables.fast import Odd, Scan, scan
from rag_selectivity.tables.files import damage_first, is_large, is_path
from rag_selectivity.tables.ids import IntArray, numbered, refuse_set
from rag_selectivity.tables.names import Kind, columns_of, late_order

FloatArray = NDArray[np.float64]
#: What each kind of rows has besides a query and a passage.
_VALUE = {"labels": "grade", "run": "score"}
#: So many rows are checked at a time.
_ROWS = 1 << 16


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
        The line of each row in the file; None if it is no file. Of a run that was scanned, none.
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
        refuse_set(source, what)
        rows = exact.records(source, what, ("query", "passage", _VALUE[kind]), 3 if kind == "labels" else 2)
        return _of_rows(rows, what, kind, ", row ")
    path, name = Path(source), exact.kind_of(Path(source), format)
    if kind == "run" and (name in exact.STORES or name == "beir"):
        what = {"golden": "a golden set", "beir": "a folder"}.get(name, "a label store")
        raise InputError(f"{path} is {what} and holds no run; give the file of the run")
    if name == "beir":
        path, name = _beir_labels(path), "tsv"
    found = scan(path, kind, format=name) if is_large(path) else None
    if found is not None and (columns := scanned(found)) is not None:
        return replace(columns, passage=list(columns.passage), source=str(path))
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


def scanned(found: Scan) -> Columns | None:
    """The columns of a scan, whose passages are a Series of Polars; None of an odd one."""
    import polars as pl

    try:
        frame = pl.concat(found.rows())
    except Odd:
        return None
    names, passages = frame.drop_in_place("query"), frame.drop_in_place("passage").rechunk()
    queries = names.unique(maintain_order=True)
    query = names.cast(pl.Enum(queries)).to_physical().to_numpy().astype(np.int64)
    columns: dict[str, Any] = {"passage": passages, **{role: frame[role].to_numpy() for role in frame.columns}}
    # Of a run that is read, no line is named later.
    lines = np.arange(found.lines, found.lines + len(query)) if found.lines and "grade" in columns else None
    return Columns(tuple(queries.to_list()), query, lines=lines, **columns)


# -- cells, which are checked column by column ------------------------------------------------------------

_NUMBERS = (int, float, np.integer, np.floating, np.bool_)


def _ids(cells: list[Any], what: str, where: Callable[[int], str]) -> list[str]:
    """Cells as ids; an InputError that begins with `where` for the first that cannot be one."""
    types = set(map(type, cells))
    if types <= {str, int}:
        texts = cells if types <= {str} else list(map(str, cells))
        if all(texts) and id_fault("".join(texts) or "-") is None:
            return texts
    return [id_text(cell, where(row), what) for row, cell in enumerate(cells)]


def _numbers(cells: list[Any], role: str, where: Callable[[int], str], loose: bool) -> Any:
    """Cells as the numbers that they must be; NaN for another rank if the rule for ranks is `loose`."""
    try:
        are_numbers = all(issubclass(each, _NUMBERS) for each in set(map(type, cells)))
        numbers = np.array(cells if are_numbers else list(map(number_or_nan, cells)), np.float64)
    except OverflowError:
        numbers = np.array(list(map(number_or_nan, cells)))
    holds, rule = RULES[role]
    wrong = np.zeros(0, np.int64) if loose and role == "rank" else np.flatnonzero(~holds(numbers))
    if len(wrong):
        is_score = role == "grade" and float(numbers[wrong[0]]) % 1 > 0
        is_run = ": give whole grades (multiply all); if this is a run, the labels come first" if is_score else ""
        raise InputError(f"{where(wrong[0])}: the {role} {shown(cells[wrong[0]])} is {rule}{is_run}")
    return numbers.astype(np.int64) if role == "grade" else numbers


def _checked(cells: Mapping[str, list[Any]], where: Callable[[int], str], loose: bool = False) -> dict[str, Any]:
    """The columns of some rows: ids and numbers. `where` names a row's place, and its query if there are no such cells.

    Raises
    ------
    InputError
        For the first fault of a column.
    """
    found: dict[str, Any] = {}
    of_query = where
    if "query" in cells:
        found["query"] = queries = _ids(cells["query"], "query", where)
        of_query = lambda row: f"{where(row)}: query {queries[row]!r}"  # noqa: E731
    found["passage"] = passages = _ids(cells["passage"], "passage", of_query)
    of_pair = lambda row: f"{of_query(row)}, passage {passages[row]!r}"  # noqa: E731
    return found | {role: _numbers(cells[role], role, of_pair, loose) for role in RULES if role in cells}


# -- rows -------------------------------------------------------------------------------------------------


def _of_rows(rows: Iterator[tuple[Any, Row]], source: str, kind: Kind, before: str) -> Columns:
    """The columns of (place, row), the first of which has the names of all.

    Messages call a place by `source`, `before`, and its own: `run.trec`, `:`, and the number of the line.
    """
    first = list(islice(rows, 1))
    if not first and before == ":":
        raise InputError(f"{source}: the {'file of labels' if kind == 'labels' else 'run file'} is empty")
    names = columns_of([*first[0][1]], kind, source) if first else {}
    # What a table calls rank beside scores may be anything.
    loose = "score" in names and "Q0" not in first[0][1]

    # Some rows alone would be in the order of their scores.
    late = {*late_order(names, kind)}.difference(*(row for _, row in first))

    def columns(batch: list[tuple[Any, Row]]) -> dict[str, Any]:
        if late and (keys := late.intersection(chain.from_iterable(row for _, row in batch))):
            place = f"{source}{before}{batch[0][0]}"
            raise InputError(f"{place}: the first row has no {keys.pop()!r}, and this one has: give it in all rows")
        cells = {role: [row.get(name) for _, row in batch] for role, name in names.items()}
        return _checked(cells, lambda row: f"{source}{before}{batch[row][0]}", loose)

    rows = chain(first, rows)
    lines: list[Any] = []
    parts: list[dict[str, Any]] = []
    while batch := list(islice(rows, _ROWS)):
        try:
            parts.append(columns(batch))
        except InputError:
            for row in batch:
                columns([row])  # so that the first row with a fault is named
            raise
        lines += [line for line, _ in batch]
    roles = [role for role in RULES if role in names] or ["grade"] * (kind == "labels")
    queries, query = numbered(chain.from_iterable(part["query"] for part in parts))
    return Columns(
        tuple(queries),
        query,
        [passage for part in parts for passage in part["passage"]],
        source=source,
        lines=np.array(lines, np.int64) if before == ":" else None,
        **{role: np.concatenate([np.zeros(0, np.int64), *(part[role] for part in parts)]) for role in roles},
    )


# -- dicts ------------------------------------------------------------------------------------------------


def _of_dict(lists: Mapping[Any, Any], what: str, kind: Kind) -> Columns:
    """The columns of {query: {passage: grade or score}}, {query: [passage, …]}, or {query: [(passage, score), …]}."""
    passages: list[Any] = []
    values: list[Any] = []
    counts: list[int] = []
    without: list[bool] = []
    forms: set[bool] = set()
    for query, row in lists.items():
        some, of_some = _list_of(row, kind, f"{what}{' of' if kind == 'labels' else ':'} query {query!r}")
        passages += some
        values += [1] * len(some) if of_some is None else of_some
        counts.append(len(some))
        without.append(of_some is None)
        if some:
            forms.add(without[-1])
        if kind == "run" and len(forms) > 1:
            some_have = "no " if without[-1] else ""
            raise InputError(f"run: query {query!r} has {some_have}scores, unlike those before it")
    ids = _ids(list(lists), "query", lambda row: what)
    queries, place = numbered(ids)
    if len(queries) < len(ids) and kind == "run":
        raise InputError("run: two query ids are the same when written as text; make them different")
    query = np.repeat(place, counts)
    cells = {"passage": passages} | ({_VALUE[kind]: values} if kind == "labels" or False in forms else {})
    expected = np.repeat(without, counts) if kind == "labels" and True in forms else None
    found = _checked(cells, lambda row: f"{what}: query {queries[query[row]]!r}")
    return Columns(tuple(queries), query, source=what, expected=expected, **found)


def _list_of(row: Any, kind: Kind, where: str) -> tuple[Collection[Any], Collection[Any] | None]:
    """The passages of a query, and their grades or scores if they have some."""
    if isinstance(row, Mapping):
        return row, row.values()
    form = "{passage: grade} or a list of ids" if kind == "labels" else "a list of ids or {passage: score}"
    if isinstance(row, str):
        raise InputError(f"{where}: expected {form}, got {row!r}")
    if kind == "run":
        refuse_set(row, where)
    items = list(iterated(row, f"{where}: expected {form}"))
    if kind == "labels" or not any(issubclass(each, (tuple, list)) for each in set(map(type, items))):
        return items, None
    odd = [each for each in items if not isinstance(each, (tuple, list)) or len(each) != 2]
    if odd:
        raise InputError(f"{where}: expected (passage, score) with a number, got {odd[0]!r}")
    return [passage for passage, _ in items], [score for _, score in items]
