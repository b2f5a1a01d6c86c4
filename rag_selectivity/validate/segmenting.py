"""Segments of the sets by K/N_p: which measure follows the answers if there are fewer slots than relevant passages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np

from rag_selectivity.measures.base import Measure, Real
from rag_selectivity.results.slices import FEWEST as FEW
from rag_selectivity.results.validation import QUERIES, Chosen, Following, Segment
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.correlation import (
    FEWEST,
    KENDALL,
    PEARSON,
    SPEARMAN,
    Distribution,
    Series,
    correlated,
)
from rag_selectivity.statistics.paired import holm
from rag_selectivity.validate.choosing import choose, chosen_of
from rag_selectivity.validate.measures import depth_of
from rag_selectivity.validate.sets import Answered, AnsweredRun, joined
from rag_selectivity.wording import counted, enumeration, number

#: What the recall-free paper advises on either side of K/N_p = 1.
BELOW_ONE, FROM_ONE = "T", "nDCG"


def segments_of(
    runs: Sequence[AnsweredRun],
    measures: Sequence[Measure],
    borders: Sequence[float],
    *,
    bootstrap: Bootstrap,
    folds: int,
) -> list[Segment]:
    """The segments, from the smallest K/N_p on; none if the scores do not say from how many passages answers were made.

    The sets of all K are taken together, as in the paper: a query with answers from several K has several sets, which
    are drawn together.
    """
    bases = _bases(measures)
    if not bases or not any(k is not None for run in runs for k in run.scores):
        return []
    limits = [0.0, *borders, math.inf]
    return [
        _Segment(runs, bases, low, high, bootstrap, folds).segment()
        for low, high in pairwise(limits)
        if any(len(part) for run in runs for part in _parts(run, low, high))
    ]


def _bases(measures: Sequence[Measure]) -> list[Measure]:
    """The measures without their depths that can be taken at any K."""
    return list(
        dict.fromkeys(
            measure.without_depth
            for measure in measures
            if depth_of(measure) is not None and not isinstance(measure.cutoff, Real)
        )
    )


def _parts(run: AnsweredRun, low: float, high: float) -> list[Answered]:
    parts = []
    for k, scores in run.scores.items():
        if k is None:
            continue
        ratios = run.ratios(k)
        inside = ~np.isnan(scores) & (ratios >= low) & (ratios < high)
        parts.append(Answered(run, k, k, np.flatnonzero(inside)))
    return parts


class _Segment:
    """The correlations of one segment."""

    def __init__(
        self,
        runs: Sequence[AnsweredRun],
        bases: Sequence[Measure],
        low: float,
        high: float,
        bootstrap: Bootstrap,
        folds: int,
    ) -> None:
        self.bases, self.low, self.high, self.bootstrap, self.folds = bases, low, high, bootstrap, folds
        by_run = [[part for part in _parts(run, low, high) if len(part)] for run in runs]
        self.parts = [some for some in by_run if some]
        self.sets = sum(len(part) for some in self.parts for part in some)
        self.queries = len(np.unique(np.concatenate([part.units for some in self.parts for part in some])))

    def segment(self) -> Segment:
        """The rows, the chosen parameters, and what they show."""
        level, series = self.bootstrap.level, [self._series(base) for base in self.bases]
        choices = [
            choose(
                base,
                self.parts,
                folds=self.folds,
                seed=self.bootstrap.seed,
            )
            for base in self.bases
        ]
        every = [each for some in series for each in some]
        ends = np.cumsum([0, *(len(some) for some in series)]).tolist()
        extra = [each for choice in choices if choice is not None for each in (*choice.own, *choice.outside)]
        found = correlated([*every, *extra], draws=self.bootstrap.resamples, seed=self.bootstrap.seed)
        rows, oriented = [], {}
        for base, start, stop in zip(self.bases, ends, ends[1:], strict=False):
            by_kind = {
                kind: Distribution.mean([each[kind] for each in found[start:stop]])
                for kind in (SPEARMAN, PEARSON, KENDALL)
            }
            units = [each.units for each in every[start:stop]]
            n = len(np.unique(np.concatenate(units))) if units else 0
            missing = self.sets - sum(len(each) for each in units)
            spearman, pearson, kendall = (by_kind[kind].interval(level) for kind in (SPEARMAN, PEARSON, KENDALL))
            p = by_kind[SPEARMAN].p
            rows.append(Following(str(base), None, None, QUERIES, n, missing, spearman, pearson, kendall, p=p))
            oriented[str(base)] = (
                by_kind[SPEARMAN]
                if base.higher_is_better or by_kind[SPEARMAN].reason
                else replace(by_kind[SPEARMAN], value=-by_kind[SPEARMAN].value, drawn=-by_kind[SPEARMAN].drawn)
            )
        chosen: list[Chosen] = []
        at = len(every)
        for base, choice in zip(self.bases, choices, strict=True):
            if choice is None:
                continue
            own = range(at, at + len(choice.own))
            outside = range(own.stop, own.stop + len(choice.outside))
            at = outside.stop
            chosen.append(chosen_of(str(base), None, choice, own, outside, found, level))
        advised = BELOW_ONE if self.high <= 1 else FROM_ONE if self.low >= 1 else ""
        summary = self._summary(oriented, {row.measure: row.spearman.value for row in rows}, advised)
        return Segment(self.low, self.high, self.sets, self.queries, tuple(rows), tuple(chosen), advised, summary)

    def _series(self, base: Measure) -> list[Series]:
        """The figures of each run at all its K beside the scores."""
        found = []
        for some in self.parts:
            columns = [Series.of(part.figures(base), part.scores, part.units) for part in some]
            found.append(joined(columns))
        return found

    def _summary(self, oriented: dict[str, Distribution], values: dict[str, float], advised: str) -> str:
        """Which measure has the highest correlation here, and what it is shown to be better than.

        `oriented` has the correlations with the sign turned where less of a measure is better, `values` as they are.
        """
        known = {name: each for name, each in oriented.items() if not each.reason}
        published = f" The recall-free paper advises {advised} for such sets." if advised else ""
        if not known:
            reason = next(iter(oriented.values())).reason if oriented else f"fewer than {FEWEST} queries"
            return f"No measure has a correlation here: {reason}.{published}"
        best = max(known, key=lambda name: known[name].value)
        pairs = [(one, other, known[one].minus(known[other])) for one, other in combinations(known, 2)]
        corrected = holm(np.array([math.nan if gap.same else gap.p for _, _, gap in pairs]))
        beaten = []
        for (one, other, gap), p in zip(pairs, corrected.tolist(), strict=True):
            if best in (one, other) and p <= 1 - self.bootstrap.level and (gap.value > 0) == (one == best):
                beaten.append(other if one == best else one)
        of_sets = f"{counted(self.sets, 'set')} of {counted(self.queries, 'query', 'queries')}"
        if self.queries < FEW:
            published = f" Fewer than {FEW} queries say little.{published}"
        if len(oriented) == 1:
            return f"{best} has a correlation of {number(values[best])} in these {of_sets}.{published}"
        strongest = "strongest" if values[best] * known[best].value < 0 else "highest"
        first = f"{best} has the {strongest} correlation in these {of_sets} ({number(values[best])})"
        if beaten:
            return f"{first}, and it is shown to follow the answers better than {enumeration(beaten)}.{published}"
        return f"{first}, but it is not shown to follow the answers better than another measure.{published}"
