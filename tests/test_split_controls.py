"""Labels and random controls of one file are told apart."""

from __future__ import annotations

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.data.controls import split_controls
from rag_selectivity.data.origins import Chosen
from rag_selectivity.data.run import Run
from rag_selectivity.grading.store import Draw, HumanLabel, Origin, Store
from tests.test_store import put

POOL, TAIL, CONTROL = Draw("pool", "bm25", 2), Draw("tail", "bm25", 9, {"first": 3, "last": 9}), Draw("control")
DRAWS = {"a": POOL, "b": POOL, "t": TAIL, "c1": CONTROL, "c2": CONTROL, "c3": CONTROL}


@pytest.fixture
def path(tmp_path):
    """A store with two queries, each with two pooled passages, one of a tail and three controls."""
    with Store(tmp_path / "l.db") as store:
        pairs = [(q, p) for q in ("q1", "q2") for p in DRAWS]
        put(store, "m", {(q, p): 5 if p == "a" else 1 for q, p in pairs})
        store.put_origins((q, p, Origin(DRAWS[p], detail={"of": 7} if p == "t" else {})) for q, p in pairs)
    return tmp_path / "l.db"


def test_controls_are_no_labels(path) -> None:
    split = split_controls(rs.read_qrels(path))
    assert split.labels.to_dict() == {q: {"a": 5, "b": 1, "t": 1} for q in ("q1", "q2")}
    assert split.controls.to_dict() == {q: {"c1": 1, "c2": 1, "c3": 1} for q in ("q1", "q2")}
    assert (split.in_lists, split.relevant_to_people, split.remarks) == (0, 0, ())
    assert split.controls.origins.are(Chosen.CONTROL).all()
    assert split.labels.scale == split.controls.scale == "utility"


def test_a_control_in_a_list_is_a_label_and_is_counted(path) -> None:
    run = Run.from_dict({"q1": ["a", "c2", "unknown"], "q9": ["c1"]})
    split = split_controls(rs.read_qrels(path), [run])
    assert split.labels["q1"] == {"a": 5, "b": 1, "t": 1, "c2": 1}
    assert split.controls["q1"].keys() == {"c1", "c3"}
    assert split.controls["q2"].keys() == {"c1", "c2", "c3"}
    (remark,) = split.remarks
    assert "1 passage drawn as a control is in a list of its query now" in remark
    assert "query 'q1', passage 'c2'" in remark


def test_a_control_that_a_later_pool_holds_is_a_label(path) -> None:
    with Store(path) as store:
        store.put_origins([("q2", "c1", Origin(Draw("pool", "dense", 5), 4))])
    split = split_controls(rs.read_qrels(path))
    assert "c1" in split.labels["q2"]
    assert "c1" not in split.controls["q2"]
    assert split.in_lists == 1


def test_a_control_that_people_judged_keeps_the_grade_of_the_judge(path) -> None:
    with Store(path) as store:
        people = [("q1", "c1", 5), ("q2", "c2", 2), ("q2", "c4", 1)]
        store.put_human_labels(HumanLabel(q, p, "ada", grade) for q, p, grade in people)
        store.put_origins([("q2", "c4", Origin(CONTROL))])
    qrels = rs.read_qrels(path)
    assert qrels["q1"]["c1"] == 5
    split = split_controls(qrels)
    assert split.controls["q1"]["c1"] == split.controls["q2"]["c2"] == 1
    assert (split.relevant_to_people, split.without_judge) == (1, 1)
    assert "1 passage drawn as a control was judged relevant by people" in split.remarks[0]
    assert "query 'q1', passage 'c1'" in split.remarks[0]
    assert "query 'q2', passage 'c4'" in split.remarks[1]


def test_judgments_without_origins_are_labels() -> None:
    qrels = rs.Qrels.from_dict({"q": {"a": 1}})
    assert split_controls(qrels).labels is qrels


def test_the_columns_say_what_the_store_knows(path) -> None:
    with Store(path) as store:
        drawn = Draw("person", "ada", how={"design": "calibrate:200"})
        store.put_human_labels([HumanLabel("q1", "a", "ada", 2, draw=drawn), HumanLabel("q2", "b", "ben", 4)])
        store.put_human_labels([HumanLabel("q3", "x", "ben", 3)])
    qrels = rs.read_qrels(path)
    origins = qrels.origins
    rows = {(qrels.queries[q], p): i for i, (q, p) in enumerate(zip(qrels.query, qrels.passages, strict=True))}
    assert {pair: int(origins.chosen[row]) for pair, row in rows.items() if pair[0] != "q2"} == {
        ("q1", "a"): Chosen.POOL | Chosen.PERSON,
        ("q1", "b"): Chosen.POOL,
        ("q1", "t"): Chosen.TAIL,
        **{("q1", f"c{i}"): Chosen.CONTROL for i in (1, 2, 3)},
        ("q3", "x"): 0,
    }
    assert {pair for pair, row in rows.items() if origins.by_person[row]} == {("q1", "a"), ("q2", "b"), ("q3", "x")}
    assert [origins.judge_grade[rows[pair]] for pair in (("q1", "a"), ("q2", "b"), ("q3", "x"))] == [5, 1, -1]
    others = ~origins.by_person
    assert (origins.judge_grade[others] == qrels.grade[others]).all()
    assert {pair for pair, row in rows.items() if origins.tail_size[row]} == {("q1", "t"), ("q2", "t")}
    assert set(origins.tail_size[[rows["q1", "t"], rows["q2", "t"]]]) == {7}
    assert (origins.tail_ranks, origins.pools, origins.judges) == ((3, 9), {"bm25": 2}, {"m": 12})
    assert origins.annotators == {"ada": 1, "ben": 2}
    assert origins.drawn_for_people == {"calibrate:200": 1, "": 2}
    alone = rs.read_qrels(path, humans=False)
    assert alone["q1"]["a"] == 5
    assert not alone.origins.by_person.any()
    assert (alone.origins.annotators, alone.origins.drawn_for_people) == ({}, {})
    assert np.array_equal(alone.origins.judge_grade, alone.grade)


def test_one_judge_with_two_rubrics_is_not_mixed(tmp_path) -> None:
    from rag_selectivity.grading.store import Label, Settings, digest

    with Store(tmp_path / "l.db") as store:
        for version, passage in (("r1", "a"), ("r2", "b")):
            number = store.settings_id(Settings("grade", "m", {}, "utility", version, "1"))
            store.add_texts([("q", passage, digest("q"), digest(passage))])
            store.put([Label((number, digest("q"), digest(passage), 0), 3)]).result()
    for judges in (None, ["m"]):
        with pytest.raises(rs.InputError, match=r"several judges \(m#1, m#2\).*rubric r1.*passage 'a'.*rubric r2"):
            rs.read_qrels(tmp_path / "l.db", judges=judges)
    assert rs.read_qrels(tmp_path / "l.db", judges=["m#2"]).to_dict() == {"q": {"b": 3}}
    assert rs.read_qrels(tmp_path / "l.db", judge_rule="median").to_dict() == {"q": {"a": 3, "b": 3}}


def test_settings_that_differ_in_parameters_alone_are_one_judge(tmp_path) -> None:
    from rag_selectivity.grading.store import Label, Settings, digest

    with Store(tmp_path / "l.db") as store:
        for batch, passage in ((1, "a"), (5, "b")):
            number = store.settings_id(Settings("grade", "m", {"batch": batch}, "utility", "r", "1"))
            store.add_texts([("q", passage, digest("q"), digest(passage))])
            store.put([Label((number, digest("q"), digest(passage), 0), 3)]).result()
    assert rs.read_qrels(tmp_path / "l.db").to_dict() == {"q": {"a": 3, "b": 3}}
