"""LlamaIndex's nodes as ids and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from rag_selectivity.single import candidates, passage_identity


def parts_of(node: BaseNode) -> dict[str, Any]:
    """What `passage_identity` and an `Identity` take of a node."""
    return {
        "ids": {"node_id": node.node_id, "ref_doc_id": node.ref_doc_id},
        "text": lambda: text_of(node),
        "metadata": node.metadata,
        "name": f"node {node.node_id!r}",
    }


def identity_of(node: BaseNode, identity: str = "node_id") -> str:
    """A node's id for the labels: `node_id`, `ref_doc_id` (its document's), `text` (a hash), or a metadata key.

    Node ids are made anew at each ingestion; the others last.
    """
    return passage_identity(identity, **parts_of(node))


def candidates_of(node: BaseNode) -> dict[str, str]:
    """Every id by which labels may know a node, by the name that `identity=` takes."""
    parts = parts_of(node)
    return candidates(parts["ids"], parts["text"], parts["metadata"])


def identities_of(nodes: Sequence[NodeWithScore], identity: str = "node_id") -> tuple[str, ...]:
    """The ids of a list, in its order."""
    return tuple([identity_of(each.node, identity) for each in nodes])


def text_of(node: BaseNode) -> str:
    """A node's text without its metadata."""
    return str(node.get_content(metadata_mode=MetadataMode.NONE))
