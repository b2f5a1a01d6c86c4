"""Golden sets in the forms of other tools: the real frameworks read them, and mistakes are named."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.errors import InputError
from rag_selectivity.golden import GoldenSet, export
from tests.golden_world import CORPUS, QUERIES, RUNS, golden_set

pytestmark = pytest.mark.contract

WITH_CORPUS = ["beir", "llama-index"]


@pytest.fixture(scope="module")
def golden(tmp_path_factory) -> GoldenSet:
    return golden_set(tmp_path_factory.mktemp("golden"))


# -- there and back ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", WITH_CORPUS)
def test_a_whole_corpus_goes_with_it(form, golden, tmp_path) -> None:
    (*_, corpus) = export(golden, tmp_path / "form", form, corpus=CORPUS).files[: 1 + (form == "beir")]
    text = corpus.read_text(encoding="utf-8")
    lines = text.splitlines() if form == "beir" else []
    texts = [json.loads(line)["text"] for line in lines] or json.loads(text)["corpus"].values()
    assert sorted(texts) == sorted(CORPUS.values())
    with pytest.raises(InputError, match=r"not the one that golden v1 was made with \(24 passages then, 1 now\)"):
        export(golden, tmp_path / "form", form, corpus={"d1": "x"})


# -- the real frameworks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keep_grades", "written"),
    [(False, {1: 0, 2: 0, 3: 0, 4: 1, 5: 2}), (True, {grade: grade for grade in range(1, 6)})],
)
def test_trec_and_beir_files_are_read_as_such(keep_grades, written, golden, tmp_path) -> None:
    expected = {q: {p: written[grade] for p, grade in grades.items()} for q, grades in golden.qrels().to_dict().items()}
    export(golden, tmp_path / "trec", "trec", keep_grades=keep_grades)
    export(golden, tmp_path / "beir", "beir", corpus=CORPUS, keep_grades=keep_grades)
    assert rs.read_qrels(tmp_path / "trec" / "qrels.trec").to_dict() == expected
    assert rs.read_qrels(tmp_path / "beir").to_dict() == expected
    ir_measures = pytest.importorskip("ir_measures")
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "trec" / "qrels.trec")))
    assert {(each.query_id, each.doc_id, each.relevance) for each in qrels} == {
        (q, p, grade) for q, grades in expected.items() for p, grade in grades.items()
    }


@pytest.mark.parametrize("form", ["trec", "beir"])
def test_what_other_tools_take_as_relevant_by_default_is_relevant(form, golden, tmp_path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    export(golden, tmp_path / "form", form)
    file = {"trec": "qrels.trec", "beir": "qrels/test.tsv"}[form]
    lines = [line.split() for line in (tmp_path / "form" / file).read_text(encoding="utf-8").splitlines()]
    qrels: dict[str, dict[str, int]] = {}
    for fields in lines[form == "beir" :]:
        qrels.setdefault(fields[0], {})[fields[-2]] = int(fields[-1])
    lists = {q: {p: 9.0 - rank for rank, p in enumerate(passages)} for q, passages in RUNS["left"].items()}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"P.3", "map", "num_rel"}).evaluate(lists)
    ours = rs.evaluate(golden.qrels(), {"left": RUNS["left"]}, scale="utility", measures=["P@3", "AP"], bootstrap=None)
    assert sum(of["P_3"] for of in theirs.values()) / 6 == pytest.approx(ours["P@3"].value)
    assert sum(of["map"] for of in theirs.values()) / 6 == pytest.approx(ours["AP"].value)


def test_ragas_reads_the_samples(golden, tmp_path) -> None:
    ragas = pytest.importorskip("ragas")
    export(golden, tmp_path / "form", "ragas")
    file = tmp_path / "form" / "ragas.jsonl"
    dataset = ragas.EvaluationDataset.from_jsonl(file)
    assert dataset.get_sample_type() is ragas.SingleTurnSample
    grades = golden.qrels().to_dict()
    for sample, (query, text) in zip(dataset, QUERIES.items(), strict=True):
        assert sample.user_input == text
        assert set(sample.reference_context_ids) == {p for p, grade in grades[query].items() if grade >= 4}
        assert sample.reference_contexts == [CORPUS[p] for p in sample.reference_context_ids]
        assert sample.reference == f"answer {query[1:]}"


def test_langsmith_takes_the_examples(golden, tmp_path) -> None:
    schemas = pytest.importorskip("langsmith.schemas")
    export(golden, tmp_path / "form", "langsmith")
    rows = [json.loads(row) for row in (tmp_path / "form" / "examples.jsonl").read_text(encoding="utf-8").splitlines()]
    grades = golden.qrels().to_dict()
    for row, (query, text) in zip(rows, QUERIES.items(), strict=True):
        example = schemas.Example(**row)
        created = schemas.ExampleCreate(
            reference_outputs=row["outputs"], **{k: v for k, v in row.items() if k != "outputs"}
        )
        assert example.id == created.id
        assert example.inputs == created.inputs == {"question": text}
        assert example.outputs == created.reference_outputs
        assert example.outputs["grades"] == grades[query]
        assert set(example.outputs["relevant"]) == {p for p, grade in grades[query].items() if grade >= 4}
        assert example.metadata["query_id"] == query
        assert example.metadata["weight"] == golden.weights[query]
    # What the examples say gives the same figures in LangSmith's evaluators.
    langchain = pytest.importorskip("rag_selectivity_langchain")
    outputs = [{"documents": RUNS["left"][row["metadata"]["query_id"]]} for row in rows]
    for measure, options in (
        ("P@2", {}),
        ("P@2", {"relevant": "grades", "scale": "utility"}),
        ("RA-nWG@2", {"relevant": "grades", "scale": "utility"}),
    ):
        evaluator = langchain.summary_evaluator(measure, identity=None, **options)
        found = evaluator(outputs, [row["outputs"] for row in rows], [row["inputs"] for row in rows])
        expected = rs.evaluate(grades, {"left": RUNS["left"]}, scale="utility", measures=[measure])
        assert found["score"] == pytest.approx(expected[measure].value)


def test_llama_index_evaluates_with_the_dataset(golden, tmp_path) -> None:
    core = pytest.importorskip("llama_index.core")
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.evaluation import RetrieverEvaluator
    from llama_index.core.schema import NodeWithScore, TextNode
    from rag_selectivity_llama_index import SelectivityEvaluator

    assert core
    export(golden, tmp_path / "form", "llama-index", corpus=CORPUS)
    data = json.loads((tmp_path / "form" / "dataset.json").read_text(encoding="utf-8"))
    assert data["corpus"] == CORPUS
    ids = {text: query for query, text in data["queries"].items()}

    class Listed(BaseRetriever):
        """Retrieves the list of a run from the corpus of the dataset."""

        def _retrieve(self, query_bundle: Any) -> list[Any]:
            listed = RUNS["left"][ids[query_bundle.query_str]]
            return [NodeWithScore(node=TextNode(id_=p, text=data["corpus"][p]), score=1.0) for p in listed]

    same = {"hit_rate": "Success@3", "mrr": "RR", "precision": "P@3", "recall": "R@3", "ap": "AP@3"}
    evaluator = RetrieverEvaluator.from_metric_names(list(same), retriever=Listed())
    results = [evaluator.evaluate(text, data["relevant_docs"][q]) for q, text in data["queries"].items()]
    labels = golden.qrels().to_dict()
    expected = rs.evaluate(labels, {"left": RUNS["left"]}, scale="utility", measures=list(same.values()))
    for name, measure in same.items():
        mean = sum(each.metric_vals_dict[name] for each in results) / len(results)
        assert mean == pytest.approx(expected[measure].value)
    dataset = SimpleNamespace(queries=data["queries"], relevant_docs=data["relevant_docs"])
    own = SelectivityEvaluator(Listed(), corpus_size=len(CORPUS), measures=["BoR@3"])
    assert own.evaluate_dataset(dataset).report["BoR@3"].value == pytest.approx(
        rs.evaluate(labels, {"left": RUNS["left"]}, scale="utility", corpus_size=24, measures=["BoR@3"])["BoR@3"].value
    )
