"""Figures in plain Python, beside the columnar join that reports rest on: equal to the last bit, or none."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.measures import parse_measure
from rag_selectivity.measures.one_query import measure_query
from rag_selectivity.measures.plain import PLAIN_MEASURES
from rag_selectivity.single import QueryLists, evaluate_queries, evaluate_query, join_query, plain_figures, query_figure

pytestmark = pytest.mark.inside

SPELLINGS = {
    "Harm": ["Harm", "Harm(max_grade=1)", "Harm(unjudged=harmful)"],
    "Success": ["Success", "Success(rel=5)", "Success(m=2)", "Success(rel=1,m=3)"],
    "RandomSuccess": ["RandomSuccess", "RandomSuccess(m=2)", "RandomSuccess(rel=2)"],
    "EF": ["EF", "EF(rel=2)"],
    "BoR": ["BoR", "BoR(m=2)"],
    "BoR_max": ["BoR_max", "BoR_max(m=3)"],
    "lambda": ["lambda", "lambda(rel=5)"],
    "RA-nWG": ["RA-nWG", "RA-nWG(cap3=1,base4=.3)", "RA-nWG(fallback3=1,fallback4=.1)", "RA-nWG(alpha=2)"],
    "PROC": ["PROC", "PROC(base3=1,cap3=1)", "PROC(alpha=.5)"],
    "nDCG": ["nDCG", "nDCG(gain=exp)"],
}
WITHOUT_PLAIN_FORM = {"RA-nWG(alpha=2)", "PROC(alpha=.5)", "nDCG(gain=exp)"}
LEVELS = {"utility": (1, 2, 3, 4, 5), "trec": (0, 1, 2)}


@st.composite
def lists(draw, scale: str) -> QueryLists:
    ids = [f"d{i}" for i in range(25)]
    labelled = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=20, unique=True))
    grades = {passage: draw(st.sampled_from(LEVELS[scale])) for passage in labelled}
    passages = draw(st.lists(st.sampled_from(ids), max_size=20, unique=True))
    return QueryLists(grades, passages, None, draw(st.sampled_from([25, 26, 1000, 8_800_000])))


def by_columns(measure, query: QueryLists, scale: str, levels):
    joined = join_query(query.grades, query.passages, corpus_size=query.corpus_size, scale=scale, levels=levels)
    return query_figure(measure, joined, details=True)


def test_every_plain_form_is_compared_here() -> None:
    assert {cls.name for cls in PLAIN_MEASURES} == set(SPELLINGS)


@pytest.mark.parametrize("spelled", [spelled for all_of_one in SPELLINGS.values() for spelled in all_of_one])
@pytest.mark.parametrize("scale", ["utility", "trec"])
def test_a_plain_figure_is_that_of_the_join_to_the_last_bit(spelled, scale) -> None:
    kind = parse_measure(spelled)
    if kind.required_scale not in (None, scale):
        return
    plain = []

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(lists(scale), st.integers(1, 15), st.sampled_from([LEVELS[scale], LEVELS[scale][-2:], ()]))
    def compare(query: QueryLists, depth: int, levels) -> None:
        measure = kind @ depth
        expected = by_columns(measure, query, scale, levels)
        figures = plain_figures([measure], query, scale=scale, levels=levels)
        undefined = expected.outcome.settled().defined.sum() == 0
        assert (figures is None) == (undefined or spelled in WITHOUT_PLAIN_FORM)
        (with_details,) = measure_query(
            [measure],
            query.grades,
            query.passages,
            details=True,
            corpus_size=query.corpus_size,
            scale=scale,
            levels=levels,
        )
        assert list(with_details.details.items()) == list(expected.details.items())
        assert {type(number) for number in with_details.details.values()} <= {int, float}
        both = evaluate_queries([measure], [query, query], scale=scale, levels=levels)
        for (found,) in [*([figures] if figures else []), (with_details,), *both]:
            plain.append(found)
            assert np.array_equal(found.value, expected.value, equal_nan=True)
            assert (found.measure, found.reason) == (expected.measure, expected.reason)
            ours, theirs = found.outcome, expected.outcome
            assert all(np.array_equal(*parts, equal_nan=True) for parts in zip(ours.parts, theirs.parts, strict=True))
            for name in ("undefined", "aggregate", "bounds", "premise", "baseline", "refused"):
                assert getattr(ours, name) == getattr(theirs, name)

    compare()
    assert plain


@pytest.mark.parametrize("depth", [3, 10])
def test_they_are_the_rows_of_a_report_to_the_last_bit(depth) -> None:
    # At several depths at once a report adds up gains in another order, which may change the last bit.
    rng = np.random.default_rng(2)
    names = [f"{name}@{depth}" for name in SPELLINGS if parse_measure(name).per_query]
    labels = {
        f"q{i}": {f"d{j}": int(rng.integers(1, 6)) for j in rng.permutation(60)[: rng.integers(1, 30)]}
        for i in range(80)
    }
    run = {query: [f"d{j}" for j in rng.permutation(60)[: rng.integers(0, 25)]] for query in labels}
    report = rs.evaluate(
        labels, {"r": run}, corpus_size=5000, scale="utility", measures=names, bootstrap=None, ids="exact"
    )
    rows = {row["query"]: row for row in report.per_query()}
    lists = {query: QueryLists(grades, run[query], None, 5000) for query, grades in labels.items()}
    compared = 0
    for query, name in product(labels, names):
        found = plain_figures([parse_measure(name)], lists[query], scale="utility", levels=(1, 2, 3, 4, 5))
        assert (found[0].value if found else None) == rows[query][name]
        compared += found is not None
    assert compared > 300


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (QueryLists({"a": 1}, ["a", "a"]), {}),
        (QueryLists({"a": 1}, ["a"], ["a", "b"]), {}),
        (QueryLists({}, ["a"]), {}),
        (QueryLists({"a": 3}, ["a"]), {}),
        (QueryLists({"a": 9}, ["a"]), {"scale": "utility"}),
        (QueryLists({"a": 4}, ["a"]), {"scale": "utility", "levels": (0, 4)}),
        (QueryLists({"a": 1}, ["a"]), {"scale": "other"}),
        (QueryLists({"a": True}, ["a"]), {}),
        (QueryLists({"a": 1}, [""]), {}),
        (QueryLists({"a": 1}, [1]), {}),  # type: ignore[list-item]
        (QueryLists({"a": 1, "b": 1}, ["a"], corpus_size=1), {}),
        (QueryLists({"a": 1}, ["a"], corpus_size=2), {}),
        (QueryLists({"a": 1}, ["a"], corpus_size=4.0), {}),  # type: ignore[arg-type]
    ],
)
def test_what_needs_the_join_has_no_plain_figure(query, options) -> None:
    assert plain_figures([parse_measure("Success@3")], query, **options) is None


def test_a_measure_without_a_plain_form_leaves_all_to_the_join() -> None:
    query = QueryLists({"a": 1, "b": 0}, ["b", "a"], corpus_size=9)
    assert plain_figures([parse_measure("Success@2"), parse_measure("RR")], query) is None
    found = evaluate_queries(["Success@2", "RR", "RandomSuccess@2"], [query])
    assert [figure.value for figure in found[0]] == pytest.approx([1, 0.5, 2 / 9])
    # Here the draw sums many factors, which numpy does at once.
    many = QueryLists({f"d{i}": 1 for i in range(60)}, ["d1"], corpus_size=1000)
    assert plain_figures([parse_measure("RandomSuccess@50")], many) is None
    assert plain_figures([parse_measure("RandomSuccess@48")], many) is not None


def test_policies_and_numbers_of_passages_go_by_the_join() -> None:
    assert evaluate_query("Harm@2", {"a": 5, "b": 1}, ["b"], scale="utility").value == 0.5
    assert evaluate_query("Harm@2", {"a": 5, "b": 1}, ["b", "x"], scale="utility", unjudged="worst").value == 1
    chunks = {"passages_of": {"a": 5, "b": 5}}
    assert evaluate_query("RandomSuccess@1", {"a": 1, "b": 0}, ["a"], **chunks).value == pytest.approx(0.5)
    found = evaluate_queries(["RandomSuccess@1"], [QueryLists({"a": 1, "b": 0}, ["a"])], **chunks)
    assert found[0][0].value == pytest.approx(0.5)
    levels = (grade for grade in (1, 5))
    assert evaluate_query("Harm@1", {"a": 5}, ["a", "a"], scale="utility", levels=levels).value == 0
