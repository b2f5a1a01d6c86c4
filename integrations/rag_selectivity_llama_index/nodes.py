"""LlamaIndex's nodes as ids and texts, and what a retriever and its postprocessors make of a query."""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.workflow import StartEvent

from rag_selectivity.hosted import Retrieved
from rag_selectivity.single import candidates, check_whole, passage_identity


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
        declared = {name: getattr(asked, name) for name in type(asked).model_fields}
        yield from texts_of({**declared, **dict(asked.items())})
    elif isinstance(asked, Mapping):
        for value in asked.values():
            yield from texts_of(value)
    elif isinstance(asked, (list, tuple)):
        for value in reversed(asked):
            yield from texts_of(value)


_SAYS_ONLY_SYNC = re.compile(r"\basync(hronous(ly)?)?\b.*\bnot\b|\bnot\b.*\basync(hronous(ly)?)?\b", re.I | re.S)


class Pipeline:
    """A retriever and its postprocessors.

    Attributes
    ----------
    only_sync : str or None
        The error of a retriever that has no asynchronous code, once it was raised; it is then asked in threads.
    """

    def __init__(self, retriever: Any, postprocessors: Sequence[Any] = ()) -> None:
        self._retriever, self._postprocessors = retriever, postprocessors
        self._blocks = False
        self.only_sync: str | None = None

    async def retrieve_all(self, queries: Mapping[str, str], workers: int) -> dict[str, Retrieved]:
        """The retrievals of {query: text}."""
        check_whole("workers", workers)
        gate = asyncio.Semaphore(workers)

        async def one(text: str) -> Retrieved:
            async with gate:
                if self._blocks and self.only_sync is None:
                    return await asyncio.to_thread(lambda: asyncio.run(self.retrieve(text)))
                return await self.retrieve(text)

        # The first alone: it shows whether the retriever has asynchronous code.
        first, *others = queries.values()
        lists: list[Any] = [await one(first)]
        # With the exceptions, so that no call is left under way when one of them is raised.
        lists += await asyncio.gather(*map(one, others), return_exceptions=True)
        for each in lists:
            if isinstance(each, BaseException):
                raise each
        return dict(zip(queries, lists, strict=True))

    async def retrieve(self, text: str) -> Retrieved:
        """The nodes of a query by all their ids; a failure is held and not raised."""
        nodes, error = await _outcome(self._nodes(text))
        if nodes is None:
            return Retrieved(error=error or TypeError("the retriever returned None"))
        # Ids at once: postprocessors may change the nodes in place.
        pool, scores = list(map(candidates_of, nodes)), [each.score for each in nodes]
        for postprocessor in self._postprocessors:
            nodes, error = await _outcome(postprocessor.apostprocess_nodes(nodes, query_bundle=QueryBundle(text)))
            if nodes is None:
                error = error or TypeError(f"{type(postprocessor).__name__} returned None")
                return Retrieved(pool=pool, scores=scores, error=error)
        texts = [text_of(each.node) for each in nodes]
        if not self._postprocessors:
            return Retrieved(pool, texts=texts, scores=scores)
        return Retrieved(list(map(candidates_of, nodes)), pool, texts, scores)

    async def _nodes(self, text: str) -> list[NodeWithScore] | None:
        """What the retriever returns, asked without asynchronous code if it has none."""
        if self.only_sync is None:
            has_yielded = asyncio.Event()
            asyncio.get_running_loop().call_soon(has_yielded.set)
            try:
                nodes: list[NodeWithScore] | None = await self._retriever.aretrieve(text)
            except Exception as error:
                if not isinstance(error, NotImplementedError) and _SAYS_ONLY_SYNC.search(str(error)) is None:
                    raise
                self.only_sync = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
            else:
                # Without asynchronous code of its own it has held up the event loop from beginning to end.
                self._blocks = not has_yielded.is_set()
                return nodes
        found: list[NodeWithScore] | None = await asyncio.to_thread(self._retriever.retrieve, text)
        return found


async def _outcome(call: Any) -> tuple[Any, BaseException | None]:
    """What a call returns, or the error that it raises."""
    try:
        return await call, None
    except Exception as error:
        return None, error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return None, error  # the retriever has cancelled something of its own, as a timeout does
