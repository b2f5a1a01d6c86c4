"""Runs: BoR from the feedback on a run's rows, and reports as metrics and artifacts."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import mlflow

from rag_selectivity import Bootstrap, Estimate, InputError, Report, SelectivityWarning
from rag_selectivity.single import bits_over_random


def metric_name(measure: Any) -> str:
    """The name of a measure as MLflow accepts it.

    >>> metric_name("BoR@10"), metric_name("%PROC@5"), metric_name("Success(rel=4)@10")
    ('BoR_at_10', 'PercentPROC_at_5', 'Success_rel_4_at_10')
    """
    plain = str(measure).replace("%", "Percent").replace("+", "plus").replace("@", "_at_")
    return re.sub(r"_+", "_", re.sub(r"[^\w.-]", "_", plain))


def log_bor(run: Any, *, bootstrap: Bootstrap = Bootstrap()) -> dict[str, Estimate]:
    """Bits over Random of an evaluation with `selectivity_scorer("BoR@10", …)`, logged as metrics of its run.

    The metrics are `BoR_at_10` in bits, its interval `BoR_at_10_low` and `BoR_at_10_high`, the numbers of rows `_n` and
    `_n_total`, and `_n_none_judged`: of the `n` rows, those that retrieved no judged passage. If these are many, check
    that the retrieved ids are those of the labels. A number that is not finite is not logged; the tag `BoR_at_10` then
    holds the reason.

    Parameters
    ----------
    run : EvaluationResult, or the id of its run

    Returns
    -------
    {metric name: Estimate}
        `n` of `n_total` rows have both figures. A row whose scorer or application failed, or whose query nobody
        judged, has none.

    Raises
    ------
    InputError
        If no row of the run has a pair of figures.
    """
    run_id = getattr(run, "run_id", run)
    place = [mlflow.get_run(run_id).info.experiment_id]
    traces = mlflow.search_traces(locations=place, run_id=run_id, include_spans=False, return_type="list")
    rows = [{each.name: each for each in trace.info.assessments if _is_of(each, run_id)} for trace in traces]
    hits = sorted({name for row in rows for name in row if name.startswith("Success") and f"Random{name}" in row})
    if not hits:
        raise InputError(
            f"none of the {len(rows)} rows of run {run_id} has Success and RandomSuccess: evaluate it with "
            f"selectivity_scorer('BoR@10', …), and look at the errors of its assessments"
        )
    done = {}
    for hit in hits:
        success, chance = ([_number(row.get(name)) for row in rows] for name in (hit, f"Random{hit}"))
        name = hit.replace("Success", "BoR", 1)
        done[name] = estimate = bits_over_random(success, chance, bootstrap=bootstrap)
        numbers = {"": estimate.value, "_low": estimate.low, "_high": estimate.high}
        unmet = sum(not float((row[hit].metadata or {}).get("judged", 1)) for row in rows if _is_number(row.get(hit)))
        counts = {"_n": estimate.n, "_n_total": estimate.n_total, "_n_none_judged": unmet}
        logged = {name + end: float(value) for end, value in (numbers | counts).items() if math.isfinite(value)}
        mlflow.log_metrics(logged, run_id=run_id)
        if estimate.reason:
            mlflow.MlflowClient().set_tag(run_id, name, estimate.reason)
        if unmet == estimate.n:
            warnings.warn(
                f"{name}: none of the {estimate.n} rows retrieved a judged passage: check that the retrieved ids are "
                f"the ids of the labels (identity=…)",
                SelectivityWarning,
                stacklevel=2,
            )
    return done


def log_report(report: Report, *, name: str = "selectivity") -> None:
    """Log a report to the active run: its figures as metrics, and `name.html` and `name.json` as artifacts.

    Metrics are named as by `log_bor`; with several retrievers in the report, `RETRIEVER/BoR_at_10`.
    """
    for retriever in report:
        prefix = "" if len(report.runs) == 1 else f"{metric_name(retriever)}/"
        for measure, estimate in report.runs[retriever].estimates.items():
            numbers = {"": estimate.value, "_low": estimate.low, "_high": estimate.high, "_n": float(estimate.n)}
            key = prefix + metric_name(measure)
            mlflow.log_metrics({key + end: value for end, value in numbers.items() if math.isfinite(value)})
    mlflow.log_text(report.to_html(), f"{name}.html")
    mlflow.log_dict(report.to_dict(), f"{name}.json")


def _is_of(assessment: Any, run_id: str) -> bool:
    return bool((assessment.metadata or {}).get("mlflow.assessment.sourceRunId", run_id) == run_id)


def _is_number(feedback: Any) -> bool:
    return feedback is not None and feedback.value is not None


def _number(feedback: Any) -> float:
    return float(feedback.value) if _is_number(feedback) else math.nan
