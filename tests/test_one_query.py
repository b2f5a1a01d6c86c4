"""One query alone has the figures that it has among many, for every measure and rule; what is refused is refused."""

import math
import warnings
from inspect import isabstract
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.single import QueryFigure, aggregate, evaluate_query, figures_of_query, query_figures

pytestmark = pytest.mark.contract


def below(cls: type[rs.Measure] = rs.Measure) -> list[type[rs.Measure]]:
    return [each for sub in cls.__subclasses__() for each in (sub, *below(sub))]


def is_registered(cls: type[rs.Measure]) -> bool:
    own = cls.__module__.startswith("rag_selectivity.") and not isabstract(cls)
    return own and cls in rs.measures.REGISTRY.values()


#: Each measure at 4 or of the whole list; those of groups need groups, and IPrec stands among the variants.
MEASURES = [cls() for cls in below() if is_registered(cls) and not cls.needs_groups and cls.name != "IPrec"]
VARIANTS = ["Harm(max_grade=1)@4", "Harm(unjudged=harmful)@4", "nDCG(gain=exp)@4", "Success(rel=5,m=2)@4", "IPrec@0.5"]
VARIANTS += ["RandomSuccess(m=2)@4", "RA-nWG(alpha=2)@4", "PROC(base3=1,cap3=1)@4", "%PROC(aggregate=ratio)@4"]
NAMES = [*(str(each if each.takes_whole_lists else each @ 4) for each in MEASURES), *VARIANTS]
SCALES = {"utility": (1, 2, 3, 4, 5), "trec": (0, 1, 2)}
IDS = [f"d{i}" for i in range(25)]
#: Each rule but those that refuse lists, and all of them by default.
RULES: list[dict[str, str]] = [
    {},
    {"short_lists": "returned"},
    {"unjudged": "worst"},
    {"unjudged": "condense"},
    {"duplicates": "count_once"},
    {"duplicates": "drop"},
]


@st.composite
def worlds(draw: Any) -> dict[str, Any]:
    """Queries with short, empty and long lists, copies in them, many, few and no labels, and each its own N."""
    scale = draw(st.sampled_from(sorted(SCALES)))
    levels = draw(st.sampled_from([SCALES[scale], SCALES[scale][-2:]]))
    queries = [f"q{i}" for i in range(draw(st.integers(1, 5)))]
    ids, unique = st.sampled_from(IDS), draw(st.booleans())
    sizes = st.sampled_from([25, 26, 1000, 8_800_000])
    return {
        "scale": scale,
        "levels": levels,
        "grades": {
            query: draw(st.dictionaries(ids, st.sampled_from(levels), max_size=15)) or {"d0": levels[0]}
            for query in queries
        },
        "lists": {query: draw(st.lists(ids, max_size=12, unique=unique)) for query in queries},
        "pool": {query: draw(st.lists(ids, max_size=20, unique=True)) for query in queries},
        "corpus_size": {query: draw(sizes) for query in queries},
    }


def alone(world: dict[str, Any], names: list[str], query: str, pooled: bool, **rules: str) -> tuple[QueryFigure, ...]:
    """The figures of a query by itself."""
    return figures_of_query(
        names,
        world["grades"][query],
        world["lists"][query],
        pool=world["pool"][query] if pooled else None,
        corpus_size=world["corpus_size"][query],
        scale=world["scale"],
        levels=world["levels"],
        details=True,
        **rules,
    )


def labels_of(world: dict[str, Any]) -> rs.Qrels:
    rows = [(query, *row) for query, grades in world["grades"].items() for row in grades.items()]
    return rs.Qrels.from_records(rows, levels=world["levels"])


def same(one: float, other: float) -> bool:
    """Whether two numbers are equal to the last digit, or both NaN."""
    return one == other or (math.isnan(one) and math.isnan(other))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(world=worlds(), rules=st.sampled_from(RULES), pooled=st.booleans())
def test_one_query_alone_has_the_figures_that_it_has_among_many(world, rules, pooled) -> None:
    names = [name for name in NAMES if rs.parse_measure(name).required_scale in (None, world["scale"])]
    joined = rs.join(
        labels_of(world),
        rs.Run.of(world["lists"]),
        pool=rs.Run.of(world["pool"]) if pooled else None,
        corpus_size=world["corpus_size"],
        scale=world["scale"],
        policy=rs.Policy(**rules),
        ids="exact",
    )
    together = [query_figures(name, joined, details=True) for name in names]
    for query in world["grades"]:
        for one, of_all in zip(alone(world, names, query, pooled, **rules), together, strict=True):
            among = of_all[query]
            assert same(one.value, among.value), one.measure
            assert (one.measure, one.reason, one.details) == (among.measure, among.reason, among.details)
            whole, of_it = (aggregate([each], bootstrap=None) for each in (one, among))
            assert same(whole.value, of_it.value), one.measure
            assert (whole.n, whole.reason) == (of_it.n, of_it.reason)


def test_chunks_of_labelled_documents() -> None:
    options: dict[str, Any] = {"passages_of": {f"d{i}": 1 + i % 4 for i in range(25)}, "scale": "trec"}
    grades = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 1, "d7": 1}}
    lists = {"q1": ["d1", "d1", "d5"], "q2": ["d4", "d3"]}
    names = ["RandomSuccess@2", "Success@2", "R@2", "nDCG@2", "BoR@2"]
    joined = rs.join(rs.Qrels.of(grades), rs.Run.of(lists), **options)
    together = [query_figures(name, joined) for name in names]
    size = sum(options["passages_of"].values())
    for query, relevant in (("q1", 2), ("q2", 8)):
        found = figures_of_query(names, grades[query], lists[query], **options)
        wanted = pytest.approx([of_all[query].value for of_all in together], rel=1e-13, nan_ok=True)
        assert [each.value for each in found] == wanted
        miss = (size - relevant) * (size - relevant - 1) / (size * (size - 1))
        assert found[0].value == pytest.approx(1 - miss, rel=1e-12)


def test_whether_there_is_junk_is_said_by_the_labels_that_are_given() -> None:
    assert math.isnan(evaluate_query("Harm@1", {"a": 5}, ["a"], scale="utility").value)
    levels = (grade for grade in (1, 5))
    assert evaluate_query("Harm@1", {"a": 5}, ["a"], scale="utility", levels=levels).value == 0
    assert evaluate_query("Harm@2", {"a": 5, "b": 1}, ["b"], scale="utility").value == 0.5
    assert evaluate_query("Harm@2", {"a": 5, "b": 1}, ["b", "x"], scale="utility", unjudged="worst").value == 1


def test_a_query_without_labels_or_a_list() -> None:
    of_none = figures_of_query(["Success@1", "BoR@1"], {"a": 1}, [], corpus_size=9)
    assert [each.value for each in of_none] == pytest.approx([0.0, math.nan], nan_ok=True)
    assert of_none[1].reason.endswith("has no figure for one query: aggregate the figures of all queries")
    unlabelled = figures_of_query(["Success@1", "BoR@1"], None, ["a"], corpus_size=9)
    assert {(each.reason, each.outcome) for each in unlabelled} == {("nobody judged this query", None)}


@pytest.mark.parametrize(
    ("grades", "passages", "options", "message"),
    [
        ({"a": 9}, ["a"], {"scale": "utility"}, "off the utility scale"),
        (["a"], ["a"], {}, "the grades of a query must be"),
        ({"a": 1}, "a", {}, "must be a list of ids in rank order"),
        ({"a": 1}, ["a"], {"pool": {"a"}}, "a set has no order"),
        ({"a": 1}, ["a"], {"corpus_size": 2}, "depth K = 3 is more than the corpus size N = 2"),
        ({"a": 1}, ["a"], {"corpus_size": 1, "passages_of": {"a": 2}}, "corpus_size is 1, less than the 2"),
        ({"a": 1}, ["a"], {"unjugded": "worst"}, "there is no option .unjugded.; did you mean .unjudged."),
        ({"a": 0}, ["a"], {"corpus_size": 9, "no_relevant": "error"}, 'the policy is no_relevant="error"'),
    ],
)
def test_what_the_join_refuses_is_refused(grades, passages, options, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        evaluate_query("RandomSuccess@3", grades, passages, **options)


def test_the_smallest_corpus_of_some_queries_is_named_if_it_is_smaller_than_k() -> None:
    qrels, run = rs.Qrels.of({"q1": {"a": 1}, "q2": {"a": 1}}), rs.Run.of({"q1": ["a"], "q2": ["a"]})
    joined = rs.join(qrels, run, corpus_size={"q1": 2, "q2": 9}, scale="trec")
    with pytest.raises(rs.InputError, match="depth K = 3 is more than the corpus size N = 2"):
        query_figures("Success@3", joined)


def test_ids_of_other_types_and_negative_grades() -> None:
    assert evaluate_query("Success@1", {"1": 1}, [1]).value == 1  # type: ignore[list-item]
    assert evaluate_query("P@1", {"a": -1, "b": 1}, ["a"]).value == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate_query("P@1", {"a": 1}, ["b"]).value == 0
