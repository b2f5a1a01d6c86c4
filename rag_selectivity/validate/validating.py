"""`validate`: correlate the figures of a report with the scores of the answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import FloatArray, Measure
from rag_selectivity.results.report import Report
from rag_selectivity.results.validation import (
    FALLS,
    NOT_SHOWN,
    QUERIES,
    RISES,
    RUNS,
    WITHIN,
    Following,
    FollowingDifference,
    Validation,
)
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.correlation import (
    FEWEST,
    KENDALL,
    KINDS,
    PARTIAL,
    PEARSON,
    SPEARMAN,
    Distribution,
    Series,
    correlated,
    correlated_means,
    detectable,
)
from rag_selectivity.statistics.paired import holm
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.scores import AnswerScores, answer_scores
from rag_selectivity.validate.choosing import Choice, choose, chosen_of
from rag_selectivity.validate.measures import candidates
from rag_selectivity.validate.segmenting import segments_of
from rag_selectivity.validate.sets import (
    Answered,
    AnsweredRun,
    Place,
    answered_runs,
    joined,
    places_of,
    queries_of,
    series_of,
    with_answers,
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
    scores : path, DataFrame, rows, mapping or sequence
        A table with the columns `query_id`, `run` (with several runs), `k` (the passages that the answer was made from)
        and `score`; or {run: {query: score}}, {run: {k: {query: score}}}, or {query: score} for one run; or numbers in
        the order of the report's queries. A figure at K is compared only with answers from the same K. Without `k`,
        figures at all depths are compared with the same answers. A row of `k` = 0 is an answer without passages.
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
    `rag_selectivity.statistics.correlation.correlated` documents intervals and p-values. Holm's correction is over all
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
    return _Validating(report, read, runs, chosen, left_out, sampling, limits, folds).result()


def _checked_borders(borders: Sequence[float]) -> tuple[float, ...]:
    try:
        limits = tuple(sorted({float(border) for border in borders}))
    except (TypeError, ValueError, OverflowError):
        limits = (math.nan,)
    if not all(0 < border < math.inf for border in limits):
        raise InputError(f"the borders of K/N_p must be numbers above 0, as in [0.5, 1, 2], got {borders!r}")
    return limits


@dataclass(frozen=True)
class _Row:
    """A row before its correlations are known: which series it averages, by their place in the list of all."""

    place: Place
    run: str | None
    over: str
    series: tuple[int, ...]
    queries: int
    undefined: int


class _Validating:
    """All correlations of a report with scores."""

    def __init__(
        self,
        report: Report,
        scores: AnswerScores,
        runs: Sequence[AnsweredRun],
        measures: Sequence[Measure],
        left_out: Sequence[str],
        bootstrap: Bootstrap,
        borders: tuple[float, ...],
        folds: int,
    ) -> None:
        self.report, self.scores, self.runs = report, scores, runs
        self.measures, self.left_out = measures, left_out
        self.bootstrap, self.borders, self.folds = bootstrap, borders, folds
        self.partial = bool(scores.closed_book)
        self.level = bootstrap.level
        self.places = places_of(measures, runs)
        self.series: list[Series] = []
        self.closed: dict[int, int] = {}
        self._figures: dict[tuple[str, Measure], FloatArray] = {}

    def result(self) -> Validation:
        """The Validation."""
        plan = [row for place in self.places for row in self._rows_of(place)]
        choices = [(place, self._add_choice(place)) for place in self.places]
        found = correlated(self.series, draws=self.bootstrap.resamples, seed=self.bootstrap.seed)
        rows = [self._row(row, found) for row in plan]
        family = [i for i, row in enumerate(plan) if self._in_family(row)]
        corrected = holm(np.array([rows[i].p for i in family]))
        for i, p in zip(family, corrected.tolist(), strict=True):
            rows[i] = replace(rows[i], p_holm=p, verdict=self._verdict(rows[i], p))
        oriented = {
            (plan[i].place.measure, plan[i].place.k): _oriented(
                plan[i].place.measure, self._distribution(plan[i], found)
            )
            for i in family
        }
        rows += [row for place in self.places for row in self._over_runs(place)]
        differences = self._differences(oriented)
        chosen = [
            chosen_of(str(place.measure), place.k, *choice, found, self.level)
            for place, choice in choices
            if choice is not None
        ]
        segments = segments_of(
            self.runs,
            self.measures,
            self.borders,
            bootstrap=self.bootstrap,
            folds=self.folds,
        )
        tested = max(1, len([p for p in corrected if not math.isnan(p)]))
        counted = max((rows[i].n for i in family), default=0)
        least = detectable(counted, (1 - self.level) / tested, _POWER)
        result = Validation(
            tuple(rows),
            tuple(differences),
            tuple(chosen),
            tuple(segments),
            least,
            self._regimes(),
            (),
            (),
            {
                **self.bootstrap.settings,
                "method": "bayesian bootstrap",
                "folds": self.folds,
                "borders": list(self.borders),
                "power": _POWER,
                "tested": tested,
            },
        )
        noted = notes_of(result, self.report, self.scores, self.runs, self.left_out)
        return replace(result, summary=tuple(summary_of(result)), notes=tuple(noted))

    # -- within runs -----------------------------------------------------------------------------

    def _figures_of(self, run: AnsweredRun, measure: Measure) -> FloatArray:
        key = (run.name, measure)
        if key not in self._figures:
            self._figures[key] = run.figures(measure)
        return self._figures[key]

    def _rows_of(self, place: Place) -> list[_Row]:
        runs = list(with_answers(self.runs, place.k))
        rows, numbers = [], []
        for run in runs:
            figures = self._figures_of(run, place.measure)
            one = series_of(run, figures, place.k, partial=False)
            number = self._add(one)
            if self.partial:
                self.closed[number] = self._add(series_of(run, figures, place.k, partial=True))
            undefined = int((np.isnan(figures) & ~np.isnan(run.scores[place.k])).sum())
            rows.append(_Row(place, run.name, QUERIES, (number,), len(one.figures), undefined))
            numbers.append(number)
        if len(runs) > 1:
            some = [self.series[number] for number in numbers]
            queries = len(np.unique(np.concatenate([each.units for each in some])))
            undefined = max(row.undefined for row in rows)
            rows.append(_Row(place, None, QUERIES, tuple(numbers), queries, undefined))
            within = self._within_queries(place, runs)
            if within is not None:
                rows.append(_Row(place, None, WITHIN, (self._add(within),), within.queries, undefined))
        return rows

    def _add(self, series: Series) -> int:
        self.series.append(series)
        return len(self.series) - 1

    def _within_queries(self, place: Place, runs: Sequence[AnsweredRun]) -> Series | None:
        """Figures and scores minus their means over the runs of the same query, which takes out how hard it is."""
        queries = sorted(set.intersection(*(set(run.judged.queries) for run in runs)))
        if not queries:
            return None
        columns = []
        for run in runs:
            at = {query: i for i, query in enumerate(run.judged.queries)}
            chosen = np.array([at[query] for query in queries])
            columns.append(
                (self._figures_of(run, place.measure)[chosen], run.scores[place.k][chosen], run.units[chosen])
            )
        figures, scores = (np.stack([column[i] for column in columns]) for i in (0, 1))
        known = ~(np.isnan(figures) | np.isnan(scores)).any(axis=0)
        if not known.any():
            return None
        figures, scores = figures[:, known], scores[:, known]
        units = columns[0][2][known]
        # Fewer decimals than the figures have, whose last one may be rounded up or down.
        away = [without_rounding(part - part.mean(axis=0), 9) for part in (figures, scores)]
        return joined([Series(away[0][i], away[1][i], units) for i in range(len(runs))])

    def _distribution(
        self, row: _Row, found: Sequence[Mapping[str, Distribution]], kind: str = SPEARMAN
    ) -> Distribution:
        numbers = [self.closed[number] for number in row.series] if kind == PARTIAL else row.series
        return Distribution.mean([found[number][kind] for number in numbers])

    def _row(self, row: _Row, found: Sequence[Mapping[str, Distribution]]) -> Following:
        by_kind = {kind: self._distribution(row, found, kind) for kind in KINDS}
        partial = None
        if self.partial and row.over == QUERIES:
            partial = self._distribution(row, found, PARTIAL).interval(self.level)
        return Following(
            str(row.place.measure),
            row.run,
            row.place.k,
            row.over,
            row.queries,
            row.undefined,
            by_kind[SPEARMAN].interval(self.level),
            by_kind[PEARSON].interval(self.level),
            by_kind[KENDALL].interval(self.level),
            partial,
            by_kind[SPEARMAN].p,
            notes=notes_on(row.place.measure, row.place.k, list(with_answers(self.runs, row.place.k))),
        )

    def _in_family(self, row: _Row) -> bool:
        alone = sum(1 for _ in with_answers(self.runs, row.place.k)) == 1
        return row.over == QUERIES and (row.run is None or alone)

    def _verdict(self, row: Following, p: float) -> str:
        if not p <= 1 - self.level:
            return NOT_SHOWN
        return RISES if row.spearman.value > 0 else FALLS

    # -- over runs -------------------------------------------------------------------------------

    def _over_runs(self, place: Place) -> list[Following]:
        """The correlation of the runs' mean figures with their mean scores, where there are enough runs."""
        runs = list(with_answers(self.runs, place.k))
        if len(runs) < FEWEST:
            return []
        parts = [series_of(run, self._figures_of(run, place.measure), place.k, partial=False) for run in runs]
        found = correlated_means(parts, draws=self.bootstrap.resamples, seed=self.bootstrap.seed)
        spearman, pearson, kendall = (found[kind].interval(self.level) for kind in KINDS)
        return [Following(str(place.measure), None, place.k, RUNS, len(runs), 0, spearman, pearson, kendall)]

    # -- between measures ------------------------------------------------------------------------

    def _differences(self, oriented: Mapping[tuple[Measure, int | None], Distribution]) -> list[FollowingDifference]:
        pairs = [
            (one, other, oriented[one].minus(oriented[other]))
            for one, other in combinations(oriented, 2)
            if one[1] == other[1]
        ]
        pairs = [(one, other, gap) for one, other, gap in pairs if not gap.reason]
        tested = np.array([math.nan if gap.same else gap.p for _, _, gap in pairs])
        found = []
        for (one, other, gap), p, corrected in zip(pairs, tested.tolist(), holm(tested).tolist(), strict=True):
            verdict = NOT_SHOWN
            if corrected <= 1 - self.level:
                verdict = "follows better" if gap.value > 0 else "follows worse"
            found.append(
                FollowingDifference(str(one[0]), str(other[0]), gap.interval(self.level), p, corrected, verdict)
            )
        return found

    # -- parameters ------------------------------------------------------------------------------

    def _add_choice(self, place: Place) -> tuple[Choice, list[int], list[int]] | None:
        runs = list(with_answers(self.runs, place.k))
        parts = [[Answered(run, place.k, None, np.arange(len(run.units)))] for run in runs]
        choice = choose(place.measure, parts, folds=self.folds, seed=self.bootstrap.seed)
        if choice is None:
            return None
        return choice, [self._add(each) for each in choice.own], [self._add(each) for each in choice.outside]

    # -- facts -----------------------------------------------------------------------------------

    def _regimes(self) -> dict[str, dict[int, float]]:
        """K / mean N_p of each run at each K."""
        found = {}
        for run in self.runs:
            relevant = run.judged.relevant()
            mean = float(relevant[relevant > 0].mean()) if (relevant > 0).any() else math.nan
            depths = [k for k in run.scores if k is not None] or list(self.report.depths)
            found[run.name] = {k: k / mean for k in depths}
        return found


def _oriented(measure: Measure, found: Distribution) -> Distribution:
    """A correlation whose sign is turned if less of the measure is better."""
    if measure.higher_is_better or found.reason:
        return found
    return replace(found, value=-found.value, drawn=-found.drawn)
