"""Cranfield in LlamaIndex's real stores, cut into chunks, with labels of documents: figures equal those of the core."""

import json
import logging
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from tests.lsa import Lsa, for_llama_index

pytest.importorskip("llama_index.core")

from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import TextNode
from rag_selectivity_llama_index import SelectivityEvaluator

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "cranfield"
QUERIES = 20
SIZE = 150

pytestmark = [
    pytest.mark.skipif(not DATA.exists(), reason="the Cranfield collection is not here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.contract,
]


@dataclass
class Cranfield:
    """A part of the collection with its chunks, embedded once; documents 471 and 995 are empty."""

    queries: dict[str, str]
    labels: dict[str, dict[str, int]]
    documents: list[Document]
    nodes: list[TextNode]
    embedding: Any

    @property
    def chunks_of(self) -> Counter[str]:
        return Counter(node.ref_doc_id for node in self.nodes)


def rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def splitter(words: int) -> SentenceSplitter:
    return SentenceSplitter(chunk_size=words, chunk_overlap=0, tokenizer=str.split)


def embedded(nodes: list[TextNode], lsa: Lsa) -> list[TextNode]:
    for node, vector in zip(nodes, lsa.embed_documents([node.text for node in nodes]), strict=True):
        node.embedding = vector
    return nodes


@pytest.fixture(scope="module")
def cranfield() -> Cranfield:
    queries = {row["_id"]: row["text"] for row in rows("queries.jsonl")[:QUERIES]}
    labels = {query: row for query, row in rs.read_qrels(DATA / "qrels.trec").to_dict().items() if query in queries}
    kept = {"471", "995", *map(str, range(1, 301)), *(name for row in labels.values() for name in row)}
    texts = {row["_id"]: f"{row['title']} {row['text']}".strip() for row in rows("corpus.jsonl") if row["_id"] in kept}
    documents = [
        Document(text=text, doc_id=name, metadata={"docno": name, "half": i % 2})
        for i, (name, text) in enumerate(texts.items())
    ]
    lsa = Lsa(list(texts.values()), SIZE)
    nodes = embedded(splitter(80).get_nodes_from_documents(documents), lsa)
    assert len(nodes) > 2 * len(documents)
    assert sum(not node.text for node in nodes) == 2
    return Cranfield(queries, labels, documents, nodes, for_llama_index(lsa))


def store(kind: str, folder: Path) -> Any:
    if kind == "memory":
        from llama_index.core.vector_stores import SimpleVectorStore

        return SimpleVectorStore()
    module = pytest.importorskip(f"llama_index.vector_stores.{kind}")
    if kind == "faiss":
        return module.FaissVectorStore(pytest.importorskip("faiss").IndexFlatIP(SIZE))
    if kind == "qdrant":
        return module.QdrantVectorStore("trial", client=pytest.importorskip("qdrant_client").QdrantClient(":memory:"))
    if kind == "chroma":
        client = pytest.importorskip("chromadb").EphemeralClient()
        return module.ChromaVectorStore(client.create_collection("trial", metadata={"hnsw:space": "cosine"}))
    return module.LanceDBVectorStore(uri=str(folder), table_name="trial")


def index_of(cranfield: Cranfield, kind: str, folder: Path) -> VectorStoreIndex:
    context = StorageContext.from_defaults(vector_store=store(kind, folder))
    return VectorStoreIndex(cranfield.nodes, storage_context=context, embed_model=cranfield.embedding)


def exported(cranfield: Cranfield, retriever: Any) -> dict[str, list[str]]:
    return {query: [e.node.ref_doc_id for e in retriever.retrieve(text)] for query, text in cranfield.queries.items()}


MEASURES = ["Success", "BoR", "RandomSuccess", "RA-nWG", "Judged"]


def by_the_core(cranfield: Cranfield, run: Any, size: int, chunks_of: dict[str, int], **more: Any) -> rs.Report:
    options = {"scale": "utility", "measures": MEASURES, "depths": [10], "bootstrap": None, **more}
    return rs.evaluate(cranfield.labels, {"retriever": run}, corpus_size=size, passages_of=chunks_of, **options)


def evaluated(cranfield: Cranfield, retriever: Any, workers: int = 8, **options: Any) -> Any:
    evaluator = SelectivityEvaluator(
        retriever, labels=cranfield.labels, measures=MEASURES, depths=[10], scale="utility", **options
    )
    return evaluator.evaluate_dataset(cranfield.queries, workers=workers, bootstrap=None)


def same_figures(report: rs.Report, expected: rs.Report) -> None:
    for measure in MEASURES:
        one, other = report[f"{measure}@10"], expected[f"{measure}@10"]
        assert (one.value, one.n, one.n_total, one.reason) == (other.value, other.n, other.n_total, other.reason)


slow = pytest.mark.slow
STORES = ["memory", "faiss", "qdrant", pytest.param("chroma", marks=slow), pytest.param("lancedb", marks=slow)]


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.filterwarnings("ignore:retriever. .* retrieved passages have")
def test_documents_are_found_in_a_store_of_chunks(cranfield, kind, tmp_path) -> None:
    retriever = index_of(cranfield, kind, tmp_path).as_retriever(similarity_top_k=10)
    evaluation = evaluated(cranfield, retriever)
    report, chunks_of = evaluation.report, cranfield.chunks_of
    assert report.corpus_size == len(cranfield.nodes) == sum(chunks_of.values())
    same_figures(report, by_the_core(cranfield, exported(cranfield, retriever), len(cranfield.nodes), chunks_of))
    of_documents = by_the_core(
        cranfield, exported(cranfield, retriever), len(cranfield.nodes), dict.fromkeys(chunks_of, 1)
    )
    assert report["BoR@10"].value < of_documents["BoR@10"].value - 0.5  # N counts chunks, and R documents
    facts = report.runs["retriever"].input
    assert facts["identity"]["taken"] == "ref_doc_id"
    notes = " ".join(report.runs["retriever"].notes)
    labels = facts["identity"]["labels_found"]
    assert f"known by ref_doc_id: {labels} labels found in the first {QUERIES} labelled" in notes
    assert facts["index"] == {"passages": len(cranfield.nodes), "passages_at_end": len(cranfield.nodes)}
    assert ("asked in threads" in notes) == facts["retrieval"]["sync"] == (kind == "qdrant")
    assert ("Async client is not initialized" in notes) == (kind == "qdrant")
    rates = {row["query"]: row["RandomSuccess@10"] for row in report.per_query()}
    for query, result in zip(cranfield.queries, evaluation.results, strict=True):
        assert result.metric_vals_dict["RandomSuccess@10"] == pytest.approx(rates[query])


def test_merged_parents_are_counted_by_the_leaves(cranfield) -> None:
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=["parents", "leaves"], node_parser_map={"parents": splitter(180), "leaves": splitter(60)}
    )
    everything = parser.get_nodes_from_documents(cranfield.documents)
    leaves = get_leaf_nodes(everything)
    faiss = pytest.importorskip("llama_index.vector_stores.faiss")
    vectors = faiss.FaissVectorStore(pytest.importorskip("faiss").IndexFlatIP(SIZE))
    context = StorageContext.from_defaults(vector_store=vectors)
    context.docstore.add_documents(everything)
    index = VectorStoreIndex(leaves, storage_context=context, embed_model=cranfield.embedding)
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=10), context)
    report = evaluated(cranfield, retriever).report
    run, chunks_of = exported(cranfield, retriever), Counter(leaf.ref_doc_id for leaf in leaves)
    assert any(each.node.child_nodes for text in cranfield.queries.values() for each in retriever.retrieve(text))
    same_figures(report, by_the_core(cranfield, run, len(leaves), chunks_of))
    by_docstore = by_the_core(cranfield, run, len(everything), chunks_of)
    assert report["BoR@10"].value < by_docstore["BoR@10"].value - 0.2
    assert report.runs["retriever"].input["identity"]["taken"] == "ref_doc_id"


@slow  # Qdrant in memory filters point by point
def test_a_filter_counts_what_it_leaves(cranfield, tmp_path) -> None:
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

    some = {document.doc_id for document in cranfield.documents[::2]}
    filters = MetadataFilters(filters=[MetadataFilter(key="half", value=0)])
    index = index_of(cranfield, "qdrant", tmp_path)
    retriever = index.as_retriever(similarity_top_k=10, filters=filters)
    chunks_of = {name: chunks for name, chunks in cranfield.chunks_of.items() if name in some}
    report, run = evaluated(cranfield, retriever).report, exported(cranfield, retriever)
    assert report.corpus_size == sum(chunks_of.values()) < len(cranfield.nodes)
    drawn = by_the_core(cranfield, run, sum(chunks_of.values()), chunks_of, corpus=chunks_of)
    every = rs.evaluate(cranfield.labels, {"r": run}, scale="utility", measures=MEASURES, corpus_size=10**6)
    for name in (f"{measure}@10" for measure in MEASURES):
        expected = (drawn if name in ("BoR@10", "RandomSuccess@10") else every)[name]
        assert (report[name].value, report[name].n) == (expected.value, expected.n)


@pytest.fixture(autouse=True)
def _quiet(caplog):
    # The splitter and the stores say much that is not about retrieval.
    caplog.set_level(logging.ERROR)
