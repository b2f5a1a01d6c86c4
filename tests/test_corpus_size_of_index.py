"""An index, a store or a retriever is taken wherever an adapter takes the corpus size."""

from typing import Any

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract

LABELS = {"who?": {"n1": 1}}


def test_llama_index() -> None:
    pytest.importorskip("llama_index.core")
    import rag_selectivity_llama_index as ours
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [TextNode(id_=f"n{i}", text=f"text {i}") for i in range(64)]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=3))

    class Retriever(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [NodeWithScore(node=nodes[1], score=1.0)]

    options = {"labels": LABELS, "depths": [1], "identity": "node_id"}
    for size in (index, index.as_retriever(), 64, {"who?": 64}):
        evaluator = ours.SelectivityEvaluator(Retriever(), corpus_size=size, **options)
        evaluation = evaluator.evaluate_dataset(bootstrap=None)
        assert evaluation.report["BoR@1"].value == 6
        assert evaluation.results[0].metric_vals_dict["RandomSuccess@1"] == pytest.approx(1 / 64)
        metric = ours.SelectivityMetric("RandomSuccess@1", LABELS, corpus_size=size)
        assert metric.compute("who?", [], ["n1"]).score == pytest.approx(1 / 64)
        assert ours.report_from_results(evaluation.results, corpus_size=size, depths=[1])["BoR@1"].value == 6
        with ours.LiveSelectivity(LABELS, corpus_size=size, depths=[1]) as live:
            Retriever().retrieve("who?")
        assert live.report()["BoR@1"].value == 6
    with pytest.raises(rs.InputError, match=r"corpus_size has no entry for 1 of the 1 queries \('who"):
        ours.SelectivityEvaluator(Retriever(), corpus_size={"q": 3}, **options).evaluate_dataset()


def test_langchain() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import InMemoryVectorStore
    from rag_selectivity_langchain import run_evaluator, selectivity, summary_evaluator

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=3))
    store.add_documents([Document(id=f"n{i}", page_content=f"text {i}") for i in range(64)])

    class Retriever(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(id="n1", page_content="text 1")]

    rows = [{"documents": ["n1"]}], [{"relevant": ["n1"]}], [{"question": "who?"}]
    for size in (store, {"who?": 64}):
        report = selectivity(Retriever(), ["who?"], LABELS, corpus_size=size, depths=[1], bootstrap=None)
        assert report["BoR@1"].value == summary_evaluator("BoR@1", corpus_size=size)(*rows)["score"] == 6
    of_run = run_evaluator("RandomSuccess@1", corpus_size=store, scale="trec")
    assert of_run({"documents": ["n1"]}, {"relevant": ["n1"]})["score"] == pytest.approx(1 / 64)
