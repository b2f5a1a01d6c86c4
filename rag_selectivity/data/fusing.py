"""Reciprocal rank fusion: one list for each query from the lists of several runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IdColumn, IntArray, mix
from rag_selectivity.errors import InputError

Floats = NDArray[np.float64]

#: Rows of all runs that are fused at a time: so few stay in the processor's cache.
_ROWS_AT_ONCE = 1 << 16
_QUERIES_AT_ONCE = 1 << 15


class Lists(NamedTuple):
    """The lists of one run in rank order; list i is rows `offsets[i]:offsets[i + 1]`."""

    queries: Sequence[str]
    offsets: IntArray
    passages: IdColumn


class Fused(NamedTuple):
    """Fused lists, best first; the list of query i is rows `offsets[i]:offsets[i + 1]`."""

    queries: tuple[str, ...]
    offsets: IntArray
    passages: IdColumn
    scores: Floats


def fuse(runs: Sequence[Lists], k: int) -> Fused:
    """The lists of all runs fused: each passage has the score Σ 1/(k + rank) over the runs that list it.

    The sums are exact and rounded to float64 once, so that equal sums are equal scores whatever they are made of.
    Equal scores are ordered by descending passage id. Of a passage that a list holds twice, the first rank counts.
    Queries come in the order in which the runs name them.
    """
    queries = tuple(dict.fromkeys(query for run in runs for query in run.queries))
    places = _places(queries, runs)
    column = IdColumn.side_by_side([run.passages for run in runs])
    first_rows = np.cumsum([0] + [len(run.passages) for run in runs])
    terms = _Terms(k, max((int(np.diff(run.offsets).max(initial=0)) for run in runs), default=0))
    rows, scores, lengths = [], [], []
    for some in _blocks(runs, places):
        block = _Block.of(runs, places[:, some], first_rows, column)
        of_block, block_scores, counts = block.fused(terms)
        rows.append(of_block)
        scores.append(block_scores)
        lengths.append(counts)
    offsets = np.append(0, np.cumsum(np.concatenate(lengths or [np.empty(0, np.int64)])))
    chosen = np.concatenate(rows or [np.empty(0, np.int64)])
    return Fused(queries, offsets, column.take(chosen), np.concatenate(scores or [np.empty(0)]))


def _places(queries: tuple[str, ...], runs: Sequence[Lists]) -> IntArray:
    """The number of each query's list in each run, −1 where it has none: int64[runs, queries]."""
    numbers: dict[str, int] | None = None
    places = np.full((len(runs), len(queries)), -1, np.int64)
    for place, run in zip(places, runs, strict=True):
        if tuple(run.queries) == queries:
            place[:] = np.arange(len(queries))
            continue
        if numbers is None:
            numbers = {query: number for number, query in enumerate(queries)}
        place[[numbers[query] for query in run.queries]] = np.arange(len(run.queries))
        if (place >= 0).sum() < len(run.queries):
            repeated = next(query for query in run.queries if list(run.queries).count(query) > 1)
            raise InputError(f"run: query {repeated!r} has two lists; give each query one list")
    return places


def _blocks(runs: Sequence[Lists], places: IntArray) -> Iterator[slice]:
    """Neighbouring queries with few rows together."""
    sizes = np.zeros(places.shape[1], np.int64)
    for place, run in zip(places, runs, strict=True):
        has = place >= 0
        sizes[has] += np.diff(run.offsets)[place[has]]
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        limit = (int(ends[first - 1]) if first else 0) + _ROWS_AT_ONCE
        last = max(first + 1, int(np.searchsorted(ends, limit, "right")))
        last = min(last, first + _QUERIES_AT_ONCE)
        yield slice(first, last)
        first = last


class _Terms:
    """1/(k + rank) by rank, as the nearest float64 and what is left of it, which is far below its last digit."""

    def __init__(self, k: int, longest: int) -> None:
        divisor = np.arange(k, k + longest + 1, dtype=np.float64)
        divisor[0] = 1
        self.high = 1 / divisor
        product, error = _product(self.high, divisor)
        self.low = ((1 - product) - error) / divisor

    def sums(self, ranks: IntArray, firsts: IntArray, sizes: IntArray) -> Floats:
        """Σ over each group of ranks; a group is `sizes` ranks from `firsts` on."""
        own = ranks[firsts]
        high, low = self.high[own], self.low[own]
        for member in range(1, int(sizes.max(initial=1))):
            more = np.flatnonzero(sizes > member)
            rank = ranks[firsts[more] + member]
            total, error = _sum(high[more], self.high[rank])
            high[more], low[more] = total, low[more] + self.low[rank] + error
        result: Floats = high + low
        return result


def _sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a + b, and its rounding error (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a · b, and its rounding error (Dekker)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Floats) -> tuple[Floats, Floats]:
    scaled = a * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high


class _Block(NamedTuple):
    """Some queries' rows of all runs: the rows in `column`, and the query, the rank and the run of each."""

    rows: IntArray
    query: IntArray
    rank: IntArray
    source: NDArray[np.int32]
    queries: int
    ids: IdColumn

    @classmethod
    def of(cls, runs: Sequence[Lists], places: IntArray, first_rows: IntArray, column: IdColumn) -> _Block:
        rows, queries, ranks, sources = [], [], [], []
        for number, (place, run) in enumerate(zip(places, runs, strict=True)):
            query = np.flatnonzero(place >= 0)
            lists = place[query]
            lengths = run.offsets[lists + 1] - run.offsets[lists]
            within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            rows.append(np.repeat(run.offsets[lists] + first_rows[number], lengths) + within)
            queries.append(np.repeat(query, lengths))
            ranks.append(within + 1)
            sources.append(np.full(len(within), number, np.int32))
        chosen = np.concatenate(rows)
        return cls(
            chosen,
            np.concatenate(queries),
            np.concatenate(ranks),
            np.concatenate(sources),
            places.shape[1],
            column.take(chosen),
        )

    def fused(self, terms: _Terms) -> tuple[IntArray, Floats, IntArray]:
        """The fused lists: rows of the column, scores, and the length of each list."""
        order, firsts = self._grouped()
        copies = np.zeros(len(order), bool)
        copies[1:] = self.source[order[1:]] == self.source[order[:-1]]
        copies[firsts] = False
        if copies.any():
            firsts = firsts - np.cumsum(copies)[firsts]
            order = order[~copies]
        sizes = np.diff(np.append(firsts, len(order)))
        scores = terms.sums(self.rank[order], firsts, sizes)
        of_group = order[firsts]
        ranking = self._ranking(of_group, scores)
        chosen = of_group[ranking]
        return self.rows[chosen], scores[ranking], np.bincount(self.query[of_group], minlength=self.queries)

    def _grouped(self) -> tuple[IntArray, IntArray]:
        """The rows with those of one query and passage together, in the order given, and where each group begins."""
        hashes = mix(self.ids.hashes(), self.query.view(np.uint64))
        order, same = _sorted(hashes, len(hashes))
        pairs = np.flatnonzero(same)
        before, after = order[pairs], order[pairs + 1]
        if not ((self.query[before] == self.query[after]) & self.ids.equal(before, self.ids, after)).all():
            # Two different passages look alike by the digits of their hashes that were compared.
            names, codes = self.ids.factorized()
            exact = self.query * len(names) + codes
            order = np.argsort(exact, kind="stable")
            same = exact[order[1:]] == exact[order[:-1]]
        return order, np.append(0, np.flatnonzero(~same) + 1)[: len(order)]

    def _ranking(self, of_group: IntArray, scores: Floats) -> IntArray:
        """The order of the groups: by query, then descending score, then descending passage id."""
        if not len(of_group):
            return of_group
        size, of_query = len(of_group), self.query[of_group].view(np.uint64)
        free = 64 - size.bit_length() - self.queries.bit_length()
        best = float(scores.max())
        behind = ((best - scores) * (2.0 ** (free - 1) / best)).astype(np.uint64)
        keys = (of_query << np.uint64(free) | behind) << np.uint64(size.bit_length())
        order, same = _sorted(keys, size)
        self._settle_ties(order, same, of_group, scores)
        return order

    def _settle_ties(self, order: IntArray, same: NDArray[np.bool_], of_group: IntArray, scores: Floats) -> None:
        """Put neighbours that the sort could not tell apart into their order."""
        member = np.append(same, False) | np.append(False, same)
        starts = np.flatnonzero(member & ~np.append(False, same))
        lengths = np.flatnonzero(member & ~np.append(same, False)) - starts + 1
        pairs = starts[lengths == 2]
        one, other = order[pairs], order[pairs + 1]
        smaller = self.ids.take(of_group[one]).smaller_rows(self.ids.take(of_group[other]))
        swapped = np.where(scores[one] == scores[other], smaller, scores[one] < scores[other])
        order[pairs[swapped]], order[pairs[swapped] + 1] = other[swapped], one[swapped]
        longer = lengths > 2
        if not longer.any():
            return
        group = np.repeat(np.flatnonzero(longer), lengths[longer])
        places = np.repeat(starts[longer] - np.cumsum(lengths[longer]) + lengths[longer], lengths[longer])
        places += np.arange(len(places))
        tied = order[places]
        id_place = np.unique(self.ids.fixed_width(of_group[tied]), return_inverse=True)[1]
        order[places] = tied[np.lexsort((-id_place, -scores[tied], group))]


def _sorted(keys: NDArray[np.uint64], size: int) -> tuple[IntArray, NDArray[np.bool_]]:
    """The order of keys by their upper digits, and whether each but the last equals the next one in these.

    The lower digits, as many as the number of keys has, are given up for the position: numbers are sorted faster
    than positions.
    """
    bits = np.uint64(size.bit_length())
    packed = keys >> bits << bits
    packed |= np.arange(size, dtype=np.uint64)
    packed.sort()
    order = (packed & ((np.uint64(1) << bits) - np.uint64(1))).view(np.int64)
    packed >>= bits
    return order, packed[1:] == packed[:-1]
