"""How many passages real indexes, stores and retrievers can return, with and without a filter."""

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.indexes import corpus_size_of_index, passages_of_index
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval

pytestmark = pytest.mark.inside

#: 20 documents of one to three chunks, half of them in German: 39 chunks, 19 in German.
DOCUMENTS = {f"d{i}": 1 + i % 3 for i in range(20)}
CHUNKS = sum(DOCUMENTS.values())
GERMAN = {name: chunks for name, chunks in DOCUMENTS.items() if int(name[1:]) % 2}


def language(document: str) -> str:
    return "de" if document in GERMAN else "en"


def vector_of(text: str) -> list[float]:
    return np.random.default_rng(sum(text.encode())).random(8).tolist()


# -- LlamaIndex --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nodes():
    schema = pytest.importorskip("llama_index.core.schema")
    source = schema.NodeRelationship.SOURCE
    return [
        schema.TextNode(
            text=f"{name} part {part}",
            metadata={"lang": language(name), "url": f"{name}.example"},
            relationships={source: schema.RelatedNodeInfo(node_id=name)},
        )
        for name, chunks in DOCUMENTS.items()
        for part in range(chunks)
    ]


def embedding():
    from llama_index.core.base.embeddings.base import BaseEmbedding

    class ByText(BaseEmbedding):
        def _get_query_embedding(self, query):
            return vector_of(query)

        async def _aget_query_embedding(self, query):
            return vector_of(query)

        def _get_text_embedding(self, text):
            return vector_of(text)

    return ByText()


def llama_store(kind: str, folder):
    if kind == "memory":
        from llama_index.core.vector_stores import SimpleVectorStore

        return SimpleVectorStore()
    module = pytest.importorskip(f"llama_index.vector_stores.{kind}")
    if kind == "chroma":
        chromadb = pytest.importorskip("chromadb")
        return module.ChromaVectorStore(
            chroma_collection=chromadb.EphemeralClient().create_collection(f"i-{folder.name}".replace("_", "-")[:60])
        )
    if kind == "faiss":
        return module.FaissVectorStore(pytest.importorskip("faiss").IndexFlatIP(8))
    if kind == "qdrant":
        client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
        return module.QdrantVectorStore("chunks", client=client)
    return module.LanceDBVectorStore(uri=str(folder), table_name="chunks")


def llama_index(kind: str, nodes, folder):
    core = pytest.importorskip("llama_index.core")
    context = core.StorageContext.from_defaults(vector_store=llama_store(kind, folder))
    return core.VectorStoreIndex(nodes, storage_context=context, embed_model=embedding())


def german():
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

    return MetadataFilters(filters=[MetadataFilter(key="lang", value="de")])


slow = pytest.mark.slow
STORES = ["memory", "faiss", "qdrant", pytest.param("chroma", marks=slow), pytest.param("lancedb", marks=slow)]


@pytest.mark.parametrize("kind", STORES)
def test_llama_index_counts_what_its_store_can_return(kind, nodes, tmp_path) -> None:
    index = llama_index(kind, nodes, tmp_path)
    retriever = index.as_retriever(similarity_top_k=3)
    for each in (index, retriever, index.vector_store):
        assert corpus_size_of_index(each) == CHUNKS
    for each in (index, retriever):
        assert passages_of_index(each, "ref_doc_id") == DOCUMENTS
        assert passages_of_index(each, "url") == {f"{name}.example": chunks for name, chunks in DOCUMENTS.items()}
        assert set(passages_of_index(each, "node_id").values()) == {1}
        assert sum(passages_of_index(each, "text").values()) == CHUNKS
        assert passages_of_index(each, "nowhere") == {}


@pytest.mark.parametrize("kind", STORES)
def test_llama_index_counts_what_a_filter_leaves_or_asks(kind, nodes, tmp_path) -> None:
    retriever = llama_index(kind, nodes, tmp_path).as_retriever(similarity_top_k=1000, filters=german())
    if kind == "faiss":
        with pytest.raises(rs.InputError, match=r"unknown how many passages the filter leaves: give .* corpus_size="):
            corpus_size_of_index(retriever)
        return
    assert len(retriever.retrieve("d1 part 0")) == sum(GERMAN.values())
    assert corpus_size_of_index(retriever) == sum(GERMAN.values())
    assert passages_of_index(retriever, "ref_doc_id") == GERMAN


def test_what_no_store_can_count_is_not_guessed(nodes, tmp_path) -> None:
    index = llama_index("qdrant", nodes, tmp_path)
    for options in ({"doc_ids": ["d1"]}, {"vector_store_kwargs": {"shard_identifier": "a"}}):
        with pytest.raises(rs.InputError, match="unknown how many passages the filter leaves: give this number as"):
            corpus_size_of_index(index.as_retriever(**options))


def test_the_nodes_that_a_retriever_may_return_and_those_deleted_from_the_store(nodes, tmp_path) -> None:
    from llama_index.core.retrievers import VectorIndexRetriever

    for kind in ("qdrant", "memory"):
        index = llama_index(kind, nodes, tmp_path)
        some = VectorIndexRetriever(index, node_ids=[node.node_id for node in nodes[:5]], embed_model=embedding())
        assert corpus_size_of_index(some) == 5
    index.delete_ref_doc("d1")
    assert corpus_size_of_index(index) == corpus_size_of_index(index.as_retriever()) == CHUNKS - DOCUMENTS["d1"]
    index.vector_store.delete("d2")
    assert corpus_size_of_index(index) == CHUNKS - DOCUMENTS["d1"] - DOCUMENTS["d2"]


def test_parents_in_the_docstore_are_not_counted() -> None:
    core = pytest.importorskip("llama_index.core")
    from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
    from llama_index.core.retrievers import AutoMergingRetriever

    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[128, 32], chunk_overlap=0)
    texts = [core.Document(text=" ".join(f"word{i} and {j}." for j in range(30)), doc_id=f"d{i}") for i in range(4)]
    everything = parser.get_nodes_from_documents(texts)
    leaves = get_leaf_nodes(everything)
    assert len(leaves) < len(everything)
    context = core.StorageContext.from_defaults()
    context.docstore.add_documents(everything)
    index = core.VectorStoreIndex(leaves, storage_context=context, embed_model=embedding())
    assert len(index.docstore.docs) == len(everything)
    for retriever in (index.as_retriever(), AutoMergingRetriever(index.as_retriever(), context)):
        assert corpus_size_of_index(retriever) == len(leaves)
    assert corpus_size_of_index(context.docstore) is None  # which of them are passages is unknown
    assert sum(passages_of_index(index, "node_id").values()) == len(leaves)


# -- LangChain ---------------------------------------------------------------------------------------------


def documents():
    Document = pytest.importorskip("langchain_core.documents").Document
    return [
        Document(page_content=f"{name} part {part}", metadata={"lang": language(name), "source": name})
        for name, chunks in DOCUMENTS.items()
        for part in range(chunks)
    ]


def lang_embedding():
    Embeddings = pytest.importorskip("langchain_core.embeddings").Embeddings

    class ByText(Embeddings):
        def embed_documents(self, texts):
            return [vector_of(text) for text in texts]

        def embed_query(self, text):
            return vector_of(text)

    return ByText()


def lang_store(kind: str, folder):
    """A store of LangChain and a filter for what is in German."""
    if kind == "memory":
        from langchain_core.vectorstores import InMemoryVectorStore

        return InMemoryVectorStore.from_documents(
            documents(), lang_embedding()
        ), lambda document: document.metadata["lang"] == "de"
    if kind == "faiss":
        pytest.importorskip("faiss")
        FAISS = pytest.importorskip("langchain_community.vectorstores").FAISS
        return FAISS.from_documents(documents(), lang_embedding()), {"lang": "de"}
    if kind == "chroma":
        Chroma = pytest.importorskip("langchain_chroma").Chroma
        name = f"lang-{folder.name}".replace("_", "-")[:60]
        return Chroma.from_documents(documents(), lang_embedding(), collection_name=name), {"lang": "de"}
    if kind == "qdrant":
        QdrantVectorStore = pytest.importorskip("langchain_qdrant").QdrantVectorStore
        models = pytest.importorskip("qdrant_client.models")
        condition = models.Filter(
            must=[models.FieldCondition(key="metadata.lang", match=models.MatchValue(value="de"))]
        )
        store = QdrantVectorStore.from_documents(
            documents(), lang_embedding(), location=":memory:", collection_name="chunks"
        )
        return store, condition
    pytest.importorskip("lancedb")
    LanceDB = pytest.importorskip("langchain_community.vectorstores").LanceDB
    return LanceDB.from_documents(documents(), lang_embedding(), uri=str(folder)), "metadata.lang = 'de'"


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_langchain_counts_what_its_store_can_return(kind, tmp_path) -> None:
    store, filter = lang_store(kind, tmp_path)
    for each in (store, store.as_retriever()):
        assert corpus_size_of_index(each) == CHUNKS
        assert passages_of_index(each, "source") == DOCUMENTS
    # FAISS filters what it has found first, which `fetch_k` limits.
    fetched = {"fetch_k": 1000} if kind == "faiss" else {}
    filtered = store.as_retriever(search_kwargs={"k": 1000, "filter": filter, **fetched})
    assert corpus_size_of_index(filtered) == len(filtered.invoke("d1 part 0")) == sum(GERMAN.values())
    assert passages_of_index(filtered, "source") == GERMAN
    with pytest.raises(rs.InputError, match="give this number as corpus_size="):
        corpus_size_of_index(store.as_retriever(search_kwargs={"where_document": {"$contains": "d1"}}))


def test_a_filter_of_faiss_is_asked_as_its_store_asks_it(tmp_path) -> None:
    store, _ = lang_store("faiss", tmp_path)
    for filter, passages in (({"source": ["d1", "d4"]}, 4), ({"lang": {"$neq": "en"}}, sum(GERMAN.values()))):
        assert corpus_size_of_index(store.as_retriever(search_kwargs={"filter": filter})) == passages
    by_function = store.as_retriever(search_kwargs={"filter": lambda metadata: metadata["source"] == "d2"})
    assert corpus_size_of_index(by_function) == 3


def test_a_retriever_of_parents_is_counted_by_its_parents() -> None:
    module = pytest.importorskip("langchain_classic.retrievers")
    from langchain_core.stores import InMemoryStore
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore.from_documents(documents(), lang_embedding())
    retriever = module.MultiVectorRetriever(vectorstore=store, docstore=InMemoryStore())
    retriever.docstore.mset([(name, documents()[0]) for name in DOCUMENTS])
    assert corpus_size_of_index(retriever) == len(DOCUMENTS)
    compressing = module.ContextualCompressionRetriever(
        base_retriever=retriever.vectorstore.as_retriever(),
        base_compressor=pytest.importorskip("langchain_classic.retrievers.document_compressors").EmbeddingsFilter(
            embeddings=lang_embedding()
        ),
    )
    assert corpus_size_of_index(compressing) == CHUNKS
    retriever.search_kwargs = {"expr": "lang == 'de'"}
    with pytest.raises(rs.InputError, match="unknown how many passages the filter leaves"):
        corpus_size_of_index(retriever)


# -- the stores themselves ---------------------------------------------------------------------------------


def test_faiss_and_qdrant_themselves() -> None:
    index = pytest.importorskip("faiss").IndexFlatIP(4)
    index.add(np.zeros((7, 4), np.float32))
    assert corpus_size_of_index(index) == 7
    assert passages_of_index(index, "id") is None
    qdrant = pytest.importorskip("qdrant_client")
    models = pytest.importorskip("qdrant_client.models")
    client = qdrant.QdrantClient(":memory:")
    assert corpus_size_of_index(client) is None  # which collection?
    client.create_collection("c", vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE))
    points = [models.PointStruct(id=i, vector=[1.0, i], payload={"document": f"d{i // 2}"}) for i in range(5)]
    client.upsert("c", points)
    assert corpus_size_of_index(client) == 5
    assert passages_of_index(client, "document") == {"d0": 2, "d1": 2, "d2": 1}
    assert corpus_size_of_index(qdrant.AsyncQdrantClient(":memory:")) is None


@pytest.mark.slow
def test_chroma_and_lancedb_themselves(tmp_path) -> None:
    chromadb = pytest.importorskip("chromadb")
    lancedb = pytest.importorskip("lancedb")
    collection = chromadb.EphemeralClient().create_collection("themselves")
    names = [str(i) for i in range(1500)]  # more than one page
    rows = [{"document": f"d{i // 3}"} for i in range(1500)]
    collection.add(ids=names, embeddings=[[1.0, i] for i in range(1500)], metadatas=rows)
    assert corpus_size_of_index(collection) == 1500
    assert passages_of_index(collection, "document") == {f"d{i}": 3 for i in range(500)}
    assert passages_of_index(collection, "text") is None
    table = lancedb.connect(tmp_path).create_table("t", [{"vector": [1.0, i], "n": i} for i in range(50)])
    assert corpus_size_of_index(table) == 50


# -- what is none ------------------------------------------------------------------------------------------


def test_what_is_no_index_and_what_fails() -> None:
    assert corpus_size_of_index(object()) is None
    assert passages_of_index([1, 2], "id") is None
    broken = type("Collection", (), {"__module__": "chromadb.api", "count": lambda self: 1 / 0, "get": len})()
    with pytest.warns(rs.SelectivityWarning, match=r"Collection did not say how .*ZeroDivisionError.*corpus_size="):
        assert corpus_size_of_index(broken) is None


def test_a_monitor_with_an_index_keeps_queries_whose_relevant_document_the_index_lacks(nodes, tmp_path) -> None:
    index = llama_index("memory", nodes, tmp_path)
    here, *_ = passages_of_index(index, "ref_doc_id")
    labels = {"a": {here: 1}, "b": {here: 1, "lost": 1}, "c": {"lost too": 1}}
    monitor = Monitor(labels, corpus_size=index)
    identity = monitor.identity("auto")
    for query in labels:
        monitor.record(Retrieval(query, [identity.id_of({"ref_doc_id": here}, lambda: "", {})]))
    report = monitor.report()
    assert (report["Success"].value, report["Success"].n) == (pytest.approx(2 / 3), 3)
    assert any("2 relevant labels are of documents that the index lacks" in note for note in report.runs["live"].notes)
