"""BoR(null=lists): the lists of a run against the lists that it made for the other queries."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs

pytestmark = pytest.mark.contract

PASSAGES = [f"d{i}" for i in range(8)]
QUERIES = [f"q{i}" for i in range(5)]


def by_brute_force(labels, lists, depth, m=1, rel=1, weights=None):
    """Give every query the list of every other one."""
    counted = [q for q in labels if sum(g >= rel for g in labels[q].values()) >= m]
    weight = {q: 1.0 if weights is None else weights[q] for q in counted}

    def success(query, owner):
        return len({d for d in lists.get(owner, [])[:depth] if labels[query].get(d, 0) >= rel}) >= m

    total = sum(weight.values())
    own = sum(weight[q] * success(q, q) for q in counted) / total if counted else math.nan
    others = 0.0
    for q in counted:
        rest = [o for o in counted if o != q]
        if rest:
            share = sum(weight[o] * success(q, o) for o in rest) / sum(weight[o] for o in rest)
            others += weight[q] * share / total
    return own, others


@st.composite
def worlds(draw):
    labels = {q: draw(st.dictionaries(st.sampled_from(PASSAGES), st.integers(0, 2), min_size=1)) for q in QUERIES}
    lists = {
        q: draw(st.lists(st.sampled_from(PASSAGES), min_size=1, max_size=6)) for q in QUERIES[: draw(st.integers(2, 5))]
    }
    return labels, lists


@settings(max_examples=150, deadline=None)
@given(worlds(), st.integers(1, 6), st.integers(1, 2), st.integers(1, 2))
@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
def test_it_is_the_figure_of_all_pairs(world, depth, m, rel) -> None:
    labels, lists = world
    name = f"BoR(null=lists,rel={rel},m={m})@{depth}"
    try:
        found = rs.evaluate(labels, {"run": lists}, scale="trec", measures=[name], bootstrap=None)[name].value
    except rs.InputError:  # No retrieved passage is judged.
        return
    own, others = by_brute_force(labels, lists, depth, m, rel)
    if not others > 0:
        assert math.isnan(found)
    elif own == 0:
        assert found == -math.inf
    else:
        assert found == pytest.approx(math.log2(own / others), abs=1e-12)


def test_queries_with_weights_count_on_both_sides() -> None:
    labels, lists = uneven()
    weights = {q: 1.0 + i for i, q in enumerate(labels)}
    report = rs.evaluate(labels, {"run": lists}, measures=["BoR(null=lists)@2"], weights=weights, bootstrap=None)
    own, others = by_brute_force(labels, lists, 2, weights=weights)
    assert report["BoR(null=lists)@2"].value == pytest.approx(math.log2(own / others), abs=1e-12)


def uneven():
    """Twelve queries in three topics; lists hold the own passage, and passages of the topic."""
    labels = {f"q{i}": {f"d{i}": 1, f"t{i % 3}": 1} for i in range(12)}
    lists = {f"q{i}": [f"d{i}" if i % 4 else "x", f"t{i % 3}" if i % 2 else "y"] for i in range(12)}
    return labels, lists


# -- a hub retriever --------------------------------------------------------------------------------------------


def test_the_same_popular_passages_for_everybody_have_bits_over_random_alone(data) -> None:
    labels = rs.read_qrels(data / "cranfield" / "qrels.trec").to_dict()
    relevant = {}
    for row in labels.values():
        for passage, grade in row.items():
            if grade >= 4:
                relevant[passage] = relevant.get(passage, 0) + 1
    popular = sorted(relevant, key=lambda passage: (-relevant[passage], passage))[:10]
    bm25 = rs.read_run(data / "cranfield" / "runs" / "bm25.trec")
    runs = {"hub": dict.fromkeys(labels, popular), "bm25": {query: list(bm25[query]) for query in bm25}}
    report = rs.evaluate(labels, runs, corpus_size=1400, scale="utility", measures=["BoR@10", "BoR(null=lists)@10"])
    assert report["hub", "BoR@10"].low > 1
    assert report["hub", "BoR(null=lists)@10"].value == 0
    assert report["bm25", "BoR(null=lists)@10"].low > 2
    beat, _, after = report.trust.text.partition("'s lists beat a random draw, but those of other queries may serve as")
    assert (beat.rpartition(" ")[2], "'s lists" in after) == ("hub", False)


@pytest.mark.parametrize("served", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_list_for_everybody_has_no_bits_at_all(served, weighted) -> None:
    labels = {f"q{i}": {"popular" if i < served else f"d{i}": 1} for i in range(7)}
    weights = {q: 0.3 + i / 7 for i, q in enumerate(labels)} if weighted else None
    name = "BoR(null=lists)@2"
    report = rs.evaluate(labels, {"hub": {q: ["popular", "other"] for q in labels}}, measures=[name], weights=weights)
    assert report[name].value == 0


# -- what it needs, and how it is written -----------------------------------------------------------------------


def test_it_prints_as_it_parses() -> None:
    assert str(rs.parse_measure("bor(null=LISTS, m=2)@10")) == "BoR(m=2,null=lists)@10"
    assert str(rs.parse_measure("BoR(null=random)@10")) == "BoR@10"
    with pytest.raises(rs.InputError, match="null must be one of random, lists"):
        rs.parse_measure("BoR(null=list)@10")


def test_a_part_of_the_queries_has_none() -> None:
    labels, lists = uneven()
    name = "BoR(null=lists)@2"
    alone = rs.evaluate_joined({"run": rs.join(rs.Qrels.of(labels), rs.Run.of(lists))}, measures=[name])[name]
    assert math.isnan(alone.value)
    assert "whole run" in (alone.reason or "")
    report = rs.evaluate(
        labels, {"run": lists}, measures=[name, "Success@2"], by={"half": {q: int(q[1:]) < 6 for q in labels}}
    )
    assert math.isfinite(report[name].value)
    for part in report.runs["run"].slices["half"].values():
        assert math.isnan(part.estimates[name].value)
        assert "whole run" in (part.estimates[name].reason or "")
        assert math.isfinite(part.estimates["Success@2"].value)


def test_a_run_whose_lists_serve_nobody_else_has_no_ratio() -> None:
    labels = {f"q{i}": {f"d{i}": 1} for i in range(5)}
    figure = rs.evaluate(labels, {"run": {q: [f"d{q[1:]}"] for q in labels}}, measures=["BoR(null=lists)@1"])[
        "BoR(null=lists)@1"
    ]
    assert math.isnan(figure.value)
    assert (figure.reason or "").startswith("no list succeeds for another query")


def test_controls_are_no_labels_of_the_lists() -> None:
    labels, lists = uneven()
    drawn = {q: {f"d{(i + 1) % 12}": 1} for i, q in enumerate(labels)}
    plain, controlled = (
        rs.evaluate(labels, {"run": lists}, measures=["BoR(null=lists)@2"], controls=each, bootstrap=None)
        for each in (None, drawn)
    )
    assert plain["BoR(null=lists)@2"].value == controlled["BoR(null=lists)@2"].value


def test_runs_are_compared_by_it() -> None:
    labels, lists = uneven()
    same = {q: ["t0", "t1"] for q in labels}
    rows = rs.compare(labels, {"hub": same, "run": lists}, measures=["BoR(null=lists)@2"])
    (row,) = rows.rows
    assert {row.value, row.baseline_value} != {row.value}
    assert row.difference == pytest.approx(row.value - row.baseline_value)


# -- its interval -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["topics", "hubs"])
def test_the_interval_holds_the_figure_of_the_population(kind) -> None:
    rng = np.random.default_rng(3)
    truth, covered, times = _population(kind), 0, 120
    for _ in range(times):
        labels, lists = _sample(kind, 60, rng)
        figure = rs.evaluate(labels, {"run": lists}, measures=["BoR(null=lists)@1"], bootstrap=rs.Bootstrap(1000))
        cell = figure["BoR(null=lists)@1"]
        covered += cell.low <= truth <= cell.high
    assert covered >= 0.9 * times  # .93, less the error of so few worlds


def _parts(kind, n, rng):
    """Whether each list serves each query: lists differ in how popular they are, queries in how easy they are."""
    topic, easy, popular = rng.integers(0, 20, n), rng.gamma(1, 1, n), rng.gamma(1, 1, n)
    chance = (0.01 if kind == "topics" else 0.2) * easy[:, None] * popular
    if kind == "topics":
        chance = chance + 0.3 * (topic[:, None] == topic) * easy[:, None]
    serves = rng.random((n, n)) < np.minimum(0.95, chance)
    np.fill_diagonal(serves, rng.random(n) < np.minimum(0.95, 0.5 + 0.1 * easy))
    return serves


def _population(kind):
    serves = _parts(kind, 4000, np.random.default_rng(5))
    own = serves.diagonal().mean()
    return math.log2(own / ((serves.sum() - serves.trace()) / (4000 * 3999)))


def _sample(kind, n, rng):
    """Lists of one passage each, which is relevant to the queries that the list serves."""
    serves = _parts(kind, n, rng)
    labels = {f"q{i}": {"none": 1, **{f"d{j}": 1 for j in np.flatnonzero(serves[i]).tolist()}} for i in range(n)}
    return labels, {f"q{j}": [f"d{j}"] for j in range(n)}
