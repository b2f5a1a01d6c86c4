"""The cost of a query, from tables and lengths, and the cheapest run whose evidence keeps up with the best."""

import numpy as np
import pandas
import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide, read_costs

pytestmark = pytest.mark.contract

LABELS = {f"q{i}": {"a": 1, "b": 1} for i in range(80)}
JUNK = [f"x{i}" for i in range(10)]
#: `long` finds everything with many passages, `short` the same with few, `poor` nothing but the first.
RUNS = {
    "long": {q: [*JUNK[:3], "a", *JUNK[3:5], "b", *JUNK[5:]] for q in LABELS},
    "short": {q: ["a", "b", *JUNK] for q in LABELS},
    "poor": {q: ["a", *JUNK] for q in LABELS},
}
LENGTHS = {"a": 100, "b": 100, **dict.fromkeys(JUNK, 10)}


def decided(costs=None, tokens=None, **options):
    report = rs.evaluate(LABELS, RUNS, corpus_size=1000)
    judged = {name: part.judged for name, part in report.runs.items()}
    return decide(report, costs=read_costs(judged, RUNS, costs=costs, tokens=tokens), **options)


def test_tokens_are_those_of_the_top_k() -> None:
    decision = decided(tokens=LENGTHS, k=2)
    assert {line.run: line.costs for line in decision.lines} == {
        "long": {"tokens": 20},
        "short": {"tokens": 200},
        "poor": {"tokens": 110},
    }


def test_the_cheapest_run_keeps_up_with_the_best_at_its_own_k() -> None:
    decision = decided(tokens=LENGTHS)
    assert {name: each.value for name, each in decision.k_by_run.items()} == {"long": 7, "short": 2, "poor": 1}
    # poor reads 100 tokens, and loses a whole decisive passage.
    assert (decision.cheapest.run, decision.cheapest.K, decision.cheapest.cost) == ("short", 2, 200)
    assert decision.cheapest.most_lost <= 0.05
    assert decision.to_dict()["cheapest"]["run"] == "short"


def test_a_price_comes_before_tokens(tmp_path) -> None:
    prices = {"long": 1.0, "short": 2.0, "poor": 0.5}
    rows = [{"run": name, "query_id": q, "price": price} for name, price in prices.items() for q in LABELS]
    pandas.DataFrame(rows).to_csv(tmp_path / "costs.csv", index=False)
    for source in (rows, pandas.DataFrame(rows), tmp_path / "costs.csv"):
        decision = decided(costs=source, tokens=LENGTHS)
        assert (decision.cheapest.run, decision.cheapest.kind, decision.cheapest.cost) == ("long", "price", 1.0)


def test_what_is_not_known_of_all_runs_names_no_cheapest() -> None:
    rows = [{"query_id": q, "milliseconds": i} for i, q in enumerate(LABELS)]
    decision = decided(costs={"poor": rows[:30]})
    assert decision.cheapest is None
    assert decision.notes == (
        "long: there are no measured costs of this run",
        "short: there are no measured costs of this run",
        "poor: the mean of milliseconds is over 30 of 80 queries",
    )
    assert next(line.costs for line in decision.lines if line.run == "poor") == {"milliseconds": np.mean(range(30))}
    text = str(rs.evaluate(LABELS, RUNS, corpus_size=1000).with_decision(decision))
    assert "Mean cost of a query: poor 14.5 milliseconds." in text


def test_costs_of_other_queries_are_a_mistake() -> None:
    with pytest.raises(rs.InputError, match="compare the query ids"):
        decided(costs={"poor": [{"query_id": "elsewhere", "price": 1}]})
