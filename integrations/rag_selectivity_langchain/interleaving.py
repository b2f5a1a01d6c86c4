"""Two retrievers interleaved in production, and credit for what answers cite."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    BaseCallbackHandler,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.outputs import LLMResult
from langchain_core.retrievers import BaseRetriever

from rag_selectivity.online import Interleaver
from rag_selectivity_langchain.documents import identity_of


class InterleavedRetriever(BaseRetriever):  # type: ignore[misc,unused-ignore]
    """A retriever that drafts from two others, for the impression that `rag_selectivity.online.impression` names.

    Documents are known by `identity` (`id`, `text` or a metadata key; by default the id where there is one).
    """

    retrievers: dict[str, BaseRetriever]
    interleaver: Any
    identity: str | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        return self._drafted(query, {name: each.invoke(query, config) for name, each in self.retrievers.items()})

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        return self._drafted(query, {name: await each.ainvoke(query, config) for name, each in self.retrievers.items()})

    def _drafted(self, query: str, found: dict[str, list[Document]]) -> list[Document]:
        ids = {name: [identity_of(each, self.identity) for each in documents] for name, documents in found.items()}
        known = {id_: each for name in found for id_, each in zip(ids[name], found[name], strict=True)}
        return [known[passage] for passage in self.interleaver.draft(query, ids).passages]


class CitationCallback(BaseCallbackHandler):  # type: ignore[misc,unused-ignore]
    """Credits the passages that a model's answer cites in brackets: by id, or by number if `numbered`."""

    run_inline = True

    def __init__(self, interleaver: Interleaver, *, numbered: bool = False) -> None:
        self.interleaver, self.numbered = interleaver, numbered

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """A model has answered."""
        answers = [each.text for generations in response.generations for each in generations[:1]]
        self.interleaver.credit_answer("\n".join(answers), numbered=self.numbered)
