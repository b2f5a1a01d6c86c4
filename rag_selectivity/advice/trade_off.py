"""Cost against quality: the cost of a query of each run, and the cheapest run that is shown to lose little."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from rag_selectivity.advice.costs import Costs, pareto
from rag_selectivity.advice.measured_costs import KINDS, TOKENS
from rag_selectivity.compare.differences import Testing
from rag_selectivity.compare.pairs import differences
from rag_selectivity.errors import InputError
from rag_selectivity.evaluation.caveats import equals_placebo
from rag_selectivity.evaluation.evaluate import Measured, measure_all, report_on
from rag_selectivity.inference.behind_best import behind_best
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures import Measure, Outcome, parse_measure
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.results.decision import CostPoint
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.results.trade_off import TradeOff, TradePoint
from rag_selectivity.tables.cells import iterated
from rag_selectivity.wording import amount, bound_text, counted, enumeration, level_text, number

#: A run at a K.
Place = tuple[str, int]
#: So many cheaper runs are named that are not shown to lose little.
_NAMED = 3


def quality_measure(measure: str | Measure | None, ranking: Measure) -> Measure:
    """The measure of quality, without depth: the given one, else the one that ranks the runs.

    Raises
    ------
    InputError
        If it names a depth; if less of it is better; if it is no mean over queries between two known ends, which a
        bound needs.
    """
    if measure is None:
        return replace(ranking, at=None)
    parsed = parse_measure(measure)
    if parsed.at is not None:
        raise InputError(
            f"{parsed} names a depth, and costs are compared at the K of the decision: give "
            f"{replace(parsed, at=None)} (other depths: cost_depths)"
        )
    if not parsed.higher_is_better:
        raise InputError(f"costs are compared with a measure of which more is better, and {parsed} is none")
    return parsed


def checked_depths(depths: Sequence[int] | None) -> tuple[int, ...]:
    """The depths, each a whole number of at least 1.

    Raises
    ------
    InputError
    """
    depths = () if depths is None else list(iterated(depths, "cost_depths must be whole numbers ≥ 1"))
    for depth in depths:
        if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)) or depth < 1:
            raise InputError(f"cost_depths must be whole numbers ≥ 1, got {depth!r}")
    return tuple(int(depth) for depth in depths)


def trade_offs(
    judged: Mapping[str, JudgedRun],
    report: Report,
    costs: Costs,
    measure: Measure,
    K: int,
    *,
    depths: Sequence[int] | None = None,
    max_loss: float,
    bootstrap: Bootstrap | None,
    paired: bool = True,
    believed: bool = True,
) -> dict[str, TradeOff]:
    """Cost against quality for each kind of cost that is known.

    Parameters
    ----------
    judged : {run: JudgedRun}
    report : Report
        Whose labels by people, if it has any, calibrate the figures.
    costs : Costs
    measure : Measure
        Quality, without depth: a mean over queries of which more is better.
    K : int
        The K of the decision. Measured costs are known at this K only.
    depths : sequence of int, optional
        Further K at which the runs are compared, by their tokens.
    max_loss : float
        The allowed loss against the best, in units of the measure.
    bootstrap : Bootstrap or None
        None for no bounds.
    paired : bool
    believed : bool
        False if the labels show nothing about the retriever: then nothing is shown.

    Notes
    -----
    `rag_selectivity.inference.behind_best` says what `most_lost` is, and why choosing the cheapest adds no error.
    """
    kinds = [kind for kind in KINDS if any(kind in costs.columns_at(run, K) for run in judged)]
    if not kinds:
        return {}
    grid = sorted({K, *(depths or ())})
    measured = measure_all(judged, [measure @ depth for depth in grid], [])
    shown = report_on(measured, bootstrap, ground=report.ground, completed=report.completed)
    places = [(run, depth) for run in judged for depth in grid]
    quality = {(run, depth): shown[run, measure @ depth] for run, depth in places}
    _check_form(measured, measure)
    compared = _Compared(judged, measured, measure, shown, bootstrap, paired)
    at_k = [place for place in places if place[1] == K]
    # Tokens are known at every K; what was measured is that of the K in production.
    lost_at_k = compared.most_lost(at_k)
    lost = compared.most_lost(places) if len(grid) > 1 and TOKENS in kinds else lost_at_k
    confidence = None if bootstrap is None or len(judged) * len(grid) < 2 else (1 + bootstrap.level) / 2
    result = {}
    for kind in kinds:
        of_kind = places if kind == TOKENS else at_k
        trade = _Trade(kind, measure, costs, {place: quality[place] for place in of_kind}, max_loss, paired)
        result[kind] = trade.off(lost if kind == TOKENS else lost_at_k, confidence, believed=believed)
    return result


def _check_form(measured: Measured, measure: Measure) -> None:
    outcomes = [table.outcomes[0] for table in measured.only([measure]).figures.values()]
    if any(outcome.aggregate.form != "mean" or outcome.bounds is None for outcome in outcomes) or not all(
        math.isfinite(end) for outcome in outcomes for column in range(outcome.parts[0].shape[1])
        for end in outcome.ends_at(column) or ()
    ):  # fmt: skip
        raise InputError(
            f"costs are compared with a mean over queries that has a largest value, and {measure} is none: give "
            f"RA-nWG, Success (which BoR follows) or another such measure"
        )


@dataclass(frozen=True, slots=True)
class _Compared:
    """All points against each other."""

    judged: Mapping[str, JudgedRun]
    measured: Measured
    measure: Measure
    report: Report
    bootstrap: Bootstrap | None
    paired: bool

    def most_lost(self, places: Sequence[Place]) -> dict[Place, float]:
        """The most that each point can be below the best of them; NaN where they cannot all be compared."""
        if self.bootstrap is None or len(places) < 2:
            return dict.fromkeys(places, math.nan)
        if self.report.ground is not None:
            return self._calibrated(places, (1 - self.bootstrap.level) / 2 / (len(places) - 1))
        queries = self.judged[places[0][0]].queries
        if self.paired and any(self.judged[run].queries != queries for run, _ in places):
            return dict.fromkeys(places, math.nan)
        lost = behind_best(
            [self._outcome(place) for place in places],
            level=self.bootstrap.level,
            seed=self.bootstrap.seed,
            units=self.bootstrap.units(queries) if self.paired else None,
            paired=self.paired,
        )
        return dict(zip(places, lost.tolist(), strict=True))

    def _outcome(self, place: Place) -> Outcome:
        run, depth = place
        outcome = self.measured.figures[run].outcome(self.measure @ depth)
        assert outcome is not None
        return outcome

    def _calibrated(self, places: Sequence[Place], tail: float) -> dict[Place, float]:
        """The bounds over completions of the labels by people's, which are known at one depth only."""
        depths = {depth for _, depth in places}
        if len(depths) > 1:
            raise InputError("labels by people (human) calibrate differences at one K only: leave out cost_depths")
        (depth,) = depths
        bootstrap = replace(self.bootstrap or Bootstrap(), level=1 - 2 * tail)
        pairs = [(one, other) for (one, _), (other, _) in combinations(places, 2)]
        most = dict.fromkeys(places, 0.0)
        for row in differences(pairs, self.measured.figures, self.report, Testing(bootstrap, power=None)):
            if row.measure != self.measure @ depth:
                continue
            one, other = (row.run, depth), (row.baseline, depth)
            most[one] = float(np.maximum(most[one], -row.low))
            most[other] = float(np.maximum(most[other], row.high))
        return most


@dataclass(frozen=True, slots=True)
class _Trade:
    """One kind of cost of the points whose qualities are given."""

    kind: str
    measure: Measure
    costs: Costs
    quality: Mapping[Place, Estimate]
    max_loss: float
    paired: bool

    def off(self, lost: Mapping[Place, float], confidence: float | None, *, believed: bool) -> TradeOff:
        """The trade-off, with the bounds of `lost`."""
        all_columns = {place: self.costs.columns_at(*place) for place in self.quality}
        columns = {place: of_place[self.kind] for place, of_place in all_columns.items() if self.kind in of_place}
        means, shared = self._means(columns)
        on_front = {
            (point.run, point.K)
            for point in pareto(
                CostPoint(*place, means[place], self.quality[place].value, front=False) for place in columns
            )
            if point.front
        }
        points = [
            TradePoint(
                *place,
                self.costs.of_query(place[0], place[1])[self.kind],
                self.quality[place],
                place in on_front,
                lost[place],
            )
            for place in sorted(columns, key=lambda place: (means[place], -self.quality[place].value, place[1]))
        ]
        known = [place for place in self.quality if not math.isnan(self.quality[place].value)]
        best = max(known, key=lambda place: (self.quality[place].value, -means.get(place, math.inf)), default=None)
        offered = TradeOff(self.kind, self.measure, self.max_loss, tuple(points), best, confidence=confidence)
        if len(self.quality) < 2 or best is None:
            return offered
        refusal = self._refusal(best, lost, shared, confidence, believed=believed)
        if refusal:
            return replace(offered, text=refusal)
        cheapest = next((point for point in points if point.most_lost <= self.max_loss), None)
        place = None if cheapest is None else (cheapest.run, cheapest.K)
        text = self._sentence(points, cheapest, best, lost, means)
        level = "" if confidence is None else f" Bounds of {level_text(confidence)} for all of them at once."
        over = "" if shared is None else f" Costs are compared over the {shared} queries in which all are known."
        return replace(offered, cheapest=place, text=f"{text}{level}{over}")

    def _means(self, columns: Mapping[Place, FloatArray]) -> tuple[dict[Place, float], int | None]:
        """The mean costs, over the queries whose costs all points have; with their number if it is not that of each."""
        own = {place: float(np.nanmean(column)) for place, column in columns.items()}
        if not self.paired or len({len(column) for column in columns.values()}) > 1:
            return own, None
        known = [~np.isnan(column) for column in columns.values()]
        in_all = np.logical_and.reduce(known)
        if all(np.array_equal(each, in_all) for each in known):
            return own, None
        if not in_all.any():
            return own, 0
        return {place: float(column[in_all].mean()) for place, column in columns.items()}, int(in_all.sum())

    # -- sentences -----------------------------------------------------------------------------------------

    def _refusal(
        self, best: Place, lost: Mapping[Place, float], shared: int | None, confidence: float | None, *, believed: bool
    ) -> str:
        """Why nothing is shown, whatever the bounds are; empty if something can be."""
        if confidence is None:
            return "Without intervals it is not tested which run loses little against the best."
        if not believed or all(equals_placebo(estimate) for estimate in self.quality.values()):
            return "These labels show nothing about the runs, so that no run is shown to lose little against the best."
        if shared == 0:
            return f"No query has {self.kind} of every run, so that the runs cannot be compared by it."
        if self.quality[best].value == 0:
            return f"No run is best: {self.measure} is 0 for all of them."
        if any(math.isnan(bound) for bound in lost.values()):
            return (
                "Not all runs can be compared with each other, so that none is shown to lose little against the best."
            )
        return ""

    def _sentence(
        self,
        points: Sequence[TradePoint],
        cheapest: TradePoint | None,
        best: Place,
        lost: Mapping[Place, float],
        means: Mapping[Place, float],
    ) -> str:
        allowed, of = f"{self.max_loss:g}", f"of {self.measure} against the best of {self._counted()}"
        highest = (
            f"{self._name(best)} has the highest {self.measure} in these queries ({number(self.quality[best].value)})"
        )
        if cheapest is None:
            behind = f"may be up to {bound_text(lost[best])} behind"
            none = "None" if self._costs_of_all(points) else f"None of the runs with known {self.kind}"
            text = f"{none} is shown to lose at most {allowed} {of}: {highest}, and {behind}."
            others = [point for point in points if (point.run, point.K) != best][:_NAMED]
        else:
            place = (cheapest.run, cheapest.K)
            text = (
                f"{self._name(place)} is {self._the_cheapest(points)} shown to lose at most {allowed} {of}: it costs "
                f"{self._amount(means[place])} a query, and loses at most {bound_text(cheapest.most_lost)}."
            )
            if place != best:
                price = f"costs {self._amount(means[best])}" if best in means else f"has no known {self.kind}"
                text += f" {highest}, and {price}."
            others = list(points[: points.index(cheapest)][:_NAMED])
        if others:
            named = enumeration([f"{self._name((p.run, p.K))} up to {bound_text(p.most_lost)}" for p in others])
            text += f" {'Of the others' if cheapest is None else 'Of the cheaper ones'}, some may lose more: {named}."
        return text

    def _the_cheapest(self, points: Sequence[TradePoint]) -> str:
        """What the cheapest is called: the costs of some runs may not be known."""
        if self._costs_of_all(points):
            return "the cheapest that is"
        if len(points) == 1:
            return f"the only run with known {self.kind}, and is"
        runs = len({point.run for point in points})
        return f"the cheapest of the {counted(runs, 'run')} with known {self.kind} that is"

    def _costs_of_all(self, points: Sequence[TradePoint]) -> bool:
        return {point.run for point in points} == {run for run, _ in self.quality}

    def _counted(self) -> str:
        runs = counted(len({run for run, _ in self.quality}), "run")
        depths = sorted({depth for _, depth in self.quality})
        if len(depths) == 1:
            return f"{runs} at K = {depths[0]}"
        return f"{runs} at K = {enumeration([str(depth) for depth in depths])}"

    def _name(self, place: Place) -> str:
        several = len({depth for _, depth in self.quality}) > 1
        return f"{place[0]} at K = {place[1]}" if several else place[0]

    def _amount(self, cost: float) -> str:
        return amount(cost) if self.kind == "price" else f"{amount(cost)} {self.kind}"
