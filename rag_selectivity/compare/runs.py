"""`compare`: the differences between runs and a baseline run, with intervals, tests and the detectable difference."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rag_selectivity.compare.differences import Pairs, Testing, as_family, differences, known_baseline
from rag_selectivity.errors import InputError, examples
from rag_selectivity.evaluation.evaluate import measure_all
from rag_selectivity.evaluation.joining import join_runs
from rag_selectivity.evaluation.report import report_on
from rag_selectivity.figures.by import Slicing, slicings_of
from rag_selectivity.figures.weighting import weighted, weights_notes, weights_settings
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import Policy, resolve_policy
from rag_selectivity.measures import Measure
from rag_selectivity.measures.plan import compared_depths, compared_measures, need_other_lists
from rag_selectivity.results.report import Comparison, Report, SliceDifferences
from rag_selectivity.tables.cells import check_number, check_whole
from rag_selectivity.wording import counted

#: Runs that share less than this share of their queries are compared query by query only if the user asks for it.
LEAST_SHARED = 0.5
_ALIKE = "a difference rests on labels completed for both runs alike, and need not be that of their two figures"


def compare(
    qrels: Any,
    runs: Mapping[str, Any],
    *,
    baseline: str | None = None,
    measures: Sequence[str | Measure] | str | None = None,
    depths: Sequence[int] | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    paired: bool = True,
    draws: int = 10_000,
    power: float = 0.8,
    ids: str | None = None,
    by: Any = None,
    weights: Any = None,
    **inputs: Any,
) -> Comparison:
    """Compare runs with a baseline run: query by query, or as samples of different queries.

    Parameters
    ----------
    qrels
        As in `evaluate`.
    runs : {name: run}
        Two or more.
    baseline : str, optional
        The run that the others are compared with. Default: the first one.
    measures : sequence of str or Measure, optional
        Default: Success; with a corpus size also BoR; on the utility scale also RA-nWG and Harm.
    depths : sequence of int, optional
        Default: 5, 10, 20, up to the length of the longest list.
    bootstrap : Bootstrap
        Its level, seed and clusters apply to the differences too.
    paired : bool
        False for runs over different queries, such as the arms of an A/B test: each is measured over its own.
    draws : int
        The number of random swaps (unpaired: permutations), used when there are too many to count all of them.
    power : float
        The power for `detectable`: the probability that a true difference of that size would have been shown.
    ids, by : optional
        As in `evaluate`. `Comparison.slices` has the differences within each slice, with a Holm correction of their
        own. Slices under 20 queries have no verdict.
    weights : optional
        As in `evaluate`. Differences, intervals and p-values are then weighted; wins, ties and losses count
        queries. A swap of two runs' figures swaps what each weighs, so the test keeps its level for runs that are
        interchangeable in each query, whatever the weights are. An unpaired comparison takes none.
    **inputs
        Every other argument of `evaluate`, such as `corpus_size`, `scale`, `policy`, `pool` and `tokens`. With
        `controls`, both runs of a paired comparison have the same random baseline, so that the difference in BoR and
        its test are those of Success and rest on no estimate of it: `baseline_value` is then the figure with controls,
        and `value` is `baseline_value` + `difference`. EF, and all unpaired rows, stay as judged, and a caveat says so.
        With `human`, both runs of a difference are measured on the same completions of the labels; p, interval and
        verdict come from these, and show no more than the test of each query's means over them does.
        `RunDifference.as_judged` is the difference with the judge's labels alone. Wins, ties and losses stay as judged.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If there are fewer than two runs; if a measure does not depend on the run; if two runs share less than half of
        their queries and neither `paired=False` nor `missing_query` is given.

    Examples
    --------
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> hit_first, hit_second = ["d", "x"], ["x", "d"]
    >>> runs = {"old": {q: hit_second for q in qrels}, "new": {q: hit_first for q in qrels}}
    >>> row = compare(qrels, runs, corpus_size=100, depths=[1], measures=["Success"])["new", "Success@1"]
    >>> row.difference, row.p, row.test, row.wins
    (1.0, 0.0078125, 'exact', 8)
    """
    given, testing = inputs.get("policy"), Testing(Bootstrap.required(bootstrap), paired, draws, power)
    missing_query = inputs.get("missing_query", given.missing_query if isinstance(given, Policy) else None)
    if inputs.get("missing_query", resolve_policy(given).missing_query) == "skip":
        # The queries that a run lacks must be known here: a run over other queries is refused below.
        inputs["missing_query"] = "fail"
    other_lists = need_other_lists(measures) or None
    joined = join_runs(qrels, runs, measures=measures, ids=ids, other_lists=other_lists, **inputs)
    judged, ground = weighted(joined.judged, weights, ids=ids), joined.ground
    base = _baseline(judged, baseline, draws, power)
    if not paired:
        if bootstrap.clusters is not None or ground is not None:
            why = "clusters and labels by people (human) need comparisons over the same queries"
            raise InputError(f"{why}: leave out paired=False (intervals.unpaired), or evaluate each run alone")
        judged[base].refuse_weights("an unpaired comparison")
    slicings = slicings_of(by, judged, ids=ids)
    judged, notes = _over_shared_queries(judged, base, paired, missing_query)
    for of_run in joined.notes.values():
        # Over which queries the figures are is said with the figures.
        of_run += notes
    notes += weights_notes(judged[base])
    notes += ["W/T/L and the largest differences are of single queries, without weights"] * bool(judged[base].weights)
    if measures is None:
        measures = compared_measures(judged[base].scale, sized=judged[base].corpus_size is not None)
    figures, chosen = measure_all(judged, measures, depths_of_comparison if depths is None else depths)
    for measure in chosen:
        if measure.higher_is_better is None:
            why = "it depends on corpus, judgments and K only and is the same for all runs"
            raise InputError(f"{measure} cannot be compared: {why}; leave it out")
    report = report_on(figures, chosen, bootstrap, joined.notes, ground, slicings)
    pairs = [(name, base) for name in judged if name != base]
    every = differences(pairs, report.runs, report.measures, testing, ground)
    rows, how = as_family(every, testing, report.runs)
    settings = {**bootstrap.settings, **how, **weights_settings(judged)}
    if ground is not None and any(row.as_judged is not None and row.reason is None for row in rows):
        notes[:0] = [f"{ground.calibrated_by}; {_ALIKE}", *filter(None, [ground.controls_left_out])]
    slices, family = _in_slices(pairs, report, testing, slicings)
    if slicings:
        settings["family_of_slices"] = family
        notes += [note for slicing in slicings for note in slicing.notes]
    return Comparison(base, rows, replace(report, compared=rows), settings, tuple(notes), slices)


def depths_of_comparison(judged: Mapping[str, JudgedRun]) -> list[int]:
    """The depths of a comparison, if none are given."""
    return compared_depths(max(int(run.returned.max(initial=1)) for run in judged.values()))


def _in_slices(
    pairs: Pairs, report: Report, testing: Testing, slicings: Sequence[Slicing]
) -> tuple[dict[str, dict[str, SliceDifferences]], int]:
    """The differences in each slice, by column and value; those of all slices are one family of tests, of so many."""
    within, rows = [(slicing.column, value) for slicing in slicings for value in slicing.values], []
    for by in within:
        rows += differences(pairs, report.runs, report.measures, testing, report.ground, by)
    family, how = as_family(rows, testing)
    slices: dict[str, dict[str, SliceDifferences]] = {}
    for column, value in within:
        of_slice = tuple(row for row in family if row.by == (column, value))
        inside = [run.slices.get(column, {}).get(value) for run in report.runs.values()]
        counts = [part.queries for part in inside if part is not None]
        if of_slice:
            queries = counts[0] if testing.paired else sum(counts)
            slices.setdefault(column, {})[value] = SliceDifferences(column, value, queries, of_slice)
    return slices, how["family"]


def _baseline(judged: Mapping[str, JudgedRun], baseline: str | None, draws: int, power: float) -> str:
    """The baseline run, the first one unless it is given."""
    base = known_baseline(baseline, judged)
    if len(judged) < 2:
        raise InputError(f"a comparison needs at least two runs, got {', '.join(judged) or 'none'}")
    check_whole("draws (intervals.draws)", draws)
    check_number("power (intervals.power)", power, above=0, most=0.999)
    return base


def _over_shared_queries(
    judged: dict[str, JudgedRun], base: str, paired: bool, missing_query: str | None
) -> tuple[dict[str, JudgedRun], list[str]]:
    """The joins over the queries that count for each run, and notes on queries that a run lacks."""
    has, notes = {name: ~run.missing for name, run in judged.items()}, []
    if paired and missing_query == "skip":
        by_all = np.logical_and.reduce(list(has.values()))
        if not by_all.any():
            mend = "compare them with paired=False (-c intervals.unpaired=true)"
            raise InputError(f"no query is in all of the runs {', '.join(judged)}: {mend}")
        if left_out := int((~by_all).sum()):
            what = counted(left_out, "query is", "queries are")
            notes.append(f"of all runs {what} left out, since not every run has each of them")
        return {name: run.over(by_all) for name, run in judged.items()}, notes
    for name, mask in has.items():
        shared = int((mask & has[base]).sum())
        if not paired and name != base and shared:
            notes.append(f"{name} and {base} share {shared} queries; the comparison treats these as different queries")
        if paired and missing_query is None and shared < LEAST_SHARED * int((mask | has[base]).sum()):
            raise InputError(_few_shared(judged, name, base))
    return judged if paired else {name: run.over(has[name]) for name, run in judged.items()}, notes


def _few_shared(judged: Mapping[str, JudgedRun], name: str, base: str) -> str:
    """Why two runs with few queries in common are not compared query by query."""
    queries, has = np.array(judged[name].queries, object), {each: ~judged[each].missing for each in (name, base)}
    shared = int((has[name] & has[base]).sum())
    only = [
        f"only {one} has {examples(queries[has[one] & ~has[other]].tolist()) or 'none'}"
        for one, other in ((name, base), (base, name))
    ]
    skip = ', missing_query="skip" (-c rules.missing_query=skip) to compare over the shared queries'
    return (
        f"{name} and {base} share {shared} of {int((has[name] | has[base]).sum())} queries ({', '.join(only)}): a "
        f"query that a run lacks would count as its failure. Use paired=False (intervals.unpaired) for samples of "
        f'different queries{skip if shared else ""}, or missing_query="fail" (-c rules.missing_query=fail) if a '
        f"missing query is a failure"
    )
