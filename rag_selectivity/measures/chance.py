"""Chance-corrected measures: retrieval compared with a random draw of the same size.

After "The 99% Success Paradox: When Near-Perfect Retrieval Equals Random Selection", ICLR Blogposts 2026.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.rows import Documents
from rag_selectivity.measures.base import (
    Choice,
    FloatArray,
    Measure,
    Outcome,
    Whole,
    parameter,
    register_measure,
    rel_parameter,
)
from rag_selectivity.measures.hypergeometric import distinct_columns, log2_of, random_success
from rag_selectivity.measures.outcome import OF_A_PART, RATIO, Aggregate, Refusal, itself, log2_of_ratio
from rag_selectivity.measures.shuffled import Universe
from rag_selectivity.tables.ids import IntArray


def refusal_of(judged: JudgedRun, depths: IntArray) -> Refusal | None:
    """At which depths the lists of a run have no comparison with a random draw; None if they have one in any case."""
    repeats = judged.repeats_at(depths)
    return None if repeats is None else Refusal(tuple(repeats.sum(axis=0).tolist()), int((~judged.missing).sum()))


def _gain(success: FloatArray, chance: FloatArray, miss: FloatArray) -> FloatArray:
    """success / chance − 1, computed so that it stays accurate for probabilities near 1."""
    with np.errstate(invalid="ignore"):
        gain = np.where(miss < 0.5, miss - (1 - success), success - chance) / chance
        # Rounding must not make the gain less than −1, since that has no logarithm.
        return np.where((success == 0) & (chance > 0), -1.0, gain)


def _bits_of_gain(gain: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.where(gain < 1, np.log1p(gain) / np.log(2), np.log2(1 + gain)) + 0.0


def _bits(success: FloatArray, chance: FloatArray, miss: FloatArray) -> FloatArray:
    """log2(success / chance)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.log2(success) - np.log2(chance)
    return np.where(miss < 0.5, _bits_of_gain(_gain(success, chance, miss)), far) + 0.0


_BITS = Aggregate(_gain, _bits_of_gain, "bits", _bits)


def _ratio_over_lists(success: FloatArray, chance: FloatArray, floor: FloatArray, excess: FloatArray) -> FloatArray:
    """success / chance, where chance is success + excess: both are the same number if the lists are all alike."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return success / np.maximum(success + excess, floor)


_BITS_OVER_LISTS = Aggregate(_ratio_over_lists, log2_of_ratio, "bits")


def _ceiling(chance: FloatArray, miss: FloatArray) -> FloatArray:
    """−log2(chance), computed so that it stays accurate for probabilities near 1; NaN where no draw can succeed."""
    bits: FloatArray = 0.0 - log2_of(chance, miss)
    return np.where(np.isinf(bits), np.nan, bits + 0.0)


def _ceiling_of_share(share: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return 0.0 - np.log2(share) + 0.0


_CEILING = Aggregate(_ceiling, itself, "ceiling")
_CEILING_OF_SHARE = Aggregate(_ceiling_of_share, itself, "ceiling")


class _ChanceMeasure(Measure):
    """The base of measures that ask for m or more relevant passages in the top K."""

    rel: int | None = rel_parameter()
    m: int = parameter(1, Whole(1), "hits in the top K that make a success")

    def _possible(self, judged: JudgedRun) -> IntArray:
        """R if a success is possible, otherwise −1: int64[queries]."""
        relevant = judged.left.relevant(self.rel) if self.needs_corpus_size else judged.relevant(self.rel)
        short = relevant < self.m
        if judged.policy.no_relevant == "error" and short.any():
            i = int(np.flatnonzero(short)[0])
            raise InputError(
                f"{self}: query {judged.queries[i]!r} has {relevant[i]} relevant passages, but a success needs "
                f'{self.m}, and the policy is no_relevant="error"'
            )
        return np.where(short, -1, relevant)

    def _success(self, judged: JudgedRun, depths: IntArray) -> FloatArray:
        """1 or 0: float64[queries, depths]."""
        return (judged.hits_at(depths, self.rel) >= self.m).astype(np.float64)

    @property
    def _undefined(self) -> str:
        return f"no query has {self.m} or more relevant passages"


class BaselineMeasure(_ChanceMeasure):
    """The base of measures that use the random baseline."""

    needs_corpus_size: ClassVar[bool] = True
    compares_with_all_labels: ClassVar[bool] = True

    def parts_of(self, success: FloatArray, chance: FloatArray, miss: FloatArray) -> tuple[FloatArray, ...]:
        """The parts of its outcome, from the success of the lists and the success and miss of a random draw."""
        return success, chance, miss

    def _chance(self, judged: JudgedRun, depths: IntArray) -> tuple[FloatArray, FloatArray]:
        size = judged.require_corpus_size(str(self))
        relevant = self._possible(judged)
        known = relevant >= 0
        if judged.documents is not None:
            if self.m != 1:
                raise InputError(
                    f"{self}: with passages_of the random baseline is known for m=1 only, got m={self.m}: leave m out, "
                    f"or label passages, as Qrels.inherit does"
                )
            # One passage of any relevant document is a success.
            relevant = judged.relevant_in_corpus(self.rel)
        # Most queries have the same draws: N, R and the drawn passages at every depth.
        columns = [size[known], relevant[known]]
        if judged.policy.short_lists == "returned":
            columns.append(judged.returned[known])
        if depths.ndim > 1:
            columns.append(depths[known, 0])
        first, back = distinct_columns(columns)
        rows = np.flatnonzero(known)[first]
        drawn = judged.drawn_at(depths)[rows]
        # The last of the rows is for queries without a draw.
        place = np.full(len(judged), len(rows))
        place[known] = back
        chance, miss = (
            np.append(each, np.full((1, drawn.shape[1]), np.nan), axis=0)[place]
            for each in random_success(size[rows, None], relevant[rows, None], drawn, self.m)
        )
        return chance, miss


@register_measure
class Success(_ChanceMeasure):
    """1 if at least m relevant passages are in the top K, else 0. Also: hit rate, Hit@K, success_K in trec_eval.

    Formula: 1 if the top K holds m or more relevant passages, else 0
    Range: 0 or 1, their mean 0–1; higher is better.
    NaN: for a query with fewer than m relevant passages, where no retriever can succeed.
    Edge cases: A query missing from the run is a failure. A second copy of a passage is no second hit.
    Source: "The 99% Success Paradox", ICLR Blogposts 2026.
    Example: top 3 of a query holds one of its relevant passages: Success@3 = 1, Success(m=2)@3 = 0
    """

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        success = self._success(judged, depths)
        success[self._possible(judged) < 0] = np.nan
        return Outcome((success,), self._undefined)


@register_measure
class RandomSuccess(BaselineMeasure):
    """P[X ≥ m], X ~ Hypergeometric(N, R, K): how often a random draw of K passages would succeed.

    Its mean over queries gives the regime of a K: healthy below 1 − 1/e = .632, degraded from there, collapse from
    1 − e^−3 = .950.

    Formula: P[X ≥ m], X ~ Hypergeometric(N, R, K)
    Range: 0–1, with a relative error of 1e-13.
    NaN: for a query with fewer than m relevant passages, as for Success.
    Edge cases: The draw has K passages if the list is shorter, too. With an N for each query it has min(K, N).
    Source: "The 99% Success Paradox", ICLR Blogposts 2026.
    Example: N = 58 tools, R = 4 apply, K = 5 shown: 1 − C(54,5)/C(58,5) = 0.3098
    """

    higher_is_better: ClassVar[bool | None] = None

    def parts_of(self, success: FloatArray, chance: FloatArray, miss: FloatArray) -> tuple[FloatArray, ...]:
        return (chance,)

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        return Outcome(self._chance(judged, depths)[:1], self._undefined, bounds=None, baseline=0)


@register_measure
class EF(BaselineMeasure):
    """Enrichment factor: mean Success / mean RandomSuccess over the same queries.

    A ratio of means: a single query has no value.

    Formula: mean Success@K / mean RandomSuccess@K
    Range: 0–∞, 1 is chance; higher is better.
    NaN: if no query has m relevant passages, or if no draw of K can succeed (K < m).
    Edge cases: Queries with fewer than m relevant passages are left out of both means.
    Source: the enrichment factor of virtual screening; "The 99% Success Paradox", ICLR Blogposts 2026.
    Example: success .60 at K = 20 with N = 10,000 and R = 10: .60/.01983 = 30.26
    """

    ends: ClassVar[tuple[float, float]] = (0.0, np.inf)
    means_of: ClassVar[tuple[str, ...]] = ("Success", "RandomSuccess")
    per_query: ClassVar[bool] = False
    aggregate: ClassVar[Aggregate] = RATIO

    @property
    def differs_with(self) -> Measure:
        return Success(at=self.at, rel=self.rel, m=self.m)

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        chance, miss = self._chance(judged, depths)
        success = np.where(np.isnan(chance), np.nan, self._success(judged, depths))
        parts = (success, chance, miss)
        refused = refusal_of(judged, depths)
        return Outcome(parts, self._undefined, self.aggregate, baseline=1, refused=refused)

    def shuffled(self, universe: Universe) -> tuple[FloatArray, ...] | None:
        if universe.judged.documents is not None or not self.needs_corpus_size:
            return None
        relevant = universe.judged.left.relevant(self.rel)[:, None]
        return random_success(np.maximum(universe.size, 1), relevant, universe.listed, self.m)


@register_measure
class BoR(EF):
    """Bits over Random: log2(mean Success / mean RandomSuccess), over the same queries.

    With each bit, the success rate is twice as high, compared with that of a random draw of the same size. A single
    query has no value. Compare at equal K.

    With `null=lists` each query gets the list of another query in place of the draw. A retriever that shows everybody
    the same popular passages can have many bits over random, and has none over this. It is undefined for a part of the
    queries, and needs no corpus size.

    If relevant passages are unjudged, BoR is too high. If the judge of the labels graded random passages too
    (controls), `evaluate` estimates the baseline by them. The figure is then over all queries of the labels.

    Formula: log2(mean Success@K / mean RandomSuccess@K); with null=lists, log2(mean Success@K / the mean Success@K of
    all lists of other queries)
    Range: −∞ to BoR_max, in bits; 0 is chance, below 0 is worse than chance; higher is better.
    NaN: if no query has m relevant passages, or if no draw of K can succeed (K < m).
    Edge cases: −∞ if no query succeeds. Queries with fewer than m relevant passages are
    left out of both means.
    Source: "The 99% Success Paradox: When Near-Perfect Retrieval Equals Random Selection", ICLR Blogposts 2026.
    Example: success .60 at K = 20 with N = 10,000 and R = 10: log2(.60/.01983) = 4.92 bits
    """

    null: str = parameter("random", Choice(("random", "lists")), "a random draw, or the lists of the other queries")
    ends: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    aggregate: ClassVar[Aggregate] = _BITS

    @property
    def needs_corpus_size(self) -> bool:  # type: ignore[override]
        """Whether it compares with a random draw: the lists of the other queries need no corpus size."""
        return self.null == "random"

    @property
    def differs_with(self) -> Measure:
        return super().differs_with if self.null == "random" else self

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        if self.null == "random":
            return super().at_ranks(judged, depths)
        counted = self._possible(judged) >= 0
        if judged.other_lists is None:
            nothing = np.full((len(judged), len(depths)), np.nan)
            return Outcome((nothing,) * 4, OF_A_PART, _BITS_OVER_LISTS, of_all=True)
        success = self._success(judged, depths)
        weights = np.ones(len(judged)) if judged.weights is None else judged.weights.values
        ranks = judged.other_lists.ranks_of_success(judged.threshold(self.rel), self.m, counted)
        columns = [
            _against_others(success[:, i], [each[ranks[2] <= depth] for each in ranks[:2]], counted, weights)
            for i, depth in enumerate(depths.tolist())
        ]
        parts = tuple(np.stack(part, axis=1) for part in zip(*columns, strict=True))
        reason = f"no list succeeds for another query, or {self._undefined}"
        return Outcome(parts, reason, _BITS_OVER_LISTS, of_all=True)


def _against_others(
    success: FloatArray, pairs: Sequence[IntArray], counted: NDArray[np.bool_], weights: FloatArray
) -> tuple[FloatArray, ...]:
    """Success at a depth, what the lists of the others give, the least this could be, and by how much it is more.

    `pairs` are (query, owner of a list that succeeds for it). The mean of the second column is E, the expected success
    where each query gets the list of another one, drawn at random. The column of a query is e + f − E: e is what the
    other lists are worth to the query, f what its list is worth to the other queries. Both vary with the queries, and
    resampled means of the column vary as E does (Hoeffding 1948). They can fall below 0: one success among all pairs is
    the least.
    """
    query, owner = pairs
    weights = np.where(counted, weights, 0.0)
    total = weights.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        gained = np.bincount(query, weights[owner], len(counted)) / (total - weights)
        given = np.bincount(owner, (weights / (total - weights))[query], len(counted))
        # As exact as the success of its own list, so that nothing is left of two equal ones.
        gained[np.bincount(query, minlength=len(counted)) == counted.sum() - 1] = 1.0
        for _ in range(2):
            given = given - weights @ given / total
        floor = np.full(len(counted), weights @ gained / total / max(1, len(query)))
    known = counted & (len(query) > 0)
    columns = success, gained + given, floor, (gained - success) + given
    return tuple(np.where(known, column, np.nan) for column in columns)


@register_measure
class BoR_max(BaselineMeasure):
    """The ceiling of BoR: −log2(mean RandomSuccess), the BoR of a perfect retriever at this K.

    Near 0 no retriever can show selectivity. Not the mean of the ceilings of single queries.

    Formula: −log2(mean RandomSuccess@K)
    Range: 0–∞, in bits.
    NaN: if no query has m relevant passages, or if no draw of K can succeed (K < m).
    Edge cases: 0 if K is the whole corpus. Queries with fewer than m relevant passages are left out of both means.
    Source: "The 99% Success Paradox", ICLR Blogposts 2026.
    Example: N = 58, R = 4: 1.69 bits at K = 5, 0.28 at K = 20, 0 at K = 58
    """

    ends: ClassVar[tuple[float, float]] = (0.0, np.inf)
    means_of: ClassVar[tuple[str, ...]] = ("RandomSuccess",)
    higher_is_better: ClassVar[bool | None] = None
    per_query: ClassVar[bool] = False
    aggregate: ClassVar[Aggregate] = _CEILING

    def parts_of(self, success: FloatArray, chance: FloatArray, miss: FloatArray) -> tuple[FloatArray, ...]:
        return chance, miss

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        return Outcome(self._chance(judged, depths), self._undefined, self.aggregate, bounds=None, baseline=0)


@register_measure
class BoR_opt(Measure):
    """log2(N/K): the ceiling of BoR if every query had one relevant passage.

    Needs no judgments.

    Formula: log2(N/K); with an N for each query −log2(mean K/N)
    Range: 0–∞, in bits.
    NaN: for a query with an empty corpus or draw.
    Edge cases: With one N for all queries, K > N is an error; with an N for each query the draw has min(K, N) passages.
    Source: "The 99% Success Paradox", ICLR Blogposts 2026.
    Example: N = 5,183, K = 10: log2(518.3) = 9.02 bits
    """

    ends: ClassVar[tuple[float, float]] = (0.0, np.inf)
    means_of: ClassVar[tuple[str, ...]] = ("K/N",)
    needs_corpus_size: ClassVar[bool] = True
    higher_is_better: ClassVar[bool | None] = None
    per_query: ClassVar[bool] = False

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        size = judged.require_corpus_size(str(self))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = judged.drawn_at(depths) / size[:, None]
        return Outcome((share,), "the corpus is empty", _CEILING_OF_SHARE, bounds=None)


@register_measure
class BoR_recall(Measure):
    """log2(mean recall / mean random recall): BoR with recall in place of success.

    Recall@K is the share of a query's relevant passages that are in the top K; for a random draw it is K/N. With
    `passages_of` it is the share of its relevant documents, and for a random draw the mean over these of the
    probability that one of a document's n passages is drawn, P[X ≥ 1], X ~ Hypergeometric(N, n, K).

    Formula: log2(mean R@K / mean(K/N))
    Range: −∞ to log2(N/K), in bits; 0 is chance; higher is better.
    NaN: for a query without relevant passages.
    Edge cases: −∞ if nothing relevant was found for any query.
    Source: "The 99% Success Paradox", ICLR Blogposts 2026.
    Example: recall .857 at K = 1000 of N = 8,841,823: log2(.857·8841.8) = 12.89 bits
    """

    ends: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    means_of: ClassVar[tuple[str, ...]] = ("recall", "random recall")
    compares_with_all_labels: ClassVar[bool] = True
    needs_corpus_size: ClassVar[bool] = True
    per_query: ClassVar[bool] = False
    rel: int | None = rel_parameter()

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        size = judged.require_corpus_size(str(self))[:, None]
        relevant = judged.left.relevant(self.rel)
        known = (relevant > 0)[:, None]
        drawn = judged.drawn_at(depths)
        with np.errstate(invalid="ignore", divide="ignore"):
            recall = np.where(known, judged.hits_at(depths, self.rel) / relevant[:, None], np.nan)
            chance = np.where(known, drawn / size, np.nan)
            miss = np.where(known, (size - drawn) / size, np.nan)
        if judged.documents is not None:
            relevant_documents = judged.relevant_documents(judged.documents, self.rel)
            chance, miss = (
                np.where(known, mean, np.nan) for mean in _mean_over_documents(relevant_documents, size, drawn)
            )
        parts = (recall, chance, miss)
        refused = refusal_of(judged, depths)
        return Outcome(parts, "no query has a relevant passage", _BITS, baseline=1, refused=refused)


def _mean_over_documents(documents: Documents, size: IntArray, drawn: IntArray) -> tuple[FloatArray, FloatArray]:
    """The probability that a random draw holds a passage of a document, and that it holds none.

    The means over each query's documents; `size` is int64[queries, 1], `drawn` is int64[queries, depths].
    """
    row = documents.query
    of_documents = random_success(size[row], documents.passages[:, None], drawn[row])
    number = np.bincount(row, minlength=len(size))[:, None]
    means = []
    for probability in of_documents:
        total = np.zeros(drawn.shape)
        np.add.at(total, row, probability)
        means.append(total / np.maximum(number, 1))
    return means[0], means[1]


@register_measure
class Lambda(Measure):
    """λ = K·R/N: how many relevant passages a random draw of K is expected to hold.

    If one hit makes a success and all queries have the same R, a random draw succeeds in about 1 − e^−λ of the queries.

    Formula: K·R/N
    Range: 0–∞.
    NaN: for a query without a relevant passage.
    Edge cases: The mean is over the queries with a relevant passage.
    Source: "The 99% Success Paradox", ICLR Blogposts 2026.
    Example: K = 58 of N = 58 with R = 4: lambda = 4
    """

    name: ClassVar[str] = "lambda"
    ends: ClassVar[tuple[float, float]] = (0.0, np.inf)
    compares_with_all_labels: ClassVar[bool] = True
    needs_corpus_size: ClassVar[bool] = True
    higher_is_better: ClassVar[bool | None] = None
    rel: int | None = rel_parameter()

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        size = judged.require_corpus_size(str(self))[:, None]
        relevant = judged.relevant_in_corpus(self.rel)[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = np.where(relevant > 0, judged.drawn_at(depths) * (relevant / size), np.nan)
        return Outcome((expected,), "no query has a relevant passage", bounds=None, baseline=0)


#: If a random draw succeeds in this share of the queries or more, the ceiling is at most .662 bits.
DEGRADED_FROM = float(-np.expm1(-1))
#: If a random draw succeeds in this share of the queries or more, the ceiling is at most .0737 bits.
COLLAPSE_FROM = float(-np.expm1(-3))


def regime(random_success: float) -> str:
    """The regime of a mean RandomSuccess: `healthy`, `degraded` from 1 − e^−1, `collapse` from 1 − e^−3.

    If one hit makes a success, all queries have the same R, and the corpus is large, these limits are lambda 1 and 3,
    as published. Otherwise lambda does not determine the success of a random draw, so the limits are on RandomSuccess.
    Of one that is not known (NaN) nothing is to be warned of: `healthy`.
    Source: "The 99% Success Paradox", ICLR Blogposts 2026.

    >>> regime(0.31), regime(0.826), regime(1.0), regime(float("nan"))
    ('healthy', 'degraded', 'collapse', 'healthy')
    """
    if random_success >= COLLAPSE_FROM:
        return "collapse"
    return "degraded" if random_success >= DEGRADED_FROM else "healthy"


@dataclass(frozen=True, slots=True)
class Delta:
    """How BoR changes from depth K1 to K2, in bits.

    observed = BoR(K2) − BoR(K1); predicted = log2(P2/P1) − m·log2(K2/K1), the change that sparse
    relevance implies for the observed success rates; flat = −m·log2(K2/K1), the change if success stayed the same.
    Source: "The 99% Success Paradox", ICLR Blogposts 2026.
    """

    observed: float
    predicted: float
    flat: float


def delta_bor(success: tuple[float, float], bor: tuple[float, float], depths: tuple[int, int], m: int = 1) -> Delta:
    """ΔBoR between two depths in bits: observed, predicted and flat.

    >>> delta_bor((0.95, 1.0), (4.0, 2.5), (10, 30)).predicted.__round__(2)
    -1.51
    >>> delta_bor((0.5, 0.5), (1.0, 1.0), (10, 10))
    Delta(observed=0.0, predicted=0.0, flat=0.0)
    """
    flat = -m * float(np.log2(depths[1] / depths[0])) + 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = float(np.log2(success[1]) - np.log2(success[0]))
        observed = float(np.subtract(bor[1], bor[0]))
    return Delta(observed, gain + flat, flat)


def success_of(measures: Iterable[Measure]) -> Success:
    """Success with the `rel` and `m` of the first BoR, or of the first Success if there is no BoR."""
    of_chance = [each for each in measures if isinstance(each, (EF, Success))]
    first = min(of_chance, key=lambda each: each.name != "BoR", default=Success())
    return Success(rel=first.rel, m=first.m)
