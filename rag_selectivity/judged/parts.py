"""Runs of files and large frames in parts of whole lists, as a scan gives their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rag_selectivity.judged.run import Run, ScatteredQueries, grouped
from rag_selectivity.tables.fast import Odd, Scan

if TYPE_CHECKING:
    import polars as pl

_ROWS = 100_000
#: Of a run whose lists are scattered, so many rows are grouped at a time.
_GROUPED_ROWS = 10_000_000


def parts_of_scan(scan: Scan, exactly: Callable[[], Run]) -> Iterator[Run]:
    """The run of a scan in parts of whole lists. Memory holds one part, whatever the number of rows.

    Raises
    ------
    ScatteredQueries
        If the rows of a query do not stand together, or one is odd: `exactly` then reads the run as it is.
    """
    known: set[str] = set()
    try:
        for part in _whole_lists(scan):
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

    count, kept = 0, list[pl.DataFrame]()
    try:
        # Before a list is given out, all rows are seen.
        for batch in scan.rows():
            count += batch.height
            kept = [*kept, batch] if count <= _GROUPED_ROWS else []
    except Odd:
        yield exactly()
        return
    turns = -(-count // _GROUPED_ROWS)
    for turn in range(turns):
        some = (batch.filter(pl.col("query").hash() % turns == turn) for batch in scan.rows())
        held = pl.concat(kept or some).with_columns(pl.col("query").cast(pl.Categorical))
        kept = []
        codes = held["query"].to_physical().to_numpy()
        order = grouped(codes)
        new = np.append(True, np.diff(codes[order]) != 0)[: len(order)]
        starts = np.flatnonzero(new)
        # A part begins with the first list after each so many rows.
        firsts = np.searchsorted(starts, np.arange(0, len(order), _ROWS))
        cuts = starts[np.unique(firsts[firsts < len(starts)])]
        for start, stop in pairwise([*cuts.tolist(), len(order)]):
            rows = held[order[start:stop]].with_columns(pl.col("query").cast(pl.String), new=pl.Series(new[start:stop]))
            yield _run(rows, scan)


def _whole_lists(scan: Scan) -> Iterator[Run]:
    """The runs of batches of rows; the last list of a batch may go on in the next one."""
    import polars as pl

    begun: list[pl.DataFrame] = []
    last = None
    for batch in scan.rows():
        if not batch.height:
            continue
        rows = batch.with_columns(new=pl.col("query").ne_missing(pl.col("query").shift(fill_value=last)))
        last = batch["query"][-1]
        starts = np.flatnonzero(rows["new"].to_numpy())
        if len(starts):
            end = int(starts[-1])
            if begun or end:
                yield _run(pl.concat([*begun, rows[:end]]), scan)
            begun = []
            rows = rows[end:]
        begun.append(rows)
    if begun:
        yield _run(pl.concat(begun), scan)


def _run(rows: pl.DataFrame, scan: Scan) -> Run:
    """The run of rows whose lists stand whole."""
    new = rows["new"].to_numpy()
    queries = rows["query"].gather(np.flatnonzero(new)).to_list()
    numbers = {name: rows[name].to_numpy() for name in ("score", "rank", "tokens") if name in rows.columns}
    return Run.of_rows(queries, np.cumsum(new) - 1, rows["passage"].to_list(), numbers, scan.lines is not None)
