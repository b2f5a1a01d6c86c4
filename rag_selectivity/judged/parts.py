"""Runs of files and large frames in parts of whole lists, as a scan gives their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_selectivity.judged.run import Run, ScatteredQueries
from rag_selectivity.tables.columns import Columns, scanned
from rag_selectivity.tables.fast import Odd, Scan, ahead

if TYPE_CHECKING:
    import polars as pl

#: Of a run whose lists are scattered, about so many rows are given out at once.
_GIVEN = 1 << 18


def parts_of_scan(scan: Scan, exactly: Callable[[], Run]) -> Iterator[Run]:
    """The run of a scan in parts of whole lists. Memory holds one part, whatever the number of rows.

    Raises
    ------
    ScatteredQueries
        If the rows of a query do not stand together, or one is odd: `exactly` then reads the run as it is.
    """
    try:
        with ThreadPoolExecutor(1) as beside:
            yield from ahead(beside.submit, _whole_lists(scan))
    except Odd:
        raise ScatteredQueries(lambda: _grouped(scan, exactly)) from None


def _grouped(scan: Scan, exactly: Callable[[], Run]) -> Iterator[Run]:
    """The same run of rows that are scattered: all of them are held, and given out by lists."""
    columns = scanned(scan)
    if columns is None:
        yield exactly()
        return
    run = Run.from_columns(columns)
    del columns
    cuts = np.searchsorted(run.offsets, np.arange(0, len(run.query), _GIVEN))
    for start, stop in pairwise([*np.unique(cuts).tolist(), len(run)]):
        yield run.between(start, stop)


def _whole_lists(scan: Scan) -> Iterator[Run]:
    """The runs of batches of rows; the last list of a batch may go on in the next one.

    Raises
    ------
    Odd
        Also if the rows of a query do not stand together.
    """
    import polars as pl

    known: set[str] = set()
    begun: list[pl.DataFrame] = []
    for batch in chain(scan.rows(), [None]):
        rows = pl.concat([*begun, *([] if batch is None else [batch])])
        lists = rows["query"].rle().struct.unnest()
        whole = lists if batch is None else lists[:-1]
        queries, lengths = tuple(whole["value"].to_list()), whole["len"].to_numpy()
        count = len(known) + len(queries)
        known.update(queries)
        if len(known) < count:
            raise Odd
        end = int(lengths.sum())
        if end:
            query = np.repeat(np.arange(len(queries)), lengths)
            numbers: dict[str, Any] = {name: rows[name][:end].to_numpy() for name in rows.columns[2:]}
            # Only whether it is a file counts for a run.
            lines = None if scan.lines is None else np.empty(0, np.int64)
            passages: Any = rows["passage"][:end]
            yield Run.from_columns(Columns(queries, query, passages, lines=lines, **numbers))
        begun = [rows[end:]]
