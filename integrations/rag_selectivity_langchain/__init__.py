"""rag-selectivity for LangChain: retrieved documents as a core `Run`.

Needs the extra `rag-selectivity[langchain]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_selectivity.errors import MissingExtraError

try:
    from langchain_core.documents import Document
except ImportError as error:
    raise MissingExtraError("langchain-core", "langchain", "rag_selectivity_langchain") from error

from rag_selectivity import InputError, Run

__all__ = ["ChatModelJudge", "run_from_documents"]


def __getattr__(name: str) -> Any:
    # Judges need the extra [judge], which the rest does without.
    if name == "ChatModelJudge":
        from rag_selectivity_langchain.judge import ChatModelJudge

        return ChatModelJudge
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run_from_documents(retrieved: Mapping[str, Sequence[Document]], *, id_key: str | None = None) -> Run:
    """{query id: what `retriever.invoke` returned}, in the order given.

    A document's id is `Document.id`, or `metadata[id_key]`; one without is an InputError.
    """
    lists: dict[str, list[str]] = {}
    for query, documents in retrieved.items():
        ids = [document.id if id_key is None else document.metadata.get(id_key) for document in documents]
        if None in ids:
            place = "id" if id_key is None else f"metadata[{id_key!r}]"
            raise InputError(f"query {query!r}: document number {ids.index(None) + 1} has no {place}")
        lists[query] = [str(passage) for passage in ids]
    return Run.from_dict(lists)
