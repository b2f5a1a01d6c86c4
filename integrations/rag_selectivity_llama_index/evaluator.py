"""`SelectivityEvaluator`: a retriever with its postprocessors, measured over a dataset in one run."""

from __future__ import annotations

import asyncio
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.async_utils import asyncio_run
from llama_index.core.evaluation.retrieval.base import RetrievalEvalMode, RetrievalEvalResult
from llama_index.core.evaluation.retrieval.evaluator import RetrieverEvaluator
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from pydantic import PrivateAttr

from rag_selectivity import Bootstrap, InputError, Report, SelectivityWarning, evaluate, parse_measure
from rag_selectivity.errors import examples
from rag_selectivity.measures import default_measures, default_query_measures
from rag_selectivity.single import Labels, numbered_queries
from rag_selectivity.single import defined_mean as mean_of_defined
from rag_selectivity_llama_index.metrics import SelectivityMetric
from rag_selectivity_llama_index.nodes import identities_of


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a retriever brought for a query, and what its postprocessors left of it."""

    pool: tuple[str, ...]
    final: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The core's report, and LlamaIndex's results query by query."""

    report: Report
    results: list[RetrievalEvalResult]


class SelectivityEvaluator(RetrieverEvaluator):  # type: ignore[misc,unused-ignore]
    """A retriever evaluator that keeps the nodes before postprocessing as the pool.

    PROC and %PROC then tell the retriever's losses from the reranker's, in one run.

    Parameters
    ----------
    retriever : BaseRetriever
    node_postprocessors : list, optional
        Rerankers and filters, one after another.
    labels : qrels, label store, {query: {passage: grade}}, or a dataset with `.relevant_docs`, optional
    corpus_size : int, optional
        N; taken from the retriever's docstore where it has one and nodes go by their ids.
    identity : str
        `node_id`, `ref_doc_id`, `text` or a metadata key: by which the labels know a node.
    measures, depths
        For the metrics of each result and for the report.
    scale, grade_map
        As in `rag_selectivity.evaluate`.
    """

    _labels: Labels = PrivateAttr()
    _corpus_size: int | None = PrivateAttr()
    _identity: str = PrivateAttr()
    _measures: list[str] | None = PrivateAttr()
    _depths: list[int] = PrivateAttr()
    _retriever_blocks: bool = PrivateAttr(default=False)

    def __init__(
        self,
        retriever: Any,
        *,
        node_postprocessors: Sequence[Any] | None = None,
        labels: Any = None,
        corpus_size: int | None = None,
        identity: str = "node_id",
        measures: Sequence[str] | None = None,
        depths: Sequence[int] = (1, 5, 10),
        scale: str | None = None,
        grade_map: Any = None,
        metrics: Sequence[Any] | None = None,
    ) -> None:
        own_labels = Labels.of(labels, grade_map=grade_map, scale=scale)
        super().__init__(
            metrics=list(metrics or []),
            retriever=retriever,
            node_postprocessors=list(node_postprocessors) if node_postprocessors else None,
        )
        self._labels, self._identity, self._depths = own_labels, identity, list(depths)
        self._measures = list(measures) if measures is not None else None
        self._corpus_size = corpus_size if corpus_size is not None else _nodes_in(retriever, identity)
        if metrics is None:
            self.metrics = self._own_metrics()

    async def aretrieve(self, query: str) -> Retrieved:
        """The pool, and what the postprocessors left of it."""
        has_yielded = asyncio.Event()
        asyncio.get_running_loop().call_soon(has_yielded.set)
        nodes: list[NodeWithScore] = await self.retriever.aretrieve(query)
        # Without asynchronous code of its own it has held up the event loop from beginning to end.
        self._retriever_blocks = not has_yielded.is_set()
        # Ids at once: postprocessors may change the nodes in place.
        pool = identities_of(nodes, self._identity)
        for postprocessor in self.node_postprocessors or []:
            asynchronous = getattr(postprocessor, "apostprocess_nodes", None)
            if asynchronous is not None:
                nodes = await asynchronous(nodes, query_bundle=QueryBundle(query))
            else:
                nodes = await asyncio.to_thread(postprocessor.postprocess_nodes, nodes, query_bundle=QueryBundle(query))
        return Retrieved(pool, identities_of(nodes, self._identity), tuple(each.node.get_content() for each in nodes))

    async def _aget_retrieved_ids_and_texts(
        self, query: str, mode: RetrievalEvalMode = RetrievalEvalMode.TEXT
    ) -> tuple[list[str], list[str]]:
        retrieved = await self.aretrieve(query)
        return list(retrieved.final), list(retrieved.texts)

    def evaluate_dataset(self, dataset: Any = None, **options: Any) -> Evaluation:
        """`aevaluate_dataset` from ordinary code, in a notebook too."""
        evaluation: Evaluation = asyncio_run(self.aevaluate_dataset(dataset, **options))
        return evaluation

    async def aevaluate_dataset(
        self,
        dataset: Any = None,
        *,
        workers: int = 8,
        show_progress: bool = False,
        bootstrap: Bootstrap | None = Bootstrap(),
        name: str = "retriever",
    ) -> Evaluation:
        """Retrieve for every query and measure.

        Parameters
        ----------
        dataset : {query id: query text}, or anything with `.queries` and `.relevant_docs`, optional
            The queries of the labels, taken as texts, if not given.
        workers : int
            Retrievals at the same time; a retriever without asynchronous code of its own runs in threads.
        show_progress : bool
            A bar, where there is a terminal.

        Raises
        ------
        InputError
            If there are no queries or labels, or not one expected id was ever retrieved or is in the index.
        """
        if not isinstance(workers, int) or workers < 1:
            raise InputError(f"workers must be a whole number ≥ 1, got {workers!r}")
        labels = self._labels if self._labels.by_query else Labels.of(dataset if _has_labels(dataset) else None)
        queries = _queries(dataset, labels)
        retrieved = await self._retrieve_all(queries, workers, show_progress)
        grades = {
            query_id: of_query
            for query_id, text in queries.items()
            if (of_query := labels.of_query(query_id, text)) is not None
        }
        if not grades:
            raise InputError("no query has labels: pass labels=…, or a dataset with .queries and .relevant_docs")
        self._check_identity(grades, retrieved)
        pooled = bool(self.node_postprocessors)
        sized = self._corpus_size is not None
        report = evaluate(
            grades,
            {name: {query: list(each.final) for query, each in retrieved.items()}},
            pool={name: {query: list(each.pool) for query, each in retrieved.items()}} if pooled else None,
            corpus_size=self._corpus_size,
            scale=labels.scale,
            measures=self._measures or default_measures(labels.scale, sized=sized, pooled=pooled, classic=True),
            depths=self._depths,
            bootstrap=bootstrap,
        )
        results = [
            self._result(text, list(grades.get(query_id, ())), retrieved[query_id], query_id)
            for query_id, text in queries.items()
        ]
        return Evaluation(report, results)

    async def _retrieve_all(
        self, queries: Mapping[str, str], workers: int, show_progress: bool
    ) -> dict[str, Retrieved]:
        gate = asyncio.Semaphore(workers)
        bar = _bar(len(queries)) if show_progress else None

        async def one(text: str, *, in_thread: bool) -> Retrieved:
            async with gate:
                if in_thread:
                    retrieved = await asyncio.to_thread(lambda: asyncio.run(self.aretrieve(text)))
                else:
                    retrieved = await self.aretrieve(text)
            if bar is not None:
                bar.update()
            return retrieved

        first, *others = queries.values()
        lists = [await one(first, in_thread=False)]
        in_thread = self._retriever_blocks
        lists += await asyncio.gather(*(one(text, in_thread=in_thread) for text in others))
        if bar is not None:
            bar.close()
        return dict(zip(queries, lists, strict=True))

    def _result(self, text: str, expected: list[str], retrieved: Retrieved, query_id: str) -> RetrievalEvalResult:
        figures = {}
        for metric in self.metrics:
            extra = {"query_id": query_id} if isinstance(metric, SelectivityMetric) else {}
            try:
                figures[metric.metric_name] = metric.compute(
                    text, expected, list(retrieved.final), None, list(retrieved.texts), **extra
                )
            except ValueError as error:
                # LlamaIndex's own metrics raise for an empty retrieval.
                warnings.warn(f"{metric.metric_name} of {text!r}: {error}", SelectivityWarning, stacklevel=2)
        return RetrievalEvalResult(
            query=text,
            expected_ids=expected,
            retrieved_ids=list(retrieved.final),
            retrieved_texts=list(retrieved.texts),
            metric_dict=figures,
        )

    def _own_metrics(self) -> list[SelectivityMetric]:
        sized = self._corpus_size is not None
        names = self._measures or default_query_measures(self._labels.scale, sized=sized)
        metrics = []
        for measure in map(parse_measure, names):
            if not measure.per_query:
                continue  # a ratio of means: it stands in the report
            depths = [None] if measure.at is not None or measure.takes_whole_lists else self._depths
            metrics += [
                SelectivityMetric(
                    measure if depth is None else measure @ depth, self._labels, corpus_size=self._corpus_size
                )
                for depth in depths
            ]
        return metrics

    def _check_identity(self, grades: Mapping[str, Mapping[str, int]], retrieved: Mapping[str, Retrieved]) -> None:
        """Explain labels of which no passage is known, in place of zeros everywhere."""
        expected = {passage for row in grades.values() for passage in row}
        seen = {passage for each in retrieved.values() for passage in (*each.pool, *each.final)}
        if not seen or expected & seen:
            return
        if self._identity == "node_id" and expected & _node_ids(self.retriever):
            return
        raise InputError(
            f"no labelled passage is known to the retriever: the labels name {examples(sorted(expected))}, "
            f"it retrieved {examples(sorted(seen))}. Node ids are made anew at each ingestion; label by "
            f"identity='ref_doc_id', a metadata key or 'text' (now: {self._identity!r})"
        )


def report_from_results(
    results: Sequence[RetrievalEvalResult],
    labels: Any = None,
    *,
    corpus_size: int | None = None,
    measures: Sequence[str] | None = None,
    depths: Sequence[int] | None = None,
    scale: str | None = None,
    grade_map: Any = None,
    bootstrap: Bootstrap | None = Bootstrap(),
    name: str = "retriever",
) -> Report:
    """The core's report from what an evaluation of LlamaIndex already produced.

    Where no labels are given, `expected_ids` are the relevant passages. A question that was asked twice is
    measured twice.
    """
    given = Labels.of(labels, grade_map=grade_map, scale=scale)
    by_key = dict(zip(numbered_queries(result.query for result in results), results, strict=True))
    grades = {
        key: of_query
        for key, result in by_key.items()
        if (of_query := given.of_query(result.query, relevant=result.expected_ids)) is not None
    }
    if not grades:
        raise InputError("there are no results with labels or expected ids")
    return evaluate(
        grades,
        {name: {key: list(result.retrieved_ids) for key, result in by_key.items()}},
        corpus_size=corpus_size,
        scale=given.scale,
        measures=measures or default_measures(given.scale, sized=corpus_size is not None, classic=True),
        depths=depths,
        bootstrap=bootstrap,
    )


def _has_labels(dataset: Any) -> bool:
    return getattr(dataset, "relevant_docs", None) is not None


def _queries(dataset: Any, labels: Labels) -> dict[str, str]:
    given = getattr(dataset, "queries", dataset)
    if given is None:
        given = {query: query for query in labels.by_query}
    if not isinstance(given, Mapping):
        given = {str(query): query for query in given}
    queries = {str(query_id): str(text) for query_id, text in given.items()}
    if not queries:
        raise InputError("there are no queries to evaluate")
    return queries


def _node_ids(retriever: Any) -> set[str]:
    """The ids of the nodes in the document store that the retriever holds; none without one."""
    attributes = [getattr(retriever, "docstore", None), *getattr(retriever, "__dict__", {}).values()]
    store = next((value for value in attributes if isinstance(value, BaseDocumentStore)), None)
    return set() if store is None else set(store.docs)


def _nodes_in(retriever: Any, identity: str) -> int | None:
    """How many passages the retriever's docstore holds, where nodes are passages."""
    return len(_node_ids(retriever)) or None if identity == "node_id" else None


def _bar(total: int) -> Any:
    if not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, desc="retrieving", unit="query")


def defined_mean(results: Sequence[RetrievalEvalResult], metric: str) -> tuple[float, int, int]:
    """Mean of a metric over the results where it is defined, how many those are, and how many results there are."""
    return mean_of_defined(result.metric_vals_dict.get(metric, math.nan) for result in results)
