"""A judge who accepts the same share of random passages in every query: BoR with controls is not too high."""

import math

import numpy as np
import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract

QUERIES, EACH, K, N, SUCCESS, TIMES = 60, 3, 10, 100_000, 0.8, 160


def estimates(rate):
    """BoR of seeded worlds in which each control is relevant with the same chance, and each list with another."""
    rng = np.random.default_rng(11)
    found = []
    for _ in range(TIMES):
        labels = {f"q{i}": {"own": int(rng.random() < SUCCESS), "junk": 0} for i in range(QUERIES)}
        drawn = {q: {f"{q}-{j}": int(rng.random() < rate) for j in range(EACH)} for q in labels}
        lists = {q: ["own", "junk", *(f"x{j}" for j in range(K - 2))] for q in labels}
        report = rs.evaluate(
            labels, {"run": lists}, controls=drawn, corpus_size=N, measures=[f"BoR@{K}"], bootstrap=rs.Bootstrap(600)
        )
        found.append(report[f"BoR@{K}"])
    return found


@pytest.mark.parametrize("rate", [0.1, 0.3])
@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
def test_the_interval_covers_and_the_value_is_not_too_high(rate) -> None:
    truth = math.log2(SUCCESS / (1 - (1 - rate) ** K))
    cells = estimates(rate)
    covered = np.mean([cell.low <= truth <= cell.high for cell in cells])
    assert abs(np.median([cell.value for cell in cells]) - truth) < 0.08
    # .93, less two standard errors of so few worlds; `benchmarks/trust_tables/controls.py` has more.
    assert covered >= 0.93 - 2 * math.sqrt(0.93 * 0.07 / TIMES)


@pytest.mark.parametrize(("number", "marked"), [(3, True), (K, False)])
@pytest.mark.parametrize("even", [False, True])
def test_a_judge_that_accepts_in_some_queries_alone_is_marked_with_fewer_controls_than_slots(
    number, marked, even
) -> None:
    """Which rates are behind a fifth of the queries, few controls cannot tell; K of them are draws themselves."""
    rng = np.random.default_rng(3)
    labels = {f"q{i}": {"own": i % 2, "junk": 0} for i in range(200)}
    rates = {q: 0.04 if even else 0.2 * (i % 5 == 0) for i, q in enumerate(labels)}
    drawn = {q: {f"{q}-{j}": int(rng.random() < rate) for j in range(number)} for q, rate in rates.items()}
    lists = {q: ["own", "junk", *(f"x{j}" for j in range(K - 2))] for q in labels}
    report = rs.evaluate(labels, {"run": lists}, controls=drawn, corpus_size=N, measures=["BoR", "lambda"], depths=[K])
    assert ("concentrated-controls" in {each.code for each in report[f"BoR@{K}"].caveats}) == (marked and not even)
    assert "concentrated-controls" not in {each.code for each in report[f"lambda@{K}"].caveats}
