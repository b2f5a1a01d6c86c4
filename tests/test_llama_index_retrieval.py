"""What `SelectivityEvaluator` makes of ids, of N, of retrievals that fail, and of retrievers that are only sync."""

import asyncio
import contextlib
import logging
import math
import warnings
from fractions import Fraction
from typing import ClassVar

import pytest

import rag_selectivity as rs

pytest.importorskip("llama_index.core")

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever, RecursiveRetriever
from llama_index.core.schema import IndexNode, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from rag_selectivity_llama_index import SelectivityEvaluator, report_from_results, run_from_nodes

pytestmark = pytest.mark.contract

#: Two chunks of each of ten documents.
NODES = [
    TextNode(
        id_=f"n{document}-{part}",
        text=f"chunk {part} of {document}",
        metadata={"source": {"file": f"{document}.txt"}},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{document}")},
    )
    for document in range(10)
    for part in range(2)
]
QUERIES = {f"q{i}": f"about {i}" for i in range(10)}
LABELS = {f"q{i}": {f"d{i}": 1} for i in range(10)}


class Numbers(BaseRetriever):
    """Query i finds the chunks of document i and the first of the next, in an index that says N."""

    def __init__(self) -> None:
        self.index = VectorStoreIndex(NODES, embed_model=MockEmbedding(embed_dim=2))
        super().__init__()

    def found(self, query: str) -> list[NodeWithScore]:
        i = int(query.split()[-1])
        return [NodeWithScore(node=NODES[(2 * i + j) % 20], score=1 / (1 + j)) for j in range(3)]

    def _retrieve(self, query_bundle):
        return self.found(query_bundle.query_str)


def evaluated(retriever, labels=LABELS, queries=QUERIES, **options):
    return SelectivityEvaluator(retriever, labels=labels, depths=[2], **options).evaluate_dataset(
        queries, bootstrap=None
    )


def notes(report: rs.Report) -> str:
    return "\n".join(report.runs["retriever"].notes)


def facts(report: rs.Report, kind: str):
    return report.runs["retriever"].input[kind]


# -- ids -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "made"), [("node_id", "n{}-0"), ("ref_doc_id", "d{}"), ("source.file", "{}.txt")])
def test_the_id_that_labels_know_is_taken_and_named(name, made) -> None:
    labels = {f"q{i}": {made.format(i): 1} for i in range(10)}
    report = evaluated(Numbers(), labels).report
    assert report["Success@2"].value == 1
    assert facts(report, "identity") == {"taken": name, "labels_found": 10, "queries": 10}
    assert f"Passages are known by {name}: 10 labels found in the first 10 labelled retrievals." in notes(report)
    chunks = {} if name == "node_id" else {"passages_of": {made.format(i): 2 for i in range(10)}}
    run = {f"q{i}": [made.format(i), *([made.format(i)] if chunks else ["x"])] for i in range(10)}
    expected = rs.evaluate(labels, run, corpus_size=20, measures=["BoR"], depths=[2], bootstrap=None, **chunks)
    assert report["BoR@2"].value == pytest.approx(expected["BoR@2"].value)


def test_ids_of_mixed_kinds_are_refused() -> None:
    labels = {f"q{i}": {f"d{i}" if i < 5 else f"n{i}-0": 1} for i in range(10)}
    with pytest.raises(rs.InputError, match='identity="'):
        evaluated(Numbers(), labels)


class Weak(Numbers):
    """The first queries find one of their chunks, and the others none."""

    right = 3

    def found(self, query: str) -> list[NodeWithScore]:
        i = int(query.split()[-1])
        own = [NODES[2 * i]] * (i < self.right)
        return [NodeWithScore(node=node) for node in [*own, NODES[(2 * i + 2) % 20], NODES[(2 * i + 4) % 20]]]


class WeakAlone(Weak):
    """The same without an index that could be asked."""

    def __init__(self) -> None:
        super().__init__()
        del self.index


CHUNKS = {f"q{i}": [f"n{i}-0", f"n{i}-1"] for i in range(10)}


@pytest.mark.parametrize("identity", ["auto", "node_id"])
@pytest.mark.parametrize("right", [3, 0])
def test_a_weak_retriever_is_measured_by_the_ids_that_its_index_knows(right, identity, monkeypatch) -> None:
    monkeypatch.setattr(Weak, "right", right)
    with warnings.catch_warnings(record=True) as heard:
        report = evaluated(Weak(), CHUNKS, identity=identity).report
    assert [str(each.message).partition(":")[0] for each in heard] == (
        [] if right else ["no passage that retriever retrieved is judged for its query"]
    )
    assert report["Success@2"].value == right / 10
    assert report.trust.ids_apart is None
    if identity == "auto":
        assert facts(report, "identity") == {"taken": "node_id", "labels_found": right, "queries": 10}
        said = f"Passages are known by node_id: {right} labels found in the first 10 labelled retrievals"
        assert f"{said}; the index has 20 of 20 labels." in notes(report)
        single = SelectivityEvaluator(Weak(), labels=CHUNKS, depths=[2])
        assert single.evaluate("about 9", CHUNKS["q9"]).retrieved_ids == ["n0-0", "n1-0"]


def test_an_index_that_lacks_most_labels_does_not_settle_the_ids() -> None:
    labels = {q: [names[0] if q in ("q0", "q1", "q2") else f"old-{q}", "other"] for q, names in CHUNKS.items()}
    with pytest.raises(rs.InputError, match="too few labels are found to tell the right id: node_id finds most, 3 in"):
        evaluated(Weak(), labels)


def test_a_weak_retriever_without_an_index_is_refused_with_the_mend() -> None:
    with pytest.raises(rs.InputError, match='If the id is right, give identity="node_id"'):
        evaluated(WeakAlone(), CHUNKS, corpus_size=20)


def test_a_single_query_goes_by_the_identity_that_was_taken() -> None:
    evaluator = SelectivityEvaluator(Numbers(), labels={QUERIES["q1"]: {"d1": 1}}, depths=[1])
    assert evaluator.evaluate(QUERIES["q1"], ["d1"]).metric_vals_dict["Success@1"] == 1
    unlabelled = SelectivityEvaluator(Numbers())
    assert unlabelled.evaluate(QUERIES["q1"], ["n1-0"]).retrieved_ids == ["n1-0", "n1-1", "n2-0"]
    unlabelled.evaluate_dataset(type("Dataset", (), {"queries": QUERIES, "relevant_docs": LABELS}))
    assert unlabelled.evaluate(QUERIES["q1"], ["d1"]).retrieved_ids == ["d1", "d1", "d2"]


# -- N -------------------------------------------------------------------------------------------------


def test_without_counts_repeats_leave_bor_undefined_with_the_reason() -> None:
    class Bare(Numbers):
        def __init__(self) -> None:
            super().__init__()
            del self.index

    report = evaluated(Bare(), corpus_size=20, measures=["BoR", "Success"]).report
    assert report["Success@2"].value == 1
    assert math.isnan(report["BoR@2"].value)
    assert "passages_of" in report["BoR@2"].reason
    counted = evaluated(Bare(), corpus_size=20, passages_of={f"d{i}": 2 for i in range(10)}).report
    assert counted["BoR@2"].value == evaluated(Numbers()).report["BoR@2"].value
    with pytest.raises(rs.InputError, match="corpus_size is 10, less than the 20 passages"):
        evaluated(Numbers(), corpus_size=10)


def test_neither_the_retriever_nor_a_draw_finds_a_relevant_document_that_the_index_lacks() -> None:
    report = evaluated(Numbers(), {**LABELS, "q1": {"d1": 1, "lost": 1}, "q2": {"lost too": 1}}).report
    assert report.corpus_size == 20
    assert "2 relevant labels are of documents that the index lacks" in notes(report)
    assert (report["Success@2"].value, report["Success@2"].n) == (0.9, 10)
    # Nine queries have R = 2 of N = 20; neither finds a passage for q2, so both means have a 0 there.
    assert report["BoR@2"].value == pytest.approx(math.log2(1 / (1 - Fraction(18 * 17, 20 * 19))), rel=1e-13)
    assert report["BoR@2"].n == 10
    without = evaluated(Numbers(), {**LABELS, "q1": {"d1": 1, "lost": 0}}).report
    assert without.corpus_size == 20
    assert "index lacks" not in notes(without)


def test_junk_in_the_labels_of_another_query_makes_harm_known() -> None:
    labels = {**LABELS, "not asked": {"d1": 0}}
    on_utility = {query: {d: 5 * grade or 1 for d, grade in row.items()} for query, row in labels.items()}
    assert evaluated(Numbers(), on_utility, scale="utility").report["Harm@2"].value == 0


def test_n_is_asked_when_the_evaluation_begins() -> None:
    retriever = Numbers()
    evaluator = SelectivityEvaluator(retriever, labels=LABELS, depths=[2])
    retriever.index.insert_nodes([TextNode(text="one more")])
    assert evaluator.evaluate_dataset(QUERIES).report.corpus_size == 21


def links(*objects) -> list[IndexNode]:
    """Three links to the first node of each document."""
    targets = enumerate(NODES[::2] * 3)
    return [IndexNode(id_=f"{i}", text="link", index_id=node.id_, obj=node if objects else None) for i, node in targets]


def vectors(nodes, **options) -> BaseRetriever:
    return VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=2)).as_retriever(similarity_top_k=9, **options)


def recursive(**options) -> RecursiveRetriever:
    return RecursiveRetriever("root", {"root": vectors([*links(), NODES[1]])}, **options)


def fused(*retrievers) -> QueryFusionRetriever:
    return QueryFusionRetriever(list(retrievers), num_queries=1, use_async=False, llm=MockLLM(), similarity_top_k=4)


def n_of(retriever, unknown: str | None = None) -> int | None:
    """N by the index, and what a warning says of it."""
    with pytest.warns(rs.SelectivityWarning, match=unknown) if unknown else contextlib.nullcontext():
        evaluator = SelectivityEvaluator(
            retriever, labels={"q": {"n0-0": 1}}, depths=[2], ids="exact", identity="node_id"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluator.evaluate_dataset({"q": "about 0"}, bootstrap=None).report.corpus_size


def test_n_counts_what_links_lead_to() -> None:
    assert n_of(recursive(node_dict={node.node_id: node for node in NODES})) == 11
    assert n_of(vectors(links("with objects"))) == 10
    engine = RetrieverQueryEngine.from_args(vectors(NODES), llm=MockLLM())
    engines = RecursiveRetriever("root", {"root": vectors(links()[:1])}, {"n0-0": engine})
    assert n_of(engines, "did not say how many passages it can return: .*what its links lead to") is None


def test_n_of_a_hybrid_counts_each_node_once_or_names_what_it_cannot_count() -> None:
    class Bare(BaseRetriever):
        def _retrieve(self, query_bundle):
            return [NodeWithScore(node=NODES[0])]

    assert n_of(fused(vectors(NODES), Bare()), "QueryFusionRetriever did not say .*Bare") is None
    BM25Retriever = pytest.importorskip("llama_index.retrievers.bm25").BM25Retriever
    assert n_of(fused(vectors(NODES[:12]), BM25Retriever.from_defaults(nodes=NODES[8:]))) == 20
    assert n_of(BM25Retriever.from_defaults(nodes=links("with objects"))) == 10


@pytest.mark.parametrize("others", [{}, dict.fromkeys(map(str, range(10)), 1)])
def test_r_counts_what_a_filter_leaves_as_n_does(others) -> None:
    nodes = [TextNode(id_=f"{i}", text=f"text {i}", metadata={"odd": i % 2}) for i in range(20)]
    retriever = vectors(nodes, filters=MetadataFilters(filters=[MetadataFilter(key="odd", value=1)]))
    labels = {"q": {**others, "0": 5, "1": 5, "2": 5, "19": 5}, "no odd one": {**others, "4": 5}}
    options = {"scale": "utility", "depths": [2], "measures": ["RandomSuccess", "RA-nWG", "Success", "PROC"]}
    evaluation = SelectivityEvaluator(retriever, labels=labels, identity="node_id", **options).evaluate_dataset()
    report = evaluation.report
    random = report["RandomSuccess@2"]
    assert (report.corpus_size, random.value, random.n) == (10, pytest.approx(1 - 28 / 45), 1)
    row, every = report.per_query()[-1], ("Success@2", "RA-nWG@2", "PROC@2")
    assert evaluation.results[0].metric_vals_dict == {name: row[name] for name in ("RandomSuccess@2", *every)}
    # What the filter leaves out is lost evidence, as in a report of the same lists.
    lists = {query: [found.node.node_id for found in retriever.retrieve(query)] for query in labels}
    whole = rs.evaluate(labels, {"r": lists}, corpus_size=1000, **options)
    assert all(report[name].value == whole[name].value for name in every)
    assert "Loss: The filter leaves out 3 of 5 relevant passages, all of 1 query." in str(report)


@pytest.mark.parametrize("by_text", [False, True])
def test_results_have_the_figures_of_their_evaluation(by_text) -> None:
    graded = {query: {f"n{i}-0": 5, f"n{i}-1": 1} for i, query in enumerate(QUERIES.values() if by_text else QUERIES)}
    options = {"corpus_size": 20, "depths": [2], "measures": ["BoR", "R"]}
    evaluation = SelectivityEvaluator(Numbers(), labels=graded, scale="utility", **options).evaluate_dataset(QUERIES)
    assert evaluation.results[1].expected_ids == ["n1-0"]
    assert repr(evaluation) == str(evaluation.report)
    of_results = report_from_results(evaluation.results, graded, scale="utility", **options)
    for report in (of_results, report_from_results(evaluation.results, **options)):
        assert [report[key].value for key in ("BoR@2", "R@2")] == [math.log2(1 / 0.1), 1]
    with pytest.raises(rs.InputError, match="no query has labels: the queries are"):
        report_from_results(evaluation.results, {"another": {"n1-0": 1}}, **options)


# -- retrievals that fail ------------------------------------------------------------------------------


class Failing(Numbers):
    """Queries 0 to 3 fail, in one of the ways that are there."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    async def _aretrieve(self, query_bundle):
        if int(query_bundle.query_str.split()[-1]) >= 4:
            return self.found(query_bundle.query_str)
        if self.way == "raises":
            raise ConnectionError("refused")
        if self.way == "times out":
            await asyncio.wait_for(asyncio.sleep(5), 0.001)
        if self.way == "is cancelled":
            task = asyncio.ensure_future(asyncio.sleep(5))
            task.cancel()
            await task
        return None


class Rerank(BaseNodePostprocessor):
    """Fails where its retriever does not."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        if int(query_bundle.query_str.split()[-1]) < 4:
            raise ConnectionError("refused")
        return nodes


@pytest.mark.parametrize(
    ("way", "says"),
    [
        ("raises", "ConnectionError: refused"),
        ("times out", "TimeoutError"),
        ("is cancelled", "CancelledError"),
        ("returns None", "TypeError: 'NoneType' object is not iterable"),
    ],
)
def test_a_retrieval_that_fails_is_a_failure_of_its_query(way, says) -> None:
    with pytest.warns(rs.SelectivityWarning, match=rf"4 of 10 retrievals failed .* query 'q0': {says}"):
        evaluation = evaluated(Failing(way))
    success = evaluation.report["Success@2"]
    assert (success.value, success.n) == (0.6, 10)
    failed = f"4 of 10 retrievals failed and count as queries that found nothing; the first is query 'q0': {says}"
    assert failed in notes(evaluation.report)
    assert facts(evaluation.report, "retrieval")["failed"] == 4
    assert [result.retrieved_ids for result in evaluation.results[:4]] == [[]] * 4


def test_a_postprocessor_that_fails_leaves_the_pool() -> None:
    with pytest.warns(rs.SelectivityWarning, match="4 of 10 retrievals failed behind the retriever and"):
        report = evaluated(Numbers(), node_postprocessors=[Rerank()], measures=["Success"]).report
    assert "Next: Mend the selection first: 4 of 10 retrievals failed or came back empty behind the" in str(report)
    assert (report["Success@2"].value, facts(report, "retrieval")["failed"]) == (0.6, 4)
    with pytest.raises(ConnectionError, match="refused"):
        SelectivityEvaluator(Numbers(), node_postprocessors=[Rerank()]).evaluate("about 1", ["n1-0"])


class Broken(Numbers):
    def _retrieve(self, query_bundle):
        raise RuntimeError("no such collection")


def test_if_all_fail_the_cause_is_shown() -> None:
    message = r"all 10 retrievals failed, the first with RuntimeError: no such"
    with pytest.raises(rs.InputError, match=message) as caught:
        evaluated(Broken())
    assert isinstance(caught.value.__cause__, RuntimeError)

    async def inside_a_loop() -> None:
        await SelectivityEvaluator(Broken(), labels=LABELS).aevaluate_dataset(QUERIES)

    with pytest.raises(rs.InputError, match="no such collection"):
        asyncio.run(inside_a_loop())


# -- retrievers without asynchronous code --------------------------------------------------------------


class OnlySync(Numbers):
    error: ClassVar[Exception] = NotImplementedError()

    async def _aretrieve(self, query_bundle):
        raise self.error


class OnlySyncClient(OnlySync):
    error: ClassVar[Exception] = ValueError("Async client is not initialized!\nPlease pass in `aclient`")


@pytest.mark.parametrize("retriever", [OnlySync, OnlySyncClient])
def test_a_retriever_that_is_only_sync_is_asked_in_threads(retriever) -> None:
    report = evaluated(retriever()).report
    assert report["Success@2"].value == 1
    counts = {"queries": 10, "failed": 0, "scores_nan": 0, "empty_passages": 0}
    assert facts(report, "retrieval") == {**counts, "sync": True}
    said = str(retriever.error).partition("\n")[0]
    assert f"asked in threads, since it has no asynchronous code ({type(retriever.error).__name__}" in notes(report)
    assert said in notes(report)
    assert "asked in threads" not in notes(evaluated(Numbers()).report)


# -- scores and texts ----------------------------------------------------------------------------------


def test_scores_that_are_nan_and_nodes_without_text_are_counted() -> None:
    class Odd(Numbers):
        def found(self, query):
            nodes = super().found(query)
            empty = TextNode(text=" ", relationships=NODES[0].relationships)
            return [NodeWithScore(node=empty, score=math.nan), *nodes] if query.endswith(("1", "2")) else nodes

    with pytest.warns(rs.SelectivityWarning) as heard:
        evaluation = evaluated(Odd())
    with pytest.warns(rs.SelectivityWarning) as of_nodes:
        run_from_nodes({query: Odd().retrieve(text) for query, text in QUERIES.items()})
    places = [" ".join(str(each.message) for each in said) for said in (heard, of_nodes)]
    is_nan, empty = (f"2 of 32 retrieved passages have {what}, in 2 of 10" for what in ("the score NaN", "no text"))
    assert all(is_nan in said and empty in said for said in (*places, notes(evaluation.report)))
    with pytest.warns(rs.SelectivityWarning, match=empty):
        report_from_results(evaluation.results)


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL)
