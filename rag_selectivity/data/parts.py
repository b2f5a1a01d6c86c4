"""Runs in parts over different queries, from rows that come block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rag_selectivity.data.arrow import IrregularCells
from rag_selectivity.data.columns import as_frame, column_names, run_columns
from rag_selectivity.data.frames import run_blocks
from rag_selectivity.data.remarks import NO_REMARKS
from rag_selectivity.data.rows import RankCheck, RunRows
from rag_selectivity.data.run import Run, ScatteredQueries

# Lists of scattered queries are given out in parts of about so many rows.
_REGROUPED_ROWS = 1 << 18


def parts_of_frame(frame: Any) -> Iterator[Run]:
    """The run of a frame in parts over different queries, so that it need not be held twice."""
    frame = as_frame(frame, "run frame")
    columns = run_columns(column_names(frame), "run frame")
    return parts(lambda: run_blocks(frame, columns), lambda: iter([Run.from_dataframe(frame)]), _with_ranks(columns))


def parts(
    blocks: Callable[[], Iterable[RunRows]], cell_by_cell: Callable[[], Iterable[Run]], with_ranks: bool
) -> Iterator[Run]:
    """The runs of blocks of rows, or of all cells read one by one, which says what is wrong with which.

    Parameters
    ----------
    blocks : callable
        Gives the rows in blocks, from the first one each time; raises IrregularCells.
    cell_by_cell : callable
        Gives the same run otherwise.
    with_ranks : bool
        Whether the rows have ranks beside their scores.

    Raises
    ------
    ScatteredQueries
        If the rows of a query do not stand together, or irregular cells come after parts were given out.
    """

    def again() -> Iterator[Run]:
        try:
            yield from regrouped(blocks(), with_ranks)
        except IrregularCells:
            yield from cell_by_cell()

    given = False
    try:
        for part in _grouped_parts(blocks(), again, with_ranks):
            given = True
            yield part
    except IrregularCells:
        if given:
            raise ScatteredQueries(lambda: iter(cell_by_cell())) from None
        yield from cell_by_cell()


def _with_ranks(columns: Mapping[str, str]) -> bool:
    return "score" in columns and "rank" in columns


def _grouped_parts(blocks: Iterable[RunRows], again: Callable[[], Iterator[Run]], with_ranks: bool) -> Iterator[Run]:
    """The runs of rows that are grouped by query; the remarks stand at the last part.

    Without scores, ranks order the rows of a list.
    """
    known: set[str] = set()
    pending: list[RunRows] = []
    check = RankCheck()
    for block in blocks:
        if not len(block):
            continue
        starts = block.starts()
        queries = [block.names[code] for code in block.codes[starts].tolist()]
        goes_on = bool(pending) and pending[-1].names[pending[-1].codes[-1]] == queries[0]
        new = queries[goes_on:]
        if len(set(queries)) < len(queries) or not known.isdisjoint(new):
            raise ScatteredQueries(again)
        known.update(new)
        if with_ranks:
            check.add(block)
        if goes_on:
            end = int(starts[1]) if new else len(block)
            pending.append(block.between(0, end).compact())
            block = block.between(end, len(block))
        if new:
            if pending:
                yield _grouped(pending)
            pending = [block]
    if pending:
        last = _grouped(pending)
        last.remarks = check.remarks()
        yield last


def regrouped(blocks: Iterable[RunRows], with_ranks: bool) -> Iterator[Run]:
    """The runs of rows in any order, in parts over different queries; the remarks stand at the first part."""
    check = RankCheck()
    kept = []
    for block in blocks:
        if with_ranks:
            check.add(block)
        kept.append(block.compact())
    rows = RunRows.concatenate(kept)
    kept.clear()
    # A stable sort of 16-bit numbers is a radix sort.
    order = np.argsort(rows.codes.astype(np.uint16) if len(rows.names) <= 1 << 16 else rows.codes, kind="stable")
    lengths = np.bincount(rows.codes, minlength=len(rows.names))
    ends = np.cumsum(lengths)
    first = 0
    while first < len(rows.names):
        base = int(ends[first] - lengths[first])
        last = max(first + 1, int(np.searchsorted(ends, base + _REGROUPED_ROWS, "right")))
        part = _grouped([rows.take(order[base : int(ends[last - 1])])])
        if not first:
            part.remarks = check.remarks()
        yield part
        first = last


def _grouped(blocks: Sequence[RunRows]) -> Run:
    """The run of rows whose queries stand together."""
    rows = RunRows.concatenate(blocks)
    starts = rows.starts()
    if rows.scores is None and rows.ranks is not None:
        list_of = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
        rows = rows.take(np.lexsort((rows.ranks, list_of)))
    queries = [rows.names[code] for code in rows.codes[starts].tolist()]
    return Run(queries, np.append(starts, len(rows)), rows.passages, rows.scores, rows.tokens, NO_REMARKS)
