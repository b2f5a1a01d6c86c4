"""`LiveSelectivity` on a real index: ids that the index makes anew, and when nodes are named."""

from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from rag_selectivity_llama_index import LiveSelectivity

from rag_selectivity.single import text_id
from tests.lsa import Lsa, for_llama_index
from tests.three_questions import QUERIES, TEXTS

pytestmark = pytest.mark.contract

GRADES = {"q1": {"n1": 5, "n3": 3, "n6": 1}, "q2": {"n2": 5, "n1": 1}, "q3": {"n5": 5, "n6": 1}}
LABELS = {QUERIES[query]: grades for query, grades in GRADES.items()}


def index() -> VectorStoreIndex:
    """A node of each document, with the id that an ingestion makes up; one document is empty."""
    texts = {**TEXTS, "empty": ""}
    nodes = [
        TextNode(
            text=text,
            metadata={"url": f"https://example.org/{name}"},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=name)},
        )
        for name, text in texts.items()
    ]
    return VectorStoreIndex(nodes, embed_model=for_llama_index(Lsa(list(texts.values()), dimensions=4)))


def watched(retriever: BaseRetriever, labels: Any = LABELS, times: int = 1, **options: Any) -> LiveSelectivity:
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(max_tokens=3))
    with LiveSelectivity(labels, scale="utility", corpus_size=7, depths=[1, 2], **options) as live:
        for text in list(QUERIES.values()) * times:
            engine.query(text)
    assert live.faults == 0
    return live


@pytest.mark.parametrize("kind", ["ref_doc_id", "url", "text", "node_id"])
@pytest.mark.parametrize("times", [1, 20])
def test_the_id_that_the_labels_mean_is_found(kind, times) -> None:
    made = index()
    node_ids = {node.ref_doc_id: node.node_id for node in made.docstore.docs.values()}
    rename = {
        "ref_doc_id": lambda name: name,
        "url": lambda name: f"https://example.org/{name}",
        "text": lambda name: text_id(TEXTS[name]),
        "node_id": node_ids.__getitem__,
    }[kind]
    labels = {query: {rename(name): grade for name, grade in row.items()} for query, row in LABELS.items()}
    retriever = made.as_retriever(similarity_top_k=3)
    live = watched(retriever, labels, times)
    explicit = watched(retriever, labels, times, identity=kind)
    report = live.report()
    assert report.runs["live"].input["identity"]["taken"] == kind
    assert report.to_dict()["runs"]["live"]["measures"] == explicit.report().to_dict()["runs"]["live"]["measures"]
    assert report["Success@2"].value > 0


def test_nodes_are_named_only_where_labels_or_a_trace_want_them(tmp_path) -> None:
    """Naming hashes each text; a retrieval inside an engine is named, since a postprocessor may select from it."""

    class Texts(TextNode):
        hashed: int = 0

        def get_content(self, *args: Any, **options: Any) -> str:
            self.hashed += 1
            return super().get_content(*args, **options)

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [NodeWithScore(node=node, score=1.0) for node in nodes]

    def contents_read(query: str, call: Any, **options: Any) -> int:
        for node in nodes:
            node.hashed = 0
        with LiveSelectivity({"with labels": {text_id("a"): 1}}, corpus_size=9, **options) as live:
            call(query)
        assert (live.faults, live.monitor.traffic.retrievals, live.monitor.traffic.shown) == (0, 1, 2.0)
        assert live.monitor.traffic.tokens == 2.0
        return sum(node.hashed for node in nodes)

    nodes = [Texts(text="a"), Texts(text="b")]
    alone = Fixed()
    lengths_alone = contents_read("without", alone.retrieve, identity="text")
    assert lengths_alone == len(nodes)
    assert contents_read("with labels", alone.retrieve, identity="text") > lengths_alone
    assert contents_read("without", alone.retrieve, identity="text", trace=tmp_path / "t.jsonl") > lengths_alone
    engine = RetrieverQueryEngine.from_args(alone, llm=MockLLM(max_tokens=1))
    assert contents_read("without", engine.query, identity="text") > lengths_alone
