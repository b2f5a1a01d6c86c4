"""Reciprocal rank fusion, against fractions."""

import random
from fractions import Fraction

import pytest

from rag_selectivity.errors import InputError
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.forms import IdForm

pytestmark = pytest.mark.inside

Ranked = dict[str, list[tuple[str, float]]]


def by_fractions(runs: list[Run], k: int) -> Ranked:
    """The definition: exact sums, ties by descending bytes of the id."""
    sums: dict[str, dict[str, Fraction]] = {}
    for run in runs:
        for query, ranked in run.ordered(Policy()).to_dict().items():
            scores = sums.setdefault(query, {})
            for passage in dict.fromkeys(ranked):
                scores[passage] = scores.get(passage, Fraction(0)) + Fraction(1, k + ranked.index(passage) + 1)
    fused: Ranked = {}
    for query, scores in sums.items():
        names = sorted(scores, key=str.encode, reverse=True)
        fused[query] = [(name, float(scores[name])) for name in sorted(names, key=lambda name: -scores[name])]
    return fused


def ranked(run: Run) -> Ranked:
    assert run.scores is not None
    cuts = run.offsets.tolist()
    return {
        query: list(zip(passages, run.scores[cuts[i] : cuts[i + 1]].tolist(), strict=True))
        for i, (query, passages) in enumerate(run.to_dict().items())
    }


def awkward_runs(seed: int) -> list[Run]:
    """Runs with copies, ties, empty lists, lacking queries, and ids of one to several words of eight bytes."""
    draw = random.Random(seed)
    ids = [draw.choice("dé€x") * draw.randint(1, 12) + str(i) for i in range(draw.choice([3, 20, 60]))]
    runs = []
    for _ in range(draw.randint(1, 4)):
        lists = {}
        for query in draw.sample(range(5), draw.randint(1, 5)):
            chosen = draw.sample(ids, draw.randint(0, len(ids)))
            lists[f"q{query}"] = chosen + chosen[:2] if draw.random() < 0.3 else chosen
        if draw.random() < 0.3:
            runs.append(Run.of({q: [(d, float(draw.randint(0, 4))) for d in ds] for q, ds in lists.items()}))
        else:
            runs.append(Run.of(lists))
    return runs


def test_sums_are_exact_and_ties_are_by_descending_id() -> None:
    for seed in range(40):
        runs, k = awkward_runs(seed), [0, 1, 60, 1000][seed % 4]
        fused = Run.fused(runs, k)
        assert ranked(fused) == by_fractions(runs, k)
        assert fused.ordered(Policy()) is fused


def test_equal_sums_of_different_ranks_are_a_tie() -> None:
    # 1/2 + 1/6 = 1/3 + 1/3, which no order of adding floats gives for sure.
    one = {"q": ["a", "b", "x1", "x2", "x3"]}
    other = {"q": ["y1", "b", "y2", "y3", "a"]}
    fused = Run.fused([Run.of(one), Run.of(other)], k=1)
    scores = dict(ranked(fused)["q"])
    assert scores["a"] == scores["b"] == float(Fraction(2, 3))
    assert [passage for passage, _ in ranked(fused)["q"]][:2] == ["b", "a"]


@pytest.mark.parametrize(
    ("runs", "k", "message"),
    [
        ([], 60, "a list of runs"),
        ({"q": ["d"]}, 60, "a list of runs"),
        (3, 60, "a list of runs"),
        ([{"q": ["d"]}], -1, "k must be a whole number"),
        ([{"q": ["d"]}], 1.5, "k must be a whole number"),
    ],
)
def test_mistakes_are_named(runs, k, message) -> None:
    with pytest.raises(InputError, match=message):
        Run.fused(runs, k)


def test_a_query_with_two_lists_is_named() -> None:
    twice = Run.of({"Q": ["a"], "q": ["b"]}).in_form(IdForm.of("casefold"))
    with pytest.raises(InputError, match="query 'q' has two lists in a run"):
        Run.fused([twice])
