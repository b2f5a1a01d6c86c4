"""LlamaIndex's nodes as ids and texts, and the texts of what is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.workflow import StartEvent

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


def candidates_of(found: NodeWithScore) -> dict[str, str]:
    """Every id by which labels may know a node, by the name that `identity=` takes."""
    parts = parts_of(found.node)
    return candidates(parts["ids"], parts["text"], parts["metadata"])


def text_of(node: BaseNode) -> str:
    """A node's text without its metadata."""
    return str(node.get_content(metadata_mode=MetadataMode.NONE))


def texts_of(asked: Any) -> Iterator[str]:
    """The texts in the arguments of a call: of a question, of a chat message, in a workflow's start event.

    Of several in a list (a chat's history) the last comes first.
    """
    if isinstance(asked, str):
        yield asked
    elif isinstance(asked, QueryBundle):
        yield asked.query_str
    elif isinstance(asked, ChatMessage):
        yield asked.content or ""
    elif isinstance(asked, StartEvent):
        yield from texts_of(
            {**{name: getattr(asked, name) for name in type(asked).model_fields}, **dict(asked.items())}
        )
    elif isinstance(asked, Mapping):
        for value in asked.values():
            yield from texts_of(value)
    elif isinstance(asked, (list, tuple)):
        for value in reversed(asked):
            yield from texts_of(value)
