"""`decide`: five answers about all runs of a report at one K."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rag_selectivity.advice import sentences
from rag_selectivity.advice.costs import Costs, cheapest_run
from rag_selectivity.advice.losses import Gain, Losses, losses_of
from rag_selectivity.advice.systems import all_pairs, best_first, comparable, letters, pair_of
from rag_selectivity.advice.which_k import WORTH, advised_k, curve_of, parameters_of
from rag_selectivity.compare.differences import Testing
from rag_selectivity.compare.pairs import differences
from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.evaluation.evaluate import Measured, measure_all, report_on
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures import Measure
from rag_selectivity.measures.chance import BoR, BoR_max, Success
from rag_selectivity.measures.plan import at_depth, default_measures
from rag_selectivity.measures.utility import PROC, RANWG, Evidence, Harm, PercentPROC
from rag_selectivity.results.comparison import RunDifference
from rag_selectivity.results.decision import (
    ADVISED,
    ASSUMED,
    GIVEN,
    Answer,
    Decision,
    Pair,
    RunFigure,
    RunLine,
)
from rag_selectivity.results.estimate import CALIBRATED, WITH_TAIL
from rag_selectivity.results.remedy import remedy
from rag_selectivity.results.report import Report
from rag_selectivity.results.trust import CLOSED, NOTHING

#: The K of a decision if neither the user nor the rule names one.
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
    paired: bool = True,
    costs: Costs | None = None,
) -> Decision:
    """Which system, which K, where the loss is, what to do next, and how far the labels can be believed.

    All answers are about all runs at one K, under one measure: RA-nWG on the utility scale, else Success; Success on
    every scale if `rel` or `m` is given.

    Parameters
    ----------
    report : Report
        From `evaluate`, with its lists. Its level, clusters, controls and labels by people are used.
    k : int, optional
        The K that is used in production. Default: the one that `which_k` advises for the run with the most evidence at
        its own K; without advice 10, or the longest list if that is shorter.
    baseline : str, optional
        The run that the table compares with. Default: the first one.
    rel, m : int, optional
        As in `which_k`.
    paired : bool
        False if the runs are over different queries, as in `compare`.
    costs : Costs, optional
        From `rag_selectivity.advice.read_costs`: adds the cheapest run whose evidence keeps up with the best.

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
    labels show nothing about the retriever.

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
    return _Decider(report, judged, first, rel, m, paired, costs).decide(k)


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
        paired: bool,
        costs: Costs,
    ) -> None:
        self.report, self.judged, self.baseline = report, judged, baseline
        self.rel, self.m, self.paired, self.costs = rel, 1 if m is None else m, paired, costs
        self.bootstrap = report.bootstrap
        first = next(iter(judged.values()))
        self.sized = first.corpus_size is not None
        of_utility = report.scale == "utility" and rel is None and m is None
        self.success = Success(rel=rel, m=self.m)
        self.ranking: Measure = RANWG() if of_utility else self.success
        evidence = Evidence(rel=rel, enough=max(3, self.m))
        self.curves = {name: curve_of(run, evidence, WORTH) for name, run in judged.items()}
        self.advised = {
            name: advised_k(run, evidence, self.curves[name], self.bootstrap) for name, run in judged.items()
        }

    def decide(self, k: int | None) -> Decision:
        leader = max(self.judged, key=self._evidence)
        advised = self.advised[leader]
        longest = max(int(run.returned.max(initial=1)) for run in self.judged.values())
        depth = k or advised.value or min(USUAL_K, max(1, longest))
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
        return Decision(
            K=depth,
            K_from=GIVEN if k else ADVISED if advised.value else ASSUMED,
            measure=measure,
            baseline=self.baseline,
            answers=self._answers(report, order, pairs, leader, depth, given=k is not None),
            lines=self._lines(measured, report, order, of_run, rows, depth),
            pairs=pairs,
            queries=report.runs[best].evaluated,
            k=advised,
            k_by_run=self.advised,
            cheapest=cheapest_run(self.costs, self.curves, self.advised, leader, self.bootstrap),
            notes=self.costs.notes,
            level=None if self.bootstrap is None else self.bootstrap.level,
        )

    def _evidence(self, run: str) -> float:
        """The mean evidence of a run at its own K."""
        at = self.advised[run].value
        return -1.0 if at is None else float(self.curves[run].at(at).mean())

    def _answers(
        self, report: Report, order: list[str], pairs: tuple[Pair, ...], leader: str, depth: int, *, given: bool
    ) -> tuple[Answer, ...]:
        best, measure, trust = order[0], self.ranking @ depth, report.trust
        estimates = report.runs[best].estimates
        closed, losses = self._closed(report, best, measure), self._losses(report, best, measure)
        completed = report[best, measure].basis in _COMPLETED
        believed = trust.standing != NOTHING
        if losses is not None and not believed:
            losses = replace(losses, more="")
        figures, queries = {name: report[name, measure] for name in order}, report[best, measure].n
        said = {base.name: at_depth(estimates, base, depth) for base in (Harm(), BoR(rel=self.rel, m=self.m))}
        loss = sentences.where_the_loss_is(best, losses, measure, depth, closed=closed, completed=completed)
        return (
            sentences.which_system(figures, measure, pairs, queries, believed=believed),
            sentences.which_k(
                depth,
                given=given,
                run=leader,
                advised=self.advised[leader],
                figures={name: each for name, each in said.items() if each is not None},
                chance=self._chance(report, best, depth),
                believed=believed,
            ),
            self._with_remedy(loss, report, best, depth, believed=believed),
            sentences.what_next(
                pairs,
                best,
                queries,
                trust,
                losses,
                believed=believed,
                sized=self.sized,
                of_pairs=int(self.judged[best].labels.sum()),
                closed=closed,
            ),
            sentences.may_i_believe_it(trust),
        )

    def _report_on(self, measured: Measured, bootstrap: Bootstrap | None) -> Report:
        """The figures of what was measured, with what the given report computed."""
        return report_on(measured, bootstrap, ground=self.report.ground, completed=self.report.completed)

    def _measured_at(self, depth: int) -> Measured:
        """All that the decision shows, at its K alone."""
        usual = default_measures(self.report.scale, sized=self.sized, pooled=True, classic=True)
        chosen: list[Measure | str] = [self.success]
        if self.sized:
            chosen += [BoR(rel=self.rel, m=self.m), BoR_max(rel=self.rel, m=self.m)]
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

    # -- the table -----------------------------------------------------------------------------------------

    def _lines(
        self,
        measured: Measured,
        report: Report,
        order: list[str],
        of_run: Mapping[str, str],
        rows: tuple[RunDifference, ...],
        depth: int,
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
            lines.append(RunLine(name, of_run.get(name, ""), of_line, self.costs.at(name, depth)))
        return tuple(lines)

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
