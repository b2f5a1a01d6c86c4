"""Answers by the frameworks' own models, chains and synthesizers, and the scores of Ragas joined by row."""

import re
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.answers.given import answers_given
from rag_selectivity.errors import InputError
from rag_selectivity.grading.judge import GradingError
from tests.answer_world import World, world

pytestmark = pytest.mark.contract


@pytest.fixture
def made() -> World:
    return world(6, 0, 3, hit=lambda i: None if i % 3 == 2 else 1 + i % 2)


def options(made: World, store: Path, **more: Any) -> dict[str, Any]:
    references = {query: f"decisive text {query[1:]}" for query in made.queries}
    given = {"corpus": made.corpus, "queries": made.queries, "references": references, "qrels": made.qrels}
    return {**given, "scale": "utility", "store": store, "depths": [2], "progress": False, **more}


def read_by_rule(text: str) -> str:
    """The decisive text of the question, if the prompt holds it."""
    found = re.search(r"Which is the text of (\d+)\?", text)
    assert found is not None
    wanted = f"decisive text {found[1]}"
    return wanted if re.search(rf"{wanted}\b", text.replace(found[0], "")) else "nothing"


def test_a_llama_index_synthesizer_answers_from_chosen_sets(made: World, tmp_path: Path) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core import get_response_synthesizer
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from rag_selectivity_llama_index import SynthesizerModel

    prompts: list[str] = []

    class Reading(CustomLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name="reading")

        def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
            prompts.append(prompt)
            return CompletionResponse(text=read_by_rule(prompt))

        def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            raise NotImplementedError

    model = SynthesizerModel(get_response_synthesizer(llm=Reading()), "compact, reading")
    report = rs.measure_answers(made.runs, **options(made, tmp_path / "a.db", model=model, cite=False, abstain=False))
    held = [f"d{query[1:]}" in passages[:2] for query, passages in made.runs["first"].items()]
    assert report["first", 2, "exact_match"].value == pytest.approx(sum(held) / 6)
    assert report["ideal", None, "exact_match"].value == 1
    assert not [shown for shown, _ in report.figures if shown.run == "closed-book"]
    first = next(row for row in report.answers if row.shown.run == "first")
    (prompt,) = [
        each
        for each in prompts
        if all(made.corpus[passage] in each for passage in first.passages) and made.queries[first.query] in each
    ]
    places = [prompt.index(made.corpus[passage]) for passage in first.passages]
    assert places == sorted(places)
    with pytest.raises(InputError, match="leave the control 'closed-book' out"):
        rs.measure_answers(made.runs, **options(made, tmp_path / "a.db", model=model, controls=["closed-book"]))
    with pytest.raises(GradingError, match="cite=False"):
        rs.measure_answers(made.runs, **options(made, tmp_path / "b.db", model=model))
    with pytest.raises(GradingError, match="response synthesizer of LlamaIndex is needed"):
        SynthesizerModel("refine", "x")


def test_a_langchain_chain_answers_and_its_runs_are_known(made: World, tmp_path: Path) -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.callbacks import AsyncCallbackHandler
    from langchain_core.runnables import RunnableLambda
    from rag_selectivity_langchain import ChainModel, feedback_of, run_id_of

    traced: dict[Any, Any] = {}

    class Tracer(AsyncCallbackHandler):
        async def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: Any, **more: Any) -> None:
            traced[run_id] = (inputs["input"], [document.id for document in inputs["context"]])

    def read(given: dict[str, Any]) -> str:
        return read_by_rule(given["input"] + "\n".join(document.page_content for document in given["context"]))

    model = ChainModel(RunnableLambda(read).with_config(callbacks=[Tracer()]), "chain")
    report = rs.measure_answers(made.runs, **options(made, tmp_path / "a.db", model=model, cite=False, abstain=False))
    assert report["closed-book", 0, "exact_match"].value == 0
    for row in report.answers:
        question, passages = traced[run_id_of(row.prompt)]
        assert question == made.queries[row.query]
        assert passages == list(row.passages)
    feedback = feedback_of(report)
    assert {each["run_id"] for each in feedback} == set(traced)
    assert {each["key"] for each in feedback} == {"exact_match", "f1"}
    with pytest.raises(GradingError, match="Runnable of LangChain is needed"):
        ChainModel("chain", "x")


def test_a_langchain_chat_model_answers(made: World, tmp_path: Path) -> None:
    pytest.importorskip("langchain_core")
    import json

    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from rag_selectivity_langchain import ChatModelJudge

    said = (AIMessage(json.dumps({"answer": "decisive text 1", "passages": [1], "abstain": False})) for _ in range(99))
    model = ChatModelJudge(GenericFakeChatModel(messages=said), name="fake")
    report = rs.measure_answers(made.runs, **options(made, tmp_path / "a.db", model=model))
    assert report["first", 2, "exact_match"].value == pytest.approx(1 / 6)


def test_scores_of_ragas_are_joined_by_row(made: World) -> None:
    pytest.importorskip("ragas")
    from ragas import EvaluationDataset, evaluate
    from ragas.metrics import ExactMatch

    rows = [
        {
            "user_input": made.queries[query],
            "response": read_by_rule(made.queries[query] + "\n".join(made.corpus[p] for p in passages[:2])),
            "reference": f"decisive text {query[1:]}",
            "retrieved_context_ids": passages[:2],
        }
        for query, passages in made.runs["first"].items()
    ]
    result = evaluate(EvaluationDataset.from_list(rows), metrics=[ExactMatch()], show_progress=False)
    table = [
        {"query_id": query, "run": "first", "k": 2, **row, **scores}
        for query, row, scores in zip(made.queries, rows, result.scores, strict=True)
    ]
    report = answers_given(table, column="exact_match", run=made.runs)
    assert report["first", 2, "exact_match"].value == pytest.approx(4 / 6)
    table[0]["retrieved_context_ids"] = ["d0", "o7"]
    with pytest.raises(InputError, match="row 1: the answer of query 'q0' is not to what first retrieved"):
        answers_given(table, column="exact_match", run=made.runs)
