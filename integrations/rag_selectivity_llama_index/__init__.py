"""rag-selectivity for LlamaIndex: retrieved nodes as a core `Run`.

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

__all__ = ["LLMJudge", "run_from_nodes"]


def __getattr__(name: str) -> Any:
    # Judges need the extra [judge], which the rest does without.
    if name == "LLMJudge":
        from rag_selectivity_llama_index.judge import LLMJudge

        return LLMJudge
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run_from_nodes(retrieved: Mapping[str, Sequence[NodeWithScore]]) -> Run:
    """{query id: what `retriever.retrieve` returned}, by node id, in the order given."""
    return Run.from_dict({query: [found.node.node_id for found in nodes] for query, nodes in retrieved.items()})
