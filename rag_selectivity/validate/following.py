"""Rows of correlations: which series of figures and scores each averages, and what they show."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.correlation import KINDS, PARTIAL, SPEARMAN, Distribution, Series, correlated
from rag_selectivity.inference.paired import holm
from rag_selectivity.measures.base import Measure
from rag_selectivity.results.workflows import FALLS, NOT_SHOWN, RISES, Following, FollowingDifference


@dataclass(frozen=True, eq=False)
class Row:
    """A measure beside answers.

    Attributes
    ----------
    series : sequence of Series
        One for each run; their correlations are averaged.
    closed_book : sequence of Series
        The same with the scores of answers without passages; empty if nothing is to be taken out.
    corrected : bool
        Whether it is one of the family that is corrected: the mean over runs, or the only run.
    found : {kind: Distribution}
        The correlations, once they are known.
    """

    measure: Measure
    k: int | None
    run: str | None
    over: str
    series: Sequence[Series]
    undefined: int
    closed_book: Sequence[Series] = ()
    corrected: bool = False
    found: Mapping[str, Distribution] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """The queries of one run, or the different ones (or clusters) of several runs."""
        if self.run is not None:
            return len(self.series[0].figures)
        return len(np.unique(np.concatenate([each.units for each in self.series])))

    @property
    def oriented(self) -> Distribution:
        """Spearman's correlation, whose sign is turned if less of the measure is better."""
        rho = self.found[SPEARMAN]
        if self.measure.higher_is_better or rho.reason:
            return rho
        return replace(rho, value=-rho.value, drawn=-rho.drawn)

    def following(self, level: float, p_holm: float = math.nan) -> Following:
        """The correlations with their intervals; in the corrected family, also what they show."""
        rho, verdict = self.found[SPEARMAN], NOT_SHOWN if self.corrected else ""
        if p_holm <= 1 - level:
            verdict = RISES if rho.value > 0 else FALLS
        ends: dict[str, Any] = {kind: each.interval(level) for kind, each in self.found.items()}
        about = str(self.measure), self.run, self.k, self.over, self.n, self.undefined
        return Following(*about, **ends, p=rho.p, p_holm=p_holm, verdict=verdict)


def with_correlations(rows: Sequence[Row], bootstrap: Bootstrap) -> list[Row]:
    """The rows with their correlations, all under the same random weights."""
    each = list(dict.fromkeys(series for row in rows for series in (*row.series, *row.closed_book)))
    of = dict(zip(each, correlated(each, draws=bootstrap.resamples, seed=bootstrap.seed), strict=True))
    known = []
    for row in rows:
        found = {kind: Distribution.mean([of[series][kind] for series in row.series]) for kind in KINDS}
        if row.closed_book:
            found[PARTIAL] = Distribution.mean([of[series][PARTIAL] for series in row.closed_book])
        known.append(replace(row, found=found))
    return known


def differences_of(rows: Iterable[Row], level: float) -> list[FollowingDifference]:
    """Each pair of measures at the same K, by Holm's correction over all pairs."""
    pairs = [
        (one, other, one.oriented.minus(other.oriented)) for one, other in combinations(rows, 2) if one.k == other.k
    ]
    pairs = [each for each in pairs if not each[2].reason]
    tested = [math.nan if gap.same else gap.p for _, _, gap in pairs]
    differences = []
    for (one, other, gap), p, p_holm in zip(pairs, tested, holm(np.array(tested)).tolist(), strict=True):
        verdict = NOT_SHOWN
        # A measure that goes the wrong way follows nothing better than one that goes further the wrong way.
        if p_holm <= 1 - level and max(one.oriented.value, other.oriented.value) > 0:
            verdict = "follows better" if gap.value > 0 else "follows worse"
        names = str(one.measure), str(other.measure)
        differences.append(FollowingDifference(*names, gap.interval(level), p, p_holm, verdict))
    return differences


def beaten_by(differences: Iterable[FollowingDifference]) -> dict[str, list[str]]:
    """{measure: those that it is shown to follow the answers better than}."""
    beaten: dict[str, list[str]] = {}
    for each in differences:
        if each.verdict != NOT_SHOWN:
            better, worse = (each.measure, each.other) if each.difference.value > 0 else (each.other, each.measure)
            beaten.setdefault(better, []).append(worse)
    return beaten
