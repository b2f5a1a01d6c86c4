"""The advice on K: its rule, its bound, what it says, and that every part gives the same."""

from __future__ import annotations

import re
from math import comb

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.advice.by_loss import FEWEST_QUERIES, advise
from rag_selectivity.evaluation.joining import join_runs
from rag_selectivity.inference.betting import highest_mean
from rag_selectivity.inference.exact import clopper_pearson
from tests.advice_worlds import HARMLESS, WORLDS, World, at_rank, tried
from tests.reference import read_trec_run

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]


def world(first: list[int], depth: int = 20, relevant: int = 1) -> tuple[dict, dict]:
    """Queries whose first relevant passage stands at the given rank, 0 for nowhere."""
    qrels, run = {}, {}
    for i, rank in enumerate(first):
        ranked = [f"q{i}x{j}" for j in range(depth)]
        if rank:
            ranked[rank - 1] = f"q{i}g0"
        qrels[f"q{i}"], run[f"q{i}"] = {f"q{i}g{j}": 1 for j in range(relevant)}, ranked
    return qrels, run


def advice_on(first: list[int], depth: int = 20, **options):
    qrels, run = world(first, depth)
    return advise(join_runs(qrels, {"r": run}).judged["r"], **options)


# -- the rule ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [20, 50, 100, 200])
def test_the_advice_does_not_grow_with_the_list(data, cut) -> None:
    # Cleverdon's grades 4 and 5: the utility scale's own relevance, with Success as the measure.
    folder = data / "cranfield"
    full = read_trec_run(folder / "runs" / "bm25.trec")
    run = {query: passages[:cut] for query, passages in full.items()}
    options = {"corpus_size": 1400, "scale": "utility", "rel": 4}
    assert rs.sweep(folder / "qrels.trec", {"r": run}, **options)["r"].recommendation.K == 14
    found = rs.sweep(folder / "qrels.trec", {"r": run}, max_k=50, **options)["r"].recommendation
    if cut >= 50:
        assert (found.K, found.max_k) == (26, 50)
        assert "takes its place" not in found.reason
    else:
        assert (found.K, found.max_k) == (14, 20)
        assert "No list reaches K = 50: K = 20, the longest list, takes its place." in found.reason


def test_eight_lost_queries_are_not_within_any_noise() -> None:
    found = advice_on([*[1] * 150, *[2] * 10, *[8] * 12, *[15] * 8, *[0] * 20])
    assert (found.K, found.loss, found.shown) == (15, 0.0, True)
    assert found.loss_high == pytest.approx(1 - 0.025 ** (1 / 200))
    assert advice_on([*[1] * 150, *[2] * 10, *[8] * 12, *[15] * 8, *[0] * 20], max_loss=0.04).K == 8


def by_trying_every_k(figures: list[float], max_loss: float) -> int:
    chosen = len(figures)
    while chosen > 1 and figures[-1] - figures[chosen - 2] <= max_loss + 1e-12:
        chosen -= 1
    return chosen


@pytest.mark.parametrize("max_loss", [0.0, 0.01, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("max_k", [1, 2, 7, 20, 50])
def test_the_rule_by_trying_every_k(data, max_k, max_loss) -> None:
    folder = data / "cranfield"
    joined = join_runs(folder / "qrels.trec", {"r": folder / "runs" / "lsa.trec"}, scale="utility").judged["r"]
    for measure, options in (("RA-nWG", {}), ("Success", {"m": 1}), ("Success(rel=3,m=2)", {"rel": 3, "m": 2})):
        depths = list(range(1, max_k + 1))
        report = rs.evaluate_joined({"r": joined}, measures=[measure], depths=depths, bootstrap=None)
        figures = [report[f"{measure}@{k}"].value for k in depths]
        found = advise(joined, max_k=max_k, max_loss=max_loss, **options)
        assert found.measure == measure
        if not any(figures):
            assert found.K is None
            continue
        assert by_trying_every_k(figures, max_loss) == found.K
        assert found.loss == pytest.approx(figures[-1] - figures[found.K - 1], abs=1e-12)
        without = advise(joined, None, max_k=max_k, max_loss=max_loss, **options)
        assert (without.K, without.shown) == (found.K, False)
        assert without.loss_high is None
        assert "interval" not in without.reason


def test_a_loss_of_exactly_what_is_allowed_is_allowed() -> None:
    assert advice_on([*[1] * 196, *[9] * 4]).K == 1
    assert advice_on([*[1] * 195, *[9] * 5]).K == 9


def test_with_too_few_queries_there_is_no_advice() -> None:
    assert FEWEST_QUERIES == 10
    assert advice_on([1] * 10).K == 1
    for few in (1, 3, 9):
        found = advice_on([1] * few)
        assert found.K is None
        assert (found.loss, found.loss_high, found.shown) == (None, None, False)
        noun = "query" if few == 1 else "queries"
        verb = "is" if few == 1 else "are"
        assert (
            f"No advice on K: {few} {noun} with a defined Success {verb} too few; at least 10 are needed"
            in found.reason
        )
    # Queries without a relevant passage do not count, and a cluster counts once.
    qrels, run = world([1] * 12)
    qrels["q0"] = qrels["q1"] = qrels["q2"] = {"other": 0}
    assert advise(join_runs(qrels, {"r": run}).judged["r"]).K is None
    qrels, run = world([1] * 40)
    together = rs.Bootstrap(clusters={query: i // 8 for i, query in enumerate(qrels)})
    found = advise(join_runs(qrels, {"r": run}).judged["r"], together)
    assert (found.K, "5 clusters of queries with a defined" in found.reason) == (None, True)


@pytest.mark.parametrize(
    ("first", "reason"),
    [([0] * 30, "Success is 0 in all 30 queries up to K = 20"), ([25] * 30, "Success is 0 in all 30 queries")],
)
def test_without_a_success_there_is_no_advice_and_the_page_stands(first, reason) -> None:
    qrels, run = world(first, depth=30)
    advice = rs.sweep(qrels, {"r": run}, corpus_size=1000, ids="exact")["r"].recommendation
    assert (advice.K, reason in advice.reason) == (None, True)
    page = rs.evaluate(qrels, {"r": run}, corpus_size=1000, depths=[5, 10], ids="exact").to_html()
    assert reason in page


def test_labels_without_a_relevant_passage_give_a_reason() -> None:
    qrels = {f"q{i}": {"d": 0} for i in range(20)}
    run = {query: ["d", "e"] for query in qrels}
    advice = rs.sweep(qrels, {"r": run}, corpus_size=1000)["r"].recommendation
    assert advice.reason == "No advice on K: no query has 1 or more relevant passages."


# -- the bound -----------------------------------------------------------------------------------------


def test_the_bound_of_a_rate_is_clopper_and_pearson_s() -> None:
    for events, trials, tail in ((0, 10, 0.025), (3, 40, 0.025), (7, 225, 0.0005), (39, 40, 0.1)):
        bound = clopper_pearson(events, trials, tail)[1]
        below = sum(comb(trials, k) * bound**k * (1 - bound) ** (trials - k) for k in range(events + 1))
        assert below == pytest.approx(tail, rel=1e-8)
    assert clopper_pearson(5, 5, 0.025)[1] == 1


@pytest.mark.parametrize("queries", [10, 50, 200])
def test_the_bound_of_a_mean_holds_whatever_the_distribution(queries) -> None:
    rng = np.random.default_rng(5)
    samples = {
        "rare": (np.where(rng.random((queries, 2000)) < 0.02, 1.0, 0.001 * rng.normal(size=(queries, 2000))), 0.02),
        "even": (rng.uniform(-1, 1, (queries, 2000)), 0.0),
        "skewed": (1 - 2 * rng.beta(8, 0.2, (queries, 2000)), 1 - 2 * 8 / 8.2),
        "high": (np.where(rng.random((queries, 2000)) < 0.95, 1.0, -1.0), 0.9),
    }
    for name, (values, mean) in samples.items():
        bounds = highest_mean(values.clip(-1, 1), -1.0, 1.0, 0.025)
        assert (bounds < mean - 1e-9).mean() <= 0.035, name
        assert (bounds >= values.clip(-1, 1).mean(axis=0) - 1e-6).all()


def test_the_bound_of_clusters_holds_where_queries_fail_together() -> None:
    rng = np.random.default_rng(8)
    units = np.repeat(np.arange(60), rng.integers(1, 6, 60))
    missed = []
    for _ in range(400):
        lost = (rng.random(60) < 0.1)[units]
        values = np.where(lost, rng.random(len(units)) < 0.8, 0.0)[:, None]
        missed.append(highest_mean(values, 0.0, 1.0, 0.025, units)[0] < 0.08)
    assert np.mean(missed) <= 0.035
    alone = rng.random((200, 3))
    as_clusters = highest_mean(alone, -1.0, 1.0, 0.025, np.arange(200))
    assert as_clusters == pytest.approx(highest_mean(alone, -1.0, 1.0, 0.025))


def test_clusters_widen_the_bound() -> None:
    first = [1 if i // 4 % 10 else 12 for i in range(200)]
    qrels, run = world(first)
    joined = join_runs(qrels, {"r": run}).judged["r"]
    alone = advise(joined, max_loss=0.5)
    together = advise(joined, rs.Bootstrap(clusters={f"q{i}": i // 4 for i in range(200)}), max_loss=0.5)
    assert together.loss_high > 1.2 * alone.loss_high
    assert together.K == alone.K == 1


# -- "shown" -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_what_is_called_shown_is_seldom_false(world) -> None:
    assert max(world.true_losses()[:-1]) > 0.02
    success = world.scale == "trec"
    for queries, times in ((200, 400 if success else 80), (1000, 400 if success else 40)):
        assert tried(world, queries, times).falsely <= 0.05


def test_what_costs_nothing_is_shown() -> None:
    nothing, _, little_evidence = HARMLESS
    assert tried(nothing, 200, 50).shown == 1
    assert tried(nothing, 150, 50).shown == 0  # 1 − .025^(1/150) = 2.4 %
    assert tried(little_evidence, 1000, 20).shown >= 0.8


def test_shown_ends_at_the_first_depth_that_is_in_doubt() -> None:
    # RA-nWG dips at K = 19 and is whole at 18: a bound that holds at 18 alone shows nothing of what is between.
    dip = (5, *([3] * 17), 0, 3, 0)
    lost = World("", "utility", (at_rank(1, 5), dip, at_rank(20, 5)), (1.0, 0.0, 0.0))
    sample = lost.joined(np.array([1] * 400 + [0] * 400))
    found = advise(sample, max_loss=0.02)
    assert found.shown
    tight = advise(sample, max_loss=0.0028)
    assert tight.loss <= 0.0028
    assert not tight.shown


# -- what it says --------------------------------------------------------------------------------------


def test_a_bound_is_rounded_up_and_a_loss_is_never_rounded_to_the_allowed_one() -> None:
    found = advice_on([*[1] * 1000, *[20] * 20, *[20] * 1, *[1] * 20])  # 21 of 1,041 are 2.017 %
    assert found.K == 20
    assert "a loss of 2.02 percentage points" in found.reason
    stated = float(re.search(r"ends at ([\d.]+) points", advice_on([*[1] * 196, *[9] * 3, 0]).reason)[1])
    assert stated / 100 >= clopper_pearson(3, 200, 0.025)[1]


# -- one advice for every part --------------------------------------------------------------------------


def test_relevance_of_one_on_the_utility_scale_is_not_dropped() -> None:
    qrels = {f"q{i}": {"a": 1, "b": 5} for i in range(12)}
    run = {query: ["a", "b"] for query in qrels}
    swept = rs.sweep(qrels, {"r": run}, corpus_size=10, scale="utility", rel=1)["r"]
    assert swept.rows[0]["success"] == 1.0
    assert swept.rows[0]["lambda"] == pytest.approx(0.2)
    strict = rs.sweep(qrels, {"r": run}, corpus_size=10, scale="utility", rel=5, m=1)["r"]
    assert (strict.rows[0]["success"], strict.rows[0]["lambda"]) == (0.0, pytest.approx(0.1))
    several = rs.sweep(
        {f"q{i}": {"a": 4, "b": 5, "c": 5} for i in range(12)}, {"r": run}, corpus_size=10, scale="utility", rel=5, m=2
    )["r"]
    assert [row["lambda"] for row in several.rows] == pytest.approx([0.2, 0.4])  # of grade 5, not of the scale's 4


def test_a_draw_of_a_single_passage_may_succeed_in_most_queries() -> None:
    """No K is healthy then, and the warning names none."""
    qrels = {f"q{i}": {f"d{j}": 1 for j in range(9)} for i in range(20)}
    run = {query: [f"d{j}" for j in range(9)] for query in qrels}
    found = advise(join_runs(qrels, {"run": run}, corpus_size=10, scale="trec").judged["run"])
    (warning,) = found.warnings
    assert warning.startswith("the regime at K = 1 is degraded: a random draw of 1 passages succeeds in 90.0%")
    assert "up to K" not in warning
