"""Rows of correlations: which series of figures and scores each averages, and what they show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.correlation import KINDS, PARTIAL, SPEARMAN, Distribution, Series, correlated
from rag_selectivity.inference.paired import holm
from rag_selectivity.measures.base import Measure
from rag_selectivity.results.workflows import FALLS, NOT_SHOWN, RISES, Following, FollowingDifference

#: The correlations of each series by kind.
Found = Mapping[Series, Mapping[str, Distribution]]


@dataclass(frozen=True, eq=False)
class Row:
    """A measure beside answers, before its correlations are known.

    Attributes
    ----------
    series : sequence of Series
        One for each run; their correlations are averaged.
    closed_book : sequence of Series
        The same with the scores of answers without passages; empty if nothing is to be taken out.
    """

    measure: Measure
    k: int | None
    run: str | None
    over: str
    series: Sequence[Series]
    undefined: int
    closed_book: Sequence[Series] = ()

    @property
    def n(self) -> int:
        """The queries of one run, or the different ones (or clusters) of several runs."""
        if self.run is not None:
            return len(self.series[0].figures)
        return len(np.unique(np.concatenate([each.units for each in self.series])))

    def following(self, found: Found, level: float, p_holm: float | None = None) -> Following:
        """The correlations; with a corrected p-value, also what they show."""
        spearman, pearson, kendall = (mean_of(found, self.series, kind) for kind in KINDS)
        verdict = "" if p_holm is None else NOT_SHOWN
        if p_holm is not None and p_holm <= 1 - level:
            verdict = RISES if spearman.value > 0 else FALLS
        return Following(
            measure=str(self.measure),
            run=self.run,
            k=self.k,
            over=self.over,
            n=self.n,
            undefined=self.undefined,
            spearman=spearman.interval(level),
            pearson=pearson.interval(level),
            kendall=kendall.interval(level),
            partial=mean_of(found, self.closed_book, PARTIAL).interval(level) if self.closed_book else None,
            p=spearman.p,
            p_holm=math.nan if p_holm is None else p_holm,
            verdict=verdict,
        )

    def oriented(self, found: Found) -> Distribution:
        """Spearman's correlation, whose sign is turned if less of the measure is better."""
        rho = mean_of(found, self.series)
        if self.measure.higher_is_better or rho.reason:
            return rho
        return replace(rho, value=-rho.value, drawn=-rho.drawn)


def correlations_of(rows: Iterable[Row], bootstrap: Bootstrap) -> Found:
    """The correlations of all series under the same random weights."""
    each = list(dict.fromkeys(series for row in rows for series in (*row.series, *row.closed_book)))
    return dict(zip(each, correlated(each, draws=bootstrap.resamples, seed=bootstrap.seed), strict=True))


def mean_of(found: Found, series: Iterable[Series], kind: str = SPEARMAN) -> Distribution:
    """The mean of the correlations of some series."""
    return Distribution.mean([found[each][kind] for each in series])


def differences_of(rows: Sequence[Row], found: Found, level: float) -> list[FollowingDifference]:
    """Each pair of measures at the same K, by Holm's correction over all pairs."""
    oriented = [(row, row.oriented(found)) for row in rows]
    pairs = [
        (str(one.measure), str(other.measure), left.minus(right))
        for (one, left), (other, right) in combinations(oriented, 2)
        if one.k == other.k and not (left.reason or right.reason)
    ]
    tested = [math.nan if gap.same else gap.p for _, _, gap in pairs]
    differences = []
    for (one, other, gap), p, p_holm in zip(pairs, tested, holm(np.array(tested)).tolist(), strict=True):
        verdict = NOT_SHOWN
        if p_holm <= 1 - level:
            verdict = "follows better" if gap.value > 0 else "follows worse"
        differences.append(FollowingDifference(one, other, gap.interval(level), p, p_holm, verdict))
    return differences


def beaten_by(differences: Iterable[FollowingDifference]) -> dict[str, list[str]]:
    """{measure: those that it is shown to follow the answers better than}."""
    beaten: dict[str, list[str]] = {}
    for each in differences:
        if each.verdict != NOT_SHOWN:
            better, worse = (each.measure, each.other) if each.difference.value > 0 else (each.other, each.measure)
            beaten.setdefault(better, []).append(worse)
    return beaten
