"""Choose α for the recall-free measures by their rank correlation with answer quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.choosing import best_column, folds_of, out_of_fold, rank_correlations
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import FloatArray, Measure, parse_measure
from rag_selectivity.results.calibration import Calibration
from rag_selectivity.results.report import Report
from rag_selectivity.tables.cells import shown, whole_count
from rag_selectivity.tables.ids import IntArray

_GRID = tuple(round(0.01 * i, 2) for i in range(101))


def calibrate_alpha(
    source: Report | JudgedRun | Mapping[str, Sequence[float]],
    quality: Mapping[str, float] | Sequence[float],
    *,
    measure: str | Measure = "F@10",
    run: str | None = None,
    grid: Sequence[float] = _GRID,
    folds: int = 5,
    bootstrap: Bootstrap = Bootstrap(resamples=1000),
) -> Calibration:
    """Choose the α of F, Fe or T(form=code) at which the measure ranks queries most like their answer quality.

    Parameters
    ----------
    source : Report, JudgedRun, or {"n_p", "n_n", "K", "R": one number a query}
        A report of one run, or of several runs with `run` given; or a join; or counts. In counts, R is the number of
        relevant passages (F) or its estimate (Fe); T needs no R.
    quality : {query: score}, or scores in the order of the queries
        Scores of the answers: from people, from exact match, or from a judge.
    measure : str or Measure
        `F@K`, `Fe@K` or `T(form=code)@K`. In T as printed in the paper, α cannot change the order of queries.
    grid : sequence of float
        The α values to try. If several are best, the middle one of them is chosen.
    folds : int
        The number of folds for `out_of_fold`; the bootstrap's seed decides which query is in which fold.

    Returns
    -------
    Calibration

    Raises
    ------
    InputError
        If fewer than three queries have both a value and a quality score.
    """
    chosen = parse_measure(measure)
    if chosen.name not in ("F", "Fe", "T"):
        raise InputError(f"alpha is a parameter of F, Fe and T, not of {chosen.name}")
    alphas = _checked_grid(grid)
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise InputError(f"folds must be a whole number ≥ 2, got {folds!r}")
    judged = _judged(source, run)
    values, scores, regime = (
        _values_of_run(judged, quality, chosen, alphas)
        if judged is not None
        else _values_of_counts(source, quality, chosen, alphas)  # type: ignore[arg-type]
    )
    n = len(scores)
    if n < 3:
        raise InputError(f"only {n} queries have both a value of {chosen} and a quality score; at least 3 are needed")
    correlations = rank_correlations(values, scores)
    best, alpha, nan = best_column(correlations), None, float("nan")
    rho = nan if best is None else float(np.nanmax(correlations))
    outside, spread = nan, (nan, nan, nan, nan)
    if chosen.name == "T" and getattr(chosen, "form", "") == "paper":
        outside, reason = rho, "T as printed is P@K − α, so alpha cannot change the order of queries."
    elif best is None:
        reason = "The measure or the quality is the same for all queries."
    else:
        alpha = float(alphas[best])
        reason = f"alpha = {alpha:g} has the highest correlation on these queries."
        spread = _spread(values, scores, alphas, bootstrap)
        units = np.arange(n)
        ranks = out_of_fold([(values, scores, units)], folds_of(units, folds, bootstrap.seed))
        outside = nan if ranks is None else float(rank_correlations(ranks[0][:, None], scores)[0])
    advice = f"{reason} {_regime_advice(regime)}"
    return Calibration(alpha, rho, *spread, outside, n, regime, advice, Bootstrap.required(bootstrap).level)


def _checked_grid(grid: Sequence[float]) -> FloatArray:
    alphas = np.unique(np.asarray(grid, np.float64))
    if not len(alphas) or not ((alphas >= 0) & (alphas <= 1)).all():
        raise InputError("the grid of alphas must hold numbers from 0 to 1")
    return alphas


def _judged(source: Any, run: str | None) -> JudgedRun | None:
    if isinstance(source, JudgedRun):
        return source
    if isinstance(source, Report):
        if run is None and len(source.runs) != 1:
            raise InputError(f"the report has several runs: give run=…, one of {', '.join(source.runs)}")
        return source.runs[run if run is not None else next(iter(source.runs))].judged
    return None


def _values_of_run(
    judged: JudgedRun, quality: Mapping[str, float] | Sequence[float], measure: Measure, alphas: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    if measure.at is None:
        raise InputError(f"{measure}: name the depth, as in {measure.name}@10")
    depths = np.array([measure.at], np.int64)
    # F takes either alpha or beta: alpha replaces a beta that was given.
    changed: dict[str, Any] = {"at": None, **({"beta": 1.0} if measure.name == "F" else {})}
    tried = [replace(measure, **{**changed, "alpha": alpha}) for alpha in alphas.tolist()]
    values = np.stack([each.outcome(judged, depths).parts[0][:, 0] for each in tried], axis=1)
    relevant = judged.relevant(getattr(measure, "rel", None))
    return *_complete(values, _aligned(quality, judged.queries)), _regime(measure.at, relevant)


def _values_of_counts(
    counts: Mapping[str, Sequence[float]],
    quality: Mapping[str, float] | Sequence[float],
    measure: Measure,
    alphas: FloatArray,
) -> tuple[FloatArray, FloatArray, float]:
    from rag_selectivity.measures.recall_free import f_score, t_score

    if not isinstance(counts, Mapping):
        raise InputError(f"source must be a Report, a JudgedRun or {{name of a count: counts}}, got {shown(counts)}")
    needed = ("n_p", "n_n", "K") if measure.name == "T" else ("n_p", "K", "R")
    absent = [key for key in needed if key not in counts]
    if absent:
        raise InputError(f"{measure.name} needs the counts {', '.join(needed)}; {', '.join(absent)} is missing")
    columns: dict[str, IntArray] = {
        key: np.array([whole_count(value, key) for value in values], np.int64)[:, None]
        for key, values in counts.items()
    }
    if len({len(column) for column in columns.values()}) > 1:
        raise InputError("the counts differ in length: give one number for each query in all of them")
    if measure.name == "T":
        form = getattr(measure, "form", "paper")
        values = t_score(columns["n_p"], columns["n_n"], columns["K"], alphas, form)
    else:
        values = f_score(columns["n_p"], columns["K"], columns["R"], alphas)
    relevant = columns.get("R", columns["n_p"])
    scores = _aligned(quality, tuple(str(i) for i in range(len(values))))
    return *_complete(values, scores), _regime(float(columns["K"].mean()), relevant)


def _aligned(quality: Mapping[str, float] | Sequence[float], queries: tuple[str, ...]) -> FloatArray:
    if isinstance(quality, Mapping):
        by_text = {str(query): score for query, score in quality.items()}
        return np.array([by_text.get(query, np.nan) for query in queries], np.float64)
    scores = np.asarray(quality, np.float64)
    if scores.shape != (len(queries),):
        raise InputError(f"quality has {scores.size} scores for {len(queries)} queries: give one for each query")
    return scores


def _complete(values: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    known = ~np.isnan(values).any(axis=1) & np.isfinite(scores)
    return values[known], scores[known]


def _regime(depth: float, relevant: NDArray[Any]) -> float:
    mean = float(relevant[relevant > 0].mean()) if (relevant > 0).any() else float("nan")
    return depth / mean


def _regime_advice(regime: float) -> str:
    if np.isnan(regime):
        return "No query has a relevant passage, so K/N_p is undefined."
    advised, slots = ("T", "fewer slots than") if regime < 1 else ("nDCG", "at least as many slots as")
    return (
        f"K/N_p = {regime:.2f} {'<' if regime < 1 else '≥'} 1: there are {slots} relevant passages. The recall-free "
        f"paper advises {advised} there; whether {advised} follows your answers better is not tested here, but by "
        f"`validate`."
    )


def _spread(
    values: FloatArray, scores: FloatArray, alphas: FloatArray, bootstrap: Bootstrap
) -> tuple[float, float, float, float]:
    """The ends of the middle part of the chosen alphas over resamples, and those of their correlations.

    The percentiles of a maximum over alphas are no confidence interval of the correlation at a fixed alpha: within each
    resample, the maximum is too high. Nor is the percentile of an argmax one of the best alpha. They are a spread.
    """
    rng = np.random.default_rng(bootstrap.seed)
    chosen = []
    for _ in range(bootstrap.resamples):
        rows = rng.integers(0, len(scores), len(scores))
        correlations = rank_correlations(values[rows], scores[rows])
        best = best_column(correlations)
        if best is not None:
            chosen.append((float(alphas[best]), float(np.nanmax(correlations))))
    nan = float("nan")
    if not chosen:
        return nan, nan, nan, nan
    tail = (1 - bootstrap.level) / 2
    (alpha_low, low), (alpha_high, high) = np.quantile(np.array(chosen), [tail, 1 - tail], axis=0).tolist()
    return alpha_low, alpha_high, low, high
