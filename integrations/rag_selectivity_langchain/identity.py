"""Who a document is."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document

from rag_selectivity import InputError
from rag_selectivity.data.ids import text_id


def identity_of(document: Document, identity: str | None = None) -> str:
    """A document's id for the labels: `id`, `text` (a hash of the text), or a metadata key.

    None takes `Document.id` where there is one, and the hash of the text where there is none.
    """
    if identity is None:
        return str(document.id) if document.id is not None else text_id(document.page_content)
    if identity == "text":
        return text_id(document.page_content)
    value = document.id if identity == "id" else document.metadata.get(identity)
    if value is None:
        place = "no id" if identity == "id" else f"no metadata[{identity!r}]"
        raise InputError(
            f"document {document.page_content[:40]!r} has {place}, by which documents were to be known "
            f"(identity='text' takes a hash of the text)"
        )
    return str(value)


def identities_of(documents: Sequence[Document], identity: str | None = None) -> tuple[str, ...]:
    """The ids of a list, in its order."""
    return tuple([identity_of(document, identity) for document in documents])
