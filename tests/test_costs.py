"""The costs of a query: against sums by hand and against `sweep`, mistakes as messages, the front by brute force."""

from __future__ import annotations

import math
import random

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rag_selectivity as rs
from rag_selectivity.advice.costs import Costs, cost_points, drawn_depths, pareto, read_costs
from rag_selectivity.evaluation.joining import join_runs
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.measures.chance import Success
from rag_selectivity.results.decision import CostPoint

pytestmark = pytest.mark.inside

FAST = Bootstrap(resamples=200)


def world(queries: int = 12) -> tuple[dict, dict, dict]:
    """Labels, two runs with lists of different lengths, and a length for each passage."""
    draw = random.Random(5)
    qrels = {f"q{i}": {f"q{i}p0": 1} for i in range(queries)}
    runs = {}
    for name, depth in (("short", 3), ("long", 7)):
        lists = {q: [f"{q}p{j}" for j in draw.sample(range(8), depth - i % 3)] for i, q in enumerate(qrels)}
        runs[name] = {**lists, "not-judged": ["x", "y"]}
    del runs["long"]["q4"]
    lengths = {p: draw.randint(1, 400) for run in runs.values() for ranked in run.values() for p in ranked}
    return qrels, runs, lengths


def costs_of(qrels: dict, runs: dict, **given) -> Costs:
    return read_costs(join_runs(qrels, runs, corpus_size=1000).judged, runs, **{"bootstrap": FAST, **given})


def by_hand(qrels: dict, run: dict, lengths: dict, depth: int) -> list[float]:
    return [sum(lengths[p] for p in run[q][:depth]) for q in qrels if q in run]


def test_the_tokens_of_the_top_k_are_sums_by_hand() -> None:
    qrels, runs, lengths = world()
    costs = costs_of(qrels, runs, tokens=lengths)
    for name, run in runs.items():
        for depth in (1, 2, 3, 5, 7, 20):
            sums = by_hand(qrels, run, lengths, depth)
            tokens = costs.at(name, depth)["tokens"]
            assert tokens.value == pytest.approx(sum(sums) / len(sums))
            assert (tokens.n, tokens.n_total) == (len(sums), len(qrels))
            assert min(sums) <= tokens.low < tokens.value < tokens.high <= max(sums)
            assert costs.mean_at(name, [depth]).tolist() == pytest.approx([tokens.value])
    assert costs.at("long", 3)["tokens"].n == 11, "q4 is not in the run: nobody knows what it costs"
    assert not costs.notes
    assert list(costs.at("short", 3)) == ["tokens"]


def test_the_mean_is_that_of_the_sweep() -> None:
    qrels, runs, lengths = world()
    swept = rs.sweep(qrels, runs, corpus_size=1000, tokens=lengths)
    costs = costs_of(qrels, runs, tokens=lengths)
    for name in runs:
        rows = swept[name].rows
        assert [row["tokens"] for row in rows] == costs.mean_at(name, [row["K"] for row in rows]).tolist()


def test_the_interval_is_that_of_the_bootstrap_over_queries() -> None:
    qrels, runs, lengths = world()
    sums = np.array(by_hand(qrels, runs["short"], lengths, 2), np.float64)
    found = costs_of(qrels, runs, tokens=lengths, bootstrap=Bootstrap(resamples=4000)).at("short", 2)["tokens"]
    expected = stats.bootstrap([sums], np.mean, method="BCa", n_resamples=4000, rng=7).confidence_interval
    reach = stats.t.ppf(0.975, len(sums) - 1) / stats.norm.ppf(0.975)
    ends = [found.value + reach * (end - found.value) for end in expected]
    assert [found.low, found.high] == pytest.approx(ends, rel=0.03)
    without = costs_of(qrels, runs, tokens=lengths, bootstrap=None).at("short", 2)["tokens"]
    assert without.value == found.value
    assert math.isnan(without.low)


def test_lengths_from_the_run_itself_and_a_table_before_it(tmp_path) -> None:
    qrels, runs, lengths = world()
    rows = [
        {"query_id": q, "doc_id": p, "score": -i, "tokens": lengths[p]}
        for q, ranked in runs["short"].items()
        for i, p in enumerate(ranked)
    ]
    frame = pandas.DataFrame(rows).sample(frac=1, random_state=3)
    frame.to_csv(tmp_path / "short.csv", index=False)
    expected = costs_of(qrels, runs, tokens=lengths).mean_at("short", [1, 2, 3])
    for run in (frame, tmp_path / "short.csv"):
        own = costs_of(qrels, {"short": run, "long": runs["long"]}, corpus={})
        assert own.mean_at("short", [1, 2, 3]).tolist() == expected.tolist()
        assert "long" not in own.lists
        assert np.isnan(own.mean_at("long", [1, 2])).all()
        doubled = {p: 2 * n for p, n in lengths.items()}
        given = costs_of(qrels, {"short": run, "long": runs["long"]}, tokens=doubled)
        assert given.mean_at("short", [1, 2, 3]).tolist() == (2 * expected).tolist()


def test_the_cost_of_chunks_is_not_that_of_their_documents() -> None:
    qrels, run = {"q": {"d": 1}, "r": {"e": 1}}, {"q": ["d", "d", "f"], "r": ["e", "e"]}
    judged = join_runs(qrels, {"run": run}, passages_of={"d": 9, "e": 9, "f": 9}).judged
    assert not read_costs(judged, {"run": run}, corpus=dict.fromkeys("def", "a long text"))
    assert read_costs(judged, {"run": run}, tokens=dict.fromkeys("def", 7)).mean_at("run", [2]).tolist() == [14.0]


def test_ids_in_a_form() -> None:
    qrels, runs, lengths = world()
    upper = {p.upper(): n for p, n in lengths.items()}
    measured = [{"query_id": q.upper(), "ms": 5 + i} for i, q in enumerate(qrels)]
    judged = join_runs(qrels, runs, corpus_size=1000, ids="casefold").judged
    for corpus, tokens in ((None, upper), ({p: "x" * 4 * n for p, n in upper.items()}, None)):
        found = read_costs(judged, runs, tokens=tokens, corpus=corpus, costs={"short": measured}, ids="casefold")
        assert found.at("short", 2)["tokens"].value == pytest.approx(np.mean(by_hand(qrels, runs["short"], lengths, 2)))
        assert found.at("short", 2)["milliseconds"].value == pytest.approx(5 + 5.5)


# -- measured costs ---------------------------------------------------------------------------------------


def measured_rows(qrels: dict) -> list[dict]:
    return [
        {"query_id": q, "tokens": 100 + i, "milliseconds": 10.5 * i, "price": i / 1000} for i, q in enumerate(qrels)
    ]


def test_measured_costs_from_whatever_holds_them(tmp_path) -> None:
    qrels, runs, _ = world()
    rows = measured_rows(qrels)
    frame = pandas.DataFrame(rows)
    frame.to_csv(tmp_path / "costs.csv", index=False)
    frame.to_json(tmp_path / "costs.jsonl", orient="records", lines=True)
    both = pandas.concat([frame.assign(run="short"), frame.assign(run="long", milliseconds=7.0)])
    one = {"short": runs["short"]}
    by_query = {row["query_id"]: {kind: row[kind] for kind in ("tokens", "milliseconds", "price")} for row in rows}
    sources = [frame, rows, by_query, tmp_path / "costs.csv", str(tmp_path / "costs.jsonl"), {"short": rows}]
    for source in sources:
        found = costs_of(qrels, one, costs=source).at("short", 99)
        assert list(found) == ["tokens", "milliseconds", "price"]
        for kind, cost in found.items():
            assert cost.value == pytest.approx(np.mean([row[kind] for row in rows]))
            assert cost.low < cost.value < cost.high
            assert cost.n == len(rows)
    for source in (both, {"short": frame, "long": tmp_path / "costs.csv"}, {"short": by_query, "long": rows}):
        found = costs_of(qrels, runs, costs=source)
        # q4 has costs, but is not in this run.
        in_long = [row["tokens"] for row in rows if row["query_id"] != "q4"]
        assert found.at("long", 1)["tokens"].value == pytest.approx(np.mean(in_long))
        assert found.at("short", 1)["price"].value == pytest.approx(np.mean([row["price"] for row in rows]))
    assert costs_of(qrels, runs, costs=both).at("long", 1)["milliseconds"].value == 7.0


def test_queries_without_costs_are_counted_and_said() -> None:
    qrels, runs, _ = world()
    rows = [row for row in measured_rows(qrels) if row["query_id"] not in ("q2", "q3")]
    rows[0]["milliseconds"] = ""
    rows[1]["milliseconds"] = float("nan")
    rows.append({"query_id": "elsewhere", "tokens": 1, "milliseconds": 1, "price": 1})
    costs = costs_of(qrels, runs, costs={"short": rows})
    found = costs.at("short", 1)
    assert found["milliseconds"].value == pytest.approx(np.mean([row["milliseconds"] for row in rows[2:-1]]))
    assert [(cost.n, cost.n_total) for cost in found.values()] == [(10, 12), (8, 12), (10, 12)]
    assert costs.notes == (
        "long: there are no measured costs of this run",
        "short: 1 of 11 queries with costs are not evaluated: their costs are left out",
        "short: 2 of 12 queries have no tokens ('q2', 'q3'): the mean is over the other 10",
        "short: 4 of 12 queries have no milliseconds ('q0', 'q1', 'q2'): the mean is over the other 8",
        "short: 2 of 12 queries have no price ('q2', 'q3'): the mean is over the other 10",
    )
    assert costs.at("long", 1) == {}


def test_known_lengths_are_before_measured_tokens_and_these_before_estimates() -> None:
    qrels, runs, lengths = world()
    one, rows = {"short": runs["short"]}, measured_rows(qrels)
    measured = np.mean([row["tokens"] for row in rows])
    exact = np.mean(by_hand(qrels, one["short"], lengths, 2))
    assert costs_of(qrels, one, costs=rows, tokens=lengths).at("short", 2)["tokens"].value == pytest.approx(exact)
    estimated = costs_of(qrels, one, costs=rows, corpus=dict.fromkeys(lengths, "x" * 40))
    assert estimated.at("short", 2)["tokens"].value == pytest.approx(measured)
    ten_each = by_hand(qrels, one["short"], dict.fromkeys(lengths, 10), 2)
    assert estimated.mean_at("short", [2]).tolist() == [np.mean(ten_each)]


# -- cost against quality --------------------------------------------------------------------------------

NUMBERS = st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0, 3.0, math.nan])


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=12))
def test_the_front_is_that_of_brute_force(drawn) -> None:
    points = [CostPoint(f"r{i}", 1, cost, quality, front=i % 2 == 0) for i, (cost, quality) in enumerate(drawn)]

    def dominated(point: CostPoint) -> bool:
        return any(
            other.cost <= point.cost
            and other.quality >= point.quality
            and (other.cost < point.cost or other.quality > point.quality)
            for other in points
        )

    marked = pareto(points)
    assert [p.run for p in marked] == [p.run for p in points]
    for point, before in zip(marked, points, strict=True):
        nan = math.isnan(before.cost) or math.isnan(before.quality)
        assert point.front == (not nan and not dominated(before))


def test_points_of_all_runs_at_all_k() -> None:
    qrels, runs, lengths = world()
    joined = join_runs(qrels, runs, corpus_size=1000).judged
    rows = measured_rows(qrels)
    costs = costs_of(qrels, runs, tokens=lengths, costs={"short": rows, "long": [{**r, "price": ""} for r in rows]})
    depths = drawn_depths(7, 2)
    assert depths.tolist() == [1, 2, 3, 4, 5, 6, 7]
    curves = {name: Success().outcome(run, depths).value() for name, run in joined.items()}
    points = cost_points(costs, curves, depths, K=2)
    assert list(points) == ["tokens", "milliseconds", "price"]
    assert [(p.run, p.K) for p in points["tokens"]] == [("short", k) for k in (1, 2, 3)] + [
        ("long", k) for k in range(1, 8)
    ]
    report = rs.evaluate(qrels, runs, corpus_size=1000, measures=["Success"], depths=list(range(1, 8)), bootstrap=None)
    for point in points["tokens"]:
        assert point.cost == costs.at(point.run, point.K)["tokens"].value
        assert point.quality == pytest.approx(report[point.run, f"Success@{point.K}"].value)
    assert [(p.run, p.K) for p in points["milliseconds"]] == [("short", 2), ("long", 2)]
    assert [(p.run, p.K, p.cost) for p in points["price"]] == [("short", 2, costs.at("short", 2)["price"].value)]
    assert points["price"][0].front
    # At a K that no list reaches, each run has the point of its whole lists.
    beyond = {name: Success().outcome(run, drawn_depths(7, 9)).value() for name, run in joined.items()}
    at_nine = [p for p in cost_points(costs, beyond, drawn_depths(7, 9), K=9)["tokens"] if p.K == 9]
    assert [(p.run, p.cost) for p in at_nine] == [(name, costs.at(name, 7)["tokens"].value) for name in runs]
    assert cost_points(Costs(), curves, depths, K=2) == {}
    with pytest.raises(rs.InputError, match="not among the depths"):
        cost_points(costs, curves, depths, K=9)
