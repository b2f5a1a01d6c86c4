"""Runs of files and large frames in parts of whole lists, as a scan gives their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_selectivity.judged.run import Run, ScatteredQueries
from rag_selectivity.tables.columns import Columns
from rag_selectivity.tables.fast import Odd, Scan, ahead
from rag_selectivity.tables.ids import IntArray

if TYPE_CHECKING:
    import polars as pl

#: Of a run whose lists are scattered, so many rows are held at a time, and about so many are given out at once.
_HELD, _GIVEN = 10_000_000, 1 << 18


def parts_of_scan(scan: Scan, exactly: Callable[[], Run]) -> Iterator[Run]:
    """The run of a scan in parts of whole lists. Memory holds one part, whatever the number of rows.

    Raises
    ------
    ScatteredQueries
        If the rows of a query do not stand together, or one is odd: `exactly` then reads the run as it is.
    """
    known: set[str] = set()
    try:
        with ThreadPoolExecutor(1) as beside:
            for part in ahead(beside.submit, _whole_lists(scan)):
                if len(set(part.queries)) < len(part) or not known.isdisjoint(part.queries):
                    raise ScatteredQueries(lambda: _grouped(scan, exactly))
                known.update(part.queries)
                yield part
    except Odd:
        raise ScatteredQueries(lambda: iter([exactly()])) from None
    if not known:
        yield exactly()


def _grouped(scan: Scan, exactly: Callable[[], Run]) -> Iterator[Run]:
    """The same run of rows that are scattered: the rows of some of the queries are held, and taken list by list."""
    import polars as pl

    held: list[pl.DataFrame] = []
    count = 0
    try:
        # Before a list is given out, all rows are seen.
        for batch in scan.rows():
            held.append(batch)
            count += batch.height
            if count > _HELD:
                held.clear()
    except Odd:
        yield exactly()
        return
    turns = -(-count // _HELD)
    for turn in range(turns):
        batches = (batch.filter(pl.col("query").hash() % turns == turn) for batch in scan.rows())
        rows = pl.concat(held if turns == 1 else batches)
        held.clear()
        queries = rows["query"].unique(maintain_order=True)
        code = rows["query"].cast(pl.Enum(queries)).to_physical().to_numpy()
        rows = rows.drop("query")
        # Column by column, each of which is let go of in turn.
        rows = pl.DataFrame([rows.drop_in_place(name).rechunk() for name in rows.columns])
        order = np.argsort(code, kind="stable")
        ends = np.searchsorted(code[order], np.arange(len(queries)), "right")
        lengths = np.diff(ends, prepend=0)
        cuts = np.searchsorted(ends, np.arange(0, len(order) + _GIVEN, _GIVEN))
        for start, stop in pairwise(np.unique(np.append(cuts, len(ends))).tolist()):
            lists = rows[order[ends[start] - lengths[start] : ends[stop - 1]]]
            yield _run(queries[start:stop].to_list(), lengths[start:stop], lists, scan)


def _whole_lists(scan: Scan) -> Iterator[Run]:
    """The runs of batches of rows; the last list of a batch may go on in the next one."""
    import polars as pl

    begun: list[pl.DataFrame] = []
    for batch in chain(scan.rows(), [None]):
        rows = pl.concat([*begun, *([] if batch is None else [batch])])
        query = rows["query"]
        starts = np.flatnonzero(query.ne_missing(query.shift()).to_numpy())
        lengths = np.diff(starts, append=rows.height)
        whole = len(starts) - (batch is not None)
        end = int(lengths[:whole].sum())
        if whole:
            yield _run(query.gather(starts[:whole]).to_list(), lengths[:whole], rows[:end], scan)
        begun = [rows[end:]]


def _run(queries: list[str], lengths: IntArray, rows: pl.DataFrame, scan: Scan) -> Run:
    """The run of rows whose lists stand whole, one after the other."""
    query = np.repeat(np.arange(len(queries)), lengths)
    numbers: dict[str, Any] = {name: rows[name].to_numpy() for name in ("score", "rank", "tokens") if name in rows}
    passages: Any = rows["passage"]
    # Only whether it is a file counts for a run.
    lines = None if scan.lines is None else np.empty(0, np.int64)
    return Run.from_columns(Columns(tuple(queries), query, passages, lines=lines, **numbers))
