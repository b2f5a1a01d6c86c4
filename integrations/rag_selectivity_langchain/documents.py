"""LangChain's documents and messages as ids and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document

from rag_selectivity import InputError
from rag_selectivity.single import candidates, passage_identity


def document_of(passage: Any) -> Document:
    """A document, also of a pair of a document and its score, as `similarity_search_with_score` gives it.

    Raises
    ------
    InputError
        If it is neither.
    """
    first = passage[0] if isinstance(passage, tuple) and len(passage) == 2 else passage
    if not isinstance(first, Document):
        raise InputError(f"it must return Documents, or pairs of a Document and its score, got {passage!r:.80}")
    return first


def parts_of(document: Any) -> dict[str, Any]:
    """What `passage_identity` and an `Identity` take of a document."""
    document = document_of(document)
    return {
        "ids": {"id": document.id},
        "text": lambda: str(document.page_content),
        "metadata": document.metadata,
        "name": f"document {document.page_content[:40]!r}",
    }


def identity_of(document: Document | tuple[Document, float], identity: str | None = None) -> str:
    """A document's id for the labels: `id`, `text` (a hash of the text), or a metadata key.

    None takes `Document.id` where there is one, and the hash of the text where there is none.
    """
    return passage_identity(identity, **parts_of(document))


def candidates_of(document: Document) -> dict[str, str]:
    """Every id by which labels may know a document, by the name that `identity=` takes."""
    parts = parts_of(document)
    return candidates(parts["ids"], parts["text"], parts["metadata"])


def plain_ids(known_by: str, documents: Sequence[Document]) -> tuple[str, ...] | None:
    """What `identity_of` gives for each, read at once; None if one of them lacks a string under that name."""
    ids: list[Any]
    if known_by == "text":
        return None
    if known_by == "id":
        ids = [document.id for document in documents]
    else:
        ids = [document.metadata.get(known_by) for document in documents]
    return tuple(ids) if set(map(type, ids)) <= {str} and "" not in ids else None


def text_of(message: Any) -> str:
    """The text of a message, whose content is a string or a list of parts."""
    content = getattr(message, "content", message)
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)
