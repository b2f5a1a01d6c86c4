"""A set has no order: it cannot be a ranking; labels may be one."""

import pytest

import rag_selectivity as rs
from rag_selectivity.single import evaluate_query

pytestmark = pytest.mark.contract

LABELS = {"1": {"a": 1}}
WORDS = r"a set has no order; give a list, the best first"


@pytest.mark.parametrize("kind", [set, frozenset])
def test_a_set_is_no_ranking(kind) -> None:
    ranking = kind(["a", "b", "c"])
    options = {"measures": ["P"], "depths": [1], "bootstrap": None}
    with pytest.raises(rs.InputError, match=rf"run: query '1': {WORDS}"):
        rs.evaluate(LABELS, {"r": {"1": ranking}}, **options)
    with pytest.raises(rs.InputError, match=rf"run: query '1': {WORDS}"):
        rs.evaluate(LABELS, {"r": {"1": ["a"]}}, pool={"1": ranking}, **options)
    with pytest.raises(rs.InputError, match=rf"run: query '1': {WORDS}"):
        rs.evaluate(LABELS, {"r": {"1": kind([("a", 0.5), ("b", 0.5)])}}, **options)
    with pytest.raises(rs.InputError, match=rf"run: {WORDS}"):
        rs.evaluate(LABELS, kind([("1", "a"), ("1", "b")]), **options)
    with pytest.raises(rs.InputError, match=WORDS):
        rs.compare(LABELS, {"x": {"1": ["a"]}, "y": {"1": ranking}}, measures=["P@1"])
    with pytest.raises(rs.InputError, match=WORDS):
        evaluate_query("P@1", LABELS["1"], ranking)
    with pytest.raises(rs.InputError, match=WORDS):
        evaluate_query("P@1", LABELS["1"], ["a"], pool=ranking)
    with pytest.raises(rs.InputError, match=WORDS):
        rs.Retrieval("1", ranking)
    with pytest.raises(rs.InputError, match=WORDS):
        rs.Run.of({"1": ranking})


def test_what_keeps_an_order_is_a_ranking_and_labels_may_be_a_set() -> None:
    for ranking in (["a", "b"], ("a", "b"), {"a": None, "b": None}.keys(), iter(["a", "b"])):
        report = rs.evaluate({"1": {"a"}}, {"r": {"1": ranking}}, measures=["P"], depths=[1], bootstrap=None)
        assert report["P@1"].value == 1.0
    assert rs.Qrels.of({"1": frozenset(["a", "b"])}).to_dict() == {"1": {"a": 1, "b": 1}}
