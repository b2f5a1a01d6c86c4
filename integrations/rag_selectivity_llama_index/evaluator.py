"""`SelectivityEvaluator`: a retriever with its postprocessors, measured over a dataset in one run."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from llama_index.core.async_utils import asyncio_run
from llama_index.core.evaluation.retrieval.base import RetrievalEvalMode, RetrievalEvalResult
from llama_index.core.evaluation.retrieval.evaluator import RetrieverEvaluator
from pydantic import PrivateAttr

from rag_selectivity import Bootstrap, InputError, Qrels, Report, SelectivityWarning, evaluate, parse_measure
from rag_selectivity.calibrated import PeoplesLabels, labels_to_calibrate, people_under
from rag_selectivity.errors import examples
from rag_selectivity.indexes import corpus_size_of_index, counts_beside, given_size, passages_of_index
from rag_selectivity.measures import default_measures, default_query_measures, given_depths
from rag_selectivity.single import ChosenIdentity, Labels, PassageCounts, choose_identity
from rag_selectivity_llama_index.metrics import SelectivityMetric
from rag_selectivity_llama_index.results import STEPS, add_caveats, named
from rag_selectivity_llama_index.retrieving import (
    AUTO,
    Pipeline,
    Retrieved,
    check_not_all_failed,
    doubts_about,
    faults_of,
)

Grades = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The core's report, and LlamaIndex's results query by query."""

    report: Report
    results: list[RetrievalEvalResult]


@dataclass(frozen=True, slots=True)
class _Corpus:
    """N, and the numbers of passages by the id of the labels if several passages share one."""

    size: int | None
    passages_of: PassageCounts | None = None


class SelectivityEvaluator(RetrieverEvaluator):  # type: ignore[misc,unused-ignore]
    """A retriever evaluator that keeps the nodes before postprocessing as the pool.

    PROC and %PROC then tell the retriever's losses from the reranker's, in one run.

    Parameters
    ----------
    retriever : BaseRetriever
    node_postprocessors : list, optional
        Rerankers and filters, one after another.
    labels : qrels, label store, {query: {passage: grade}}, or a dataset with `.relevant_docs`, optional
    corpus_size : int, index, vector store or retriever, optional
        N, the number of nodes that could have been retrieved. Default: the number of nodes that the index behind the
        retriever can return, after its filters. Give N if the store cannot tell what a filter leaves.
    passages_of : {id: number of nodes}, optional
        How many nodes of the index have each id, for labels that name documents while nodes are their chunks.
        Default: counted in the index, if it can list its nodes.
    identity : str
        By which id the labels know a node: `node_id`, `ref_doc_id`, `text` (a hash) or a key of its metadata. `auto`
        takes the one that finds most labels in the first 50 labelled queries.
    measures, depths
        For the metrics of each result and for the report.
    scale, grade_map
        As in `rag_selectivity.evaluate`.

    If a retriever merges nodes into their parents, as AutoMergingRetriever does, N and the random draw count the nodes
    of the index, without the parents. A parent takes one place in the list, as a node does.
    """

    _given: Any = PrivateAttr()
    _labels: Labels = PrivateAttr()
    _grading: dict[str, Any] = PrivateAttr()
    _corpus_size: Any = PrivateAttr()
    _passages_of: Any = PrivateAttr()
    _identity: str = PrivateAttr()
    _taken: str | None = PrivateAttr(default=None)
    _measures: list[str] | None = PrivateAttr()
    _depths: list[int] = PrivateAttr()
    _makes_metrics: bool = PrivateAttr()

    def __init__(
        self,
        retriever: Any,
        *,
        node_postprocessors: Sequence[Any] | None = None,
        labels: Any = None,
        corpus_size: Any = None,
        passages_of: Mapping[str, int] | None = None,
        identity: str = AUTO,
        measures: Sequence[str] | None = None,
        depths: Sequence[int] = (1, 5, 10),
        scale: str | None = None,
        grade_map: Any = None,
        metrics: Sequence[Any] | None = None,
    ) -> None:
        if not isinstance(identity, str):
            raise InputError(f"identity must be the name of an id, such as 'node_id', got {identity!r:.80}")
        # In the order given; `given_depths` refuses what is no list and what is no depth, and sorts.
        with suppress(TypeError):
            depths = list(depths)
        given_depths(depths, ())
        grading = {"grade_map": grade_map, "scale": scale, "measures": measures}
        own_labels = Labels.of(labels, **grading, controls=True)
        super().__init__(
            metrics=list(metrics or []),
            retriever=retriever,
            node_postprocessors=list(node_postprocessors) if node_postprocessors else None,
        )
        self._given, self._labels, self._grading = labels, own_labels, grading
        self._identity, self._depths = identity, list(depths)
        self._measures = list(measures) if measures is not None else None
        self._corpus_size, self._passages_of = corpus_size, passages_of
        self._makes_metrics = metrics is None
        if self._makes_metrics:
            self.metrics = self._own_metrics(_Corpus(self._size()))

    async def _aget_retrieved_ids_and_texts(
        self, query: str, mode: RetrievalEvalMode = RetrievalEvalMode.TEXT
    ) -> tuple[list[str], list[str]]:
        retrieved = await self._pipeline().retrieve(query)
        if retrieved.error is not None:
            raise retrieved.error
        return retrieved.final_by(self._identity_for(query, retrieved)), list(retrieved.texts)

    def _identity_for(self, query: str, retrieved: Retrieved) -> str:
        """The identity for a single query: that taken for the last dataset, or by the labels of this query."""
        if self._identity != AUTO:
            return self._identity
        grades = self._labels.of_query(query)
        if self._taken is None and grades:
            return choose_identity([(grades, retrieved.pool)]).name
        # LlamaIndex's own evaluators expect node ids.
        return self._taken or "node_id"

    def evaluate_dataset(self, dataset: Any = None, **options: Any) -> Evaluation:
        """`aevaluate_dataset` from ordinary code, in a notebook too."""

        async def outcome(evaluation: Awaitable[Evaluation]) -> Evaluation | Exception:
            try:
                return await evaluation
            except Exception as error:
                return error

        # LlamaIndex takes a RuntimeError that is raised in here for a nested event loop, and hides it.
        result: Evaluation | Exception = asyncio_run(outcome(self.aevaluate_dataset(dataset, **options)))
        if isinstance(result, Exception):
            raise result
        return result

    async def aevaluate_dataset(
        self,
        dataset: Any = None,
        *,
        workers: int = 8,
        show_progress: bool = False,
        bootstrap: Bootstrap | None = Bootstrap(),
        name: str = "retriever",
        human: Any = None,
    ) -> Evaluation:
        """Retrieve for every query and measure.

        A retrieval that raises an error or returns None counts as a query that found nothing, and a warning says how
        many did. A retriever without asynchronous code is asked in threads.

        Parameters
        ----------
        dataset : {query id: query text}, or anything with `.queries` and `.relevant_docs`, optional
            The queries of the labels, taken as texts, if not given.
        workers : int
            Retrievals at the same time.
        show_progress : bool
            Show a progress bar if there is a terminal.
        human : qrels, label store or {query: {passage: grade}}, optional
            Labels by people, with the ids of the labels: calibrate the figures, as in `rag_selectivity.evaluate`.

        The metrics of the results hold the caveats of their figure in the report under `metadata["caveats"]`.

        Raises
        ------
        InputError
            If there are no queries or labels, all retrievals fail, no label is found among the retrieved nodes or in
            the index, or `identity="auto"` cannot tell the right id.
        """
        if not isinstance(workers, int) or workers < 1:
            raise InputError(f"workers must be a whole number ≥ 1, got {workers!r}")
        labels = self._labels
        if not labels.by_query and _has_labels(dataset):
            labels = Labels.of(dataset, **self._grading, controls=True)
        elif human is not None:
            labels = Labels.of(labels_to_calibrate(self._given)[0], **self._grading, controls=True)
        queries = _queries(dataset, labels)
        grades = {
            query_id: of_query
            for query_id, text in queries.items()
            if (of_query := labels.of_query(query_id, text)) is not None
        }
        if not grades and labels.by_query:
            raise InputError(
                f"no query has labels: the queries are {examples(queries)}, and the labels know "
                f"{examples(labels.by_query)}; the keys of the labels must be the ids or the texts of the queries"
            )
        if not grades:
            raise InputError("no query has labels: pass labels=…, or a dataset with .queries and .relevant_docs")
        size = self._size()
        pipeline = self._pipeline()
        retrieved = await _retrieve(pipeline, queries, workers, show_progress)
        check_not_all_failed(retrieved)
        chosen = self._choice(grades, retrieved)
        self._taken = None if chosen is None else chosen.name
        identity = self._taken or self._identity
        size_at_end = self._size()
        corpus = self._corpus(size, identity)
        ids_known = chosen is not None or self._ids_are_in_index(grades, retrieved)
        doubts = [*doubts_about(retrieved), *_doubts_about_size(size, size_at_end)]
        for doubt in doubts:
            warnings.warn(SelectivityWarning(f"{name}: {doubt.text}", doubt.code), stacklevel=2)
        names = {query_id: labels.name_of(query_id, queries[query_id]) for query_id in grades}
        people = None if human is None else people_under(human, named(names), self._grading["grade_map"])
        judged = labels.judgments(grades, names)
        report = self._report(name, judged, retrieved, identity, corpus, bootstrap, ids_known, people).with_input(
            name,
            {
                "identity": {"taken": identity} if chosen is None else chosen.facts,
                "retrieval": {**faults_of(retrieved), "sync": pipeline.only_sync is not None},
                "index": {"passages": size, "passages_at_end": size_at_end},
            },
            [*_notes(chosen, pipeline), *map(str, doubts)],
        )
        if self._makes_metrics:
            self.metrics = self._own_metrics(corpus)
        results = [
            self._result(text, list(grades.get(query_id, ())), retrieved[query_id], identity, query_id)
            for query_id, text in queries.items()
        ]
        add_caveats(results, report, name)
        return Evaluation(report, results)

    def _pipeline(self) -> Pipeline:
        return Pipeline(self.retriever, self.node_postprocessors or [], self._identity)

    def _choice(self, grades: Grades, retrieved: Mapping[str, Retrieved]) -> ChosenIdentity | None:
        """The identity that the labels choose; None if it was given."""
        if self._identity != AUTO:
            return None
        return choose_identity(
            [(row, retrieved[query].pool) for query, row in grades.items() if retrieved[query].error is None]
        )

    def _report(
        self,
        name: str,
        judged: Qrels,
        retrieved: Mapping[str, Retrieved],
        identity: str,
        corpus: _Corpus,
        bootstrap: Bootstrap | None,
        ids_known: bool,
        people: PeoplesLabels | None,
    ) -> Report:
        pooled, sized = bool(self.node_postprocessors), corpus.size is not None
        scale = judged.scale or "trec"
        return evaluate(
            judged,
            {name: {query: each.final_by(identity) for query, each in retrieved.items()}},
            pool={name: {query: each.pool_by(identity) for query, each in retrieved.items()}} if pooled else None,
            corpus_size=corpus.size,
            passages_of=corpus.passages_of,
            scale=scale,
            measures=self._measures or default_measures(scale, sized=sized, pooled=pooled, classic=True),
            depths=self._depths,
            bootstrap=bootstrap,
            ids="exact" if ids_known else None,
            human=people,
        ).with_steps(STEPS)

    def _size(self) -> int | None:
        """N as given, or what the index can return."""
        if self._corpus_size is not None:
            return given_size(self._corpus_size)
        return corpus_size_of_index(self.retriever) or None

    def _corpus(self, size: int | None, identity: str) -> _Corpus:
        """N with the numbers of passages by the identity."""
        given = {"given_size": self._corpus_size, "passages_of": self._passages_of}
        return _Corpus(size, counts_beside(self.retriever, identity, size, own_id="node_id", **given))

    def _result(
        self, text: str, expected: list[str], retrieved: Retrieved, identity: str, query_id: str
    ) -> RetrievalEvalResult:
        found, texts = retrieved.final_by(identity), list(retrieved.texts)
        figures = {}
        for metric in self.metrics:
            extra = {"query_id": query_id} if isinstance(metric, SelectivityMetric) else {}
            try:
                figures[metric.metric_name] = metric.compute(text, expected, found, None, texts, **extra)
            except ValueError as error:
                # LlamaIndex's own metrics raise for an empty retrieval.
                warnings.warn(
                    SelectivityWarning(f"{metric.metric_name} of {text!r}: {error}", "rows-left-out"), stacklevel=2
                )
        return RetrievalEvalResult(
            query=text, expected_ids=expected, retrieved_ids=found, retrieved_texts=texts, metric_dict=figures
        )

    def _own_metrics(self, corpus: _Corpus) -> list[SelectivityMetric]:
        names = self._measures or default_query_measures(self._labels.scale, sized=corpus.size is not None)
        metrics = []
        for measure in map(parse_measure, names):
            if not measure.per_query:
                continue  # a ratio of means: it stands in the report
            depths = [None] if measure.at is not None or measure.takes_whole_lists else self._depths
            metrics += [
                SelectivityMetric(
                    measure if depth is None else measure @ depth,
                    self._labels,
                    corpus_size=corpus.size,
                    passages_of=corpus.passages_of,
                )
                for depth in depths
            ]
        return metrics

    def _ids_are_in_index(self, grades: Grades, retrieved: Mapping[str, Retrieved]) -> bool:
        """Whether only the index tells that the labels' ids are right: nothing that was retrieved has a label.

        An InputError explains labels of which no passage is known, in place of zeros everywhere.
        """
        expected = {passage for row in grades.values() for passage in row}
        seen = {
            passage
            for each in retrieved.values()
            for passage in (*each.pool_by(self._identity), *each.final_by(self._identity))
        }
        if not seen or expected & seen:
            return False
        if expected & set(passages_of_index(self.retriever, self._identity) or ()):
            return True
        raise InputError(
            f"no labelled passage is known to the retriever: the labels name {examples(sorted(expected))}, "
            f"it retrieved {examples(sorted(seen))}. Each ingestion may give the nodes new ids: label by an id that "
            f"lasts, and name it as identity='ref_doc_id', a metadata key or 'text' (now: {self._identity!r})"
        )


async def _retrieve(
    pipeline: Pipeline, queries: Mapping[str, str], workers: int, show_progress: bool
) -> dict[str, Retrieved]:
    bar = _bar(len(queries)) if show_progress else None
    try:
        lists = await pipeline.retrieve_all(queries.values(), workers, bar.update if bar is not None else lambda: None)
    finally:
        if bar is not None:
            bar.close()
    return dict(zip(queries, lists, strict=True))


def _notes(chosen: ChosenIdentity | None, pipeline: Pipeline) -> list[str]:
    """What was decided for the user."""
    notes = [] if chosen is None else [chosen.line]
    if pipeline.only_sync is not None:
        notes.append(f"The retriever was asked in threads, since it has no asynchronous code ({pipeline.only_sync}).")
    return notes


def _doubts_about_size(begin: int | None, end: int | None) -> list[SelectivityWarning]:
    if begin is end or begin is None or end is None or begin == end:
        return []
    return [
        SelectivityWarning(
            f"the index held {begin:,} passages at the beginning and {end:,} at the end: N is {begin:,}; evaluate "
            f"again while nothing is added or removed",
            "index-changed",
        )
    ]


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
        raise InputError("there are no queries to evaluate: give a dataset with queries, or labels")
    return queries


def _bar(total: int) -> Any:
    if not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, desc="retrieving", unit="query")
