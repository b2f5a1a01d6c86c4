"""Runs of files and large frames in parts of whole lists, as a scan gives their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_selectivity.judged.run import Run, ScatteredQueries
from rag_selectivity.tables.columns import Columns
from rag_selectivity.tables.fast import Odd, Scan

if TYPE_CHECKING:
    import polars as pl

#: Of a run whose lists are scattered, so many rows are held at a time, and given out in so many parts.
_HELD, _PARTS = 10_000_000, 32


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
        part = pl.col("query").hash() % (_PARTS * turns)
        batches = (batch.with_columns(part=part) for batch in (held if turns == 1 else scan.rows()))
        rows = pl.concat(batch.filter(pl.col("part") // _PARTS == turn) for batch in batches)
        held.clear()
        for each in rows["part"].unique():
            lists = rows.filter(pl.col("part") == each).sort("query", maintain_order=True)
            yield _run(lists.with_columns(new=pl.col("query").ne_missing(pl.col("query").shift())), scan)


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
    queries = tuple(rows["query"].gather(np.flatnonzero(new)).to_list())
    numbers: dict[str, Any] = {name: rows[name].to_numpy() for name in ("score", "rank", "tokens") if name in rows}
    passages: Any = rows["passage"]
    # Only whether it is a file counts for a run.
    lines = None if scan.lines is None else np.empty(0, np.int64)
    return Run.from_columns(Columns(queries, np.cumsum(new) - 1, passages, lines=lines, **numbers))
