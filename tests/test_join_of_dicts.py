"""Runs and labels given as dicts, which are joined by the dicts' own look-ups, beside the join of their columns."""

from __future__ import annotations

import dataclasses
import warnings
from enum import StrEnum
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rag_selectivity.join.dicts import judge_dicts

import rag_selectivity as rs
from rag_selectivity.data.dicts import DictRun, labels_of_dicts
from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.policy import resolve_policy
from rag_selectivity.errors import InputError
from rag_selectivity.join.better_form import better_form
from rag_selectivity.join.joining import join
from rag_selectivity.join.judged_run import Hits

pytestmark = pytest.mark.inside

QUERIES = ["q1", "q2", "10", "2", "ü"]
PASSAGES = [*(f"d{i}" for i in range(14)), "D1", "ä", "é", "z 1", "a.txt"]
SCORES = [0.0, -0.0, 1.0, 2, 2.5, -3.25, float("inf"), float("-inf"), 1e300, 7, 0.1]


def by_columns(labels) -> rs.Qrels:
    rows = [(query, *row) for query, judged in labels.items() for row in judged.items()]
    return rs.Qrels.from_records(rows, queries=labels)


def run_by_rows(run) -> rs.Run:
    """The run from its rows; what is an empty dict is an empty list."""
    return rs.Run.from_dict({query: list(ids.items()) if isinstance(ids, dict) else ids for query, ids in run.items()})


def outcome_of(call):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = call()
        except InputError as error:
            return str(error), []
    return found, [str(warning.message) for warning in heard]


def assert_same(found, expected) -> None:
    assert type(found) is type(expected)
    if isinstance(found, str):
        assert found == expected
        return
    for each in dataclasses.fields(expected):
        one, other = getattr(found, each.name), getattr(expected, each.name)
        if isinstance(other, Hits):
            one, other = (np.array([getattr(hits, name) for name in Hits.__slots__]) for hits in (one, other))
        if each.name == "facts" and one.scored != one.graded:
            # Where not all scores could be grades, it only matters whether all are equal.
            assert (one.tied == one.neighbours) == (other.tied == other.neighbours)
            one, other = dataclasses.replace(one, tied=0), dataclasses.replace(other, tied=0)
        if each.name == "qrels":
            assert one.to_dict() == other.to_dict()
        elif isinstance(other, np.ndarray):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other), each.name
        else:
            assert one == other, each.name
    assert np.array_equal(found.label_hashes, expected.label_hashes)
    assert found.facts.as_input() == expected.facts.as_input()


def lists(values):
    return st.dictionaries(st.sampled_from(QUERIES), values, max_size=5)


grades = st.dictionaries(st.sampled_from(PASSAGES), st.integers(0, 3), max_size=12)
scored = st.dictionaries(st.sampled_from(PASSAGES), st.sampled_from(SCORES), max_size=15)
unscored = st.lists(st.sampled_from(PASSAGES), max_size=15)


@settings(max_examples=90, deadline=None, derandomize=True)
@given(
    lists(grades),
    st.one_of(lists(scored), lists(unscored)),
    st.one_of(st.none(), lists(scored)),
    st.sampled_from([{}, {"ties": "as_given"}, {"order": "rank"}, {"unjudged": "condense"}, {"duplicates": "error"}]),
    st.sampled_from([None, "exact", "casefold"]),
)
def test_a_join_of_dicts_is_that_of_columns(labels, run, pool, policies, ids) -> None:
    options = {"scale": "trec", "policy": resolve_policy(None, **policies), "ids": ids, "corpus_size": 40}
    of_dicts = DictRun.of(run)
    assert of_dicts is not None
    found, said = outcome_of(
        lambda: join(rs.Qrels.from_dict(labels), of_dicts, pool=None if pool is None else DictRun.of(pool), **options)
    )
    expected, meant = outcome_of(
        lambda: join(by_columns(labels), run_by_rows(run), pool=None if pool is None else run_by_rows(pool), **options)
    )
    assert_same(found, expected)
    assert said == meant


def test_columns_are_made_only_where_they_are_needed() -> None:
    labels, plain, exact = rs.Qrels.from_dict({"q": {"d1": 1, "d2": 0}}), resolve_policy(), IdForm.of("exact")

    def directly(run, policy=plain, form=exact, of=labels) -> bool:
        return judge_dicts(of, DictRun.of(run), policy, form) is not None

    assert directly({"q": {"d1": 1.0, "d2": 1.0}})
    assert directly({"q": ["d2", "d1"], "other": []})
    assert not directly({"q": ["d1", "d1"]})
    assert not directly({"q": ["d1"]}, form=IdForm.of("casefold"))
    assert not directly({"q": {"d1": 1.0}}, policy=resolve_policy("trec_eval"))
    assert directly({"q": ["d1"]}, policy=resolve_policy("trec_eval"))
    assert not directly({"q": ["d1"]}, of=by_columns({"q": {"d1": 1}}))
    assert directly({"q": ["d1"]}, of=labels.regraded({1: 5, 0: 1}).on_scale("utility"))
    assert not directly({"q": ["d1"]}, of=labels.regraded({1: 5, 0: -1}))


class _Id(StrEnum):
    """Texts whose hash is that of another text."""

    D1 = "d1"


@pytest.mark.parametrize(
    ("run", "ranked"),
    [
        ({"q": {"d1": "2.5", "d2": 3}}, ["d2", "d1"]),
        ({"q": {_Id.D1: 1.0, "d2": 2.0}}, ["d2", "d1"]),
        ({"q": {np.str_("d1"): 1.0, "d2": np.float32(2)}}, ["d2", "d1"]),
        ({"q": {1: 0.5, "d2": 0.25}}, ["1", "d2"]),
        ({1: {"d1": 0.5}}, None),
        ({"q": {"d1": 10**400}}, InputError),
        ({"q": {"d1": None}}, InputError),
        ({"q": {"d1": float("nan")}}, InputError),
        ({"q": {"": 1.0}}, InputError),
        ({"q": ["d\0"]}, InputError),
        ({"q": ["\ud800"]}, InputError),
        ({"": ["d1"]}, InputError),
        ({"q": ["d1"], "r": {"d1": 1.0}}, InputError),
        ({"q": "d1"}, InputError),
    ],
)
def test_an_odd_run_is_read_row_by_row(run, ranked) -> None:
    if isinstance(ranked, type):
        assert DictRun.of(run) is None
        with pytest.raises(ranked):
            rs.Run.from_dict(run)
        with pytest.raises(ranked):
            rs.evaluate({"q": {"d1": 1}}, {"r": run}, bootstrap=None)
        return
    (found,) = rs.Run.from_dict(run).ordered(resolve_policy()).to_dict().values()
    assert found == (ranked or ["d1"])
    labels = {next(iter(run)): dict.fromkeys(found, 1)}
    assert rs.evaluate(labels, {"r": run}, measures=["P@1"], bootstrap=None)["r", "P@1"].value == 1


@pytest.mark.parametrize(
    ("labels", "read"),
    [
        ({"q": {"d1": True, "d2": np.int64(2)}}, {"q": {"d1": 1, "d2": 2}}),
        ({"q": {"d1": 2.0, "d2": "3"}}, {"q": {"d1": 2, "d2": 3}}),
        ({"q": {"d1": -1, "d2": 3}, "r": {}}, {"q": {"d2": 3}, "r": {}}),
        ({"q": {1: 1, "2": 0}}, {"q": {"1": 1, "2": 0}}),
        ({1: {"d1": 1}}, {"1": {"d1": 1}}),
        ({"q": {_Id.D1: 1}}, {"q": {"d1": 1}}),
        ({"q": {"d1": 0.5}}, None),
        ({"q": {"d1": 1 << 31}}, None),
        ({"q": {"d1": 1 << 70}}, None),
        ({"q": {"": 1}}, None),
        ({"q": {"d\0": 1}}, None),
        ({"": {"d": 1}}, None),
        ({"q": {1: 1, "1": 0}}, None),
    ],
)
def test_odd_labels_are_read_row_by_row(labels, read) -> None:
    if read is None:
        with pytest.raises(InputError):
            rs.Qrels.from_dict(labels)
    else:
        assert rs.Qrels.from_dict(labels).to_dict() == read


def test_a_dict_that_changes_later_changes_nothing() -> None:
    labels = {"q": {"d1": 1, "d2": 0}}
    qrels = rs.Qrels.from_dict(labels)
    labels["q"]["d3"] = 1
    labels["r"] = {}
    assert qrels.to_dict() == {"q": {"d1": 1, "d2": 0}}
    assert list(qrels.passages) == ["d1", "d2"]
    assert labels_of_dicts(labels) is not None


def ids_of(alphabet: str):
    return st.lists(st.text(alphabet, min_size=1, max_size=4), min_size=1, max_size=6, unique=True)


@pytest.mark.parametrize("alphabet", ["dD1", "d-12", "ab0", "a/1.", "a #", "aß1"])
def test_ids_that_meet_in_another_form_are_never_overlooked(alphabet, monkeypatch) -> None:
    from rag_selectivity.join import better_form as module

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(
        st.lists(st.tuples(ids_of(alphabet), ids_of(alphabet)), min_size=1, max_size=5), st.sampled_from(["", "doc"])
    )
    def compare(pairs, start) -> None:
        sides = [([start + one for one in first], [start + other for other in second]) for first, second in pairs]
        quick = better_form(sides)
        with monkeypatch.context() as patched:
            patched.setattr(module, "_stay_apart", lambda pairs: False)
            assert quick == better_form(sides)

    compare()


@pytest.mark.parametrize("form", ["strip", "nfc", "name", "casefold", "number", "strip,nfc,name,casefold,number"])
def test_the_forms_of_many_ids_are_those_of_each(form) -> None:
    made = IdForm.of(form)
    odd = ["D1", " d", "d\t", "d\n", "\x1fd", "07", "7", "7.0", "a/b", "a\\b", "a.txt", "a#1", "É", "ß", "é", "d\n7"]
    for ids in ([each] for each in odd):
        assert made.of_each(ids) == [made(each) for each in ids]
        mixed = ["A1", *ids, "b-2"]
        assert made.of_each(mixed) == [made(each) for each in mixed]
    assert made.of_each(odd) == [made(each) for each in odd]
    assert made.of_each([]) == []
    assert list(chain(made.of_each(["x", "X"]))) == [made("x"), made("X")]
