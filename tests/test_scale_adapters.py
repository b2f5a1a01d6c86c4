"""Scale, expected ids, junk and N in the adapters: the same figures in every path."""

import asyncio
import json
import math
from typing import Any

import pytest

from rag_selectivity import InputError

ragas = pytest.importorskip("ragas")
pytest.importorskip("llama_index.core")

from rag_selectivity_llama_index import SelectivityMetric as LlamaIndexMetric  # noqa: E402
from rag_selectivity_llama_index import report_from_results  # noqa: E402
from rag_selectivity_ragas import BoR as ragas_bor  # noqa: E402
from rag_selectivity_ragas import SelectivityMetric as RagasMetric  # noqa: E402
from rag_selectivity_ragas import selectivity  # noqa: E402
from ragas import EvaluationDataset, SingleTurnSample  # noqa: E402

pytestmark = pytest.mark.contract


def sample(question: str, ids: list[str], **more: Any) -> SingleTurnSample:
    return SingleTurnSample(user_input=question, retrieved_context_ids=ids, **more)


def graded(question: str, ids: list[str], grades: dict[str, int], size: int | None = None) -> SingleTurnSample:
    extras = {"utility_grades": json.dumps(grades)} | ({} if size is None else {"corpus_size": str(size)})
    return sample(question, ids, rubrics=extras)


def score(metric: Any, one: SingleTurnSample) -> float:
    return float(asyncio.run(metric.single_turn_ascore(one)))


def test_harm_row_by_row_and_as_a_whole_are_one_figure() -> None:
    rows = [graded("a?", ["d1", "d2"], {"d1": 5, "d2": 1}), graded("b?", ["d3", "d4"], {"d3": 5, "d4": 4})]
    assert [score(RagasMetric("Harm@2"), row) for row in rows] == [0.5, 0.0]
    whole = selectivity(EvaluationDataset(samples=rows), measures=["Harm@2"], bootstrap=None)
    assert whole["Harm@2"].value == 0.25
    labels = {"a?": {"d1": 5, "d2": 1}, "b?": {"d3": 5, "d4": 4}}
    assert [score(RagasMetric("Harm@2", labels, scale="utility"), row) for row in rows] == [0.5, 0.0]
    by_labels = selectivity(rows, labels, scale="utility", measures=["Harm@2"], bootstrap=None)
    assert by_labels["Harm@2"].value == 0.25


def test_a_graded_row_and_a_row_of_references() -> None:
    """A reference was taken for grade 1: Harm .5 of the expected passage, and R = 0."""
    rows = [graded("a?", ["d1", "d2"], {"d1": 5, "d2": 1}), sample("b?", ["d3", "d4"], reference_context_ids=["d3"])]
    report = selectivity(rows, measures=["Harm@2", "R@2"], bootstrap=None)
    assert report["R@2"].value == 1.0
    assert report["Harm@2"].value == 0.25
    assert any("1 of 3 labels are expected ids without a grade" in note for note in report.runs["ragas"].notes)
    assert [score(RagasMetric("R@2"), row) for row in rows] == [1.0, 1.0]


def test_one_row_without_n_is_named() -> None:
    rows = [
        graded("a?", ["d1"], {"d1": 5, "d2": 1}, size=100),
        graded("b?", ["d3"], {"d3": 5}),
        graded("c?", ["d5"], {"d5": 4}, size=100),
    ]
    with pytest.raises(InputError, match=r"1 of 3 samples have no corpus_size \(the first is sample 2\)"):
        selectivity(rows, bootstrap=None)
    _, random_success = ragas_bor(k=1)
    assert math.isnan(score(random_success, rows[1]))
    assert "no corpus_size" in str(random_success.score(**rows[1].model_dump()).reason)
    assert score(random_success, rows[0]) == pytest.approx(1 / 100)


def test_the_expected_passage_of_llama_index_is_no_junk() -> None:
    labels = {"graded?": {"d1": 5, "d2": 1}}
    metric = LlamaIndexMetric("Harm@1", labels, scale="utility")
    assert metric.compute(query="other?", expected_ids=["d7"], retrieved_ids=["d7"]).score == 0.0
    recall = LlamaIndexMetric("R@1", labels, scale="utility")
    assert recall.compute(query="other?", expected_ids=["d7"], retrieved_ids=["d7"]).score == 1.0


def test_results_of_llama_index_without_n() -> None:
    from llama_index.core.evaluation.retrieval.base import RetrievalEvalResult

    result = RetrievalEvalResult(
        query="a?", expected_ids=["d1"], retrieved_ids=["d1"], retrieved_texts=["text"], metric_dict={}
    )
    report = report_from_results([result], bootstrap=None)
    assert "number of chunks in your index" in report.absent["BoR"]


def test_grades_of_rows_that_have_no_junk_say_that_there_is_none() -> None:
    rows = [graded("a?", ["d1", "d2"], {"d1": 5, "d2": 3})]
    assert selectivity(rows, measures=["Harm@2"], bootstrap=None)["Harm@2"].value == 0.0
