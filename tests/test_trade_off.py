"""What quality costs: percentiles and the cheapest run by brute force, bounds that hold, mistakes as messages."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rag_selectivity as rs
from benchmarks.simulated.online import RUNS, cheapest
from rag_selectivity.advice import decide, read_costs
from rag_selectivity.advice.costs import Costs
from rag_selectivity.inference.behind_best import behind_best
from rag_selectivity.inference.betting import highest_mean
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.paired import paired_difference
from rag_selectivity.measures.base import Outcome
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.trade_off import TradeOff

pytestmark = pytest.mark.inside

QUERIES = [f"q{i}" for i in range(300)]


def world(noises: dict[str, float]) -> tuple[dict, dict, dict]:
    """Grades of ten passages of each query, a run for each noise, and a length for each passage."""
    draw = random.Random(11)
    grades = {q: {f"{q}p{j}": 5 if j < 2 else draw.choice([1, 2, 3]) for j in range(10)} for q in QUERIES}
    runs = {
        name: {q: sorted(of, key=lambda p: -of[p] + draw.gauss(0, noise)) for q, of in grades.items()}
        for name, noise in noises.items()
    }
    return grades, runs, {p: draw.randint(50, 300) for of in grades.values() for p in of}


def milliseconds(costs: dict[str, float], queries: list[str] = QUERIES) -> list[dict]:
    """Skewed costs of every query around the given ones."""
    draw = random.Random(5)
    return [
        {"run": name, "query_id": q, "milliseconds": cost * draw.lognormvariate(0, 0.6)}
        for name, cost in costs.items()
        for q in queries
    ]


def decision_of(
    grades: dict, runs: dict, *, k: int = 2, bootstrap: Bootstrap | None = Bootstrap(200), **given
) -> Decision:
    options = {name: given.pop(name) for name in ("max_loss", "cost_measure", "cost_depths", "paired") if name in given}
    report = rs.evaluate(
        grades, runs, scale="utility", corpus_size=5000, depths=[k], bootstrap=bootstrap, **given.pop("evaluate", {})
    )
    judged = {name: run.judged for name, run in report.runs.items()}
    return decide(report, k=k, costs=read_costs(judged, runs, bootstrap=bootstrap, **given), **options)


# -- what a query costs ----------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60))
def test_percentiles_and_the_cost_of_a_thousand_queries_by_their_definition(values) -> None:
    column = np.array([*map(float, values), math.nan])
    costs = Costs({"run": tuple(f"q{i}" for i in range(len(column)))}, measured={"run": {"price": column}})
    found = costs.of_query("run", 3)["price"]
    for share, percentile in ((Fraction(1, 2), found.p50), (Fraction(95, 100), found.p95)):
        enough = [v for v in sorted(values) if Fraction(sum(w <= v for w in values), len(values)) >= share]
        assert percentile == enough[0]
    assert found.of_a_thousand == pytest.approx(1000 * sum(values) / len(values))
    assert (found.mean.n, found.mean.n_total) == (len(values), len(values) + 1)


# -- the cheapest ----------------------------------------------------------------------------------------


def behind_by_hand(values: list[np.ndarray], level: float = 0.95) -> list[float]:
    """Each run against each other one, at Bonferroni's level over all but one."""
    tail = (1 - level) / 2 / (len(values) - 1)
    most = []
    for i, own in enumerate(values):
        bounds = []
        for j, other in enumerate(values):
            if i != j:
                pair = [Outcome((v[:, None],), "") for v in (other, own)]
                bounds.append(paired_difference(*pair, level=1 - 2 * tail).high[0])
                bounds.append(highest_mean((other - own)[:, None], -1.0, 1.0, tail)[0])
        most.append(max(0.0, *bounds))
    return most


def test_the_cheapest_is_that_of_brute_force() -> None:
    grades, runs, lengths = world({"bad": 4.0, "good": 0.8, "best": 0.6})
    rows = milliseconds({"bad": 10, "good": 20, "best": 90})
    for measure, max_loss in ((None, 0.02), (None, 0.08), ("Success", 0.02), ("Precision4+", 0.9)):
        decision = decision_of(grades, runs, costs=rows, tokens=lengths, max_loss=max_loss, cost_measure=measure)
        report = rs.evaluate(grades, runs, scale="utility", measures=[measure or "RA-nWG"], depths=[2], bootstrap=None)
        values = {name: run.per_query[f"{measure or 'RA-nWG'}@2"] for name, run in report.runs.items()}
        expected = dict(zip(values, behind_by_hand(list(values.values())), strict=True))
        for kind in ("tokens", "milliseconds"):
            trade = decision.trade_offs[kind]
            means = [point.cost.mean.value for point in trade.points]
            assert means == sorted(means)
            assert str(trade.measure) == (measure or "RA-nWG")
            for point in trade.points:
                assert point.most_lost == pytest.approx(expected[point.run], abs=1e-12)
                assert point.quality.value == pytest.approx(np.nanmean(values[point.run]))
                dominated = [
                    other
                    for other in trade.points
                    if other.quality.value >= point.quality.value
                    and other.cost.mean.value <= point.cost.mean.value
                    and (other.quality.value, -other.cost.mean.value) != (point.quality.value, -point.cost.mean.value)
                ]
                assert point.front == (not dominated)
            within = [point.run for point in trade.points if expected[point.run] <= max_loss]
            assert trade.cheapest == ((within[0], 2) if within else None)
            assert np.nanmean(values[trade.best[0]]) == max(map(np.nanmean, values.values()))
            assert trade.confidence == pytest.approx(0.975)
    assert decision.trade_offs["milliseconds"].cheapest == ("bad", 2), "a margin of .9 lets any run pass"


def trade(decision: Decision, kind: str = "milliseconds") -> TradeOff:
    return decision.trade_offs[kind]


def test_the_cheapest_is_sought_among_the_runs_whose_costs_are_known() -> None:
    grades, runs, _ = world({"bad": 4.0, "good": 0.65, "best": 0.6})
    two, one = milliseconds({"good": 20, "best": 90}), milliseconds({"good": 20})
    some = trade(decision_of(grades, runs, costs=two, max_loss=0.06))
    assert some.text.startswith(
        "good is the cheapest of the 2 runs with known milliseconds that is shown to lose at most"
    )
    alone = trade(decision_of(grades, runs, costs=one, max_loss=0.06))
    assert alone.text.startswith(
        "good is the only run with known milliseconds, and is shown to lose at most 0.06 of RA-nWG"
    )
    none = trade(decision_of(grades, runs, costs=one, max_loss=0.001))
    assert none.text.startswith("None of the runs with known milliseconds is shown to lose at most 0.001 of RA-nWG")


def test_labels_that_show_nothing_show_no_cheapest_run() -> None:
    draw = random.Random(3)
    # Grades and lists that have nothing to do with each other.
    grades = {q: {f"{q}p{j}": draw.choice([1, 3, 5]) for j in range(10)} for q in QUERIES}
    runs = {name: {q: draw.sample(list(of), 10) for q, of in grades.items()} for name in ("one", "two")}
    decision = decision_of(grades, runs, costs=milliseconds({"one": 10, "two": 20}), max_loss=0.5)
    assert trade(decision).cheapest is None
    assert trade(decision).text.startswith("These labels show nothing about the runs")


def test_a_run_without_known_costs_is_compared_and_never_chosen() -> None:
    grades, runs, _ = world({"good": 1.5, "best": 0.2})
    found = trade(decision_of(grades, runs, costs=milliseconds({"good": 20}), max_loss=0.05))
    assert [point.run for point in found.points] == ["good"]
    assert found.points[0].most_lost > 0.05
    assert found.best == ("best", 2)
    assert found.cheapest is None
    passed = trade(decision_of(grades, runs, costs=milliseconds({"good": 20}), max_loss=0.9))
    assert passed.cheapest == ("good", 2)
    assert "and has no known milliseconds" in passed.text


def test_costs_are_compared_over_the_queries_in_which_all_are_known() -> None:
    grades, runs, _ = world({"one": 0.5, "two": 0.5})
    # "one" is the cheaper in each query, and was measured in dear ones only.
    rows = [{"run": "two", "query_id": q, "milliseconds": 10.0 + i} for i, q in enumerate(QUERIES)]
    rows += [{"run": "one", "query_id": q, "milliseconds": 9.0 + i} for i, q in enumerate(QUERIES) if i >= 200]
    found = trade(decision_of(grades, runs, costs=rows, max_loss=0.5))
    assert [point.run for point in found.points] == ["one", "two"]
    assert found.points[0].cost.mean.value > found.points[1].cost.mean.value
    assert found.cheapest == ("one", 2)
    assert "Costs are compared over the 100 queries in which all are known." in found.text
    apart = [row for row in rows if row["run"] == "one" or row["milliseconds"] < 150]
    nothing = trade(decision_of(grades, runs, costs=apart, max_loss=0.5))
    assert nothing.cheapest is None
    assert nothing.text == "No query has milliseconds of every run, so that the runs cannot be compared by it."


def test_several_depths_are_compared_by_tokens_and_measured_costs_at_one() -> None:
    grades, runs, lengths = world({"good": 0.8, "best": 0.6})
    rows = milliseconds({"good": 20, "best": 90})
    decision = decision_of(grades, runs, costs=rows, tokens=lengths, cost_depths=[4, 6], max_loss=0.2)
    places = sorted((point.run, point.K) for point in trade(decision, "tokens").points)
    assert places == sorted(product(runs, (2, 4, 6)))
    assert {point.K for point in trade(decision).points} == {2}
    report = rs.evaluate(grades, runs, scale="utility", measures=["RA-nWG"], depths=[2, 4, 6], bootstrap=None)
    values = {(run, k): report.runs[run].per_query[f"RA-nWG@{k}"] for run, k in product(runs, (2, 4, 6))}
    expected = dict(zip(values, behind_by_hand(list(values.values())), strict=True))
    for point in trade(decision, "tokens").points:
        assert point.most_lost == pytest.approx(expected[point.run, point.K], abs=1e-12)
    assert "2 runs at K = 2, 4 and 6" in trade(decision, "tokens").text
    alone = decision_of(grades, runs, costs=rows, max_loss=0.2)
    assert trade(decision).text == trade(alone).text, "what tokens are compared at costs the milliseconds nothing"
    assert [p.most_lost for p in trade(decision).points] == [p.most_lost for p in trade(alone).points]


def test_clusters_widen_the_bound() -> None:
    grades, runs, _ = world({"good": 1.0, "best": 0.6})
    rows = milliseconds({"good": 20, "best": 90})
    single = trade(decision_of(grades, runs, costs=rows))
    grouped = Bootstrap(200, clusters={q: i // 30 for i, q in enumerate(QUERIES)})
    together = trade(decision_of(grades, runs, costs=rows, bootstrap=grouped))
    assert together.points[0].most_lost > single.points[0].most_lost


def test_runs_over_different_queries() -> None:
    grades, runs, _ = world({"one": 0.5, "two": 0.5})
    arms = {"one": {q: runs["one"][q] for q in QUERIES[:150]}, "two": {q: runs["two"][q] for q in QUERIES[150:]}}
    comparison = rs.compare(grades, arms, scale="utility", depths=[2], paired=False, measures=["RA-nWG"])
    judged = {name: run.judged for name, run in comparison.report.runs.items()}
    costs = read_costs(judged, arms, costs=milliseconds({"one": 10, "two": 20}))
    found = trade(decide(comparison.report, k=2, costs=costs, paired=False, max_loss=0.3))
    assert found.cheapest == ("one", 2)
    refused = trade(decide(comparison.report, k=2, costs=costs, max_loss=0.3))
    assert refused.cheapest is None
    assert refused.text.startswith("Not all runs can be compared with each other")


# -- bounds ----------------------------------------------------------------------------------------------


def test_a_bound_is_never_negative_and_needs_a_second_run() -> None:
    ones, zeros = (Outcome((np.full((40, 1), value),), "") for value in (1.0, 0.0))
    found = behind_best([ones, zeros])
    assert found[0] == 0
    assert found[1] >= 1 - 1e-12
    assert np.isnan(behind_best([ones])).all()
    assert np.isnan(behind_best([Outcome((np.ones((1, 1)),), ""), Outcome((np.zeros((1, 1)),), "")])).all()


def test_more_runs_need_stricter_bounds() -> None:
    draw = np.random.default_rng(4)
    outcomes = [Outcome((draw.random((200, 1)),), "") for _ in range(4)]
    assert (behind_best(outcomes)[:2] >= behind_best(outcomes[:2])).all()
    assert (behind_best(outcomes, level=0.99) >= behind_best(outcomes)).all()


@pytest.mark.parametrize("name", ["seldom everything", "seldom much, both ways"])
def test_a_run_just_below_the_margin_is_seldom_named(name) -> None:
    found = cheapest(name, 60, 2, 0.1, 0.1001, samples=60)
    assert found["falsely"] <= 0.075
    assert found["all hold"] >= 0.925


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_the_rate_of_false_choices_and_that_good_runs_are_found(name) -> None:
    found = cheapest(name, 100, 3, 0.1, 0.1001, samples=100)
    # Three standard errors above 2.5 %.
    assert found["falsely"] <= 0.072
    assert found["all hold"] >= 0.928
    if name != "successes":
        assert cheapest(name, 400, 3, 0.1, 0.0, samples=10)["named"] == 1.0
