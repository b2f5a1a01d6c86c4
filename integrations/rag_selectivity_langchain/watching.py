"""`SelectivityCallback`: watches retrieval as it happens in a LangChain application."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document

from rag_selectivity import Monitor, Report
from rag_selectivity.live.calls import CallTree, Faults, Kind, Passages, approximate_tokens
from rag_selectivity.live.retrieval import Traffic
from rag_selectivity_langchain.documents import identities_of


class _Watching:
    """What both handlers share: LangChain's runs as calls of a tree, and a monitor behind it."""

    def __init__(
        self,
        labels: Any = None,
        *,
        corpus_size: int | None = None,
        identity: str | None = None,
        query_id_key: str = "query_id",
        rerank: str | None = None,
        count_tokens: Callable[[str], int] = approximate_tokens,
        monitor: Monitor | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.monitor = monitor if monitor is not None else Monitor(labels, corpus_size=corpus_size, **options)
        self._faults = Faults("a retrieval was not recorded")
        self._identity, self._query_id_key, self._rerank, self._count = identity, query_id_key, rerank, count_tokens
        self._calls = CallTree(self.monitor.record, self.monitor.failed, pool_of_children=True, at_once=rerank is None)

    def report(self, **options: Any) -> Report:
        """The figures of all retrievals so far; `report()["BoR"]` is of all that was shown."""
        return self.monitor.report(**options)

    @property
    def faults(self) -> int:
        """How often something went wrong in here; each time is in the log `rag_selectivity`."""
        return self._faults.count

    @property
    def traffic(self) -> Traffic:
        """What was seen so far, labelled or not."""
        return self.monitor.traffic

    def close(self) -> None:
        """Record what is under way, wait for a background grader, and close a trace."""
        self._calls.finish()
        self.monitor.close()

    # -- runs ----------------------------------------------------------------------------------------

    def _retriever_start(
        self, query: str, run_id: UUID, parent_run_id: UUID | None, metadata: Mapping[str, Any] | None
    ) -> None:
        with self._faults:
            query_id = (metadata or {}).get(self._query_id_key)
            known_as = None if query_id is None else str(query_id)
            self._calls.begin(run_id, parent_run_id, Kind.RETRIEVE, query=query, query_id=known_as)

    def _chain_start(self, run_id: UUID, parent_run_id: UUID | None, name: str | None, inputs: Any) -> None:
        with self._faults:
            if self._rerank is not None and name == self._rerank:
                given = identities_of(_documents_in(inputs), self._identity)
                self._calls.begin(run_id, parent_run_id, Kind.SELECT, given=given)
            else:
                self._calls.begin(run_id, parent_run_id, Kind.OTHER)

    def _end(self, run_id: UUID, result: Any) -> None:
        passages = None
        with self._faults:
            kind = self._calls.kind_of(run_id)
            if kind is Kind.RETRIEVE:
                passages = self._passages(result or ())
            elif kind is Kind.SELECT:
                passages = self._passages(_documents_in(result))
        with self._faults:
            self._calls.end(run_id, passages)

    def _fail(self, run_id: UUID) -> None:
        with self._faults:
            self._calls.fail(run_id)

    def _passages(self, documents: Sequence[Document]) -> Passages:
        return Passages.of(
            identities_of(documents, self._identity),
            [document.page_content for document in documents],
            count_tokens=self._count,
            keep_texts=self.monitor.wants_texts,
        )


class SelectivityCallback(_Watching, BaseCallbackHandler):  # type: ignore[misc,unused-ignore]
    """Measures every retrieval of a chain or agent: `chain.invoke(…, config={"callbacks": [callback]})`.

    One record for each outermost retriever run. What the retrievers directly inside it found (of a compressing,
    fusing or multi-query retriever) is the pool, what it returned is what the LLM was shown, so that PROC and
    %PROC tell the retriever's losses from the reranker's.

    Parameters
    ----------
    labels, corpus_size, **options
        As in `rag_selectivity.Monitor`: alerts, a trace, a background grader, …; or `monitor=`, one that is there
        already.
    identity : {"id", "text"} or str, optional
        How labels know a document: `Document.id`, a hash of its text, or a metadata key. Default: its id where it
        has one, else the hash.
    query_id_key : str
        `config={"metadata": {"query_id": …}}` tells under which id the labels know the query; else by its text.
    rerank : str, optional
        The run name of a step that selects documents outside of any retriever, as in
        `RunnableLambda(rerank).with_config(run_name="rerank")`. A retrieval is then recorded when that step or
        the chain around it is over, and not at once.
    count_tokens : callable, optional
        Text → tokens; default: four characters a token.

    A fault in here never reaches the chain: it is logged, and counted in `faults`. Works in batch, abatch,
    stream and asynchronous chains, from any thread.
    """

    #: In asynchronous chains, too, in its place and not in another thread: what it does takes microseconds.
    run_inline = True

    def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever begins."""
        self._retriever_start(query, run_id, parent_run_id, metadata)

    def on_retriever_end(
        self, documents: Sequence[Document], *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A retriever has found its documents."""
        self._end(run_id, documents)

    def on_retriever_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A retriever has failed."""
        self._fail(run_id)

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A chain begins: what is inside it belongs together."""
        self._chain_start(run_id, parent_run_id, kwargs.get("name"), inputs)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        """A chain is over."""
        self._end(run_id, outputs)

    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A chain has failed."""
        self._fail(run_id)


class AsyncSelectivityCallback(_Watching, AsyncCallbackHandler):  # type: ignore[misc,unused-ignore]
    """`SelectivityCallback` as an asynchronous handler, for applications that allow no other."""

    async def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever begins."""
        self._retriever_start(query, run_id, parent_run_id, metadata)

    async def on_retriever_end(
        self, documents: Sequence[Document], *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A retriever has found its documents."""
        self._end(run_id, documents)

    async def on_retriever_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A retriever has failed."""
        self._fail(run_id)

    async def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A chain begins: what is inside it belongs together."""
        self._chain_start(run_id, parent_run_id, kwargs.get("name"), inputs)

    async def on_chain_end(
        self, outputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A chain is over."""
        self._end(run_id, outputs)

    async def on_chain_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A chain has failed."""
        self._fail(run_id)


def _documents_in(value: Any) -> list[Document]:
    """The documents of a list, or of the lists in a dict."""
    if isinstance(value, Mapping):
        return [document for inner in value.values() if isinstance(inner, (list, tuple)) for document in _only(inner)]
    return _only(value) if isinstance(value, (list, tuple)) else []


def _only(values: Iterable[Any]) -> list[Document]:
    return [value for value in values if isinstance(value, Document)]
