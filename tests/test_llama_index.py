"""The LlamaIndex adapter inside the real framework: retrievers over real nodes, its evaluators, its registry."""

import asyncio
import threading
import time
from contextlib import suppress
from typing import ClassVar

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import Response
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.llms.mock import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index.core.workflow.retry_policy import ConstantDelayRetryPolicy
from rag_selectivity_llama_index import LiveSelectivity, SelectivityEvaluator, SelectivityMetric

import rag_selectivity as rs
from tests.three_questions import BY_TEXT, GRADES, QUERIES, TEXTS

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.contract]


class WordRetriever(BaseRetriever):
    """Ranks real nodes by the words that they share with the query; a docstore of its own gives N."""

    def __init__(self, top_k: int = 4, pause: float = 0.0) -> None:
        self.nodes = [
            TextNode(
                id_=name,
                text=text,
                metadata={"key": f"k-{name}"},
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc-{name}")},
            )
            for name, text in TEXTS.items()
        ]
        self.docstore = SimpleDocumentStore()
        self.docstore.add_documents(self.nodes)
        self.top_k, self.pause = top_k, pause
        self.inside = self.most_inside = 0
        self._lock = threading.Lock()
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with self._lock:
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
        time.sleep(self.pause)
        wanted = set(query_bundle.query_str.lower().split())
        scored = [(len(wanted & set(node.text.lower().split())), node) for node in self.nodes]
        with self._lock:
            self.inside -= 1
        ranked = sorted(((score, node) for score, node in scored if score), key=lambda pair: -pair[0])
        return [NodeWithScore(node=node, score=float(score)) for score, node in ranked[: self.top_k]]


class KeepLast(BaseNodePostprocessor):
    """A bad reranker: the worst two of the pool."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return nodes[-2:]


def lists(top_k: int = 4) -> dict[str, list[str]]:
    retriever = WordRetriever(top_k)
    return {q: [found.node.node_id for found in retriever.retrieve(text)] for q, text in QUERIES.items()}


def test_the_report_is_the_cores_and_n_comes_from_the_docstore() -> None:
    evaluator = SelectivityEvaluator(WordRetriever(), labels=GRADES, scale="utility", depths=[1, 2])
    evaluation = evaluator.evaluate_dataset(QUERIES)
    core = rs.evaluate(
        GRADES,
        {"retriever": lists()},
        scale="utility",
        corpus_size=6,
        depths=[1, 2],
        measures=["BoR", "RA-nWG", "Harm"],
    )
    assert evaluation.report.corpus_size == 6
    for measure in ("BoR@1", "BoR@2", "RA-nWG@2", "Harm@2"):
        assert evaluation.report[measure] == core[measure]
    assert [result.query for result in evaluation.results] == list(QUERIES.values())
    rows = {row["query"]: row for row in core.per_query()}
    for query_id, result in zip(QUERIES, evaluation.results, strict=True):
        assert result.metric_vals_dict["RA-nWG@2"] == pytest.approx(rows[query_id]["RA-nWG@2"])
        weights = result.metric_dict["RA-nWG@2"].metadata
        assert {"w5", "w4", "w3", "G_obs", "G_oracle", "judged", "returned", "relevant"} <= set(weights)


def test_the_pool_tells_the_retriever_from_the_reranker() -> None:
    options = {"labels": GRADES, "scale": "utility", "depths": [2], "measures": ["RA-nWG", "PROC", "%PROC"]}
    good = SelectivityEvaluator(WordRetriever(), **options).evaluate_dataset(QUERIES).report
    reranked = SelectivityEvaluator(WordRetriever(), node_postprocessors=[KeepLast()], **options)
    report = (done := reranked.evaluate_dataset(QUERIES)).report
    assert report["PROC@2"].value >= good["RA-nWG@2"].value
    assert report["RA-nWG@2"].value < good["RA-nWG@2"].value
    assert report["%PROC@2"].value < 0.8
    assert report.diagnosis("retriever", 2).overall == "selection-limited"
    for row, result in zip(report.per_query(), done.results, strict=True):
        assert result.metric_vals_dict == pytest.approx({name: row[name] for name in result.metric_vals_dict})


def test_a_single_query_that_finds_nothing_has_a_figure() -> None:
    for text in (QUERIES["q1"], "nothing of it"):
        evaluator = SelectivityEvaluator(WordRetriever(), labels={text: ["elsewhere"]}, measures=["RR"])
        assert evaluator.evaluate(text, ["elsewhere"]).metric_vals_dict == {"RR": 0}


def test_a_retriever_with_asynchronous_code_stays_in_its_loop() -> None:
    class Asynchronous(WordRetriever):
        threads: ClassVar[set[int]] = set()

        async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            self.threads.add(threading.get_ident())
            await asyncio.sleep(0.01)
            return self._retrieve(query_bundle)

    queries = {f"{q}-{i}": text for i in range(4) for q, text in QUERIES.items()}
    labels = {f"{q}-{i}": GRADES[q] for i in range(4) for q in QUERIES}
    evaluator = SelectivityEvaluator(
        Asynchronous(), labels=labels, scale="utility", node_postprocessors=[KeepLast()], depths=[1]
    )
    asyncio.run(evaluator.aevaluate_dataset(queries))
    assert Asynchronous.threads == {threading.get_ident()}


def test_metrics_in_llama_indexs_own_evaluator_and_registry() -> None:
    by_text = {QUERIES[q]: row for q, row in GRADES.items()}
    names = ["RA-nWG@1", "RA-nWG@2", "Harm@2", "nDCG@2"]
    metrics = [SelectivityMetric(name, by_text, corpus_size=6, scale="utility") for name in names]
    result = RetrieverEvaluator(metrics=metrics, retriever=WordRetriever()).evaluate(QUERIES["q1"], ["n1"])
    measures = ["RA-nWG", "Harm", "nDCG"]
    expected = rs.evaluate(GRADES, lists(), scale="utility", measures=measures, depths=[1, 2], bootstrap=None)
    row = expected.per_query()[0]
    assert result.metric_vals_dict == pytest.approx({name: row[name] for name in result.metric_vals_dict})
    assert list(result.metric_vals_dict) == names
    with pytest.raises(rs.InputError, match=r"a retriever is needed, got dict: give one at a time; rs\.compare"):
        SelectivityEvaluator({"mine": WordRetriever()}, labels=GRADES)


# -- live ------------------------------------------------------------------------------------------


def engine(*postprocessors, retriever=None):
    return RetrieverQueryEngine.from_args(
        retriever or WordRetriever(), node_postprocessors=list(postprocessors), llm=MockLLM(max_tokens=3)
    )


def watched(work) -> LiveSelectivity:
    with LiveSelectivity(BY_TEXT, scale="utility", corpus_size=6, depths=[1, 2]) as live:
        work()
    assert live.faults == 0
    return live


def recorded(work) -> list[tuple[str, tuple[str, ...], tuple[str, ...] | None]]:
    return [(each.query, each.shown, each.pool) for each in watched(work).monitor.retrievals]


POOL, KEPT = ("n1", "n3", "n2", "n6"), ("n2", "n6")
ASKED = QUERIES["q1"]


@pytest.mark.parametrize(
    "work",
    [
        lambda: engine(KeepLast()).query(ASKED),
        lambda: asyncio.run(engine(KeepLast()).aquery(ASKED)),
        lambda: engine(KeepLast(), KeepLast()).query(ASKED),
        lambda: chat(KeepLast()).chat(ASKED),
        lambda: list(chat(KeepLast()).stream_chat(ASKED).response_gen),
    ],
    ids=["query", "aquery", "two postprocessors", "chat", "stream"],
)
def test_the_pool_and_what_was_left_of_it(work) -> None:
    assert recorded(work) == [(ASKED, KEPT, POOL)]


def chat(*postprocessors):
    return CondensePlusContextChatEngine.from_defaults(
        WordRetriever(), llm=MockLLM(max_tokens=3), node_postprocessors=list(postprocessors)
    )


class Down(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        raise ConnectionError("the reranker is away")


class Tolerant(CustomQueryEngine):
    """Answers from what was retrieved if its reranker fails."""

    def custom_query(self, query_str: str) -> Response:
        nodes = WordRetriever().retrieve(query_str)
        with suppress(ConnectionError):
            nodes = Down().postprocess_nodes(nodes)
        MockLLM().complete("What is in these?")
        return Response(response="…", source_nodes=nodes)


class Away(WordRetriever):
    def _retrieve(self, query_bundle):
        raise ConnectionError("the index is away")


class Again(Workflow):
    """Tries its step again."""

    @step(retry_policy=ConstantDelayRetryPolicy(maximum_attempts=3, delay=0))
    async def one(self, start: StartEvent) -> StopEvent:
        return StopEvent(result=await start.found.pop().aretrieve(ASKED))


async def again(*found: BaseRetriever) -> None:
    await Again().run(found=list(found))


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (lambda: engine(retriever=Away()).query(ASKED), ((), None)),
        (lambda: engine(Down()).query(ASKED), ((), POOL)),
        (lambda: asyncio.run(engine(KeepLast(), Down()).aquery(ASKED)), ((), POOL)),
        (lambda: chat(Down()).chat(ASKED), ((), POOL)),
        (lambda: Tolerant().query(ASKED), (POOL, None)),
        (lambda: asyncio.run(again(WordRetriever(), Away(), Away())), (POOL, None)),
        (lambda: asyncio.run(again(Away(), Away(), Away())), ((), None)),
    ],
)
def test_what_fails_before_the_model_is_asked_has_shown_it_nothing(work, expected) -> None:
    def ask() -> None:
        with suppress(ConnectionError):
            work()

    live = watched(ask)
    assert [(each.shown, each.pool) for each in live.monitor.retrievals] == [expected]
    assert live.monitor.traffic.failed == (not expected[0])
