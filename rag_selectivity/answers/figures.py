"""Figures of scored answers: means, and contrasts over the queries that have both answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_selectivity.measures.answers import UNDEFINED, ScoreKind, accuracies
from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.results.answers import (
    BEST_FIRST,
    BITS,
    CLOSED_BOOK,
    DEPTH,
    IDEAL,
    JUNK,
    LIFT,
    ORDER,
    RANDOM,
    RUN,
    SHARE,
    SLOPE,
    Contrast,
    Shown,
)
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.paired import holm, paired_difference
from rag_selectivity.statistics.share_of_lift import share_of_lift
from rag_selectivity.tables.ids import IntArray

_AWAY = 2.0
_ROUNDING = 1e-13


@dataclass(frozen=True, slots=True)
class Scored:
    """One score of all answers.

    Attributes
    ----------
    kind : ScoreKind
    queries : tuple of str
    values : {what was shown: float64[queries]}
        NaN where a query has no answer, or its score is undefined.
    """

    kind: ScoreKind
    queries: tuple[str, ...]
    values: Mapping[Shown, FloatArray]

    def outcome(self, shown: Shown) -> Outcome:
        """The scores of what was shown, for means and differences."""
        return Outcome((self.values[shown][:, None],), UNDEFINED, bounds=(self.kind.low, self.kind.high))

    def log_outcome(self, shown: Shown) -> Outcome:
        """The scores of what was shown, for the logarithm of an accuracy."""
        return accuracies(self.values[shown][:, None])

    @property
    def of_runs(self) -> list[Shown]:
        """The lists of runs, best passage first."""
        return [shown for shown in self.values if shown.is_run and shown.order == BEST_FIRST]


def estimates(scored: Scored, bootstrap: Bootstrap) -> dict[Shown, Estimate]:
    """The mean of a score for all that was shown, with its interval."""
    shown = list(scored.values)
    outcomes = [scored.outcome(each) for each in shown]
    ends = bootstrap.intervals(outcomes, scored.queries)
    found = {}
    for each, outcome, (low, high) in zip(shown, outcomes, ends, strict=True):
        n = int(outcome.defined.sum())
        reason = None if n else UNDEFINED
        value = float(outcome.value()[0])
        found[each] = Estimate(value, float(low[0]), float(high[0]), n, len(scored.queries), reason)
    return found


def contrasts(scored: Scored, bootstrap: Bootstrap, baseline: str | None = None) -> list[Contrast]:
    """All contrasts that the answers allow, with Holm's correction within each kind."""
    about = _Contrasts(scored, bootstrap, bootstrap.units(scored.queries))
    found = [
        *about.lifts(),
        *about.shares(),
        *about.bits(),
        *about.depths(),
        *about.runs(baseline),
        *about.orders(),
        *about.slopes(),
    ]
    return list(_adjusted(found))


def _adjusted(found: Sequence[Contrast]) -> Iterator[Contrast]:
    for kind in dict.fromkeys(each.kind for each in found):
        of_kind = [each for each in found if each.kind == kind]
        p = holm(np.array([each.p for each in of_kind]))
        yield from (replace(each, p_adjusted=float(value)) for each, value in zip(of_kind, p, strict=True))


@dataclass(frozen=True, slots=True)
class _Contrasts:
    scored: Scored
    bootstrap: Bootstrap
    units: IntArray | None

    def lifts(self) -> Iterator[Contrast]:
        closed = Shown(CLOSED_BOOK, 0)
        if closed in self.scored.values and not self.scored.kind.needs_passages:
            others = [Shown(IDEAL, None), *(each for each in self.scored.values if each.run == RANDOM)]
            for shown in [*self.scored.of_runs, *(each for each in others if each in self.scored.values)]:
                yield self._difference(LIFT, shown, closed)

    def shares(self) -> Iterator[Contrast]:
        closed, ideal = Shown(CLOSED_BOOK, 0), Shown(IDEAL, None)
        kind, values = self.scored.kind, self.scored.values
        if closed not in values or ideal not in values or kind.needs_passages or not kind.higher_is_better:
            return
        for shown in self.scored.of_runs:
            found = share_of_lift(
                values[shown],
                values[closed],
                values[ideal],
                (kind.low, kind.high),
                level=self.bootstrap.level,
                seed=self.bootstrap.seed,
                units=self.units,
            )
            first, second = _means(values[shown], values[ideal], values[closed])
            yield Contrast(
                SHARE,
                kind.name,
                shown,
                ideal,
                found.value,
                found.low,
                found.high,
                math.nan,
                first,
                second,
                found.n,
                reason=found.reason,
            )

    def bits(self) -> Iterator[Contrast]:
        """Bits over random of correct answers, on the scale of BoR."""
        if not self.scored.kind.is_correct:
            return
        for shown in self.scored.of_runs:
            random = Shown(RANDOM, shown.k)
            if random in self.scored.values:
                yield self._difference(BITS, shown, random)

    def depths(self) -> Iterator[Contrast]:
        by_run: dict[str, list[Shown]] = {}
        for shown in self.scored.of_runs:
            by_run.setdefault(shown.run, []).append(shown)
        for of_run in by_run.values():
            smallest, *others = sorted(of_run, key=lambda shown: shown.k or 0)
            yield from (self._difference(DEPTH, shown, smallest) for shown in others)

    def runs(self, baseline: str | None) -> Iterator[Contrast]:
        names = list(dict.fromkeys(shown.run for shown in self.scored.of_runs))
        base = baseline or (names[0] if names else None)
        for shown in self.scored.of_runs:
            other = None if base is None else Shown(base, shown.k)
            if other is not None and shown.run != base and other in self.scored.values:
                yield self._difference(RUN, shown, other)

    def orders(self) -> Iterator[Contrast]:
        for shown in self.scored.values:
            best = replace(shown, order=BEST_FIRST)
            if shown != best and best in self.scored.values:
                yield self._difference(ORDER, shown, best)

    def slopes(self) -> Iterator[Contrast]:
        """The change of the score with each junk passage: the mean over queries of the slope within each query.

        Every query has an answer for every number of junk passages, or is left out, so that the mean of the slopes is
        the slope of the means.
        """
        levels = sorted((shown for shown in self.scored.values if shown.run == JUNK), key=lambda shown: shown.k or 0)
        if len(levels) < 2:
            return
        counts = np.array([shown.k for shown in levels], np.float64)
        weights = (counts - counts.mean()) / ((counts - counts.mean()) ** 2).sum()
        table = np.stack([self.scored.values[shown] for shown in levels], axis=1)
        more, fewer = table @ np.maximum(weights, 0), table @ np.maximum(-weights, 0)
        total = float(np.maximum(weights, 0).sum())
        # The weights sum to 0, so both sides have the same range, and their difference is the slope. They are moved
        # away from 0 and 1, which would be taken for failures and successes.
        ends = self.scored.kind.low * total + _AWAY, self.scored.kind.high * total + _AWAY
        sides = [Outcome((side[:, None] + _AWAY,), UNDEFINED, bounds=ends) for side in (more, fewer)]
        found = self._of(SLOPE, levels[-1], levels[0], sides[0], sides[1])
        both = ~np.isnan(more)
        means = table[both].mean(axis=0) if both.any() else np.full(len(levels), np.nan)
        yield replace(found, first=float(means[-1]), second=float(means[0]))

    def _difference(self, kind: str, shown: Shown, against: Shown) -> Contrast:
        outcome = self.scored.log_outcome if kind == BITS else self.scored.outcome
        return self._of(kind, shown, against, outcome(shown), outcome(against))

    def _of(self, kind: str, shown: Shown, against: Shown, one: Outcome, other: Outcome) -> Contrast:
        found = paired_difference(one, other, level=self.bootstrap.level, seed=self.bootstrap.seed, units=self.units)
        first, second = _means(one.parts[0][:, 0], other.parts[0][:, 0])
        n = int((one.defined & other.defined).sum())
        value, low, high, p = (float(each[0]) for each in (found.value, found.low, found.high, found.p))
        value = 0.0 if abs(value) < _ROUNDING else value
        reason = _why(kind, n, first, second)
        return Contrast(
            kind, self.scored.kind.name, shown, against, value, low, high, p, first, second, n, reason=reason
        )


def _why(kind: str, n: int, first: float, second: float) -> str | None:
    """Why the value of a contrast is not a finite number."""
    if not n:
        return "no query has both answers"
    if kind == BITS and first == 0 and second == 0:
        return "no answer is right, with the run or with random passages"
    if kind == BITS and first == 0:
        return "no answer is right with the run"
    if kind == BITS and second == 0:
        return "no answer is right with random passages; the lower end of the interval is what is shown"
    return None


def _means(first: FloatArray, second: FloatArray, *others: FloatArray) -> tuple[float, float]:
    """The means of two scores over the queries that have both, and the others too."""
    both = ~np.any([np.isnan(each) for each in (first, second, *others)], axis=0)
    return (float(first[both].mean()), float(second[both].mean())) if both.any() else (math.nan, math.nan)


def scored_of(
    kind: ScoreKind, queries: Sequence[str], rows: Iterable[tuple[str, Shown, float]], shown: Sequence[Shown]
) -> Scored:
    """The scores of one kind from (query, what was shown, value) rows."""
    place = {query: i for i, query in enumerate(queries)}
    values = {each: np.full(len(queries), np.nan) for each in shown}
    for query, each, value in rows:
        values[each][place[query]] = value
    return Scored(kind, tuple(queries), values)
