"""Groups of passages that say the same: measures over groups, and redundancy."""

import random
import re

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.tables.writing import write_rows

pytestmark = pytest.mark.inside

PASSAGES = [f"d{i}" for i in range(30)]
NAMES = ("RA-nWG", "N-Recall4+", "N-Recall5", "Precision4+")


def world(seed: int, queries: int = 15):
    draw = random.Random(seed)
    groups = {passage: f"g{draw.randrange(6)}" for passage in draw.sample(PASSAGES, 18)}
    qrels = {f"q{i}": {d: draw.randint(1, 5) for d in draw.sample(PASSAGES, 14)} for i in range(queries)}
    run = {f"q{i}": draw.sample(PASSAGES, draw.randint(1, 12)) for i in range(queries)}
    return groups, qrels, run


def evaluated(qrels, run, measures, **options):
    return rs.evaluate(
        qrels,
        {"r": run},
        **{"scale": "utility", "measures": measures, "depths": [1, 3, 8], "bootstrap": None} | options,
    )


@pytest.mark.parametrize("seed", range(4))
def test_measures_over_groups_are_those_of_renamed_passages(seed) -> None:
    groups, qrels, run = world(seed)
    pool = {query: [*ids, *random.Random(seed).sample(PASSAGES, 5)] for query, ids in run.items()}
    found = evaluated(qrels, run, [f"{name}(distinct=true)" for name in NAMES], groups=groups, pool=pool)

    def named(passage: str) -> str:
        return groups.get(passage, passage)

    by_group = {
        query: {name: max(grade for passage, grade in of.items() if named(passage) == name) for name in map(named, of)}
        for query, of in qrels.items()
    }
    renamed = {query: [named(passage) for passage in ids] for query, ids in run.items()}
    expected = evaluated(by_group, renamed, list(NAMES))
    for key, estimate in expected.runs["r"].estimates.items():
        if not key.startswith("Judged"):
            name, _, depth = key.partition("@")
            assert found["r", f"{name}(distinct=true)@{depth}"].value == estimate.value, key
            columns = [each.runs["r"].per_query for each in (found, expected)]
            np.testing.assert_array_equal(columns[0][f"{name}(distinct=true)@{depth}"], columns[1][key])


@pytest.mark.parametrize("budget", [None, 250])
def test_redundancy_counts_what_repeats_a_group_above(budget) -> None:
    groups, qrels, run = world(9)
    lengths = {passage: 60 + 10 * (i % 5) for i, passage in enumerate(PASSAGES)}
    keys = ["Redundancy@1", "Redundancy@3", "Redundancy@8"] if budget is None else [f"Redundancy@{budget}tok"]
    part = evaluated(qrels, run, keys, groups=groups, tokens=None if budget is None else lengths).runs["r"]
    for i, query in enumerate(part.queries):
        for key in keys:
            ids = run[query]
            if budget is None:
                ids = ids[: int(key.partition("@")[2])]
            else:
                ids = [d for place, d in enumerate(ids) if sum(lengths[e] for e in ids[: place + 1]) <= budget]
            names = [groups.get(passage, passage) for passage in ids]
            repeated = sum(name in names[:place] for place, name in enumerate(names))
            assert part.per_query[key][i] == pytest.approx(repeated / len(names)), (query, key)


GROUPS, QRELS, RUN = world(7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"RA-nWG\(distinct=true\) is about groups of passages .*data.groups=FILE"),
        ({"groups": {"d1": ""}}, "the group id is empty"),
        ({"groups": 3}, "groups: give a file, a frame, a mapping or a list of rows, got 3"),
        ({"groups": GROUPS, "unjudged": "condense"}, "leaves passages out"),
        ({"groups": GROUPS, "human": QRELS}, "of passages, which groups puts together"),
        ({"groups": GROUPS, "passages_of": dict.fromkeys(PASSAGES, 2)}, "with passages_of the labels are of documents"),
    ],
)
def test_what_cannot_be_measured_says_why(options, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        evaluated(QRELS, RUN, ["RA-nWG(distinct=true)"], **options)


def test_a_single_query_without_groups_is_refused() -> None:
    from rag_selectivity.single import evaluate_query

    with pytest.raises(rs.InputError, match="about groups of passages"):
        evaluate_query("RA-nWG(distinct=true)@2", {"a": 5, "b": 1}, ["a", "b"], scale="utility")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_table_without_groups_is_one(suffix, tmp_path) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    write_rows(tmp_path / f"none.{suffix}", [], columns=("passage_id", "group"))
    options = {"scale": "utility", "measures": ["RA-nWG(distinct=true)@2"], "bootstrap": None}
    for none in (tmp_path / f"none.{suffix}", {}):
        with pytest.warns(rs.SelectivityWarning, match="so that all passages count as distinct"):
            rs.evaluate({"q": {"d1": 5}}, {"r": {"q": ["d1", "d2"]}}, groups=none, **options)


def test_groups_of_other_passages_are_said_to_match_nothing() -> None:
    options = {"scale": "utility", "measures": ["Redundancy@2"], "bootstrap": None}
    said = "none of the passages of the groups ('x', 'y') is retrieved or labelled ('d1', 'd2')"
    with pytest.warns(rs.SelectivityWarning, match=re.escape(said)) as heard:
        report = rs.evaluate({"q": {"d1": 5}}, {"r": {"q": ["d1", "d2"]}}, groups={"x": "g", "y": "g"}, **options)
    assert [warning.message.code for warning in heard] == ["ids-do-not-match"]
    assert any(said in note for note in report.runs["r"].notes)
    assert report["Redundancy@2"].value == 0
