"""LangSmith's summary says of how many of all examples its figure is."""

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from rag_selectivity_langchain import summary_evaluator

pytestmark = pytest.mark.contract

OUTPUTS = [{"documents": ["d1"]}, {"documents": ["x"]}, {"documents": ["d3"]}]


@pytest.mark.parametrize("third", [{}, {"relevant": None}, None])
def test_examples_without_labels_are_counted(third) -> None:
    references = [{"relevant": ["d1"]}, {"relevant": ["d2"]}, third]
    done = summary_evaluator("Success@1", "BoR@1", corpus_size=100)(OUTPUTS, references)["results"]
    assert [each["score"] for each in done] == [0.5, pytest.approx(5.643856189774724)]
    assert all("2 of 3 examples" in each["comment"] for each in done)


def test_labels_of_some_questions() -> None:
    labels = {"a": {"d1": 1}, "b": {"d2": 1}}
    inputs = [{"question": each} for each in "abc"]
    done = summary_evaluator("Success@1", labels=labels)(OUTPUTS, [{}, {}, {}], inputs)
    assert done["score"] == 0.5
    assert "2 of 3 examples" in done["comment"]


def test_pairs_of_a_document_and_its_score() -> None:
    outputs = [{"documents": [(Document(id="d1", page_content="a"), 0.9), (Document(id="x", page_content="b"), 0.1)]}]
    assert summary_evaluator("P@2")(outputs, [{"relevant": ["d1"]}])["score"] == 0.5
