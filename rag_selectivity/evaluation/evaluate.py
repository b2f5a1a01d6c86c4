"""`evaluate`: measure runs against judgments and return a Report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.evaluation.doubts import check_join
from rag_selectivity.evaluation.joining import join_runs
from rag_selectivity.evaluation.report import report_on
from rag_selectivity.figures.by import slicings_of
from rag_selectivity.figures.figures import Figures
from rag_selectivity.figures.weighting import weighted
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.reading import named_runs
from rag_selectivity.measures import Measure
from rag_selectivity.measures.plan import (
    default_depths,
    given_depths,
    need_other_lists,
    plan_of,
    wanted_measures,
    with_whole_lists,
)
from rag_selectivity.results.report import Report
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.grades import Scale
from rag_selectivity.tables.ids import IntArray


def evaluate(
    qrels: Any,
    runs: Any,
    *,
    corpus_size: Any = None,
    measures: Sequence[str | Measure] | str | None = None,
    depths: Sequence[int] | Callable[[Mapping[str, JudgedRun]], Sequence[int]] | None = None,
    scale: str | Scale | None = None,
    policy: str | Policy | None = None,
    bootstrap: Bootstrap | None = Bootstrap(),
    ids: str | None = None,
    by: Any = None,
    weights: Any = None,
    **inputs: Any,
) -> Report:
    """Measure runs against judgments.

    Parameters
    ----------
    qrels : Qrels, {query: {passage: grade}}, DataFrame, rows or path
    runs : {name: run}, or one run
        A run is a Run, {query: [passage, …]}, {query: {passage: score}}, a DataFrame or a path; a run without a name
        may be rows, too. Files are streamed: only their judged hits are held in memory.
    corpus_size : int, {query: int} or DataFrame with a query and a corpus_size column, optional
        N, the number of passages that could have been retrieved. Chance-corrected measures need it.
    measures : sequence of str or Measure, optional
        `"BoR"` is measured at every depth, `"BoR@10"` at 10 only, and `"BoR@2000tok"` at a budget of tokens: the
        cutoff of each query is then the last passage that fits. Default: Success; with a corpus size
        also BoR, BoR_max and lambda; on the utility scale also RA-nWG and Harm. Judged is always shown
        with the utility measures. `"default"` stands for these, as in `["default", "RR"]`.
    depths : sequence of int, or a function of {run: JudgedRun} that chooses them, optional
        Default: 1, 2, 5, 10, … 1000, up to the length of the longest list and the corpus size.
    scale : {"trec", "utility"}, optional
        `trec`: 0 is not relevant, 1 and up are. `utility`: grades 1–5, relevant from 4. Labels of 0 and 1, expected ids
        without a grade and a label store need none; for other grades it must be given, or a grade map.
    policy : {"default", "trec_eval"} or Policy
        How edge cases are treated.
    bootstrap : Bootstrap or None
        The intervals over queries. Default: 5,000 resamples, seed 7, level 95 %. None leaves them out.
    ids : str, optional
        The form that all query and passage ids are brought into, if labels and runs write them differently:
        `"strip"`, `"nfc"`, `"casefold"`, `"number"` (0012, 12 and 12.0 are alike), `"name"` (docs/12.txt#0 and 12 are
        alike), `"prefix=doc-"`, `"suffix=_0"`, or several, as in `"strip,casefold"`. Default: as they are. `"exact"`
        also says that they are right, so that a run without a judged passage is accepted.
    by : path, frame, records, {query: value}, {column: {query: value}}, "n5", "R", or several, optional
        Groups of queries, for each of which every figure is given too (`RunReport.slices`). Each column of a table with
        `query_id` is a slicing; numbers with more than 8 values are cut into quartiles, and queries without a value are
        the slice `(none)`. `n5` counts decisive passages (grade 5), `R` relevant ones. Intervals come from the
        resamples of all queries. With `human` a slice rests on the labels by people of its own queries.
    weights : path, frame, records or {query: weight}, optional
        How much each query counts, such as the table that `rag_selectivity.golden.queries` makes: a column `weight`.
        Every figure over queries, its interval and its caveats are then weighted: Σwx/Σw in place of a mean, in both
        means of a ratio too. `Estimate.effective` is the effective number of queries, (Σw)²/Σw². Queries of weight 0
        are left out, and each other measured query needs a weight. Random controls take no weights.
    **inputs
        Any of the following, and single choices of the policy, as in `short_lists="returned"`.
    corpus : iterable of passage ids, optional
        Gives N. Judgments of passages that it lacks are left out, with a warning: neither a run nor a random draw can
        find them.
    passages_of : {document: number of its passages}, DataFrame or path of a table, optional
        For judged documents and retrieved passages (chunks): qrels and runs name documents, and each slot of a list
        is a passage. N and the random draw then count passages; without a corpus size N is the sum of all numbers.
        A document's further passages fill their slots and add nothing.
    grade_map : {old: new} or str, optional
        Maps other grades to the scale, as in `"0:1,1:3,2:4,3:5"`.
    pool : run, list of runs, {name: run}, or {run: any of these}, optional
        The candidates before reranking or selection, for all runs or for each run. With it, PROC and %PROC
        separate the retriever's losses from the reranker's. Without it a run's own full list is its pool. Several
        pools are fused (`Run.fused`): the pool holds what any of them holds.
    pool_depth : int, optional
        How many ranks of each pool count, cut before pools are fused. Default: all.
    controls : qrels, optional
        Grades of passages that were drawn at random for each query from those that are not in the qrels, by the same
        judge as the qrels. BoR, EF, RandomSuccess, BoR_max and lambda are then estimated with that judge's rate on
        random passages (`Estimate.basis` is "with controls"); the figure without it is `Estimate.as_judged`. List every
        graded control, also those that are not relevant. Labels from a label store bring their controls with them.
    human : qrels, path of a label store, or PeoplesLabels, optional
        Labels that people gave to a few of the pairs that a judge graded, best drawn as `calibrate_draw` does. Every
        figure then is the median over 150 completions of the labels, with an interval over completions and queries;
        `Estimate.as_judged` is the figure of the judge's labels alone, with which people's are not mixed. A figure is
        undefined where its strata have no label by a person. Figures of single queries stay as judged.
    tokens : {passage: tokens}, DataFrame or path, optional
        The lengths of the passages, which budgets of tokens need. Not needed for a run whose rows have a `tokens`
        column.
    groups : {passage: group}, DataFrame or path of a table, optional
        Passages that say the same under different ids, for Redundancy and for measures with `distinct=true`, as in
        `"RA-nWG(distinct=true)@5"`: a group counts once, with the highest grade of its passages.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If an argument or a file is wrong. The message says what is wrong, where, and what to do.

    References
    ----------
    Kish 1965, Survey Sampling (the effective number); Korn and Graubard 1998 (weighted rates).

    Examples
    --------
    >>> report = evaluate(
    ...     {"q1": {"d1": 1}, "q2": {"d2": 1}},
    ...     {"bm25": {"q1": ["d1", "d9"], "q2": ["d8", "d2"]}},
    ...     corpus_size=1024, measures=["BoR", "Success"], depths=[1, 2],
    ... )
    >>> report["bm25", "BoR@1"].value, report["bm25", "Success@1"].value
    (9.0, 0.5)
    """
    joined = join_runs(
        qrels,
        runs,
        corpus_size=corpus_size,
        measures=measures,
        scale=scale,
        policy=policy,
        ids=ids,
        # Without a measure that asks for them, they serve an interval alone.
        other_lists=need_other_lists(measures) or (None if bootstrap is not None else False),
        **inputs,
    )
    judged = weighted(joined.judged, weights, ids=ids)
    figures, chosen = measure_all(judged, measures, depths)
    gaining = [each.name for each in chosen if each.name in ("nDCG", "DCG", "ERR") and inputs.get("grade_map")]
    for notes in joined.notes.values() if gaining else ():
        notes.append(f"{', '.join(gaining)}: gains are the new grades: compare only with figures of the same grade map")
    report = report_on(figures, chosen, bootstrap, joined.notes, joined.ground, slicings_of(by, judged, ids=ids))
    files = [f"{name}={run if is_path(run) else 'RUN'}" for name, run in named_runs(runs).items()]
    return replace(report, steps=replace(report.steps, files=files))


def measure_all(
    judged: Mapping[str, JudgedRun], measures: Sequence[str | Measure] | str | None, depths: Any
) -> tuple[dict[str, Figures], list[Measure]]:
    """The figures of every run under every measure at all its depths, and the measures that are shown."""
    first = next(iter(judged.values()))
    chosen = wanted_measures(measures, first.scale, sized=first.corpus_size is not None, at_budgets=True)
    given = depths(judged) if callable(depths) else depths
    plan = plan_of(chosen, usual_depths(judged) if given is None else given_depths(given, chosen))
    plan = with_whole_lists(plan, chosen) if given is None else plan
    return {name: Figures.of(run, plan) for name, run in judged.items()}, chosen


def usual_depths(judged: Mapping[str, JudgedRun]) -> IntArray:
    """The depths of a report, if none are given."""
    sizes = [int(x.corpus_size.max()) for x in judged.values() if x.corpus_size is not None and len(x.corpus_size)]
    return default_depths(max(int(run.returned.max(initial=1)) for run in judged.values()), min(sizes, default=None))


def evaluate_joined(
    judged: Mapping[str, JudgedRun],
    *,
    measures: Sequence[str | Measure] | str | None = None,
    depths: Sequence[int] | None = None,
    bootstrap: Bootstrap | None = Bootstrap(),
) -> Report:
    """Measure joins, after a look whether labels and runs belong together; `evaluate` joins first."""
    if not isinstance(judged, Mapping) or not judged or not all(isinstance(run, JudgedRun) for run in judged.values()):
        raise InputError(f"judged must be {{name: JudgedRun}}, as `join` makes them, got {shown(judged)}")
    figures, chosen = measure_all(judged, measures, depths)
    for name, run in judged.items():
        check_join(run, name)
    return report_on(figures, chosen, bootstrap)
