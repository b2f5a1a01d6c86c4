"""Which K: the last rank at which one more passage still brings enough evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.draws import resample_counts
from rag_selectivity.inference.interval_methods import Estimand
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.measures.chance import success_of
from rag_selectivity.measures.plan import named_measures
from rag_selectivity.measures.utility import Evidence
from rag_selectivity.results.decision import AdvisedK, Source
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.placebo import FOLLOWING, labelled_down_to

#: What one more passage must bring: twenty of them one decisive passage.
WORTH = 1 / 20
#: Sums of the same figures in another order differ by less.
_SAME = 1e-12
#: The K of a decision if neither the user nor the rule names one. Of effectively fewer queries than the second number,
#: K has no interval: it would hold the true K too rarely.
_USUAL_K, _FEWEST = 10, 15


@dataclass(frozen=True)
class EvidenceCurve:
    """The evidence of each query with any at K = 1, 2, …, and what one more passage must bring."""

    outcome: Outcome
    queries: tuple[str, ...]
    worth: float

    @classmethod
    def of(cls, judged: JudgedRun, measure: Evidence, worth: float) -> EvidenceCurve:
        """The curve of a run at every K that could be advised: never more than `enough` / `worth`."""
        ranks = np.arange(1, max(1, min(int(judged.returned.max(initial=1)), int(measure.enough / worth + _SAME))) + 1)
        outcome = measure.outcome(judged, ranks)
        known = outcome.defined[:, 0]
        return cls(outcome.over(known), tuple(np.array(judged.queries, object)[known].tolist()), worth)

    @cached_property
    def mean(self) -> FloatArray:
        """The mean over the queries at each K: float64[ranks]."""
        return self.outcome.value()

    def at(self, K: int) -> FloatArray:
        """The evidence of each query at K; beyond the ranks that were measured it is that of the last one."""
        return np.asarray(self.outcome.parts[0][:, min(K, len(self.mean)) - 1])

    def by_unit(self, bootstrap: Bootstrap) -> Estimand:
        """The sums of each query, or of each cluster; its mask has the weights."""
        return Estimand.of(self.outcome, bootstrap.units(self.queries))

    def resampled(self, bootstrap: Bootstrap) -> IntArray:
        """K in each resample of the queries, or of their clusters."""
        means = self.by_unit(bootstrap)
        # A query counts at every rank or at none: the first column of the sizes is all of them.
        columns = np.hstack([means.parts[0], means.mask[:, :1]])
        some = bootstrap.for_queries(len(columns))
        drawn = (counts.T @ columns for counts in resample_counts(some.seed, some.resamples, len(columns)))
        return np.concatenate([last_worthwhile(sums[:, :-1] / sums[:, -1:], self.worth) for sums in drawn])


def last_worthwhile(evidence: FloatArray, worth: float) -> IntArray:
    """The last rank at which the isotonic regression of what each rank adds is at least `worth`; 0 if none is.

    `evidence` is cumulative along its last axis. The regression is the slope of the least concave function above it, so
    that the last rank with this slope is the last one that maximises evidence − worth · rank (Barlow et al. 1972).

    >>> int(last_worthwhile(np.array([0.5, 0.6, 0.8, 0.82]), 0.1))
    3
    """
    gains = evidence - worth * np.arange(1, evidence.shape[-1] + 1)
    gains = np.concatenate([np.zeros((*gains.shape[:-1], 1)), gains], axis=-1)
    near = gains >= gains.max(axis=-1, keepdims=True) - _SAME
    return np.asarray(gains.shape[-1] - 1 - near[..., ::-1].argmax(axis=-1))


def which_k(judged: JudgedRun, bootstrap: Bootstrap | None = Bootstrap(), worth: float = WORTH) -> AdvisedK:
    """The K of a run: the last rank at which one more passage is worth reading.

    Each rank adds some evidence on average over the queries whose labels hold any. Made non-increasing by isotonic
    regression, this is what one more passage brings. K is the last rank that brings at least `worth`.

    Parameters
    ----------
    judged : JudgedRun
    bootstrap : Bootstrap or None
        The interval is that of K in its resamples of the queries. None leaves it out.
    worth : float
        The least evidence, in decisive passages, that the last passage must bring.

    Returns
    -------
    AdvisedK
        `value` is None if no label is evidence, or if no rank brings `worth`. An end of the interval is None where it
        is open: the labels or the lists end before.

    References
    ----------
    Barlow, Bartholomew, Bremner and Brunk 1972, Statistical Inference under Order Restrictions; Hesterberg 2015, The
    American Statistician 69 (how far out the ends of an interval by few queries are).

    >>> from rag_selectivity.judged.joining import join
    >>> from rag_selectivity.judged.qrels import Qrels
    >>> from rag_selectivity.judged.run import Run
    >>> labels = {f"q{i}": ["a", "b"] for i in range(40)}
    >>> advised = which_k(join(Qrels.of(labels), Run.of({q: ["a", "x", "b", *"cdefghi"] for q in labels})))
    >>> advised.value, advised.low, advised.high
    (3, 3, 3)
    """
    return _advised(judged, Evidence(), EvidenceCurve.of(judged, Evidence(), worth), bootstrap)


@dataclass(frozen=True)
class Advice:
    """The K of each run, with the curves behind it.

    Attributes
    ----------
    curves : {run: EvidenceCurve}
    by_run : {run: AdvisedK}
    leader : str
        The run with the most evidence at its own K; of several with as much, the one with the least K.
    K : int
        That of the leader, or the last rank that the lists of another run reach if that is less, but at least half of
        it; without advice 10, or the longest list if that is shorter.
    """

    curves: Mapping[str, EvidenceCurve]
    by_run: Mapping[str, AdvisedK]
    leader: str
    K: int

    @classmethod
    def of(cls, judged: Mapping[str, JudgedRun], measures: Iterable[Any], bootstrap: Bootstrap | None) -> Advice:
        """The advice about runs; what counts is what the measures count."""
        success = success_of(named_measures([*measures]))
        measure = Evidence(rel=success.rel, enough=max(3, success.m))
        curves = {name: EvidenceCurve.of(run, measure, WORTH) for name, run in judged.items()}
        by_run = {name: _advised(run, measure, curves[name], bootstrap) for name, run in judged.items()}
        evidence = {name: curves[name].mean[each.value - 1] if each.value else -1.0 for name, each in by_run.items()}
        # A reranker often holds as much as its candidates, at a smaller K; their order in a dict says nothing.
        most = [name for name in judged if evidence[name] >= max(evidence.values()) - _SAME]
        leader = min(most, key=lambda name: by_run[name].value or 0)
        advised = by_run[leader].value or min(_USUAL_K, max(int(x.returned.max(initial=1)) for x in judged.values()))
        # Below the end of another run's lists only empty slots are compared; one of much shorter lists decides nothing.
        ends = (end_of_lists(run) for name, run in judged.items() if name != leader)
        return cls(curves, by_run, leader, min([advised, *(end for end in ends if 2 * end >= advised)]))

    def taken(self, given: int | None, shown: int | None) -> tuple[int, Source]:
        """The K of a decision, and where it comes from; `shown` is the most that live retrievals showed."""
        if shown and given in (None, shown):
            return shown, "shown"
        advised = self.by_run[self.leader].value
        source: Source = "assumed" if not advised else "advised" if advised == self.K else "reached"
        return (int(given), "given") if given else (self.K, source)


def end_of_lists(judged: JudgedRun) -> int:
    """The last rank down to which at least half of the lists with any passage go; 0 without one."""
    lengths = judged.returned
    return int(np.quantile(lengths[lengths > 0], 0.5, method="higher")) if lengths.any() else 0


def _advised(judged: JudgedRun, measure: Evidence, curve: EvidenceCurve, bootstrap: Bootstrap | None) -> AdvisedK:
    """The K of a run by its curve, with the upper end of its interval open where labels or lists end before."""
    if not curve.queries:
        return AdvisedK(reason="no label of these queries is evidence")
    mean, count = curve.mean, len(curve.queries)
    value, evidence = int(last_worthwhile(mean, curve.worth)), tuple(mean.tolist())
    less = "evidence worth less than one decisive" if judged.scale.name == "utility" and measure.rel is None else ""
    most = f", counting at most {measure.enough:g} a query" if (curve.at(value) >= measure.enough).any() else ""
    brings = f"{less or 'less than one relevant'} passage in {round(1 / curve.worth)} queries on average{most}"
    if value == 0:
        return AdvisedK(reason=f"flat: even top ranks each add {brings}", flat=True, queries=count, evidence=evidence)
    added, half = np.diff(mean, prepend=0.0), len(mean) // 2
    flat = value == len(mean) > 1 and added[:half].mean() - added[half:].mean() < curve.worth
    low = high = None
    if bootstrap is not None and (size := effective_size(curve.by_unit(bootstrap).mask[:, 0])) >= _FEWEST:
        # Resamples of few queries vary too little, by as much as the normal distribution beside Student's t.
        tail = special.ndtr(special.stdtrit(size - 1, (1 - bootstrap.level) / 2) * np.sqrt(size / (size - 1)))
        ends = np.quantile(curve.resampled(bootstrap), [tail, 1 - tail], method="inverted_cdf")
        low, high = (max(1, int(end)) for end in ends)
    reason = "flat: each rank holds about as much as the first" if flat else f"each further rank adds {brings}"
    reached, labelled, lengths = max(value, high or 0), labelled_down_to(judged, measure), judged.returned
    listed = end_of_lists(judged)
    is_whole = judged.corpus_size is not None and listed >= int(judged.corpus_size.min())
    if labelled and labelled < listed and reached >= labelled:
        last = min(labelled + FOLLOWING, int(lengths.max()))
        ended = f"below rank {labelled} most slots have no label; grade down to rank {last} to know more"
    else:
        lists = "labelled parts of the lists" if judged.policy.unjudged == "condense" else "lists"
        ended = f"the {lists} end at rank {listed}, so more is not tested" if reached >= listed and not is_whole else ""
    return AdvisedK(value, low, None if ended else high, ended or reason, flat, bool(ended), count, evidence)
