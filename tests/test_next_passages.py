"""What the next passages add: against brute force in fractions, and the figures of Cranfield."""

from __future__ import annotations

from fractions import Fraction
from math import inf, isnan, log2

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.joined import join_runs
from rag_selectivity.statistics.next_passages import next_passages
from tests.reference import random_success

pytestmark = pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")


def brute(qrels, run, sizes, a: int, b: int, *, rel: int, m: int, returned: bool):
    """(queries, successes, expected successes, relevant found, expected) of ranks a+1 to b, by definition."""
    queries = successes = found = 0
    by_chance = expected = Fraction(0)
    for query, judged in qrels.items():
        relevant = {passage for passage, grade in judged.items() if grade >= rel}
        ranked = list(dict.fromkeys(run.get(query, [])))
        reach = min(sizes[query], len(ranked)) if returned else sizes[query]
        taken, end = min(a, reach), min(b, reach)
        before, after = (len(relevant & set(ranked[:k])) for k in (a, b))
        left, still = sizes[query] - taken, len(relevant) - before
        if relevant:
            found += after - before
            expected += Fraction((end - taken) * still, left) if left else 0
        if len(relevant) >= m and before < m:
            queries += 1
            successes += after >= m
            by_chance += random_success(left, still, end - taken, m - before)
    return queries, successes, by_chance, found, expected


@pytest.mark.parametrize("short_lists", ["requested", "returned"])
@pytest.mark.parametrize(("rel", "m"), [(1, 1), (2, 1), (1, 2), (2, 3)])
def test_against_fractions(short_lists, rel, m) -> None:
    rng = np.random.default_rng(3 * m + rel)
    qrels, run, sizes = {}, {}, {}
    for i in range(25):
        query, sizes[f"q{i}"] = f"q{i}", int(rng.integers(30, 60))
        judged = rng.choice(30, size=rng.integers(0, 9), replace=False)
        qrels[query] = {f"d{j}": int(rng.integers(0, 4)) for j in judged} or {"d0": 0}
        if i:
            ranked = [f"d{j}" for j in rng.permutation(30)[: rng.integers(1, 24)]]
            run[query] = [*ranked[:4], ranked[0], *ranked[4:]] if i % 5 == 0 else ranked
    policy = rs.Policy(short_lists=short_lists, duplicates="drop")
    judged_run = join_runs(qrels, {"r": run}, corpus_size=sizes, scale="trec", policy=policy).judged["r"]
    found = next_passages(judged_run, rel=rel, m=m, bootstrap=rs.Bootstrap(resamples=200))
    reach = max(len(set(ranked)) for ranked in run.values())
    assert [each.last for each in found] == [*(b for b in (1, 2, 5, 10, 20) if b < reach), reach]
    assert [each.first for each in found] == [1, *(each.last + 1 for each in found[:-1])]
    for each in found:
        options = {"rel": rel, "m": m, "returned": short_lists == "returned"}
        queries, successes, chance, relevant, expected = brute(qrels, run, sizes, each.first - 1, each.last, **options)
        assert (each.queries, each.successes, each.relevant_found) == (queries, successes, relevant)
        assert each.random_successes == pytest.approx(float(chance), rel=1e-12)
        assert each.relevant_expected == pytest.approx(float(expected), rel=1e-12)
        if successes and chance:
            assert each.bits == pytest.approx(log2(successes / chance), rel=1e-9, abs=1e-9)
            assert each.low <= each.bits <= each.high
        elif chance:
            assert each.bits == -inf
        if relevant:
            assert each.relevant_bits == pytest.approx(log2(relevant / expected), rel=1e-9)
            assert each.relevant_low <= each.relevant_bits <= each.relevant_high


def test_the_first_bracket_is_bor_at_one(data) -> None:
    # Cleverdon's grades 4 and 5, the utility scale's own relevance.
    folder = data / "cranfield"
    options = {"corpus_size": 1400, "scale": "utility"}
    swept = rs.sweep(folder / "qrels.trec", folder / "runs" / "bm25.trec", **options)["bm25"]
    first, *_, last = swept.next_passages
    assert first.bits == pytest.approx(swept.rows[0]["BoR"], rel=1e-12)
    assert round(first.bits, 1) == 7.9
    assert (last.first, last.last, last.queries, last.successes, round(last.bits, 2)) == (101, 200, 8, 1, 0.05)
    assert last.low < 0 < last.high
    rows = rs.sweep(folder / "qrels.trec", folder / "runs" / "bm25.trec", rel=5, m=2, **options)["bm25"]
    assert rows.next_passages[0].successes == 0
    assert sum(each.successes for each in rows.next_passages) == pytest.approx(
        rows.rows[199]["success"] * rows.next_passages[0].queries
    )


def test_it_stands_in_every_view() -> None:
    qrels = {f"q{i}": ["d"] for i in range(12)}
    run = {query: ["d", "x", "y"] if i % 2 else ["x", "y", "d"] for i, query in enumerate(qrels)}
    swept = rs.sweep(qrels, {"r": run}, corpus_size=100)
    data = swept.to_dict()["runs"]["r"]["next_passages"]
    assert [(each["first"], each["last"], each["queries"], each["successes"]) for each in data] == [
        (1, 1, 12, 6),
        (2, 2, 6, 0),
        (3, 3, 6, 6),
    ]
    assert (data[1]["bits"], data[1]["low"]) == (None, None)  # no success: −∞, which JSON has no word for
    for text in (swept.to_text(), swept.to_markdown()):
        assert "next passages" in text
        assert "new successes" in text
        assert "6 of 12" in text
    page = rs.evaluate(qrels, {"r": run}, corpus_size=100, depths=[1, 3]).to_html()
    assert "<h4>The next passages</h4>" in page
    assert "6 of 12" in page
    assert "The next passages" not in rs.evaluate(qrels, {"r": run}, depths=[1, 3]).to_html()


def test_without_intervals_and_without_anybody_left() -> None:
    qrels = {f"q{i}": ["d"] for i in range(3)}
    found = next_passages(join_runs(qrels, {"r": {query: ["d", "x"] for query in qrels}}, corpus_size=5).judged["r"])
    assert (found[1].queries, found[1].successes) == (0, 0)
    assert isnan(found[1].bits)
    assert isnan(found[0].low)
    assert found[1].to_dict()["bits"] is None
    with pytest.raises(rs.InputError, match="needs the corpus size"):
        next_passages(join_runs(qrels, {"r": {query: ["d"] for query in qrels}}).judged["r"])
