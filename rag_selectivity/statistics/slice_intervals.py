"""Intervals of slices of queries, from the resamples of all queries.

A resample draws queries from all of them. Of each slice it holds those of its queries that were drawn, as a measure
that is undefined for some queries has those that are defined. So all slices, and the whole, have the same resamples,
and their number costs little: the queries of a cell, which are in the same slices, are summed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.statistics.bootstrap import DEPTHS_AT_ONCE, Bootstrap, Columns, blocks_of, estimand_of
from rag_selectivity.statistics.draws import resample_counts
from rag_selectivity.statistics.interval_methods import of_success_rate
from rag_selectivity.tables.ids import IntArray

#: Sums that are held at once, over all slices and columns, for each resample.
_SUMS_AT_ONCE = 1536
#: Groups of queries with more cells than this are summed one by one.
_MOST_CELLS = 512
#: A column of more different values is summed as it is.
_FEW_VALUES = 16
#: The multiplications of a product of matrices that BLAS makes in one thread, half of them: more threads would share
#: larger products, and on a busy machine they wait for each other for longer than the products take.
_SMALL_PRODUCT = 1 << 17

#: Low and high of an outcome, float64[depths] each.
Ends = tuple[FloatArray, FloatArray]


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
    units = bootstrap.units(queries)
    numbers = np.arange(len(queries)) if units is None else units
    slices = [
        _Slice(i, place, rows, None if units is None else np.unique(units[rows], return_inverse=True)[1])
        for i, places in enumerate(slicings)
        for place in range(int(places.max(initial=-1)) + 1)
        for rows in [np.flatnonzero(places == place)]
    ]
    found: list[list[list[list[FloatArray]]]] = [
        [[[] for _ in outcomes] for _ in range(int(places.max(initial=-1)) + 1)] for places in slicings
    ]
    for batch, columns in _batches(bootstrap, outcomes, slices, alone=units is None):
        sums: list[FloatArray] = []
        if columns is not None:
            sums = _resampled_sums(bootstrap, columns.matrix(), numbers, slicings)
        for piece in batch:
            for own, outcome, exact in zip(slices, piece.outcomes, piece.exact, strict=True):
                estimand = estimand_of(outcome, own.units)
                resampled = None
                if piece.places and _open(outcome, exact):
                    *parts, mask = (sums[own.slicing][own.place][:, place].T for place in piece.places)
                    with np.errstate(invalid="ignore", divide="ignore"):
                        resampled = estimand.statistic(*(part / mask for part in parts))
                ends = bootstrap.ends_of(outcome, estimand, resampled, exact)
                found[own.slicing][own.place][piece.number].append(ends)
    return [[[_joined(pieces) for pieces in of_slice] for of_slice in of_slicing] for of_slicing in found]


@dataclass(frozen=True, slots=True)
class _Slice:
    """A slice: its place among those of its slicing, its rows, and the numbers of their clusters in it."""

    slicing: int
    place: int
    rows: IntArray
    units: IntArray | None

    def of(self, outcome: Outcome) -> Outcome:
        return outcome.over(self.rows)


@dataclass(frozen=True, slots=True)
class _Piece:
    """An outcome at a few depths: its number, its part in each slice, the bounds there that need no resamples, and the
    places of its columns.

    There are no places if no slice needs resamples.
    """

    number: int
    outcomes: list[Outcome]
    exact: list[FloatArray | None]
    places: list[list[int]]


def _batches(
    bootstrap: Bootstrap, outcomes: Sequence[Outcome], slices: Sequence[_Slice], *, alone: bool
) -> Iterator[tuple[list[_Piece], Columns | None]]:
    """The pieces of all outcomes, with as many columns at once as sums of all slices can be held of."""
    tail = (1 - bootstrap.level) / 2
    batch: list[_Piece] = []
    columns = Columns()
    for number, outcome in enumerate(outcomes):
        for start in range(0, max(1, outcome.parts[0].shape[1]), DEPTHS_AT_ONCE):
            part = outcome.at(slice(start, start + DEPTHS_AT_ONCE))
            some = [own.of(part) for own in slices]
            exact = [of_success_rate(each, tail) if alone else None for each in some]
            places: list[list[int]] = []
            if any(_open(each, ends) for each, ends in zip(some, exact, strict=True)):
                places = [columns.add(block) for block in blocks_of(part)]
            batch.append(_Piece(number, some, exact, places))
            if len(columns) * len(slices) >= _SUMS_AT_ONCE:
                yield batch, columns
                batch, columns = [], Columns()
    if batch:
        yield batch, columns if len(columns) else None


def _open(outcome: Outcome, exact: FloatArray | None) -> bool:
    """Whether a figure of two queries or more has no bounds without resamples."""
    undecided = ~outcome.without_spread() if exact is None else np.isnan(exact).any(axis=0) & ~outcome.without_spread()
    return bool((undecided & (outcome.defined.sum(axis=0) > 1)).any())


def _joined(pieces: Sequence[FloatArray]) -> Ends:
    low, high = np.concatenate(pieces, axis=1)
    return low, high


def _resampled_sums(
    bootstrap: Bootstrap, matrix: FloatArray, units: IntArray, slicings: Sequence[IntArray]
) -> list[FloatArray]:
    """Column sums of each slice under each resample: float64[slices, resamples, columns] for each slicing.

    `units` holds the number of each row's unit, of which a resample draws some.
    """
    shape = (bootstrap.resamples, matrix.shape[1])
    sums = [np.empty((int(places.max(initial=-1)) + 1, *shape)) for places in slicings]
    drawn_from = int(units.max(initial=-1)) + 1
    basis, shares = _factored(matrix)
    for some in _grouped(slicings):
        cells, start = _Cells.of(some, slicings, units, basis, shares), 0
        for counts in resample_counts(bootstrap.seed, bootstrap.resamples, drawn_from, cells.units):
            stop = start + len(counts)
            cells.add(counts, sums, slice(start, stop))
            start = stop
    return sums


def _factored(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fewer columns of which all are sums: float64[rows, n], and their shares in each column, float64[n, columns].

    A column of few different values is made of columns of zeros and ones, one for each value. Columns that tell the
    same rows apart share these: the random baseline at every depth tells queries apart by their relevant passages.
    """
    places: dict[bytes, int] = {}
    columns: list[FloatArray] = []
    entries: list[tuple[int, int, float]] = []

    def place_of(column: FloatArray) -> int:
        key = blake2b(np.ascontiguousarray(column).tobytes(), digest_size=16).digest()
        if key not in places:
            places[key] = len(columns)
            columns.append(column)
        return places[key]

    for number, column in enumerate(matrix.T):
        # Most columns of many values show it in their first rows; these, and zeros and ones, need not be sorted.
        if len(set(column[: 4 * _FEW_VALUES].tolist())) > _FEW_VALUES or ((column == 0) | (column == 1)).all():
            values, group = np.ones(1), None
        else:
            values, group = np.unique(column, return_inverse=True)
        if group is None or len(values) > _FEW_VALUES:
            entries.append((place_of(column), number, 1.0))
            continue
        for i, value in enumerate(values.tolist()):
            if value:
                entries.append((place_of((group == i).astype(np.float64)), number, value))
    shares = np.zeros((len(columns), matrix.shape[1]))
    for place, number, share in entries:
        shares[place, number] = share
    if len(columns) >= matrix.shape[1]:
        return matrix, np.eye(matrix.shape[1])
    return np.stack(columns, axis=1) if columns else np.empty((len(matrix), 0)), shares


def _grouped(slicings: Sequence[IntArray]) -> list[list[int]]:
    """Slicings that are summed together: as long as together they make few cells."""
    groups: list[list[int]] = []
    cells = np.zeros(0, np.int64)
    for i, places in enumerate(slicings):
        if groups:
            joint = np.unique(np.stack([cells, places]), axis=1, return_inverse=True)[1].reshape(-1)
            if joint.max(initial=-1) < _MOST_CELLS:
                groups[-1].append(i)
                cells = joint
                continue
        groups.append([i])
        cells = places
    return groups


@dataclass(frozen=True, slots=True)
class _Cells:
    """The rows of some slicings, sorted by cell: rows of a cell are in the same slice of each slicing.

    `units` are the units of the rows, `blocks` the rows of each cell and their values. `members` has a row for each
    slice of the slicings, 1 for the cells that it holds. `shares` makes the columns of the matrix of those of the
    blocks.
    """

    slicings: list[int]
    units: IntArray
    blocks: list[tuple[slice, FloatArray]]
    members: FloatArray
    shares: FloatArray

    @classmethod
    def of(
        cls, some: list[int], slicings: Sequence[IntArray], units: IntArray, matrix: FloatArray, shares: FloatArray
    ) -> _Cells:
        keys, cell = np.unique(np.stack([slicings[i] for i in some]), axis=1, return_inverse=True)
        order = np.argsort(cell.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(cell.reshape(-1), minlength=keys.shape[1])).tolist()
        sliced = [slice(low, high) for low, high in zip([0, *ends], ends, strict=False)]
        blocks = [(rows, matrix[order[rows]]) for rows in sliced]
        members = [
            np.arange(int(slicings[i].max(initial=-1)) + 1)[:, None] == of_slicing
            for i, of_slicing in zip(some, keys, strict=True)
        ]
        return cls(some, units[order], blocks, np.concatenate(members).astype(np.float64), shares)

    def add(self, counts: FloatArray, sums: Sequence[FloatArray], resamples: slice) -> None:
        """Write the sums of some resamples; the columns of `counts` are the rows."""
        shape = len(counts), len(self.shares)
        of_cells = np.empty((len(self.blocks), *shape))
        height = max(1, 2 * _SMALL_PRODUCT // max(1, shape[0] * shape[1]))
        for i, (rows, block) in enumerate(self.blocks):
            drawn = counts[:, rows]
            np.matmul(drawn[:, :height], block[:height], out=of_cells[i])
            for start in range(height, len(block), height):
                of_cells[i] += drawn[:, start : start + height] @ block[start : start + height]
        flat = of_cells.reshape(len(of_cells), -1)
        of_slices = np.empty((len(self.members), flat.shape[1]))
        width = max(1, _SMALL_PRODUCT // max(1, self.members.size))
        for start in range(0, flat.shape[1], width):
            columns = slice(start, start + width)
            np.matmul(self.members, flat[:, columns], out=of_slices[:, columns])
        first = 0
        for i in self.slicings:
            for place in range(len(sums[i])):
                np.matmul(of_slices[first + place].reshape(shape), self.shares, out=sums[i][place, resamples])
            first += len(sums[i])
