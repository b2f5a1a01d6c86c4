"""The figures of several queries at once, and the join from dicts, beside the columnar join that reports rest on."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.data.passage_counts import PassageCounts
from rag_selectivity.join.direct import join_directly
from rag_selectivity.measures import REGISTRY, parse_measure
from rag_selectivity.measures.base import Whole
from rag_selectivity.single import QueryLists, evaluate_queries, evaluate_query, join_query, query_figure

pytestmark = pytest.mark.inside

PER_QUERY = [
    name if cls(at=None).takes_whole_lists else f"{name}@4"
    for name, cls in REGISTRY.items()
    if isinstance(cls.cutoff, Whole) and cls.per_query and not cls.needs_groups
] + ["Harm(max_grade=1)@4", "nDCG(gain=exp)@4", "Success(rel=5,m=2)@4", "RandomSuccess(m=2)@4", "IPrec@.5"]
LEVELS = (1, 2, 3, 4, 5)


def draw(seed: int, *, repeats: bool, pooled: bool, sized: bool, levels: tuple[int, ...] = LEVELS) -> list[QueryLists]:
    """Queries with short, empty and long lists, with many, few and no labels, and unjudged passages."""
    rng = np.random.default_rng(seed)
    queries = []
    for _ in range(12):
        ids = [f"d{i}" for i in rng.permutation(40)]
        labelled = [f"d{i}" for i in rng.permutation(40)[: rng.integers(0, 14)]]
        passages = ids[: rng.integers(0, 12)]
        if repeats and rng.random() < 0.6:
            passages = [*passages, *passages[:3], "x", "x"]
        queries.append(
            QueryLists(
                {passage: int(rng.choice(levels)) for passage in labelled},
                passages,
                ids[: rng.integers(0, 30)] if pooled else None,
                int(rng.integers(40, 4000)) if sized else None,
            )
        )
    return queries


def by_columns(measure: str, query: QueryLists, scale: str, levels: tuple[int, ...], passages_of=None):
    joined = join_query(
        query.grades,
        query.passages,
        pool=query.pool,
        corpus_size=query.corpus_size,
        passages_of=passages_of,
        scale=scale,
        levels=levels,
    )
    return query_figure(measure, joined)


@pytest.mark.parametrize("measure", PER_QUERY)
@pytest.mark.parametrize(("repeats", "pooled"), [(False, True), (True, False)])
def test_the_figures_at_once_are_those_of_the_columnar_join(measure, repeats, pooled) -> None:
    for scale, levels in (("utility", LEVELS), ("utility", (4, 5)), ("trec", (0, 1, 2))):
        if scale == "trec" and parse_measure(measure).required_scale == "utility":
            continue
        queries = draw(3, repeats=repeats, pooled=pooled, sized=True, levels=levels)
        found = evaluate_queries([measure], queries, scale=scale, levels=levels)
        for (figure,), query in zip(found, queries, strict=True):
            expected = by_columns(measure, query, scale, levels)
            assert figure.value == pytest.approx(expected.value, rel=1e-13, nan_ok=True)
            assert (figure.reason, figure.measure) == (expected.reason, expected.measure)
            alone = evaluate_query(
                measure,
                query.grades,
                query.passages,
                pool=query.pool,
                corpus_size=query.corpus_size,
                scale=scale,
                levels=levels,
            )
            assert alone.value == pytest.approx(expected.value, rel=1e-13, nan_ok=True)
            assert alone.reason == expected.reason


def test_they_are_the_rows_of_a_report() -> None:
    names = ["RA-nWG@4", "Harm@4", "Success@4", "RandomSuccess@4", "PROC@4", "%PROC@4", "nDCG@4", "RR", "N-Recall4+@4"]
    queries = draw(5, repeats=False, pooled=True, sized=True)
    keyed = {f"q{i}": query for i, query in enumerate(queries)}
    report = rs.evaluate(
        {key: query.grades for key, query in keyed.items()},
        {"r": {key: query.passages for key, query in keyed.items()}},
        pool={key: query.pool for key, query in keyed.items()},
        corpus_size={key: query.corpus_size for key, query in keyed.items()},
        scale="utility",
        measures=names,
        bootstrap=None,
        ids="exact",
    )
    rows = {row["query"]: row for row in report.per_query()}
    for (key, query), figures in zip(
        keyed.items(), evaluate_queries(names, queries, scale="utility", levels=LEVELS), strict=True
    ):
        if not query.grades:
            continue  # a query without judgments has no row
        expected = [math.nan if rows[key][name] is None else rows[key][name] for name in names]
        assert [figure.value for figure in figures] == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_chunks_of_labelled_documents() -> None:
    counts = PassageCounts.of({f"d{i}": 1 + i % 4 for i in range(40)})
    for measure in ("RandomSuccess@4", "Success@4", "R@4", "nDCG@4"):
        queries = draw(8, repeats=True, pooled=False, sized=False)
        found = evaluate_queries([measure], queries, passages_of=counts, scale="utility", levels=LEVELS)
        for (figure,), query in zip(found, queries, strict=True):
            expected = by_columns(measure, query, "utility", LEVELS, counts)
            assert (figure.value, figure.reason) == (pytest.approx(expected.value, nan_ok=True), expected.reason)


def test_one_querys_labels_tell_no_other_that_there_is_junk() -> None:
    queries = [QueryLists({"a": 5, "b": 1}, ["a"]), QueryLists({"a": 5}, ["a"])]
    for levels, values in (((), [0.0, math.nan]), ((1, 5), [0.0, 0.0])):
        found = evaluate_queries(["Harm@1"], queries, scale="utility", levels=levels)
        assert [figure.value for (figure,) in found] == pytest.approx(values, nan_ok=True)


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        (QueryLists({"a": 9}, ["a"]), {"scale": "utility"}, "off the utility scale"),
        (QueryLists({"a": 3}, ["a"]), {}, "the scale is not known"),
        (QueryLists({"a": 0.5}, ["a"]), {}, "grade 0.5 is not a whole number"),  # type: ignore[dict-item]
        (QueryLists({"a": 1}, [""]), {}, "empty"),
        (QueryLists({"a": 1, "b": 1}, ["a"], corpus_size=1), {}, "2 judged passages, more than the corpus size"),
        (QueryLists({"a": 1}, ["a"], corpus_size=2), {}, "depth K = 3 is more than the corpus size N = 2"),
        (QueryLists({"a": 1}, ["a"]), {"passages_of": {"b": 2}}, "passages_of has no number of passages"),
        (QueryLists({"a": 1}, ["a"], corpus_size=1), {"passages_of": {"a": 2}}, "corpus_size is 1, less than the 2"),
    ],
)
def test_what_the_join_refuses_is_refused(query, options, message) -> None:
    for call in (
        lambda: evaluate_queries(["RandomSuccess@3"], [query], **options),
        lambda: evaluate_query(
            "RandomSuccess@3", query.grades, query.passages, corpus_size=query.corpus_size, **options
        ),
    ):
        with pytest.raises(rs.InputError, match=message):
            call()


def test_ids_of_other_types_and_negative_grades_go_by_the_columnar_join() -> None:
    assert join_directly([QueryLists({"a": -1}, ["a"])]) is None
    assert join_directly([QueryLists({"1": 1}, [1])]) is None  # type: ignore[list-item]
    assert evaluate_query("Success@1", {"1": 1}, [1]).value == 1  # type: ignore[list-item]
    assert evaluate_query("P@1", {"a": -1, "b": 1}, ["a"]).value == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate_query("P@1", {"a": 1}, ["b"]).value == 0
