"""Repeated passages: chance is undefined only where more than a tenth of the lists repeat one within their top K."""

import math
import random
from pathlib import Path

import pytest

import rag_selectivity as rs
from rag_selectivity.single import aggregate, evaluate_query, query_figures
from tests.wall.worlds import trec

pytestmark = pytest.mark.contract

QUERIES, LENGTH, SIZE = 40, 30, 500
OF_LISTS = ("BoR", "EF", "BoR_recall")
OF_NO_LIST = ("RandomSuccess", "BoR_max", "BoR_opt", "lambda")


def world(repeating: int, rank: int, queries: int = QUERIES):
    """Labels and lists, of which so many repeat their second passage at a rank."""
    rng = random.Random(5)
    labels = {f"q{i}": {f"p{j}": 1 for j in rng.sample(range(60), 3)} for i in range(queries)}
    lists = {query: [f"p{j}" for j in rng.sample(range(100), LENGTH)] for query in labels}
    for query in list(lists)[:repeating]:
        lists[query][rank - 1] = lists[query][1]
    return labels, lists


def bor(labels, lists, depth):
    """By its definition: the second copy of a passage is no second hit."""
    success = sum(bool(labels[q].keys() & set(ids[:depth])) for q, ids in lists.items())
    chance = sum(1 - math.comb(SIZE - 3, depth) / math.comb(SIZE, depth) for _ in lists)
    return math.log2(success / chance)


def evaluated(labels, lists, **options):
    options = {"measures": [*OF_LISTS, *OF_NO_LIST], "depths": [5, 20, 30], "bootstrap": None, **options}
    return rs.evaluate(labels, {"r": lists}, corpus_size=SIZE, **options)


def test_one_repeated_passage_costs_no_figure() -> None:
    labels, lists = world(1, 25)
    report = evaluated(labels, lists)
    for depth in (5, 20, 30):
        assert report[f"BoR@{depth}"].value == pytest.approx(bor(labels, lists, depth), rel=1e-12)
        assert report[f"BoR@{depth}"].n == QUERIES
    assert any("1 passage repeats an earlier passage" in note for note in report.runs["r"].notes)


@pytest.mark.parametrize(("repeating", "refused"), [(4, False), (5, True)])
def test_more_than_a_tenth_of_the_lists_within_their_top_k(repeating, refused) -> None:
    labels, lists = world(repeating, 20)
    lists["q0"][-1] = lists["q0"][1]  # The first repeat of a list decides.
    report = evaluated(labels, lists)
    for name in OF_LISTS:
        assert not math.isnan(report[f"{name}@5"].value)
        for depth in (20, 30):
            figure = report[f"{name}@{depth}"]
            assert math.isnan(figure.value) == refused
            assert ("5 of 40 lists repeat a passage within their top K" in (figure.reason or "")) == refused
    for name in OF_NO_LIST:
        for depth in (5, 20, 30):
            assert not math.isnan(report[f"{name}@{depth}"].value)
    notes = [note for note in report.runs["r"].notes if "no figure for" in note]
    assert len(notes) == refused
    if refused:
        assert notes[0].startswith("no figure for BoR@20, BoR@30, EF@20, EF@30, BoR_recall@20, BoR_recall@30, since 5")


@pytest.mark.parametrize("rule", ["count_once", "drop"])
def test_a_rule_that_is_given_holds(rule) -> None:
    labels, lists = world(30, 10)
    report = evaluated(labels, lists, duplicates=rule)
    ruled = lists if rule == "count_once" else {query: list(dict.fromkeys(ids)) for query, ids in lists.items()}
    for depth in (5, 20):
        assert report[f"BoR@{depth}"].value == pytest.approx(bor(labels, ruled, depth), rel=1e-12)
    with pytest.raises(rs.InputError, match="more than once"):
        evaluated(labels, lists, duplicates="error")
    assert not math.isnan(evaluated(labels, lists, passages_of={f"p{i}": 2 for i in range(100)})["BoR@20"].value)


@pytest.mark.parametrize("repeating", [4, 5])
def test_files_and_single_queries_agree(tmp_path, repeating) -> None:
    labels, lists = world(repeating, 20)
    whole = evaluated(labels, lists)
    qrels, run = trec(tmp_path / "qrels.trec", labels), trec(tmp_path / "run.trec", lists)
    rows = Path(run).read_text().splitlines(keepends=True)
    scattered = tmp_path / "scattered.trec"
    random.Random(1).shuffle(rows)
    scattered.write_text("".join(rows))
    options = {"measures": [*OF_LISTS, *OF_NO_LIST], "depths": [5, 20, 30], "corpus_size": SIZE}
    reports = [
        rs.evaluate(qrels, run, bootstrap=None, scale="trec", **options),
        rs.evaluate(qrels, scattered, bootstrap=None, scale="trec", **options),
    ]
    joined = rs.join(rs.Qrels.of(labels), rs.Run.of(lists), corpus_size=SIZE, scale="trec")
    for name in (*OF_LISTS, "RandomSuccess", "lambda"):
        for depth in options["depths"]:
            key = f"{name}@{depth}"
            together = query_figures(key, joined).values()
            alone = [evaluate_query(key, labels[q], lists[q], corpus_size=SIZE, scale="trec") for q in labels]
            figures = [report[key] for report in reports]
            figures += [aggregate(each, bootstrap=None) for each in (together, alone)]
            for figure in figures:
                assert figure.value == pytest.approx(whole[key].value, rel=1e-12, nan_ok=True)
                assert (figure.n, figure.reason) == (whole[key].n, whole[key].reason)


def test_a_monitor_counts_the_lists_that_it_saw() -> None:
    for repeating in (4, 5):
        labels, lists = world(repeating, 5)
        monitor = rs.Monitor(labels, corpus_size=SIZE, depths=[10])
        for query, ids in lists.items():
            monitor.record(rs.Retrieval(query, ids))
        report = monitor.report()
        monitor.close()
        assert math.isnan(report["BoR@10"].value) == (repeating == 5)
        assert report["BoR_max@10"].n == QUERIES


def test_comparisons_go_by_the_same_rule() -> None:
    labels, lists = world(4, 20)
    clean = world(0, 20)[1]
    for repeating, undefined in ((4, False), (5, True)):
        lists = world(repeating, 20)[1]
        row = rs.compare(labels, {"a": clean, "b": lists}, corpus_size=SIZE, measures=["BoR"], depths=[20])[
            "b", "BoR@20"
        ]
        assert math.isnan(row.difference) == undefined


def test_queries_without_a_list_are_no_lists() -> None:
    labels, lists = world(3, 5, queries=30)
    labels |= {f"more{i}": {"p1": 1} for i in range(100)}
    assert not math.isnan(evaluated(labels, lists)["BoR@20"].value)
    lists["q3"][4] = lists["q3"][1]
    assert math.isnan(evaluated(labels, lists)["BoR@20"].value)
