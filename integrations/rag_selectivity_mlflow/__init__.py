"""rag-selectivity for MLflow: a scorer for `mlflow.genai.evaluate`, BoR as a metric of the run, reports as artifacts.

Needs the extra `rag-selectivity[mlflow]`.
"""

from __future__ import annotations

from rag_selectivity.errors import MissingExtraError

try:
    import mlflow.genai  # noqa: F401
except ImportError as error:
    raise MissingExtraError("mlflow 3", "mlflow", "rag_selectivity_mlflow") from error

from rag_selectivity_mlflow.runs import log_bor, log_report, metric_name
from rag_selectivity_mlflow.scoring import selectivity_scorer

__all__ = ["log_bor", "log_report", "metric_name", "selectivity_scorer"]
