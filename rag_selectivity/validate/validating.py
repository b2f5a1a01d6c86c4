"""`validate`: correlate the figures of a report with the scores of the answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.correlation import FEWEST, KINDS, Series, correlated_means, detectable
from rag_selectivity.inference.paired import holm
from rag_selectivity.measures.base import Measure
from rag_selectivity.results.report import Report
from rag_selectivity.results.validation import QUERIES, RUNS, WITHIN, Following, Validation
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.scores import answer_scores
from rag_selectivity.validate.choosing import choose
from rag_selectivity.validate.following import Row, correlations_of, differences_of, mean_of
from rag_selectivity.validate.measures import candidates
from rag_selectivity.validate.segmenting import segments_of
from rag_selectivity.validate.sets import (
    AnsweredRun,
    Sets,
    answered_runs,
    joined,
    places_of,
    queries_of,
    without_rounding,
)
from rag_selectivity.validate.signatures import notes_on
from rag_selectivity.validate.words import notes_of, summary_of

#: The power at which a correlation is called detectable.
_POWER = 0.8
#: The borders of K/N_p of the recall-free paper: narrow sets below 1, wide ones from 1 on.
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
    borders: Sequence[float] = PUBLISHED_BORDERS,
    folds: int = 5,
    ids: str | None = None,
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
    borders : sequence of float
        The borders of K/N_p (N_p: relevant passages of the query) between segments. Default: 1.
    folds : int
        The folds for figures whose parameters were chosen by the answers of other queries.
    ids : str, optional
        The form of query ids, as in `evaluate`.
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
    chosen, left_out = candidates(report)
    if not chosen:
        raise InputError(
            "no measure of the report has figures of single queries to compare with answers: measure RA-nWG, nDCG, P, "
            "R, T(form=code) or F (`compared_with_answers` lists usual ones)"
        )
    form = IdForm.of(ids)
    queries = queries_of(report)
    read = answer_scores(
        scores, list(report.runs), queries, column=column, closed_book=closed_book, score_range=score_range, form=form
    )
    sampling = bootstrap or replace(report.bootstrap or Bootstrap(), resamples=_DRAWS)
    runs = answered_runs(report, read, sampling.units(queries))
    limits = _checked_borders(borders)
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise InputError(f"folds must be a whole number ≥ 2, got {folds!r}")
    found = _validated(report, runs, chosen, sampling, limits, folds)
    noted = notes_of(found, report, read, runs, left_out)
    return replace(found, summary=tuple(summary_of(found)), notes=tuple(noted))


def _checked_borders(borders: Sequence[float]) -> tuple[float, ...]:
    try:
        limits = tuple(sorted({float(border) for border in borders}))
    except (TypeError, ValueError, OverflowError):
        limits = (math.nan,)
    if not all(0 < border < math.inf for border in limits):
        raise InputError(f"the borders of K/N_p must be numbers above 0, as in [0.5, 1, 2], got {borders!r}")
    return limits


def _validated(
    report: Report,
    runs: Sequence[AnsweredRun],
    measures: Sequence[Measure],
    bootstrap: Bootstrap,
    borders: tuple[float, ...],
    folds: int,
) -> Validation:
    """All correlations, without their words."""
    level = bootstrap.level
    plan: list[Row] = []
    family, choices = [], []
    for measure, k in places_of(measures, runs):
        answered = [run for run in runs if k in run.scores]
        rows = _rows_of(measure, k, answered)
        plan += rows
        # The mean over runs, or the only run.
        family.append(next(row for row in reversed(rows) if row.over == QUERIES))
        by_run = [[Sets(run, k, np.arange(len(run.units)))] for run in answered]
        choices += [choice] if (choice := choose(measure, k, by_run, folds=folds, seed=bootstrap.seed)) else []
    found = correlations_of([*(row.all_series for row in plan), *(choice.all_series for choice in choices)], bootstrap)
    corrected = holm(np.array([mean_of(found, row.series).p for row in family])).tolist()
    p_holm = dict(zip(family, corrected, strict=True))
    rows_found = [row.following(found, level, p_holm.get(row)) for row in plan]
    rows_found += [over for row in family for over in _over_runs(row, bootstrap)]
    tested = max(1, sum(not math.isnan(p) for p in corrected))
    asked = {"folds": folds, "borders": list(borders), "power": _POWER, "tested": tested}
    return Validation(
        tuple(rows_found),
        tuple(differences_of(family, found, level)),
        tuple(choice.chosen(found, level) for choice in choices),
        tuple(segments_of(runs, measures, borders, bootstrap=bootstrap, folds=folds)),
        detectable(max((row.n for row in family), default=0), (1 - level) / tested, _POWER),
        {run.name: _regimes(run, report.depths) for run in runs},
        (),
        (),
        {**bootstrap.settings, "method": "bayesian bootstrap", **asked},
    )


def _rows_of(measure: Measure, k: int | None, runs: Sequence[AnsweredRun]) -> list[Row]:
    """A measure beside the answers from K passages: of each run, and of several their mean and within queries."""
    notes = notes_on(measure, k, runs)
    rows = []
    for run in runs:
        sets = Sets(run, k, np.arange(len(run.units)))
        undefined = int((np.isnan(sets.figures(measure)) & ~np.isnan(sets.scores)).sum())
        closed_book = [] if run.closed_book is None else [sets.series(measure, closed_book=True)]
        rows.append(Row(measure, k, run.name, QUERIES, [sets.series(measure)], undefined, closed_book, notes))
    if len(runs) > 1:
        undefined = max(row.undefined for row in rows)
        series = [each for row in rows for each in row.series]
        closed_book = [each for row in rows for each in row.closed_book]
        rows.append(Row(measure, k, None, QUERIES, series, undefined, closed_book, notes))
        if len((within := _within_queries(measure, k, runs)).figures):
            rows.append(Row(measure, k, None, WITHIN, [within], undefined, notes=notes))
    return rows


def _within_queries(measure: Measure, k: int | None, runs: Sequence[AnsweredRun]) -> Series:
    """Figures and scores minus their means over the runs of the same query, which takes out how hard it is."""
    queries = sorted(set.intersection(*(set(run.table.queries) for run in runs)))
    places = [{query: i for i, query in enumerate(run.table.queries)} for run in runs]
    parts = [
        Sets(run, k, np.array([place[query] for query in queries], np.int64))
        for run, place in zip(runs, places, strict=True)
    ]
    columns = np.array([[part.figures(measure) for part in parts], [part.scores for part in parts]])
    known = ~np.isnan(columns).any(axis=(0, 1))
    columns = columns[:, :, known]
    # Fewer decimals than the figures have, whose last one may be rounded up or down.
    figures, scores = without_rounding(columns - columns.mean(axis=1, keepdims=True), 9)
    return joined([Series(figures[i], scores[i], parts[0].units[known]) for i in range(len(runs))])


def _over_runs(row: Row, bootstrap: Bootstrap) -> list[Following]:
    """The correlation of the runs' mean figures with their mean scores, where there are enough runs."""
    count = len(row.series)
    if count < FEWEST:
        return []
    found = correlated_means(row.series, draws=bootstrap.resamples, seed=bootstrap.seed)
    spearman, pearson, kendall = (found[kind].interval(bootstrap.level) for kind in KINDS)
    return [Following(str(row.measure), None, row.k, RUNS, count, 0, spearman, pearson, kendall)]


def _regimes(run: AnsweredRun, depths: Sequence[int]) -> dict[int, float]:
    """K / mean N_p of a run at each K."""
    relevant = run.judged.relevant()
    mean = float(relevant[relevant > 0].mean()) if (relevant > 0).any() else math.nan
    return {k: k / mean for k in ([k for k in run.scores if k is not None] or list(depths))}
