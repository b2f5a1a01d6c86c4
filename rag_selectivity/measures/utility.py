"""Measures on the utility scale: evidence in the top K, which step lost evidence, and junk.

After "Redefining RAG Evaluation: A Set-Based Approach" and its preprint (arXiv 2511.09545).
"""

from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.judged.judged_run import JudgedRun, count_at, key_of
from rag_selectivity.measures.base import (
    Choice,
    FloatArray,
    Measure,
    Outcome,
    Real,
    Whole,
    distinct_parameter,
    parameter,
    register_measure,
)
from rag_selectivity.measures.outcome import RATIO
from rag_selectivity.measures.shuffled import Universe, mean_of_best
from rag_selectivity.tables.ids import IntArray


def diagnosis(proc: float, share: float, threshold: float = 0.8) -> str | None:
    """Which step lost more evidence, from the two factors of RA-nWG = PROC × %PROC; None if one is undefined.

    `healthy` if both factors reach the threshold. Otherwise the smaller factor decides: `retriever-limited` if the
    evidence did not get into the pool, `selection-limited` if the reranker or selection did not pick it from the pool,
    `limited by both` if the factors are equal.

    >>> diagnosis(0.95, 0.5), diagnosis(0.4, 0.9), diagnosis(0.9, 0.85), diagnosis(0.75, 0.75)
    ('selection-limited', 'retriever-limited', 'healthy', 'limited by both')
    """
    if not (np.isfinite(proc) and np.isfinite(share)):
        # Without evidence in the pool %PROC is undefined, and the retriever lost everything.
        return "retriever-limited" if proc == 0 else None
    if min(proc, share) >= threshold:
        return "healthy"
    if abs(proc - share) <= 1e-11:
        return "limited by both"
    return "retriever-limited" if proc < share else "selection-limited"


LEVELS = np.array([1, 2, 3, 4, 5])


def rarity_weights(
    counts: IntArray,
    *,
    alpha: float = 1.0,
    cap4: float = 1.0,
    cap3: float = 0.25,
    base4: float = 0.5,
    base3: float = 0.1,
    fallback4: float = 1.0,
    fallback3: float = 0.2,
) -> FloatArray:
    """The weight of each grade for each query, from the rarity of the grade among the judged passages U.

    p_g = n_g/|U|, r_g = b_g/p_g^alpha with b = 1, base4, base3 for grades 5, 4, 3 (0 where n_g = 0);
    w5 = 1, w4 = min(r4/r5, cap4), w3 = min(r3/r5, cap3), w2 = w1 = 0. Without a grade 5 in U:
    1, fallback4, fallback3. If grade 3 is rare and grade 4 is common, w3 can be more than w4.

    Parameters
    ----------
    counts : int64[queries, 5]
        Judged passages of grades 1 to 5.

    Returns
    -------
    float64[queries, 5]
        The weights of grades 1 to 5, each from 0 to 1.

    >>> rarity_weights(np.array([[1, 1, 3, 2, 1]])).round(4).tolist()
    [[0.0, 0.0, 0.0333, 0.25, 1.0]]
    >>> rarity_weights(np.array([[1, 1, 3, 2, 0]])).tolist()
    [[0.0, 0.0, 0.2, 1.0, 1.0]]
    """
    total = counts.sum(axis=1)
    base = np.array([0.0, 0.0, base3, base4, 1.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        rarity = np.where(counts > 0, base / (counts / total[:, None]) ** alpha, 0.0)
        relative = rarity / rarity[:, 4:]
    weights = np.minimum(relative, [0.0, 0.0, cap3, cap4, 1.0])
    without_five = counts[:, 4] == 0
    weights[without_five] = [0.0, 0.0, fallback3, fallback4, 1.0]
    return weights


def best_of(counts: IntArray, weights: FloatArray, slots: IntArray) -> FloatArray:
    """The largest total weight that the given passages can have in so many slots: float64[queries, depths].

    `counts` is int64[queries, 5], `slots` is int64[queries, depths].
    """
    by_weight, rows = np.argsort(-weights, axis=1, kind="stable"), np.arange(len(weights))
    result = np.zeros(slots.shape)
    left = slots
    for place in range(int((weights > 0).any(axis=0).sum())):
        level = by_weight[:, place]
        taken = np.minimum(left, counts[rows, level][:, None])
        result += weights[rows, level][:, None] * taken
        left = left - taken
    return result


def level_counts(judged: JudgedRun) -> IntArray:
    """The number of each query's judged passages of grades 1 to 5: int64[queries, 5]."""

    def counted() -> IntArray:
        counts = np.zeros((len(judged), len(LEVELS)), np.int64)
        counts[:, judged.grades - 1] = judged.labels
        return counts

    return judged.once("labels of levels", None, counted)


class _WeightedMeasure(Measure):
    """The base of measures of rarity-weighted evidence."""

    required_scale: ClassVar[str | None] = "utility"
    read_with_judged: ClassVar[bool] = True
    compares_with_all_labels: ClassVar[bool] = True
    alpha: float = parameter(1.0, Real(0, 10), "how much rarity counts")
    cap4: float = parameter(1.0, Real(0, 1), "largest weight of a grade 4")
    cap3: float = parameter(0.25, Real(0, 1), "largest weight of a grade 3")
    base4: float = parameter(0.5, Real(0, 1), "base utility of a grade 4")
    base3: float = parameter(0.1, Real(0, 1), "base utility of a grade 3")
    fallback4: float = parameter(1.0, Real(0, 1), "weight of a grade 4 if the query has no grade 5")
    fallback3: float = parameter(0.2, Real(0, 1), "weight of a grade 3 if the query has no grade 5")
    distinct: str = distinct_parameter()

    @cached_property
    def _chosen(self) -> dict[str, float]:
        """The parameters of its weights."""
        return {
            each.name: getattr(self, each.name) for each in _WeightedMeasure.parameters() if each.name != "distinct"
        }

    def weights(self, judged: JudgedRun) -> FloatArray:
        key = tuple(self._chosen.values())
        return judged.once("weights", key, lambda: rarity_weights(level_counts(judged), **self._chosen))

    def _observed(self, judged: JudgedRun, depths: IntArray) -> FloatArray:
        """The weight of the top K."""
        hits = judged.distinct
        return count_at(hits, len(judged), depths, self.weights(judged)[hits.query, hits.grade - 1])

    def oracle(self, judged: JudgedRun, depths: IntArray) -> FloatArray:
        """The largest weight of K judged passages; NaN where none has weight."""

        def best() -> FloatArray:
            best = best_of(level_counts(judged), self.weights(judged), judged.slots_at(depths))
            return np.where(best > 0, best, np.nan)

        return judged.once("oracle", (*self._chosen.values(), key_of(depths)), best)

    def _pool(self, judged: JudgedRun, depths: IntArray) -> FloatArray:
        """The weight of the best K of the pool; passages of the list that the pool lacks are added to the pool."""
        hits, levels = judged.pooled, len(LEVELS)
        counts = np.bincount(hits.query * levels + hits.grade - 1, minlength=len(judged) * levels)
        return best_of(counts.reshape(-1, levels), self.weights(judged), judged.slots_at(depths))

    _undefined: ClassVar[str] = "no judged passage of any query has weight"


@register_measure
class RANWG(_WeightedMeasure):
    """Rarity-aware normalised weighted gain: the share of the best available evidence that is in the top K.

    The weight of a grade depends on its rarity among the query's judged passages U: w_g = min(r_g/r_5, cap_g), r_g =
    b_g/p_g^α, p_g = n_g/|U|; w5 = 1, w4 ≤ 1, w3 ≤ .25, w2 = w1 = 0. The order inside the top K does not matter. The
    figures of each query include the weights and the gains G_obs, G_pool and G_oracle.

    Formula: weight of the top K (G_obs) / largest weight of K judged passages (G_oracle)
    Range: 0–1; higher is better.
    NaN: for a query whose judged passages all have weight 0 (all junk).
    Edge cases: Unjudged passages and second copies have no weight. If |U| < K, the divisor has all of U. Without a
    grade 5 in U, w4 = 1 and w3 = .2. 0 for a query missing from the run.
    Source: "Redefining RAG Evaluation: A Set-Based Approach"; arXiv 2511.09545.
    Example: judged grades 5,4,4,3,3,3,2,1 and top 4 = 4,3,3,3: weights 1, .25, .0333; G_obs = .35, G_oracle = 1.5333,
    RA-nWG@4 = 0.2283
    """

    name: ClassVar[str] = "RA-nWG"

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        return Outcome((self._observed(judged, depths) / self.oracle(judged, depths),), self._undefined)

    def shuffled(self, universe: Universe) -> tuple[FloatArray, ...]:
        judged = universe.judged
        total = (self.weights(judged) * level_counts(judged.left)).sum(axis=1)[:, None]
        return (universe.share * total / self.oracle(judged, universe.depths),)

    def details(self, judged: JudgedRun, depths: IntArray) -> dict[str, FloatArray]:
        """The weights, and the gains of the top K, of the best K of the pool, and of the best K of all."""
        weights = self.weights(judged)
        return {
            **{f"w{grade}": weights[:, grade - 1] for grade in (5, 4, 3)},
            "G_obs": self._observed(judged, depths),
            "G_pool": self._pool(judged, depths),
            "G_oracle": np.nan_to_num(self.oracle(judged, depths)),
        }


@register_measure
class PROC(_WeightedMeasure):
    """Pool-restricted oracle ceiling: the best RA-nWG that any reranker could reach from this pool.

    1 − PROC is the share that the retriever lost before selection.

    Formula: largest weight of K passages of the pool (G_pool) / largest weight of K judged passages (G_oracle)
    Range: 0–1, at least RA-nWG at the same K; higher is better.
    NaN: for a query whose judged passages all have weight 0, as for RA-nWG.
    Edge cases: Without a pool the run's own full list is the pool. A passage of the list that the pool lacks counts as
    part of it. 0 for a query missing from the run.
    Source: "Redefining RAG Evaluation: A Set-Based Approach"; arXiv 2511.09545.
    Example: a pool that lacks the only 5 and holds both 4s and all 3s: PROC@4 = .5667/1.5333 = 0.3696
    """

    uses_pool: ClassVar[bool] = True

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        return Outcome((self._pool(judged, depths) / self.oracle(judged, depths),), self._undefined)

    def shuffled(self, universe: Universe) -> tuple[FloatArray, ...]:
        """Σ over the levels of weight of what a level adds, times how many of it and above a best set then holds."""
        judged, depths = universe.judged, universe.depths
        weights, counts, slots = self.weights(judged), level_counts(judged.left), judged.slots_at(depths)
        # Passages of the list that the pool lacks are added to it.
        of_both, outside = (
            np.bincount(hits.query, minlength=len(judged))[:, None]
            for hits in (judged.pooled, judged.hits_outside_pool())
        )
        in_pool = universe.held(of_both - outside, judged.candidates_returned[:, None]) + outside
        ordered = np.append(-np.sort(-weights, axis=1), np.zeros((len(weights), 1)), axis=1)
        best = np.zeros(slots.shape)
        for weight, below in zip(ordered.T[:-1], ordered.T[1:], strict=True):
            marked = (counts * (weights >= weight[:, None])).sum(axis=1)
            if (weight != below).any():
                best += (weight - below)[:, None] * mean_of_best(universe.size, marked[:, None], in_pool, slots)
        return (best / self.oracle(judged, depths),)


#: The top K has no more than the pool, whatever the queries.
_SHARE_OF_MEANS = replace(RATIO, statistic=lambda top, bottom: np.minimum(RATIO.statistic(top, bottom), 1.0))


@register_measure
class PercentPROC(_WeightedMeasure):
    """RA-nWG / PROC: the share of the pool's best evidence that the reranker or selection put into the top K.

    `%PROC(aggregate=ratio)` is the ratio of the mean RA-nWG to the mean PROC, as in the preprint's table.

    Formula: RA-nWG / PROC
    Range: 0–1; higher is better.
    NaN: if PROC is 0 or undefined, and for a list that is not longer than K if no pool was given: nothing was selected.
    Edge cases: A query that is NaN is left out of the mean, and counted.
    Source: "Redefining RAG Evaluation: A Set-Based Approach"; arXiv 2511.09545.
    Example: RA-nWG@4 = .2283 from a pool with PROC@4 = .3696: %PROC@4 = 0.6176
    """

    name: ClassVar[str] = "%PROC"
    means_of: ClassVar[tuple[str, ...]] = ("RA-nWG", "PROC")
    uses_pool: ClassVar[bool] = True
    aggregate: str = parameter("mean", Choice(("mean", "ratio")), "mean over queries, or ratio of the means")

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        oracle = self.oracle(judged, depths)
        observed, ceiling = self._observed(judged, depths) / oracle, self._pool(judged, depths) / oracle
        undefined = "no pool holds evidence, or no list is longer than K, so nothing was selected"
        known = (ceiling > 0) & (~judged.own_pool[:, None] | (judged.returned[:, None] > depths))
        observed, ceiling = np.where(known, observed, np.nan), np.where(known, ceiling, np.nan)
        if self.aggregate == "ratio":
            return Outcome((observed, ceiling), undefined, _SHARE_OF_MEANS)
        return Outcome((observed / ceiling,), undefined)


class NormalisedRecall(Measure):
    required_scale: ClassVar[str | None] = "utility"
    read_with_judged: ClassVar[bool] = True
    compares_with_all_labels: ClassVar[bool] = True
    lowest: ClassVar[int]
    distinct: str = distinct_parameter()

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        available = judged.relevant(self.lowest)
        reachable = np.minimum(available[:, None], judged.slots_at(depths))
        recall = judged.hits_at(depths, self.lowest) / np.maximum(reachable, 1)
        figures = np.where(available[:, None] > 0, recall, np.nan)
        return Outcome((figures,), f"no query has a passage of grade {self.lowest} or more")

    def shuffled(self, universe: Universe) -> tuple[FloatArray, ...]:
        judged = universe.judged
        reachable = np.minimum(judged.relevant(self.lowest)[:, None], judged.slots_at(universe.depths))
        return (universe.share * judged.left.relevant(self.lowest)[:, None] / np.maximum(reachable, 1),)


@register_measure
class NRecall4(NormalisedRecall):
    """Passages of grade 4 or 5 in the top K / min(K, all passages of grade 4 or 5).

    1 if the top K holds as many as possible.

    Formula: passages of grade 4 or 5 in the top K / min(K, all of grade 4 or 5)
    Range: 0–1; higher is better.
    NaN: for a query without a passage of grade 4 or 5.
    Edge cases: 0 for a query missing from the run. A second copy is no second hit.
    Source: "Redefining RAG Evaluation: A Set-Based Approach"; arXiv 2511.09545.
    Example: three passages of grade ≥ 4 exist, the top 2 holds one: N-Recall4+@2 = 1/2
    """

    name: ClassVar[str] = "N-Recall4+"
    lowest: ClassVar[int] = 4


@register_measure
class NRecall5(NormalisedRecall):
    """Passages of grade 5 in the top K / min(K, all passages of grade 5).

    As N-Recall4+, for grade 5 only.

    Formula: passages of grade 5 in the top K / min(K, all of grade 5)
    Range: 0–1; higher is better.
    NaN: for a query without a passage of grade 5.
    Edge cases: 0 for a query missing from the run. A second copy is no second hit.
    Source: "Redefining RAG Evaluation: A Set-Based Approach"; arXiv 2511.09545.
    Example: two passages of grade 5 exist, the top 10 holds one: N-Recall5@10 = 1/2
    """

    name: ClassVar[str] = "N-Recall5"
    lowest: ClassVar[int] = 5


@register_measure
class Precision4(Measure):
    """Passages of grade 4 or 5 in the top K / K.

    Formula: passages of grade 4 or 5 in the top K / K
    Range: 0–1; higher is better.
    NaN: never.
    Edge cases: An empty slot counts as a miss. `short_lists="returned"` divides by the number of returned passages, at
    most K.
    Source: "Redefining RAG Evaluation: A Set-Based Approach"; arXiv 2511.09545.
    Example: top 5 = 5,4,3,1 and one unjudged: Precision4+@5 = 2/5
    """

    name: ClassVar[str] = "Precision4+"
    required_scale: ClassVar[str | None] = "utility"
    read_with_judged: ClassVar[bool] = True
    unjudged_is_a_miss: ClassVar[bool] = True
    distinct: str = distinct_parameter()

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        return Outcome((judged.hits_at(depths, 4) / judged.slots_at(depths),), "no query returned anything")


@register_measure
class Harm(Measure):
    """Junk that the LLM has to read: passages of grade ≤ max_grade in the top K / K.

    With `max_grade=1` only distractors count. If a list is judged in part, Harm is between this figure and
    `Harm(unjudged=harmful)`, which counts every unjudged passage as junk; a report shows both ends.

    Formula: junk (grade ≤ max_grade) in the top K / K
    Range: 0–1; lower is better.
    NaN: for an empty or missing list, and for every query if the qrels hold no grade ≤ max_grade: a failure, or
    judgments without junk, must not look like a list without junk.
    Edge cases: An unjudged passage is not harmful unless the policy is `unjudged="worst"`. A second copy counts with
    its grade.
    Source: "Redefining RAG Evaluation: A Set-Based Approach"; arXiv 2511.09545.
    Example: top 5 = 5,4,2,1,1: Harm@5 = 3/5, Harm(max_grade=1)@5 = 2/5
    """

    required_scale: ClassVar[str | None] = "utility"
    read_with_judged: ClassVar[bool] = True
    higher_is_better: ClassVar[bool | None] = False
    max_grade: int = parameter(2, Whole(1), "highest grade that counts as harm")
    unjudged: str = parameter("harmless", Choice(("harmless", "harmful")), "what an unjudged passage counts as")

    @property
    def upper_end(self) -> Measure | None:
        return replace(self, unjudged="harmful") if self.unjudged == "harmless" else None

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        harmful = judged.harmful_at(depths, self.max_grade)
        if self.unjudged == "harmful" and judged.policy.unjudged != "worst":
            harmful = harmful + judged.returned_at(depths) - judged.judged_at(depths)
        share = harmful / judged.slots_at(depths)
        share[judged.returned == 0] = np.nan
        if judged.policy.unjudged == "worst" or (judged.grades <= self.max_grade).any():
            return Outcome((share,), "no query returned anything")
        reason = (
            f"the qrels hold no grade ≤ {self.max_grade}, so junk cannot be separated from unjudged passages "
            f"(if every passage with a higher grade is in the qrels, use unjudged='worst')"
        )
        return Outcome((share,), reason, premise=False)


@register_measure
class Judged(Measure):
    """Share of the top K that is judged: how far to trust the other measures.

    Formula: judged passages in the top K / min(K, returned)
    Range: 0–1; higher is better.
    NaN: for an empty or missing list.
    Edge cases: A second copy counts as what it is.
    Source: Judged@K in ir_measures, which divides by K.
    Example: 10 passages returned, 8 of them judged: Judged@10 = 0.8
    """

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        return _of_returned(judged.judged_at(depths), judged, depths)


@register_measure
class Redundancy(Measure):
    """Share of the top K whose passage says the same as one above it.

    Which passages say the same is given as groups (`groups=`, `data.groups`). It needs no labels.

    Formula: passages of the top K whose group stands above them / min(K, returned)
    Range: 0–1; lower is better.
    NaN: for an empty or missing list.
    Edge cases: The first passage of a group is no repetition. The same id twice is one. A passage without a group is
    like none but itself.
    Source: the share of near-duplicates among results, as in Bernstein and Zobel (CIKM 2005).
    Example: top 4 = a, b, a copy of a, another copy of a: Redundancy@4 = 2/4
    """

    higher_is_better: ClassVar[bool | None] = False
    needs_groups: ClassVar[bool] = True

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        copies = np.zeros(1) if judged.copies is None else count_at(judged.copies, len(judged), depths)
        return _of_returned(copies, judged, depths)


@register_measure
class Evidence(Measure):
    """Decisive passages in the top K, up to as many as are enough: what one more passage adds to.

    On the utility scale a passage of grade 5 is worth 1, of grade 4 `base4`, and of grade 3 `base3`. On the trec
    scale, and where `rel` is given, each passage of at least `rel` is worth 1.

    Formula: worth of the passages in the top K, at most enough
    Range: 0–`enough`; higher is better.
    NaN: for a query whose labels hold no passage of any worth.
    Edge cases: An unjudged passage and a second copy are worth nothing. 0 for a query missing from the run.
    Source: the base utilities are those of "Redefining RAG Evaluation: A Set-Based Approach".
    Example: top 4 = 5,4,3,1: Evidence@4 = 1 + .5 + .1 = 1.6; with top 4 = 5,5,5,5: Evidence@4 = 3
    """

    ends: ClassVar[tuple[float, float]] = (0.0, np.inf)
    unjudged_is_a_miss: ClassVar[bool] = True
    rel: int | None = parameter(
        None, Whole(0), "lowest grade that is worth 1 (default 1 on trec; on utility worth follows the grade)"
    )
    enough: int = parameter(3, Whole(1), "decisive passages beyond which more add nothing")
    base4: float = parameter(0.5, Real(0, 1), "worth of a grade 4")
    base3: float = parameter(0.1, Real(0, 1), "worth of a grade 3")

    def worth(self, judged: JudgedRun) -> FloatArray:
        """The worth of a passage of each grade of the join: float64[levels]."""
        if judged.scale.name == "utility" and self.rel is None:
            worth_of = {5: 1.0, 4: self.base4, 3: self.base3}
            return np.array([worth_of.get(grade, 0.0) for grade in judged.grades.tolist()])
        result: FloatArray = np.where(judged.grades >= judged.threshold(self.rel), 1.0, 0.0)
        return result

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        worth = self.worth(judged)
        known = judged.labels[:, worth > 0].sum(axis=1) > 0
        levels = np.searchsorted(judged.grades, judged.distinct.grade)
        held = count_at(judged.distinct, len(judged), depths, worth[levels])
        figures = np.where(known[:, None], np.minimum(held, self.enough), np.nan)
        return Outcome((figures,), "no labelled passage of any query is worth anything", bounds=(0.0, self.enough))


def _of_returned(count: NDArray[Any], judged: JudgedRun, depths: IntArray) -> Outcome:
    """A count divided by the number of returned passages, undefined where there are none."""
    returned = judged.returned_at(depths)
    share = np.where(returned > 0, count / np.maximum(returned, 1), np.nan)
    return Outcome((share,), "no query returned anything")
