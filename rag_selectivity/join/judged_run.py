"""The join of qrels and run: only judged hits and list lengths are kept, since only they matter."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag_selectivity.data.columns import QUERY_NAMES, SIZE_NAMES, column_values, find_column, is_frame
from rag_selectivity.data.grades import SCALES, Scale, scale_named
from rag_selectivity.data.ids import HashArray, IdColumn, IntArray, mix
from rag_selectivity.data.policy import Policy, resolve_policy
from rag_selectivity.data.qrels import Qrels, pair_keys
from rag_selectivity.data.run import Run, ScatteredQueries
from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.join.facts import JoinFacts, first_ids

FloatArray = NDArray[np.float64]


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

    def of_queries(self, kept: NDArray[np.bool_]) -> Hits:
        """The hits of some queries, which are numbered anew."""
        part = self.chosen(kept[self.query])
        return replace(part, query=(np.cumsum(kept) - 1)[part.query])


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

    def of_queries(self, kept: NDArray[np.bool_]) -> Sample:
        """The sample of some queries."""
        return Sample(self.size[kept], self.grades, self.labels[kept])


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
        found = _count_column(np.asarray(hit).astype(np.int64) if np.asarray(hit).dtype == bool else hit, "hit")
        if not len(size) == len(shown) == len(relevant) == len(found):
            raise InputError("counts: N, K, R and hit differ in length")
        names = tuple(queries) if queries is not None else tuple(str(i + 1) for i in range(len(size)))
        for column, name, limit, bound in (
            (shown, "K", size, "N"),
            (relevant, "R", size, "N"),
            (found, "hit", np.minimum(shown, relevant), "min(K, R)"),
        ):
            over = np.flatnonzero(column > limit)
            if len(over):
                i = int(over[0])
                raise InputError(
                    f"counts of query {names[i]!r}: {name} = {column[i]} is more than {bound} = {limit[i]}"
                )
        row = np.repeat(np.arange(len(found)), found)
        # Which of the K slots held the hits is unknown and does not matter: the first ones stand for them.
        rank = np.arange(len(row)) - np.repeat(np.cumsum(found) - found, found) + 1
        return cls(
            queries=names,
            hits=Hits(row, rank, np.ones(len(row), np.int64), np.zeros(len(row), bool), np.arange(len(row))),
            returned=shown,
            grades=np.array([1]),
            labels=relevant[:, None],
            corpus_size=size,
            scale=SCALES["trec"],
            policy=resolve_policy(depth="returned"),
        )

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def in_run(self) -> NDArray[np.bool_]:
        """Whether the run has each query, if only with an empty list: bool[queries]."""
        return np.ones(len(self), bool) if self.missing is None else ~self.missing

    def over(self, kept: NDArray[np.bool_]) -> JudgedRun:
        """The join restricted to some of its queries: bool[queries]."""
        return replace(
            self,
            queries=tuple(query for query, keep in zip(self.queries, kept, strict=True) if keep),
            hits=self.hits.of_queries(kept),
            returned=self.returned[kept],
            labels=self.labels[kept],
            corpus_size=None if self.corpus_size is None else self.corpus_size[kept],
            pool=None if self.pool is None else self.pool.of_queries(kept),
            pool_returned=None if self.pool_returned is None else self.pool_returned[kept],
            own_pool=None if self.own_pool is None else self.own_pool[kept],
            sample=None if self.sample is None else self.sample.of_queries(kept),
            missing=None if self.missing is None else self.missing[kept],
            label_hashes=None if self.label_hashes is None else self.label_hashes[kept],
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
        """How many slots count at each depth: K, or what was returned under `depth="returned"`."""
        requested = np.broadcast_to(depths, (len(self.queries), len(depths)))
        return np.minimum(requested, self.returned[:, None]) if self.policy.depth == "returned" else requested

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


def judge(
    qrels: Qrels,
    run: Run | Iterable[Run],
    *,
    pool: Run | Iterable[Run] | None = None,
    sample: Qrels | None = None,
    sample_size: int | None = None,
    corpus_size: Any = None,
    corpus: Iterable[Any] | None = None,
    scale: str | Scale = "trec",
    policy: str | Policy | None = None,
    name: str = "run",
    part_of_whole: bool = False,
) -> JudgedRun:
    """Join a run with its judgments.

    Parameters
    ----------
    qrels : Qrels
    run : Run or iterable of Runs over different queries
        The latter lets a file of any length stream through.
    pool : Run or iterable of Runs, optional
        The candidates before reranking or selection, of which the run's passages are a part.
    sample : Qrels, optional
        Judgments of passages drawn at random, for each query anew, from those that the qrels lack.
    sample_size : int, optional
        How many were drawn for each query, where `sample` lists only some of them, such as the relevant
        ones. Without it a query's sample is what is listed.
    corpus_size : int, {query: int}, DataFrame or None
        N, for all queries or for each.
    corpus : iterable of passage ids, optional
        The corpus itself: gives N, and finds judgments that are of another corpus.
    scale : {"trec", "utility"}
    policy : Policy or its name
    name : str
        What to call the run in messages.
    part_of_whole : bool
        Whether these are some of the queries only. What takes all of them to tell is then left to whoever puts the
        parts together: see `JudgedRun.facts`.
    """
    scale, policy = scale_named(scale), resolve_policy(policy)
    qrels.check_scale(scale)
    if not len(qrels):
        raise InputError(f"{qrels.source or 'qrels'}: there are no judgments")
    if corpus is not None:
        known = _check_corpus(qrels, corpus)
        corpus_size = known if corpus_size is None else corpus_size

    joined = _join(qrels, run, policy, name)
    candidates = _join(qrels, pool, policy, f"the pool of {name}") if pool is not None else None
    returned, hits = joined.returned, joined.hits

    present = returned >= 0
    facts = _facts(qrels, joined, policy)
    if not part_of_whole:
        facts.check(name)
    sizes = _corpus_sizes(corpus_size, qrels, np.bincount(qrels.query, minlength=len(qrels)), part_of_whole)
    facts = replace(facts, overlong=_overlong(qrels, returned, sizes))
    if not part_of_whole:
        for said in facts.warnings(name, scale.name):
            warnings.warn(said, SelectivityWarning, stacklevel=2)
    missing = int((~present).sum())

    grades = np.unique(qrels.grade)
    labels = np.zeros((len(qrels), len(grades)), np.int64)
    np.add.at(labels, (qrels.query, np.searchsorted(grades, qrels.grade)), 1)
    judged = JudgedRun(
        queries=qrels.queries,
        hits=hits,
        returned=np.maximum(returned, 0),
        grades=grades,
        labels=labels,
        corpus_size=sizes,
        scale=scale,
        policy=policy,
        **_pool(candidates, joined),
        sample=_sample(sample, sample_size, qrels, scale) if sample is not None else None,
        missing=~present if missing else None,
        label_hashes=_label_hashes(qrels, sample, sample_size),
        coverage=Coverage(missing, joined.not_in_qrels, joined.duplicates, qrels.repeated, qrels.negative),
        facts=facts,
    )
    own = 0 if judged.own_pool is None else int((judged.own_pool & present).sum())
    outside = len(judged.hits_outside_pool().query)
    judged = replace(judged, coverage=replace(judged.coverage, outside_pool=outside, missing_from_pool=own))
    return judged.over(present) if policy.missing_query == "skip" and missing else judged


def _label_hashes(qrels: Qrels, sample: Qrels | None, sample_size: int | None) -> HashArray:
    """A hash of each query's labels, of the sample's too."""
    hashes = qrels.label_hashes()
    if sample is None:
        return hashes
    position = np.array([qrels.position(query) for query in sample.queries], np.int64)
    drawn = np.zeros(len(qrels), np.uint64)
    drawn[position] = sample.label_hashes()
    return mix(hashes, mix(drawn, np.full(len(qrels), (sample_size or 0) + 1, np.uint64)))


def _sample(sample: Qrels, size: int | None, qrels: Qrels, scale: Scale) -> Sample:
    """The sample by the qrels' queries; an error for a passage that is in the pool or a query that is not."""
    sample.check_scale(scale)
    where = sample.source or "sample"
    if size is not None and (isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1):
        raise InputError(f"sample_size must be a whole number ≥ 1, got {size!r}")
    unknown = [query for query in sample.queries if query not in qrels]
    if unknown:
        raise InputError(f"{where}: {len(unknown)} queries of the sample are not in the qrels ({examples(unknown)})")
    position = np.array([qrels.position(query) for query in sample.queries], np.int64)
    row = position[sample.query]
    pooled, _ = qrels.lookup(pair_keys(row, sample.passages), row, sample.passages)
    if len(pooled):
        i = int(pooled[0])
        raise InputError(
            f"{where}: query {qrels.queries[row[i]]!r}: passage {sample.passages[i]!r} is in the qrels too; "
            f"the sample must be drawn from the passages outside them"
        )
    grades = np.unique(sample.grade)
    labels = np.zeros((len(qrels), len(grades)), np.int64)
    np.add.at(labels, (row, np.searchsorted(grades, sample.grade)), 1)
    listed = labels.sum(axis=1)
    if size is not None and (listed > size).any():
        i = int(np.argmax(listed > size))
        raise InputError(
            f"{where}: query {qrels.queries[i]!r} lists {listed[i]} passages, more than sample_size = {size}"
        )
    return Sample(listed if size is None else np.full(len(qrels), size), grades, labels)


@dataclass(frozen=True, slots=True)
class _Joined:
    """List lengths by the qrels' queries (−1: not in the run), hits in order, and what fell outside."""

    returned: IntArray
    hits: Hits
    not_in_qrels: int
    unknown: tuple[str, ...]
    duplicates: int
    retrieved: int


def _facts(qrels: Qrels, joined: _Joined, policy: Policy) -> JoinFacts:
    present = joined.returned >= 0
    passages = None
    if not len(joined.hits.query) and len(qrels.query):
        first = min(qrels.queries[i] for i in np.unique(qrels.query).tolist())
        passages = first, first_ids(qrels[first])
    return JoinFacts(
        queries=len(qrels),
        listed=int(present.sum()),
        unknown=joined.not_in_qrels,
        retrieved=joined.retrieved,
        hits=len(joined.hits.query),
        query_ids=first_ids(qrels.queries),
        missing_ids=first_ids(qrels.queries[i] for i in np.flatnonzero(~present).tolist()),
        unknown_ids=joined.unknown,
        judged_passages=passages,
        grades=(int(qrels.grade.min()), int(qrels.grade.max())) if len(qrels.grade) else None,
        missing_is_error=policy.missing_query == "error",
    )


def _overlong(qrels: Qrels, returned: IntArray, sizes: IntArray | None) -> tuple[str, int, int] | None:
    """The first query by its id whose list is longer than its corpus."""
    if sizes is None or not (returned > sizes).any():
        return None
    i = min(np.flatnonzero(returned > sizes).tolist(), key=qrels.queries.__getitem__)
    return qrels.queries[i], int(returned[i]), int(sizes[i])


def _pool(candidates: _Joined | None, run: _Joined) -> dict[str, Any]:
    """The candidates; of a query that they lack, the run's own list."""
    if candidates is None:
        return {}
    own = candidates.returned < 0
    hits, returned = candidates.hits, np.where(own, np.maximum(run.returned, 0), candidates.returned)
    if own.any():
        added = run.hits.chosen(own[run.hits.query])
        hits = Hits(*(np.concatenate([getattr(part, name) for part in (hits, added)]) for name in Hits.__slots__))
        hits = hits.chosen(np.argsort(hits.query, kind="stable"))
    return {"pool": hits, "pool_returned": returned, "own_pool": own}


def _join(qrels: Qrels, run: Run | Iterable[Run], policy: Policy, name: str) -> _Joined:
    try:
        return _join_parts(qrels, [run] if isinstance(run, Run) else run, policy, name)
    except ScatteredQueries as scattered:
        return _join_parts(qrels, scattered.again(), policy, name)


def _join_parts(qrels: Qrels, parts: Iterable[Run], policy: Policy, name: str) -> _Joined:
    returned = np.full(len(qrels), -1, np.int64)
    none = np.empty(0, np.int64)
    collected = [Hits(none, none, none, np.empty(0, bool), none)]
    unknown: tuple[str, ...] = ()
    not_in_qrels = duplicates = retrieved = 0
    for part in parts:
        position = np.array([qrels.position(query) for query in part.queries], np.int64)
        inside = position >= 0
        not_in_qrels += int((~inside).sum())
        unknown = first_ids([*unknown, *(part.queries[i] for i in np.flatnonzero(~inside).tolist())])
        retrieved += int(part.lengths[inside].sum())
        if (returned[position[inside]] >= 0).any():
            raise InputError(f"{name}: a query appears in two parts of the run")
        lengths, hits, repeats = _judge_part(qrels, part, position, policy, name)
        returned[position[inside]] = lengths[inside]
        collected.append(hits)
        duplicates += repeats
    columns = [np.concatenate([getattr(part, column) for part in collected]) for column in Hits.__slots__]
    order = np.lexsort((columns[1], columns[0]))
    return _Joined(returned, Hits(*(column[order] for column in columns)), not_in_qrels, unknown, duplicates, retrieved)


def _judge_part(qrels: Qrels, part: Run, position: IntArray, policy: Policy, name: str) -> tuple[IntArray, Hits, int]:
    """List lengths (one for each of the part's queries), judged hits, and the number of duplicates."""
    part = part.ordered(policy)
    local = part.row_queries()
    query = position[local]
    keys = pair_keys(query, part.passages)
    copies = _copies(keys, query, part.passages)
    if len(copies) and policy.duplicates == "error":
        row = int(copies[0])
        raise InputError(
            f"{name}: query {qrels.queries[query[row]]!r} lists passage {part.passages[row]!r} more than once, "
            f'and the policy is duplicates="error"'
        )
    rows, judgments = qrels.lookup(keys, query, part.passages)
    repeated = np.isin(rows, copies, assume_unique=True)
    rank = rows - part.offsets[local[rows]] + 1
    lengths = part.lengths
    if policy.duplicates == "drop" and len(copies):
        dropped_before = np.searchsorted(copies, rows) - np.searchsorted(copies, part.offsets[local[rows]])
        keep = ~repeated
        rows, judgments, rank = rows[keep], judgments[keep], (rank - dropped_before)[keep]
        lengths = lengths - np.bincount(local[copies], minlength=len(lengths))
        repeated = np.zeros(len(rows), bool)
    if policy.unjudged == "condense":
        lengths = np.bincount(local[rows], minlength=len(lengths))
        rank = np.arange(len(rows)) - (np.cumsum(lengths) - lengths)[local[rows]] + 1
    return lengths, Hits(query[rows], rank, qrels.grade[judgments], repeated, judgments), len(copies)


def _copies(keys: NDArray[np.uint64], query: IntArray, passages: IdColumn) -> IntArray:
    """Rows that hold a passage which the same list had before; queries outside the qrels are not searched."""
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():
        return np.empty(0, np.int64)
    order = np.argsort(keys, kind="stable")
    shared = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    seen: set[tuple[int, str]] = set()
    copies = []
    for row in np.unique(order[np.concatenate([shared, shared + 1])]).tolist():
        pair = (int(query[row]), passages[row])
        if pair[0] < 0:
            continue
        if pair in seen:
            copies.append(row)
        seen.add(pair)
    return np.array(copies, np.int64)


def _check_corpus(qrels: Qrels, corpus: Iterable[Any]) -> int:
    """The number of passages; an error when none of the judged ones is among them."""
    ids = {str(passage) for passage in corpus}
    if not ids:
        raise InputError("the corpus has no passages")
    unknown = {passage for passage in qrels.passages if passage not in ids}
    judged = len(set(qrels.passages))
    if judged and len(unknown) == judged:
        raise InputError(
            f"no judged passage is in the corpus: the qrels name {examples(qrels.passages)}, "
            f"the corpus has {examples(sorted(ids)[:3])}; do both use the same ids?"
        )
    if unknown:
        warnings.warn(
            f"{len(unknown)} of {judged} judged passages are not in the corpus ({examples(sorted(unknown))})",
            SelectivityWarning,
            stacklevel=4,
        )
    return len(ids)


def corpus_size_of(given: Any) -> int | dict[str, Any] | None:
    """N as a whole number, or what was given for each query by its id; from a number, a mapping or a frame."""
    if given is None:
        return None
    if is_frame(given):
        names = list(given.columns)
        queries = column_values(given, find_column(names, QUERY_NAMES, "query", "corpus_size frame"))
        sizes = column_values(given, find_column(names, SIZE_NAMES, "corpus size", "corpus_size frame"))
        given = dict(zip(queries, sizes, strict=True))
    if isinstance(given, Mapping):
        return {str(query): size for query, size in given.items()}
    return whole_count(given, "corpus_size")


def _corpus_sizes(corpus_size: Any, qrels: Qrels, judged: IntArray, part_of_whole: bool) -> IntArray | None:
    given = corpus_size_of(corpus_size)
    if given is None:
        return None
    if isinstance(given, dict):
        absent = first_ids(query for query in qrels.queries if query not in given)
        if absent:
            count = sum(query not in given for query in qrels.queries)
            # How many there are of a part is nothing that its reader knows of.
            how_many = "queries of the qrels" if part_of_whole else f"{count} of the {len(qrels)} queries"
            raise InputError(f"corpus_size has no entry for {how_many} ({examples(absent)})")
        sizes = [whole_count(given[query], f"corpus_size of query {query!r}") for query in qrels.queries]
    else:
        sizes = [given] * len(qrels)
    result = np.array(sizes, np.int64)
    over = np.flatnonzero(judged > result)
    if len(over):
        i = int(over[0])
        raise InputError(
            f"query {qrels.queries[i]!r} has {judged[i]} judged passages, more than the corpus size "
            f"N = {result[i]}: correct the corpus size"
        )
    return result


def whole_count(value: Any, what: str) -> int:
    """A whole number from 0 to 2**53 as an int, else an InputError that says what it was for."""
    try:
        count = int(value)
        if count == float(value) and 0 <= count <= 1 << 53 and not isinstance(value, bool):
            return count
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{what} is {value!r}; a whole number from 0 to 2**53 is needed")


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
