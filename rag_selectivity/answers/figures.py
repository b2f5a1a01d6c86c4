"""Figures of scored answers: means, and contrasts over the queries that have both answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_selectivity.compare.differences import Testing, difference_rows
from rag_selectivity.evaluation.report import estimates_of_table
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.paired import holm
from rag_selectivity.measures.base import FloatArray, Given, Outcome
from rag_selectivity.measures.outcome import BITS_OF_RATIO
from rag_selectivity.results.answers import (
    BEST_FIRST,
    CLOSED_BOOK,
    IDEAL,
    JUNK,
    RANDOM,
    Contrast,
    Kind,
    ScoreKind,
    Shown,
)
from rag_selectivity.results.estimate import Estimate

#: Why a query may have no figure.
UNDEFINED = "there is no answer with this score"
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

    @classmethod
    def of(cls, kind: ScoreKind, queries: Sequence[str], scores: Mapping[Shown, Mapping[str, float]]) -> Scored:
        """The scores of {what was shown: {query: score}}."""
        values = {shown: np.array([each.get(query, np.nan) for query in queries]) for shown, each in scores.items()}
        return cls(kind, tuple(queries), values)

    def table(self, *shown: Shown) -> Figures:
        """The scores of what was shown: a column for each."""
        values = np.stack([self.values[each] for each in shown], axis=1)
        return self.table_of(Outcome((values,), UNDEFINED, bounds=(self.kind.low, self.kind.high)))

    def table_of(self, outcome: Outcome) -> Figures:
        """The figures of an outcome over the queries."""
        measure = Given(
            name=self.kind.name, ends=(self.kind.low, self.kind.high), higher_is_better=self.kind.higher_is_better
        )
        return Figures(self.queries, [(measure, np.arange(outcome.parts[0].shape[1]) + 1)], [outcome])

    @property
    def of_runs(self) -> list[Shown]:
        """The lists of runs, best passage first."""
        return [shown for shown in self.values if shown.is_run and shown.order == BEST_FIRST]


def estimates(scored: Scored, bootstrap: Bootstrap) -> dict[Shown, Estimate]:
    """The mean of a score for all that was shown, with its interval."""
    means = estimates_of_table(scored.table(*scored.values), bootstrap)
    return dict(zip(scored.values, means.values(), strict=True))


def figures_of(
    scored: Iterable[Scored], bootstrap: Bootstrap, baseline: str | None
) -> tuple[dict[tuple[Shown, str], Estimate], tuple[Contrast, ...]]:
    """The means and the contrasts of several scores, as a report has them."""
    figures: dict[tuple[Shown, str], Estimate] = {}
    differences: list[Contrast] = []
    for each in scored:
        figures |= {(shown, each.kind.name): mean for shown, mean in estimates(each, bootstrap).items()}
        differences += contrasts(each, bootstrap, baseline)
    return figures, tuple(differences)


def contrasts(scored: Scored, bootstrap: Bootstrap, baseline: str | None = None) -> list[Contrast]:
    """All contrasts that the answers allow, with Holm's correction within each kind."""
    found = []
    for kind, *pair in _pairs(scored, baseline):
        sides = [scored.table(each) for each in pair]
        if kind == "bits":
            sides = [scored.table_of(accuracies(side.outcomes[0].parts[0])) for side in sides]
        found.append(_difference(scored, kind, pair, sides, bootstrap))
    found += _slopes(scored, bootstrap)
    adjusted = []
    for kind in dict.fromkeys(each.kind for each in found):
        of_kind = [each for each in found if each.kind == kind]
        p = holm(np.array([each.p for each in of_kind]))
        adjusted += [replace(each, p_adjusted=float(value)) for each, value in zip(of_kind, p, strict=True)]
    return adjusted


def _pairs(scored: Scored, baseline: str | None) -> Iterator[tuple[Kind, Shown, Shown]]:
    """(kind, what was shown, what it is compared with) of all contrasts of two."""
    kind, values, runs = scored.kind, scored.values, scored.of_runs
    closed, ideal = Shown(CLOSED_BOOK, 0), Shown(IDEAL, None)
    if closed in values and not kind.needs_passages:
        controls = [ideal, *(each for each in values if each.run == RANDOM)]
        yield from (("lift", shown, closed) for shown in (*runs, *controls) if shown in values)
    if kind.is_correct:
        # On the scale of BoR.
        drawn = ((shown, Shown(RANDOM, shown.k)) for shown in runs)
        yield from (("bits", shown, random) for shown, random in drawn if random in values)
    for name in dict.fromkeys(shown.run for shown in runs):
        smallest, *others = sorted((each for each in runs if each.run == name), key=lambda shown: shown.k or 0)
        yield from (("depth", shown, smallest) for shown in others)
    if runs:
        base = baseline or runs[0].run
        of_base = ((shown, Shown(base, shown.k)) for shown in runs if shown.run != base)
        yield from (("run", shown, other) for shown, other in of_base if other in values)
    for shown in values:
        best = replace(shown, order=BEST_FIRST)
        if shown != best and best in values:
            yield "order", shown, best


def _slopes(scored: Scored, bootstrap: Bootstrap) -> list[Contrast]:
    """The change of the score with each junk passage: the mean over queries of the slope within each query.

    Every query has an answer for every number of junk passages, or is left out, so that the mean of the slopes is the
    slope of the means.
    """
    levels = sorted((shown for shown in scored.values if shown.run == JUNK), key=lambda shown: shown.k or 0)
    if len(levels) < 2:
        return []
    counts = np.array([shown.k for shown in levels], np.float64)
    weights = (counts - counts.mean()) / ((counts - counts.mean()) ** 2).sum()
    table = np.stack([scored.values[shown] for shown in levels], axis=1)
    total = float(np.maximum(weights, 0).sum())
    # The weights sum to 0, so both sides have the same range, and their difference is the slope. They are moved away
    # from 0 and 1, which would be taken for failures and successes.
    ends = scored.kind.low * total + _AWAY, scored.kind.high * total + _AWAY
    columns = (table @ np.maximum(weights, 0), table @ np.maximum(-weights, 0))
    sides = [scored.table_of(Outcome((side[:, None] + _AWAY,), UNDEFINED, bounds=ends)) for side in columns]
    found = _difference(scored, "slope", (levels[-1], levels[0]), sides, bootstrap)
    both = ~np.isnan(columns[0])
    means = table[both].mean(axis=0) if both.any() else np.full(len(levels), np.nan)
    return [replace(found, first=float(means[-1]), second=float(means[0]))]


def _difference(
    scored: Scored, kind: Kind, pair: Sequence[Shown], tables: Sequence[Figures], bootstrap: Bootstrap
) -> Contrast:
    (row,) = difference_rows([str(shown) for shown in pair], tables, [{}, {}], Testing(bootstrap))
    first, second = row.value, row.baseline_value
    if kind == "bits":
        first, second = 2**first, 2**second
    # Bits of no right answer on both sides are undefined, but nothing differs.
    p = 1.0 if kind == "bits" and first == second == 0 else row.p
    value = 0.0 if abs(row.difference) < _ROUNDING else row.difference
    reason = _why(kind, row.n, first, second)
    found = {"value": value, "low": row.low, "high": row.high, "p": p, "first": first, "second": second}
    return Contrast(kind, scored.kind.name, pair[0], pair[1], **found, n=row.n, reason=reason)


def _why(kind: str, n: int, first: float, second: float) -> str | None:
    """Why the value of a contrast is not a finite number."""
    if not n:
        return "no query has both answers"
    if kind == "bits" and first == 0 and second == 0:
        return "no answer is right, with the run or with random passages"
    if kind == "bits" and first == 0:
        return "no answer is right with the run"
    if kind == "bits" and second == 0:
        return "no answer is right with random passages, so the bits have no upper end"
    return None


def accuracies(right: FloatArray) -> Outcome:
    """Right (1) and wrong (0) answers, float64[queries, …], for the difference of the log2 of their means."""
    ones = np.where(np.isnan(right), np.nan, 1.0)
    return Outcome((right, ones), UNDEFINED, BITS_OF_RATIO)
