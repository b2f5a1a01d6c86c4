"""The decision: its figures beside brute force, its sentences beside its figures, and how often it is wrong."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.advice.costs import read_costs
from rag_selectivity.advice.losses import losses_of
from rag_selectivity.advice.systems import all_pairs, letters, pair_of
from rag_selectivity.evaluation.evaluate import measure_all, report_on
from rag_selectivity.evaluation.joining import join_runs
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.utility import RANWG
from rag_selectivity.render.blocks import text_of
from rag_selectivity.render.cost_blocks import cost_blocks
from rag_selectivity.results.decision import QUESTIONS
from rag_selectivity.wording import number
from tests.test_calibrated_figures import drawn, evaluated, world
from tests.test_controls import judged_by
from tests.test_controls import report as controlled

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]


def synthetic(queries: int = 60, seed: int = 5, **skills: float):
    """Labels of 40 passages a query, and runs of 15 that put good passages first, the better the higher their skill."""
    random = np.random.default_rng(seed)
    grades = {
        f"q{i}": {f"d{i}-{j}": int(random.choice([1, 1, 1, 1, 2, 3, 4, 5])) for j in range(40)} for i in range(queries)
    }
    runs = {
        name: {
            query: sorted(
                [passage for passage in row if random.random() < 0.75],
                key=lambda passage, row=row, skill=skill: -(skill * row[passage] + random.normal()),
            )[:15]
            for query, row in grades.items()
        }
        for name, skill in skills.items()
    }
    return grades, runs


@pytest.fixture(scope="module")
def report() -> rs.Report:
    grades, runs = synthetic(weak=0.1, good=0.5, better=0.55)
    return rs.evaluate(grades, runs, corpus_size=5000, scale="utility", depths=[5, 10])


# -- which system ---------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.data())
def test_two_runs_share_a_letter_if_and_only_if_they_cannot_be_told_apart(count, data) -> None:
    runs = [f"run{i}" for i in range(count)]
    pairs = list(combinations(runs, 2))
    apart = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    given_letters = letters(runs, apart)
    for one, other in pairs:
        shared = set(given_letters[one]) & set(given_letters[other])
        assert bool(shared) == ((one, other) not in apart)
    assert given_letters[runs[0]].startswith("a")


def test_the_pairs_are_those_of_comparisons_with_each_run_as_baseline(report) -> None:
    """p-values of single comparisons, with Holm's correction by hand over all pairs."""
    grades, runs = synthetic(weak=0.1, good=0.5, better=0.55)
    decision = decide(report, k=5)
    plain = {}
    for pair in decision.pairs:
        row = rs.compare(
            grades,
            {pair.other: runs[pair.other], pair.run: runs[pair.run]},
            corpus_size=5000,
            scale="utility",
            measures=["RA-nWG@5"],
        )[pair.run, "RA-nWG@5"]
        plain[pair.run, pair.other] = row
        assert (pair.difference, pair.low, pair.high) == (row.difference, row.low, row.high)
    order = sorted(plain, key=lambda key: plain[key].p)
    highest = 0.0
    for place, key in enumerate(order):
        highest = min(1.0, max(highest, (len(order) - place) * plain[key].p))
        pair = next(pair for pair in decision.pairs if (pair.run, pair.other) == key)
        assert pair.p_adjusted == pytest.approx(highest, abs=1e-12)
        assert pair.apart == (highest <= 0.05)
    by_value = sorted(runs, key=lambda name: -report[name, "RA-nWG@5"].value)
    assert [line.run for line in decision.lines] == by_value


def test_the_sentence_names_who_is_best_and_who_cannot_be_told_apart(report) -> None:
    decision = decide(report, k=5)
    best = decision.best
    tied = [pair.other for pair in decision.pairs if pair.run == best and not pair.apart]
    text = decision["system"].text
    assert text.startswith(f"{best} leads (RA-nWG@5 {number(report[best, 'RA-nWG@5'].value)})")
    assert all(name in text for name in tied)
    assert tied == ["good"]
    assert "weak" not in text
    assert decision["system"].more.startswith("weak is shown to be lower.")
    detectable = next(pair.detectable for pair in decision.pairs if (pair.run, pair.other) == (best, "good"))
    assert text.endswith(f"on 60 queries; a run {number(detectable)} lower likely could.")
    assert f"A true difference of {number(detectable)} would be shown with a power of 80%" in decision["system"].more
    assert not decision["system"].shown


def test_marks_in_the_table_are_those_of_the_comparison_with_the_baseline(report) -> None:
    grades, runs = synthetic(weak=0.1, good=0.5, better=0.55)
    decision = decide(report, k=5)
    compared = ["Success@5", "PROC@5", "%PROC@5", "Harm@5", "BoR@5"]
    beside = rs.compare(grades, runs, corpus_size=5000, scale="utility", measures=compared)
    for line in decision.lines:
        if line.run == "weak":
            assert all(figure.verdict is None for figure in line.figures.values())
            continue
        for name in ("Success", "PROC", "%PROC", "Harm", "BoR"):
            assert line.figures[name].verdict == beside[line.run, f"{name}@5"].verdict
        pair = next(pair for pair in decision.pairs if {pair.run, pair.other} == {line.run, "weak"})
        assert line.figures["RA-nWG"].verdict == pair.verdict
    assert line.figures["BoR"].ceiling == report[line.run, "BoR_max@5"].value


def test_arms_over_different_queries_are_tested_unpaired() -> None:
    grades, runs = synthetic(weak=0.1, better=3.0)
    arms = {
        "weak": {q: row for i, (q, row) in enumerate(runs["weak"].items()) if i % 2},
        "better": {q: row for i, (q, row) in enumerate(runs["better"].items()) if not i % 2},
    }
    comparison = rs.compare(grades, arms, scale="utility", measures=["RA-nWG"], depths=[5], paired=False)
    decision = decide(comparison.report, k=5, paired=False)
    row = comparison["better", "RA-nWG@5"]
    assert (decision.pairs[0].difference, decision.pairs[0].p_adjusted) == (row.difference, row.p)
    assert decision["system"].text == (
        f"better (RA-nWG@5 {number(row.value)}) is shown to be better than weak on separate queries."
    )
    assert "no two runs are over the same queries" in decide(comparison.report, k=5)["system"].text


def test_a_run_over_other_queries_is_not_called_alike() -> None:
    """Without a test it is neither better, nor worse, nor "cannot be told apart"."""
    grades, runs = synthetic(weak=0.1, better=3.0)
    half = {query: row for i, (query, row) in enumerate(runs["weak"].items()) if i % 2}
    arms = {**runs, "elsewhere": half}
    comparison = rs.compare(grades, arms, scale="utility", measures=["RA-nWG"], depths=[5], paired=False)
    decision = decide(comparison.report, k=5)
    assert decision["system"].text.endswith("better than weak on 60 queries; elsewhere was not tested.")
    assert not decision["system"].shown


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "measure", "queries"), [("trec", Success(at=3), 12), ("utility", RANWG(at=3), 25)])
def test_among_equal_runs_two_are_told_apart_no_more_often_than_the_level(scale, measure, queries) -> None:
    """Four runs without any skill: a pair is told apart in at most 5 % of the worlds, up to chance (99.9 %)."""
    wrong, worlds = 0, 40
    for seed in range(worlds):
        random = np.random.default_rng(seed)
        grades = {
            f"q{i}": {f"d{j}": int(g) for j, g in enumerate(random.choice([1, 1, 3, 5], 20))} for i in range(queries)
        }
        if scale == "trec":
            grades = {q: {d: int(g == 5) for d, g in row.items()} for q, row in grades.items()}
        runs = {
            name: {q: [f"d{j}" for j in random.permutation(20)[:10]] for q in grades} for name in ("a", "b", "c", "d")
        }
        judged = join_runs(grades, runs, scale=scale).judged
        measured = measure_all(judged, [measure], [])
        bootstrap = rs.Bootstrap(resamples=20, seed=seed)
        report = report_on(measured, bootstrap)
        rows = all_pairs(list(runs), measured.figures, report, bootstrap, paired=True)
        wrong += any(pair_of(row).apart for row in rows)
    assert wrong <= 7, wrong  # P[Binomial(40, .05) > 7] < .001


# -- which K --------------------------------------------------------------------------------------------------


def test_without_a_k_it_is_the_one_that_the_sweep_advises_for_the_best_run(report) -> None:
    grades, runs = synthetic(weak=0.1, good=0.5, better=0.55)
    decision = decide(report)
    swept = rs.sweep(grades, runs, corpus_size=5000, scale="utility")
    at_budget = {name: next(row for row in swept[name].rows if row["K"] == 15)["RA-nWG"] for name in runs}
    best = max(at_budget, key=at_budget.__getitem__)
    advice = swept[best].recommendation
    assert (decision.K, decision.K_from) == (advice.K, "advised")
    assert decision["K"].shown == advice.shown
    against = f"the least K at which {best} loses at most 0.02 of RA-nWG against 15: {number(advice.loss)} ("
    assert against in decision["K"].text
    assert decision["K"].more.startswith(advice.reason)
    assert {str(figure.measure).split("@")[1] for line in decision.lines for figure in line.figures.values()} == {
        str(decision.K)
    }


@pytest.mark.parametrize("k", [5, 15])
def test_a_given_k_is_held_against_the_rule(report, k) -> None:
    decision = decide(report, k=k)
    grades, runs = synthetic(weak=0.1, good=0.5, better=0.55)
    swept = rs.sweep(grades, {decision.best: runs[decision.best]}, corpus_size=5000, scale="utility", max_k=max(20, k))
    advice = swept[decision.best].recommendation
    figure = {row["K"]: row["RA-nWG"] for row in swept[decision.best].rows}
    assert (decision.K, decision.K_from) == (k, "given")
    text = decision["K"].text
    if k < advice.K:
        assert text.startswith(
            f"{k} as given: {decision.best} loses {number(figure[15] - figure[k])} of RA-nWG against K = 15; "
            f"K = {advice.K} is the least that loses at most 0.02"
        )
        assert {action.code for action in decision.actions} >= {"raise"}
        raised = next(action for action in decision.actions if action.code == "raise")
        assert raised.gain == pytest.approx(figure[advice.K] - figure[k], abs=1e-12)
    else:
        loses = f"{decision.best} loses {number(advice.loss)} of RA-nWG at K = {advice.K}"
        assert text.startswith(f"{k} as given, but {loses}")
        cut = next(action for action in decision.actions if action.code == "cut")
        assert cut.saves == pytest.approx(1 - advice.K / k)


def test_a_k_at_which_chance_succeeds_says_so() -> None:
    grades = {f"q{i}": {f"d{j}": 1 for j in range(9)} for i in range(30)}
    run = {q: [*(f"d{j}" for j in range(9)), *(f"x{j}" for j in range(3))] for q in grades}
    decision = decide(rs.evaluate(grades, run, corpus_size=20, scale="trec"), k=10)
    assert "a random draw succeeds in more than 99.99% of the queries (collapse)" in decision["K"].text


# -- where the loss is ----------------------------------------------------------------------------------------


def test_losses_by_hand() -> None:
    """Two relevant passages each; what pool and list hold decides who lost it."""
    grades = {"kept": {"a": 1}, "unselected": {"b": 1}, "unretrieved": {"c": 1}, "none": {"d": 0}}
    lists = {"kept": ["a", "x"], "unselected": ["x", "y"], "unretrieved": ["x", "y"], "none": ["d", "x"]}
    pools = {"kept": ["a", "x", "y"], "unselected": ["x", "y", "b"], "unretrieved": ["x", "y", "z"], "none": ["d", "x"]}
    joined = rs.evaluate(grades, {"r": lists}, pool=pools, scale="trec", depths=[2]).runs["r"].judged
    found = losses_of(joined, Success(at=2), rs.Bootstrap())
    assert (found.queries, found.split) == (3, 3)
    assert (found.pool, found.selected) == (pytest.approx(2 / 3), pytest.approx(1 / 2))
    # The selection loses one of three; a perfect pool gains 1/2 (the share selected) in one of three.
    assert found.rerank.value == pytest.approx(1 / 3)
    assert found.widen.value == pytest.approx(1 / 6)
    assert (found.by_selection, found.by_retriever, found.more) == (1, 1, "")


def test_losses_are_those_of_proc_and_percent_proc() -> None:
    grades, runs = synthetic(weak=0.1, good=0.5, better=0.55)
    report = rs.evaluate(grades, runs, scale="utility", measures=["RA-nWG", "PROC", "%PROC"], depths=[5])
    decision = decide(report, k=5)
    best = decision.best
    assert f"{best}'s pool holds {number(report[best, 'PROC@5'].value)} of the evidence" in decision["loss"].text
    assert f"{number(report[best, '%PROC@5'].value)} of that is selected" in decision["loss"].text
    per_query = report.runs[best].per_query
    gain = np.nanmean(per_query["PROC@5"] - per_query["RA-nWG@5"])
    rerank = next(action for action in decision.actions if action.code == "rerank")
    assert rerank.gain == pytest.approx(gain, abs=1e-12)
    assert rerank.low < gain < rerank.high
    widen = next((action for action in decision.actions if action.code == "widen"), None)
    perfect = np.nanmean(per_query["%PROC@5"] * (1 - per_query["PROC@5"]))
    assert (widen is None) == (perfect < 0.005)
    if widen is not None:
        assert widen.gain == pytest.approx(perfect, abs=1e-12)
    counts = report.diagnosis(best, 5).counts
    assert f"it limits {counts['selection-limited']} of 60 queries" in decision["loss"].text


def test_what_another_pool_adds_by_brute_force() -> None:
    """Each run finds its own half of the evidence; the first five of the other bring all of it."""
    grades = {f"q{i}": {"a": 5, "b": 5, "j": 1} for i in range(20)}
    left = {q: ["a", *[f"x{i}" for i in range(9)]] for q in grades}
    right = {q: ["y0", "y1", "y2", "b", *[f"z{i}" for i in range(6)]] for q in grades}
    decision = decide(rs.evaluate(grades, {"left": left, "right": right}, scale="utility"), k=2)
    assert decision.best == "left"
    merge = next(action for action in decision.actions if action.code == "merge")
    # left holds half of the evidence and selects all of it: with right's pool it would hold the other half too.
    assert merge.gain == pytest.approx(0.5)
    assert merge.text == "add the first 5 of right to the pool: at most +0.500"


# -- what to believe ------------------------------------------------------------------------------------------


def test_calibrated_figures_are_those_of_the_report_and_have_no_union_of_pools() -> None:
    human, judge, runs = world(judge_error=0.3)
    report = evaluated(judge, runs, human=drawn(human, judge, runs, 200), measures=["RA-nWG@10", "PROC@10"])
    decision = decide(report, k=10)
    assert decision["trust"].shown
    assert decision["trust"].text.startswith("Labels by people calibrate the figures")
    for line in decision.lines:
        assert line.figures["RA-nWG"].estimate.value == report[line.run, "RA-nWG@10"].value
        assert line.figures["RA-nWG"].estimate.basis == "calibrated"
    assert "merge" not in {action.code for action in decision.actions}
    best = decision.best
    assert number(report[best, "PROC@10"].value) in decision["loss"].text
    row = rs.compare(
        judge, runs, human=drawn(human, judge, runs, 200), scale="utility", measures=["RA-nWG@10"], corpus_size=1000
    ).rows[0]
    assert abs(decision.pairs[0].difference) == pytest.approx(abs(row.difference), abs=0.02)


def test_a_judge_that_grades_without_looking_is_not_believed() -> None:
    random = np.random.default_rng(3)
    grades = {f"q{i}": {f"d{i}-{j}": int(random.integers(1, 6)) for j in range(20)} for i in range(40)}
    lists = {q: random.permutation(list(row))[:12].tolist() for q, row in grades.items()}
    decision = decide(rs.evaluate(grades, lists, scale="utility"), k=5)
    assert decision["trust"].text.startswith("These labels cannot tell a good retriever from a bad one. ")
    assert not any(answer.shown for answer in decision.answers)
    assert decision["next"].text == "Let people label a sample of the pairs again, to check these labels."
    assert not decision["loss"].text.startswith("The ")


def test_labels_that_show_nothing_choose_no_run_and_no_k() -> None:
    """Controls show that this judge accepts anything; by its labels one run is far better, and one K is enough."""
    labels, runs, controls = judged_by(0.9, number=5)
    runs["other"] = {query: [*(f"x{query}{i}" for i in range(30))] for query in runs["own"]}
    decision = decide(controlled((labels, runs, controls), ids="exact"), k=10)
    assert next(iter(decision.pairs)).apart
    assert decision["system"].text.startswith(
        "These labels show nothing about the runs; own has the highest Success@10"
    )
    assert "(not shown by these labels)" in decision["K"].text
    assert not any(answer.shown for answer in decision.answers)


def test_what_a_perfect_run_would_give_too_is_not_called_worthless() -> None:
    """A run that shows all relevant passages and nothing else has the figures of shuffled labels, which are alike."""
    qrels = {f"q{i}": ["d"] for i in range(40)}
    runs = {"old": {q: ["x", "d"] for q in qrels}, "new": {q: ["d", "x"] for q in qrels}}
    decision = decide(rs.evaluate(qrels, runs, corpus_size=100), k=1)
    assert decision["system"].text.startswith(
        "These labels show nothing about the runs, unless one is perfect; new has"
    )
    assert decision["trust"].text.startswith(
        "These labels cannot tell a good retriever from a bad one, unless this is a perfect run. "
    )


def test_random_controls_check_the_labels() -> None:
    decision = decide(controlled(judged_by(0.02, number=5)), k=10)
    # These labels name no judge.
    assert decision["trust"].text.startswith("Retrieval beats chance by at least 1.683 bits (3.2 times). ")
    assert decision["trust"].shown


def test_where_nothing_is_lost_no_step_is_blamed() -> None:
    grades = {f"q{i}": {"a": 1} for i in range(20)}
    decision = decide(rs.evaluate(grades, {q: ["a", "x", "y"] for q in grades}, scale="trec"), k=1)
    assert decision["loss"].text.startswith("Nothing is lost in these 20 queries: run's pool holds a success in 100")


# -- costs ----------------------------------------------------------------------------------------------------


def test_costs_of_the_decision_are_those_of_its_k() -> None:
    """Measured costs are those of production's K: with an advised K they are left out, and a note says so."""
    grades, runs = synthetic(weak=0.1, better=0.55)
    report = rs.evaluate(grades, runs, scale="utility", depths=[5])
    texts = {passage: "x" * 40 for row in grades.values() for passage in row}
    measured = [{"run": name, "query_id": query, "tokens": 70, "milliseconds": 5} for name in runs for query in grades]
    judged = {name: part.judged for name, part in report.runs.items()}
    costs = read_costs(judged, runs, costs=measured, corpus=texts)
    given_k, advised = decide(report, k=5, costs=costs), decide(report, costs=costs)
    assert {line.costs["tokens"].value for line in given_k.lines} == {70}
    assert {line.costs["milliseconds"].value for line in given_k.lines} == {5}
    assert {point.cost for point in given_k.cost_points["tokens"] if point.K == 3} == {30}
    assert given_k.notes[-1].startswith("at K = 5 measured tokens take the place of the estimates")
    assert {line.costs["tokens"].value for line in advised.lines} == {10 * advised.K}
    assert all("milliseconds" not in line.costs for line in advised.lines)
    assert advised.notes[-1].startswith("measured costs are left out: they are those of the K in production")
    measured = [{"run": name, "query_id": query, "milliseconds": 5} for name in runs for query in grades]
    without = decide(report, costs=read_costs(judged, runs, costs=measured))
    assert without.trade_offs == {}
    assert "give that K with k (--k)" in " ".join(text_of(cost_blocks(without)).split())


# -- every view -----------------------------------------------------------------------------------------------


def test_without_intervals_nothing_is_tested() -> None:
    grades, runs = synthetic(weak=0.2, better=1.1)
    decision = decide(rs.evaluate(grades, runs, scale="utility", bootstrap=None), k=5)
    assert "no difference was tested: intervals and tests are off" in decision["system"].text
    assert decision.pairs == ()
    assert not any(answer.shown for answer in decision.answers)


def test_no_success_is_no_best_run() -> None:
    grades = {f"q{i}": {"a": 1} for i in range(12)}
    runs = {name: {q: ["x", "y", "a"] for q in grades} for name in ("one", "two")}
    decision = decide(rs.evaluate(grades, runs, scale="trec"), k=2)
    assert decision["system"].text == "No run is best: Success@2 is 0.000 for all of them."


def test_one_query_has_an_answer_to_everything() -> None:
    decision = decide(rs.evaluate({"q": {"d": 1}}, {"q": ["x", "d"]}, corpus_size=100))
    assert [answer.code for answer in decision.answers] == list(QUESTIONS)
    assert decision.K_from == "assumed"
    assert not any(math.isnan(point.gain) and point.code != "candidates" for point in decision.actions)
