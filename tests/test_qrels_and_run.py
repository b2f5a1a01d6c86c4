"""Qrels and Run: the same from every source, in trec_eval's order."""

from __future__ import annotations

import pandas
import pytest

import rag_selectivity as rs
from rag_selectivity import InputError, Qrels, Run
from rag_selectivity.tables.grades import SCALES

pytestmark = pytest.mark.inside

QRELS = {"q1": {"a": 2, "b": 0}, "q2": {"a": 1}}


def test_integer_ids_are_text_and_lists_are_binary_labels() -> None:
    assert Qrels.of({1: [7, 8]}).to_dict() == {"1": {"7": 1, "8": 1}}
    assert Run.of({1: [7, 8]}).to_dict() == {"1": ["7", "8"]}


def test_repeated_judgments_are_counted_and_contradictions_refused() -> None:
    assert Qrels.of([("q", "d", 1), ("q", "d", 1), ("p", "d", 2)]).repeated == 1
    with pytest.raises(InputError, match=r"query 'q', passage 'd': grade 2, but .*grade 1: one pair cannot have two"):
        Qrels.of([("q", "d", 1), ("q", "d", 2)])


def test_a_grade_map_carries_every_grade_or_names_the_missing_one() -> None:
    assert Qrels.of(QRELS).regraded({0: 1, 1: 3, 2: 5}).to_dict() == {"q1": {"a": 5, "b": 1}, "q2": {"a": 3}}
    with pytest.raises(InputError, match="query 'q1', passage 'a': grade 2 is not in the grade map; add 2:NEW"):
        Qrels.of(QRELS).regraded("0:1,1:3")
    with pytest.raises(InputError, match="grade 1 is given twice"):
        Qrels.of(QRELS).regraded("1:3,1:4")


def test_the_scale_is_checked_with_the_files_line(tmp_path) -> None:
    (tmp_path / "q").write_text("q 0 a 5\nq 0 b 6\n")
    with pytest.raises(InputError, match=r"q:2: query 'q', passage 'b': grade 6 is off the utility scale \(1 to 5\)"):
        rs.read_qrels(tmp_path / "q").check_scale(SCALES["utility"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Qrels.of({"": {"d": 1}}), "the query id is empty; give another id"),
        (lambda: Qrels.of([("q", "d")]), "or \\(query, passage, grade\\)"),
        (lambda: Qrels.of(pandas.DataFrame({"x": [1]})), "no column for the query; it has x"),
        (lambda: Run.of({"q": [True]}), "passage id True \\(bool\\)"),
        (lambda: Run.of({"q": ["\ud800"]}), "half of a surrogate pair"),
        (lambda: Run.of({"q": {"d": 1.0}, "p": ["d"]}), "query 'p' has no scores, unlike those before it"),
        (lambda: Run.of([("q", "d", 1.0), ("q", "e")]), "run, row 2: expected 3 cells, as in the others"),
        (lambda: Run.of({1: ["d"], "1": ["d"]}), "two query ids are the same when written as text"),
        (lambda: Run.of([("q",)]), "or \\(query, passage, score\\), got"),
    ],
)
def test_mistakes_are_named(make, message) -> None:
    with pytest.raises(InputError, match=message):
        make()
