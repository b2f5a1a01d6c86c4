"""Datasets for Ragas in other forms: frames, the columns of Ragas 0.1, conversations."""

import asyncio
from typing import Any

import pytest

import rag_selectivity as rs

pytest.importorskip("ragas")

from rag_selectivity_ragas import RowFigures, answer_scores, run_from_dataset, selectivity, text_id

pytestmark = pytest.mark.contract

ROWS: list[dict[str, Any]] = [
    {"user_input": "who?", "retrieved_context_ids": ["d1", "x"], "response": "Ada", "score": 1.0},
    {"user_input": "when?", "retrieved_context_ids": ["x", "y"], "response": None, "score": None},
]
LABELS = {"who?": {"d1": 1}, "when?": {"d2": 1}}
OPTIONS: dict[str, Any] = {"corpus_size": 64, "depths": [1], "bootstrap": None}


def test_a_frame_is_a_dataset() -> None:
    pandas = pytest.importorskip("pandas")
    report = selectivity(pandas.DataFrame(ROWS), LABELS, **OPTIONS)
    assert report["BoR@1"].value == selectivity(ROWS, LABELS, **OPTIONS)["BoR@1"].value == 5
    assert run_from_dataset(pandas.DataFrame(ROWS)).to_dict() == {"who?": ["d1", "x"], "when?": ["x", "y"]}
    assert answer_scores(pandas.DataFrame(ROWS), "score") == {"who?": 1.0, "when?": None}
    assert selectivity(pytest.importorskip("polars").DataFrame(ROWS), LABELS, **OPTIONS)["BoR@1"].value == 5


def test_a_frame_with_texts_alone_and_missing_cells() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        [
            {"user_input": "who?", "retrieved_contexts": ["one"], "retrieved_context_ids": float("nan")},
            {"user_input": "when?", "retrieved_contexts": ["two"], "retrieved_context_ids": ["d2"]},
        ]
    )
    assert selectivity(frame, {"who?": {"one": 1}, "when?": {"d2": 1}}, measures=["P"], **OPTIONS)["P@1"].value == 1
    # As grade_dataset names them: all by texts.
    assert run_from_dataset(frame).to_dict() == {"who?": [text_id("one")], "when?": [text_id("two")]}
    assert list(run_from_dataset(frame, identity="retrieved_context_ids")["when?"]) == ["d2"]
    with pytest.raises(rs.InputError, match="a passage has no doc, but id, text"):
        run_from_dataset(frame, identity="doc")
    of_ragas = pytest.importorskip("ragas").EvaluationDataset.from_list(ROWS).to_pandas()
    assert selectivity(of_ragas, LABELS, **OPTIONS)["BoR@1"].value == 5


@pytest.mark.parametrize("truth", [{"ground_truth": "Ada"}, {"ground_truths": ["Ada", "Ada Lovelace"]}, {}])
def test_the_columns_of_former_times(truth) -> None:
    rows = [{"question": "who?", "contexts": ["one", "two"], "answer": "Ada", **truth}]
    labels = {"who?": {"one": 1}}
    assert selectivity(rows, labels, measures=["P"], **{**OPTIONS, "depths": [2]})["P@2"].value == 0.5
    assert asyncio.run(RowFigures(labels, measures=["P"], depths=[2]).ascore(**rows[0])) == {"P@2": 0.5}
    of_hub = pytest.importorskip("datasets").Dataset.from_list(rows)
    assert selectivity(of_hub, labels, measures=["P"], **{**OPTIONS, "depths": [2]})["P@2"].value == 0.5


def test_names_of_today_win() -> None:
    rows = [{"user_input": "who?", "question": "Q17", "retrieved_context_ids": ["d1"], "contexts": ["a text"]}]
    assert selectivity(rows, LABELS, measures=["P"], **OPTIONS)["P@1"].value == 1
    assert selectivity(rows, {"Q17": {"d1": 1}}, id_column="question", measures=["P"], **OPTIONS)["P@1"].value == 1


def test_a_conversation_is_known_by_its_last_question() -> None:
    from ragas.messages import AIMessage, HumanMessage

    turns = [HumanMessage(content="hello"), AIMessage(content="hello"), HumanMessage(content="who?")]
    for asked in (turns, [each.model_dump() for each in turns], [{"role": "user", "content": "who?"}]):
        rows = [{"user_input": asked, "retrieved_context_ids": ["d1"]}]
        assert selectivity(rows, LABELS, measures=["P"], **OPTIONS)["P@1"].value == 1


def test_a_multi_turn_sample_has_no_retrieval() -> None:
    from ragas import EvaluationDataset, MultiTurnSample
    from ragas.messages import HumanMessage

    sample = MultiTurnSample(user_input=[HumanMessage(content="who?")])
    for dataset in ([sample], EvaluationDataset(samples=[sample])):
        with pytest.raises(rs.InputError, match=r"sample 1 \('who\?'\) is a MultiTurnSample.*give a SingleTurnSample"):
            selectivity(dataset, LABELS, **OPTIONS)
