"""What `validate` says beside its correlations: how measures fail in the sets at hand, and scores without passages."""

import math

import pytest

import rag_selectivity as rs

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")]

QUERIES = [f"q{i}" for i in range(9)]
RUN = {query: list("abcdefghijkl") for query in QUERIES}


def notes(measure: str, qrels: dict, k: int, **options) -> list[str]:
    """The notes about a measure at K, beside answers that follow nothing."""
    report = rs.evaluate(qrels, {"r": RUN}, measures=[measure], depths=[k], bootstrap=None, **options)
    scores = [{"query_id": query, "k": k, "score": i % 3} for i, query in enumerate(QUERIES)]
    found = rs.validate(report, scores, bootstrap=rs.Bootstrap(20))
    return [note.removeprefix(f"{measure}@{k}: ") for note in found.notes if note.startswith(f"{measure}@{k}: ")]


def test_t_fails_where_k_is_far_above_the_relevant_passages() -> None:
    two = {query: {"a": 1, "z": 1, "b": 0} for query in QUERIES}
    assert notes("T", two, 6) == [
        "K is 3.0 times N_p: most of the K passages cannot be relevant, and T counts them against a run"
    ]
    assert notes("T", two, 5) == []


def test_fe_fails_where_the_pool_is_poor() -> None:
    poor = {query: {"a": 1, **{f"p{j}": 1 for j in range(8)}} for query in QUERIES}
    # The pool's first six hold one relevant passage, which is shown: 1/1 by the pool, 1/9 by the labels.
    assert notes("Fe", poor, 3) == [
        "recall is 0.89 higher by the first 6 of the pools than by the labels, so Fe is too high"
    ]
    assert notes("Fe", {query: {"a": 1, "f": 1} for query in QUERIES}, 3) == []


def test_ra_nwg_weighs_otherwise_without_a_decisive_passage() -> None:
    grades = {query: {"a": 5 if i else 4, "b": 1} for i, query in enumerate(QUERIES)}
    assert notes("RA-nWG", grades, 2, scale="utility") == [
        "11.1% of the queries have no passage of grade 5: there a grade 4 weighs as much as a 5"
    ]
    assert notes("RA-nWG", {query: {"a": 5, "b": 1} for query in QUERIES}, 2, scale="utility") == []


def test_ndcg_does_not_see_junk() -> None:
    one = {query: {"a": 1, "b": 0} for query in QUERIES}
    assert notes("nDCG", one, 4) == ["75.0% of the top 4 are not relevant, and nDCG has no penalty for them"]
    assert notes("nDCG", one, 1) == []


def test_success_says_little_where_a_random_draw_succeeds() -> None:
    two = {query: {"a": 1, "z": 1} for query in QUERIES}
    chance = 1 - math.comb(10, 6) / math.comb(12, 6)
    assert notes("Success", two, 6, corpus_size=12) == [
        f"a random draw of 6 succeeds in {chance:.1%} of the queries: in or near BoR's collapse zone"
    ]
    assert notes("Success", two, 6, corpus_size=1000) == []
    assert notes("Success", two, 6) == []


def test_scores_without_passages_are_one_a_query_whatever_the_run() -> None:
    qrels = {query: {"a": 1, "b": i % 2} for i, query in enumerate(QUERIES)}
    report = rs.evaluate(qrels, {"r": RUN, "s": RUN}, measures=["P"], depths=[2], bootstrap=None)
    rows = [
        {"query_id": query, "run": run, "k": k, "score": i % 4 / 4}
        for i, query in enumerate(QUERIES)
        for run in ("r", "s")
        for k in (0, 2)
    ]
    found = rs.validate(report, rows, bootstrap=rs.Bootstrap(20))
    assert "(9 queries)" in next(note for note in found.notes if note.startswith("partial: "))
    unlike = [*rows, {"query_id": "q0", "run": "s", "k": 0, "score": 1.0}]
    with pytest.raises(rs.InputError) as caught:
        rs.validate(report, unlike)
    assert str(caught.value) == (
        "scores, row 37: query 'q0' without passages (k = 0), the same for every run, has a score already; "
        "give one score for each answer, such as the mean of several"
    )


def test_it_is_said_over_what_there_is_no_correlation() -> None:
    qrels = {query: {"a": 1, "b": i % 2} for i, query in enumerate(QUERIES)}
    report = rs.evaluate(qrels, dict.fromkeys("rstu", RUN), measures=["P"], depths=[2], bootstrap=None)
    scores = {name: {query: i % 3 for i, query in enumerate(QUERIES)} for name in "rstu"}
    found = rs.validate(report, scores, bootstrap=rs.Bootstrap(20))
    assert [note for note in found.notes if note.startswith("no correlation")] == [
        "no correlation of P@2 over runs within queries: all figures are the same",
        "no correlation of P@2 over runs: all figures are the same",
    ]
    assert "The same over these runs: mean figure with mean score (intervals over queries; other runs" in str(found)
