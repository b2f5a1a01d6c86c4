"""The UDCG-like diagnostic: the approximation from grades; its authors' outputs are in benchmarks/published.toml."""

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.measures.udcg import udcg

pytestmark = pytest.mark.inside


def test_from_grades_it_is_the_same_with_every_score_1() -> None:
    report = rs.evaluate(
        {"q": {"a": 1, "b": 1, "c": 0}},
        {"r": {"q": ["a", "c", "b", "x"]}},
        measures=["UDCG_grades", "UDCG_grades(weight=1)"],
        depths=[3, 4],
        bootstrap=None,
    )
    relevant = [True, False, True, False]
    assert report["UDCG_grades@3"].value == pytest.approx(udcg([1] * 3, relevant[:3]))
    assert report["UDCG_grades@4"].value == pytest.approx(udcg([1] * 4, relevant))
    assert report["UDCG_grades(weight=1)@4"].value == pytest.approx(udcg([1] * 4, relevant, weight=1)) == 0.5


@pytest.mark.parametrize(
    ("scores", "relevant", "message"),
    [
        ([], [], "one score and one relevance"),
        ([1.0], [True, False], "one score"),
        ([np.nan], [True], "score 1 is not"),
    ],
)
def test_mistakes_are_named(scores, relevant, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        udcg(scores, relevant)
