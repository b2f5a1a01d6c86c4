"""Scores of answers from the frameworks' own results, joined by row with the figures of the same rows."""

import asyncio
import math
from datetime import datetime
from uuid import UUID

import numpy as np
import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract

QUESTIONS = [f"what is {i}?" for i in range(12)]
LISTS = {question: ["a", "c", "b"] if i % 3 else ["c", "a", "b"] for i, question in enumerate(QUESTIONS)}
SCORES = {question: round(0.1 + 0.07 * i, 2) for i, question in enumerate(QUESTIONS)}


def test_a_column_of_an_evaluation_by_ragas() -> None:
    pytest.importorskip("ragas")
    import rag_selectivity_ragas as rsr

    from tests.ragas_rows import LABELS as GRADES
    from tests.ragas_rows import run

    # Any column of the evaluation can be the score.
    result = run([rsr.SelectivityMetric("Harm@2", GRADES, scale="utility")])
    name = next(iter(result.scores[0]))
    report = rsr.selectivity(result, GRADES, scale="utility", measures=["P", "Harm"], depths=[2])
    read = rsr.answer_scores(result, name)
    part = report.runs["ragas"]
    figures = dict(zip(part.queries, part.per_query["Harm@2"].tolist(), strict=True))
    assert read == pytest.approx({query: figures.get(query, math.nan) for query in read}, nan_ok=True)
    found = rs.validate(report, read, bootstrap=rs.Bootstrap(50))
    assert [row.n for row in found.main_rows if row.measure == "Harm@2"] == [
        int(np.isfinite(list(read.values())).sum())
    ]
    with pytest.raises(rs.InputError, match="no row has the metric 'answer_correctness'"):
        rsr.answer_scores(result, "answer_correctness")


def test_rows_of_an_experiment_hold_their_scores() -> None:
    pytest.importorskip("ragas")
    import rag_selectivity_ragas as rsr

    rows = [
        {"user_input": question, "retrieved_context_ids": LISTS[question], "answer_correctness": SCORES[question]}
        for question in QUESTIONS[:3]
    ]
    assert rsr.answer_scores(rows, "answer_correctness") == {q: SCORES[q] for q in QUESTIONS[:3]}


def test_results_of_an_evaluator_of_llama_index() -> None:
    pytest.importorskip("llama_index.core")
    import rag_selectivity_llama_index as rsl
    from llama_index.core.evaluation import BaseEvaluator, BatchEvalRunner, EvaluationResult

    class ByLength(BaseEvaluator):
        """The score of a response is its length."""

        def _get_prompts(self):
            return {}

        def _update_prompts(self, prompts) -> None:
            pass

        async def aevaluate(self, query=None, response=None, contexts=None, **_) -> EvaluationResult:
            return EvaluationResult(query=query, response=response, score=float(len(response)))

    runner = BatchEvalRunner({"length": ByLength()}, show_progress=False)
    responses = ["x" * (i + 1) for i in range(12)]
    results = asyncio.run(
        runner.aevaluate_response_strs(queries=QUESTIONS, response_strs=responses, contexts_list=[[]] * 12)
    )["length"]
    assert rsl.answer_scores(results) == {question: i + 1.0 for i, question in enumerate(QUESTIONS)}
    invalid = [EvaluationResult(query="q", invalid_result=True, score=0.0), EvaluationResult(query="q", score=1.0)]
    assert list(rsl.answer_scores(invalid).values()) == [None, 1.0]
    with pytest.raises(rs.InputError, match="result 1 does not name its query"):
        rsl.answer_scores([EvaluationResult(score=1.0)])


def test_results_of_an_experiment_of_langsmith() -> None:
    pytest.importorskip("langsmith")
    import rag_selectivity_langchain as rsc
    from langsmith.evaluation import EvaluationResult
    from langsmith.schemas import Example, Run

    def row(i: int) -> dict:
        number = UUID(int=i + 1)
        run = Run(
            id=number, name="target", start_time=datetime(2025, 1, 1), run_type="chain", inputs={}, trace_id=number
        )
        example = Example(id=number, inputs={"question": QUESTIONS[i]}, dataset_id=number, created_at=datetime.now())
        results = [EvaluationResult(key="correctness", score=SCORES[QUESTIONS[i]])]
        return {"run": run, "example": example, "evaluation_results": {"results": results}}

    rows = [row(i) for i in range(12)]
    assert rsc.answer_scores(rows, "correctness") == SCORES
    by_run = rsc.answer_scores(rows, "correctness", question=None)
    assert list(by_run) == [str(UUID(int=i + 1)) for i in range(12)]
    with pytest.raises(rs.InputError, match="no row has the metric 'corectness'"):
        rsc.answer_scores(rows, "corectness")
    with pytest.raises(rs.InputError, match="row 1: the inputs of its example have no 'input'"):
        rsc.answer_scores(rows, "correctness", question="input")
