"""Labels by class: they are all pairs of a query and a passage of one class."""

from __future__ import annotations

import pytest

import rag_selectivity as rs

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")]
CLASSES = {"a": "x", "b": "x", "c": "y", "d": None, "e": float("nan")}


def test_a_query_meets_the_passages_of_its_class() -> None:
    labels = rs.Qrels.from_classes({**CLASSES, "q": "z"}, CLASSES, grade=5)
    assert labels.to_dict() == {"a": {"a": 5, "b": 5}, "b": {"a": 5, "b": 5}, "c": {"c": 5}, "d": {}, "e": {}, "q": {}}


def test_self_retrieval_leaves_the_query_out() -> None:
    labels = rs.Qrels.from_classes(CLASSES, CLASSES, exclude_self=True)
    assert labels.to_dict() == {"a": {"b": 1}, "b": {"a": 1}, "c": {}, "d": {}, "e": {}}


def test_figures_are_those_of_all_pairs() -> None:
    queries = {f"q{i}": i % 3 for i in range(9)}
    passages = {f"d{i}": i % 4 for i in range(20)}
    pairs = {q: {d: 1 for d, of in passages.items() if of == each} for q, each in queries.items()}
    run = {q: [f"d{(i + 3 * k) % 20}" for k in range(6)] for i, q in enumerate(queries)}
    one, other = (
        rs.evaluate(labels, run, corpus_size=20, depths=[3], measures=["BoR", "AP", "R", "nDCG"], scale="trec")
        for labels in (rs.Qrels.from_classes(queries, passages), pairs)
    )
    assert one.to_dict() == other.to_dict()


@pytest.mark.parametrize(
    ("queries", "passages", "options", "message"),
    [
        ({"q": "x"}, {"d": "y"}, {}, "no query has the class of a passage: queries have classes such as 'x', passages"),
        ({"q": ["x"]}, {"d": "x"}, {}, r"query 'q' has the class \['x'\]: give one text or number"),
        ({"q": "x"}, {"d": {"x"}}, {}, "passage 'd' has the class"),
        ([("q", "x")], {"d": "x"}, {}, "query_class must be a dict of ids and classes, got list"),
        ({"q": "x"}, {"": "x"}, {}, "passage_class: the passage id is empty"),
        ({"": "x"}, {"d": "x"}, {}, "query_class"),
        ({"q": "x"}, {1: "x", "1": "x"}, {}, "an id stands twice"),
        ({1: "x", "1": "x"}, {"d": "x"}, {}, "an id stands twice"),
        ({"q": "x"}, {"d": "x"}, {"grade": -1}, "grade must be a whole number"),
        ({"q": "x"}, {"d": "x"}, {"grade": 1.5}, "grade"),
        ({}, {}, {}, "no query has the class of a passage"),
    ],
)
def test_what_cannot_be_is_named(queries, passages, options, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        rs.Qrels.from_classes(queries, passages, **options)
