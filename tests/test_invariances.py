"""What must change no figure (order, names, partition, form of the input), and what can only better a figure."""

import math
import os
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from tests.reference import utility_weights

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.contract]

PASSAGES = [f"d{number}" for number in range(12)]
GRADED = st.dictionaries(st.sampled_from(PASSAGES), st.integers(1, 5), min_size=1, max_size=8)
LISTS = st.lists(st.sampled_from(PASSAGES), max_size=8, unique=True)
QUERIES = st.lists(st.tuples(GRADED, LISTS, LISTS), min_size=2, max_size=5)
RANDOM = st.randoms(use_true_random=False)
#: `PROPERTY_EXAMPLES=100` in the environment tries a hundred times as many examples.
MORE = int(os.environ.get("PROPERTY_EXAMPLES", "1"))
FEW = settings(max_examples=6 * MORE, deadline=None, derandomize=MORE == 1)
MANY = settings(max_examples=15 * MORE, deadline=None, derandomize=MORE == 1)
MEASURES = ["Success", "BoR", "RA-nWG", "Harm", "nDCG", "AP"]
EVERY = [
    *MEASURES,
    "PROC",
    "%PROC",
    "N-Recall4+",
    "N-Recall5",
    "Judged",
    "P",
    "R",
    "RR",
    "F",
    "T",
    "Rprec",
    "Precision4+",
]
OPTIONS: dict[str, Any] = {
    "scale": "utility",
    "corpus_size": 50,
    "measures": MEASURES,
    "depths": [3],
    "bootstrap": rs.Bootstrap(20),
    "ids": "exact",
}


def world(topics: list[tuple[dict[str, int], list[str], list[str]]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Labels and two runs; one query more, that every run answers, so that some labelled passage is retrieved."""
    topics = [*topics, ({"d0": 5, "d1": 1, "d2": 4}, ["d0", "d1"], ["d1", "d0"])]
    labels = {f"q{i}": graded for i, (graded, _, _) in enumerate(topics)}
    runs = {name: {f"q{i}": topic[column] for i, topic in enumerate(topics)} for column, name in ((1, "a"), (2, "b"))}
    return labels, runs


def figures(report: rs.Report) -> dict[tuple[str, str], str]:
    return {(run, key): repr(each) for run in report.runs for key, each in report.runs[run].estimates.items()}


def assert_alike(one: Any, other: Any) -> None:
    """The same data; floats are equal but for the rounding of their sums, 1e-12 of the figure."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        one, other = list(one.values()), [other[key] for key in one]
    if isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_alike(mine, theirs)
    elif isinstance(one, float) and isinstance(other, float):
        assert one == pytest.approx(other, rel=1e-12, abs=1e-14, nan_ok=True)
    else:
        assert one == other


def shuffled(random: Random, values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in random.sample(list(values), len(values))}


@FEW
@given(QUERIES, RANDOM)
def test_the_order_of_queries_labels_and_runs_changes_no_digit(topics, random) -> None:
    labels, runs = world(topics)
    other_labels = {query: shuffled(random, graded) for query, graded in shuffled(random, labels).items()}
    other_runs = {name: shuffled(random, lists) for name, lists in shuffled(random, runs).items()}
    one, other = rs.evaluate(labels, runs, **OPTIONS), rs.evaluate(other_labels, other_runs, **OPTIONS)
    assert figures(one) == figures(other)

    def by_query(report: rs.Report) -> dict[tuple[Any, Any], Any]:
        return {(row["run"], row["query"]): row for row in report.per_query()}

    assert by_query(one) == by_query(other)


FORMS = st.sampled_from(["x{}", "漢 {}", "{}\u2028=", "Z{}"])
#: What a comparison has from resamples.
RESAMPLED = {"low", "high", "p", "p_adjusted", "detectable", "verdict", "reason"}
COMPARED: dict[str, Any] = {"scale": "utility", "corpus_size": 50, "ids": "exact"}


def renamed(world: tuple[dict[str, Any], dict[str, Any]], random: Random, form: str, order: list[int]) -> Any:
    """The same world under other names; `order` is the place that each query's name has among them."""
    labels, runs = world
    new = dict(zip(PASSAGES, (form.format(each) for each in random.sample(PASSAGES, len(PASSAGES))), strict=True))
    asked = {query: form.format(f"asked {i}") for query, i in zip(labels, order, strict=True)}
    other_labels = {asked[q]: {new[d]: grade for d, grade in graded.items()} for q, graded in labels.items()}
    return other_labels, {name: {asked[q]: [new[d] for d in ids] for q, ids in of.items()} for name, of in runs.items()}


@FEW
@given(QUERIES, RANDOM, FORMS)
def test_other_names_in_the_same_order_change_no_digit(topics, random, form) -> None:
    whole = world(topics)
    worlds = (whole, renamed(whole, random, form, list(range(len(whole[0])))))
    one, other = (rs.evaluate(*each, **OPTIONS) for each in worlds)
    assert figures(one) == figures(other)
    one, other = (rs.compare(*each, depths=[3], bootstrap=rs.Bootstrap(20), **COMPARED).to_rows() for each in worlds)
    assert str(one) == str(other)


@FEW
@given(QUERIES, RANDOM, FORMS)
def test_other_names_for_queries_and_passages_change_no_figure(topics, random, form) -> None:
    """Queries are summed in the order of their names, so the last digit may differ.

    They are resampled in that order too, so intervals are those of other resamples, and are left out here.
    """
    whole = world(topics)
    queries = len(whole[0])
    worlds = (whole, renamed(whole, random, form, random.sample(range(queries), queries)))
    reports = [rs.evaluate(*each, **OPTIONS | {"bootstrap": None}) for each in worlds]
    assert_alike(*([e.to_dict() for run in found.runs.values() for e in run.estimates.values()] for found in reports))
    compared = [rs.compare(*each, depths=[3], bootstrap=rs.Bootstrap(20), **COMPARED).to_rows() for each in worlds]
    assert_alike(*([{key: row[key] for key in row.keys() - RESAMPLED} for row in rows] for rows in compared))


@FEW
@given(QUERIES)
def test_a_comparison_the_other_way_round_has_the_other_sign(topics) -> None:
    labels, runs = world(topics)
    options = {"scale": "utility", "corpus_size": 50, "measures": ["Success@1", "RA-nWG@3"]}
    options |= {"bootstrap": rs.Bootstrap(20), "ids": "exact"}
    one = rs.compare(labels, runs, **options).to_rows()
    other = rs.compare(labels, {"b": runs["b"], "a": runs["a"]}, **options).to_rows()
    assert [row["measure"] for row in one] == [row["measure"] for row in other]
    for row, back in zip(one, other, strict=True):
        assert row["difference"] == pytest.approx(-back["difference"], abs=1e-12, nan_ok=True)
        assert row["p"] == pytest.approx(back["p"], abs=1e-12, nan_ok=True)


# -- better lists ----------------------------------------------------------------------------------------

JUNK = {"known junk": 1}


def of_list(graded: dict[str, int], ranked: list[str], **options: Any) -> dict[str, float]:
    """The figures of one query, at depths that are shorter and longer than the list."""
    (row,) = rs.evaluate(
        {"q": graded},
        {"r": {"q": ranked}},
        scale="utility",
        corpus_size=50,
        measures=[*EVERY, "nDCG(gain=exp)"],
        depths=[1, 2, 4, 9],
        bootstrap=None,
        ids="exact",
        pool={"q": [*PASSAGES, *JUNK]},
        **options,
    ).per_query()
    return {key: math.nan if value is None else value for key, value in row.items() if key not in ("run", "query")}


def relevance(graded: dict[str, int]) -> Callable[[str], float]:
    return lambda passage: graded.get(passage, 0) >= 4


#: What a passage is worth to a measure, from the grades of its query: no other property makes one passage better.
WORTHS: dict[str, Callable[[dict[str, int]], Callable[[str], float]]] = {
    **dict.fromkeys(("Success", "P", "R", "AP", "RR", "N-Recall4+", "Precision4+", "F", "Rprec", "T"), relevance),
    "N-Recall5": lambda graded: lambda passage: graded.get(passage, 0) == 5,
    "nDCG": lambda graded: lambda passage: graded.get(passage, 0),
    "nDCG(gain=exp)": lambda graded: lambda passage: graded.get(passage, 0),
    # Weights, not grades: a rare 3 may weigh more than a common 4.
    "RA-nWG": lambda graded: lambda passage: float(utility_weights(graded.values())[graded.get(passage, 1)]),
    "%PROC": lambda graded: lambda passage: float(utility_weights(graded.values())[graded.get(passage, 1)]),
    "Harm": lambda graded: lambda passage: graded.get(passage, 5) >= 3,
}


def assert_not_worse(graded: dict[str, int], before: list[str], after: list[str], names: set[str]) -> None:
    old, new = of_list(graded, before), of_list(graded, after)
    assert set(old) == set(new)
    checked = 0
    for key in old:
        name = key.partition("@")[0]
        if name not in names or "." in key.partition("@")[2].partition(".")[2]:
            continue
        checked += 1
        assert math.isnan(old[key]) == math.isnan(new[key]), key
        if math.isnan(old[key]):
            continue
        assert (new[key] <= old[key] + 1e-12) if name == "Harm" else (new[key] >= old[key] - 1e-12), (key, old, new)
    assert checked >= len(names) or not names


@MANY
@given(GRADED, LISTS.filter(bool), st.data())
def test_a_better_passage_at_the_same_place_lowers_no_figure(graded, ranked, data) -> None:
    graded = graded | JUNK
    place = data.draw(st.integers(0, len(ranked) - 1))
    other = data.draw(st.sampled_from([each for each in PASSAGES if each not in ranked]))
    worse, better = ranked, [*ranked[:place], other, *ranked[place + 1 :]]
    names = {name for name, worth in WORTHS.items() if worth(graded)(other) >= worth(graded)(ranked[place])}
    assume(names)
    assert_not_worse(graded, worse, better, names)


@MANY
@given(GRADED, LISTS.filter(lambda ids: len(ids) > 1), st.data())
def test_a_better_passage_that_moves_up_lowers_no_figure(graded, ranked, data) -> None:
    graded = graded | JUNK
    first, second = sorted(data.draw(st.lists(st.integers(0, len(ranked) - 1), min_size=2, max_size=2, unique=True)))
    swapped = list(ranked)
    swapped[first], swapped[second] = ranked[second], ranked[first]
    names = {name for name, worth in WORTHS.items() if worth(graded)(ranked[second]) >= worth(graded)(ranked[first])}
    assert_not_worse(graded, ranked, swapped, names)


@MANY
@given(GRADED, LISTS, st.sampled_from(PASSAGES))
def test_what_comes_at_the_end_changes_no_figure_at_smaller_depths(graded, ranked, further) -> None:
    assume(further not in ranked)
    graded = graded | JUNK
    old, new = of_list(graded, ranked), of_list(graded, [*ranked, further])
    for key in old:
        depth = key.partition("@")[2].partition(".")[0]
        if depth and int(depth) <= len(ranked):
            assert old[key] == new[key] or (math.isnan(old[key]) and math.isnan(new[key])), key


@MANY
@given(QUERIES, st.data())
def test_bits_never_fall_where_more_queries_succeed(topics, data) -> None:
    labels, runs = world(topics)
    better = dict(runs["a"])
    query = data.draw(st.sampled_from(list(labels)))
    good = [passage for passage, grade in labels[query].items() if grade >= 4]
    assume(good)
    better[query] = [good[0], *[each for each in better[query] if each != good[0]]]
    options = OPTIONS | {"measures": ["Success", "BoR", "EF", "RandomSuccess", "BoR_max"], "bootstrap": None}
    old, new = (rs.evaluate(labels, {"a": run}, **options) for run in (runs["a"], better))
    for name in ("Success", "BoR", "EF"):
        assert new[f"{name}@3"].value >= old[f"{name}@3"].value - 1e-12
    for name in ("RandomSuccess", "BoR_max"):
        assert new[f"{name}@3"].value == old[f"{name}@3"].value
    assert new["BoR@3"].value <= new["BoR_max@3"].value + 1e-12
