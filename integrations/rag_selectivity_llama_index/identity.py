"""Who a node is."""

from __future__ import annotations

from llama_index.core.schema import BaseNode, MetadataMode

from rag_selectivity import InputError
from rag_selectivity.data.ids import text_id


def identity_of(node: BaseNode, identity: str = "node_id") -> str:
    """A node's id for the labels: `node_id`, `ref_doc_id` (its document's), `text` (a hash), or a metadata key.

    Node ids are made anew at each ingestion; the others last.
    """
    if identity == "node_id":
        return str(node.node_id)
    if identity == "text":
        return text_id(node.get_content(metadata_mode=MetadataMode.NONE))
    value = node.ref_doc_id if identity == "ref_doc_id" else node.metadata.get(identity)
    if value is None:
        place = "no ref_doc_id" if identity == "ref_doc_id" else f"no metadata[{identity!r}]"
        raise InputError(f"node {node.node_id!r} has {place}, by which nodes were to be known")
    return str(value)
