"""The decision: its figures beside brute force, its sentences beside its figures, and how often it is wrong."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.advice import decide, which_k
from rag_selectivity.cli.app import app
from rag_selectivity.measures.base import REGISTRY as MEASURES
from rag_selectivity.results.decision import QUESTIONS
from rag_selectivity.results.stored import read_report
from rag_selectivity.wording import number, percent, share
from tests.test_calibrated_figures import drawn, evaluated, world
from tests.test_controls import judged_by
from tests.test_controls import report as controlled
from tests.test_first_screen import answers_of, table_of
from tests.wall.worlds import trec

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]


def synthetic(queries: int = 60, seed: int = 5, **skills: float):
    """Labels of 40 passages a query, and runs of 15 that put good passages first, the better the higher their skill."""
    random = np.random.default_rng(seed)
    weighed = [1, 1, 1, 1, 2, 3, 4, 5]
    grades = {f"q{i}": {f"d{j}": int(random.choice(weighed)) for j in range(40)} for i in range(queries)}

    def listed(row, skill):
        some = [passage for passage in row if random.random() < 0.75]
        return sorted(some, key=lambda passage: -(skill * row[passage] + random.normal()))[:15]

    return grades, {
        name: {query: listed(row, skill) for query, row in grades.items()} for name, skill in skills.items()
    }


@pytest.fixture(scope="module")
def report() -> rs.Report:
    grades, runs = synthetic(weak=0.1, good=0.5, better=0.55)
    return rs.evaluate(grades, runs, corpus_size=5000, scale="utility", depths=[5, 10])


# -- which system ---------------------------------------------------------------------------------------------


def test_the_pairs_are_those_of_comparisons_with_each_run_as_baseline(report) -> None:
    """p-values of single comparisons, with Holm's correction by hand over all pairs."""
    grades, runs = synthetic(weak=0.1, good=0.5, better=0.55)
    decision = decide(report, k=5)
    plain = {}
    for pair in decision.pairs:
        both = {name: runs[name] for name in (pair.other, pair.run)}
        row = rs.compare(grades, both, corpus_size=5000, scale="utility", measures=["RA-nWG@5"])[pair.run, "RA-nWG@5"]
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
    # What a larger comparison tests as one family has its verdict wherever it stands.
    whole = rs.compare(grades, runs, corpus_size=5000, scale="utility", depths=range(1, 15))
    figure = next(line for line in decide(whole.report, k=5).lines if line.run == "good").figures["BoR"]
    assert figure.verdict == whole["good", "BoR@5"].verdict == "no difference shown"


def test_arms_over_different_queries_are_tested_unpaired(tmp_path, monkeypatch) -> None:
    grades, runs = synthetic(weak=0.1, better=3.0)
    arms = {name: dict([*runs[name].items()][first::2]) for name, first in (("weak", 1), ("better", 0))}
    comparison = rs.compare(grades, arms, scale="utility", measures=["RA-nWG"], depths=[5], paired=False)
    decision = decide(comparison.report, k=5, paired=False)
    row = comparison["better", "RA-nWG@5"]
    assert (decision.pairs[0].difference, decision.pairs[0].p_adjusted) == (row.difference, row.p)
    assert decision["system"].text.startswith("better beats weak (+.")
    monkeypatch.chdir(tmp_path)
    for name, rows in {"qrels": grades, **arms}.items():
        trec(f"{name}.trec", rows)
    words = ["evaluate", "qrels.trec", "weak.trec", "better.trec", "--scale", "utility", "--k", "5"]
    for more in ([], ["--baseline", "weak"]):
        shown = CliRunner().invoke(app, [*words, "-c", "intervals.unpaired=true", *more]).stdout
        assert f"System: {decision['system'].text}\n" in shown
    assert decide(comparison.report, k=5)["system"].text.endswith("nothing was tested.")


def test_a_run_over_other_queries_is_not_called_alike() -> None:
    """Without a test it is neither better, nor worse, nor "cannot be told apart"."""
    grades, runs = synthetic(weak=0.1, better=3.0)
    half = {query: row for i, (query, row) in enumerate(runs["weak"].items()) if i % 2}
    arms = {**runs, "elsewhere": half}
    comparison = rs.compare(grades, arms, scale="utility", measures=["RA-nWG"], depths=[5], paired=False)
    assert decide(comparison.report, k=5)["system"].text.endswith("of the evidence); elsewhere was not tested.")


@pytest.mark.slow
def test_among_equal_runs_two_are_told_apart_no_more_often_than_the_level() -> None:
    """Four runs without any skill: a pair is told apart in at most 5 % of the worlds, up to chance (99.9 %)."""
    wrong, worlds = 0, 40
    for seed in range(worlds):
        scale, queries = ("trec", 12) if seed % 2 else ("utility", 25)
        random = np.random.default_rng(seed)
        every = [random.choice([1, 1, 3, 5], 20) for _ in range(queries)]
        grades = {f"q{i}": {f"d{j}": int(g) for j, g in enumerate(row)} for i, row in enumerate(every)}
        if scale == "trec":
            grades = {q: {d: int(g == 5) for d, g in row.items()} for q, row in grades.items()}
        runs = {n: {q: [f"d{j}" for j in random.permutation(20)[:10]] for q in grades} for n in ("a", "b", "c", "d")}
        report = rs.evaluate(grades, runs, scale=scale, bootstrap=rs.Bootstrap(resamples=20, seed=seed))
        wrong += any(pair.apart for pair in decide(report, k=3).pairs)
    assert wrong <= 7, wrong  # P[Binomial(40, .05) > 7] < .001


def test_what_is_shown_comes_first(report) -> None:
    decision = decide(report, k=5)
    best = decision.best
    beaten, tied = (pair for pair in decision.pairs if pair.run == best)
    beaten, tied = (beaten, tied) if beaten.apart else (tied, beaten)
    assert decision["system"].text == (
        f"{best} beats weak (+{beaten.difference:.2f} of the evidence); good is not told apart from it: these 60 "
        f"queries would show a gap of {math.ceil(100 * tied.detectable) / 100:.2f} or more 4 times in 5."
    ).replace("0.", ".")
    assert (decision["system"].shown, decision["system"].more.split(":")[0]) == (True, f"{best} minus good")
    # Figures that rest on further labels than a test can contradict it.
    grades, runs = synthetic(weak=0.1, good=0.5)
    row = rs.compare(grades, runs, scale="utility", measures=["RA-nWG"], depths=[5])["good", "RA-nWG@5"]
    assert [replace(row, value=row.baseline_value + x).verdict for x in (1, -1)] == ["better", "no difference shown"]


@pytest.mark.parametrize("queries", [9, 10])
def test_under_ten_queries_tie_no_runs_and_advise_no_reranking(queries) -> None:
    labels = {f"q{n}": {**dict.fromkeys("stuvwxyz", 0), "d": 1} for n in range(queries)}
    # Each run has the passage at rank 2 in one query, and at rank 1 in the others.
    lists = [{q: ["x", "d"] if n == lost else ["d", "x"] for n, q in enumerate(labels)} for lost in (0, 1)]
    decision = decide(rs.evaluate(labels, dict(zip("ab", lists, strict=True))), k=1)
    is_tied = decision["system"].text.startswith(
        "a and b are not told apart in Success@1: these 10 queries would show a gap of "
    )
    assert is_tied == decision["next"].text.startswith("Rerank the lists better") == (queries == 10)
    assert is_tied or decision["system"].text == "a and b: 9 queries cannot tell which is better."
    assert is_tied or decision["next"].text == "Add questions with labels: 9 questions are too few; have at least 20."


def test_a_run_that_loses_by_lists_that_it_lacks_is_said_to_lack_them() -> None:
    labels = {f"q{n}": {**dict.fromkeys("stuvwxyz", 0), "d": 1} for n in range(40)}
    runs = {"part": {q: ["d"] for q in list(labels)[10:]}, "whole": {q: ["d"] for q in labels}}
    lacks = "part has no list for 10 of 40 queries, each a failure"
    assert decide(rs.evaluate(labels, runs), k=1)["system"].text == f"whole beats part (+.25 of the queries); {lacks}."


# -- which K --------------------------------------------------------------------------------------------------


def test_without_a_k_it_is_that_of_the_run_with_the_most_evidence(report) -> None:
    decision = decide(report)
    judged = {name: part.judged for name, part in report.runs.items()}
    advised = {name: which_k(run, report.bootstrap) for name, run in judged.items()}
    best = max(advised, key=lambda name: advised[name].evidence[advised[name].value - 1])
    assert (decision.K, decision.K_from, decision.k) == (advised[best].value, "advised", advised[best])
    assert decision.to_dict()["k"] == advised[best].to_dict()
    assert f" for {best}" in decision["K"].text


@pytest.mark.parametrize("names", [("wide", "narrow"), ("narrow", "wide")])
def test_of_runs_with_as_much_evidence_the_least_k_is_advised_whatever_their_order(names) -> None:
    labels = {f"q{n}": ["d"] for n in range(40)}
    lists = {"wide": ["x", "y", "d", "z"], "narrow": ["d", "x", "y"]}
    decision = decide(rs.evaluate(labels, {name: dict.fromkeys(labels, lists[name]) for name in names}))
    assert (decision.K, decision.best) == (1, "narrow")


def test_no_run_is_compared_below_the_lists_of_another() -> None:
    grades, runs = synthetic(long=0.5, short=0.5)
    # A short list of the other run, and an empty one, change nothing.
    runs = {"long": runs["long"] | {"q0": [], "q1": ["d0"]}, "short": {q: top[:4] for q, top in runs["short"].items()}}
    compared = rs.compare(grades, runs, scale="utility", depths=[4, 10], measures=["RA-nWG", "Harm"])
    decision, deep = decide(compared.report), decide(compared.report, k=10)
    assert (decision.K, decision.K_from) == (4, "reached")
    assert decision["K"].text.startswith(f"4, where other lists end; {decision.k_by_run['long']} is advised for long: ")
    # Lists of a few passages have no say about the others.
    runs["few"] = {query: top[:1] for query, top in runs["short"].items()}
    assert decide(rs.evaluate(grades, runs, scale="utility")).K == 4
    # Empty slots hold no junk, which is no merit.
    less = compared["short", "Harm@10"]
    assert (less.difference < -0.1, less.p_adjusted < 0.01, less.verdict) == (True, True, "undecided: shorter lists")
    assert [line.figures["Harm"].verdict for line in deep.lines] == [None, less.verdict]


def test_every_column_that_was_asked_for_is_tested_against_the_baseline() -> None:
    labels = {f"q{n}": ["d"] for n in range(40)}
    runs = {"first": {q: ["d", "x"] for q in labels}, "second": {q: ["x", "d"] for q in labels}}
    report = rs.evaluate(labels, runs, measures=["nDCG", "AP"], depths=[2])
    assert str(report).startswith("System: first beats second (+.37 in nDCG@2).")
    graded = {q: {"d": 2, "x": 1} for q in labels}
    decision = decide(rs.evaluate(graded, runs, measures=["nDCG", "P(rel=2)"], depths=[1], scale="trec"), k=1)
    assert decision.lines[1].figures["P(rel=2)@1"].verdict == "worse"
    by_chance = rs.evaluate(labels, runs, measures=["BoR", "nDCG"], depths=[2], corpus_size=9)
    assert str(by_chance).startswith("System: first and second are not told apart in Success@2")
    assert ["second", "0.631", "−", "0.500", "−"] in [line.split() for line in str(report).splitlines()]


def test_a_given_k_stands_beside_the_advised_one(report) -> None:
    decision = decide(report, k=3)
    assert (decision.K, decision.K_from) == (3, "given")
    assert decision["K"].text.startswith(f"3 as given; {decision.k_by_run[decision.best]} is advised for ")
    harm, bor = (decision.lines[0].figures[name].estimate.value for name in ("Harm", "BoR"))
    at = f"At K = 3, {harm:.1%} of the slots hold junk and success is {2**bor:.0f} times as frequent as by chance"
    assert decision["K"].text.endswith(f"{at} (BoR {bor:.3f}).")
    # Only what live retrievals showed is "shown", whatever the rules.
    assert decide(rs.evaluate({"q": ["d"]}, {"q": ["d"]}, short_lists="returned"), k=1).K_from == "given"


@pytest.mark.parametrize("k", [3, None])
def test_the_answer_on_k_is_about_one_run(k) -> None:
    grades = {f"q{i}": {"a": 5, "b": 5, "c": 5, "x": 1, **{f"j{j}": 1 for j in range(9)}} for i in range(30)}
    lists = {"early": ["a", "y", *"uvwxst"], "late": [*"xyz", "a", "b", "c"]}
    runs = {name: dict.fromkeys(grades, each) for name, each in lists.items()}
    decision = decide(rs.evaluate(grades, runs, corpus_size=50, scale="utility"), k=k)
    about = decision.best if k else "late"
    line = next(line for line in decision.lines if line.run == about)
    assert f"{decision.k_by_run[about]}{' is advised' if k else ''} for {about}: " in decision["K"].text
    assert f"(BoR {line.figures['BoR'].estimate.value:.3f})" in decision["K"].text


def test_a_k_at_which_chance_succeeds_says_so() -> None:
    grades = {f"q{i}": {f"d{j}": 1 for j in range(9)} for i in range(30)}
    run = {q: [*(f"d{j}" for j in range(9)), *(f"x{j}" for j in range(3))] for q in grades}
    report = rs.evaluate(grades, run, corpus_size=20, scale="trec")
    for k, chance, zone in ((10, "more than 99.99%", "in"), (2, "71.1%", "near")):
        said = f"A random draw of {k} succeeds in {chance} of the queries: K is {zone} the collapse zone."
        assert said in decide(report, k=k)["K"].text


def test_no_control_that_is_relevant_puts_no_k_in_the_collapse_zone() -> None:
    labels, runs, controls = judged_by(0.0, number=3)
    assert "random draw" not in decide(controlled((labels, runs, controls)), k=10)["K"].text


def test_where_any_list_succeeds_a_smaller_k_is_the_next_step() -> None:
    grades = {f"q{i}": {f"d{j}": 5 if j == i % 3 else 1 for j in range(12)} for i in range(40)}
    lists = {q: [f"d{j}" for j in range(12)] for q in grades}
    step = decide(rs.evaluate(grades, lists, corpus_size=12, scale="utility"), k=12)["next"].text
    assert step == "Try a smaller K: at K = 12 luck may do as well."


def test_labels_of_another_list_are_too_few_to_rerank_this_one() -> None:
    grades = {f"q{i}": {**dict.fromkeys((f"j{j}" for j in range(9)), 1), "d": 5} for i in range(40)}
    lists = {q: ["x", "y", "z", "d", "u"] for q in grades}
    step = decide(rs.evaluate(grades, lists, scale="utility"), k=3)["next"].text
    assert step == '100.0% of the top 3 has no label; have an LLM grade all of it: grade(…, store="labels.db")'


# -- where the loss is ----------------------------------------------------------------------------------------

PASSAGES = [f"d{i}" for i in range(40)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("pooled", [0.0, 0.4, 1.0])
def test_losses_by_hand(tmp_path, pooled, seed) -> None:
    """The list of a query is its pool where it has no other one, for whoever retrieved it."""
    draw = random.Random(seed)
    labels = {f"q{i}": draw.sample(PASSAGES, 4) for i in range(60)}
    lists = {query: draw.sample(PASSAGES, draw.randint(0, 4)) for query in labels}
    pools = {query: draw.sample(PASSAGES, 8) for query in labels if draw.random() < pooled}
    monitor = rs.Monitor(labels, corpus_size=1000, trace=tmp_path / "trace.jsonl")
    for query, shown in lists.items():
        monitor.record(rs.Retrieval(query, shown, pools.get(query)))
    monitor.close()
    (tmp_path / "qrels.txt").write_text("".join(f"{query} 0 {d} 1\n" for query, row in labels.items() for d in row))
    of_trace = CliRunner().invoke(app, f"evaluate {tmp_path}/qrels.txt {tmp_path}/trace.jsonl --corpus-size 1000")
    evaluated = rs.evaluate(labels, lists, pool=pools or None, corpus_size=1000, depths=[4])
    held = [not {*lists[query], *pools.get(query, ())}.isdisjoint(labels[query]) for query in labels]
    kept = [not set(lists[query]).isdisjoint(labels[query]) for query in labels]
    selected, lost = sum(kept) / sum(held), sum(held) - sum(kept)
    for words in (str(evaluated), str(monitor.report()), of_trace.output):
        loss = next(line for line in words.splitlines() if line.startswith("Loss: "))
        if not pools:
            assert "Not known" in loss
            continue
        assert f"hold a success for {sum(held) / 60:.1%} of the queries; the top 4 keeps {selected:.1%} of that" in loss
        assert ("retrievals, the" in loss) == (words == str(monitor.report()))
        steps = loss.replace("is the weak step ", "")
        assert all(f"{step} in {n}" in steps for step, n in (("selection", lost), ("retriever", 60 - sum(held))))
    act = decide(evaluated, k=4)["next"]
    whole = f"{share(selected - sum(kept) / 60)} of the queries if they then lack nothing, and the top 4 keeps"
    assert not pools or f"Retrieve more candidates: +{whole} {selected:.1%} of it." in f"{act.text} {act.more}"
    # Two passages of lists of four: they may be what a reranker left.
    of_lists = decide(rs.evaluate(labels, lists, corpus_size=1000, depths=[2]), k=2)
    assert "run's lists hold a success for" in of_lists["loss"].text
    assert "which step loses the rest is not known" in of_lists["loss"].text
    assert "candidates better" not in f"{of_lists['next'].text} {of_lists['next'].more}"


def test_losses_are_those_of_proc_and_percent_proc() -> None:
    """Where two queries of three have a pool of their own."""
    grades, pools = synthetic(weak=0.1, good=0.5, better=0.55)
    runs = {name: {query: row[:5] for query, row in run.items()} for name, run in pools.items()}
    pools = {name: dict(list(run.items())[::3] + list(run.items())[1::3]) for name, run in pools.items()}
    report = rs.evaluate(grades, runs, pool=pools, scale="utility", measures=["RA-nWG", "PROC", "%PROC"], depths=[5])
    best, loss = (decision := decide(report, k=5)).best, decision["loss"].text
    assert f"{best}'s candidates hold {percent(report[best, 'PROC@5'].value)} of the evidence" in loss
    assert f"the top 5 keeps {percent(report[best, '%PROC@5'].value)} of that" in loss
    assert f"the weak step in {report.diagnosis(best, 5).counts['selection-limited']} queries" in loss
    # The best run has no pool, and one that is tied with it has one.
    of_one = decide(rs.evaluate(grades, runs, pool={"good": pools["good"]}, scale="utility", depths=[5]), k=5)
    first = "better has no candidates (pool=…, --pool). good's candidates hold "
    assert of_one["loss"].text.startswith(first + percent(report["good", "PROC@5"].value))
    # Where the pool lacks a little for each query, a rare one may still lose all by the selection.
    little = {query: PASSAGES[1 + i % 2 : 27] for i, query in enumerate(grades)}
    report = rs.evaluate(dict.fromkeys(grades, PASSAGES[:27]), little, pool=little, scale="utility", depths=[27])
    assert not decide(report, k=27)["loss"].shown


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
    assert percent(report[decision.best, "PROC@10"].value) in decision["loss"].text
    asked = {"measures": ["RA-nWG@10"], "corpus_size": 1000, "scale": "utility"}
    row = rs.compare(judge, runs, human=drawn(human, judge, runs, 200), **asked).rows[0]
    assert abs(decision.pairs[0].difference) == pytest.approx(abs(row.difference), abs=0.02)
    assert "as judged" not in decision["system"].more


def test_people_who_call_nothing_relevant_leave_no_k_to_advise(tmp_path) -> None:
    """A judge finds evidence, and people call all of it junk: in a run's top 5, or in a random draw."""
    human, judge, runs = world(judge_error=0.3)
    junk = {query: dict.fromkeys(row, 1) for query, row in human.items()}
    top = {query: dict.fromkeys(passages[:5], 1) for query, passages in runs["one"].items()}
    for labels in (top, drawn(junk, judge, runs, 200)):
        decision = decide(report := evaluated(judge, runs, human=labels))
        assert "none is advised" in decision["K"].text
        # What they cannot calibrate is no share of junk either, and a stored report says so too.
        assert "hold junk" not in decision["K"].text
        report.save(tmp_path / "report.json")
        assert read_report(tmp_path / "report.json").trust.verdict == report.trust.verdict
        assert decision["trust"].text.startswith("The labels by people call nothing relevant: ")
        assert decision["next"].text.startswith("Let a person grade 200 pairs: ")


def test_people_who_label_what_was_graded_do_not_open_closed_labels() -> None:
    draw = random.Random(3)
    lists = {f"q{i}": [f"d{i}-{j}" for j in range(10)] for i in range(40)}
    labels = {query: {each: draw.choice([1, 1, 1, 2, 3, 5]) for each in found} for query, found in lists.items()}
    human = {query: dict(draw.sample(sorted(row.items()), 4)) for query, row in labels.items()}
    options = {"scale": "utility", "corpus_size": 500, "human": human}
    report = rs.evaluate(labels, {"r": lists}, **options)
    decision = decide(report, k=5)
    only = "only retrieved passages were graded, so nothing is known about the others"
    assert decision["trust"].text.startswith("Labels by people calibrate the figures")
    assert f"; {only}. " in decision["trust"].text
    assert "hold junk and success, by what was graded, is" in decision["K"].text
    # There is nothing below these lists to draw a tail from.
    assert report.trust.acts[-1].startswith("Retrieve further down, and have a tail of that graded")
    worse = rs.evaluate(labels, {"r": {query: found[::-1] for query, found in lists.items()}}, **options)
    message = next(each.message for each in rs.gates.check(worse, ["drop(RA-nWG@2) > -1"], report))
    assert " as judged over 40 queries" in message


def whole_world():
    """Grades of all passages for each query, and a run for each share of noise in its order."""
    (grades, _), draw = synthetic(), np.random.default_rng(0)

    def run(noise: float) -> dict[str, list[str]]:
        score = {q: {d: g + noise * draw.normal() for d, g in row.items()} for q, row in grades.items()}
        return {q: sorted(row, key=lambda d, row=row: -row[d]) for q, row in score.items()}

    return grades, run


def decided(grades, runs, k=5, **options):
    return decide(rs.evaluate(grades, runs, scale="utility", corpus_size=40, **options), k=k)


def test_of_a_perfect_order_nothing_is_lost() -> None:
    grades, run = whole_world()
    grades = {q: {d: 5 if g > 3 else 1 for d, g in row.items()} for q, row in grades.items()}
    perfect = decided(grades, {"perfect": run(0)})
    assert perfect["loss"].text.endswith(": nothing is lost in these queries.")
    assert perfect["trust"].more == "Every passage is labelled."
    assert decided(grades, {"noisy": run(1)})["loss"].text.endswith("; the rest stands below rank 5.")
    # Nothing of what the list holds is in the top K, and the list holds a part only.
    half = {query: [*[f"x{i}" for i in range(5)], "d0"] for query in grades}
    few = {query: {**dict.fromkeys(row, 1), "d0": 5, "d1": 5} for query, row in grades.items()}
    assert "which step loses the rest is not known" in decided(few, {"half": half})["loss"].text


def test_few_clusters_are_the_first_thing_to_mend() -> None:
    grades, run = whole_world()
    clusters = {query: i % 4 for i, query in enumerate(grades)}
    decision = decided(grades, {"a": run(0.5), "b": run(2)}, bootstrap=rs.Bootstrap(500, clusters=clusters))
    assert decision["next"].text == "Add questions of other clusters: these are of 4 clusters; have at least 20."


def test_missing_lists_advise_no_k_and_few_empty_ones_are_named() -> None:
    grades, run = whole_world()
    whole = run(0.5)
    half = {query: passages for i, (query, passages) in enumerate(whole.items()) if i % 2}
    told = decided(grades, {"half": half})["K"].text
    assert "none is advised for half: 30 of 60 retrievals failed, came back empty or" in told
    decision = decided(grades, {"most": {**whole, "q1": [], "q2": []}})
    assert "Look at the 2 retrievals without a passage." in decision["next"].more


def test_questions_without_a_figure_are_counted_among_all() -> None:
    grades, run = whole_world()
    for count in (6, 17):
        few = {query: row if i < count else dict.fromkeys(row, 1) for i, (query, row) in enumerate(grades.items())}
        said = f"Add questions with labels: {count} of 60 count: too few"
        assert decided(few, {"a": run(0)})["next"].text.startswith(said)


def test_bits_are_not_claimed_where_the_figure_says_nothing() -> None:
    grades, run = whole_world()
    runs = {"good": run(0.5), "luck": run(1e9)}
    assert "as frequent as by chance" in decided(grades, runs)["K"].text
    alone = decided(grades, {"luck": runs["luck"]})
    assert "none is advised for luck: by these labels no run is shown to be better than luck" in alone["K"].text
    assert alone["next"].text.startswith("Mend the retrieval: its lists are not shown to be better than luck.")


def test_nothing_is_shown_where_ids_do_not_meet() -> None:
    grades, run = whole_world()
    other = {f"{query}/x" if i % 2 else query: passages for i, (query, passages) in enumerate(run(5).items())}
    decision = decided(grades, {"good": run(0.2), "bad": other})
    assert decision["system"].text.startswith("Open until the ids meet")
    assert all(figure.verdict is None for line in decision.lines for figure in line.figures.values())


def test_labels_that_show_nothing_choose_no_run_and_no_k() -> None:
    """Controls show that this judge accepts anything; by its labels one run is far better, and one K is enough."""
    labels, runs, controls = judged_by(0.9, number=5)
    alike = decide(controlled((labels, runs | {"same": runs["own"]}, controls)), k=10)["system"].text
    assert alike.endswith(", is that of own and same.")
    runs["other"] = {query: [f"x{i}" for i in range(30)] for query in runs["own"]}
    labels = {query: {**row, **dict.fromkeys(runs["other"][query], 0)} for query, row in labels.items()}
    decision = decide(controlled((labels, runs, controls), ids="exact"), k=10)
    assert next(iter(decision.pairs)).apart
    nothing = "hese labels cannot tell the retriever from a random draw"
    assert decision["system"].text.startswith(f"T{nothing}; the highest Success@10, ")
    assert not any(answer.shown for answer in decision.answers)
    assert decision["K"].text.startswith(f"10 as given; none is advised for own: t{nothing}")
    assert "by chance" not in decision["K"].text


def test_what_a_perfect_run_would_give_too_is_not_called_worthless() -> None:
    """A run that shows all relevant passages and nothing else has the figures of shuffled labels, which are alike."""
    qrels = {f"q{i}": ["d"] for i in range(40)}
    runs = {"old": {q: ["x", "d"] for q in qrels}, "new": {q: ["d", "x"] for q in qrels}}
    decision = decide(rs.evaluate(qrels, runs, corpus_size=100), k=1)
    nothing = "By these labels no run is shown to be better than luck, unless this is a perfect run"
    assert decision["system"].text.startswith(f"{nothing}; the highest Success@1, 1.00, is that of new.")
    assert decision["trust"].text.startswith(f"{nothing}. ")


def test_random_controls_check_the_labels() -> None:
    decision = decide(controlled(judged_by(0.02, number=5)), k=10)
    # These labels name no judge.
    by_controls = "By these grades, retrieval beats chance by at least 1.683 bits (3.2 times), "
    assert decision["trust"].text.startswith(by_controls)
    assert decision["trust"].shown


# -- every view -----------------------------------------------------------------------------------------------


def test_without_intervals_nothing_is_tested() -> None:
    grades, runs = synthetic(weak=0.2, better=1.1)
    decision = decide(rs.evaluate(grades, runs, scale="utility", bootstrap=None), k=5)
    assert decision["system"].text.endswith("nothing was tested.")
    assert decision.pairs == ()
    assert not any(answer.shown for answer in decision.answers)


def test_no_success_is_no_best_run() -> None:
    grades = {f"q{i}": {"a": 1} for i in range(12)}
    runs = {name: {q: ["x", "y", "a"] for q in grades} for name in ("one", "two")}
    decision = decide(rs.evaluate(grades, runs, scale="trec"), k=2)
    assert decision["system"].text == "No run is best: Success@2 is 0 for all of them."
    # T can be below 0: half of the slots hold something, and none.
    runs["one"] = {q: ["a", "y"] for q in grades}
    assert decide(rs.evaluate(grades, runs, measures=["T"]), k=2)["system"].text.startswith("one beats two (+.50 in T")


def test_bits_over_other_lists_have_no_random_ceiling() -> None:
    labels = {f"q{i}": {f"d{i % 5}": 5, f"d{i % 7}": 1} for i in range(40)}
    runs = {"run": {q: [*of] for q, of in labels.items()}}
    asked = rs.evaluate(labels, runs, measures=["BoR(null=lists)@2", "BoR_max@2"], scale="utility", corpus_size=1000)
    assert " of " not in "".join(table_of(str(asked))[1])


def test_one_query_has_an_answer_to_everything() -> None:
    decision = decide(rs.evaluate({"q": {"d": 1}}, {"q": ["x", "d"]}, corpus_size=100))
    assert [*(answer.code for answer in decision.answers), decision.K] == [*QUESTIONS, 2]


#: Every measure by its name alone, and with a depth where it takes one.
NO_DEPTH = {"Rprec", "IPrec11", "IPrec"}
ASKED = [*MEASURES, *(f"{name}@10" for name in MEASURES if name not in NO_DEPTH), "IPrec@0.5"]


@pytest.mark.parametrize("measure", ASKED)
def test_every_measure_is_decided_on_alone_and_shown_at_its_depth(measure) -> None:
    passages = [f"p{i}" for i in range(40)]
    labels = {f"q{i}": {passages[(i * k) % 40]: 1 + k % 5 for k in range(1, 20)} for i in range(1, 9)}
    one, two = ({query: passages[i : i + 15] for i, query in enumerate(labels, start)} for start in (0, 3))
    options = {"scale": "utility", "corpus_size": 200, "groups": {p: p[:2] for p in passages}}
    runs = {"one": one, "two": two} if "@" in measure else {"one": one}
    report = rs.evaluate(labels, runs, measures=[measure], bootstrap=rs.Bootstrap(resamples=50), **options)
    answers = answers_of(str(report))
    assert not answers["Loss"].startswith("Open: lists of runs")
    assert "as given" not in answers["K"]
    if "@10" in measure:
        header, *rows = table_of(str(report))
        found = {each.partition(" of ")[0]: cell for each, cell in zip(header, rows[0], strict=True)}
        cell = found.get(measure) or found[measure.removesuffix("@10")]
        assert cell.startswith(number(report[rows[0][0], measure].value)), (found, measure)
        assert len(header) == 2
        assert measure in report.to_latex().replace("\\", "")
