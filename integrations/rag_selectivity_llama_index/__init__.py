"""rag-selectivity for LlamaIndex: retrieved nodes as a core `Run`.

Needs the extra `rag-selectivity[llama-index]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_selectivity.errors import MissingExtraError

try:
    from llama_index.core.schema import NodeWithScore
except ImportError as error:
    raise MissingExtraError("llama-index-core", "llama-index", "rag_selectivity_llama_index") from error

from rag_selectivity import Run

__all__ = ["run_from_nodes"]


def run_from_nodes(retrieved: Mapping[str, Sequence[NodeWithScore]]) -> Run:
    """{query id: what `retriever.retrieve` returned}, by node id, in the order given."""
    return Run.from_dict({query: [found.node.node_id for found in nodes] for query, nodes in retrieved.items()})
