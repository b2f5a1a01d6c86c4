"""Evaluations by LlamaIndex: its metrics, a retriever with its postprocessors over a dataset, and what results hold."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.async_utils import asyncio_run
from llama_index.core.evaluation import EvaluationResult
from llama_index.core.evaluation.retrieval.base import RetrievalEvalMode, RetrievalEvalResult
from llama_index.core.evaluation.retrieval.evaluator import RetrieverEvaluator
from llama_index.core.evaluation.retrieval.metrics_base import BaseRetrievalMetric, RetrievalMetricResult
from pydantic import PrivateAttr

from rag_selectivity import Bootstrap, InputError, Measure, Report, parse_measure
from rag_selectivity.errors import warn
from rag_selectivity.hosted import AUTO, Retrieved, check_retriever, labelled_queries, labels_for, measure_hosted
from rag_selectivity.indexes import corpus_size_of_index, given_size
from rag_selectivity.measures import default_query_measures, given_depths
from rag_selectivity.single import IdForm, Labels, QueryScorer, Steps, at_depths, numbered_queries, per_query_measure
from rag_selectivity.tables.matching import labels_found
from rag_selectivity_llama_index.nodes import Pipeline


class SelectivityMetric(BaseRetrievalMetric):  # type: ignore[misc,unused-ignore]
    """A measure with its depth, `RA-nWG@10`, as a LlamaIndex metric of that name.

    Parameters
    ----------
    measure : str or Measure
    labels : qrels, label store, {query: {passage: grade}}, or a dataset with `.relevant_docs`, optional
        Queries by their text. Where there are none, `expected_ids` are the relevant passages.
    corpus_size : int, {query: int}, index, vector store or retriever, optional
        N, for the chance-corrected measures.
    passages_of : {document: number of its nodes}, optional
        As in `rag_selectivity.evaluate`, if labels name documents and nodes are their chunks.
    scale, grade_map
        As in `rag_selectivity.evaluate`.

    A query without a figure scores NaN, with the reason in its metadata.
    """

    _scorer: QueryScorer = PrivateAttr()

    def __init__(self, measure: str | Measure, labels: Any = None, **options: Any) -> None:
        super().__init__()
        self._scorer = QueryScorer(per_query_measure(measure), labels=labels, **options)

    @property
    def metric_name(self) -> str:  # type: ignore[override,unused-ignore]
        """The canonical name with the depth: two depths are two metrics."""
        return str(self._scorer.measures[0])

    def compute(
        self,
        query: str | None = None,
        expected_ids: list[str] | None = None,
        retrieved_ids: list[str] | None = None,
        expected_texts: list[str] | None = None,
        retrieved_texts: list[str] | None = None,
        **kwargs: Any,
    ) -> RetrievalMetricResult:
        """The figure of one query; an empty retrieval is a failed query, not an error."""
        names, pool = (kwargs.get("query_id"), query), kwargs.get("pool")
        (figure,) = self._scorer.figures(retrieved_ids or (), *names, relevant=expected_ids, pool=pool)
        reason = {} if figure.reason is None else {"reason": figure.reason}
        return RetrievalMetricResult(score=figure.value, metadata={**figure.details, **reason})


#: How the reports of this package word their next steps.
STEPS = Steps("grade_retriever")


def report_from_results(
    results: Sequence[RetrievalEvalResult], labels: Any = None, *, name: str = "retriever", **options: Any
) -> Report:
    """The core's report from what an evaluation of LlamaIndex already produced.

    Where no labels are given, `expected_ids` are the relevant passages. A question that was asked twice is measured
    twice; its labels count once, and intervals take its rows together. Options are those of
    `rag_selectivity.hosted.measure_hosted`: `corpus_size`, `measures`, `depths`, `scale`, `grade_map`, `human`,
    `bootstrap` and policies.
    """
    by_key = dict(zip(numbered_queries(result.query for result in results), results, strict=True))
    return measure_hosted(
        {name: {key: Retrieved.by_id(each.retrieved_ids, each.retrieved_texts) for key, each in by_key.items()}},
        labels,
        {key: (getattr(result, "query_id", key), result.query) for key, result in by_key.items()},
        expected={key: result.expected_ids for key, result in by_key.items()},
        steps=STEPS,
        identity=None,
        **options,
    ).report


def answer_scores(results: Sequence[EvaluationResult]) -> dict[str, float | None]:
    """{query: score} of an evaluator of responses, for `rag_selectivity.validate`.

    Parameters
    ----------
    results : sequence of EvaluationResult
        Of one evaluator, such as `(await BatchEvalRunner(…).aevaluate_queries(…))["correctness"]`, in the order in
        which the queries were asked. A result that is invalid has no score.

    Raises
    ------
    InputError
        If a result does not name its query.
    """
    for number, result in enumerate(results, 1):
        if not result.query:
            raise InputError(f"result {number} does not name its query: evaluate with the query")
    keys = numbered_queries(str(result.query) for result in results)
    return {key: None if result.invalid_result else result.score for key, result in zip(keys, results, strict=True)}


class SelectivityResult(RetrievalEvalResult):  # type: ignore[misc,unused-ignore]
    """A RetrievalEvalResult that knows the id of its query; the relevant passages are the expected ids."""

    query_id: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The core's report, which is printed, and LlamaIndex's results query by query."""

    report: Report
    results: list[RetrievalEvalResult]

    def __repr__(self) -> str:
        return str(self.report)


class SelectivityEvaluator(RetrieverEvaluator):  # type: ignore[misc,unused-ignore]
    """A retriever evaluator that keeps the nodes before postprocessing as the pool.

    PROC and %PROC then tell the retriever's losses from the reranker's, in one run.

    Parameters
    ----------
    retriever : BaseRetriever
    node_postprocessors : list, optional
        Rerankers and filters, one after another.
    labels : qrels, label store, {query: {passage: grade}}, or a dataset with `.relevant_docs`, optional
    corpus_size : int, {query: int}, index, vector store or retriever, optional
        N, the number of nodes that could have been retrieved. Default: the number of nodes that the index behind the
        retriever can return, after its filters. Give N if the store cannot tell what a filter leaves.
    passages_of : {id: number of nodes}, optional
        How many nodes of the index have each id, for labels that name documents while nodes are their chunks.
        Default: counted in the index, if it can list its nodes.
    identity : str
        By which id the labels know a node: `node_id`, `ref_doc_id`, `text` (a hash) or a key of its metadata. `auto`
        takes the one that finds most labels in the first 50 labelled queries.
    measures, depths
        For the metrics of each result and for the report. One depth alone is the K of its first answers; with several,
        K is the one that the lists advise.
    scale, grade_map
        As in `rag_selectivity.evaluate`.

    If a retriever merges nodes into their parents, as AutoMergingRetriever does, N and the random draw count the nodes
    of the index, without the parents. A parent takes one place in the list, as a node does.
    """

    _given: Any = PrivateAttr()
    _labels: Labels = PrivateAttr()
    _options: dict[str, Any] = PrivateAttr()
    _identity: str = PrivateAttr()
    _taken: str | None = PrivateAttr(default=None)
    _makes_metrics: bool = PrivateAttr()

    def __init__(
        self,
        retriever: Any,
        *,
        node_postprocessors: Sequence[Any] | None = None,
        labels: Any = None,
        identity: str = AUTO,
        depths: Sequence[int] = (1, 5, 10),
        metrics: Sequence[Any] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(identity, str):
            raise InputError(f"identity must be the name of an id, such as 'node_id', got {identity!r:.80}")
        check_retriever("retriever", retriever, "retrieve", "index.as_retriever()")
        own_labels = labels_for(labels, **options)
        if not isinstance(node_postprocessors, Sequence | None):
            raise InputError(f"node_postprocessors is a list, as in [reranker], got {node_postprocessors!r:.80}")
        steps = list(node_postprocessors) if node_postprocessors else None
        super().__init__(metrics=list(metrics or []), retriever=retriever, node_postprocessors=steps)
        self._given, self._labels, self._identity = labels, own_labels, identity
        self._options = {**options, "depths": given_depths(depths, ()).tolist()}
        self._makes_metrics = metrics is None
        if self._makes_metrics:
            self.metrics = self._own_metrics(own_labels, self._size())

    async def _aget_retrieved_ids_and_texts(
        self, query: str, mode: RetrievalEvalMode = RetrievalEvalMode.TEXT
    ) -> tuple[list[str], list[str]]:
        retrieved = await Pipeline(self.retriever, self.node_postprocessors or []).retrieve(query)
        if retrieved.error is not None:
            raise retrieved.error
        identity, grades = self._identity, self._labels.of_query(query)
        if identity == AUTO:
            # That taken for the last dataset, or what finds labels in this list; LlamaIndex itself expects node ids.
            found = labels_found([(grades or (), retrieved.candidates)])
            identity = self._taken or max(found, key=lambda name: len(found[name]), default="node_id")
        return retrieved.by(identity), list(retrieved.texts)

    def evaluate_dataset(self, dataset: Any = None, **options: Any) -> Evaluation:
        """`aevaluate_dataset` from ordinary code, in a notebook too."""

        async def outcome() -> Any:
            # LlamaIndex takes a RuntimeError that is raised in here for a nested event loop, and hides it.
            return await asyncio.gather(self.aevaluate_dataset(dataset, **options), return_exceptions=True)

        result: Evaluation | BaseException = asyncio_run(outcome())[0]
        if isinstance(result, BaseException):
            raise result
        return result

    async def aevaluate_dataset(
        self,
        dataset: Any = None,
        *,
        workers: int = 8,
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
        human : qrels, label store or {query: {passage: grade}}, optional
            Labels by people, with the ids of the labels: calibrate the figures, as in `rag_selectivity.evaluate`.

        The metrics of the results hold the caveats of their figure in the report under `metadata["caveats"]`.

        Raises
        ------
        InputError
            If there are no queries or labels, all retrievals fail, no label is found among the retrieved nodes or in
            the index, or `identity="auto"` cannot tell the right id.
        """
        labels = self._labels
        if not labels.by_query and getattr(dataset, "relevant_docs", None) is not None:
            labels = labels_for(dataset, **self._options)
        elif human is not None:
            labels = labels_for(self._given, human=human, **self._options)
        queries = labelled_queries(dataset, labels)
        size = self._size()
        pipeline = Pipeline(self.retriever, self.node_postprocessors or [])
        retrieved = await pipeline.retrieve_all(queries, workers)
        measured = measure_hosted(
            {name: retrieved},
            labels,
            queries,
            indexes={name: self.retriever},
            steps=STEPS,
            identity=self._identity,
            bootstrap=bootstrap,
            human=human,
            **{**self._options, "corpus_size": size},
        )
        self._taken = measured.identity
        facts, notes = self._about(pipeline, size, name)
        facts["retrieval"] = {**measured.report.runs[name].input["retrieval"], "sync": pipeline.only_sync is not None}
        report = measured.report.with_input(name, facts, notes)
        if self._makes_metrics:
            self.metrics = self._own_metrics(labels, size, passages_of=measured.passages_of, corpus=measured.corpus)
        caveats = {key: [caveat.text for caveat in each.caveats] for key, each in report.run(name).estimates.items()}
        results = [
            self._result(text, labels.of_query(query, text) or {}, retrieved[query], query, caveats)
            for query, text in queries.items()
        ]
        return Evaluation(report, results)

    def _about(self, pipeline: Pipeline, size: Any, name: str) -> tuple[dict[str, Any], list[str]]:
        """Facts and notes about the retriever and its index, once all queries are asked."""
        at_end, notes = self._size(), []
        if (sync := pipeline.only_sync) is not None:
            notes.append(f"The retriever was asked in threads, since it has no asynchronous code ({sync}).")
        if size is not None and at_end is not None and size != at_end:
            held = f"the index held {size:,} passages at the beginning and {at_end:,} at the end: N is {size:,}"
            notes.append(f"{held}; evaluate again while nothing is added or removed")
            warn(f"{name}: {notes[-1]}", "index-changed", stacklevel=4)
        return {"index": {"passages": size, "passages_at_end": at_end}}, notes

    def _size(self) -> Any:
        """N as given, or what the index can return."""
        return given_size(self._options.get("corpus_size")) or corpus_size_of_index(self.retriever) or None

    def _result(
        self, text: str, grades: dict[str, int], retrieved: Retrieved, query_id: str, caveats: Mapping[str, list[str]]
    ) -> RetrievalEvalResult:
        form = IdForm.of(self._options.get("ids"))
        found, texts, figures = form.spelled(retrieved.by(self._taken), grades), list(retrieved.texts), {}
        pool = form.spelled(Retrieved(retrieved.candidates).by(self._taken), grades)
        expected = [passage for passage, grade in grades.items() if grade >= self._labels.relevant_from]
        known = {"query_id": query_id, "pool": pool if self.node_postprocessors else None}
        for metric in self.metrics:
            name, extra = metric.metric_name, known if isinstance(metric, SelectivityMetric) else {}
            try:
                figures[name] = metric.compute(text, expected, found, None, texts, **extra)
            except ValueError as error:
                # LlamaIndex's own metrics raise for an empty retrieval.
                warn(f"{name} of {text!r}: {error}", "rows-left-out", stacklevel=3)
            if name in figures and caveats.get(name):
                figures[name].metadata["caveats"] = caveats[name]
        ids = {"expected_ids": expected, "retrieved_ids": found}
        return SelectivityResult(query_id=query_id, query=text, **ids, retrieved_texts=texts, metric_dict=figures)

    def _own_metrics(self, labels: Labels, size: int | None, **more: Any) -> list[SelectivityMetric]:
        names = self._options.get("measures") or default_query_measures(labels.scale, sized=size is not None)
        # A ratio of means has no figure for a query: it stands in the report.
        measures = [measure for measure in map(parse_measure, names) if measure.per_query]
        chosen = at_depths(measures, self._options["depths"])
        return [SelectivityMetric(each, labels, corpus_size=size, **more) for each in chosen]
