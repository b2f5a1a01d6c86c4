"""The retrievals of an evaluation: a retriever and its postprocessors, asked for every query."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from llama_index.core.schema import NodeWithScore, QueryBundle

from rag_selectivity import InputError, SelectivityWarning
from rag_selectivity_llama_index.nodes import candidates_of, identity_of, text_of

#: The value of `identity` that leaves the choice to the labels.
AUTO = "auto"
_SAYS_ONLY_SYNC = re.compile(r"\basync(hronous(ly)?)?\b.*\bnot\b|\bnot\b.*\basync(hronous(ly)?)?\b", re.I | re.S)

#: The ids of a node by the names that `identity=` takes; one if the identity was given.
Ids = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a retriever brought for a query, and what its postprocessors left of it.

    Attributes
    ----------
    pool, final : ids of nodes, in order
    texts : tuple of str
        Those of `final`.
    without_score, empty : int
        Nodes of the pool whose score is NaN, and those without text.
    error : BaseException or None
        Why the retrieval failed; `final` is then empty.
    """

    pool: tuple[Ids, ...] = ()
    final: tuple[Ids, ...] = ()
    texts: tuple[str, ...] = ()
    without_score: int = 0
    empty: int = 0
    error: BaseException | None = None

    def pool_by(self, identity: str) -> list[str]:
        """The pool by one id."""
        return [_by(ids, identity) for ids in self.pool]

    def final_by(self, identity: str) -> list[str]:
        """What was left of the pool by one id."""
        return [_by(ids, identity) for ids in self.final]


def _by(ids: Ids, identity: str) -> str:
    # A node without the id has no label by it; its own id keeps its place in the list.
    return ids[identity] if identity in ids else ids["node_id"]


class Pipeline:
    """A retriever and its postprocessors.

    Attributes
    ----------
    only_sync : str or None
        The error of a retriever that has no asynchronous code, once it was raised; it is then asked in threads.
    """

    def __init__(self, retriever: Any, postprocessors: Sequence[Any], identity: str) -> None:
        self._retriever, self._postprocessors = retriever, postprocessors
        self._ids_of = _ids_by(identity)
        self._blocks = False
        self.only_sync: str | None = None

    async def retrieve_all(self, texts: Iterable[str], workers: int, done: Callable[[], object]) -> list[Retrieved]:
        """The retrievals of some queries, in their order; `done` is called after each."""
        gate = asyncio.Semaphore(workers)

        async def one(text: str) -> Retrieved:
            async with gate:
                if self._blocks and self.only_sync is None:
                    retrieved = await asyncio.to_thread(lambda: asyncio.run(self.retrieve(text)))
                else:
                    retrieved = await self.retrieve(text)
            done()
            return retrieved

        # The first alone: it shows whether the retriever has asynchronous code.
        first, *others = texts
        lists: list[Any] = [await one(first)]
        # With the exceptions, so that no call is left under way when one of them is raised.
        lists += await asyncio.gather(*map(one, others), return_exceptions=True)
        for each in lists:
            if isinstance(each, BaseException):
                raise each
        return lists

    async def retrieve(self, text: str) -> Retrieved:
        """The nodes of a query by all their ids; a failure is held and not raised."""
        nodes, error = await _outcome(self._nodes(text))
        if nodes is None:
            return Retrieved(error=error or TypeError("the retriever returned None"))
        # Ids at once: postprocessors may change the nodes in place.
        texts = [text_of(each.node) for each in nodes]
        retrieved = Retrieved(
            self._ids(nodes),
            without_score=sum(each.score is not None and math.isnan(each.score) for each in nodes),
            empty=sum(not each.strip() for each in texts),
        )
        for postprocessor in self._postprocessors:
            nodes, error = await _outcome(_postprocessed(postprocessor, nodes, text))
            if nodes is None:
                return replace(retrieved, error=error or TypeError(f"{type(postprocessor).__name__} returned None"))
        return replace(retrieved, final=self._ids(nodes), texts=tuple(each.node.get_content() for each in nodes))

    def _ids(self, nodes: Sequence[NodeWithScore]) -> tuple[Ids, ...]:
        return tuple([self._ids_of(each.node) for each in nodes])

    async def _nodes(self, text: str) -> list[NodeWithScore] | None:
        """What the retriever returns, asked without asynchronous code if it has none."""
        if self.only_sync is None:
            has_yielded = asyncio.Event()
            asyncio.get_running_loop().call_soon(has_yielded.set)
            try:
                nodes: list[NodeWithScore] | None = await self._retriever.aretrieve(text)
            except Exception as error:
                if not _says_only_sync(error):
                    raise
                self.only_sync = _named(error)
            else:
                # Without asynchronous code of its own it has held up the event loop from beginning to end.
                self._blocks = not has_yielded.is_set()
                return nodes
        found: list[NodeWithScore] | None = await asyncio.to_thread(self._retriever.retrieve, text)
        return found


async def _postprocessed(postprocessor: Any, nodes: list[NodeWithScore], text: str) -> list[NodeWithScore] | None:
    asynchronous = getattr(postprocessor, "apostprocess_nodes", None)
    left: list[NodeWithScore] | None
    if asynchronous is not None:
        left = await asynchronous(nodes, query_bundle=QueryBundle(text))
    else:
        left = await asyncio.to_thread(postprocessor.postprocess_nodes, nodes, query_bundle=QueryBundle(text))
    return left


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


def _ids_by(identity: str) -> Callable[[Any], Ids]:
    return candidates_of if identity == AUTO else lambda node: {identity: identity_of(node, identity)}


def _says_only_sync(error: Exception) -> bool:
    return isinstance(error, NotImplementedError) or _SAYS_ONLY_SYNC.search(str(error)) is not None


def _named(error: BaseException) -> str:
    """The first line of an error, with its class."""
    return f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")


# -- what the retrievals show ----------------------------------------------------------------------


def check_not_all_failed(retrieved: Mapping[str, Retrieved]) -> None:
    """Raise an InputError with the first failure as its cause if there is no retrieval without a failure."""
    errors = [each.error for each in retrieved.values() if each.error is not None]
    if len(errors) == len(retrieved):
        raise InputError(
            f"all {len(errors):,} retrievals failed, the first with {_named(errors[0])}: correct the retriever and "
            f"evaluate again (how-to: empty-retrievals)"
        ) from errors[0]


def faults_of(retrieved: Mapping[str, Retrieved]) -> dict[str, int]:
    """How often something is wrong with the retrievals, for the facts of a report's input."""
    lists = retrieved.values()
    return {
        "queries": len(retrieved),
        "failed": sum(each.error is not None for each in lists),
        "scores_nan": sum(each.without_score for each in lists),
        "empty_passages": sum(each.empty for each in lists),
    }


def doubts_about(retrieved: Mapping[str, Retrieved]) -> Iterator[SelectivityWarning]:
    """What is wrong with the retrievals, for a warning each."""
    failed = {query: each.error for query, each in retrieved.items() if each.error is not None}
    if failed:
        query, error = next(iter(failed.items()))
        yield SelectivityWarning(
            f"{len(failed):,} of {len(retrieved):,} retrievals failed and count as queries that found nothing; the "
            f"first is query {query!r}: {_named(error)}",
            "retrievals-failed",
        )
    for what, counts, why, code in (
        (
            "the score NaN",
            [each.without_score for each in retrieved.values()],
            "their places in the lists mean nothing; check the embeddings, and leave empty documents out of the index",
            "scores-not-numbers",
        ),
        (
            "no text",
            [each.empty for each in retrieved.values()],
            "each takes a place in its list; leave empty documents out of the index",
            "empty-passages",
        ),
    ):
        if any(counts):
            total = sum(len(each.pool) for each in retrieved.values())
            yield SelectivityWarning(
                f"{sum(counts):,} of {total:,} retrieved passages have {what}, in "
                f"{sum(count > 0 for count in counts):,} of {len(retrieved):,} lists: {why}",
                code,
            )
