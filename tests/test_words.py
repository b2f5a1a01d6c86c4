"""Each sentence of the page where its condition begins to hold, and where it just does not (docs/numbers.md)."""

from __future__ import annotations

import math

import pytest

import rag_selectivity as rs
from rag_selectivity.estimates import with_caveats
from rag_selectivity.render.words import findings
from rag_selectivity.results.estimate import Estimate

pytestmark = pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")


def said(question: str, report: rs.Report, depth: int = 1) -> str:
    (answer,) = [finding.answer for finding in findings(report, "r", depth) if finding.question == question]
    return answer


def of_successes(hits: int, queries: int, corpus_size: int | None = 1000, relevant: int = 1, **options) -> rs.Report:
    """A run that succeeds in so many queries."""
    qrels = {f"q{i}": {f"d{j}": 1 for j in range(relevant)} for i in range(queries)}
    run = {query: ["d0" if i < hits else "x"] for i, query in enumerate(qrels)}
    return rs.evaluate(qrels, {"r": run}, corpus_size=corpus_size, depths=[1], ids="exact", **options)


SELECTIVITY = "What is the selectivity?"


def test_without_n_it_asks_for_n() -> None:
    assert "Give the corpus size (--corpus-size)" in said(SELECTIVITY, of_successes(3, 20, None))
    assert "Give the corpus size" not in said(SELECTIVITY, of_successes(3, 20))


def test_more_than_chance_is_doubted_exactly_where_the_interval_holds_0() -> None:
    # Chance is .1; of 40 queries 9 successes leave it out of the interval, 8 do not.
    for hits, doubted in ((9, False), (8, True)):
        report = of_successes(hits, 40, 10)
        assert (report["BoR@1"].low <= 0) == doubted
        assert ("It is not shown that this is more than a random draw reaches" in said(SELECTIVITY, report)) == doubted
        assert "luck" not in said(SELECTIVITY, report)


def test_less_than_chance_is_said_where_the_whole_interval_is_below_0() -> None:
    # Chance is .5.
    for hits, less in ((13, True), (14, False)):
        report = of_successes(hits, 40, 2)
        assert (report["BoR@1"].high < 0) == less
        assert ("This is less than a random draw reaches" in said(SELECTIVITY, report)) == less


def test_without_an_interval_nothing_is_said_of_chance() -> None:
    answer = said(SELECTIVITY, of_successes(10, 20, bootstrap=None))
    assert "There is no interval, so it is unknown how far this holds for other queries." in answer
    assert "not shown" not in answer


def test_no_success_is_counted_and_nothing_more() -> None:
    assert said(SELECTIVITY, of_successes(0, 20)).startswith("r succeeds in none of the 20 queries at K = 1.")


def test_rough_baselines_are_called_rough() -> None:
    qrels = {f"q{i}": {f"d{j}": 1 for j in range(3000 if i == 0 else 2)} for i in range(40)}
    report = rs.evaluate(qrels, {"r": {query: ["d0"] for query in qrels}}, corpus_size=100_000, depths=[1])
    assert "The random baseline depends mostly on few queries" in said(SELECTIVITY, report)
    assert "depends mostly on few queries" not in said(SELECTIVITY, of_successes(20, 40))


EVIDENCE = "Who lost the evidence?"


def of_evidence(pools: list[list[str]], picks: list[list[str]]) -> rs.Report:
    """Queries with four passages of grade 5: what the pool holds of them, and what was picked."""
    qrels = {f"q{i}": {**{f"d{j}": 5 for j in range(4)}, "j": 1} for i in range(len(pools))}
    return rs.evaluate(
        qrels,
        {"r": dict(zip(qrels, picks, strict=True))},
        pool=dict(zip(qrels, pools, strict=True)),
        scale="utility",
        measures=["RA-nWG", "PROC", "%PROC"],
        depths=[4],
    )


def test_equal_shares_of_two_queries_blame_nobody() -> None:
    # PROC .75 and %PROC .75 over two queries, each .5 and 1 the one way and the other.
    report = of_evidence(
        [["d0", "d1", "j"], ["d0", "d1", "d2", "d3"]], [["d0", "d1", "j", "x"], ["d0", "d1", "x", "y"]]
    )
    assert (report["PROC@4"].value, report["%PROC@4"].value) == (0.75, 0.75)
    assert report.diagnosis("r", 4).overall == "limited by both"
    answer = said(EVIDENCE, report, 4)
    assert "It is not shown which of the two lost more" in answer
    assert "lost more of it than" not in answer


@pytest.mark.parametrize(("queries", "shown"), [(5, False), (6, True)])
def test_the_loser_is_named_where_the_pairs_show_it(queries, shown) -> None:
    # Six differences of one sign are the fewest that a sign-flip test shows at .05.
    retriever = of_evidence([["d0", "j"]] * queries, [["d0", "j", "x", "y"]] * queries)
    selection = of_evidence([["d0", "d1", "d2", "d3"]] * queries, [["d0", "j", "x", "y"]] * queries)
    assert ("The retriever lost more of it than the selection." in said(EVIDENCE, retriever, 4)) == shown
    assert ("The selection lost more of it than the retriever." in said(EVIDENCE, selection, 4)) == shown
    for report in (retriever, selection):
        assert ("is not shown" in said(EVIDENCE, report, 4)) == (not shown)


def test_nothing_lost_and_nothing_to_split() -> None:
    healthy = of_evidence([["d0", "d1", "d2", "d3"]] * 2, [["d0", "d1", "d2", "d3"]] * 2)
    assert "Each step kept at least 80% of the evidence that it could keep." in said(EVIDENCE, healthy, 4)
    qrels = {"q": {"d0": 5, "d1": 5, "j": 1}}
    whole = rs.evaluate(
        qrels, {"r": {"q": ["d0", "j"]}}, scale="utility", measures=["RA-nWG", "PROC", "%PROC"], depths=[2]
    )
    assert "The list is the whole pool, so losses cannot be split" in said(EVIDENCE, whole, 2)


JUNK = "How much junk does the LLM read?"


def of_junk(run: dict, **options) -> rs.Report:
    qrels = {"q1": {"a": 5, "j": 1, "k": 1}, "q2": {"a": 5, "j": 2, "k": 1}}
    return rs.evaluate(qrels, {"r": run}, scale="utility", measures=["Harm"], depths=[10], **options)


def test_junk_is_counted_among_what_was_read() -> None:
    answer = said(JUNK, of_junk({"q1": ["a", "j"], "q2": ["a", "j"]}), 10)
    assert answer == (
        "Of 2.0 passages that the LLM reads on average at K = 10, 1.0 are junk. That is 10.0% of the K slots."
    )


def test_junk_of_lists_judged_in_part_is_a_range() -> None:
    one = said(JUNK, of_junk({"q1": ["a", "j", "x"], "q2": ["a", "j", "y"]}), 10)
    assert one.startswith("Of 3.0 passages that the LLM reads on average at K = 10, between 1.0 and 2.0 are junk.")
    assert "10.0% to 20.0% of the K slots" in one
    assert "Only 66.7% of the top 10 are judged." in one
    exhaustive = said(JUNK, of_junk({"q1": ["a", "j", "x"], "q2": ["a", "j", "y"]}, unjudged="worst"), 10)
    assert "2.0 are junk" in exhaustive
    assert "between" not in exhaustive


def test_junk_of_what_was_returned_is_a_share() -> None:
    answer = said(JUNK, of_junk({"q1": ["a", "j"], "q2": ["a", "j"]}, short_lists="returned"), 10)
    assert answer == "50.0% of what the LLM reads at K = 10 is junk, on average over the queries."


def test_caveats_of_different_measures_keep_their_own_words() -> None:
    qrels = {"q1": {"a": 5, "j": 1}, "q2": {"a": 5, "j": 1}}
    runs = {"one": {"q1": ["a", "x"], "q2": ["a", "y"]}, "other": {"q1": ["a", "j"], "q2": ["a", "y"]}}
    text = rs.compare(qrels, runs, scale="utility", measures=["P", "Harm"], depths=[1, 2]).to_text().replace("\n", " ")
    p, harm = text.index("P@2: other:"), text.index("Harm@2: other:")
    assert "counts the rest as not relevant" in text[p:harm]
    assert "counts the rest as harmless" in text[harm:]
    assert "one: Only 50.0%" in text[harm:]


def test_tables_of_rows_carry_the_range_and_the_caveat_codes() -> None:
    report = of_junk({"q1": ["a", "j", "x"], "q2": ["a", "j", "y"]})
    rows = {row["measure"]: row for row in report.to_rows()}
    harm = rows["Harm@10"]
    assert (harm["possible_low"], harm["possible_high"], harm["caveats"]) == (0.1, 0.2, "partly-judged")
    assert rows["Judged@10"]["caveats"] == ""
    assert rows["Judged@10"]["possible_low"] != rows["Judged@10"]["possible_low"]


def test_a_share_that_is_not_all_is_never_told_as_100_percent() -> None:
    estimates = {
        "Harm@10": Estimate(0.5, 0.4, 0.6, 100, 100),
        "Harm(unjudged=harmful)@10": Estimate(0.5004, 0.4, 0.6, 100, 100),
        "Judged@10": Estimate(0.9996, math.nan, math.nan, 100, 100),
    }
    (caveat,) = with_caveats(estimates, [rs.parse_measure("Harm@10")])["Harm@10"].caveats
    assert caveat.text.startswith("Only 99.96% of the top 10 are judged.")


def test_a_level_is_written_with_the_digits_it_has() -> None:
    bootstrap = rs.Bootstrap(resamples=200, level=0.999)
    lists = {"q1": ["d"], "q2": ["x"], "q3": ["d"]}
    report = rs.evaluate({query: ["d"] for query in lists}, {"r": lists}, depths=[1], bootstrap=bootstrap)
    assert "Success [99.9%]" in report.to_text()
