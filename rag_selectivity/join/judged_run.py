"""A run joined with its judgments: only judged hits and list lengths are kept, since only they matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag_selectivity.data.grades import SCALES, Scale
from rag_selectivity.data.ids import HashArray, IntArray
from rag_selectivity.data.policy import Policy, resolve_policy
from rag_selectivity.errors import InputError
from rag_selectivity.join.facts import JoinFacts


@dataclass(frozen=True, slots=True)
class Hits:
    """The judged passages of every list, by query and then rank.

    `query` is a position in `JudgedRun.queries`, `rank` starts at 1, `repeated` marks the second
    and further copies of a passage in its list, `judgment` tells equal passages of a query.
    """

    query: IntArray
    rank: IntArray
    grade: IntArray
    repeated: NDArray[np.bool_]
    judgment: IntArray

    def chosen(self, rows: NDArray[Any]) -> Hits:
        """Some of the hits, by mask or by position."""
        return Hits(*(getattr(self, column)[rows] for column in Hits.__slots__))

    def of_queries(self, chosen: NDArray[np.bool_]) -> Hits:
        """The hits of some queries, which are numbered anew."""
        part = self.chosen(chosen[self.query])
        return replace(part, query=(np.cumsum(chosen) - 1)[part.query])


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the join found and left out."""

    missing_from_run: int = 0
    not_in_qrels: int = 0
    duplicates: int = 0
    repeated_judgments: int = 0
    negative_judgments: int = 0
    outside_pool: int = 0
    missing_from_pool: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Coverage)))

    def notes(self, clipped: int) -> list[str]:
        """In words, what the join and the draws left out or took another way; `clipped` as by `clipped_at`."""
        counted = (
            (clipped, "queries have a corpus smaller than K: their draw is all of it"),
            (self.duplicates, "passages stand twice in their list"),
            (self.negative_judgments, "judgments below 0 were taken as not judged"),
            (self.outside_pool, "judged passages of the run are not in its pool and were added to it"),
            (self.missing_from_pool, "queries are not in the pool: their own lists stand for it"),
        )
        return [f"{count} {what}" for count, what in counted if count]


@dataclass(frozen=True, slots=True)
class Sample:
    """Passages drawn at random from outside the judged pool, and their labels.

    `size` is how many were drawn for each query, 0 where none; `labels` how many of those were given
    each of the `grades`.
    """

    size: IntArray
    grades: IntArray
    labels: IntArray

    def relevant(self, threshold: int) -> IntArray:
        """Sampled passages of each query with at least the grade."""
        result: IntArray = self.labels[:, self.grades >= threshold].sum(axis=1)
        return result

    def of_queries(self, chosen: NDArray[np.bool_]) -> Sample:
        """The sample of some queries."""
        return Sample(self.size[chosen], self.grades, self.labels[chosen])


@dataclass(frozen=True)
class JudgedRun:
    """One run judged by one set of labels: all that a measure sees.

    Attributes
    ----------
    queries : tuple of str
        The queries of the qrels, those missing from the run included.
    hits : Hits
    returned : int64[queries]
        Length of each list; 0 where the run lacks the query.
    grades : int64[levels]
    labels : int64[queries, levels]
        How many passages of the query were given each grade.
    corpus_size : int64[queries] or None
        Passages that could have been retrieved, N.
    scale, policy, coverage
    pool, pool_returned : Hits, int64[queries], or None
        The candidates before selection; without them the run's own full list is the pool.
    own_pool : bool[queries] or None
        Where a pool was given that lacks the query, so that its own full list stands for it.
    sample : Sample or None
        A judged random sample of the passages that are not in the qrels.
    missing : bool[queries] or None
        The queries that the run lacks; None where it lacks none, or that is not known.
    label_hashes : uint64[queries] or None
        A hash of each query's passages and grades, those of the sample included; None where only counts are known.
    facts : JoinFacts
        What a whole dataset must be checked for; empty where there was no join.
    """

    queries: tuple[str, ...]
    hits: Hits
    returned: IntArray
    grades: IntArray
    labels: IntArray
    corpus_size: IntArray | None
    scale: Scale
    policy: Policy
    coverage: Coverage = field(default_factory=Coverage)
    pool: Hits | None = None
    pool_returned: IntArray | None = None
    own_pool: NDArray[np.bool_] | None = None
    sample: Sample | None = None
    missing: NDArray[np.bool_] | None = None
    label_hashes: HashArray | None = None
    facts: JoinFacts = field(default_factory=JoinFacts)

    @classmethod
    def from_counts(
        cls, N: ArrayLike, K: ArrayLike, R: ArrayLike, hit: ArrayLike, *, queries: Sequence[str] | None = None
    ) -> JudgedRun:
        """From counts alone, one of each for a query: what a production log has without ids.

        `hit` is a bool, or the number of relevant passages among the K. The draw is of what was
        shown, so measure at `depths=[max(K)]`. Serves the chance-corrected measures.
        """
        size, shown, relevant = (_count_column(value, name) for value, name in ((N, "N"), (K, "K"), (R, "R")))
        hits = _count_column(np.asarray(hit).astype(np.int64) if np.asarray(hit).dtype == bool else hit, "hit")
        if not len(size) == len(shown) == len(relevant) == len(hits):
            raise InputError("counts: N, K, R and hit differ in length")
        names = tuple(queries) if queries is not None else tuple(str(i + 1) for i in range(len(size)))
        for column, name, limit, bound in (
            (shown, "K", size, "N"),
            (relevant, "R", size, "N"),
            (hits, "hit", np.minimum(shown, relevant), "min(K, R)"),
        ):
            over = np.flatnonzero(column > limit)
            if len(over):
                i = int(over[0])
                raise InputError(
                    f"counts of query {names[i]!r}: {name} = {column[i]} is more than {bound} = {limit[i]}"
                )
        row = np.repeat(np.arange(len(hits)), hits)
        # Which of the K slots held the hits is unknown and does not matter: the first ones stand for them.
        rank = np.arange(len(row)) - np.repeat(np.cumsum(hits) - hits, hits) + 1
        return cls(
            queries=names,
            hits=Hits(row, rank, np.ones(len(row), np.int64), np.zeros(len(row), bool), np.arange(len(row))),
            returned=shown,
            grades=np.array([1]),
            labels=relevant[:, None],
            corpus_size=size,
            scale=SCALES["trec"],
            policy=resolve_policy(short_lists="returned"),
        )

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def in_run(self) -> NDArray[np.bool_]:
        """Whether the run has each query, if only with an empty list: bool[queries]."""
        return np.ones(len(self), bool) if self.missing is None else ~self.missing

    def over(self, chosen: NDArray[np.bool_]) -> JudgedRun:
        """The join restricted to some of its queries: bool[queries]."""
        return replace(
            self,
            queries=tuple(query for query, keep in zip(self.queries, chosen, strict=True) if keep),
            hits=self.hits.of_queries(chosen),
            returned=self.returned[chosen],
            labels=self.labels[chosen],
            corpus_size=None if self.corpus_size is None else self.corpus_size[chosen],
            pool=None if self.pool is None else self.pool.of_queries(chosen),
            pool_returned=None if self.pool_returned is None else self.pool_returned[chosen],
            own_pool=None if self.own_pool is None else self.own_pool[chosen],
            sample=None if self.sample is None else self.sample.of_queries(chosen),
            missing=None if self.missing is None else self.missing[chosen],
            label_hashes=None if self.label_hashes is None else self.label_hashes[chosen],
        )

    def threshold(self, rel: int | None = None) -> int:
        """The lowest relevant grade: `rel`, or the scale's."""
        return self.scale.relevant_from if rel is None else rel

    def relevant(self, rel: int | None = None) -> IntArray:
        """R: how many passages of each query were given at least the grade `rel` (default: the scale's)."""
        chosen = self.grades >= self.threshold(rel)
        result: IntArray = self.labels[:, chosen].sum(axis=1)
        return result

    def hits_at(self, depths: IntArray, rel: int | None = None) -> IntArray:
        """Distinct relevant passages in the top K: int64[queries, depths]."""
        return count_at(
            self.hits.chosen((self.hits.grade >= self.threshold(rel)) & ~self.hits.repeated), len(self), depths
        )

    def judged_at(self, depths: IntArray) -> IntArray:
        """Slots of the top K that hold a judged passage, copies included: int64[queries, depths]."""
        return count_at(self.hits, len(self), depths)

    def returned_at(self, depths: IntArray) -> IntArray:
        """Slots of the top K that hold anything: int64[queries, depths]."""
        result: IntArray = np.minimum(self.returned[:, None], depths)
        return result

    def harmful_at(self, depths: IntArray, max_grade: int) -> IntArray:
        """Slots of the top K with a grade of at most `max_grade`; under `unjudged="worst"` the unjudged too."""
        harmful = count_at(self.hits.chosen(self.hits.grade <= max_grade), len(self), depths)
        if self.policy.unjudged == "worst" and max_grade >= self.scale.lowest:
            harmful = harmful + self.returned_at(depths) - self.judged_at(depths)
        return harmful

    @property
    def candidates(self) -> Hits:
        """The hits of the pool, or of the run's own full list where no pool was given."""
        return self.hits if self.pool is None else self.pool

    @property
    def candidates_returned(self) -> IntArray:
        """The length of each query's pool."""
        return self.returned if self.pool_returned is None else self.pool_returned

    @property
    def selected_from(self) -> NDArray[np.bool_]:
        """Whether each query has a pool other than its own list: bool[queries]."""
        if self.pool is None:
            return np.zeros(len(self), bool)
        return np.ones(len(self), bool) if self.own_pool is None else ~self.own_pool

    def hits_outside_pool(self) -> Hits:
        """Distinct judged passages of the run that its pool lacks."""
        if self.pool is None:
            return self.hits.chosen(np.zeros(len(self.hits.query), bool))
        return self.hits.chosen(~self.hits.repeated & ~np.isin(self.hits.judgment, self.pool.judgment))

    def slots_at(self, depths: IntArray) -> IntArray:
        """How many slots count at each depth: K, or what was returned under `short_lists="returned"`."""
        requested = np.broadcast_to(depths, (len(self.queries), len(depths)))
        return np.minimum(requested, self.returned[:, None]) if self.policy.short_lists == "returned" else requested

    def drawn_at(self, depths: IntArray) -> IntArray:
        """How many passages the random draw takes: the slots, but never more than the corpus has."""
        slots = self.slots_at(depths)
        return slots if self.corpus_size is None else np.minimum(slots, self.corpus_size[:, None])

    def clipped_at(self, depth: int) -> int:
        """Queries whose own corpus is smaller than the slots at K, so that their draw is of all of it."""
        if self.corpus_size is None:
            return 0
        return int((self.slots_at(np.array([depth]))[:, 0] > self.corpus_size).sum())

    def grades_by_rank(self, depth: int) -> NDArray[np.float64]:
        """What the ranks up to K hold: float64[depth, levels + 2], shares of the queries.

        A column for each of `grades`, then unjudged passages, then empty slots; every row sums to 1.
        """
        within = self.hits.rank <= depth
        rank, level = self.hits.rank[within] - 1, np.searchsorted(self.grades, self.hits.grade[within])
        shares = np.zeros((depth, len(self.grades) + 2))
        np.add.at(shares, (rank, level), 1.0)
        filled = (self.returned[:, None] > np.arange(depth)).sum(axis=0)
        shares[:, -2] = filled - shares.sum(axis=1)
        shares[:, -1] = len(self) - filled
        return shares / max(1, len(self))

    def require_corpus_size(self, measure: str) -> IntArray:
        """N for each query, or an error that says how to give it."""
        if self.corpus_size is None:
            raise InputError(
                f"{measure} compares with a random draw and needs the corpus size N: "
                f"pass corpus_size=… (--corpus-size on the command line)"
            )
        return self.corpus_size

    def require_sample(self, measure: str) -> Sample:
        """The sample from outside the pool, or an error that says how to give it."""
        if self.sample is None:
            raise InputError(
                f"{measure} needs judgments of a random sample of the passages that are not in the qrels: "
                f"pass sample=… (--sample FILE on the command line)"
            )
        return self.sample

    def check_depths(self, depths: IntArray) -> None:
        """Refuse depths that the corpus or the policies rule out. The queries must be all that there are."""
        if not len(depths):
            return
        deepest = int(depths.max())
        if self.corpus_size is not None and len(self.corpus_size):
            check_depth_fits(deepest, (int(self.corpus_size.min()), int(self.corpus_size.max())))
        unjudged = self.unjudged_within(deepest)
        if unjudged is not None:
            raise InputError(unjudged)

    def unjudged_within(self, depth: int) -> str | None:
        """Under `unjudged="error"` the complaint about a query with an unjudged passage in the top K; None if none."""
        if self.policy.unjudged != "error":
            return None
        judged = np.bincount(self.hits.query[self.hits.rank <= depth], minlength=len(self.queries))
        short = np.flatnonzero(judged < np.minimum(self.returned, depth))
        if not len(short):
            return None
        i = min(short.tolist(), key=self.queries.__getitem__)
        return (
            f"query {self.queries[i]!r}: only {judged[i]} of the first {min(self.returned[i], depth)} "
            f'passages are judged, and the policy is unjudged="error"'
        )


def check_depth_fits(depth: int, corpus_sizes: tuple[int, int]) -> None:
    """Refuse a K beyond the corpus where all queries share one N: smallest and largest are the same.

    With an N for each query the draw is min(K, N), and such queries are counted.
    """
    smallest, largest = corpus_sizes
    if smallest == largest < depth:
        raise InputError(
            f"depth K = {depth} is more than the corpus size N = {largest}: "
            f"lower the depths, or correct the corpus size"
        )


def count_at(hits: Hits, queries: int, depths: IntArray, weights: NDArray[np.float64] | None = None) -> NDArray[Any]:
    """How many of the hits (or how much weight) each query has within each depth; all depths cost one pass.

    Returns int64 or, with weights, float64 [queries, depths].
    """
    order = np.argsort(depths, kind="stable")
    width = len(depths) + 1
    cell = hits.query * width + np.searchsorted(depths[order], hits.rank)
    cells = np.bincount(cell, weights, minlength=queries * width).reshape(queries, width)[:, :-1]
    if (order == np.arange(len(order))).all():
        return np.cumsum(cells, axis=1)
    result = np.empty_like(cells)
    result[:, order] = np.cumsum(cells, axis=1)
    return result


def _count_column(values: ArrayLike, name: str) -> IntArray:
    array = np.atleast_1d(np.asarray(values))
    try:
        whole = array.astype(np.int64)
        bad = np.flatnonzero((array.astype(np.float64) != whole) | (whole < 0))
    except (TypeError, ValueError):
        raise InputError(f"counts: {name} holds something that is not a number") from None
    if len(bad):
        raise InputError(
            f"counts: {name} of query number {bad[0] + 1} is {array[bad[0]]}; a whole number ≥ 0 is needed"
        )
    return whole
