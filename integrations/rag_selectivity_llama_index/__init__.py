"""rag-selectivity for LlamaIndex: metrics, an evaluator that keeps the pool, and a judge from its LLMs.

Needs the extra `rag-selectivity[llama-index]`.
"""

from collections.abc import Mapping, Sequence

from rag_selectivity.errors import MissingExtraError

try:
    from llama_index.core.schema import NodeWithScore
except ImportError as error:
    raise MissingExtraError("llama-index-core", "llama-index", "rag_selectivity_llama_index") from error

from rag_selectivity import InputError, Run
from rag_selectivity.hosted import Retrieved, check_retrieved
from rag_selectivity.single import load_on_first_use
from rag_selectivity_llama_index.evaluator import (
    Evaluation,
    SelectivityEvaluator,
    SelectivityMetric,
    answer_scores,
    report_from_results,
)
from rag_selectivity_llama_index.nodes import identity_of, text_of
from rag_selectivity_llama_index.tools import LiveToolSelectivity
from rag_selectivity_llama_index.watching import LiveSelectivity

__all__ = [
    "ContextEntityRecallEvaluator",
    "ContextPrecisionEvaluator",
    "ContextRecallEvaluator",
    "ContextRelevanceEvaluator",
    "Evaluation",
    "LLMJudge",
    "LiveSelectivity",
    "LiveToolSelectivity",
    "SelectivityEvaluator",
    "SelectivityMetric",
    "SynthesizerModel",
    "UtilityEvaluator",
    "agrade_retriever",
    "answer_scores",
    "grade_retriever",
    "identity_of",
    "report_from_results",
    "run_from_nodes",
]

# What asks a judge needs the extra [judge], which the rest does without.
__getattr__ = load_on_first_use(__name__, dict.fromkeys(__all__, "judging"))


def run_from_nodes(retrieved: Mapping[str, Sequence[NodeWithScore]], *, identity: str = "node_id") -> Run:
    """{query id: what `retriever.retrieve` returned}, in the order given.

    `identity` says how the labels know a node, as in `identity_of`. A node that has no such id is an InputError. As
    `SelectivityEvaluator` does, it warns of scores that are NaN and of nodes without text.
    """
    if not isinstance(retrieved, Mapping) or None in retrieved.values():
        raise InputError(f"run_from_nodes: give {{query id: list of nodes}}, got {retrieved!r:.80}")
    found = {
        query: Retrieved(texts=[text_of(each.node) for each in nodes], scores=[each.score for each in nodes])
        for query, nodes in retrieved.items()
    }
    check_retrieved("run_from_nodes", found)
    return Run.of({query: [identity_of(each.node, identity) for each in nodes] for query, nodes in retrieved.items()})
