"""Intervals of slices of queries, from the resamples of all queries.

A resample draws queries from all of them. Of each slice it holds those of its queries that were drawn, as a measure
that is undefined for some queries has those that are defined. So all slices, and the whole, have the same resamples,
and their number costs little: the queries of a cell, which are in the same slices, are summed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.inference.bootstrap import Bootstrap, Columns, Ends, blocks_of, estimand_of
from rag_selectivity.inference.draws import resample_counts
from rag_selectivity.inference.interval_methods import of_success_rate
from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.tables.ids import IntArray

#: Sums that are held at once, over all slices and columns, for each resample.
_SUMS_AT_ONCE, _DEPTHS_AT_ONCE = 1536, 16
#: Figures of all queries in some of the slices.
_CELLS_AT_ONCE = 1 << 22
#: Slicings whose cells together hold fewer queries each than this are summed in two halves.
_FEWEST_IN_A_CELL = 100


def slice_intervals(
    bootstrap: Bootstrap, outcomes: Sequence[Outcome], queries: Sequence[str], slicings: Sequence[IntArray]
) -> list[list[list[Ends]]]:
    """Low and high of each outcome in each slice of each slicing: `result[slicing][slice][outcome]`.

    Parameters
    ----------
    bootstrap : Bootstrap
    outcomes : sequence of Outcome
        Over the same queries.
    queries : sequence of str
    slicings : sequence of int64[queries]
        The number of each query's slice.
    """
    units, tail = bootstrap.units(queries), (1 - bootstrap.level) / 2
    numbers = np.arange(len(queries)) if units is None else units
    slices = [
        (i, place, places == place)
        for i, places in enumerate(slicings)
        for place in range(int(places.max(initial=-1)) + 1)
    ]
    ends: list[list[list[FloatArray]]] = [[[] for _ in outcomes] for _ in slices]
    waiting: list[tuple[int, Outcome, list[list[int]]]] = []
    columns = Columns()

    def settle() -> None:
        """The intervals of the pieces that wait, from the resampled sums of their columns."""
        sums = _resampled_sums(bootstrap, columns.matrix(), numbers, slicings)
        for number, piece, places in waiting:
            width = piece.parts[0].shape[1]
            at_once = max(1, _CELLS_AT_ONCE // max(1, len(queries) * width))
            for start in range(0, len(slices), at_once):
                some = slices[start : start + at_once]
                # A slice is all queries, of which the others are undefined.
                beside = Outcome.beside([_within(piece, inside) for _, _, inside in some])
                estimand = estimand_of(beside, units)
                *tops, mask = (np.vstack([sums[i][place][:, each].T for i, place, _ in some]) for each in places)
                with np.errstate(invalid="ignore", divide="ignore"):
                    resampled = estimand.statistic(*(top / mask for top in tops))
                exact = of_success_rate(beside, tail) if units is None else None
                found = bootstrap.ends_of(beside, estimand, resampled, exact)
                for k, of_slice in enumerate(ends[start : start + at_once]):
                    of_slice[number].append(found[:, k * width : (k + 1) * width])

    for number, outcome in enumerate(outcomes):
        for start in range(0, max(1, outcome.parts[0].shape[1]), _DEPTHS_AT_ONCE):
            piece = outcome.at(slice(start, start + _DEPTHS_AT_ONCE))
            waiting.append((number, piece, [columns.add(block) for block in blocks_of(piece)]))
            if len(columns) * len(slices) >= _SUMS_AT_ONCE:
                settle()
                waiting, columns = [], Columns()
    if waiting:
        settle()
    found: list[list[list[Ends]]] = [[] for _ in slicings]
    for (i, _, _), of_slice in zip(slices, ends, strict=True):
        found[i].append([(low, high) for low, high in (np.concatenate(pieces, axis=1) for pieces in of_slice)])
    return found


def _within(outcome: Outcome, inside: NDArray[np.bool_]) -> Outcome:
    """The outcome with the queries outside undefined."""
    return replace(outcome, parts=tuple(np.where(inside[:, None], part, np.nan) for part in outcome.parts))


def _resampled_sums(
    bootstrap: Bootstrap, matrix: FloatArray, units: IntArray, slicings: Sequence[IntArray]
) -> list[FloatArray]:
    """Column sums of each slice under each resample: float64[slices, resamples, columns] for each slicing.

    `units` holds the number of each row's unit, of which a resample draws some.
    """
    together = np.unique(np.stack(slicings), axis=1, return_inverse=True)
    if len(slicings) > 1 and together[0].shape[1] * _FEWEST_IN_A_CELL > len(matrix):
        half = len(slicings) // 2
        halves = (_resampled_sums(bootstrap, matrix, units, some) for some in (slicings[:half], slicings[half:]))
        return [sums for some in halves for sums in some]
    keys, cell = together[0], together[1].reshape(-1)
    order = np.argsort(cell, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=keys.shape[1])).tolist()
    cells = [(slice(low, high), matrix[order[low:high]]) for low, high in zip([0, *ends], ends, strict=False)]
    members = [np.arange(int(key.max(initial=-1)) + 1)[:, None] == key for key in keys]
    sums = [np.empty((len(member), bootstrap.resamples, matrix.shape[1])) for member in members]
    start = 0
    for counts in resample_counts(bootstrap.seed, bootstrap.resamples, int(units.max(initial=-1)) + 1, units[order]):
        of_cells = np.stack([counts[:, rows] @ block for rows, block in cells])
        for of_slicing, member in zip(sums, members, strict=True):
            of_slicing[:, start : start + len(counts)] = np.tensordot(member.astype(np.float64), of_cells, axes=1)
        start += len(counts)
    return sums
