"""The BoR family: every value on Cranfield against a slow reference."""

from math import exp, inf, log2

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity import JudgedRun, evaluate_joined
from rag_selectivity.measures.chance import regime
from tests import reference

pytestmark = pytest.mark.inside

FAMILY = ["Success", "RandomSuccess", "EF", "BoR", "BoR_max", "BoR_opt", "BoR_recall", "lambda"]
WITH_M = ["Success", "RandomSuccess", "EF", "BoR", "BoR_max"]


def counted(N: int, R: int, K: int, *, hits: int, of: int = 1000) -> rs.Report:
    """A report over `of` queries alike, of which `hits` succeed."""
    judged = JudgedRun.from_counts([N] * of, [K] * of, [R] * of, [True] * hits + [False] * (of - hits))
    return evaluate_joined({"run": judged}, measures=FAMILY, depths=[K], bootstrap=None)


@pytest.mark.parametrize(
    ("random_success", "name"),
    [(0.6321, "healthy"), (1 - exp(-1), "degraded"), (0.9502, "degraded"), (1 - exp(-3), "collapse"), (1, "collapse")],
)
def test_regimes(random_success, name) -> None:
    assert regime(random_success) == name


@pytest.mark.parametrize("depth", [99_000, 101_000, 298_000, 302_000])
def test_with_equal_r_and_one_hit_the_regimes_are_those_of_lambda(depth) -> None:
    # R = 1,000 of N = 10⁸: lambda is K/100,000.
    (row,) = rs.plan(10**8, 1000, [depth])["rows"]
    assert row["regime"] == ("healthy" if row["lambda"] < 1 else "degraded" if row["lambda"] < 3 else "collapse")


def on_cranfield(data, name, measures, depths, **options) -> rs.Report:
    runs = {name: data / "cranfield" / "runs" / f"{name}.trec"}
    given = {"corpus_size": 1400, "scale": "utility", "measures": measures, "depths": depths, "bootstrap": None}
    return rs.evaluate(data / "cranfield" / "qrels.trec", runs, **given, **options)


@pytest.mark.parametrize(
    ("name", "rel", "m", "returned"),
    [
        *((name, rel, None, False) for name in ("bm25", "lsa") for rel in (None, 5, 3)),
        *(("bm25", None, m, returned) for m in (2, 3) for returned in (False, True)),
    ],
)
def test_the_whole_family_on_cranfield_equals_the_reference(data, name, rel, m, returned) -> None:
    depths = [1, 2, 5, 10, 20, 50, 100, 200, 300, 500]
    family = WITH_M if m else FAMILY
    given = f"(rel={rel})" if rel else f"(m={m})" if m else ""
    measures = [f"{measure}{given}" if measure != "BoR_opt" else measure for measure in family]
    report = on_cranfield(data, name, measures, depths, short_lists="returned" if returned else "requested")
    qrels = reference.read_trec_qrels(data / "cranfield" / "qrels.trec")
    run = reference.read_trec_run(data / "cranfield" / "runs" / f"{name}.trec")
    for depth in depths:
        expected = reference.family(qrels, run, N=1400, K=depth, rel=rel or 4, m=m or 1, returned=returned)
        for plain, measure in zip(family, measures, strict=True):
            found = report[name, f"{measure}@{depth}"].value
            assert found == pytest.approx(expected[plain], rel=1e-12, abs=1e-13, nan_ok=True)


@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_worlds_equal_the_reference(data) -> None:
    N = data.draw(st.integers(8, 60))
    ids = [f"d{i}" for i in range(N)]
    queries = [f"q{i}" for i in range(data.draw(st.integers(1, 6)))]
    qrels = {q: data.draw(st.dictionaries(st.sampled_from(ids), st.integers(0, 3), max_size=8)) for q in queries}
    run = {q: data.draw(st.lists(st.sampled_from(ids), unique=True, max_size=8)) for q in queries[:4]}
    rel, m = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    if not any(sum(grade >= rel for grade in judged.values()) >= m for judged in qrels.values()):
        return
    measures = [f"{name}(rel={rel},m={m})" for name in WITH_M] + [f"BoR_recall(rel={rel})", f"lambda(rel={rel})"]
    options = {"scale": "trec", "measures": measures, "depths": [1, 3, 8], "bootstrap": None, "ids": "exact"}
    report = rs.evaluate(qrels, {"r": run}, corpus_size=N, **options)
    for depth in (1, 3, 8):
        expected = reference.family(qrels, run, N=N, K=depth, rel=rel, m=m)
        for measure in measures:
            found = report["r", f"{measure}@{depth}"].value
            assert found == pytest.approx(expected[measure.split("(")[0]], rel=1e-11, abs=1e-13, nan_ok=True)


def test_perfect_retrieval_reaches_the_ceiling_and_never_prints_a_negative_zero() -> None:
    report = counted(58, 4, 58, hits=1000)
    for name in ("BoR@58", "BoR_max@58", "BoR_opt@58"):
        assert report[name].value == 0.0
        assert not np.signbit(report[name].value)
    near = counted(10**6, 10**5, 380, hits=1000)
    assert 0 < near["BoR@380"].value == pytest.approx(near["BoR_max@380"].value, rel=1e-12)


def test_no_success_is_minus_infinity_with_a_reason_and_json_null() -> None:
    report = counted(1000, 5, 10, hits=0)
    assert report["BoR@10"].value == -inf
    assert report["EF@10"].value == 0.0
    written = report.to_dict()["runs"]["run"]["measures"]["BoR@10"]
    assert written["value"] is None
    assert "no query succeeded" in written["reason"]


@pytest.mark.parametrize("form", [dict, pandas.DataFrame])
def test_per_query_corpus_sizes_follow_the_general_definitions(form) -> None:
    sizes = {"a": 10, "b": 40} if form is dict else form({"query_id": ["a", "b"], "N": [10, 40]})
    qrels = {"a": {"d1": 1}, "b": {"d1": 1, "d2": 1}}
    report = rs.evaluate(
        qrels,
        {"r": {"a": ["d1"], "b": ["x"]}},
        corpus_size=sizes,
        measures=["BoR_opt", "lambda", "RandomSuccess"],
        depths=[4],
        bootstrap=None,
    )
    assert report["r", "BoR_opt@4"].value == pytest.approx(-log2((4 / 10 + 4 / 40) / 2))
    assert report["r", "lambda@4"].value == pytest.approx((4 / 10 + 8 / 40) / 2)
    chances = [float(reference.random_success(10, 1, 4)), float(reference.random_success(40, 2, 4))]
    assert report["r", "RandomSuccess@4"].value == pytest.approx(np.mean(chances))
    assert report.corpus_size is None


def test_delta_between_depths_of_a_report(data) -> None:
    report = on_cranfield(data, "bm25", ["BoR", "Success", "BoR(m=2)", "Success(m=2)"], [10, 100])
    for suffix, m in (("", 1), ("(m=2)", 2)):
        delta = report.delta("bm25", f"BoR{suffix}", 10, 100)
        p1, p2 = (report["bm25", f"Success{suffix}@{k}"].value for k in (10, 100))
        b1, b2 = (report["bm25", f"BoR{suffix}@{k}"].value for k in (10, 100))
        assert delta.observed == pytest.approx(b2 - b1)
        assert delta.predicted == pytest.approx(log2(p2 / p1) - m * log2(10))
        assert delta.flat == pytest.approx(-m * log2(10))
