"""Choose α for the recall-free measures by their rank correlation with answer quality."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.inference.correlation import mid_ranks
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import FloatArray, Measure, parse_measure
from rag_selectivity.results.report import Report
from rag_selectivity.results.workflows import Calibration
from rag_selectivity.tables.cells import is_missing, number_or_nan, shown

#: Correlations that differ by less are equal but for rounding.
_SAME = 1e-12
_FOLDS, _GRID = 5, tuple(round(0.01 * i, 2) for i in range(101))


def calibrate_alpha(
    source: Report | JudgedRun,
    quality: Mapping[str, float],
    *,
    measure: str | Measure = "F@10",
    run: str | None = None,
    grid: Sequence[float] = _GRID,
) -> Calibration:
    """Choose the α of F, Fe or T(form=code) at which the measure ranks queries most like their answer quality.

    Parameters
    ----------
    source : Report or JudgedRun
        A report of one run, or of several runs with `run` given; or a join.
    quality : {query: score}
        Scores of the answers: from people, from exact match, or from a judge.
    measure : str or Measure
        `F@K`, `Fe@K` or `T(form=code)@K`. In T as printed in the paper, α cannot change the order of queries.
    grid : sequence of float
        The α values to try. If several are best, the middle one of them is chosen.

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
    if chosen.at is None:
        raise InputError(f"{chosen}: name the depth, as in {chosen.name}@10")
    alphas = np.unique([number_or_nan(alpha) for alpha in grid])
    if not len(alphas) or not ((alphas >= 0) & (alphas <= 1)).all():
        raise InputError("the grid of alphas must hold numbers from 0 to 1")
    judged = _judged(source, run)
    # F takes either alpha or beta: alpha replaces a beta that was given.
    others: dict[str, Any] = {"at": None, **({"beta": 1.0} if chosen.name == "F" else {})}
    tried = [replace(chosen, **others | {"alpha": alpha}) for alpha in alphas.tolist()]
    values = np.stack([each.outcome(judged, np.array([chosen.at])).parts[0][:, 0] for each in tried], axis=1)
    try:
        of_query = {str(query): np.nan if is_missing(score) else float(score) for query, score in quality.items()}
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"quality must be {{query: score}} with numbers, got {shown(quality)}") from None
    scores = np.array([of_query.get(query, np.nan) for query in judged.queries], np.float64)
    known = ~np.isnan(values).any(axis=1) & np.isfinite(scores)
    values, scores = values[known], scores[known]
    n, nan = len(scores), float("nan")
    if n < 3:
        raise InputError(f"only {n} queries have both a value of {chosen} and a quality score; at least 3 are needed")
    correlations = _rank_correlations(values, scores)
    best, alpha = _best_column(correlations), None
    rho, outside = nan if best is None else float(np.nanmax(correlations)), nan
    if chosen.name == "T" and getattr(chosen, "form", "") == "paper":
        outside, reason = rho, "T as printed is P@K − α, so alpha cannot change the order of queries."
    elif best is None:
        reason = "The measure or the quality is the same for all queries."
    else:
        alpha = float(alphas[best])
        reason = f"alpha = {alpha:g} has the highest correlation on these queries."
        outside = _out_of_fold(values, scores)
    mean = judged.mean_relevant(getattr(chosen, "rel", None))
    regime = nan if mean is None else chosen.at / mean
    return Calibration(alpha, rho, outside, n, regime, f"{reason} {_regime_advice(regime)}")


def _rank_correlations(values: FloatArray, scores: FloatArray) -> FloatArray:
    """Spearman's rho of each column with the scores: float64[columns]; NaN if either is constant."""
    left, right = np.apply_along_axis(mid_ranks, 0, values), mid_ranks(scores)
    left, right = left - left.mean(axis=0), right - right.mean()
    scale = np.sqrt((left**2).sum(axis=0) * (right**2).sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(scale > 0, right @ left / scale, np.nan)


def _best_column(correlations: FloatArray) -> int | None:
    """The place of the highest correlation, the middle one of a tie; None if all are NaN."""
    if np.isnan(correlations).all():
        return None
    ties = np.flatnonzero(correlations >= np.nanmax(correlations) - _SAME)
    return int(ties[len(ties) // 2])


def _out_of_fold(values: FloatArray, scores: FloatArray) -> float:
    """The correlation of figures whose column was chosen on the other folds; NaN if a fold has none to choose.

    Ranks, not values: the values of different columns are not on the same scale.
    """
    count, ranks = min(_FOLDS, len(scores) // 2), np.empty(len(scores))
    if count < 2:
        return float("nan")
    for fold in np.array_split(np.random.default_rng(7).permutation(len(scores)), count):
        best = _best_column(_rank_correlations(np.delete(values, fold, axis=0), np.delete(scores, fold)))
        if best is None:
            return float("nan")
        ranks[fold] = mid_ranks(values[:, best])[fold]
    return float(_rank_correlations(ranks[:, None], scores)[0])


def _judged(source: Report | JudgedRun, run: str | None) -> JudgedRun:
    if isinstance(source, JudgedRun):
        return source
    if not isinstance(source, Report):
        raise InputError(f"source must be a Report or a JudgedRun, got {shown(source)}")
    if run is None and len(source.runs) != 1:
        raise InputError(f"the report has several runs: give run=…, one of {', '.join(source.runs)}")
    if (judged := source.run(run).judged) is None:
        raise InputError("the report was read from JSON, which holds no labels: give the report itself, or a join")
    return judged


def _regime_advice(regime: float) -> str:
    if np.isnan(regime):
        return "K/N_p is undefined: no query has a relevant passage, or labels name documents where K counts chunks."
    advised, slots = ("T", "fewer slots than") if regime < 1 else ("nDCG", "at least as many slots as")
    return (
        f"K/N_p = {regime:.2f} {'<' if regime < 1 else '≥'} 1: there are {slots} relevant passages. The recall-free "
        f"paper advises {advised} there; whether {advised} follows your answers better is not tested here, but by "
        f"`validate`."
    )
