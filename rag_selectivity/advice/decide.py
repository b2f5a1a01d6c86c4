"""`decide`: five answers about all runs of a report at one K."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rag_selectivity.advice import sentences
from rag_selectivity.advice.actions import Situation
from rag_selectivity.advice.by_loss import DEFAULT_MAX_K, DEFAULT_MAX_LOSS, advise, parameters_of, reach_of
from rag_selectivity.advice.costs import Costs, cost_points, drawn_depths
from rag_selectivity.advice.losses import Gain, Losses, figures, losses_of
from rag_selectivity.advice.measured_costs import TOKENS
from rag_selectivity.advice.systems import all_pairs, best_first, comparable, letters, pair_of
from rag_selectivity.advice.trade_off import checked_depths, quality_measure, trade_offs
from rag_selectivity.compare.differences import Testing
from rag_selectivity.compare.pairs import differences
from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.evaluation.evaluate import Measured, measure_all, report_on
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures import Measure
from rag_selectivity.measures.chance import BoR, BoR_max, Success
from rag_selectivity.measures.plan import at_depth, default_measures
from rag_selectivity.measures.utility import PROC, RANWG, Harm, Judged, PercentPROC
from rag_selectivity.results.comparison import RunDifference
from rag_selectivity.results.decision import ADVISED, ASSUMED, GIVEN, Answer, CostPoint, Decision, RunFigure, RunLine
from rag_selectivity.results.estimate import CALIBRATED, WITH_TAIL
from rag_selectivity.results.remedy import remedy
from rag_selectivity.results.report import Report
from rag_selectivity.results.sweep import Recommendation
from rag_selectivity.results.trust import CLOSED, NOTHING, UNLESS_PERFECT
from rag_selectivity.trust.calibrated import Curves
from rag_selectivity.trust.completed import Sampling
from rag_selectivity.wording import number, percent

#: The K of a decision if neither the user nor the rule of `sweep` names one.
USUAL_K = 10
_COMPLETED = (CALIBRATED, WITH_TAIL)
_SPLIT = (PROC(), PercentPROC())


def decide(
    report: Report,
    *,
    k: int | None = None,
    baseline: str | None = None,
    rel: int | None = None,
    m: int | None = None,
    max_k: int = DEFAULT_MAX_K,
    max_loss: float = DEFAULT_MAX_LOSS,
    paired: bool = True,
    costs: Costs | None = None,
    cost_measure: str | Measure | None = None,
    cost_depths: Sequence[int] | None = None,
) -> Decision:
    """Which system, which K, where the loss is, what to do next, and how far the labels can be believed.

    All answers are about all runs at one K, under one measure: RA-nWG on the utility scale, else Success; Success on
    every scale if `rel` or `m` is given.

    Parameters
    ----------
    report : Report
        From `evaluate`, with its lists. Its level, clusters, controls and labels by people are used.
    k : int, optional
        The K that is used in production. Default: the one that `rag_selectivity.sweep` advises for the run that is best
        at the budget `max_k`; without advice 10, or the longest list if that is shorter.
    baseline : str, optional
        The run that the table compares with. Default: the first one.
    rel, m, max_k, max_loss : optional
        As in `rag_selectivity.sweep`. A `k` above `max_k` takes its place as the budget.
    paired : bool
        False if the runs are over different queries, as in `compare`.
    costs : Costs, optional
        From `rag_selectivity.advice.costs.read_costs`. Measured costs are those of the K in production: they are
        used if `k` is given.
    cost_measure : str or Measure, optional
        The quality that costs are compared with, without depth: a mean over queries of which more is better. Default:
        the measure that ranks the runs.
    cost_depths : sequence of int, optional
        Further K at which runs are compared by their tokens. The cheapest that is shown to lose at most `max_loss` is
        then one of all runs at all these K, and each comparison has a stricter level.

    Returns
    -------
    Decision
        Its figures are in the units of their measures and NaN where they are undefined; losses and gains are in those
        of the ranking measure, from −1 to 1. Without intervals in the report nothing is tested, and no answer is shown.

    Raises
    ------
    InputError
        If the report holds only sums, such as one of a monitor; if there is no such baseline;
        if `k` is not a whole number ≥ 1, or is more than the corpus size.

    Notes
    -----
    The pairs of runs are one family of tests under Holm's correction, and decide about the letters, about the first
    answer, and about the marks of the ranking measure. The other columns of the table are a second family: their
    differences from the baseline. An answer is shown if a test or a bound shows what it concludes, and none is if the
    labels show nothing about the retriever. Costs of a query are means; they are not tested.

    References
    ----------
    Holm 1979, Scandinavian Journal of Statistics 6 (the correction); Waudby-Smith and Ramdas 2024, JRSS B 86 (the bound
    of the difference of two losses).

    >>> from rag_selectivity import evaluate
    >>> qrels = {f"q{i}": ["d"] for i in range(40)}
    >>> runs = {"old": {q: ["x", "y", "d"] for q in qrels}, "new": {q: ["x", "d", "y"] for q in qrels}}
    >>> decision = decide(evaluate(qrels, runs, corpus_size=100), k=2)
    >>> decision.best, decision.answers[0].shown
    ('new', True)
    """
    judged = _lists_of(report)
    if baseline is not None and baseline not in judged:
        raise InputError(f"no run {baseline!r}{did_you_mean(baseline, judged)} (runs: {', '.join(judged)})")
    if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1):
        raise InputError(f"k must be a whole number ≥ 1, got {k!r}")
    if rel is None and m is None:
        rel, m = parameters_of(report.measures)
    costs = costs or Costs()
    first = baseline or next(iter(judged))
    decider = _Decider(report, judged, first, rel, m, max_loss, paired, costs, cost_measure, cost_depths)
    return decider.decide(k, max_k)


def _lists_of(report: Report) -> dict[str, JudgedRun]:
    judged = {name: run.judged for name, run in report.runs.items() if run.judged is not None}
    if len(judged) < len(report.runs) or not judged:
        raise InputError(
            "a decision needs the lists of the runs, and this report holds figures alone: make it by evaluate"
        )
    for run in judged.values():
        run.refuse_weights("a decision (--k)")
    return judged


class _Decider:
    def __init__(
        self,
        report: Report,
        judged: Mapping[str, JudgedRun],
        baseline: str,
        rel: int | None,
        m: int | None,
        max_loss: float,
        paired: bool,
        costs: Costs,
        cost_measure: str | Measure | None,
        cost_depths: Sequence[int] | None,
    ) -> None:
        self.report, self.judged, self.baseline = report, judged, baseline
        self.rel, self.m, self.max_loss, self.paired = rel, m, max_loss, paired
        self.costs: Costs = costs
        self.bootstrap = report.bootstrap
        first = next(iter(judged.values()))
        self.sized = first.corpus_size is not None
        of_utility = report.scale == "utility" and rel is None and m is None
        self.success = Success(rel=rel, m=1 if m is None else m)
        self.ranking: Measure = RANWG() if of_utility else self.success
        #: The quality that costs are compared with, and further K for that.
        self.bought, self.bought_at = quality_measure(cost_measure, self.ranking), checked_depths(cost_depths)

    def decide(self, k: int | None, max_k: int) -> Decision:
        reach = max(reach_of(run) for run in self.judged.values())
        budget = max(max_k, k or 1)
        advised_run = self._best_at(k or min(budget, reach))
        advice = self._advice(advised_run, budget)
        depth = k or advice.K or min(USUAL_K, reach)
        source = GIVEN if k else ADVISED if advice.K else ASSUMED
        measure = self.ranking @ depth
        measured = self._measured_at(depth)
        report = self._report_on(measured, self.bootstrap)
        report = replace(report, provenance=self.report.provenance, steps=self.report.steps)
        order = best_first(report, measure)
        # At an advised K another run than that of the advice can be the best: loss and next step are about it.
        best = order[0]
        rows: tuple[RunDifference, ...] = ()
        if self.bootstrap is not None:
            ranked = measured.only([measure])
            rows = all_pairs(order, ranked.figures, report, self.bootstrap, paired=self.paired)
        pairs = tuple(map(pair_of, rows))
        of_run = letters(order, [(pair.run, pair.other) for pair in pairs if pair.apart]) if len(order) > 1 else {}
        closed = self._closed(report, best, measure)
        losses = self._losses(report, best, measure)
        completed = report[best, measure].basis in _COMPLETED
        trust = report.trust
        believed = trust.standing != NOTHING
        if losses is not None and not believed:
            losses = replace(losses, more="")
        situation = Situation(
            judged=self.judged,
            run=best,
            measure=measure,
            losses=losses,
            advice=advice,
            bootstrap=self.bootstrap,
            closed=closed,
            unbelieved=not believed,
            completed=completed,
            label_step=self._label_step(report, best, depth, believed=believed),
        )
        actions = situation.actions()
        costs, notes = self.costs, [*self.costs.notes]
        if source != GIVEN and costs.measured:
            costs = replace(costs, measured={})
            notes.append(
                f"measured costs are left out: they are those of the K in production, and K = {depth} is {source}; "
                f"give that K with k (--k)"
            )
        elif any(TOKENS in costs.measured.get(name, {}) for name in costs.estimated):
            notes.append(f"at K = {depth} measured tokens take the place of the estimates; those over K are estimated")
        queries = report[best, measure].n
        tested_by = None if self.bootstrap is None else sentences.PAIRED if self.paired else sentences.UNPAIRED
        chance = self._chance(report, best, depth)
        answers = (
            sentences.which_system(
                order,
                report[best, measure],
                measure,
                pairs,
                queries,
                tested_by=tested_by,
                believed=believed,
                perfect=UNLESS_PERFECT in trust.verdict,
                graded_by=trust.unchecked_judge,
            ),
            sentences.which_k(depth, source, advised_run, advice, self.max_loss, chance, believed=believed),
            self._with_remedy(
                sentences.where_the_loss_is(best, losses, measure, depth, closed=closed, completed=completed),
                report,
                best,
                depth,
                believed=believed,
            ),
            sentences.what_next(actions, measure),
            sentences.may_i_believe_it(trust),
        )
        return Decision(
            K=depth,
            K_from=source,
            measure=measure,
            baseline=self.baseline,
            answers=answers,
            lines=self._lines(measured, report, order, of_run, rows, depth, costs),
            pairs=pairs,
            actions=actions,
            queries=report.runs[best].evaluated,
            cost_points=self._cost_points(report, measure, reach, costs),
            trade_offs=trade_offs(
                self.judged,
                report,
                costs,
                self.bought,
                depth,
                depths=self.bought_at,
                max_loss=self.max_loss,
                bootstrap=self.bootstrap,
                paired=self.paired,
                believed=believed,
            ),
            notes=tuple(notes),
            level=None if self.bootstrap is None else self.bootstrap.level,
        )

    def _report_on(self, measured: Measured, bootstrap: Bootstrap | None) -> Report:
        """The figures of what was measured, with what the given report computed."""
        return report_on(measured, bootstrap, ground=self.report.ground, completed=self.report.completed)

    # -- K -------------------------------------------------------------------------------------------------

    def _best_at(self, depth: int) -> str:
        measure = self.ranking @ depth
        if self.report.ground is None:
            means = {}
            for name, run in self.judged.items():
                values = figures(run, measure)
                means[name] = float(np.nanmean(values)) if not np.isnan(values).all() else -math.inf
            return max(means, key=means.__getitem__)
        measured = measure_all(self.judged, [measure], [])
        return best_first(self._report_on(measured, None), measure)[0]

    def _advice(self, run: str, budget: int) -> Recommendation:
        curves = None
        if self.report.ground is not None:
            curves = Curves(self.report.ground, self.judged, run, Sampling.of(self.bootstrap))
        options: dict[str, Any] = {"rel": self.rel, "m": self.m, "max_k": budget, "max_loss": self.max_loss}
        try:
            return advise(self.judged[run], self.bootstrap, **options, calibrated=curves)
        except InputError as error:
            if curves is None:
                raise
            # People labelled too few pairs for the figures at every K; those at one K may still be calibrated.
            return Recommendation(None, f"No advice on K: {error}.", str(self.ranking), budget)

    def _measured_at(self, depth: int) -> Measured:
        """All that the decision shows, at its K alone."""
        usual = default_measures(self.report.scale, sized=self.sized, pooled=True, classic=True)
        parameters = {"rel": self.rel, "m": 1 if self.m is None else self.m}
        chosen: list[Measure | str] = [self.success]
        if self.sized:
            chosen += [BoR(**parameters), BoR_max(**parameters)]  # type: ignore[arg-type]
        chosen += [name for name in usual if name not in ("Success", "BoR", "BoR_max")]
        return measure_all(self.judged, [*chosen, self.ranking], [depth])

    def _chance(self, report: Report, run: str, depth: int) -> float:
        """The success of a random draw of K passages; NaN if it is unknown."""
        most = at_depth(report.runs[run].estimates, BoR_max(rel=self.rel, m=self.success.m), depth)
        return math.nan if most is None or math.isnan(most.value) else float(2**-most.value)

    @staticmethod
    def _with_remedy(answer: Answer, report: Report, run: str, depth: int, *, believed: bool) -> Answer:
        """The answer with what to look at, if the two factors of RA-nWG are known."""
        estimates = report.runs[run].estimates
        pool, share = (at_depth(estimates, each, depth) for each in _SPLIT)
        if pool is None or share is None or not believed:
            return answer
        text = remedy(pool, share, depth)
        return replace(answer, more=" ".join(part for part in (answer.more, text) if part))

    # -- the loss ------------------------------------------------------------------------------------------

    def _losses(self, report: Report, run: str, measure: Measure) -> Losses | None:
        """The losses of a run; where its figures rest on completed labels, those figures, without tests."""
        losses = losses_of(self.judged[run], measure, self.bootstrap)
        if losses is None or report[run, measure].basis not in _COMPLETED:
            return losses
        pool, share = (at_depth(report.runs[run].estimates, each, int(measure.at or 1)) for each in _SPLIT)
        kept = report[run, measure].value
        if pool is None or share is None or not isinstance(measure, RANWG) or math.isnan(pool.value + kept):
            return None
        rerank, widen = Gain(pool.value - kept), Gain(share.value - kept)
        return replace(losses, pool=pool.value, selected=share.value, rerank=rerank, widen=widen, more="")

    def _closed(self, report: Report, run: str, measure: Measure) -> bool:
        pooled = at_depth(report.runs[run].estimates, PROC(), int(measure.at or 1))
        cells = [report[run, measure], *([pooled] if pooled is not None else [])]
        return any(caveat.code == CLOSED for cell in cells for caveat in cell.caveats)

    def _label_step(self, report: Report, run: str, depth: int, *, believed: bool) -> str:
        """The cheapest labelling that would allow more; empty if there is none to propose."""
        if step := report.trust.next_step.split(";")[0].rstrip("."):
            return f"label more: {step}"
        if not believed:
            return "let people label a sample of the pairs again, to check these labels"
        harm = at_depth(report.runs[run].estimates, Harm(), depth)
        share = at_depth(report.runs[run].estimates, Judged(), depth)
        if harm is None or share is None or harm.possible is None:
            return ""
        low, high = map(number, harm.possible)
        unlabelled = f"{percent(1 - share.value)} of the top {depth} has no label"
        return f"label more: {unlabelled}, so Harm is anything from {low} to {high}"

    # -- the table -----------------------------------------------------------------------------------------

    def _lines(
        self,
        measured: Measured,
        report: Report,
        order: list[str],
        of_run: Mapping[str, str],
        rows: tuple[RunDifference, ...],
        depth: int,
        costs: Costs,
    ) -> tuple[RunLine, ...]:
        columns = self._columns(report, depth)
        verdicts = self._verdicts(measured, report, rows, depth)
        lines = []
        for name in order:
            of_line = {}
            for base in columns:
                estimate = at_depth(report.runs[name].estimates, base, depth)
                if estimate is None:
                    continue
                most = None
                if isinstance(base, BoR):
                    ceiling = at_depth(report.runs[name].estimates, BoR_max(rel=base.rel, m=base.m), depth)
                    most = None if ceiling is None else ceiling.value
                verdict = None if name == self.baseline else verdicts.get((name, str(base @ depth)))
                of_line[base.name] = RunFigure(base @ depth, estimate, verdict, most)
            lines.append(RunLine(name, of_run.get(name, ""), of_line, costs.at(name, depth)))
        return tuple(lines)

    def _cost_points(
        self, report: Report, measure: Measure, reach: int, costs: Costs
    ) -> dict[str, tuple[CostPoint, ...]]:
        """Cost against quality at every K; where figures rest on completed labels, at the K of the decision alone."""
        if not costs:
            return {}
        depth = int(measure.at or 1)
        bought = self.bought @ depth
        if bought != measure:
            report = self._report_on(measure_all(self.judged, [bought], []), None)
        completed = any(report[name, bought].basis in _COMPLETED for name in self.judged)
        depths = np.array([depth]) if completed else drawn_depths(reach, depth)
        if completed:
            curves = {name: np.array([report[name, bought].value]) for name in self.judged}
        else:
            curves = {name: self.bought.outcome(r, depths).settled().value() for name, r in self.judged.items()}
        return cost_points(costs, curves, depths, depth)

    def _columns(self, report: Report, depth: int) -> list[Measure]:
        """The measures of the table, the one that ranks first: properties of a run, without Judged, each once."""
        known = [self.ranking, *(replace(measure, at=None) for measure in report.measures)]
        return [
            base
            for base in dict.fromkeys(known)
            if base.higher_is_better is not None
            and base.name != "Judged"
            and any(at_depth(run.estimates, base, depth) is not None for run in report.runs.values())
        ]

    def _verdicts(
        self, measured: Measured, report: Report, rows: tuple[RunDifference, ...], depth: int
    ) -> dict[tuple[str, str], str]:
        """{(run, measure): verdict} against the baseline; that of the ranking measure comes from all pairs."""
        if self.bootstrap is None:
            return {}
        verdicts = {}
        swapped = {"better": "worse", "worse": "better"}
        shares_test = {str(self.ranking @ depth)}
        for row in rows:
            if self.baseline not in (row.run, row.baseline) or row.measure != self.ranking @ depth:
                continue
            other = row.run if row.baseline == self.baseline else row.baseline
            verdict = row.verdict if row.baseline == self.baseline else swapped.get(row.verdict, row.verdict)
            verdicts[other, str(row.measure)] = verdict
        asked = [base @ depth for base in self._columns(report, depth) if str(base @ depth) not in shares_test]
        if isinstance(self.ranking, Success):
            # BoR differs exactly where Success does: one test.
            for (name, _), verdict in list(verdicts.items()):
                verdicts[name, str(BoR(rel=self.rel, m=self.success.m) @ depth)] = verdict
            asked = [measure for measure in asked if not isinstance(measure, BoR)]
        others = [(name, self.baseline) for name in self.judged if name != self.baseline]
        pairs = comparable(others, self.judged, paired=self.paired)
        shown = measured.only(asked)
        for row in differences(pairs, shown.figures, report, Testing(self.bootstrap, self.paired)):
            verdicts[row.run, str(row.measure)] = row.verdict
        return verdicts
