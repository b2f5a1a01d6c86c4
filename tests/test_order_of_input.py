"""The order in which queries and labels stand in the input decides no figure and no end of an interval."""

import random

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract


def world(seed=3, queries=25):
    rng = random.Random(seed)
    labels = {f"q{i}": {f"p{j}": rng.randint(1, 5) for j in rng.sample(range(40), 8)} for i in range(queries)}
    runs = {name: {q: [f"p{j}" for j in rng.sample(range(40), 10)] for q in labels} for name in ("one", "two")}
    return labels, runs


def shuffled(rows: dict, rng: random.Random) -> dict:
    keys = list(rows)
    rng.shuffle(keys)
    return {key: shuffled(rows[key], rng) if isinstance(rows[key], dict) else rows[key] for key in keys}


def figures(report, runs=("one", "two")):
    return {
        (name, key): (each.value, each.low, each.high)
        for name in runs
        for key, each in report.runs[name].estimates.items()
    }


def same(one, other) -> None:
    assert one.keys() == other.keys()
    for key, ends in one.items():
        assert other[key] == pytest.approx(ends, rel=1e-12, nan_ok=True), key


def test_shuffled_labels_of_judges_and_people_and_runs() -> None:
    labels, runs = world()
    rng = random.Random(9)
    options = {"corpus_size": 200, "depths": [3, 5], "scale": "utility", "measures": ["BoR", "RA-nWG", "Harm", "nDCG"]}
    people = {q: {p: max(1, g - 1) for p, g in list(row.items())[:3]} for q, row in labels.items()}
    first = rs.evaluate(labels, runs, human=people, **options)
    for _ in range(2):
        other = rs.evaluate(shuffled(labels, rng), shuffled(runs, rng), human=shuffled(people, rng), **options)
        same(figures(first), figures(other))


def test_queries_stand_in_their_natural_order() -> None:
    labels, runs = world(queries=12)
    report = rs.evaluate(shuffled(labels, random.Random(1)), runs, depths=[5], measures=["P"], scale="utility")
    assert list(report.runs["one"].queries) == list(labels)
