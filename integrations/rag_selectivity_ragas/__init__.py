"""rag-selectivity for Ragas: a whole dataset measured at once, metrics for both of its APIs, and a grader.

Needs the extra `rag-selectivity[ragas]`; grading and the claim metrics need `rag-selectivity[judge]` too.
"""

from rag_selectivity.errors import MissingExtraError

try:
    import ragas  # noqa: F401
except ImportError as error:
    raise MissingExtraError(f"a ragas that imports ({error})", "ragas", "rag_selectivity_ragas") from error

from rag_selectivity.single import Labels, load_on_first_use, text_id
from rag_selectivity_ragas.batch import run_from_dataset, selectivity
from rag_selectivity_ragas.metrics import BoR, RowFigures, SelectivityMetric, answer_scores, bor_from_result

__all__ = [
    "BoR",
    "ContextEntityRecall",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "Labels",
    "RagasJudge",
    "RowFigures",
    "SelectivityMetric",
    "agrade_dataset",
    "answer_scores",
    "bor_from_result",
    "grade_dataset",
    "run_from_dataset",
    "selectivity",
    "text_id",
]

# What asks a model needs the extra [judge], which the rest does without.
__getattr__ = load_on_first_use(__name__, dict.fromkeys(__all__, "judging"))
