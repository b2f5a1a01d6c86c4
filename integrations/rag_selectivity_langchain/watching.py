"""`SelectivityCallback`: watches retrieval as it happens in a LangChain application."""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import var_child_runnable_config

from rag_selectivity import InputError, Report
from rag_selectivity.live.calls import CallTree, Kind
from rag_selectivity.live.monitor import RetrievalWatcher
from rag_selectivity.live.retrieval import Passages, Question
from rag_selectivity.live.watching import Latest
from rag_selectivity_langchain.documents import (
    document_lists,
    document_of,
    documents_of_tool,
    documents_selected,
    parts_of,
    plain_ids,
    questions_in,
)

#: The calls of each monitor, so that two handlers of one monitor do not record a retrieval twice.
_CALLS: WeakValueDictionary[tuple[int, bool], CallTree] = WeakValueDictionary()

#: Steps that select and never end, and retrievers in a task that never ends, must not fill the memory.
_MOST_STEPS, _MOST_TASKS = 1000, 20_000

#: The retriever that is under way here, and its parent.
_RETRIEVER: ContextVar[tuple[int, int | None] | None] = ContextVar("rag_selectivity_retriever", default=None)
_RETRIEVERS_RUN = (BaseRetriever.invoke.__code__, BaseRetriever.ainvoke.__code__)


class SelectivityCallback(RetrievalWatcher, BaseCallbackHandler):  # type: ignore[misc,unused-ignore]
    """Measures every retrieval of a chain or agent: `chain.invoke(…, config={"callbacks": [callback]})`.

    Each outermost retriever run is one retrieval; what it returned is what the LLM was shown. If a step selects from
    that (`rerank`), what the step leaves was shown. The pool is what went into the first selection: the result of a
    retriever, also of a fusing one, or what a compressing retriever was given. PROC and %PROC then tell the retriever's
    losses from the reranker's.

    A tool of an agent that gives documents as its artifact is one retrieval as well: the artifact is what was shown,
    and what retrievers inside the tool found is the pool. Inside other tools, each outermost retriever run counts. An
    agent that retrieves three times for one question makes three retrievals.

    Parameters
    ----------
    labels, **options
        As in `rag_selectivity.Monitor`: `corpus_size`, alerts, a trace, and so on. `monitor=` takes an existing
        monitor instead. The callback does not see the index: give N, the vector store or the retriever as
        `corpus_size`.
    identity : {"auto", "id", "text"} or str, optional
        How labels know a document: `Document.id`, a hash of its text, or a metadata key (`source`, or `source.id`
        for a key inside it). `"auto"` takes the one that finds most labels in the first 50 retrievals of labelled
        queries; these are measured after the choice, or when you ask for a report. None takes the id if a document has
        one, else the hash.
    query_id_key : str
        The key of `config["metadata"]` that has the id of the query in the labels, or its text. LangChain passes it on
        to the retrievers inside chains, graphs and agents' tools. Without it, the labels know a query by the text that
        the retriever was asked, or, if an agent has rewritten that, by what the outermost chain or graph was asked.
    rerank : str, optional
        The name of a step that selects documents outside of any retriever: a node of a graph, or the run name in
        `RunnableLambda(rerank).with_config(run_name="rerank")`. It takes and gives a list of documents, or a state (a
        dict, a dataclass, a pydantic model, a `Command`) with one; lists that it passes on unchanged do not count. A
        retrieval is then recorded at the end of the tool or of the outermost chain around it, and not at once.
    count_tokens : callable, optional
        Text → tokens; default: four characters a token.

    A retrieval that raises an error, is cancelled, or returns None counts as an empty list. An error of the callback
    itself does not reach the chain: it is logged, counted in `faults`, and named in the report. The callback works in
    batch, abatch, stream and asynchronous chains, from any thread. A callback that is given twice, or two callbacks
    with one monitor, record a retrieval once.
    """

    #: In asynchronous chains, too, in its place and not in another thread: what it does takes microseconds.
    run_inline = True

    def __init__(self, labels: Any = None, *, rerank: str | None = None, **options: Any) -> None:
        super().__init__(labels, **options)
        self._rerank = rerank
        # A tree holds its monitor, whose number nothing else can have meanwhile.
        tree = CallTree(self.monitor.record, asked=self.monitor.asked, at_once=rerank is None)
        self._calls = _CALLS.setdefault((id(self.monitor), rerank is None), tree)
        self._reranking = Latest[dict[str, list[Document]]](_MOST_STEPS)
        self._has_reranked = False
        self._tasks = Latest[tuple[asyncio.Task[Any], Callable[[Any], None]]](_MOST_TASKS)

    def report(self, **options: Any) -> Report:
        """The figures of all retrievals so far; `report()["BoR"]` is of all that was shown."""
        unseen = self._rerank is not None and not self._has_reranked
        notes = [f"no step called {self._rerank!r} ran: the figures are of what was retrieved"] if unseen else []
        return super().report(**options).with_input(self.monitor.name, {}, notes)

    def close(self) -> None:
        """Record what is under way, and close a trace."""
        self._calls.finish()
        self.monitor.close()

    # -- what LangChain calls ------------------------------------------------------------------------

    def on_retriever_start(self, serialized: Any, query: str, *, run_id: UUID, **told: Any) -> None:
        """A retriever begins."""
        with self.guard:
            parent = self._parent(run_id, told, retrievers=2)
            query_id = self._query_id(told.get("metadata"), (str(query),))
            self._calls.begin(run_id.int, parent, Kind.RETRIEVE, query=str(query), query_id=query_id)
            self._watch_task(run_id.int)
            _RETRIEVER.set((run_id.int, self._told_parent(told)))

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **told: Any) -> None:
        """A retriever has found its documents."""
        self._leave_task(run_id.int)
        if documents is None:
            self.on_retriever_error(None, run_id=run_id)
        else:
            self._end(run_id, lambda: list(map(document_of, documents)))

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **told: Any) -> None:
        """A tool begins: what it retrieves belongs together."""
        with self.guard:
            name, query = str((serialized or {}).get("name")), _query_of_tool(input_str, told.get("inputs"))
            parent, query_id = self._parent(run_id, told), self._query_id(told.get("metadata"), (query,))
            self._calls.begin(run_id.int, parent, Kind.TOOL, query=query, query_id=query_id, name=name)

    def on_tool_end(self, output: Any, *, run_id: UUID, **told: Any) -> None:
        """A tool is over."""
        self._end(run_id, lambda: documents_of_tool(output))

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **told: Any) -> None:
        """A chain begins: what is inside it belongs together."""
        with self.guard:
            parent = self._parent(run_id, told)
            if self._rerank is None or told.get("name") != self._rerank:
                # What the user asked is in the inputs of the outermost chain or graph.
                asked = None if parent is not None else self._query_id(told.get("metadata"), questions_in(inputs))
                kind = Kind.FALLBACKS if told.get("name") == "RunnableWithFallbacks" else Kind.OTHER
                self._calls.begin(run_id.int, parent, kind, query_id=asked)
                return
            self._has_reranked = True
            lists = document_lists(inputs)
            self._reranking.keep(run_id.int, lists)
            given = self._ids([document for each in lists.values() for document in each])
            self._calls.begin(run_id.int, parent, Kind.SELECT, given=given)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **told: Any) -> None:
        """A chain is over."""
        taken = self._reranking.take(run_id.int)
        self._end(run_id, lambda: None if taken is None else self._selected(outputs, taken))

    def on_retriever_error(self, error: Any, *, run_id: UUID, **told: Any) -> None:
        """A retriever, a tool or a chain has failed."""
        self._leave_task(run_id.int)
        self._reranking.take(run_id.int)
        with self.guard:
            self._calls.fail(run_id.int)

    on_tool_error = on_chain_error = on_retriever_error

    # -- runs ----------------------------------------------------------------------------------------

    def _end(self, run_id: UUID, find: Callable[[], Sequence[Document] | None]) -> None:
        """End a call with the documents that it gives, if any."""
        passages = None
        with self.guard:
            if (documents := find()) is not None:
                passages = self._passages(documents, named=self._calls.needs_ids(run_id.int, self.monitor.wants_ids))
        with self.guard:
            self._calls.end(run_id.int, passages)

    def _parent(self, run_id: UUID, told: Mapping[str, Any], *, retrievers: int = 1) -> int | None:
        """What called a run, since a retriever that does not pass on `run_manager.get_child()` hides its own calls.

        `retrievers` is the number of retrievers that are running, with the run itself, if one of them called it.
        """
        around, parent = _RETRIEVER.get(), self._told_parent(told)
        if around is None or around[0] == run_id.int or around[1] != parent or self._calls.kind_of(around[0]) is None:
            return parent
        watched = self._tasks.get(around[0])
        if watched is not None and watched[0] is _current_task() and _retrievers_running() < retrievers:
            # It was cancelled, and the task goes on.
            watched[1](watched[0])
            return parent
        return around[0]

    def _told_parent(self, told: Mapping[str, Any]) -> int | None:
        """The parent's id as a number: as the key of a dictionary, an id is hashed in Python every time."""
        parent: UUID | None = told.get("parent_run_id")
        # What `with_fallbacks` calls is told to be called by what called it; the context knows better.
        config: Any = var_child_runnable_config.get() or {}
        around: UUID | None = getattr(config.get("callbacks"), "parent_run_id", None)
        if around is not None and (parent is None or self._calls.is_inside(around.int, parent.int)):
            parent = around
        return None if parent is None else parent.int

    def _query_id(self, metadata: Mapping[str, Any] | None, texts: Iterable[str]) -> str | None:
        """The id in the metadata, else the first of some texts that has labels."""
        query_id = metadata.get(self.query_id_key) if metadata else None
        if query_id is None:
            return next((Question(text) for text in texts if text in self.labelled), None) if self.labelled else None
        return str(query_id)

    def _selected(self, outputs: Any, taken: Mapping[str, Sequence[Document]]) -> list[Document]:
        try:
            return documents_selected(outputs, taken)
        except InputError as error:
            raise InputError(f"the step {self._rerank!r} does not tell what it selected: {error}") from None

    # -- documents -----------------------------------------------------------------------------------

    def _ids(self, documents: Sequence[Document]) -> tuple[str, ...]:
        ids = plain_ids(known_by, documents) if (known_by := self.identity.settled) else None
        # An error calls them by their ranks, since it goes to the log, which is to hold no texts.
        parts = (parts_of(each, f"document {rank}") for rank, each in enumerate(documents, 1))
        return ids or tuple([self.identity.id_of(**each) for each in parts])

    def _passages(self, documents: Sequence[Document], *, named: bool) -> Passages:
        """Passages; of what has no labels nobody asks for the ids, and naming passages is most of the work."""
        ids = self._ids(documents) if named else ("",) * len(documents)
        return self.passages(ids, [each.page_content for each in documents])

    # -- cancellation --------------------------------------------------------------------------------

    def _watch_task(self, run_id: int) -> None:
        """LangChain does not tell that a retriever was cancelled; its task is over then."""
        if (task := _current_task()) is not None and self._tasks.get(run_id) is None:
            when_over = partial(self.on_retriever_error, run_id=UUID(int=run_id))
            self._tasks.keep(run_id, (task, when_over))
            task.add_done_callback(when_over)

    def _leave_task(self, run_id: int) -> None:
        if (watched := self._tasks.take(run_id)) is not None:
            watched[0].remove_done_callback(watched[1])


def _query_of_tool(text: str, inputs: Mapping[str, Any] | None) -> str:
    """What a tool is asked: its argument `query`, or its only one."""
    query = (inputs or {}).get("query")
    if inputs and not isinstance(query, str) and len(inputs) == 1:
        return str(next(iter(inputs.values())))
    return query if isinstance(query, str) else text


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop: nothing can be cancelled
        return None


def _retrievers_running() -> int:
    """How many retrievers are running here, one inside the other."""
    frame, count = inspect.currentframe(), 0
    while frame is not None:
        count += frame.f_code in _RETRIEVERS_RUN
        frame = frame.f_back
    return count
