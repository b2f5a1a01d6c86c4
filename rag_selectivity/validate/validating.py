"""`validate`: correlate the figures of a report with the scores of the answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.correlation import FEWEST, KINDS, Series, correlated_means, detectable
from rag_selectivity.inference.paired import holm
from rag_selectivity.measures.base import Measure
from rag_selectivity.results.report import Report
from rag_selectivity.results.workflows import QUERIES, RUNS, WITHIN, Following, Segment, Validation
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.validate.answers import (
    AnsweredRun,
    answered_runs,
    depth_of,
    measures_of,
    places_of,
    queries_of,
    rounded,
)
from rag_selectivity.validate.following import Row, correlations_of, differences_of, mean_of
from rag_selectivity.validate.scores import answer_scores
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
        If scores are wrong (`rag_selectivity.validate.scores.answer_scores`), if there are answers of a K that was not
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
    chosen, left_out = measures_of(report)
    if not chosen:
        raise InputError(
            "no measure of the report has figures of single queries to compare with answers: measure RA-nWG, nDCG, P, "
            "R, T(form=code) or F (`compared_with_answers` lists usual ones)"
        )
    queries = queries_of(report)
    read = answer_scores(
        scores,
        list(report.runs),
        queries,
        column=column,
        closed_book=closed_book,
        score_range=score_range,
        form=IdForm.of(ids),
    )
    sampling = bootstrap or replace(report.bootstrap or Bootstrap(), resamples=_DRAWS)
    runs = answered_runs(report, read, sampling.units(queries))
    found = _validated(runs, chosen, _checked(borders), sampling)
    noted = notes_of(found, report, read, runs, left_out)
    return replace(found, summary=tuple(summary_of(found)), notes=tuple(noted))


def _checked(borders: Sequence[float]) -> list[float]:
    try:
        checked = sorted({float(border) for border in borders})
    except (TypeError, ValueError, OverflowError):
        checked = [math.nan]
    if not all(0 < border < math.inf for border in checked):
        raise InputError(f"the borders of K/N_p must be numbers above 0, as in [0.5, 1, 2], got {borders!r}")
    return checked


def _validated(
    runs: Sequence[AnsweredRun], measures: Sequence[Measure], borders: Sequence[float], bootstrap: Bootstrap
) -> Validation:
    """All correlations, without their words."""
    level = bootstrap.level
    rows: list[Row] = []
    # Of each measure at each K the mean over runs, or the only run.
    family: list[Row] = []
    for measure, k in places_of(measures, runs):
        of_place = _rows_of(measure, k, [run for run in runs if k in run.scores])
        rows += of_place
        family.append(next(row for row in reversed(of_place) if row.over == QUERIES))
    found = correlations_of(rows, bootstrap)
    corrected = holm(np.array([mean_of(found, row.series).p for row in family])).tolist()
    p_holm = dict(zip(family, corrected, strict=True))
    followings = [row.following(found, level, p_holm.get(row)) for row in rows]
    followings += [over for row in family for over in _over_runs(row, bootstrap)]
    tested = max(1, sum(not math.isnan(p) for p in corrected))
    bases = list(dict.fromkeys(measure.without_depth for measure in measures if depth_of(measure) is not None))
    segments = [_segment(runs, bases, *ends, bootstrap) for ends in pairwise([0.0, *borders, math.inf]) if bases]
    return Validation(
        rows=tuple(followings),
        differences=tuple(differences_of(family, found, level)),
        segments=tuple(segment for segment in segments if segment is not None),
        detectable=detectable(max((row.n for row in family), default=0), (1 - level) / tested, _POWER),
        summary=(),
        notes=(),
        settings={**bootstrap.settings, "method": "bayesian bootstrap", "power": _POWER, "tested": tested},
    )


def _rows_of(measure: Measure, k: int | None, runs: Sequence[AnsweredRun]) -> list[Row]:
    """A measure beside the answers from K passages: of each run, and of several their mean and within queries."""
    rows = []
    for run in runs:
        undefined = int((np.isnan(run.figures(measure)) & ~np.isnan(run.scores[k])).sum())
        closed_book = [] if run.closed_book is None else [run.series(measure, k, closed_book=True)]
        rows.append(Row(measure, k, run.name, QUERIES, [run.series(measure, k)], undefined, closed_book))
    if len(runs) > 1:
        undefined = max(row.undefined for row in rows)
        series = [each for row in rows for each in row.series]
        closed_book = [each for row in rows for each in row.closed_book]
        rows.append(Row(measure, k, None, QUERIES, series, undefined, closed_book))
        within = _within_queries(measure, k, runs)
        rows += [Row(measure, k, None, WITHIN, [within], undefined)] if len(within.figures) else []
    return rows


def _within_queries(measure: Measure, k: int | None, runs: Sequence[AnsweredRun]) -> Series:
    """Figures and scores minus their means over the runs of the same query, which takes out how hard it is."""
    queries = sorted(set.intersection(*(set(run.table.queries) for run in runs)))
    places = [{query: i for i, query in enumerate(run.table.queries)} for run in runs]
    rows = [[place[query] for query in queries] for place in places]
    columns = np.array(
        [
            [run.figures(measure)[of_run] for run, of_run in zip(runs, rows, strict=True)],
            [run.scores[k][of_run] for run, of_run in zip(runs, rows, strict=True)],
        ]
    )
    known = ~np.isnan(columns).any(axis=(0, 1))
    columns = columns[:, :, known]
    # Fewer decimals than the figures have, whose last one may be rounded up or down.
    figures, scores = rounded(columns - columns.mean(axis=1, keepdims=True), 9)
    units = runs[0].units[rows[0]][known]
    return Series(figures.ravel(), scores.ravel(), np.tile(units, len(runs)))


def _over_runs(row: Row, bootstrap: Bootstrap) -> list[Following]:
    """The correlation of the runs' mean figures with their mean scores, where there are enough runs."""
    count = len(row.series)
    if count < FEWEST:
        return []
    found = correlated_means(row.series, draws=bootstrap.resamples, seed=bootstrap.seed)
    spearman, pearson, kendall = (found[kind].interval(bootstrap.level) for kind in KINDS)
    return [Following(str(row.measure), None, row.k, RUNS, count, 0, spearman, pearson, kendall)]


def _segment(
    runs: Sequence[AnsweredRun], bases: Sequence[Measure], low: float, high: float, bootstrap: Bootstrap
) -> Segment | None:
    """The sets with such a K/N_p; None if there are none, or the scores do not say from how many passages answers are.

    The sets of all K are taken together, as in the recall-free paper: a query with answers from several K has several
    sets, which are drawn together.
    """
    by_run = [(run, [(k, run.between(k, low, high)) for k in run.scores if k is not None]) for run in runs]
    units = [run.units[rows] for run, sets in by_run for _, rows in sets]
    count = sum(map(len, units))
    if not count:
        return None
    plan = []
    for base in bases:
        series = []
        for run, sets in by_run:
            if any(len(rows) for _, rows in sets):
                parts = [(run.figures(base @ k)[rows], run.scores[k][rows], run.units[rows]) for k, rows in sets]
                series.append(Series.of(*(np.concatenate(column) for column in zip(*parts, strict=True))))
        plan.append(Row(base, None, None, QUERIES, series, count - sum(len(each.figures) for each in series)))
    found = correlations_of(plan, bootstrap)
    rows = tuple(row.following(found, bootstrap.level) for row in plan)
    queries = len(np.unique(np.concatenate(units)))
    summary = of_segment(plan, found, bootstrap.level, count, queries)
    advised = "T" if high <= 1 else "nDCG" if low >= 1 else ""
    published = f" The recall-free paper advises {advised} for such sets." if advised else ""
    return Segment(low, high, count, queries, rows, advised, summary + published)
