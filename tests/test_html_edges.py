"""The page of reports that lack something: no intervals, nothing relevant, one query, empty lists."""

import pytest

import rag_selectivity as rs
from tests.test_html import Page

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

GRADED = {"q1": {"d1": 5, "d2": 1}, "q2": {"d3": 4, "d4": 2}}
JUNK = {"q1": {"d1": 1, "d2": 1}, "q2": {"d3": 1}}
LISTS = {"q1": ["d1", "d2", "x"], "q2": ["x", "d3", "d4"]}
EMPTY = {"q1": [], "q2": []}
CASES = {
    "nothing but junk": (JUNK, LISTS),
    "nothing judged": ({"q1": {}, "q2": {}}, LISTS),
    "one query": ({"q1": GRADED["q1"]}, LISTS),
    "empty lists": (GRADED, EMPTY),
    "one empty list": (GRADED, {"q1": [], "q2": ["d3"]}),
    "junk and empty lists": (JUNK, EMPTY),
}
MEASURES = ["Success", "BoR", "BoR_max", "lambda", "RA-nWG", "PROC", "%PROC", "Harm", "nDCG", "IPrec"]


@pytest.mark.parametrize("case", CASES)
def test_there_is_a_page_without_intervals(case) -> None:
    qrels, run = CASES[case]
    options = {"corpus_size": 8, "scale": "utility", "measures": MEASURES, "depths": [1, 2], "bootstrap": None}
    short_lists = "returned" if "empty" in case else "requested"
    report = rs.evaluate(qrels, {"mine": run}, short_lists=short_lists, **options)
    report._repr_html_()
    text = report.to_html(qrels=qrels, runs={"mine": run})
    assert "95% intervals" not in text
    page = Page(text)
    assert len(page.of("p", class_="text")) == 5
    drawn = {given["aria-label"] for given, _ in page.of("svg") if "aria-label" in given}
    assert {"Bits over random, over K", "Success over K", "Utility over K", "Junk over K"} <= drawn


def test_labels_without_a_relevant_passage_on_the_trec_scale() -> None:
    Page(rs.evaluate({"q": {"a": 0}, "r": {"b": 0}}, {"q": ["a"]}, corpus_size=9).to_html())
