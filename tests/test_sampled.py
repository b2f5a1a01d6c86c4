"""Unknown R: the baseline from a random sample outside the pool, against enumeration and simulation."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from rag_selectivity.measures.sampled import estimated_miss, estimated_relevant

import rag_selectivity as rs
from rag_selectivity.measures.hypergeometric import random_success


def miss(corpus, pooled, known, size, found, depth) -> float:
    columns = (np.array([value]) for value in (corpus, pooled, known, size, found))
    return float(estimated_miss(*columns, np.array([[depth]]))[0, 0])


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize(("pooled", "known", "outside_relevant"), [(3, 1, 2), (3, 0, 3), (0, 0, 4), (5, 2, 0)])
def test_over_all_samples_the_estimate_is_right_on_average(pooled, known, outside_relevant, depth) -> None:
    corpus, size = 12, 4
    outside = corpus - pooled
    labels = [1] * outside_relevant + [0] * (outside - outside_relevant)
    samples = list(combinations(labels, size))
    mean = sum(miss(corpus, pooled, known, size, sum(sample), depth) for sample in samples) / len(samples)
    relevant = known + outside_relevant
    assert mean == pytest.approx(comb(corpus - relevant, depth) / comb(corpus, depth), abs=1e-12)
    estimates = [
        estimated_relevant(*(np.array([v]) for v in (corpus, pooled, known, size, sum(sample))))[0]
        for sample in samples
    ]
    assert np.mean(estimates) == pytest.approx(relevant)


def test_a_sample_of_everything_leaves_nothing_to_estimate() -> None:
    exact = float(random_success(200, 17, 30)[1])
    assert miss(200, 50, 12, 150, 5, 30) == pytest.approx(exact, rel=1e-9)


def test_deeper_than_the_sample_nothing_is_said() -> None:
    qrels, run, sample, _ = world(20, np.random.default_rng(5), sampled=10)
    report = rs.evaluate(
        qrels, {"r": run}, corpus_size=3000, sample=sample, measures=["BoR(R=sampled)"], depths=[10, 11]
    )
    assert np.isfinite(report["BoR(R=sampled)@10"].value)
    assert np.isnan(report["BoR(R=sampled)@11"].value)
    assert "a sample of at least K passages" in report["BoR(R=sampled)@11"].to_dict()["reason"]


def world(queries: int, rng: np.random.Generator, *, sampled: int) -> tuple[dict, dict, dict, np.ndarray]:
    """Pool judgments, a run, a judged sample from outside the pool, and each query's true R."""
    corpus, pooled = 3000, 40
    relevant = rng.geometric(0.06, queries) + 4
    qrels, run, sample = {}, {}, {}
    for i in range(queries):
        known = 1 + rng.binomial(relevant[i] - 1, 0.35)
        pool = [f"r{j}" for j in range(known)] + [f"n{j}" for j in range(max(0, pooled - known))]
        qrels[f"q{i}"] = {passage: int(passage.startswith("r")) for passage in pool}
        hit = rng.random() < 0.75
        run[f"q{i}"] = (["r0"] if hit else ["n0"]) + [f"n{j}" for j in range(1, 10)]
        outside_relevant = relevant[i] - known
        found = rng.hypergeometric(outside_relevant, corpus - len(pool) - outside_relevant, sampled)
        sample[f"q{i}"] = {f"s{j}": int(j < found) for j in range(sampled)}
    return qrels, run, sample, relevant


@pytest.mark.slow
def test_the_corrected_interval_holds_the_truth_where_the_naive_one_does_not() -> None:
    rng = np.random.default_rng(11)
    held = {"BoR@10": 0, "BoR(R=sampled)@10": 0}
    population = rng.geometric(0.06, 400_000) + 4
    truth = np.log2(0.75 / random_success(3000, population, 10)[0].mean())
    trials = 150
    for _ in range(trials):
        qrels, run, sample, _ = world(200, rng, sampled=60)
        report = rs.evaluate(
            qrels,
            {"r": run},
            corpus_size=3000,
            sample=sample,
            measures=list(held),
            depths=[10],
            bootstrap=rs.Bootstrap(resamples=500),
        )
        for measure in held:
            held[measure] += report[measure].low <= truth <= report[measure].high
        assert report["BoR@10"].value > report["BoR(R=sampled)@10"].value  # judged R is optimistic
    assert held["BoR@10"] / trials < 0.1
    assert 0.90 <= held["BoR(R=sampled)@10"] / trials <= 0.99  # 150 trials: two standard errors of .95 are .036


def test_the_whole_family_takes_the_sample_and_only_the_listed_size_matters() -> None:
    qrels, run, sample, _ = world(60, np.random.default_rng(5), sampled=50)
    measures = [f"{name}(R=sampled)" for name in ("BoR", "EF", "RandomSuccess", "BoR_max", "lambda")]
    report = rs.evaluate(qrels, {"r": run}, corpus_size=3000, sample=sample, measures=measures, depths=[10])
    ratio = np.log2(report["EF(R=sampled)@10"].value)
    assert report["BoR(R=sampled)@10"].value == pytest.approx(ratio)
    assert report["BoR_max(R=sampled)@10"].value == pytest.approx(-np.log2(report["RandomSuccess(R=sampled)@10"].value))
    only_relevant = {query: {p: g for p, g in row.items() if g} for query, row in sample.items()}
    shorter = rs.evaluate(
        qrels,
        {"r": run},
        corpus_size=3000,
        sample={q: row for q, row in only_relevant.items() if row},
        sample_size=50,
        measures=measures,
        depths=[10],
    )
    for measure in measures:
        assert shorter[f"{measure}@10"].value == pytest.approx(report[f"{measure}@10"].value, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "measure", "message"),
    [
        ({}, "BoR(R=sampled)@1", r"needs judgments of a random sample .* give sample="),
        ({"sample": {"q": {"d": 1}}}, "BoR@1", "passage 'd' is in the qrels too"),
        ({"sample": {"p": {"d": 1}}}, "BoR@1", r"1 queries of the sample are not in the qrels \('p'\)"),
        ({"sample": {"q": {"s": 1, "t": 0}}, "sample_size": 1}, "BoR@1", "lists 2 passages, more than sample_size = 1"),
        ({"sample": {"q": {"s": 1}}, "sample_size": 0}, "BoR@1", "sample_size must be a whole number"),
        ({"sample": {"q": {"s": 1}}}, "BoR(R=sampled,m=2)@1", "R=sampled is known for m=1 only"),
    ],
)
def test_mistakes_are_named(options, measure, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        rs.evaluate({"q": {"d": 1}}, {"r": {"q": ["d"]}}, corpus_size=50, measures=[measure], **options)
