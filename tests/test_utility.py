"""The utility measures: the worked example, every edge, and brute force over all K-subsets of small pools."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.measures.utility import diagnosis, rarity_weights
from tests import reference

#: Tiny random topics often share no passage with their labels.
pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

UTILITY = ["RA-nWG", "PROC", "%PROC", "N-Recall4+", "N-Recall5", "Precision4+", "Harm", "Judged"]
GRADES = dict(zip("abcdefgh", [5, 4, 4, 3, 3, 3, 2, 1], strict=True))


def one(judged, ranked, at, measures=UTILITY, **options) -> dict[str, float]:
    """A single query's figures at one depth, by name."""
    report = rs.evaluate(
        {"q": judged},
        {"r": {"q": ranked}},
        scale="utility",
        measures=measures,
        depths=[at],
        bootstrap=None,
        ids="exact",
        **options,
    )
    return {measure: report[f"{measure}@{at}"].value for measure in measures}


def same(actual: dict[str, float], expected: dict[str, float]) -> None:
    assert {k: actual[k] for k in expected} == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_per_query_shows_what_the_pool_was_worth() -> None:
    report = rs.evaluate(
        {"q": GRADES},
        {"r": {"q": list("bdef")}},
        pool={"q": list("bcdefgh")},
        scale="utility",
        measures=["RA-nWG", "PROC", "%PROC"],
        depths=[4],
    )
    (row,) = report.per_query()
    assert row["RA-nWG@4.G_pool"] == pytest.approx(0.5 + 2 / 30)
    assert row["PROC@4"] == pytest.approx(row["RA-nWG@4.G_pool"] / row["RA-nWG@4.G_oracle"])
    assert row["%PROC@4"] == pytest.approx(row["RA-nWG@4.G_obs"] / row["RA-nWG@4.G_pool"])


def test_a_rare_3_outweighs_a_common_4_and_the_oracle_takes_it() -> None:
    # One 5, one 3, eighteen 4s of 20: w4 = .5/18, w3 = .1, so the best two are the 5 and the 3.
    judged = {"five": 5, "three": 3, **{f"four{i}": 4 for i in range(18)}}
    (weights,) = rarity_weights(np.array([[0, 0, 1, 18, 1]]))
    assert weights[2] == pytest.approx(0.1)
    assert weights[3] == pytest.approx(0.5 / 18)
    assert one(judged, ["five", "three"], 2, ["RA-nWG"])["RA-nWG"] == 1
    assert one(judged, ["five", "four1"], 2, ["RA-nWG"])["RA-nWG"] == pytest.approx((1 + 0.5 / 18) / 1.1)


def test_without_a_5_the_fallback_weights_serve() -> None:
    judged = {"a": 4, "b": 3, "c": 3, "d": 1}
    assert one(judged, ["b", "d"], 2, ["RA-nWG"])["RA-nWG"] == pytest.approx(0.2 / 1.2)
    changed = "RA-nWG(fallback4=0.5,fallback3=0.25)"
    assert one(judged, ["b", "d"], 2, [changed])[changed] == pytest.approx(0.25 / 0.75)


@pytest.mark.parametrize(
    ("parameters", "w4", "w3"),
    [
        ("alpha=0", 0.5, 0.1),
        ("alpha=2", 0.125, 0.1 / 9),
        ("cap4=0.2", 0.2, 1 / 30),
        ("cap3=0.01", 0.25, 0.01),
        ("base4=1,base3=0.3", 0.5, 0.1),
    ],
)
def test_every_parameter_does_what_it_says(parameters, w4, w3) -> None:
    measure = f"RA-nWG({parameters})"
    expected = (w4 + 3 * w3) / (1 + sum(sorted([w4, w4, w3, w3, w3])[-3:]))
    assert one(GRADES, list("bdef"), 4, [measure])[measure] == pytest.approx(expected)


def test_a_query_of_junk_is_undefined_and_counted() -> None:
    report = rs.evaluate(
        {"good": {"a": 5}, "junk": {"b": 1, "c": 2}},
        {"r": {"good": ["a"], "junk": ["b"]}},
        scale="utility",
        measures=["RA-nWG", "PROC", "%PROC", "N-Recall4+"],
        depths=[1],
    )
    for measure in ("RA-nWG@1", "PROC@1", "N-Recall4+@1"):
        cell = report[measure]
        assert (cell.value, cell.n, cell.n_total) == (1.0, 1, 2)
    nothing = report["%PROC@1"]
    assert np.isnan(nothing.value)
    assert nothing.n == 0
    assert "list is longer" in nothing.to_dict()["reason"]


def test_a_passage_that_the_pool_lacks_is_reported_and_belongs_to_it() -> None:
    report = rs.evaluate(
        {"q": GRADES},
        {"r": {"q": ["a", "b"]}},
        pool={"q": ["c", "d"]},
        scale="utility",
        measures=["RA-nWG", "PROC"],
        depths=[1, 2],
    )
    assert any("2 judged passages are not in the pool of the run" in note for note in report.runs["r"].notes)
    assert report["PROC@1"].value == report["RA-nWG@1"].value == 1


def test_unjudged_worst_makes_every_unlabelled_passage_harmful() -> None:
    ranked = ["a", "x", "y", "d"]
    assert one(GRADES, ranked, 4, ["Harm"])["Harm"] == 0
    assert one(GRADES, ranked, 4, ["Harm"], unjudged="worst")["Harm"] == 0.5
    assert one({"a": 5}, ranked, 4, ["Harm"], unjudged="worst")["Harm"] == 0.75


def test_harm_never_looks_clean_by_failure() -> None:
    strict = "Harm(max_grade=1)"
    assert one(GRADES, ["g", "h", "a"], 3, ["Harm", strict]) == pytest.approx({"Harm": 2 / 3, strict: 1 / 3})
    report = rs.evaluate({"q": {"a": 5, "b": 3}}, {"r": {"q": ["a"]}}, scale="utility", measures=["Harm"], depths=[1])
    assert np.isnan(report["Harm@1"].value)
    assert "no grade ≤ 2" in report["Harm@1"].to_dict()["reason"]
    missing = rs.evaluate(
        {"q": GRADES, "gone": GRADES}, {"r": {"q": ["a"]}}, scale="utility", measures=["Harm"], depths=[1]
    )
    assert (missing["Harm@1"].value, missing["Harm@1"].n) == (0.0, 1)


def test_depth_returned_divides_by_what_there_was() -> None:
    figures = one(GRADES, ["b", "g"], 5, ["Precision4+", "Harm"], short_lists="returned")
    assert figures == {"Precision4+": 0.5, "Harm": 0.5}
    # Two slots were used: the best that two could hold is a 5 and a 4.
    figures = one(
        GRADES, ["b", "g"], 5, ["RA-nWG", "PROC", "N-Recall4+"], short_lists="returned", pool={"q": list("bcg")}
    )
    same(figures, {"RA-nWG": 0.25 / 1.25, "PROC": 0.5 / 1.25, "N-Recall4+": 0.5})
    same(one(GRADES, [], 5, ["RA-nWG", "N-Recall4+"], short_lists="returned"), {"RA-nWG": 0.0, "N-Recall4+": 0.0})


def test_the_two_aggregates_of_percent_proc_differ() -> None:
    measures = ["RA-nWG", "PROC", "%PROC", "%PROC(aggregate=ratio)"]
    report = rs.evaluate(
        {"p": GRADES, "q": {"a": 5, "b": 5, "c": 4, "d": 1}},
        {"r": {"p": ["b", "d"], "q": ["a", "d"]}},
        pool={"p": list("bcd"), "q": list("abd")},
        scale="utility",
        measures=measures,
        depths=[2],
    )
    ra, proc, mean, ratio = (report[f"{measure}@2"].value for measure in measures)
    assert ratio == pytest.approx(ra / proc)
    per_query = [row["RA-nWG@2"] / row["PROC@2"] for row in report.per_query()]
    assert mean == pytest.approx(np.mean(per_query))
    assert abs(mean - ratio) > 0.01


@pytest.mark.parametrize(
    ("proc", "share", "verdict"),
    [
        (1, 1, "healthy"),
        (0.8, 0.8, "healthy"),
        (0.79, 0.9, "retriever-limited"),
        (0.9, 0.79, "selection-limited"),
        (0.5, 0.4, "selection-limited"),
        (0.4, 0.5, "retriever-limited"),
        (0.0, float("nan"), "retriever-limited"),
        (0.7, float("nan"), None),
        (float("nan"), float("nan"), None),
    ],
)
def test_who_lost_the_evidence(proc, share, verdict) -> None:
    assert diagnosis(proc, share) == verdict


def test_the_diagnosis_is_in_the_json_the_table_and_the_api() -> None:
    report = rs.evaluate(
        {"p": GRADES, "q": GRADES, "junk": {"x": 1}},
        {"r": {"p": ["a", "b"], "q": ["d", "g"], "junk": ["x"]}},
        pool={"p": list("abcd"), "q": list("abdg"), "junk": ["x"]},
        scale="utility",
        measures=["PROC", "%PROC"],
        depths=[2],
    )
    found = report.diagnosis("r", 2)
    assert found.queries == {"p": "healthy", "q": "selection-limited", "junk": None}
    assert found.counts == {"healthy": 1, "selection-limited": 1}
    assert json.loads(report.to_json())["runs"]["r"]["diagnosis"]["2"] == {
        "overall": found.overall,
        "counts": {"healthy": 1, "selection-limited": 1},
    }
    # Which step lost more is for a test to show, which the first answers name.
    assert "selection 1" in report.details().partition("who lost it (queries)")[2]
    by_query = {row["query"]: row["diagnosis@2"] for row in report.per_query()}
    assert by_query == {"p": "healthy", "q": "selection-limited", "junk": None}


PASSAGES = st.sampled_from([f"d{i}" for i in range(9)])
JUDGED = st.dictionaries(PASSAGES, st.integers(1, 5), min_size=1, max_size=7)
LISTS = st.lists(PASSAGES, max_size=7)


@given(JUDGED, LISTS, st.none() | st.lists(PASSAGES, max_size=7, unique=True), st.integers(1, 8))
@settings(max_examples=150, deadline=None)
def test_all_k_subsets_by_brute_force(judged, ranked, pool, depth) -> None:
    # A grade 1 for Harm to be defined whatever was drawn; it is in no list.
    judged = {**judged, "known junk": 1}
    options = {"pool": {"q": pool}} if pool is not None else {}
    figures = one(judged, ranked, depth, **options)
    same(figures, reference.utility(judged, ranked, pool, depth))
    for value in figures.values():
        assert np.isnan(value) or 0 <= value <= 1 + 1e-12
    assert np.isnan(figures["RA-nWG"]) or figures["RA-nWG"] <= figures["PROC"] + 1e-12


def test_a_query_without_a_pool_has_its_own_list_for_one() -> None:
    qrels = {"p": GRADES, "q": GRADES}
    runs = {"p": ["b", "d"], "q": ["b", "d", "a"]}
    mixed = rs.evaluate(
        qrels, {"r": runs}, pool={"p": list("bcd")}, scale="utility", measures=["PROC", "%PROC"], depths=[2, 3]
    )
    alone = rs.evaluate(
        {"q": GRADES}, {"r": {"q": runs["q"]}}, scale="utility", measures=["PROC", "%PROC"], depths=[2, 3]
    )
    rows = {row["query"]: row for row in mixed.per_query()}
    for key in ("PROC@2", "%PROC@2", "PROC@3"):
        assert rows["q"][key] == alone.per_query()[0][key]
    # The list is no longer than K: with pools all of it was kept, without any nothing is known of a selection.
    assert (rows["q"]["%PROC@3"], alone.per_query()[0]["%PROC@3"]) == (pytest.approx(1), None)
    assert rows["p"]["PROC@2"] == pytest.approx(0.5 / 1.25)
    assert "1 query is not in the pool: the run's own list is used as the pool" in str(mixed)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_weights_of_a_query_with_many_labels_follow_from_the_definition(alpha: float) -> None:
    counts = [1000, 200, 900, 30, 40]
    weights = rarity_weights(np.array([counts]), alpha=alpha)[0].tolist()
    shares = [count / sum(counts) for count in counts]
    rare = [base / share**alpha for base, share in zip((0, 0, 0.1, 0.5, 1.0), shares, strict=True)]
    expected = [0.0, 0.0, min(rare[2] / rare[4], 0.25), min(rare[3] / rare[4], 1.0), 1.0]
    assert weights == pytest.approx(expected, rel=1e-12)


def test_a_grade_that_no_passage_has_weighs_nothing_beside_grade_5() -> None:
    assert rarity_weights(np.array([[1, 0, 0, 0, 1]])).tolist() == [[0, 0, 0, 0, 1]]
    assert rarity_weights(np.array([[1, 0, 2, 0, 1]]))[0, 3] == 0
