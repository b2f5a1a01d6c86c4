"""`decide`: five answers about all runs of a report at one K."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from rag_selectivity.advice import sentences
from rag_selectivity.advice.costs import Costs, cheapest_run
from rag_selectivity.advice.losses import QUERIES, Losses, losses_of
from rag_selectivity.advice.trust import trust_of
from rag_selectivity.advice.which_k import Advice
from rag_selectivity.compare.differences import Pairs, Testing, as_family, differences, known_baseline
from rag_selectivity.errors import InputError
from rag_selectivity.evaluation.caveats import CLOSED, DOWN_TO
from rag_selectivity.evaluation.evaluate import measure_all, usual_depths
from rag_selectivity.evaluation.report import filtered_out, report_on
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import Measure, Real
from rag_selectivity.measures.chance import BoR, BoR_max, Success, success_of
from rag_selectivity.measures.plan import at_depth, default_measures, plan_as_named, wanted_measures, without_depth
from rag_selectivity.measures.utility import PROC, RANWG, PercentPROC
from rag_selectivity.results.decision import Answer, Decision, Pair, RunFigure, RunLine
from rag_selectivity.results.difference import BETTER, JUDGED_IN_PART, WORSE, RunDifference
from rag_selectivity.results.estimate import CALIBRATED, WITH_TAIL
from rag_selectivity.results.provenance import CHECKED, NOTHING, Trust
from rag_selectivity.results.report import Report
from rag_selectivity.tables.cells import check_whole


def decide(
    report: Report, *, k: int | None = None, baseline: str | None = None, paired: bool = True, costs: Costs = Costs()
) -> Decision:
    """Which system, which K, where the loss is, what to do next, and how far the labels can be believed.

    All answers are about all runs at one K. RA-nWG ranks the runs on the utility scale, else the first measure that the
    report was asked for, or Success (for BoR and EF too). What is lost is RA-nWG or Success: Success on every scale if
    the report's BoR or Success has a `rel` or an `m` of its own.

    Parameters
    ----------
    report : Report
        From `evaluate`, with its lists. Its level, clusters, controls and labels by people are used.
    k : int, optional
        The K that is used in production. Default: of live retrievals, what was shown at most; else the one that
        `which_k` advises for the run with the most evidence at its own K, or the last rank that the lists of another
        run reach if that is less, but at least half of it; without advice 10, or the longest list if that is shorter.
    baseline : str, optional
        The run that the table compares with. Default: the first one.
    paired : bool
        False if the runs are over different queries, as in `compare`.
    costs : Costs, optional
        From `rag_selectivity.advice.read_costs`: adds the cheapest run whose evidence keeps up with the best.

    Returns
    -------
    Decision
        Its figures are in the units of their measures and NaN where they are undefined. Without intervals in the report
        nothing is tested, and no answer is shown.

    Raises
    ------
    InputError
        If the report holds no lists, as one that was read from a file; if there is no such baseline;
        if `k` is not a whole number ≥ 1, or is more than the corpus size.

    Notes
    -----
    The pairs of runs are one family of tests under Holm's correction, and decide about the first answer and the marks
    of the ranking measure. The other columns of the table are a second family: their
    differences from the baseline. An answer is shown if a test or a bound shows what it concludes, and none is if the
    labels show nothing about the retriever.

    References
    ----------
    Holm 1979, Scandinavian Journal of Statistics 6 (the correction).

    >>> from rag_selectivity import evaluate
    >>> qrels = {f"q{i}": ["d"] for i in range(40)}
    >>> runs = {"old": {q: ["x", "y", "d"] for q in qrels}, "new": {q: ["x", "d", "y"] for q in qrels}}
    >>> decision = decide(evaluate(qrels, runs, corpus_size=100), k=2)
    >>> decision.best, decision.answers[0].shown
    ('new', True)
    """
    check_whole("k", k)
    judged = {name: run.judged for name, run in report.runs.items() if run.judged is not None}
    if len(judged) < len(report.runs) or not judged:
        raise InputError("a decision needs the lists of the runs, and this report holds figures alone: evaluate them")
    for run in judged.values() if costs != Costs() else ():
        run.refuse_weights("a cost of reading")
    baseline = known_baseline(baseline, judged)
    success = success_of(report.measures)
    evidence: Measure = RANWG() if report.scale == "utility" and success == Success() else success
    advice = Advice.of(judged, report.measures, report.bootstrap)
    is_live = any(run.figures.rules is None for run in report.runs.values())
    is_shown = is_live or (k and any("shown" in run.input for run in report.runs.values()))
    depth, source = advice.taken(k, max(int(run.returned.max()) for run in judged.values()) if is_shown else None)
    first = next((each for each in _shown(without_depth(report.measures)) if each.higher_is_better), evidence)
    # What compares with chance has the test of Success.
    ranking = evidence if isinstance(evidence, RANWG) or first.needs_corpus_size else first
    at_k = _report_at(report, judged, _measures(report, success, ranking, depth), depth)
    trust = trust_of(at_k)
    source = "assumed" if source in ("advised", "reached") and trust.standing == NOTHING else source
    columns = list(dict.fromkeys([ranking.taken_at(depth), *_shown(each.taken_at(depth) for each in at_k.measures)]))
    # What was asked for at another depth stays there.
    asked = _shown(each for each in report.measures if each.at not in (None, depth))
    order = sorted(at_k.runs, key=lambda name: np.nan_to_num(-at_k[name, columns[0]].value, nan=math.inf))
    testing = Testing(report.bootstrap, paired)
    rows = _differences(list(combinations(order, 2)), at_k, columns[:1], testing)
    pairs = tuple(map(_pair, as_family(rows, testing, at_k.runs)[0]))
    # Where ids do not meet, nothing is shown.
    verdicts = {} if trust.ids_apart else _verdicts([(at_k, columns), (report, asked)], pairs, baseline, testing)
    figures = {name: _figures(at_k, report, name, [*columns, *asked], verdicts) for name in order}
    decision = Decision(
        K=depth,
        K_from=source,
        measure=columns[0],
        baseline=baseline,
        answers=(),
        lines=tuple(RunLine(name, figures[name], costs.at(name, depth)) for name in order),
        pairs=pairs,
        queries=at_k.runs[order[0]].evaluated,
        k=advice.by_run[advice.leader],
        k_by_run=advice.by_run,
        cheapest=cheapest_run(costs, advice, report.bootstrap),
        notes=costs.notes,
        level=None if report.bootstrap is None else report.bootstrap.level,
    )
    return replace(decision, answers=tuple(_answers(decision, report, at_k, trust, advice.leader, evidence @ depth)))


def depths_with_k(
    judged: Mapping[str, JudgedRun], depths: Any = usual_depths, *, k: int | None = None, measures: Iterable[Any] = ()
) -> list[int]:
    """Depths, or those that a function chooses, and the K of the decision: `k`, or else the one that is advised.

    As `depths` of `evaluate` or `compare` with these measures: the report holds the figures of its decision. K does not
    depend on its interval.
    """
    return sorted({*map(int, depths(judged) if callable(depths) else depths), k or Advice.of(judged, measures, None).K})


# -- the figures ---------------------------------------------------------------------------------------------


def _shown(some: Iterable[Measure]) -> list[Measure]:
    """The measures that stand in the table of a decision: not those at recall levels."""
    return [x for x in some if x.higher_is_better is not None and x.name != "Judged" and not isinstance(x.cutoff, Real)]


def _measures(report: Report, success: Success, ranking: Measure, depth: int) -> list[Measure]:
    """All that a decision shows at its K: the usual measures, and those that the report was asked for."""
    is_sized = all(run.judged is not None and run.judged.corpus_size is not None for run in report.runs.values())
    named = {each.name: each for each in (success, *(kind(rel=success.rel, m=success.m) for kind in (BoR, BoR_max)))}
    here = (each for each in report.measures if each.at in (None, depth) and not isinstance(each.cutoff, Real))
    usual = [named.get(x, x) for x in default_measures(report.scale, sized=is_sized, pooled=True, classic=True)]
    return wanted_measures([*usual, *without_depth([*here, ranking])], report.scale, sized=is_sized)


def _report_at(report: Report, judged: Mapping[str, JudgedRun], measures: Sequence[Measure], depth: int) -> Report:
    """The report at one depth: of its own figures where it has all of them, else measured now."""
    at = [measure.taken_at(depth) for measure in measures]
    if not all(str(each) in run.estimates for run in report.runs.values() for each in at):
        figures, chosen = measure_all(judged, measures, [depth])
        found = report_on(figures, chosen, report.bootstrap, ground=report.ground, completed=report.completed)
        return replace(found, provenance=report.provenance, steps=report.steps)
    runs = {}
    for name, run in report.runs.items():
        outcomes = [outcome for each in at if (outcome := run.figures.outcome(each)) is not None]
        table = replace(run.figures, plan=plan_as_named(at), outcomes=outcomes)
        runs[name] = replace(run, figures=table, estimates={str(each): run.estimates[str(each)] for each in at})
    return replace(report, runs=runs, measures=tuple(measures), depths=(depth,), decision=None)


def _differences(pairs: Pairs, report: Report, measures: Sequence[Measure], testing: Testing) -> list[RunDifference]:
    """The differences of pairs of runs; unless unpaired, runs over different queries make no pair."""
    if testing.bootstrap is None or not measures:
        return []
    compared = [(a, b) for a, b in pairs if not testing.paired or report.runs[a].queries == report.runs[b].queries]
    rows = [x for x in differences(compared, report.runs, measures, testing, report.ground) if x.measure in measures]
    # With a tail, the figures of the report rest on more labels than the difference.
    own = ([report[run, row.measure].value for run in (row.run, row.baseline)] for row in rows)
    return [replace(row, value=one, baseline_value=other) for row, (one, other) in zip(rows, own, strict=True)]


def _pair(row: RunDifference) -> Pair:
    """A pair of runs, the better one first, as `row` has it."""
    names = ("run", "difference", "low", "high", "p_adjusted", "detectable", "times", "verdict", "unequal")
    # Where figures rest on completed labels and tests do not, the run that comes first can be the worse one.
    return Pair(other=row.baseline, apart=row.verdict == BETTER, **{name: getattr(row, name) for name in names})


def _verdicts(
    tables: Sequence[tuple[Report, Sequence[Measure]]], pairs: Sequence[Pair], baseline: str, testing: Testing
) -> dict[tuple[str, Measure], str]:
    """{(run, column): verdict} against the baseline; that of the first column, which ranks, comes from all pairs.

    The tables are reports with their columns.
    """
    first = tables[0][1][0]
    # BoR differs exactly where Success does: one test.
    shared = [each for each in tables[0][1] if each == first or (isinstance(first, Success) and each.name == "BoR")]
    ranked = {pair.run: pair.verdict for pair in pairs if pair.other == baseline}
    ranked |= {pair.other: WORSE if pair.apart else pair.verdict for pair in pairs if pair.run == baseline}
    rows, compared = [], [row for row in tables[-1][0].compared if row.baseline == baseline]
    for report, columns in tables:
        against = [(name, baseline) for name in report.runs if name != baseline]
        rows += _differences(against, report, [each for each in columns if each not in shared], testing)
    return {
        **{(run, measure): verdict for run, verdict in ranked.items() for measure in shared},
        **{(row.run, row.measure): row.verdict for row in as_family(rows, testing)[0]},
        # What a comparison tests has one verdict wherever it stands.
        **{(row.run, row.measure): row.verdict for row in compared if row.measure not in shared},
    }


def _figures(
    at_k: Report, report: Report, run: str, columns: Sequence[Measure], verdicts: Mapping[tuple[str, Measure], str]
) -> dict[str, RunFigure]:
    """The cells of a run, by column: by the name of the measure, and by all of it where it stays at another depth."""
    estimates, figures = {**report.runs[run].estimates, **at_k.runs[run].estimates}, {}
    for column in columns:
        bor = column if isinstance(column, BoR) and column.needs_corpus_size else None
        most = "" if bor is None else str(BoR_max(rel=bor.rel, m=bor.m, at=bor.at))
        if (estimate := estimates.get(str(column))) is not None:
            is_first = column.name not in figures and str(column) in at_k.runs[run].estimates
            key = column.name if is_first else str(column)
            ceiling = estimates[most].value if most in estimates else None
            figures[key] = RunFigure(column, estimate, verdicts.get((run, column)), ceiling)
    return figures


# -- the answers ---------------------------------------------------------------------------------------------


def _answers(
    decision: Decision, report: Report, at_k: Report, trust: Trust, leader: str, evidence: Measure
) -> Iterator[Answer]:
    # At an advised K another run than that of the advice can be the best: K is then about that run.
    best, found, judged = decision.best, report.runs[decision.best], at_k.runs[decision.best].figures.join
    is_believed, judges = trust.standing != NOTHING, trust.unchecked_judges
    (fails, most_fail), verdict = sentences.outage(judged, found.input), trust.verdict
    doubt = "Open until the ids meet" if trust.ids_apart else trust.answer
    if most_fail and not (is_believed or trust.ids_apart):
        doubt, verdict = "Too little was retrieved to tell", f"Too little was retrieved to tell: {fails}."
    # Why it is open says more than that the labels of one list alone cannot tell.
    is_unequal = {pair.verdict for pair in decision.pairs if pair.run == best} == {JUDGED_IN_PART}
    told = is_believed or (is_unequal and not (most_fail or trust.ids_apart))
    yield sentences.which_system(decision, "" if told else doubt, sentences.without_lists(at_k), judges=judges)
    about = leader if decision.K_from in ("advised", "reached") and not fails else best
    yield sentences.which_k(decision, at_k, about, fails, "" if is_believed else doubt, judges=judges)
    # The candidates of a run that is tied with the best tell more than none.
    tied = (pair.other for pair in decision.pairs if pair.run == best and not pair.apart)
    whose = next((run for run in (best, *tied) if not at_k.runs[run].figures.join.own_pool.all()), best)
    figure, pool = at_k[whose, evidence], at_depth(at_k.runs[whose].estimates, PROC(), decision.K)
    caveats = {each.code: each for cell in (figure, pool) if cell is not None for each in cell.caveats}
    is_closed, reach = CLOSED in caveats, caveats.get(DOWN_TO)
    losses, why = _losses(at_k, whose, evidence)
    # Candidates that are all of what was graded hold all evidence, whatever the retriever missed.
    is_open = is_closed or (reach is not None and losses is not None and round(losses.pool, 9) == 1)
    if losses is not None:
        # What no run retrieved is not known of closed labels, and so neither is what more candidates would gain.
        known = losses.of if reach is None else f"evidence down to rank {reach.figures['last_rank']}"
        of = losses.of if losses.of == QUERIES else "labelled evidence" if is_closed else known
        losses = replace(losses, of=of, more=losses.more * is_believed, widen=0.0 if is_open else losses.widen)
    first = filtered_out(judged) + f"{best} has no candidates (pool=…, --pool). " * (whose != best)
    yield sentences.where_lost(whose, decision.K, losses, why, first, unknown=is_open, live=found.figures.rules is None)
    yield sentences.what_next(decision, at_k, losses, fails, trust)
    # What is shown by the grades of a judge whom nobody checked is no reason to believe them: the words say both.
    yield Answer("trust", verdict, trust.standing == CHECKED and (None if judges else True), " ".join(trust.facts))


def _losses(at_k: Report, run: str, measure: Measure) -> tuple[Losses | None, str]:
    """The losses of a run, and why they are not known, if they are not.

    Where its figures rest on completed labels, the losses are those figures, without tests.
    """
    judged, kept = at_k.runs[run].figures.join, at_k[run, measure]
    found = losses_of(judged, measure, at_k.bootstrap)
    if found is None or kept.basis not in (CALIBRATED, WITH_TAIL):
        labelled = "labelled " if judged.policy.unjudged == "condense" else ""
        return found, f"no {labelled}candidates beyond K = {at_k.depths[0]} were given (pool=…, --pool)"
    pool, share = (at_depth(at_k.runs[run].estimates, each, at_k.depths[0]) for each in (PROC(), PercentPROC()))
    if pool is None or share is None or not isinstance(measure, RANWG) or math.isnan(pool.value + kept.value):
        return None, "with labels completed by people or a tail, its candidates have no figure"
    rerank, widen = pool.value - kept.value, share.value - kept.value
    return replace(found, pool=pool.value, selected=share.value, rerank=rerank, widen=widen, more="", limits={}), ""
