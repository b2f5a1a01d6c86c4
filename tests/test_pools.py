"""Several pools for one run: their union, their depth, and what each of them is worth."""

import random
from pathlib import Path

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.cli.inputs import pools_of
from rag_selectivity.errors import InputError
from rag_selectivity.grading.store import Store

pytestmark = pytest.mark.inside

K = 3


@pytest.fixture(scope="module")
def world():
    """Labels, a run, and two pools that overlap; some queries are in one pool only, one is in none."""
    draw = random.Random(1)
    labels = {f"q{i}": {f"d{j}": draw.choice([1, 1, 2, 3, 4, 5]) for j in range(14)} for i in range(25)}
    pools = {
        "bm25": {q: draw.sample(sorted(labels[q]), 6) for q in labels if q not in ("q3", "q5")},
        "dense": {q: draw.sample(sorted(labels[q]), 5) for q in labels if q not in ("q4", "q5")},
    }
    run = {
        q: draw.sample(sorted({*pools["bm25"].get(q, ()), *pools["dense"].get(q, ()), "d0", "d1", "d2", "d3", "d4"}), 5)
        for q in labels
    }
    return labels, run, pools


def proc(labels, run, pool) -> np.ndarray:
    """PROC of every query under one pool, by `evaluate` itself."""
    report = rs.evaluate(labels, {"r": run}, pool=pool, scale="utility", measures=["PROC"], depths=[K], bootstrap=None)
    return report.runs["r"].per_query[f"PROC@{K}"]


def test_several_pools_are_their_union(world) -> None:
    labels, run, pools = world
    union = {
        q: list(dict.fromkeys([*pools["bm25"].get(q, ()), *pools["dense"].get(q, ())])) for q in labels if q != "q5"
    }
    several = rs.evaluate(labels, {"r": run}, pool=list(pools.values()), scale="utility", measures=["PROC"], depths=[K])
    assert np.array_equal(several.runs["r"].per_query[f"PROC@{K}"], proc(labels, run, union), equal_nan=True)
    assert several.runs["r"].judged.candidates_returned.tolist() == [len(union.get(q, run[q])) for q in labels]


def test_a_pool_that_is_shorter_than_its_run_is_doubted(world, recwarn) -> None:
    labels, run, pools = world
    proc(labels, run, pools["bm25"])
    assert not [each for each in recwarn if each.message.code == "pool-shorter-than-run"]
    proc(labels, pools["bm25"], {query: passages[:2] for query, passages in run.items()})
    (heard,) = [str(each.message) for each in recwarn if each.message.code == "pool-shorter-than-run"]
    assert "the pool of r is shorter than its list for 23 queries" in heard


def test_the_order_of_the_union_is_that_of_the_fused_run(world) -> None:
    labels, run, pools = world
    binary = {q: {d: int(g > 3) for d, g in row.items()} for q, row in labels.items()}
    options = {"measures": ["Fe"], "depths": [1, 2, 3]}
    by_hand = rs.evaluate(binary, {"r": run}, pool=rs.Run.fused(pools.values()).to_dict(), **options)
    several = rs.evaluate(binary, {"r": run}, pool=list(pools.values()), **options)
    assert several.to_rows() == by_hand.to_rows()
    # Under rules that compare scores as float32, and under those that do not look at them, the order is the same.
    for rules in ({"policy": "trec_eval"}, {"order": "rank"}):
        other = rs.evaluate(binary, {"r": run}, pool=list(pools.values()), **options, **rules)
        assert [row["value"] for row in other.to_rows()] == [row["value"] for row in several.to_rows()]


def test_each_run_has_its_own_pools(world) -> None:
    labels, run, pools = world
    runs = {"a": run, "b": {q: ds[::-1] for q, ds in run.items()}}
    options = {"scale": "utility", "measures": ["PROC"], "depths": [K]}
    report = rs.evaluate(labels, runs, pool={"a": list(pools.values())}, **options)
    fused = rs.evaluate(labels, {"a": run}, pool=rs.Run.fused(pools.values()), **options)
    assert report["a", f"PROC@{K}"].value == fused[f"PROC@{K}"].value
    assert report.runs["b"].judged.pool is None


def test_the_depth_of_pools(world) -> None:
    labels, run, pools = world
    for depth in (1, 2, 4):
        cut = [{q: ds[:depth] for q, ds in pool.items()} for pool in pools.values()]
        for given, by_hand in ((list(pools.values()), cut), (pools["bm25"], cut[0])):
            options = {"scale": "utility", "measures": ["PROC", "Fe"], "depths": [1, K], "bootstrap": None}
            one = rs.evaluate(labels, {"r": run}, pool=given, pool_depth=depth, **options)
            other = rs.evaluate(labels, {"r": run}, pool=by_hand, **options)
            assert repr(one.to_rows()) == repr(other.to_rows())


def test_at_a_budget_what_the_pool_lacks_stands_behind_it() -> None:
    options = {"pool": {"q": list("axyzc")}, "tokens": dict.fromkeys("abcx", 10), "measures": ["Fe@1", "Fe@10tok"]}
    report = rs.evaluate({"q": dict.fromkeys("abc", 1)}, {"r": {"q": list("abx")}}, **options)
    assert report["Fe@1"].value == report["Fe@10tok"].value == 1


def test_the_form_of_ids_comes_before_the_union() -> None:
    labels = {"q": {"d1": 5, "d2": 4, "d3": 1}}
    pools = [{"Q": ["D1"]}, {"q": ["d1", "d2"]}]
    report = rs.evaluate(labels, {"r": {"q": ["d3"]}}, pool=pools, ids="casefold", scale="utility", depths=[1])
    assert report.runs["r"].judged.candidates_returned.tolist() == [3 - 1]


@pytest.mark.parametrize(
    ("pool", "depth", "message"),
    [
        (None, 3, "give a pool"),
        ({"q": ["d"]}, 0, "whole number ≥ 1"),
        ({"q": ["d"]}, True, "whole number ≥ 1"),
        ([], None, "pool is empty"),
        ({}, None, "pool is empty"),
        ({"r": []}, None, "the list of run 'r' is empty"),
        ({"R": [{"q": ["d"]}, {"q": ["e"]}]}, None, r'no run \'R\'; did you mean "r"\? \(the runs are r\)'),
        ({"zz": [rs.Run.of({"q": ["d"]})]}, None, r"there is no run 'zz' \(the runs are r\)"),
        ({"r": {"q": ["d"]}, "zz": [{"q": ["d"]}]}, None, r"there is no run 'zz'"),
    ],
)
def test_mistakes_are_named(pool, depth, message) -> None:
    with pytest.raises(InputError, match=message):
        rs.evaluate({"q": {"d": 1}}, {"r": {"q": ["d"]}}, pool=pool, pool_depth=depth)


def test_rows_are_still_one_pool() -> None:
    records = [{"query_id": "q", "passage_id": passage} for passage in "de"]
    for pool in ([("q", "d"), ("q", "e")], records, {"r": records}):
        report = rs.evaluate({"q": {"d": 1}}, {"r": {"q": ["d"]}}, pool=pool, depths=[1])
        assert report.runs["r"].judged.candidates_returned.tolist() == [2]


def test_pools_by_their_names_may_be_dicts() -> None:
    pools = {"bm25": {"q": ["d", "e"]}, "dense": {"q": [("f", 0.5)]}}
    report = rs.evaluate({"q": {"d": 1, "f": 1}}, {"r": {"q": ["d"]}}, pool=pools, depths=[1], scale="trec")
    assert report.runs["r"].judged.candidates_returned.tolist() == [3]


def test_pools_of_a_command(tmp_path) -> None:
    a, b = Path("a.trec"), Path("b.trec")
    assert pools_of(None, {"r": a}) is None
    assert pools_of(["a.trec"], {"r": a}) == a
    assert pools_of(["a.trec", "b.trec"], {"r": a}) == [a, b]
    assert pools_of(["r=a.trec", "r=b.trec"], {"r": a, "s": b}) == {"r": [a, b]}
    assert pools_of(["a.trec", "r=b.trec"], {"r": a, "s": b}) == {"r": [a, b], "s": [a]}
    for given, message in (["x=a.trec"], r"no run 'x' \(the runs are r\)"), (["=a.trec"], "neither FILE nor NAME=FILE"):
        with pytest.raises(InputError, match=message):
            pools_of(given, {"r": a})


def test_grading_keeps_every_pool_with_its_rank(tmp_path) -> None:
    for name, lines in (("one", ["d1", "d2"]), ("two", ["d2", "d3"])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.trec").write_text(
            "".join(f"q Q0 {d} {i} {9 - i} t\n" for i, d in enumerate(lines, 1)), encoding="utf-8"
        )
    texts = {f"d{i}": f"text {i}" for i in (1, 2, 3)}
    pools = [tmp_path / name / "run.trec" for name in ("one", "two")]

    async def judge(messages, schema):
        return {"reason": "", "grade": 3}

    rs.grade({"q": "what?"}, texts, pools, store=tmp_path / "s.db", judge=judge)
    with Store(tmp_path / "s.db") as store:
        ranks = {(passage, origin.draw.source): origin.rank for _, passage, origin in store.origins()}
    assert ranks == {("d1", "one/run"): 1, ("d2", "one/run"): 2, ("d2", "two/run"): 1, ("d3", "two/run"): 2}
