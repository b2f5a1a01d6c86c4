"""What no draw can reach, gates on success rates, exact intervals in words, and few queries that all count alike."""

import math
from fractions import Fraction

import pytest
from scipy.optimize import brentq

import rag_selectivity as rs
from rag_selectivity.explain import explain
from rag_selectivity.gates import check

pytestmark = pytest.mark.contract


def rate_report(successes: int, queries: int, **options):
    labels = {f"q{i}": {"a": 1} for i in range(queries)}
    runs = {"r": {q: ["a" if i < successes else "b"] for i, q in enumerate(labels)}}
    return rs.evaluate(labels, runs, measures=["Success"], depths=[1], **options)


def test_the_ceiling_is_undefined_where_no_draw_can_succeed() -> None:
    labels = {q: {"a": 1, "b": 1, "c": 1} for q in "pq"}
    runs, names = {"r": {q: ["a"] for q in labels}}, ("BoR_max(m=3)", "BoR(m=3)", "EF(m=3)")
    report = rs.evaluate(labels, runs, measures=names, depths=[2], corpus_size=50)
    for name in names:
        figure = report[f"{name}@2"]
        assert all(map(math.isnan, (figure.value, figure.low, figure.high)))
        assert figure.reason == "a random draw of this size can never succeed"


def exactly(successes: int, queries: int, rate: float) -> Fraction:
    """P[at least so many successes]."""
    p = Fraction(rate)
    return sum(math.comb(queries, k) * p**k * (1 - p) ** (queries - k) for k in range(successes, queries + 1))


@pytest.mark.parametrize(("successes", "queries"), [(7, 10), (9, 20), (19, 20), (20, 20), (1, 8)])
def test_gates_on_success_use_clopper_and_pearson(successes, queries) -> None:
    report = rate_report(successes, queries)
    low = brentq(lambda rate: float(exactly(successes, queries, rate)) - 0.025, 1e-9, 1 - 1e-9)
    for limit, passes in ((low - 1e-6, True), (low + 1e-6, False)):
        assert check(report, [f"low(Success@1) < {limit!r}"])[0].passed == passes
    if successes < queries:
        high = brentq(lambda rate: 1 - float(exactly(successes + 1, queries, rate)) - 0.025, 1e-9, 1 - 1e-9)
        for limit, passes in ((high - 1e-6, False), (high + 1e-6, True)):
            assert check(report, [f"high(Success@1) > {limit!r}"])[0].passed == passes


def test_an_exact_interval_is_called_exact() -> None:
    words = " ".join(explain(rate_report(7, 10), ["Success@1"]).figures[0].sentences)
    assert "exact, from the binomial distribution (mid-P)" in words
    assert "resamples" not in words
    labels = {f"q{i}": {"a": 5, "b": 1, "c": 3} for i in range(9)}
    runs = {"r": {q: ["a", "b", "c"][i % 3 :] for i, q in enumerate(labels)}}
    other = rs.evaluate(labels, runs, measures=["RA-nWG"], depths=[2], scale="utility")
    assert "5,000 bootstrap resamples of the queries, widened" in " ".join(explain(other).figures[0].sentences)


def test_an_interval_of_bits_says_where_its_bound_is_exact() -> None:
    labels = {f"q{i}": {f"p{j}": 1 for j in range(2 + i % 3)} for i in range(24)}
    runs = {"all": {q: ["p0"] for q in labels}, "some": {q: ["p0" if q > "q15" else "x"] for q in labels}}
    report = rs.evaluate(labels, runs, measures=["BoR"], depths=[1], corpus_size=100)
    words = [" ".join(each.sentences) for each in explain(report, ["BoR@1"]).figures]
    assert ["Clopper and Pearson" in each for each in words] == [True, False]
    nearly = {q: {f"p{j}": 1 for j in range(100 + i % 2)} for i, q in enumerate(labels)}
    words = explain(rs.evaluate(nearly, runs, measures=["BoR"], depths=[1], corpus_size=10_000)).figures[1].sentences
    assert words[2].endswith("from the binomial distribution (mid-P), but for the error of the mean chance.")
