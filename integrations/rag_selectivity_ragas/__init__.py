"""rag-selectivity for Ragas: a whole dataset measured at once, metrics for both of its APIs, and a grader.

Needs the extra `rag-selectivity[ragas]`; grading and the claim metrics need `rag-selectivity[judge]` too.
"""

from __future__ import annotations

from typing import Any

from rag_selectivity.errors import MissingExtraError

try:
    import ragas  # noqa: F401
except ImportError as error:
    raise MissingExtraError(f"a ragas that imports ({error})", "ragas", "rag_selectivity_ragas") from error

from rag_selectivity import Run
from rag_selectivity.single import Labels, load_on_first_use, text_id
from rag_selectivity_ragas.answers import answer_scores
from rag_selectivity_ragas.batch import selectivity
from rag_selectivity_ragas.metrics import (
    NDCG,
    PROC,
    RANWG,
    BoR,
    BoRHandler,
    Harm,
    Judged,
    NRecall4,
    NRecall5,
    PercentPROC,
    Precision,
    Precision4,
    RandomSuccess,
    Recall,
    SelectivityMetric,
    Success,
    bor_from_result,
)
from rag_selectivity_ragas.row_figures import RowFigures
from rag_selectivity_ragas.samples import rows_of

__all__ = [
    "NDCG",
    "PROC",
    "RANWG",
    "BoR",
    "BoRHandler",
    "ContextEntityRecall",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "Harm",
    "Judged",
    "Labels",
    "NRecall4",
    "NRecall5",
    "PercentPROC",
    "Precision",
    "Precision4",
    "RagasJudge",
    "RandomSuccess",
    "Recall",
    "RowFigures",
    "SelectivityMetric",
    "Success",
    "agrade_dataset",
    "answer_scores",
    "bor_from_result",
    "grade_dataset",
    "run_from_dataset",
    "selectivity",
    "text_id",
]

# What asks a model needs the extra [judge], which the rest does without.
__getattr__ = load_on_first_use(
    __name__,
    {
        "RagasJudge": "judge",
        "agrade_dataset": "grading",
        "grade_dataset": "grading",
        **dict.fromkeys(("ContextEntityRecall", "ContextPrecision", "ContextRecall", "ContextRelevance"), "claims"),
    },
)


def run_from_dataset(dataset: Any, *, id_column: str | None = None) -> Run:
    """What each sample retrieved, by `retrieved_context_ids` or, without them, by the hash of its text.

    Queries are questions, or the values of `id_column`; a question that is asked again is numbered.
    """
    return Run.of({row.key: list(row.passages) for row in rows_of(dataset, id_column=id_column)})
