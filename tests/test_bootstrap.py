"""Intervals against a plain loop over the same draws, and the rules for what has none."""

import warnings
from math import inf, isnan, log2

import numpy as np
import pytest
from scipy import stats

import rag_selectivity as rs
from rag_selectivity import Bootstrap
from rag_selectivity.inference import bounded
from rag_selectivity.measures.base import Outcome

pytestmark = pytest.mark.inside

RNG = np.random.default_rng(1)
QUERIES = [f"q{i}" for i in range(60)]
QRELS = {q: {f"{q}d{j}": 1 for j in range(RNG.integers(0, 4))} for q in QUERIES}
RUNS = {name: {q: [f"{q}d{j}" for j in RNG.permutation(12)[:8]] for q in QUERIES} for name in ("one", "two")}


def evaluated(**options) -> rs.Report:
    return rs.evaluate(
        QRELS,
        RUNS,
        corpus_size=500,
        measures=["Success", "BoR", "EF", "BoR_max", "lambda"],
        depths=[1, 4, 8],
        **options,
    )


@pytest.mark.parametrize(("successes", "n"), [(1, 12), (30, 45)])
def test_the_interval_of_a_success_rate_is_mid_p(successes: int, n: int) -> None:
    run = {f"q{i}": ["d1" if i < successes else "d2"] for i in range(n)}
    qrels = {query: {"d1": 1} for query in run}
    report = rs.evaluate(qrels, run, corpus_size=64, measures=["Success", "BoR"], depths=[1], bootstrap=Bootstrap())
    success = report["Success@1"]
    for rate, share in ((success.low, 0.975), (success.high, 0.025)):
        drawn = stats.binom(n, rate)
        assert drawn.cdf(successes - 1) + drawn.pmf(successes) / 2 == pytest.approx(share, rel=1e-9)
    assert report["BoR@1"].low == pytest.approx(log2(64 * success.low))


def test_resamples_without_a_success_leave_a_bound_of_minus_infinity_and_no_nan() -> None:
    qrels = {f"q{i}": {"d": 1} for i in range(5)}
    run = {f"q{i}": ["d" if i == 0 else "x"] for i in range(5)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = rs.evaluate(
            qrels,
            {"r": run},
            corpus_size=100,
            measures=["BoR"],
            depths=[1],
            bootstrap=Bootstrap(clusters={query: query for query in qrels}),  # not the exact interval
        )
    cell = report["r", "BoR@1"]
    assert cell.low == -inf
    assert cell.value < cell.high < inf
    assert report.to_dict()["runs"]["r"]["measures"]["BoR@1"]["reason"].startswith("some resamples have no success")


@pytest.mark.parametrize("times", [1, 3])
def test_where_few_queries_differ_the_interval_holds_gaffkes_and_moves_with_the_range(times) -> None:
    values = np.repeat(np.r_[0.6, 0.3, 0.9, np.zeros(37)], times)
    queries = [f"q{i}" for i in range(len(values))]
    clusters = {query: i // times for i, query in enumerate(queries)}
    bootstrap = Bootstrap(clusters=clusters if times > 1 else None)

    def ends(values, lowest, highest):
        ((low, high),) = bootstrap.intervals([Outcome((values[:, None],), "", bounds=(lowest, highest))], queries)
        return np.array([low[0], high[0]])

    plain = ends(values, 0.0, 1.0)
    low, high = bounded.ends(values[::times, None], np.zeros(1), np.ones(1), lambda sums: sums[:, 0], 0.95)
    assert plain[0] <= low
    assert plain[1] == pytest.approx(high)
    assert 0 < plain[0] < values.mean()
    assert ends(2 * values - 1, -1.0, 1.0) == pytest.approx(2 * plain - 1)
    assert ends(1 - values, 0.0, 1.0) == pytest.approx(1 - plain[::-1], abs=0.004)


def test_one_query_has_no_interval_rather_than_one_of_width_zero() -> None:
    report = rs.evaluate({"q": {"d": 1}}, {"r": {"q": ["d"]}}, corpus_size=100, measures=["BoR"], depths=[1])
    assert isnan(report["r", "BoR@1"].low)
    assert report.to_dict()["runs"]["r"]["measures"]["BoR@1"]["reason"] == "one query has no interval"
    options = {"bootstrap": Bootstrap(clusters={"p": 1, "q": 1}), "scale": "utility", "measures": ["Harm@1"]}
    for human in (None, {"p": {"d": 5}, "q": {"d": 1}}):
        for query, why in ({"q": 1}, "query"), ({"p": 1, "q": 1}, "cluster"):
            labels = {name: {"d": 4, "e": 1} for name in query}
            cell = rs.evaluate(labels, {name: ["d"] for name in query}, human=human, **options)["Harm@1"]
            assert isnan(cell.low)
            assert cell.reason == f"one {why} has no interval"


def test_the_ceilings_interval_holds_its_value_next_to_certainty() -> None:
    qrels = {f"q{i}": {f"d{j}": 1 for j in range(300 + i)} for i in range(10)}
    run = {q: ["d1"] for q in qrels}
    report = rs.evaluate(qrels, {"r": run}, corpus_size=2000, measures=["BoR", "BoR_max"], depths=[200])
    ceiling = report["r", "BoR_max@200"]
    assert 0 < ceiling.low < ceiling.value < ceiling.high < 1e-10
    bor = report["r", "BoR@200"]
    # Ten successes of ten do not prove that there is no failure.
    assert bor.low < 0 < bor.value <= bor.high < 1e-10


def test_few_queries_that_carry_the_baseline_are_a_caveat_on_every_path() -> None:
    qrels = {f"q{i}": {f"d{j}": 1 for j in range(3000 if i == 0 else 2)} for i in range(40)}
    run = {query: ["d0"] for query in qrels}
    for bootstrap in (Bootstrap(resamples=50), None):
        report = rs.evaluate(
            qrels, {"r": run}, corpus_size=100_000, measures=["BoR", "Success"], depths=[10], bootstrap=bootstrap
        )
        assert [caveat.code for caveat in report["BoR@10"].caveats] == ["concentrated-chance"]
        assert report["Success@10"].caveats == ()
    assert report.to_dict()["runs"]["r"]["measures"]["BoR@10"]["caveats"][0]["code"] == "concentrated-chance"
    assert "BoR@10: In the random baseline some queries weigh more than others" in report.details().replace("\n", " ")


@pytest.mark.parametrize(("low", "high", "rough"), [(30, 33, False), (30, 60, True), (29, 30, False), (29, 90, True)])
def test_where_a_baseline_begins_to_be_rough(low, high, rough) -> None:
    """Two chances: rough below two thirds effective queries, and below nine tenths of fewer than thirty."""
    queries = 30 if low == 30 else 29
    counts = [low if i % 2 else high for i in range(queries)]
    if (low, high) == (30, 60):
        counts = [low] * 28 + [high * 40] * 2
    qrels = {f"q{i}": {f"d{j}": 1 for j in range(count)} for i, count in enumerate(counts)}
    report = rs.evaluate(
        qrels,
        {"r": {query: ["d0"] for query in qrels}},
        corpus_size=100_000,
        measures=["BoR"],
        depths=[1],
        bootstrap=None,
    )
    assert bool(report["BoR@1"].caveats) == rough


def test_more_than_100_000_queries_have_fewer_resamples_and_the_settings_say_how_many(monkeypatch) -> None:
    assert Bootstrap().for_queries(125_000).resamples == 4000
    assert Bootstrap().for_queries(10**9).resamples == 200
    # A report of so many queries draws for seconds, whatever their number.
    monkeypatch.setattr("rag_selectivity.inference.bootstrap._MOST_DRAWN", 500_000)
    n = 125
    counts = rs.JudgedRun.from_counts(np.full(n, 1000), np.full(n, 5), np.full(n, 2), np.arange(n) % 2)
    report = rs.evaluate_joined({"log": counts}, measures=["Success"], depths=[5])
    assert report.settings["resamples"] == 4000
    assert report["Success@5"].low < 0.5 < report["Success@5"].high


def test_a_level_lies_between_its_ends_and_clusters_fill_no_screen() -> None:
    for level in (0, 1, True, "0.95"):
        with pytest.raises(rs.InputError, match="level must be between 0 and 1"):
            Bootstrap(level=level)
    assert repr(Bootstrap(clusters={"q1": "user 7"})) == "Bootstrap(resamples=5000, seed=7, level=0.95)"
