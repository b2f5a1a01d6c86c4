"""LangChain as people set it up: Cranfield in chunks, real stores, a real embedding; figures as `evaluate` has them."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from rag_selectivity_langchain import SelectivityCallback

import rag_selectivity as rs
from rag_selectivity.single import text_id
from tests.lsa import Lsa, for_langchain

pytestmark = pytest.mark.contract

splitters = pytest.importorskip("langchain_text_splitters")

MEASURES = ["Success", "BoR", "RA-nWG", "PROC", "Harm", "Judged"]
Grades = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Trial:
    """Sixty queries of Cranfield with the documents judged for them: chunks of these, and grades of documents."""

    documents: Mapping[str, str]
    queries: Mapping[str, str]
    grades: Grades
    chunks: Sequence[Document]
    embedding: Any


@pytest.fixture(scope="module")
def trial(data: Path) -> Trial:
    folder = data / "cranfield"
    documents, queries = (
        {row["_id"]: row["text"] for row in map(json.loads, (folder / name).read_text().splitlines())}
        for name in ("corpus.jsonl", "queries.jsonl")
    )
    queries = dict(list(queries.items())[:60])
    qrels = rs.read_qrels(folder / "qrels.trec").to_dict()
    judged = {document for query in queries for document in qrels[query]}
    documents = {name: text for name, text in documents.items() if name in judged or not text}
    whole = [Document(page_content=text, metadata={"source": name}) for name, text in documents.items()]
    chunks = splitters.RecursiveCharacterTextSplitter(chunk_size=500, chunk_overlap=0).split_documents(whole)
    # A splitter drops empty documents, and an ingestion without one keeps them.
    chunks.append(next(document for document in whole if not document.page_content))
    embedding = for_langchain(Lsa([chunk.page_content for chunk in chunks], dimensions=80))
    return Trial(documents, queries, {query: qrels[query] for query in queries}, chunks, embedding)


def memory(documents: Sequence[Document], embedding: Any) -> VectorStore:
    return InMemoryVectorStore.from_documents(documents, embedding)


def faiss(documents: Sequence[Document], embedding: Any) -> VectorStore:
    pytest.importorskip("faiss")
    stores = pytest.importorskip("langchain_community.vectorstores")
    store: VectorStore = stores.FAISS.from_documents(documents, embedding)
    return store


def chroma(documents: Sequence[Document], embedding: Any) -> VectorStore:
    kind = pytest.importorskip("langchain_chroma").Chroma
    # Collections of one name are one collection, also where they are in memory.
    store: VectorStore = kind.from_documents(documents, embedding, collection_name=f"trial-{uuid4()}")
    return store


Store = Callable[[Sequence[Document], Any], VectorStore]
STORES = [memory, faiss, pytest.param(chroma, marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=STORES, ids=lambda store: store.__name__)
def made(request: Any, trial: Trial) -> Any:
    """A store with the chunks, under ids of its own."""
    return request.param(trial.chunks, trial.embedding).as_retriever(search_kwargs={"k": 10})


def watch(trial: Trial, retriever: Any, grades: Grades, **options: Any) -> SelectivityCallback:
    """The callback after all queries."""
    size = len(trial.chunks)
    callback = SelectivityCallback(
        grades, corpus_size=size, scale="utility", measures=MEASURES, depths=[1, 10], **options
    )
    for query, text in trial.queries.items():
        config = {"callbacks": [callback], "metadata": {"query_id": query}}
        retriever.invoke(text, config=config)
    assert callback.faults == 0
    return callback


def evaluated(trial: Trial, grades: Grades, lists: Mapping[str, Sequence[str]]) -> rs.Report:
    """`evaluate` on the exported lists."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rs.SelectivityWarning)
        return rs.evaluate(
            grades,
            {"live": {query: list(ids) for query, ids in lists.items()}},
            corpus_size=len(trial.chunks),
            scale="utility",
            measures=MEASURES,
            depths=[1, 10],
            short_lists="returned",
        )


def exported(trial: Trial, retriever: Any, id_of: Callable[[Document], str]) -> dict[str, list[str]]:
    return {query: [id_of(document) for document in retriever.invoke(text)] for query, text in trial.queries.items()}


def assert_same(found: rs.Report, expected: rs.Report) -> None:
    for key, estimate in expected.runs["live"].estimates.items():
        ours = found[key]
        wanted = pytest.approx((estimate.value, estimate.low, estimate.high), rel=1e-12, nan_ok=True)
        assert (ours.value, ours.low, ours.high) == wanted, key
        assert (ours.n, ours.n_total) == (estimate.n, estimate.n_total), key


def source_of(document: Document) -> str:
    return str(document.metadata["source"])


def test_a_document_s_id_in_the_metadata_is_found(trial, made) -> None:
    lists = exported(trial, made, source_of)
    callback = watch(trial, made, trial.grades)
    report = callback.report()
    assert_same(report, evaluated(trial, trial.grades, lists))
    assert report["Success@10"].value > 0.6
    first = dict(list(lists.items())[:50])
    found = sum(len(set(ids) & set(trial.grades[query])) for query, ids in first.items())
    assert report.runs["live"].input["identity"] == {"taken": "source", "labels_found": found, "queries": 50}
    assert f"Passages are known by source: {found} labels found in the first 50 labelled retrievals." in (
        report.runs["live"].notes
    )
    texts = exported(trial, made, lambda document: document.page_content)
    empty = sum(not text.strip() for ids in texts.values() for text in ids)
    assert callback.traffic.empty_passages == empty
    assert ("had no text" in str(report.runs["live"].notes)) == (empty > 0)


@pytest.mark.parametrize("store", STORES)
def test_ids_given_to_the_store_are_found(trial, store) -> None:
    named = {f"{source_of(chunk)}#{i}": chunk for i, chunk in enumerate(trial.chunks)}
    inherited = {
        query: {name: row[source_of(chunk)] for name, chunk in named.items() if source_of(chunk) in row}
        for query, row in trial.grades.items()
    }
    documents = [Document(id=name, page_content=chunk.page_content) for name, chunk in named.items()]
    retriever = store(documents, trial.embedding).as_retriever(search_kwargs={"k": 10})
    report = watch(trial, retriever, inherited).report()
    assert_same(report, evaluated(trial, inherited, exported(trial, retriever, lambda document: str(document.id))))
    assert report.runs["live"].input["identity"]["taken"] == "id"


def by_text(trial: Trial, grades: Grades) -> Grades:
    return {query: {text_id(trial.documents[name]): g for name, g in row.items()} for query, row in grades.items()}


def test_text_hashes_of_documents_do_not_pass_for_those_of_chunks(trial) -> None:
    bare = [Document(page_content=chunk.page_content) for chunk in trial.chunks]
    unnamed = memory(bare, trial.embedding).as_retriever(search_kwargs={"k": 10})
    with pytest.warns(rs.SelectivityWarning, match="too few labels are found to tell the right id: text finds most"):
        callback = watch(trial, unnamed, by_text(trial, trial.grades))
    with pytest.raises(rs.InputError, match='If the id is right, give identity="text"'):
        callback.report()
    explicit = watch(trial, unnamed, by_text(trial, trial.grades), identity="text")
    with pytest.warns(rs.SelectivityWarning, match="judged passages, and could have"):
        report = explicit.report()
    hashes = exported(trial, unnamed, lambda document: text_id(document.page_content))
    assert_same(report, evaluated(trial, by_text(trial, trial.grades), hashes))
