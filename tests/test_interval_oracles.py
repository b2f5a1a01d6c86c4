"""Intervals of paired means, and of weighted means of few or heavy queries, beside their definitions."""

import math
from itertools import product

import numpy as np
import pytest

import rag_selectivity as rs

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")]


def lists(places: list[int]) -> dict[str, list[str]]:
    """A list for each query, whose one relevant passage stands at a rank (0: nowhere)."""
    ranks = range(1, 11)
    return {f"q{i}": ["hit" if rank == place else f"x{rank}" for rank in ranks] for i, place in enumerate(places)}


def not_rejected(gaps: np.ndarray, furthest: float) -> float:
    """The last mean difference, on the way to the furthest, whose sign-flip test has p > .05; all signs are tried."""
    signs = np.array(list(product([-1, 1], repeat=len(gaps))))
    inside, outside = float(gaps.mean()), furthest
    for _ in range(50):
        middle = (inside + outside) / 2
        rest = gaps - middle
        accepted = (np.abs(signs @ rest) >= abs(rest.sum()) - 1e-12).mean() > 0.05
        inside, outside = (middle, outside) if accepted else (inside, middle)
    return inside


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 6])
def test_a_paired_interval_holds_what_the_sign_flip_test_does_not_reject(seed) -> None:
    one, other = np.random.default_rng(seed).integers(1, 9, (2, 12)).tolist()
    labels = {f"q{i}": {"hit": 1} for i in range(12)}
    found = rs.compare(labels, {"a": lists(one), "b": lists(other)}, measures=["RR"], baseline="b").rows[0]
    gaps = 1 / np.array(one) - 1 / np.array(other)
    assert found.difference == pytest.approx(gaps.mean())
    low, high = not_rejected(gaps, -1.0), not_rejected(gaps, 1.0)
    assert found.low <= low + 1e-9
    assert found.high >= high - 1e-9
    # Skewness widens one end; the other is that of the test.
    assert min(abs(found.low - low), abs(found.high - high)) < 1e-3


def weighted(places: list[int], weights: list[float]):
    """RR of a run whose relevant passages stand at these ranks, with the weights of its queries."""
    labels = {f"q{i}": {"hit": 1} for i in range(len(places))}
    weight_of = dict(zip(labels, weights, strict=True))
    return rs.evaluate(labels, {"run": lists(places)}, measures=["RR"], weights=weight_of)["RR"]


def test_where_few_weighted_queries_differ_an_unseen_one_may_be_anything() -> None:
    """Gaffke's bound: Dirichlet weights over the queries, and an unseen one of the average size of what is weighed."""
    places, weights = [2] * 40 + [1, 3, 5], np.tile([1.0, 2.0, 3.0], 15)[:43]
    found = weighted(places, weights.tolist())
    values = 1 / np.array(places)
    size = (weights**2).sum() / weights.sum()
    drawn = np.random.default_rng(1).dirichlet(np.ones(44), 40_000)
    of_all, total = drawn[:, :-1] @ (weights * values), drawn[:, :-1] @ weights
    sides, unseen = ((0.0, 0.025), (1.0, 0.975)), drawn[:, -1] * size
    ends = [np.quantile((of_all + unseen * end) / (total + unseen), share) for end, share in sides]
    assert (found.low, found.high) == pytest.approx(ends, abs=0.01)


def test_heavy_queries_near_the_mean_do_not_make_an_interval_narrow() -> None:
    """All queries have the spread of the whole: the variance is s²/n with the effective number n (Kish 1965)."""
    places, weights = [1, 2, 5, 1, 2, 1, 5, 2] * 5 + [2] * 4, np.array([1.0] * 40 + [8.0] * 4)
    # The heavy ones have the rank in the middle, as if they told the mean to the last digit.
    middle, values = weighted(places, weights.tolist()), 1 / np.array(places)
    spread = np.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights))
    effective = weights.sum() ** 2 / (weights**2).sum()
    assert middle.high - middle.low > 2 * 1.9 * spread / math.sqrt(effective)


def test_a_ratio_that_all_queries_share_need_not_be_that_of_others() -> None:
    labels = {f"q{i}": {"a": 5, "b": 4, "c": 1} for i in range(3)}
    pool = {"q0": ["a", "b"], "q1": ["b", "c"], "q2": ["a"]}
    options = {"pool": pool, "scale": "utility", "measures": ["%PROC(aggregate=ratio)@1"]}
    found = rs.evaluate(labels, {q: each[:1] for q, each in pool.items()}, **options)[options["measures"][0]]
    assert (found.low, found.value, found.high) == (pytest.approx(0.025 ** (1 / 3)), 1, 1)
    runs = {"best": {q: each[:1] for q, each in pool.items()}, "last": {q: each[-1:] for q, each in pool.items()}}
    row = rs.compare(labels, runs, **options).rows[0]
    assert -1 <= row.low <= row.difference <= row.high <= 1


@pytest.mark.parametrize(("choice", "value"), [("ties", "by_luck"), ("unjudged", "worse"), ("short_lists", 3)])
def test_an_unknown_choice_of_a_policy_is_refused(choice, value) -> None:
    with pytest.raises(rs.InputError, match=f"{choice} must be one of .* got {value!r}"):
        rs.Policy(**{choice: value})


def test_bits_over_a_run_without_a_success_are_at_least_so_many() -> None:
    labels = {f"q{i}": {"hit": 1, "x": 0} for i in range(40)}
    some = {query: (["hit"] if i < 20 else []) + ["x"] for i, query in enumerate(labels)}
    runs = {"some": some, "none": {query: ["x"] for query in labels}}
    options = {"measures": ["BoR@2"], "corpus_size": 1000}
    more, less = (rs.compare(labels, runs, baseline=each, **options).rows[0] for each in ("none", "some"))
    assert more.p == less.p == 2 * 0.5**20  # McNemar's, of 20 gains and no loss
    assert (more.difference, more.high, less.difference, less.low) == (math.inf, math.inf, -math.inf, -math.inf)
    # Clopper and Pearson's ends of both rates, far as they are apart, leave this much.
    assert math.log2(0.3380 / 0.0881) < more.low < math.inf
    assert less.high == pytest.approx(-more.low)


@pytest.mark.parametrize(("passage", "ends"), [("hit", (-0.3, 0.3)), ("x", (2.2, math.inf))])
def test_bits_of_recall_allow_for_queries_unlike_all_that_were_seen(passage, ends) -> None:
    labels = {f"q{i}": {"hit": 1, "x": 0, **{f"h{j}": 1 for j in range(i % 5)}} for i in range(40)}
    runs = {name: {query: [each] for query in labels} for name, each in (("all", "hit"), ("other", passage))}
    (row,) = rs.compare(labels, runs, measures=["BoR_recall@1"], corpus_size=1000, baseline="other").rows
    assert (row.low, row.high) == pytest.approx(ends, abs=0.2)


@pytest.mark.parametrize("hits", [1, 2, 3])
def test_bits_of_few_successes_have_ends_that_are_numbers(hits) -> None:
    labels = {f"q{i}": {**{f"h{j}": 1 for j in range(1 + i % 7)}, "x": 0} for i in range(12)}
    run = {query: (["h0"] if i < hits else []) + ["x"] for i, query in enumerate(labels)}
    found = rs.evaluate(labels, {"run": run}, measures=["BoR"], depths=[10], corpus_size=1000)["BoR@10"]
    # With fewer than three of twelve, more than one resample in forty holds none.
    assert math.isfinite(found.low) == (hits == 3)
    assert found.low < found.value < found.high < math.inf


@pytest.mark.parametrize(("hits", "queries"), [(0, 6), (1, 6), (4, 6), (6, 6), (11, 40)])
def test_bits_never_contradict_the_success_beside_them(hits, queries) -> None:
    """Where chance is the same for all queries, BoR is Success in bits, and so are its ends: of 4 of 6 as of others."""
    labels = {f"q{i}": {"hit": 1, "x": 0} for i in range(queries)}
    run = {query: (["hit"] if i < hits else []) + ["x"] for i, query in enumerate(labels)}
    found = rs.evaluate(labels, {"run": run}, measures=["Success", "BoR"], depths=[2], corpus_size=1000)
    success, bits = found["Success@2"], found["BoR@2"]
    with np.errstate(divide="ignore"):
        expected = np.log2(np.array([success.value, success.low, success.high]) / (2 / 1000))
    assert [bits.value, bits.low, bits.high] == pytest.approx(expected.tolist())
