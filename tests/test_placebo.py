"""The placebo of each measure beside the mean over shuffled grades."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from rag_selectivity import join
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.measures import parse_measure
from rag_selectivity.measures.shuffled import Universe, first_relevant_at, mean_of_best
from rag_selectivity.tables.small import UnderFilter

pytestmark = pytest.mark.inside

WITH_PLACEBO = "RA-nWG PROC N-Recall4+ N-Recall5 R nDCG nDCG(gain=exp) RR AP BoR EF EF(m=2)"
WITHOUT = ("Success", "P", "Precision4+", "Harm", "T", "Judged", "ContextPrecision", "UDCG_grades")
DEPTHS = np.array([1, 2, 4])


def made(labels, lists, *, size, pool=None, left=None):
    options = {"corpus_size": size, "corpus": left and UnderFilter(left), "scale": "utility"}
    return join(Qrels.of(labels), Run.of(lists), pool=None if pool is None else Run.of(pool), **options)


def expected(name, judged, universe):
    """The first part of the placebo of a measure."""
    (first, *_) = parse_measure(name).shuffled(universe)
    return np.where(np.isnan(parse_measure(name).outcome(judged, DEPTHS).parts[-1]), np.nan, first)


def shuffled(labels, lists, passages, size, pool, left):
    """A join for each way to give the labels' grades to the passages that a filter leaves."""
    passages = [passage for passage in passages if left is None or passage in left]
    grades = [labels["q"].get(passage) for passage in passages]
    ways = set(itertools.permutations(grades))
    given = [{p: grade for p, grade in zip(passages, way, strict=True) if grade is not None} for way in ways]
    others = {passage: grade for passage, grade in labels["q"].items() if passage not in passages}
    return [made({"q": {**row, **others}}, lists, size=size, pool=pool, left=left) for row in given]


def mean_of_first_part(measure, joins):
    """The exact mean of the first part over equally likely joins."""
    return sum(parse_measure(measure).outcome(judged, DEPTHS).parts[0] for judged in joins) / len(joins)


LABELS = {"q": {"a": 5, "b": 4, "c": 1, "d": 2, "e": 4, "f": 3}}
LISTS = {"q": ["c", "x", "a", "f", "e"]}


CORPUS = ["a", "b", "e", "c", "x", "f", "y"]
FILTERED = {"q": {**LABELS["q"], "l": 5, "m": 4, "n": 3, "o": 1}}
POSITIVES = {"q": {"a": 5, "b": 4, "e": 4}}
#: Labels, a pool, N, the corpus in which the positives are placed, where it is not among the labels, and what a filter
#: leaves.
WORLDS = {
    "list": (LABELS, None, 50, None),
    "pool": (LABELS, {"q": ["b", "c", "x", "a", "f", "e"]}, 50, None),
    "pool that lacks listed ones": (LABELS, {"q": ["b", "x", "a"]}, 50, None),
    "two labels": ({"q": {"a": 5, "c": 1}}, None, 50, None),
    "three": ({"q": {"a": 4, "c": 5, "e": 3}}, None, 50, None),
    "corpus": (POSITIVES, None, len(CORPUS), CORPUS),
    "filter": (FILTERED, {"q": ["b", "c", "x", "a", "f", "e"]}, 50, None, LABELS["q"]),
    "corpus of a filter": ({"q": {**POSITIVES["q"], "l": 5, "m": 4}}, None, len(CORPUS), CORPUS, CORPUS),
}


@pytest.fixture(scope="module", params=WORLDS.values(), ids=WORLDS)
def placed(request):
    """A join, those of all permutations or placements of its grades, and whether they stay among the labels."""
    labels, pool, size, corpus, left = (*request.param, None)[:5]
    joins = shuffled(labels, LISTS, corpus or sorted(labels["q"]), size, pool, left)
    return made(labels, LISTS, size=size, pool=pool, left=left), joins, np.full(3, corpus is None)


@pytest.mark.parametrize("measure", WITH_PLACEBO.split())
def test_shuffling_gives_the_mean_over_all_permutations_or_placements(measure, placed):
    judged, joins, among_labels = placed
    placebo = expected(measure, judged, Universe(judged, DEPTHS, among_labels))
    np.testing.assert_allclose(placebo, mean_of_first_part(measure, joins), rtol=1e-10)


@pytest.mark.parametrize("measure", WITHOUT)
def test_figures_of_the_list_alone_have_no_placebo(measure):
    judged = made(LABELS, LISTS, size=50)
    assert parse_measure(measure).shuffled(Universe(judged, DEPTHS, np.ones(3, bool))) is None


def test_the_first_relevant_passage_of_a_random_order_is_exact():
    for size, relevant in ((1, 1), (4, 2), (6, 5), (9, 1), (7, 0), (5, 5)):
        exact, still_none = [], Fraction(1)
        for place in range(1, size + 1):
            share = Fraction(relevant, size - place + 1) if size - place + 1 >= relevant else Fraction(1)
            exact.append(float(still_none * min(share, 1)))
            still_none *= 1 - min(share, 1)
        place = np.arange(1, size + 1)
        same = np.full(size, size), np.full(size, relevant)
        np.testing.assert_allclose(first_relevant_at(*same[::-1], place), exact, atol=1e-12)


def test_the_mean_of_the_best_is_exact():
    for n, m, d, k in itertools.product(range(1, 7), range(7), range(7), range(1, 4)):
        if m > n or d > n:
            continue
        draws = list(itertools.combinations(range(n), d))
        exact = Fraction(sum(min(k, sum(i < m for i in draw)) for draw in draws), len(draws))
        value = mean_of_best(*(np.array([x]) for x in (n, m, d, k)))
        assert value[0] == pytest.approx(float(exact), abs=1e-12)
