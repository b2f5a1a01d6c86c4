"""LlamaIndex evaluators that ask a judge: its own models and batch runner, and a local server with the real client."""

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BatchEvalRunner
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.schema import NodeWithScore, TextNode
from rag_selectivity_llama_index import (
    ContextEntityRecallEvaluator,
    ContextPrecisionEvaluator,
    ContextRecallEvaluator,
    ContextRelevanceEvaluator,
    LLMJudge,
    UtilityEvaluator,
)

import rag_selectivity as rs
from rag_selectivity.grading.openai_judge import OpenAIJudge
from rag_selectivity.single import Labels, text_id
from tests.judge_server import KEY, JudgeServer
from tests.test_claims import REFERENCE, respond

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.inside]
FAST = rs.Limits(concurrency=4, backoff=0.01, attempts=1)


class Graders:
    """A LlamaIndex model that gives the grade that stands at the end of a passage, and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def llm(self) -> LLMJudge:
        def answer(messages, **_) -> ChatMessage:
            self.calls += 1
            text = str(messages[-1].content).split("begin passage]\n")[1].split("\n")[0]
            if "explode" in text:
                raise ConnectionError("the model is away")
            call = ToolCallBlock(
                tool_call_id="1", tool_name="Grade", tool_kwargs={"reason": f"read {text}", "grade": int(text[-1])}
            )
            return ChatMessage(role="assistant", blocks=[call])

        return LLMJudge(MockFunctionCallingLLM(response_generator=answer), name="mock")


def test_a_set_of_contexts_is_graded_once_and_scored(tmp_path) -> None:
    graders = Graders()
    evaluator = UtilityEvaluator(graders.llm(), store=tmp_path / "s.db", limits=FAST)
    contexts = ["fact 5", "aside 3", "junk 1", "useful 4"]
    result = evaluator.evaluate(query="who?", contexts=contexts)
    assert (result.score, result.passing, result.harm, result.grades) == (0.5, True, 0.25, [5, 3, 1, 4])
    assert result.feedback.splitlines()[0] == "Precision4+@4 = 0.5, Harm@4 = 0.25"
    assert "1. grade 5: read fact 5" in result.feedback
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in contexts]
    again = evaluator.evaluate_response(query="who?", response=Response("…", source_nodes=nodes))
    assert (again.score, again.response, graders.calls) == (0.5, "…", 4)
    assert Labels.of(tmp_path / "s.db").of_query("who?") == {text_id(text): int(text[-1]) for text in contexts}
    clean = evaluator.evaluate(query="who?", contexts=["fact 5"])
    assert (clean.harm, clean.score) == (0.0, 1.0)


def test_with_a_pool_the_score_is_the_share_of_its_best_evidence(tmp_path) -> None:
    pool = {"who?": ["fact 5", "useful 4", "other 4", "aside 3", "junk 1"]}
    evaluator = UtilityEvaluator(Graders().llm(), store=tmp_path / "s.db", pool=pool, limits=FAST)
    result = evaluator.evaluate(query="who?", contexts=["useful 4", "junk 1"])
    ids = {text: text_id(text) for text in pool["who?"]}
    expected = rs.evaluate(
        {"q": {ids[text]: int(text[-1]) for text in pool["who?"]}},
        {"q": [ids["useful 4"], ids["junk 1"]]},
        scale="utility",
        measures=["RA-nWG"],
        depths=[2],
        bootstrap=None,
    )
    assert result.score == pytest.approx(expected["RA-nWG@2"].value)
    first = UtilityEvaluator(
        Graders().llm(), store=tmp_path / "s.db", measure="RA-nWG@1", pool=pool, passing_score=0.9, limits=FAST
    ).evaluate(query="who?", contexts=["useful 4", "junk 1"])
    assert (first.score, first.passing) == (pytest.approx(0.25), False)


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
