"""`validate`: correlate the figures of a report with the scores of the answers."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.correlation import FEWEST, KINDS, SPEARMAN, Series, correlated_means, detectable
from rag_selectivity.inference.paired import holm
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures.base import Measure, Real, parse_measure
from rag_selectivity.results.report import Report
from rag_selectivity.results.workflows import QUERIES, RUNS, WITHIN, Following, Segment, Validation
from rag_selectivity.tables.cells import iterated, number_or_nan
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.scores import answer_scores
from rag_selectivity.validate.answers import AnsweredRun, answered_runs, compared_with_answers, rounded
from rag_selectivity.validate.following import Row, differences_of, with_correlations
from rag_selectivity.validate.words import notes_of, of_segment, summary_of

#: The power at which a correlation is called detectable.
_POWER = 0.8
#: The border of K/N_p in the recall-free paper, which advises T below 1, and nDCG from 1 on.
PUBLISHED_BORDERS = (1.0,)
#: Random weights of the queries, if none are given: the correlations of many measures take a while.
_DRAWS = 2000


def validate(
    report: Report,
    scores: Any,
    *,
    column: str | None = None,
    closed_book: Any = None,
    score_range: tuple[float, float] | None = None,
    ids: str | None = None,
    borders: Sequence[float] = PUBLISHED_BORDERS,
    bootstrap: Bootstrap | None = None,
) -> Validation:
    """Say which measure at which K follows the scores of the answers.

    Parameters
    ----------
    report : Report
        Of `evaluate`, with the measures and depths to compare; `compared_with_answers(scale)` lists usual ones.
    scores : path, DataFrame, rows or mapping
        A table with the columns `query_id`, `run` (with several runs), `k` (the passages that the answer was made from)
        and `score`; or {run: {query: score}}, {run: {k: {query: score}}}, or {query: score} for one run. A figure at K
        is compared only with answers from the same K. Without `k`, figures at all depths are compared with the same
        answers. A row of `k` = 0 is an answer without passages.
    column : str, optional
        The column of the scores, if it is not called `score`, as `answer_correctness` of Ragas.
    closed_book : path, DataFrame, rows or {query: score}, optional
        The scores of answers without passages, if they are no rows of `scores`. Partial correlations take out what they
        explain: queries that the model can answer by itself.
    score_range : (float, float), optional
        The lowest and the highest possible score; a score outside it is an error.
    ids : str, optional
        The form of query ids, as in `evaluate`.
    borders : sequence of float
        The borders of K/N_p (N_p: relevant passages of the query) between segments. Default: 1.
    bootstrap : Bootstrap, optional
        Gives the number of random weights, seed, level and clusters. Default: 2,000, and the others as in the report.

    Returns
    -------
    Validation

    Raises
    ------
    InputError
        If scores are wrong (`rag_selectivity.tables.scores.answer_scores`), if there are answers of a K that was not
        measured, or if the report has no measure with figures of single queries.

    Notes
    -----
    `rag_selectivity.inference.correlation.correlated` documents intervals and p-values. Holm's correction is over all
    measures and K (of the means over runs), and over all pairs of measures of the same K.

    Examples
    --------
    >>> from rag_selectivity import evaluate
    >>> qrels = {f"q{i}": {"a": 1, "b": i % 2} for i in range(40)}
    >>> report = evaluate(qrels, {"run": {query: ["a", "b"] for query in qrels}}, measures=["P"], depths=[2])
    >>> found = validate(report, {query: 0.5 + 0.4 * labels["b"] for query, labels in qrels.items()})
    >>> found.rows[0].measure, found.rows[0].spearman.value, found.rows[0].verdict
    ('P@2', 1.0, 'rises with the answers')
    """
    if not isinstance(report, Report):
        raise InputError(f"validate needs the Report of evaluate(qrels, runs, depths=…), got {type(report).__name__}")
    measures = [parse_measure(key) for key in next(iter(report.runs.values())).estimates]
    measures = [each for each in measures if each.higher_is_better is not None and each.name != "Judged"]
    chosen = [each for each in measures if each.per_query]
    if not chosen:
        usual = ", ".join(compared_with_answers(report.scale))
        raise InputError(f"no measure of the report has figures of single queries to compare: measure some of {usual}")
    queries = list(dict.fromkeys(query for part in report.runs.values() for query in part.queries))
    given = {"column": column, "closed_book": closed_book, "score_range": score_range, "form": IdForm.of(ids)}
    read = answer_scores(scores, list(report.runs), queries, **given)
    sampling = bootstrap or replace(report.bootstrap or Bootstrap(), resamples=_DRAWS)
    runs = answered_runs(report, read, queries, sampling.units(queries))
    between = sorted({number_or_nan(border) for border in iterated(borders, "the borders of K/N_p must be numbers")})
    if not all(0 < border < math.inf for border in between):
        raise InputError(f"the borders of K/N_p must be numbers above 0, as in [0.5, 1, 2], got {borders!r}")
    found = _validated(runs, chosen, between, sampling)
    left_out = dict.fromkeys(str(each.without_depth) for each in measures if not each.per_query)
    return replace(found, summary=tuple(summary_of(found)), notes=tuple(notes_of(found, report, read, runs, left_out)))


def _validated(
    runs: Sequence[AnsweredRun], measures: Sequence[Measure], borders: Sequence[float], bootstrap: Bootstrap
) -> Validation:
    """All correlations, without their words."""
    level = bootstrap.level
    places = [(measure, k, [run for run in runs if k in run.scores]) for measure, k in _places_of(measures, runs)]
    rows = with_correlations([row for place in places for row in _rows_of(*place)], bootstrap)
    family = [row for row in rows if row.corrected]
    p_holm = dict(zip(family, holm(np.array([row.found[SPEARMAN].p for row in family])).tolist(), strict=True))
    tested = max(1, sum(not math.isnan(p) for p in p_holm.values()))
    bases = list(dict.fromkeys(measure.without_depth for measure in measures if _depth_of(measure) is not None))
    segments = [_segment(runs, bases, *ends, bootstrap) for ends in pairwise([0.0, *borders, math.inf]) if bases]
    return Validation(
        rows=(
            *(row.following(level, p_holm.get(row, math.nan)) for row in rows),
            *(_over_runs(row, bootstrap) for row in family if len(row.series) >= FEWEST),
        ),
        differences=tuple(differences_of(family, level)),
        segments=tuple(segment for segment in segments if segment is not None),
        detectable=detectable(max((row.n for row in family), default=0), (1 - level) / tested, _POWER),
        summary=(),
        notes=(),
        settings={**bootstrap.settings, "method": "bayesian bootstrap", "power": _POWER, "tested": tested},
    )


def _depth_of(measure: Measure) -> int | None:
    """The K of a measure; None if it is about whole lists, or at a recall level or a budget of tokens."""
    if measure.at is None or isinstance(measure.cutoff, Real) or is_budget(measure.at):
        return None
    return int(measure.at)


def _places_of(measures: Sequence[Measure], runs: Sequence[AnsweredRun]) -> list[tuple[Measure, int | None]]:
    """Each measure beside the K of the answers; measures of whole lists beside each K.

    Answers of a K at which nothing was measured are an error: no figure may be compared with answers from another set.
    """
    depth = {measure: _depth_of(measure) for measure in measures}
    every = sorted({k for run in runs for k in run.scores}, key=lambda k: k or 0)
    depths = sorted({each for each in depth.values() if each is not None})
    unmeasured = [k for k in every if k is not None and k not in depths]
    if depths and unmeasured:
        raise InputError(
            f"there are answers from K = {', '.join(map(str, unmeasured))} passages, and the figures are at "
            f"{', '.join(map(str, depths))}: measure at the K of the answers (depths=…, --depths)"
        )
    return [(each, k) for k in every for each in depth if k is None or depth[each] in (None, k)]


def _rows_of(measure: Measure, k: int | None, runs: Sequence[AnsweredRun]) -> list[Row]:
    """A measure beside the answers from K passages: of each run, and of several their mean and within queries."""
    rows = []
    for run in runs:
        series, partial = run.series({k: measure}), list[Series]()
        if run.closed_book is not None:
            partial.append(run.series({k: measure}, run.closed_book))
        undefined = int(np.isfinite(run.scores[k]).sum()) - len(series.figures)
        rows.append(Row(measure, k, run.name, QUERIES, [series], undefined, partial, corrected=len(runs) == 1))
    if len(runs) > 1:
        undefined = max(row.undefined for row in rows)
        every = [each for row in rows for each in row.series]
        partial = [each for row in rows for each in row.closed_book]
        rows.append(Row(measure, k, None, QUERIES, every, undefined, partial, corrected=True))
        within = _within_queries(measure, k, runs)
        rows += [Row(measure, k, None, WITHIN, [within], undefined)] if len(within.figures) else []
    return rows


def _within_queries(measure: Measure, k: int | None, runs: Sequence[AnsweredRun]) -> Series:
    """Figures and scores minus their means over the runs of the same query, which takes out how hard it is."""
    common = set.intersection(*(set(run.table.queries) for run in runs))
    # The queries of each run are in the same order.
    rows = [[i for i, query in enumerate(run.table.queries) if query in common] for run in runs]
    figures = [run.figures(measure)[of_run] for run, of_run in zip(runs, rows, strict=True)]
    columns = np.array([figures, [run.scores[k][of_run] for run, of_run in zip(runs, rows, strict=True)]])
    known = ~np.isnan(columns).any(axis=(0, 1))
    columns = columns[:, :, known]
    # Fewer decimals than the figures have, whose last one may be rounded up or down.
    left, right = rounded(columns - columns.mean(axis=1, keepdims=True), 9)
    return Series(left.ravel(), right.ravel(), np.tile(runs[0].units[rows[0]][known], len(runs)))


def _over_runs(row: Row, bootstrap: Bootstrap) -> Following:
    """The correlation of the runs' mean figures with their mean scores."""
    found = correlated_means(row.series, draws=bootstrap.resamples, seed=bootstrap.seed)
    spearman, pearson, kendall = (found[kind].interval(bootstrap.level) for kind in KINDS)
    return Following(str(row.measure), None, row.k, RUNS, len(row.series), 0, spearman, pearson, kendall)


def _segment(
    runs: Sequence[AnsweredRun], bases: Sequence[Measure], low: float, high: float, bootstrap: Bootstrap
) -> Segment | None:
    """The sets with such a K/N_p; None if there are none, or the scores do not say from how many passages answers are.

    The sets of all K are taken together, as in the recall-free paper: a query with answers from several K has several
    sets, which are drawn together.
    """
    parts = [part for part in (run.between(low, high) for run in runs) if len(part.sets)]
    if not parts:
        return None
    sets, plan = np.concatenate([part.sets for part in parts]), []
    for base in bases:
        series = [part.series({k: replace(base, at=k) for k in part.scores}) for part in parts]
        plan.append(Row(base, None, None, QUERIES, series, len(sets) - sum(len(each.figures) for each in series)))
    plan, queries = with_correlations(plan, bootstrap), len(np.unique(sets))
    rows = tuple(row.following(bootstrap.level) for row in plan)
    advised = "T" if high <= 1 else "nDCG" if low >= 1 else ""
    published = f" The recall-free paper advises {advised} for such sets." if advised else ""
    summary = of_segment(plan, bootstrap.level, len(sets), queries) + published
    return Segment(low, high, len(sets), queries, rows, advised, summary)
