"""Passages of a list that its pool lacks belong to the pool, the whole list through."""

import random

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract

WEIGHTS = {5: 1.0, 4: 1.0, 3: 0.2, 2: 0.0, 1: 0.0}  # of a query without a grade 5


def proc(grades, ranked, pool, depth):
    best = lambda ids: sum(sorted((WEIGHTS[grades[p]] for p in ids if p in grades), reverse=True)[:depth])  # noqa: E731
    return best({*ranked, *pool}) / best(grades)


def test_proc_counts_the_whole_list() -> None:
    grades = {"a": 4, "b": 4, "c": 3, "d": 1}
    report = rs.evaluate(
        {"q": grades}, {"r": {"q": ["d", "c", "a", "b"]}}, pool={"q": ["c", "d"]}, scale="utility",
        measures=["PROC", "%PROC", "RA-nWG"], depths=[1, 2], bootstrap=None,
    )  # fmt: skip
    assert report["PROC@1"].value == report["PROC@2"].value == 1.0
    assert report["%PROC@2"].value == report["RA-nWG@2"].value == pytest.approx(0.1)


def test_random_lists_and_pools() -> None:
    rng = random.Random(11)
    for _ in range(60):
        names = [f"p{i}" for i in range(10)]
        grades = {name: rng.choice([1, 2, 3, 4]) for name in rng.sample(names, 6)} | {"p0": 4}
        ranked, pool = rng.sample(names, 6), rng.sample(names, 4)
        report = rs.evaluate(
            {"q": grades}, {"r": {"q": ranked}}, pool={"q": pool}, scale="utility", ids="exact",
            measures=["PROC", "RA-nWG", "PROC@25tok"], depths=[1, 2, 5], bootstrap=None,
            tokens=dict.fromkeys(names, 10),
        )  # fmt: skip
        for depth in (1, 2, 5):
            assert report[f"PROC@{depth}"].value == pytest.approx(proc(grades, ranked, pool, depth), rel=1e-12)
            assert report[f"PROC@{depth}"].value >= report[f"RA-nWG@{depth}"].value - 1e-12
        assert report["PROC@25tok"].value == pytest.approx(proc(grades, ranked, pool, 2), rel=1e-12)
