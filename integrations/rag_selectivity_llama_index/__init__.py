"""rag-selectivity for LlamaIndex: metrics, an evaluator that keeps the pool, and a judge from its LLMs.

Needs the extra `rag-selectivity[llama-index]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_selectivity.errors import MissingExtraError

try:
    from llama_index.core.schema import NodeWithScore
except ImportError as error:
    raise MissingExtraError("llama-index-core", "llama-index", "rag_selectivity_llama_index") from error

from rag_selectivity import Run
from rag_selectivity_llama_index.evaluator import Evaluation, SelectivityEvaluator, defined_mean, report_from_results
from rag_selectivity_llama_index.identity import identity_of
from rag_selectivity_llama_index.live import LiveSelectivity
from rag_selectivity_llama_index.metrics import SelectivityMetric, configure, register

__all__ = [
    "ContextEntityRecallEvaluator",
    "ContextPrecisionEvaluator",
    "ContextRecallEvaluator",
    "ContextRelevanceEvaluator",
    "Evaluation",
    "LLMJudge",
    "LiveSelectivity",
    "SelectivityEvaluator",
    "SelectivityMetric",
    "UtilityEvaluator",
    "UtilityResult",
    "configure",
    "defined_mean",
    "identity_of",
    "register",
    "report_from_results",
    "run_from_nodes",
]


#: What asks a judge, and so needs the extra [judge], which the rest does without.
_JUDGING = {
    "LLMJudge": "judge",
    **dict.fromkeys(
        (
            "ContextEntityRecallEvaluator",
            "ContextPrecisionEvaluator",
            "ContextRecallEvaluator",
            "ContextRelevanceEvaluator",
            "UtilityEvaluator",
            "UtilityResult",
        ),
        "judging",
    ),
}


def __getattr__(name: str) -> Any:
    if name in _JUDGING:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_JUDGING[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run_from_nodes(retrieved: Mapping[str, Sequence[NodeWithScore]]) -> Run:
    """{query id: what `retriever.retrieve` returned}, by node id, in the order given."""
    return Run.from_dict({query: [found.node.node_id for found in nodes] for query, nodes in retrieved.items()})
