"""`SelectivityCallback`: watches retrieval as it happens in a LangChain application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document

from rag_selectivity import Monitor, Report
from rag_selectivity.live.calls import CallTree, Faults, Kind, Passages, approximate_tokens
from rag_selectivity.live.retrieval import Traffic
from rag_selectivity_langchain.documents import parts_of


class _Watching:
    """What both handlers share: LangChain's runs as calls of a tree, and a monitor behind it."""

    def __init__(
        self,
        labels: Any = None,
        *,
        corpus_size: Any = None,
        identity: str | None = "auto",
        query_id_key: str = "query_id",
        rerank: str | None = None,
        count_tokens: Callable[[str], int] = approximate_tokens,
        monitor: Monitor | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.monitor = monitor if monitor is not None else Monitor(labels, corpus_size=corpus_size, **options)
        self._faults = Faults("a retrieval was not recorded")
        self._identity = self.monitor.identity(identity)
        self._query_id_key, self._rerank, self._count = query_id_key, rerank, count_tokens
        self._calls = CallTree(self.monitor.record, pool_of_children=True, at_once=rerank is None)

    def report(self, **options: Any) -> Report:
        """The figures of all retrievals so far; `report()["BoR"]` is of all that was shown."""
        return self.monitor.report(**options)

    @property
    def faults(self) -> int:
        """The number of errors of the callback itself; each is in the log `rag_selectivity`."""
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
                self._calls.begin(run_id, parent_run_id, Kind.SELECT, given=self._ids(_documents_in(inputs)))
            else:
                self._calls.begin(run_id, parent_run_id, Kind.OTHER)

    def _end(self, run_id: UUID, result: Any) -> None:
        passages = None
        with self._faults:
            kind = self._calls.kind_of(run_id)
            if kind is Kind.RETRIEVE and result is None:
                self._calls.fail(run_id)
            elif kind is Kind.RETRIEVE:
                passages = self._passages(result)
            elif kind is Kind.SELECT:
                passages = self._passages(_documents_in(result))
        with self._faults:
            self._calls.end(run_id, passages)

    def _fail(self, run_id: UUID) -> None:
        with self._faults:
            self._calls.fail(run_id)

    def _ids(self, documents: Sequence[Document]) -> tuple[str, ...]:
        return tuple([self._identity.id_of(**parts_of(document)) for document in documents])

    def _passages(self, documents: Sequence[Document]) -> Passages:
        return Passages.of(
            self._ids(documents),
            [document.page_content for document in documents],
            count_tokens=self._count,
            keep_texts=self.monitor.wants_texts,
        )


class SelectivityCallback(_Watching, BaseCallbackHandler):  # type: ignore[misc,unused-ignore]
    """Measures every retrieval of a chain or agent: `chain.invoke(…, config={"callbacks": [callback]})`.

    Each outermost retriever run is one retrieval. If it has retrievers directly inside it, as a compressing, fusing or
    multi-query retriever has, what these found is the pool. What the outermost run returned is what the LLM was shown.
    PROC and %PROC then tell the retriever's losses from the reranker's.

    Parameters
    ----------
    labels, corpus_size, **options
        As in `rag_selectivity.Monitor`: alerts, a trace, a background grader, and so on. `monitor=` takes an existing
        monitor instead. The callback does not see the index: give N, the vector store or the retriever as
        `corpus_size`.
    identity : {"auto", "id", "text"} or str, optional
        How labels know a document: `Document.id`, a hash of its text, or a metadata key (`source`, or `source.id`
        for a key inside it). `"auto"` takes the one that finds most labels in the first 50 retrievals of labelled
        queries; these are measured after the choice, or when you ask for a report. None takes the id if a document has
        one, else the hash.
    query_id_key : str
        The key of `config["metadata"]` that has the id of the query in the labels. Without it, the labels know the
        query by its text.
    rerank : str, optional
        The run name of a step that selects documents outside of any retriever, as in
        `RunnableLambda(rerank).with_config(run_name="rerank")`. A retrieval is then recorded at the end of that step
        or of the chain around it, and not at once.
    count_tokens : callable, optional
        Text → tokens; default: four characters a token.

    A retrieval that raises an error, is cancelled, or returns None counts as an empty list. An error of the callback
    itself does not reach the chain: it is logged, and counted in `faults`. The callback works in batch, abatch, stream
    and asynchronous chains, from any thread.
    """

    #: In asynchronous chains, too, in its place and not in another thread: what it does takes microseconds.
    run_inline = True

    def __init__(self, labels: Any = None, **options: Any) -> None:
        super().__init__(labels, **options)
        self._tasks: dict[UUID, tuple[asyncio.Task[Any], Callable[[Any], None]]] = {}

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
        with self._faults:
            self._watch_task(run_id)

    def on_retriever_end(
        self, documents: Sequence[Document], *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A retriever has found its documents."""
        self._leave_task(run_id)
        self._end(run_id, documents)

    def on_retriever_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A retriever has failed."""
        self._leave_task(run_id)
        self._fail(run_id)

    def _watch_task(self, run_id: UUID) -> None:
        """LangChain does not tell that a retriever was cancelled; its task is over then."""
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no loop: nothing can be cancelled
            return
        if task is not None:
            when_over = partial(self._cancelled, run_id)
            self._tasks[run_id] = task, when_over
            task.add_done_callback(when_over)

    def _leave_task(self, run_id: UUID) -> None:
        task, when_over = self._tasks.pop(run_id, (None, None))
        if task is not None and when_over is not None:
            task.remove_done_callback(when_over)

    def _cancelled(self, run_id: UUID, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(run_id, None)
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
    """`SelectivityCallback` as an asynchronous handler, for applications that allow no other.

    A retriever that is cancelled outside of any chain stays unnoticed.
    """

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
