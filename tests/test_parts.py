"""A run that is joined in parts, as on several machines, and put together: the same report, digit for digit."""

import pickle
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs

pytestmark = pytest.mark.contract

QUERIES = [f"q{i}" for i in range(6)]
PASSAGES = [f"d{i}" for i in range(8)]
GRADES = st.dictionaries(st.sampled_from(PASSAGES), st.integers(1, 5), min_size=1, max_size=6)
LISTS = st.lists(st.sampled_from([*PASSAGES, "x1", "x2"]), max_size=8)
LABELS = st.fixed_dictionaries(dict.fromkeys(QUERIES, GRADES))
RUNS = st.dictionaries(st.sampled_from([*QUERIES, "unknown"]), LISTS, min_size=2)
PART_OF = st.fixed_dictionaries(dict.fromkeys([*QUERIES, "unknown"], st.integers(0, 3)))
POLICIES = [{}, {"missing_query": "skip"}, {"duplicates": "drop"}, {"unjudged": "worst"}, {"exclude_self": True}]


def divided(run: dict[str, list[str]], part_of: dict[str, int]) -> list[dict[str, list[str]]]:
    return [{q: row for q, row in run.items() if part_of[q] == number} for number in range(4)]


@settings(max_examples=60, deadline=None)
@given(LABELS, RUNS, RUNS, PART_OF, st.sampled_from(POLICIES), st.booleans(), st.booleans())
def test_parts_are_the_whole(labels, run, pool, part_of, policy, pooled, controlled) -> None:
    choices = {"policy": rs.Policy(**policy), "scale": "utility", "corpus_size": 50, "ids": "exact"}
    controls = {query: {"c1": 5, "x1": 1} for query in QUERIES[:4]} if controlled else None
    options = {**choices, "controls": None if controls is None else rs.Qrels.of(controls)}
    qrels = rs.Qrels.of(labels)
    run = {q: row for q, row in run.items() if row or q != "unknown"}
    if not set(run) & set(QUERIES):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = rs.join(qrels, rs.Run.of(run), pool=rs.Run.of(pool) if pooled else None, **options)
        parts = [
            rs.join(qrels, rs.Run.of(some), pool=rs.Run.of(of_pool) if pooled else None, **options)
            for some, of_pool in zip(divided(run, part_of), divided(pool, part_of), strict=True)
            if some or of_pool
        ]
        together = rs.JudgedRun.concat(pickle.loads(pickle.dumps(part)) for part in parts)
        measures = ["Success@3", "BoR@3", "RA-nWG@3", "PROC@3", "Harm@3", "nDCG@3", "Judged@3"]
        one, other = (
            rs.evaluate_joined({"run": each}, measures=measures, bootstrap=rs.Bootstrap(resamples=50))
            for each in (whole, together)
        )
    assert one.to_dict() == other.to_dict()


def test_parts_of_files_are_the_whole(data: Path) -> None:
    labels = rs.read_qrels(data / "cranfield" / "qrels.trec").on_scale("utility")
    lists = dict(rs.read_run(data / "cranfield" / "runs" / "bm25.trec").lists())
    parts = [rs.join(labels, rs.Run.of(dict(list(lists.items())[i::3])), corpus_size=1400) for i in range(3)]
    whole = rs.join(labels, rs.Run.of(lists), corpus_size=1400)
    one, other = (
        rs.evaluate_joined({"run": each}, depths=[1, 10], bootstrap=rs.Bootstrap(resamples=200))
        for each in (whole, rs.JudgedRun.concat(parts))
    )
    assert one.to_dict() == other.to_dict()


@pytest.mark.parametrize(
    ("parts", "message"),
    [([], "give one part or more"), ([{"q0": ["d0"]}, {"q0": ["d1"]}], "two parts have a list for query 'q0'")],
)
def test_parts_that_are_no_whole_are_refused(parts, message) -> None:
    labels = rs.Qrels.of({"q0": {"d0": 1}, "q1": {"d1": 1}})
    joined = [rs.join(labels, rs.Run.of(part)) for part in parts]
    with pytest.raises(rs.InputError, match=message):
        rs.JudgedRun.concat(joined)


def test_parts_of_other_labels_are_refused() -> None:
    one, other = (
        rs.join(rs.Qrels.of(labels), rs.Run.of(run))
        for labels, run in (({"q0": {"d0": 1}}, {"q0": ["d0"]}), ({"q1": {"d1": 1}}, {"q1": ["d1"]}))
    )
    with pytest.raises(rs.InputError, match="join each with the labels of all queries"):
        rs.JudgedRun.concat([one, other])
