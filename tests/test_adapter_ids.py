"""Ids and texts that adapters take: texts and whole numbers. 1.0 is the id 1, and anything else is an error."""

import asyncio
from math import nan

import numpy as np
import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract

LABELS = {"who?": {"1": 1, "8": 1}}
NO_IDS = [[1, 8], {"id": 1}, None, 1.5, nan, True, b"1", Ellipsis]


@pytest.mark.parametrize("ids", [["1", "8"], [1, 8], [1.0, 8.0], np.array([1, 8]), np.array([1.0, 8.0]), ("1", 8.0)])
def test_ragas_whole_numbers_are_ids(ragas, ids) -> None:
    row = {"user_input": "who?", "retrieved_context_ids": ids}
    assert ragas.selectivity([row], LABELS, measures=["P"], depths=[2], bootstrap=None)["P@2"].value == 1.0
    assert asyncio.run(ragas.SelectivityMetric("P@2", LABELS).ascore(**row)).value == 1.0
    assert ragas.RowFigures(LABELS, measures=["Success"], depths=[2]).score(**row) == {"Success@2": 1.0}
    own = {"user_input": "who?", "retrieved_context_ids": ["1", "8"], "reference_context_ids": ids}
    assert ragas.selectivity([own], measures=["P"], depths=[2], bootstrap=None)["P@2"].value == 1.0


@pytest.mark.parametrize("wrong", NO_IDS, ids=repr)
@pytest.mark.parametrize("column", ["retrieved_context_ids", "reference_context_ids", "retrieved_contexts"])
def test_ragas_refuses_anything_else_and_names_sample_and_column(ragas, wrong, column) -> None:
    good = {"user_input": "when?", "retrieved_context_ids": ["1"], "reference_context_ids": ["1"]}
    row = {"user_input": "who?", "retrieved_context_ids": ["1"], "reference_context_ids": ["1"]}
    if column == "retrieved_contexts":
        del row["retrieved_context_ids"]
    row[column] = ["1", wrong]
    with pytest.raises(rs.InputError, match=rf"sample 2.*{column}"):
        ragas.selectivity([good, row], bootstrap=None, measures=["P"], depths=[2])
    with pytest.raises(rs.InputError, match=rf"sample 1.*{column}"):
        asyncio.run(ragas.SelectivityMetric("P@2").ascore(**row))


@pytest.mark.parametrize("wrong", [None, ["x", "y"]])
def test_ragas_grades_texts_only(ragas, wrong, tmp_path) -> None:
    asked = []

    def judge(query: str, passage: str) -> int:
        asked.append(passage)
        return 3

    rows = [{"user_input": "who?", "retrieved_contexts": ["a text", wrong]}]
    with pytest.raises(rs.InputError, match=r"sample 1.*retrieved_contexts"):
        ragas.grade_dataset(rows, judge, tmp_path / "labels.db")
    assert asked == []


@pytest.mark.parametrize("wrong", NO_IDS[:2] + NO_IDS[3:6], ids=repr)
def test_ragas_pool_and_own_grades_and_id_column(ragas, wrong) -> None:
    row = {"user_input": "who?", "retrieved_context_ids": ["1"], "candidates": ["1", wrong], "id": wrong}
    options = {"measures": ["P"], "depths": [1], "bootstrap": None}
    with pytest.raises(rs.InputError, match=r"sample 1.*candidates"):
        ragas.selectivity([row], LABELS, pool="candidates", **options)
    with pytest.raises(rs.InputError, match=r"sample 1.*\bid\b"):
        ragas.selectivity([row], LABELS, id_column="id", **options)


@pytest.mark.parametrize("wrong", [*NO_IDS[:1], *NO_IDS[2:]], ids=repr)
def test_langsmith(wrong) -> None:
    pytest.importorskip("langchain_core")
    from rag_selectivity_langchain import run_evaluator, summary_evaluator

    options = {"corpus_size": 10}
    assert summary_evaluator("P@2", **options)([{"documents": [1.0, 8.0]}], [{"relevant": ["1", "8"]}])["score"] == 1.0
    with pytest.raises(rs.InputError, match=r"documents"):
        summary_evaluator("P@2", **options)([{"documents": ["1", wrong]}], [{"relevant": ["1", "8"]}])
    with pytest.raises(rs.InputError, match=r"documents"):
        run_evaluator("P@2", scale="trec", **options)({"documents": ["1", wrong]}, {"relevant": ["1", "8"]})


@pytest.mark.parametrize("wrong", [*NO_IDS[:1], *NO_IDS[2:]], ids=repr)
def test_a_scorer_of_one_query_as_the_metrics_of_frameworks_use_it(wrong) -> None:
    scorer = rs.single.QueryScorer("P@2", labels=LABELS)
    assert scorer.figures([1.0, np.int64(8)], "who?")[0].value == 1.0
    with pytest.raises(rs.InputError, match=r"document|passage"):
        scorer.figures(["1", wrong], "who?")


def test_mlflow_documents_with_content_in_place_of_page_content() -> None:
    documents = [{"content": "Ada wrote it"}, {"page_content": "", "content": "Babbage"}, {"text": "Rome"}]
    labels = {"who?": {rs.single.text_id("Ada wrote it"): 1, rs.single.text_id("Babbage"): 1}}
    assert rs.single.QueryScorer("P@3", labels=labels).figures(documents, "who?")[0].value == pytest.approx(2 / 3)
    pytest.importorskip("mlflow")
    import rag_selectivity_mlflow

    made = rag_selectivity_mlflow.selectivity_scorer("P@3", labels=labels, scale="trec")
    (feedback,) = made(inputs={"question": "who?"}, outputs={"documents": documents})
    assert feedback.value == pytest.approx(2 / 3)
