"""With a corpus given, R counts only passages that the corpus has."""

import math
import random
import warnings
from itertools import combinations

import pytest

import rag_selectivity as rs
from tests.wall.worlds import trec

pytestmark = pytest.mark.contract


def evaluated(labels, runs, corpus, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rs.SelectivityWarning)
        return rs.evaluate(labels, runs, corpus=corpus, bootstrap=None, **options)


def test_a_label_outside_the_corpus_is_no_chance_of_a_random_draw() -> None:
    with pytest.warns(rs.SelectivityWarning, match="1 of 2 judged passages are not among those that can be retrieved"):
        report = rs.evaluate(
            {"t2": {"c2": 1, "gone9": 1}},
            {"r": {"t2": ["t2", "c2"]}},
            measures=["BoR", "R", "lambda"],
            depths=[2],
            bootstrap=None,
            corpus=["t1", "t2", "c1", "c2"],
        )
    assert report["BoR@2"].value == 1.0
    assert report["lambda@2"].value == 0.5
    assert report["R@2"].value == 1.0
    assert sum("outside-corpus" in note for note in report.runs["r"].notes) == 1


def test_many_labels_outside_the_corpus_do_not_blame_its_size() -> None:
    labels = {"t2": {"c2": 1, **{f"gone{i}": 1 for i in range(5)}}}
    report = evaluated(labels, {"r": {"t2": ["t2", "c2"]}}, ["t1", "t2", "c1", "c2"], measures=["BoR"], depths=[2])
    assert report["BoR@2"].value == 1.0


def test_a_corpus_that_is_not_the_one_that_was_searched_is_refused_or_told() -> None:
    lists = {f"q{i}": [f"d{i}", f"e{i}"] for i in range(9)}
    labels, found = {query: row[:1] for query, row in lists.items()}, [row[0] for row in lists.values()]
    with pytest.raises(rs.InputError, match="give all of corpus"):
        rs.evaluate(labels, {"run": lists}, corpus=found)
    with pytest.warns(rs.SelectivityWarning):
        report = rs.evaluate(labels, {"run": lists}, corpus=[*found, *map(str, range(20))])
    assert report.trust.verdict.startswith("9 of 18 passages of run that were looked at are not in the corpus ('e0', ")


def worlds():
    rng = random.Random(44)
    for _ in range(12):
        corpus = [f"p{i}" for i in range(rng.randint(4, 7))]
        names = [*corpus, "gone1", "gone2", "gone3"]
        labels = {
            f"q{q}": {name: rng.randint(0, 1) for name in rng.sample(names, rng.randint(2, len(names)))}
            for q in range(5)
        }
        labels["q0"][corpus[0]] = 1
        lists = {query: rng.sample(corpus, 3) for query in labels}
        yield corpus, labels, lists, rng.randint(1, 3)


@pytest.mark.parametrize("m", [1, 2])
def test_every_draw_of_the_corpus_counted_one_by_one(tmp_path, m) -> None:
    for corpus, labels, lists, depth in worlds():
        successes, chances = [], []
        for query, grades in labels.items():
            relevant = {name for name in corpus if grades.get(name)}
            if len(relevant) < m:
                continue
            draws = list(combinations(corpus, depth))
            chances.append(sum(len(relevant & set(draw)) >= m for draw in draws) / len(draws))
            successes.append(len(relevant & set(lists[query][:depth])) >= m)
        options = {"measures": [f"BoR(m={m})", f"Success(m={m})", f"RandomSuccess(m={m})"], "depths": [depth]}
        qrels, run = trec(tmp_path / "qrels.trec", labels), trec(tmp_path / "run.trec", lists)
        of_dicts = evaluated(labels, {"r": lists}, corpus, scale="trec", **options)
        of_files = evaluated(qrels, {"r": run}, corpus, scale="trec", **options)
        for report in (of_dicts, of_files):
            figures = [report[f"{each}@{depth}"] for each in options["measures"]]
            assert [each.n for each in figures] == [len(chances)] * 3
            if not chances:
                continue
            assert figures[1].value == pytest.approx(sum(successes) / len(successes), rel=1e-12)
            assert figures[2].value == pytest.approx(sum(chances) / len(chances), rel=1e-12, abs=1e-300)
            if any(successes):
                assert figures[0].value == pytest.approx(math.log2(sum(successes) / sum(chances)), rel=1e-12, abs=1e-12)


def test_chunks_count_by_the_documents_that_the_corpus_has() -> None:
    labels = {"q": {"d1": 1, "gone": 1}}
    counts = {"d1": 2, "d2": 3, "gone": 4}
    corpus = ["d1", "d2"]
    # N = 9 as passages_of counts it; two of them are passages of d1, the only relevant document of the corpus.
    report = evaluated(
        labels, {"r": {"q": ["d1", "d2"]}}, corpus, passages_of=counts, measures=["BoR", "lambda"], depths=[2]
    )
    assert report["BoR@2"].value == pytest.approx(-math.log2(1 - (7 * 6) / (9 * 8)), rel=1e-12)
    assert report["lambda@2"].value == pytest.approx(2 * 2 / 9, rel=1e-12)


def test_all_commands_that_join_take_the_same_labels() -> None:
    labels, corpus = {"q": {"a": 1, "gone": 1}}, ["a", "b", "c", "d"]
    runs = {"x": {"q": ["a", "b"]}, "y": {"q": ["b", "a"]}}
    with pytest.warns(rs.SelectivityWarning, match="not among those that can be retrieved"):
        comparison = rs.compare(labels, runs, corpus=corpus, measures=["BoR"], depths=[2])
    assert comparison.report["x", "BoR@2"].value == 1.0
    groups = {"a": "g", "b": "h"}
    report = evaluated(labels, {"x": runs["x"]}, corpus, groups=groups, measures=["BoR", "Redundancy"], depths=[2])
    assert report["x", "BoR@2"].value == 1.0
