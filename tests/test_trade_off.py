"""What quality costs: percentiles and the cheapest run by brute force, bounds that hold, mistakes as messages."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import rag_selectivity as rs
from benchmarks.simulated.online import RUNS, cheapest
from rag_selectivity.cli.app import app
from rag_selectivity.cli.inputs import costs_of as files_of_costs
from rag_selectivity.decision import decide, read_costs
from rag_selectivity.decision.costs import Costs
from rag_selectivity.live.trace import Trace
from rag_selectivity.measures.base import Outcome
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.trade_off import TradeOff
from rag_selectivity.statistics.behind_best import behind_best
from rag_selectivity.statistics.betting import highest_mean
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.paired import paired_difference

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


def test_the_sentences() -> None:
    grades, runs, _ = world({"bad": 4.0, "good": 0.65, "best": 0.6})
    rows = milliseconds({"bad": 10, "good": 20, "best": 90})
    found = trade(decision_of(grades, runs, costs=rows, max_loss=0.06))
    values = {point.run: point for point in found.points}
    assert found.cheapest == ("good", 2)
    assert found.text.startswith(
        "good is the cheapest that is shown to lose at most 0.06 of RA-nWG against the best of 3 runs at K = 2: it "
    )
    assert "Of the cheaper ones, some may lose more: bad up to" in found.text
    assert found.text.endswith("Bounds of 97.5% for all of them at once.")
    assert values["bad"].most_lost > 0.06
    none = trade(decision_of(grades, runs, costs=rows, max_loss=0.001))
    assert none.cheapest is None
    assert none.text.startswith("None is shown to lose at most 0.001 of RA-nWG against the best of 3 runs at K = 2: ")
    assert trade(decision_of(grades, {"bad": runs["bad"]}, costs=rows[:300])).text == ""
    untested = trade(decision_of(grades, runs, costs=rows, bootstrap=None))
    assert untested.text.startswith("Without intervals it is not tested")
    assert all(math.isnan(point.most_lost) for point in untested.points)


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost_measure": "RA-nWG@5"}, r"RA-nWG@5 names a depth, .* give RA-nWG \(other depths: cost_depths"),
        ({"cost_measure": "Harm"}, "a measure of which more is better, and Harm is none"),
        ({"cost_measure": "BoR"}, "a mean over queries that has a largest value, and BoR is none"),
        ({"cost_measure": "DCG"}, "a mean over queries that has a largest value, and DCG is none"),
        ({"cost_measure": "RA-mWG"}, "RA-nWG"),
        ({"cost_depths": [0]}, r"cost_depths \(--cost-depths\) must be whole numbers ≥ 1, got 0"),
        ({"cost_depths": [True]}, "got True"),
    ],
)
def test_mistakes_are_named(options, message) -> None:
    grades, runs, lengths = world({"one": 0.5, "two": 0.5})
    with pytest.raises(rs.InputError, match=message):
        decision_of(grades, runs, tokens=lengths, **options)


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


# -- views -----------------------------------------------------------------------------------------------


def files(tmp_path, grades: dict, runs: dict, rows: list[dict]) -> list[str]:
    lines = [f"{q} 0 {p} {grade}" for q, of in grades.items() for p, grade in of.items()]
    (tmp_path / "grades.trec").write_text("\n".join(lines) + "\n")
    arguments = ["--qrels", str(tmp_path / "grades.trec"), "--scale", "utility", "--corpus-size", "5000"]
    for name, run in runs.items():
        ranked = [f"{q} Q0 {p} {i} {-i} {name}" for q, ps in run.items() for i, p in enumerate(ps, 1)]
        (tmp_path / f"{name}.trec").write_text("\n".join(ranked) + "\n")
        arguments += ["--run", str(tmp_path / f"{name}.trec")]
    (tmp_path / "costs.csv").write_text(
        "run,query_id,milliseconds\n" + "".join(f"{r['run']},{r['query_id']},{r['milliseconds']}\n" for r in rows)
    )
    return [*arguments, "--costs", str(tmp_path / "costs.csv")]


def test_compare_and_report_show_it(tmp_path) -> None:
    grades, runs, lengths = world({"good": 0.65, "best": 0.6})
    rows = milliseconds({"good": 20, "best": 90})
    arguments = files(tmp_path, grades, runs, rows)
    (tmp_path / "tokens.csv").write_text("passage_id,tokens\n" + "".join(f"{p},{n}\n" for p, n in lengths.items()))
    arguments += ["--k", "2", "--depths", "2", "--tokens", str(tmp_path / "tokens.csv"), "--max-loss", "0.06"]
    expected = decision_of(grades, runs, costs=rows, tokens=lengths, max_loss=0.06, bootstrap=Bootstrap())
    run = CliRunner()
    shown = run.invoke(app, ["compare", *arguments, "--format", "json"])
    assert shown.exit_code == 0, shown.output
    decision = json.loads(shown.stdout)["decision"]
    found = decision["trade_offs"]
    assert {kind: part["cheapest"] for kind, part in found.items()} == {
        kind: {"run": part.cheapest[0], "K": 2} if part.cheapest else None for kind, part in expected.trade_offs.items()
    }
    assert found["milliseconds"] == json.loads(expected.to_json())["trade_offs"]["milliseconds"]
    text = run.invoke(app, ["compare", *arguments, "--details"]).stdout
    assert "Milliseconds of a query beside RA-nWG, the cheapest first" in text
    assert "Pareto front over runs and K by the means of these queries" in text
    sentence = expected.trade_offs["milliseconds"].text
    assert sentence in " ".join(text.split())
    page = tmp_path / "report.html"
    pytest.importorskip("matplotlib")
    made = run.invoke(
        app, ["report", *arguments, "--cost-measure", "Success", "--cost-depths", "4", "--output", str(page)]
    )
    assert made.exit_code == 0, made.output
    written = page.read_text()
    assert "Tokens of a query beside Success, the cheapest first" in written
    assert "of 2 runs at K = 2 and 4" in written


def test_tokens_alone_are_costs_and_options_without_costs_are_refused(tmp_path) -> None:
    grades, runs, lengths = world({"good": 0.65, "best": 0.6})
    *arguments, _, _ = files(tmp_path, grades, runs, [])
    (tmp_path / "tokens.csv").write_text("passage_id,tokens\n" + "".join(f"{p},{n}\n" for p, n in lengths.items()))
    run = CliRunner()
    plain = run.invoke(app, ["compare", *arguments, "--k", "2", "--format", "json"])
    assert "trade_offs" not in json.loads(plain.stdout)["decision"]
    tokens = run.invoke(
        app, ["compare", *arguments, "--k", "2", "--format", "json", "--tokens", str(tmp_path / "tokens.csv")]
    )
    assert list(json.loads(tokens.stdout)["decision"]["trade_offs"]) == ["tokens"]
    refused = run.invoke(app, ["compare", *arguments, "--cost-measure", "Success"])
    assert refused.exit_code != 0


# -- traces ----------------------------------------------------------------------------------------------


def test_costs_of_a_monitors_trace(tmp_path) -> None:
    labels = {"q1": {"a": 1}, "q2": {"b": 1}}
    trace = tmp_path / "trace.jsonl"
    monitor = rs.Monitor(labels, corpus_size=9, trace=trace)
    for query, seconds, tokens in (("q1", 0.1, 30), ("q1", 0.3, 50), ("q2", 0.05, None)):
        monitor.record(rs.Retrieval(query, ["a", "b"], query_id=query, seconds=seconds, tokens=tokens))
    monitor.close()
    read = Trace.read(trace)
    assert {key: pytest.approx(costs) for key, costs in read.costs.items()} == {
        "q1": {"milliseconds": 100.0, "tokens": 30.0},
        "q1 (2)": {"milliseconds": 300.0, "tokens": 50.0},
        "q2": {"milliseconds": 50.0},
    }
    expected = {"q1": {"milliseconds": 200.0, "tokens": 40.0}, "q2": {"milliseconds": 50.0}}
    assert {query: pytest.approx(costs) for query, costs in read.costs_of_queries().items()} == expected
    given = files_of_costs([f"run={trace}"], ["run=run.trec"])["run"]
    assert given == read.costs_of_queries()
    report = rs.evaluate(labels, {"run": {"q1": ["a"], "q2": ["a"]}}, corpus_size=9, depths=[1])
    costs = read_costs({"run": report.runs["run"].judged}, {"run": {"q1": ["a"]}}, costs={"run": given})
    assert costs.of_query("run", 1)["milliseconds"].mean.value == pytest.approx(125.0)


def test_costs_of_spans_and_mistakes_in_a_trace(tmp_path) -> None:
    def attribute(key: str, value: str) -> dict:
        return {"key": key, "value": {"stringValue": value}}

    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203332", "name": "search",
        "startTimeUnixNano": "1000000000", "endTimeUnixNano": "1250000000",
        "attributes": [attribute("openinference.span.kind", "RETRIEVER"), attribute("input.value", "who?"),
                       attribute("retrieval.documents.0.document.id", "d7")],
    }  # fmt: skip
    spans = tmp_path / "spans.jsonl"
    spans.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n")
    assert files_of_costs([str(spans)], ["run.trec"])["who?"]["milliseconds"] == pytest.approx(250.0)
    line = {"schema": "rag-selectivity/trace/1", "query": "who?", "shown": ["d7"]}
    trace = tmp_path / "trace.jsonl"
    for more, message in (
        ({}, r"trace.jsonl: no retrieval of the trace has tokens or a time"),
        ({"seconds": -1}, r"trace.jsonl:1: `seconds` must be a number ≥ 0, got -1"),
        ({"tokens": "many"}, r"trace.jsonl:1: not a line of a trace: .*tokens"),
    ):
        trace.write_text(json.dumps(line | more) + "\n")
        with pytest.raises(rs.InputError, match=message):
            files_of_costs([str(trace)], ["run.trec"])
    records = tmp_path / "costs.json"
    records.write_text(json.dumps([{"query_id": "q1", "price": 1}]))
    assert files_of_costs([str(records)], ["run.trec"]) == records, "a list of records is no trace"


@pytest.mark.slow
def test_labels_by_people_calibrate_the_bounds_at_one_depth() -> None:
    draw = random.Random(1)
    queries = QUERIES[:90]
    grades = {q: {f"{q}p{j}": draw.choice([1, 1, 2, 3, 4, 5]) for j in range(12)} for q in queries}
    runs = {
        name: {q: sorted(of, key=lambda p: -of[p] + draw.gauss(0, noise)) for q, of in grades.items()}
        for name, noise in (("good", 1.0), ("bad", 4.0))
    }
    human = {
        q: {p: min(5, max(1, grade + draw.choice([0, 0, 0, 1, -1]))) for p, grade in of.items() if draw.random() < 0.5}
        for q, of in grades.items()
    }
    given = {"costs": milliseconds({"good": 20, "bad": 10}, queries), "k": 3, "evaluate": {"human": human}}
    found = trade(decision_of(grades, runs, max_loss=0.1, **given))
    assert {point.quality.basis for point in found.points} == {"calibrated"}
    comparison = rs.compare(
        grades, runs, scale="utility", human=human, measures=["RA-nWG"], depths=[3], baseline="good"
    )
    row = comparison["bad", "RA-nWG@3"]
    lost = {point.run: point.most_lost for point in found.points}
    # With two runs the level of a bound is that of the interval of `compare`, over the same completions.
    assert lost["bad"] == pytest.approx(-row.low, abs=0.01)
    assert lost["good"] == pytest.approx(max(0.0, row.high), abs=0.01)
    assert found.cheapest == (("bad", 3) if lost["bad"] <= 0.1 else ("good", 3))
    given |= {"tokens": {p: 10 for of in grades.values() for p in of}}
    with pytest.raises(rs.InputError, match=r"labels by people .* leave out cost_depths"):
        decision_of(grades, runs, cost_depths=[5], **given)
