"""Corpora, tails, controls and people's labels in the graders and reports of the three frameworks."""

import re
import warnings
import zlib
from typing import Any

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.grading.judge import CallableJudge
from rag_selectivity.indexes.texts import corpus_texts
from rag_selectivity.tables.ids import text_id
from tests.test_indexes import CHUNKS, STORES, documents, lang_store, llama_index, nodes

__all__ = ["nodes"]  # a fixture

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.inside]

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "larch")
#: Three chunks of each of 12 documents.
TEXTS = {f"{w}-{i}": f"{w} {part} number {i}" for w in WORDS for i, part in enumerate(("is", "was", "will be"))}
QUESTIONS = {f"q{i:02}": f"{word} and {WORDS[(i + 5) % 12]}?" for i, word in enumerate(WORDS)}
BOR = ["BoR", "RA-nWG", "Harm", "Success"]


def ranked(question: str, k: int) -> list[str]:
    """What the retrievers here return: chunks of the words asked for, and then others by a hash."""
    asked = re.findall(r"[a-z]+", question)
    return sorted(TEXTS, key=lambda name: (name.split("-")[0] != asked[0], zlib.crc32(f"{question}{name}".encode())))[
        :k
    ]


class Rule:
    """A judge that grades 5 what names a word asked for, and now and then any other passage."""

    def __init__(self) -> None:
        self.calls = 0

    @property
    def judge(self) -> CallableJudge:
        async def answer(messages: Any, schema: Any) -> dict[str, Any]:
            self.calls += 1
            text = " ".join(message["content"] for message in messages)
            question, passage = re.findall(r"(\w+ and \w+\?)", text)[-1], re.findall(r"(\w+) [\w ]*number \d", text)[-1]
            good = passage in question or zlib.crc32(f"{question}{passage}".encode()) % 9 == 0
            return {"reason": "by a rule", "grade": 5 if good else 1}

        return CallableJudge(answer, "rule")


def in_core(folder: Any, k: int, **options: Any) -> rs.Report:
    """The same by the core alone: grade, then evaluate from the store."""
    run = {query: ranked(text, 12) for query, text in QUESTIONS.items()}
    store = folder / "core.db"
    pool = run if "tail" in options else {query: row[:k] for query, row in run.items()}
    rs.grade(QUESTIONS, TEXTS, pool, store=store, judge=Rule().judge, progress=False, **options)
    lists = {query: row[:k] for query, row in run.items()}
    return rs.evaluate(store, {"r": lists}, corpus_size=len(TEXTS), measures=BOR, depths=[4])


def assert_equal(report: rs.Report, core: rs.Report) -> None:
    for measure in BOR:
        ours, theirs = report[f"{measure}@4"], core[f"{measure}@4"]
        assert (ours.value, ours.low, ours.high, ours.n, ours.n_total, ours.basis, ours.shown) == pytest.approx(
            (theirs.value, theirs.low, theirs.high, theirs.n, theirs.n_total, theirs.basis, theirs.shown), nan_ok=True
        ), measure
        assert [caveat.code for caveat in ours.caveats] == [caveat.code for caveat in theirs.caveats]
        assert ours.placebo == pytest.approx(theirs.placebo)
    assert report.trust.facts == core.trust.facts


# -- texts of an index -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STORES)
def test_texts_of_a_llama_index_are_those_of_its_nodes(kind, nodes, tmp_path) -> None:
    index = llama_index(kind, nodes, tmp_path)
    expected = {node.node_id: node.get_content() for node in nodes}
    for each in (index, index.as_retriever()):
        assert corpus_texts(each, "node_id") == expected
    assert corpus_texts(index, "text") == {text_id(text): text for text in expected.values()}
    with pytest.raises(rs.InputError, match=r"13 ids by ref_doc_id stand for several passages.*chunks of documents"):
        corpus_texts(index, "ref_doc_id")


@pytest.mark.parametrize("kind", STORES)
def test_texts_of_a_langchain_store_have_the_ids_of_retrieved_documents(kind, tmp_path) -> None:
    store, _ = lang_store(kind, tmp_path)
    found = store.as_retriever(search_kwargs={"k": 5}).invoke("d1 part 0")
    texts = corpus_texts(store, "id" if found[0].id else "text")
    assert sorted(texts.values()) == sorted(document.page_content for document in documents())
    assert len(texts) == CHUNKS
    for document in found:
        assert texts[document.id or text_id(document.page_content)] == document.page_content
    if kind == "qdrant":
        assert corpus_texts(store, "_id")[found[0].metadata["_id"]] == found[0].page_content


# -- Ragas -----------------------------------------------------------------------------------------

QID = {"id_column": "qid"}


def rows(k: int = 4, **without: bool) -> list[dict[str, Any]]:
    fields = {
        query: {
            "qid": query,
            "user_input": text,
            "retrieved_context_ids": ranked(text, k),
            "retrieved_contexts": [TEXTS[name] for name in ranked(text, k)],
        }
        for query, text in QUESTIONS.items()
    }
    return [{key: value for key, value in row.items() if key not in without} for row in fields.values()]


def test_ragas_labels_with_controls_give_the_figures_of_the_core(ragas, tmp_path) -> None:
    rule, core = Rule(), in_core(tmp_path, 4, controls=5)
    for corpus in (TEXTS, lang_memory()):
        labels = ragas.grade_dataset(rows(), rule.judge, tmp_path / "labels.db", corpus=corpus, controls=5, **QID)
        report = ragas.selectivity(rows(), labels, corpus_size=len(TEXTS), id_column="qid", measures=BOR, depths=[4])
        assert_equal(report, core)
    assert report["BoR@4"].basis == "with controls"
    assert ragas.selectivity(rows(), labels, id_column="qid").trust.acts[0].startswith("Give the number of passages")
    assert rule.calls == len({(q, p) for q in labels for p in labels[q]})  # the second corpus cost nothing


def test_rows_with_ids_and_rows_without_are_one_corpus_for_controls(ragas, tmp_path) -> None:
    text_rows, found = rows(retrieved_context_ids=True), []
    mixed = [*text_rows[:10], *rows()[10:]]
    for name, some in (("texts", text_rows), ("mixed", mixed)):
        store, options = tmp_path / name, {"id_column": "qid", "corpus": TEXTS, "controls": 5}
        with warnings.catch_warnings():
            warnings.simplefilter("error", rs.SelectivityWarning)
            ragas.grade_dataset(some, Rule().judge, store, **options)
        found.append(ragas.selectivity(some, store, corpus_size=len(TEXTS), id_column="qid", measures=BOR, depths=[4]))
    assert_equal(*found)
    notes = found[1].runs["ragas"].notes
    assert "10 of 12 samples have no retrieved_context_ids: all passages go by texts" in notes
    with pytest.raises(rs.InputError, match=r"sample 11: .* give pool as \{query: \{passage: text\}\}"):
        ragas.grade_dataset(mixed, Rule().judge, store, pool={"q10": ["amber-1"]}, **options)


def test_ragas_tail_of_a_pool(ragas, tmp_path) -> None:
    options = {"pool_depth": 4, "tail": "12:3"}
    core = in_core(tmp_path, 4, **options)
    pool = {query: ranked(text, 12) for query, text in QUESTIONS.items()}
    labels = ragas.grade_dataset(rows(), Rule().judge, tmp_path / "l.db", pool=pool, corpus=TEXTS, **QID, **options)
    report = ragas.selectivity(rows(), labels, corpus_size=len(TEXTS), id_column="qid", measures=BOR, depths=[4])
    assert_equal(report, core)
    assert report["RA-nWG@4"].basis == "with a tail"
    (closed,) = (caveat for caveat in report["BoR@4"].caveats if caveat.code == "closed-labels")
    assert closed.text.endswith("Random controls show whether it does.")
    assert any(": grade_dataset(…, corpus=index, pool_depth=4, controls=3, " in act for act in report.trust.acts)


def test_a_pool_with_texts_names_passages_as_rows_without_ids_do(ragas, tmp_path) -> None:
    """By their texts: else a passage that the pool and a row hold is graded twice, and met by one of them only."""
    pool = {query: {name: f"{TEXTS[name]}\n" for name in ranked(text, 8)} for query, text in QUESTIONS.items()}
    found = []
    for name, some in (("ids", rows()), ("texts", rows(retrieved_context_ids=True))):
        store, rule = tmp_path / name, Rule()
        labels = ragas.grade_dataset(some, rule.judge, store, id_column="qid", pool=pool)
        assert rule.calls == labels.size == 8 * len(QUESTIONS)
        later = rows(6, **({"retrieved_context_ids": True} if name == "texts" else {}))
        options = {"id_column": "qid", "measures": ["RA-nWG", "Judged"], "depths": [6]}
        found.append(ragas.selectivity(later, labels, **options))
    assert found[0]["Judged@6"].value == 1.0
    assert found[0]["RA-nWG@6"].value == found[1]["RA-nWG@6"].value


def test_two_ragas_datasets_graded_into_one_store_are_measured_by_the_same_labels(ragas, tmp_path) -> None:
    few, backwards = rows(3), [{**row, "retrieved_context_ids": row["retrieved_context_ids"][::-1]} for row in rows(6)]
    for row in backwards:
        row["retrieved_contexts"] = [TEXTS[name] for name in row["retrieved_context_ids"]]
    for each in (few, backwards):
        each[-1] |= {"retrieved_context_ids": [], "retrieved_contexts": []}
    store = tmp_path / "two.db"
    ragas.grade_dataset(backwards, Rule().judge, store, corpus=TEXTS, controls=2, **QID)
    labels = ragas.grade_dataset(few, Rule().judge, store, **QID)
    assert labels.to_dict() == rs.read_qrels(store).to_dict()
    runs = {name: ragas.run_from_dataset(each, **QID) for name, each in (("few", few), ("backwards", backwards))}
    options = {"corpus_size": len(TEXTS), "measures": ["RA-nWG", "BoR", "Judged"], "depths": [3]}
    by_labels, by_store = (rs.evaluate(each, runs, **options) for each in (labels, store))
    # What found nothing was asked, and counts; nothing of it is left to grade.
    assert by_store.trust.facts == by_labels.trust.facts
    assert ragas.selectivity(few, store, **QID, **options)["BoR@3"].n == len(few)
    for name in runs:
        assert by_labels[name, "Judged@3"].value == 1.0
        assert by_labels.runs[name].estimates == by_store.runs[name].estimates
    # Of some of the questions, nothing of the others is returned.
    one = ragas.grade_dataset(few[:1], Rule().judge, store, **QID)
    assert one.to_dict() == {few[0]["qid"]: labels[few[0]["qid"]]}


def test_rows_that_repeat_a_question_are_one_cluster_and_their_labels_count_once(ragas, tmp_path) -> None:
    options = {"corpus_size": len(TEXTS), "id_column": "qid", "measures": BOR, "depths": [4]}
    labels = ragas.grade_dataset(rows(), Rule().judge, tmp_path / "l.db", id_column="qid", corpus=TEXTS, controls=2)
    once = ragas.selectivity(rows(), labels, **options)
    assert once.runs["ragas"].notes == ()
    half = len(rows()) // 2
    for again, repeating in ((rows() * 3, 2 * len(rows())), (rows() + rows(6)[:half], half)):
        report = ragas.selectivity(again, labels, **options)
        assert report.provenance == once.provenance
        controls, all_once = (each.runs["ragas"].input["controls"] for each in (report, once))
        assert all(controls[name] == all_once[name] for name in ("queries", "graded", "relevant", "used"))
        assert f"{repeating} of {len(again)} rows repeat a query: " in str(report.runs["ragas"].notes)
        assert report.bootstrap.settings["clusters"] == report.runs["ragas"].evaluated == len(rows())
    thrice = ragas.selectivity(rows() * 3, labels, **options)
    for name in ("RA-nWG@4", "Harm@4"):
        assert thrice[name].value == pytest.approx(once[name].value)
        assert thrice[name].high - thrice[name].low >= once[name].high - once[name].low - 1e-9
    assert thrice["BoR@4"].shown == pytest.approx(once["BoR@4"].shown, abs=1e-12)
    assert ragas.selectivity(rows() * 2, labels, ids="casefold", **options)["Harm@4"].value == once["Harm@4"].value


# -- LlamaIndex and LangChain ----------------------------------------------------------------------


def vector(text: str) -> list[float]:
    return np.random.default_rng(zlib.crc32(text.encode())).random(8).tolist()


def lang_memory() -> Any:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class ByText(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [vector(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return vector(text)

    chunks = [Document(id=n, page_content=text, metadata={"word": n.split("-")[0]}) for n, text in TEXTS.items()]
    store = InMemoryVectorStore(ByText())
    store.add_documents(chunks)
    return store


def lang_retriever(k: int) -> Any:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Ranked(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            if query == "broken":
                raise ConnectionError("the store is away")
            return [Document(id=name, page_content=TEXTS[name]) for name in ranked(query, k)]

    return Ranked()


def llama_memory() -> Any:
    pytest.importorskip("llama_index.core")
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

    chunks = [
        TextNode(id_=n, text=text, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=n.split("-")[0])})
        for n, text in TEXTS.items()
    ]
    return VectorStoreIndex(chunks, embed_model=MockEmbedding(embed_dim=2))


def llama_retriever(k: int) -> Any:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore

    index = llama_memory()

    class Ranked(BaseRetriever):
        def __init__(self) -> None:
            self._index = index
            super().__init__()

        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            nodes = index.docstore.get_nodes(ranked(query_bundle.query_str, k))
            return [NodeWithScore(node=node, score=1.0) for node in nodes]

    return Ranked()


def graded_by_llama_index(folder: Any, k: int, *, human: Any = None, **options: Any) -> tuple[Any, rs.Report]:
    from rag_selectivity_llama_index import SelectivityEvaluator, grade_retriever

    labels = grade_retriever(llama_retriever(k), QUESTIONS, Rule().judge, folder / "llama.db", **options)
    evaluator = SelectivityEvaluator(llama_retriever(4), labels=labels, measures=BOR, depths=[4])
    evaluation = evaluator.evaluate_dataset(QUESTIONS, human=human)
    return evaluation, evaluation.report


def graded_by_langchain(folder: Any, k: int, *, human: Any = None, **options: Any) -> tuple[Any, rs.Report]:
    from rag_selectivity_langchain import grade_retriever, selectivity

    store = folder / "lang.db"
    labels = grade_retriever(lang_retriever(k), QUESTIONS, Rule().judge, store, **options)
    sized = {"corpus_size": len(TEXTS), "measures": BOR, "depths": [4]}
    return labels, selectivity(lang_retriever(4), QUESTIONS, labels, human=human, **sized)


HOSTS = {"llama": (graded_by_llama_index, llama_memory), "langchain": (graded_by_langchain, lang_memory)}


@pytest.mark.parametrize("host", HOSTS)
def test_from_a_retriever_and_an_index_to_a_report_with_controls(host, tmp_path) -> None:
    graded, index = HOSTS[host]
    _, report = graded(tmp_path, 4, corpus=index(), controls=5)
    assert_equal(report, in_core(tmp_path, 4, controls=5))
    assert report["BoR@4"].basis == "with controls"
    # What a store holds of these queries counts, whichever call asked for it.
    _, again = graded(tmp_path, 4)
    assert again["BoR@4"] == report["BoR@4"]
    (other := tmp_path / "other").mkdir()
    _, closed = graded(other, 4)
    assert "closed-labels" in [caveat.code for caveat in closed["BoR@4"].caveats]
    assert any(": grade_retriever(…, corpus=index, controls=3, " in act for act in closed.trust.acts)


@pytest.mark.parametrize("host", HOSTS)
def test_a_tail_below_what_a_retriever_shows(host, tmp_path) -> None:
    options = {"pool_depth": 4, "tail": "12:3"}
    _, report = HOSTS[host][0](tmp_path, 12, **options)
    assert_equal(report, in_core(tmp_path, 4, **options))


@pytest.mark.parametrize("host", HOSTS)
def test_peoples_labels_calibrate_the_figures(host, tmp_path) -> None:
    people = {
        query: {name: 5 if name.split("-")[0] == text.split()[0] else 2 for name in ranked(text, 4)[i % 2 :: 2]}
        for i, (query, text) in enumerate(QUESTIONS.items())
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, report = HOSTS[host][0](tmp_path, 4, human=people)
    rs.grade(
        QUESTIONS,
        TEXTS,
        {query: ranked(text, 4) for query, text in QUESTIONS.items()},
        store=tmp_path / "core.db",
        judge=Rule().judge,
        progress=False,
    )
    run = {query: ranked(text, 4) for query, text in QUESTIONS.items()}
    core = rs.evaluate(tmp_path / "core.db", {"r": run}, corpus_size=len(TEXTS), measures=BOR, depths=[4], human=people)
    assert report["Harm@4"].basis == "calibrated"
    assert (report["Harm@4"].value, report["Harm@4"].low) == (core["Harm@4"].value, core["Harm@4"].low)


def test_langchain_takes_n_and_chunks_from_the_store_and_compares_retrievers(tmp_path) -> None:
    pytest.importorskip("langchain_core")
    from rag_selectivity_langchain import grade_retriever, selectivity

    store = lang_memory()
    retrievers = {"few": store.as_retriever(search_kwargs={"k": 2}), "many": store.as_retriever(search_kwargs={"k": 6})}
    gold = {text: {text.split()[0]: 1} for text in QUESTIONS.values()}
    report = selectivity(retrievers, labels=gold, depths=[2], identity="word")
    core = rs.evaluate(
        gold,
        {
            name: {text: [each.metadata["word"] for each in retriever.invoke(text)] for text in gold}
            for name, retriever in retrievers.items()
        },
        passages_of=dict.fromkeys(WORDS, 3),
        depths=[2],
    )
    for name in retrievers:
        assert report[name, "BoR@2"].value == core[name, "BoR@2"].value
    labels = grade_retriever(retrievers, QUESTIONS, Rule().judge, tmp_path / "l.db", corpus=store, controls=2)
    assert set(labels["q00"]) >= {each.id for each in retrievers["many"].invoke(QUESTIONS["q00"])}
    chosen = selectivity(retrievers, QUESTIONS, labels, depths=[2])
    assert (chosen.corpus_size, chosen["few", "BoR@2"].basis) == (len(TEXTS), "with controls")
