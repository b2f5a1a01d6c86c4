"""Which K to use: the smallest K that loses little against the budget, and whether that is shown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.inference.betting import highest_mean
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import FloatArray, Measure, Outcome
from rag_selectivity.measures.chance import DEGRADED_FROM, EF, BoR_max, RandomSuccess, Success, refusal_of, regime
from rag_selectivity.measures.utility import RANWG
from rag_selectivity.results.sweep import Recommendation
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.calibrated import Curves
from rag_selectivity.trust.controlled import ControlledFigures
from rag_selectivity.wording import level_text, number, percent

BoolArray = NDArray[np.bool_]
#: With fewer queries (or clusters) there is no advice: one query would weigh more than 10 percentage points.
FEWEST_QUERIES = 10
#: The default budget, and the default of the largest loss that a smaller K may have against it.
DEFAULT_MAX_K, DEFAULT_MAX_LOSS = 20, 0.02
#: Two means that differ by less are equal but for rounding.
_SAME = 1e-12


def advise(
    judged: JudgedRun,
    bootstrap: Bootstrap | None = Bootstrap(),
    *,
    rel: int | None = None,
    m: int | None = None,
    max_k: int = DEFAULT_MAX_K,
    max_loss: float = DEFAULT_MAX_LOSS,
    max_tokens: float | None = None,
    min_success: float | None = None,
    tokens: FloatArray | None = None,
    calibrated: Curves | None = None,
) -> Recommendation:
    """The smallest K such that this K, and every K from there to `max_k`, loses at most `max_loss` against `max_k`.

    The loss is Success at max_k minus Success at K, over the queries where it is defined. On the utility scale RA-nWG
    takes the place of Success, unless `rel` or `m` is given. Passages below rank max_k are not used: longer lists give
    the same advice.

    Parameters
    ----------
    judged : JudgedRun
    bootstrap : Bootstrap or None
        Gives the level of the interval of the loss, and the clusters. None leaves the interval out.
    rel, m : int, optional
        The parameters of Success. If one of them is given, the measure is Success on every scale.
    max_k : int
        The budget: the most passages that the LLM is given. If no list is that long, the length of the longest list
        takes its place.
    max_loss : float
        From 0 to less than 1; .02 is two percentage points.
    max_tokens : float, optional
        The budget in tokens for the top K passages, on average over the queries; needs `tokens`.
    min_success : float, optional
        If given, the smallest K with at least this success rate is advised, in place of the rule above.
    tokens : float64[depths], optional
        The mean tokens of the top 1, 2, 3, … passages.
    calibrated : Curves, optional
        Figures and losses over completions of the labels by people's, in place of those as judged. The upper end of
        the loss is then that over completions and queries, at each K by itself.

    Returns
    -------
    Recommendation

    Notes
    -----
    The interval is paired, and its upper end is valid at any number of queries. For Success it is Clopper and Pearson's
    bound for the share of queries that lose: a success at K is also a success at max_k. For RA-nWG it is a bound by
    betting, which is valid for means of any distribution. With clusters, both measures use the bound by betting on
    whole clusters. The depths are tested in a fixed sequence from max_k downwards, up to the first whose bound is above
    max_loss; the depths before it are shown. Such a sequence keeps its level although K is chosen from the data.

    Raises
    ------
    InputError
        If an option is out of range.

    References
    ----------
    Clopper and Pearson 1934, Biometrika 26; Maurer, Hothorn and Lehmacher 1995 (tests in a fixed sequence);
    Waudby-Smith and Ramdas 2024, JRSS B 86 (betting).

    >>> from rag_selectivity.evaluation.joining import join_runs
    >>> qrels = {f"q{i}": ["d"] for i in range(200)}
    >>> run = {f"q{i}": [*["x"] * (i % 3), "d", *["x"] * 20] for i in range(200)}
    >>> advice = advise(join_runs(qrels, {"r": run}).judged["r"])
    >>> advice.K, advice.loss, round(advice.loss_high, 4), advice.shown
    (3, 0.0, 0.0183, True)
    """
    _check_options(max_k, max_loss, max_tokens, min_success)
    judged.refuse_weights("advice on K")
    return _Advice(judged, bootstrap, rel, m, max_k, max_loss, calibrated).recommend(max_tokens, min_success, tokens)


def parameters_of(measures: Iterable[Measure]) -> tuple[int | None, int | None]:
    """`rel` and `m` of the first BoR, or of the first Success if there is no BoR; None for a default value."""
    of_chance = [measure for measure in measures if isinstance(measure, (EF, Success))]
    of_chance.sort(key=lambda measure: measure.name != "BoR")
    if not of_chance:
        return None, None
    first = of_chance[0]
    return first.rel, None if first.m == 1 else first.m


def _check_options(max_k: int, max_loss: float, max_tokens: float | None, min_success: float | None) -> None:
    if isinstance(max_k, bool) or not isinstance(max_k, (int, np.integer)) or max_k < 1:
        raise InputError(f"max_k must be a whole number ≥ 1, got {max_k!r}")
    if not isinstance(max_loss, (int, float, np.number)) or not 0 <= max_loss < 1:
        raise InputError(
            f"max_loss must be at least 0 and less than 1 (.02 is two percentage points), got {max_loss!r}"
        )
    if max_tokens is not None and not max_tokens > 0:
        raise InputError(f"max_tokens must be more than 0, got {max_tokens!r}")
    if min_success is not None and not 0 < min_success <= 1:
        raise InputError(f"min_success must be more than 0 and at most 1, got {min_success!r}")


class _Advice:
    """A run's figures from K = 1 to the budget, and the advice that follows from them."""

    def __init__(
        self,
        judged: JudgedRun,
        bootstrap: Bootstrap | None,
        rel: int | None,
        m: int | None,
        max_k: int,
        max_loss: float,
        calibrated: Curves | None = None,
    ) -> None:
        self.calibrated = calibrated
        self.judged, self.bootstrap, self.max_loss = judged, bootstrap, max_loss
        self.success = Success(rel=rel, m=1 if m is None else m)
        self.max_k = max_k
        self.reference = min(max_k, reach_of(judged))
        self.depths = np.arange(1, self.reference + 1)
        self.explicit = rel is not None or m is not None
        self._figures: ControlledFigures | None = None

    def recommend(
        self, max_tokens: float | None, min_success: float | None, tokens: FloatArray | None
    ) -> Recommendation:
        advised = self._recommendation(max_tokens, min_success, tokens)
        refusal = None if self.judged.corpus_size is None else refusal_of(self.judged, self.depths)
        if refusal is None or not refusal.refused.any():
            return advised
        reason = refusal.reason(-1)
        return replace(advised, warnings=(*advised.warnings, f"no comparison with a random draw, since {reason}"))

    def _recommendation(
        self, max_tokens: float | None, min_success: float | None, tokens: FloatArray | None
    ) -> Recommendation:
        by_success = self.explicit or min_success is not None or self.judged.scale.name != "utility"
        measure: Measure = self.success if by_success else RANWG()
        outcome = measure.outcome(self.judged, self.depths)
        known = outcome.defined[:, -1]
        curve = None if self.calibrated is None else self.calibrated.of([measure], self.depths)[0]
        figures = outcome.value() if curve is None else curve.figures
        none = self._no_advice(measure, known, figures)
        if none is not None:
            return Recommendation(None, none, str(measure), self.reference)
        if curve is None:
            losses = _Losses.of(outcome, measure, self.judged.queries, self.bootstrap)
        else:
            losses = _Losses(curve.loss, np.append(curve.loss_high[:-1], np.nan))
        warnings: list[str] = []
        chosen: int | None
        if min_success is None:
            chosen = losses.smallest_up_to(self.max_loss)
            reason = self._why_by_loss(measure, figures, losses, chosen, int(known.sum()))
        else:
            chosen, reason = self._by_success(figures, min_success, warnings)
        affordable = None if max_tokens is None or tokens is None else _affordable(tokens, self.depths, max_tokens)
        if max_tokens is not None and affordable is not None and chosen and chosen > affordable:
            chosen, reason = self._within_tokens(
                measure, figures, chosen, affordable, max_tokens, min_success is not None, warnings
            )
        if not chosen:
            return Recommendation(
                None,
                "No advice on K: no K meets the requirements.",
                str(measure),
                self.reference,
                within_tokens=affordable,
                warnings=tuple(warnings),
            )
        warnings += self._of_chance(chosen)
        return Recommendation(
            chosen,
            f"K = {chosen}{reason}{self._short_lists(known)}",
            str(measure),
            self.reference,
            float(losses.value[chosen - 1]),
            losses.high_at(chosen),
            losses.shown(chosen, self.max_loss),
            affordable,
            tuple(warnings),
            tuple(figures.tolist()),
        )

    # -- reasons for no advice ---------------------------------------------------------------------

    def _no_advice(self, measure: Measure, known: BoolArray, figures: FloatArray) -> str | None:
        if not known.any():
            return f"No advice on K: {measure.outcome(self.judged, self.depths).undefined}."
        units = _units(self.judged, known, self.bootstrap)
        if units < FEWEST_QUERIES:
            what = "clusters of queries" if self.bootstrap is not None and self.bootstrap.clusters else "queries"
            return (
                f"No advice on K: {units} {what if units != 1 else what.replace('queries', 'query', 1)} with a "
                f"defined {measure} {'is' if units == 1 else 'are'} too few; at least {FEWEST_QUERIES} are needed."
            )
        if not figures.max() > 0:
            return f"No advice on K: {measure} is 0 in all {int(known.sum())} queries up to K = {self.reference}."
        return None

    # -- reasons for the advised K -----------------------------------------------------------------

    def _why_by_loss(self, measure: Measure, figures: FloatArray, losses: _Losses, chosen: int, queries: int) -> str:
        last, allowed = self.reference, f"{100 * self.max_loss:.4g}"
        if chosen == last:
            if last == 1:
                return f", the only one up to K = {last}."
            return (
                f", the budget: {measure} is {percent(figures[-2])} at K = {last - 1} and {percent(figures[-1])} at "
                f"K = {last}, a loss of {self._points(losses.value[-2])} percentage points in these {queries} queries, "
                f"more than the {allowed} allowed."
            )
        sentence = (
            f", the smallest that loses no more than {allowed} percentage points of {measure} against K = "
            f"{last}: {measure} is {percent(figures[chosen - 1])} at K = {chosen} and {percent(figures[-1])} at "
            f"K = {last}, a loss of {self._points(losses.value[chosen - 1])} points in these {queries} queries"
        )
        high = losses.high_at(chosen)
        if high is None or self.bootstrap is None:
            return f"{sentence}."
        sentence += f". Its paired {level_text(self.bootstrap.level)} interval ends at {_points_up(high)} points"
        if losses.shown(chosen, self.max_loss):
            return f"{sentence}, so it is shown that no more than {allowed} are lost."
        if high > self.max_loss:
            return f"{sentence}, so a loss of more than {allowed} is not ruled out."
        doubtful = losses.first_doubtful(chosen, self.max_loss)
        return f"{sentence}, but at K = {doubtful} a loss of more than {allowed} is not ruled out."

    def _points(self, loss: float) -> str:
        """A loss in percentage points, with a second decimal if one would hide whether it is above the allowed loss."""
        return f"{100 * loss:.{2 if 0 < abs(loss - self.max_loss) < 0.0005 or 0 < abs(loss) < 0.001 else 1}f}"

    def _by_success(self, figures: FloatArray, min_success: float, warnings: list[str]) -> tuple[int | None, str]:
        enough = np.flatnonzero(figures >= min_success - _SAME)
        if len(enough):
            chosen = int(self.depths[enough[0]])
            reached = percent(figures[enough[0]])
            return (
                chosen,
                f", the smallest with a success rate of {percent(min_success)} or more in these queries ({reached}).",
            )
        warnings.append(
            f"no K up to {self.reference} has a success rate of {percent(min_success)} or more; "
            f"the best is {percent(figures.max())}"
        )
        return None, ""

    def _within_tokens(
        self,
        measure: Measure,
        figures: FloatArray,
        chosen: int,
        affordable: int,
        max_tokens: float,
        needed: bool,
        warnings: list[str],
    ) -> tuple[int | None, str]:
        if affordable == 0:
            warnings.append(f"the first passage alone has more than {max_tokens:g} tokens on average")
            return None, ""
        if needed:
            warnings.append(
                f"that success rate needs K = {chosen}, but {max_tokens:g} tokens are enough only for K = {affordable}"
            )
            return None, ""
        return affordable, (
            f", the largest within {max_tokens:g} tokens on average: {measure} is {percent(figures[affordable - 1])} "
            f"there and {percent(figures[chosen - 1])} at K = {chosen}."
        )

    def _short_lists(self, known: BoolArray) -> str:
        remarks = ""
        if self.reference < self.max_k:
            longest = int(self.judged.returned.max(initial=1)) <= self.reference
            what = "the longest list" if longest else "the whole corpus"
            remarks += f" {'No list reaches' if longest else 'The corpus ends before'} K = {self.max_k}: K = "
            remarks += f"{self.reference}, {what}, takes its place."
        short = int((self.judged.returned[known] < self.reference).sum())
        if short:
            verb = "list is" if short == 1 else "lists are"
            remarks += f" {short} of the {int(known.sum())} {verb} shorter than K = {self.reference}."
        return remarks

    # -- warnings ----------------------------------------------------------------------------------

    def _of_chance(self, chosen: int) -> list[str]:
        if self.judged.corpus_size is None:
            return []
        drawn = float(self._chance(np.array([chosen]))[0])
        if math.isnan(drawn) or regime(drawn) == "healthy":
            return []
        chance = self._chance(self.depths)
        ceiling = self._ceiling(chosen)
        healthy = np.flatnonzero(chance < DEGRADED_FROM)
        up_to = ""
        if len(healthy):
            up_to = f"; up to K = {self.depths[healthy[-1]]} a random draw succeeds in less than "
            up_to += percent(DEGRADED_FROM)
        return [
            f"the regime at K = {chosen} is {regime(drawn)}: a random draw of {chosen} passages succeeds in "
            f"{percent(drawn)} of the queries, so no retriever can be more than {number(ceiling)} bits better"
            f"{up_to}"
        ]

    def _chance(self, depths: IntArray) -> FloatArray:
        """Success of a random draw at each depth; with random controls where one of them is relevant."""
        measure = RandomSuccess(rel=self.success.rel, m=self.success.m)
        outcome = measure.outcome(self.judged, depths).settled()
        as_judged = outcome.value()
        return np.where(np.isnan(known := self._controlled(measure, outcome, depths)), as_judged, known)

    def _ceiling(self, depth: int) -> float:
        measure, depths = BoR_max(rel=self.success.rel, m=self.success.m), np.array([depth])
        outcome = measure.outcome(self.judged, depths)
        known = float(self._controlled(measure, outcome, depths)[0])
        return float(outcome.value()[0]) if math.isnan(known) else known

    def _controlled(self, measure: Measure, outcome: Outcome, depths: IntArray) -> FloatArray:
        """The measure with random controls at each depth; NaN without a relevant one."""
        if self.judged.controls is None:
            return np.full(len(depths), np.nan)
        if self._figures is None:
            self._figures = ControlledFigures(self.judged, self.judged.controls, None)
        known = [self._figures.of(measure, depth, outcome) for depth in depths.tolist()]
        return np.array([math.nan if figure is None else figure.value for figure in known])


@dataclass(frozen=True, slots=True)
class _Losses:
    """The measure at the last depth minus the measure at each depth: mean, and upper end of its interval."""

    value: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, outcome: Outcome, measure: Measure, queries: tuple[str, ...], bootstrap: Bootstrap | None) -> _Losses:
        figures = outcome.parts[0]
        gaps = figures[:, -1:] - figures
        value = np.nan_to_num(gaps).sum(axis=0) / outcome.defined.sum(axis=0)
        high = np.full(len(value), np.nan)
        if bootstrap is not None and len(value) > 1:
            high[:-1] = _upper_ends(outcome, gaps, isinstance(measure, Success), queries, bootstrap)
        return cls(value, high)

    def smallest_up_to(self, most: float) -> int:
        """The smallest K such that neither it nor any larger K loses more."""
        dear = np.flatnonzero(self.value > most + _SAME)
        return int(dear[-1]) + 2 if len(dear) else 1

    def first_doubtful(self, chosen: int, most: float) -> int | None:
        """The largest depth from K upwards whose upper end is above the allowed loss; None if there is none."""
        doubtful = np.flatnonzero(~(self.high[chosen - 1 : -1] <= most))
        return chosen + int(doubtful[-1]) if len(doubtful) else None

    def shown(self, chosen: int, most: float) -> bool:
        return chosen < len(self.value) and self.first_doubtful(chosen, most) is None

    def high_at(self, chosen: int) -> float | None:
        if chosen == len(self.value) and not np.isnan(self.high[:-1]).all():
            return 0.0
        return None if math.isnan(self.high[chosen - 1]) else float(self.high[chosen - 1])


def _upper_ends(
    outcome: Outcome, gaps: FloatArray, nested: bool, queries: tuple[str, ...], bootstrap: Bootstrap
) -> FloatArray:
    """Upper ends of the paired intervals of the loss at every depth but the last."""
    tail = (1 - bootstrap.level) / 2
    units = bootstrap.units(queries)
    if nested and units is None:
        lost: IntArray = np.nan_to_num(gaps[:, :-1]).sum(axis=0).astype(np.int64)
        return clopper_pearson(lost, outcome.defined[:, :-1].sum(axis=0), tail)[1]
    return highest_mean(gaps[:, :-1], 0.0 if nested else -1.0, 1.0, tail, units)


def reach_of(judged: JudgedRun) -> int:
    """The largest K: the length of the longest list, but at most the largest corpus size."""
    longest = max(1, int(judged.returned.max(initial=1)))
    if judged.corpus_size is None or not len(judged.corpus_size):
        return longest
    return max(1, min(longest, int(judged.corpus_size.max())))


def _units(judged: JudgedRun, known: BoolArray, bootstrap: Bootstrap | None) -> int:
    """The number of defined queries, or of the clusters that they belong to."""
    units = None if bootstrap is None else bootstrap.units(judged.queries)
    return int(known.sum()) if units is None else len(np.unique(units[known]))


def _affordable(tokens: FloatArray, depths: IntArray, most: float) -> int:
    within = np.flatnonzero(tokens[np.minimum(depths, len(tokens)) - 1] <= most)
    return int(depths[within[-1]]) if len(within) else 0


def _points_up(bound: float) -> str:
    """An upper bound in percentage points, rounded up."""
    return f"{math.ceil(1000 * bound - 1e-9) / 10:.1f}"
