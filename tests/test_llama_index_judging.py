"""LlamaIndex evaluators that ask a judge: its own batch runner, and a local server with the real client."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.evaluation import BatchEvalRunner
from rag_selectivity_llama_index import (
    ContextEntityRecallEvaluator,
    ContextPrecisionEvaluator,
    ContextRecallEvaluator,
    ContextRelevanceEvaluator,
)

import rag_selectivity as rs
from rag_selectivity.grading.openai_judge import OpenAIJudge
from tests.judge_server import KEY, JudgeServer
from tests.test_claims import REFERENCE, respond

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.contract]
FAST = rs.Limits(concurrency=4, backoff=0.01, attempts=1)


def test_claim_checks_share_their_calls_and_take_the_reference_along(tmp_path) -> None:
    contexts = ["c1 useful s1 n1 Einstein", "n2", "c2 c3 useful s2 Ulm"]
    with JudgeServer(respond) as server:
        judge = OpenAIJudge("m", base_url=server.url, api_key=KEY)
        classes = (
            ContextPrecisionEvaluator,
            ContextRecallEvaluator,
            ContextEntityRecallEvaluator,
            ContextRelevanceEvaluator,
        )
        evaluators = {cls.__name__: cls(judge, store=tmp_path / "s.db", limits=FAST) for cls in classes}
        runner = BatchEvalRunner(evaluators, workers=8)
        results = asyncio.run(runner.aevaluate_response_strs(["who?"], ["…"], [contexts], reference=[REFERENCE]))
        scores = {name: found[0].score for name, found in results.items()}
        assert len(server.bodies) == 1 + len(contexts)
        found = rs.check_claims(
            [{"user_input": "who?", "retrieved_contexts": contexts, "reference": REFERENCE}],
            store=tmp_path / "s.db",
            judge=judge,
            depths=[3],
        )
        assert len(server.bodies) == 1 + len(contexts)
        top = ContextPrecisionEvaluator(judge, store=tmp_path / "s.db", k=1).evaluate(
            query="who?", contexts=contexts, reference=REFERENCE
        )
        without = evaluators["ContextRecallEvaluator"].evaluate(query="who?", contexts=contexts)
    assert scores == {
        "ContextPrecisionEvaluator": found["ContextPrecision@3"].value,
        "ContextRecallEvaluator": 0.75,
        "ContextEntityRecallEvaluator": pytest.approx(2 / 3),
        "ContextRelevanceEvaluator": 0.5,
    }
    assert top.score == 1
    assert "supported by 1: c1" in results["ContextRecallEvaluator"][0].feedback
    assert "not supported: c4" in results["ContextRecallEvaluator"][0].feedback
    assert without.invalid_reason == "ContextRecall needs a reference answer: reference=…"
