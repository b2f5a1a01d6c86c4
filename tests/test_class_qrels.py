"""Labels by class, held as counts: every figure is that of all pairs written out."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.data.forms import IdForm

pytestmark = pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")

IDS = [f"d{i}" for i in range(12)]
MEASURES = ["Success", "BoR", "BoR_max", "lambda", "P", "R", "F", "AP", "nDCG", "RR", "RBP", "Judged"]
UTILITY = ["Success", "BoR", "RA-nWG", "PROC", "%PROC", "N-Recall4+", "Precision4+", "Harm"]


def pairs(query_class, passage_class, *, grade: int = 1, exclude_self: bool = False) -> dict[str, dict[str, int]]:
    return {
        query: {
            passage: grade
            for passage, of_passage in passage_class.items()
            if of_passage is not None and of_passage == of_query and not (exclude_self and passage == query)
        }
        for query, of_query in query_class.items()
    }


CLASS = st.sampled_from(["a", "b", 3, None])


@st.composite
def worlds(draw: st.DrawFn):
    """Queries that are passages too, classes without passages or queries, copies, empty and missing lists."""
    queries = draw(st.dictionaries(st.sampled_from([*IDS, "q1", "q2"]), CLASS, min_size=1, max_size=6))
    passages = draw(st.dictionaries(st.sampled_from(IDS), CLASS, min_size=1, max_size=12))
    first = next(iter(queries))
    queries[first] = passages["d11"] = "a"
    passages["d10"] = "a"
    run = {query: draw(st.lists(st.sampled_from([*IDS, "x"]), max_size=9)) for query in queries if draw(st.booleans())}
    run[first] = [*run.get(first, []), "d11", "d10"]
    return queries, passages, run, draw(st.booleans())


@given(worlds(), st.sampled_from(["count_once", "drop"]), st.sampled_from(["miss", "condense", "worst"]))
@settings(max_examples=40, deadline=None)
def test_figures_are_those_of_all_pairs(world, duplicates, unjudged) -> None:
    queries, passages, run, exclude_self = world
    expanded = rs.Qrels.from_dict(pairs(queries, passages, exclude_self=exclude_self))
    counted = rs.Qrels.from_classes(queries, passages, exclude_self=exclude_self)
    assert counted.to_dict() == expanded.to_dict() == {query: counted[query] for query in counted}
    policy = rs.Policy(duplicates=duplicates, **({} if unjudged == "miss" else {"unjudged": unjudged}))
    options = {"corpus_size": 40, "depths": [1, 3, 8], "measures": MEASURES, "policy": policy, "bootstrap": None}
    theirs = rs.evaluate(expanded, {"r": run}, ids="exact", **options)
    ours = rs.evaluate(
        rs.Qrels.from_classes(queries, passages, exclude_self=exclude_self), {"r": run}, ids="exact", **options
    )
    assert repr(ours.to_dict()) == repr(theirs.to_dict())
    assert repr(ours.per_query()) == repr(theirs.per_query())


@given(worlds())
@settings(max_examples=20, deadline=None)
def test_utility_figures_with_a_pool_are_those_of_all_pairs(world) -> None:
    queries, passages, run, exclude_self = world
    pool = {query: [*IDS, *ids][:10] for query, ids in run.items()}
    options = {"scale": "utility", "measures": UTILITY, "depths": [2, 4], "pool": {"r": pool}, "corpus_size": 40}
    by_pairs, by_class = (
        rs.evaluate(labels, {"r": run}, ids="exact", bootstrap=None, **options)
        for labels in (
            pairs(queries, passages, grade=5, exclude_self=exclude_self),
            rs.Qrels.from_classes(queries, passages, grade=5, exclude_self=exclude_self),
        )
    )
    assert repr(by_class.to_dict()) == repr(by_pairs.to_dict())


@given(worlds())
@settings(max_examples=30, deadline=None)
def test_what_a_join_asks_is_what_the_columns_say(world) -> None:
    queries, passages, _, exclude_self = world
    counted = rs.Qrels.from_classes(queries, passages, exclude_self=exclude_self)
    plain = rs.Qrels.from_dict(pairs(queries, passages, exclude_self=exclude_self))
    rows = np.arange(plain.size)
    assert counted.size == plain.size
    assert counted.counts().tolist() == plain.counts().tolist()
    assert counted.grades_present() == plain.grades_present()
    assert counted.counts_by_grade(np.array([0, 1])).tolist() == plain.counts_by_grade(np.array([0, 1])).tolist()
    assert list(counted.passages_at(rows)) == list(plain.passages)
    assert counted.distinct_passages() == plain.distinct_passages()
    assert counted.label_hashes().tolist() == plain.label_hashes().tolist()
    assert counted.query.tolist() == plain.query.tolist()
    assert counted.grade.tolist() == plain.grade.tolist()


def test_no_pair_is_written_out_for_a_report(monkeypatch) -> None:
    queries, passages = {f"q{i}": i % 3 for i in range(30)}, {f"d{i}": i % 3 for i in range(60)}
    qrels = rs.Qrels.from_classes(queries, passages)
    run = {query: [f"d{(i + k) % 60}" for k in range(20)] for i, query in enumerate(queries)}
    report = rs.evaluate(qrels, {"r": run}, corpus=list(passages), measures=[*MEASURES, "default"])
    assert report["Success@1"].value == 1.0
    assert not {"query", "grade", "_passages"} & set(vars(qrels))
    joined = rs.join(qrels, rs.Run.from_dict(run), scale="trec")
    assert joined.qrels is not None
    assert not {"query", "grade", "_passages"} & set(vars(joined.qrels))


def test_self_retrieval_leaves_the_query_out() -> None:
    classes = {"a": "x", "b": "x", "c": "y"}
    assert rs.Qrels.from_classes(classes, classes).to_dict() == {
        "a": {"a": 1, "b": 1},
        "b": {"a": 1, "b": 1},
        "c": {"c": 1},
    }
    assert rs.Qrels.from_classes(classes, classes, exclude_self=True).to_dict() == {
        "a": {"b": 1},
        "b": {"a": 1},
        "c": {},
    }


def test_forms_maps_and_scales_are_those_of_all_pairs() -> None:
    queries, passages = {"Q1": "x", "Q2": "y"}, {"D1": "x", "D2": "y", "D3": "x"}
    counted, plain = rs.Qrels.from_classes(queries, passages), rs.Qrels.from_dict(pairs(queries, passages))
    form = IdForm.of("casefold")
    assert (
        counted.in_form(form).to_dict() == plain.in_form(form).to_dict() == {"q1": {"d1": 1, "d3": 1}, "q2": {"d2": 1}}
    )
    assert counted.regraded("1:4").on_scale("utility").to_dict() == plain.regraded("1:4").on_scale("utility").to_dict()
    assert counted.only(np.array([True, False, True])).to_dict() == plain.only(np.array([True, False, True])).to_dict()
    assert counted.under({"n": "Q2"}).to_dict() == {"n": {"D2": 1}}


@pytest.mark.parametrize(
    ("queries", "passages", "options", "message"),
    [
        ({"q": "x"}, {"d": "y"}, {}, "no query has the class of a passage: queries have classes such as 'x', passages"),
        (
            {"q": ["x"]},
            {"d": "x"},
            {},
            r"query 'q' has the class \['x'\]: give one text or number",
        ),
        ({"q": "x"}, {"d": {"x"}}, {}, "passage 'd' has the class"),
        ([("q", "x")], {"d": "x"}, {}, "query_class must be a dict of ids and classes, got list"),
        ({"q": "x"}, {"": "x"}, {}, "passage id number 1 is empty"),
        ({"": "x"}, {"d": "x"}, {}, "query_class"),
        ({"q": "x"}, {1: "x", "1": "x"}, {}, "passage '1' stands twice: an id can have one class only"),
        ({1: "x", "1": "x"}, {"d": "x"}, {}, "query '1' stands twice"),
        ({"q": "x"}, {"d": "x"}, {"grade": -1}, "grade must be a whole number"),
        ({"q": "x"}, {"d": "x"}, {"grade": 1.5}, "grade"),
        ({}, {}, {}, "no query has the class of a passage"),
    ],
)
def test_what_cannot_be_is_named(queries, passages, options, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        rs.Qrels.from_classes(queries, passages, **options)


def test_ids_that_become_one_and_grades_off_the_scale_are_named() -> None:
    qrels = rs.Qrels.from_classes({"q": "x", "Q": "y"}, {"d": "x"})
    with pytest.raises(rs.InputError, match="query 'q' stands twice with ids='casefold'"):
        qrels.in_form(IdForm.of("casefold"))
    with pytest.raises(rs.InputError, match="grade 7 is off the utility scale"):
        rs.Qrels.from_classes({"q": "x"}, {"d": "x"}, grade=7).on_scale("utility")
    with pytest.raises(rs.InputError, match="grade 1 is not in the grade map; add 1:NEW"):
        qrels.regraded("0:1")


def test_copies_for_other_processes_hold_counts_too() -> None:
    qrels = pickle.loads(pickle.dumps(rs.Qrels.from_classes({"q": "x", "r": "y"}, {"d": "x", "e": "y", "f": "x"})))
    assert qrels.counts().tolist() == [2, 1]
    assert "query" not in vars(qrels)
    assert qrels.to_dict() == {"q": {"d": 1, "f": 1}, "r": {"e": 1}}
    with pytest.raises(AttributeError, match="has no attribute 'grades'"):
        qrels.grades  # noqa: B018


def test_parts_of_a_run_and_scattered_lines_meet_the_same_labels(tmp_path) -> None:
    queries, passages = {"q1": "x", "q2": "y", "q3": "x"}, {"a": "x", "b": "y", "c": "x", "d": "y"}
    ranked = {"q1": "bac", "q2": "dxb", "q3": "ca"}
    lines = [f"{q} Q0 {p} {i} {-i} r\n" for q, ids in ranked.items() for i, p in enumerate(ids)]
    found = []
    for name, order in (("sorted", lines), ("scattered", lines[::2] + lines[1::2])):
        (tmp_path / f"{name}.trec").write_text("".join(order))
        for labels in (rs.Qrels.from_classes(queries, passages), pairs(queries, passages)):
            report = rs.evaluate(labels, tmp_path / f"{name}.trec", measures=["AP", "R@2", "P@2"], bootstrap=None)
            found.append([report[measure].value for measure in ("AP", "R@2", "P@2")])
    assert found[1:] == found[:-1]
