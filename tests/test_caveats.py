"""Closed labels and placebos: alarms where they are due, and none where they are not."""

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.evaluation.caveats import CLOSED, EQUALS_PLACEBO
from rag_selectivity.judged.origins import Chosen
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from tests.label_origins import with_origins

pytestmark = pytest.mark.inside

MEASURES = ["Success", "BoR", "RA-nWG", "PROC", "R", "AP", "nDCG", "RR", "Harm", "Precision4+"]
RESTING_ON_THE_LIST = ("Success@10", "Harm@10", "Precision4+@10", "Judged@10")


def dice(lists, seed=1):
    rng = np.random.default_rng(seed)
    return {query: {passage: int(rng.integers(1, 6)) for passage in passages} for query, passages in lists.items()}


def top(lists, depth):
    return {query: passages[:depth] for query, passages in lists.items()}


def levels(report, run, key, code=CLOSED):
    return [caveat.level for caveat in report[run, key].caveats if caveat.code == code]


def alarms(report):
    return {(name, caveat.code) for name, run in report.runs.items() for caveat in run.caveats} & {
        (name, code) for name in report for code in (CLOSED, EQUALS_PLACEBO, "by-construction")
    }


@pytest.fixture(scope="module")
def cranfield(data):
    folder = data / "cranfield"
    runs = {}
    for name in ("bm25", "lsa"):
        run = rs.read_run(folder / "runs" / f"{name}.trec")
        runs[name] = {query: list(run[query]) for query in run}
    return rs.read_qrels(folder / "qrels.trec").to_dict(), runs


def measured(labels, runs, **options):
    given = {"scale": "utility", "corpus_size": 1400, "depths": [10], "measures": MEASURES}
    return rs.evaluate(labels, runs, **{**given, "bootstrap": rs.Bootstrap(200), **options})


# -- the worked cases -----------------------------------------------------------------------------------------


def test_a_judge_that_rolls_dice_on_its_own_top_ten_is_told_so(cranfield):
    _, runs = cranfield
    report = measured(dice(top(runs["bm25"], 10)), {"bm25": runs["bm25"]})
    assert report["RA-nWG@10"].value == pytest.approx(1) == report["RA-nWG@10"].placebo
    for key in ("BoR@10", "RA-nWG@10", "PROC@10", "R@10", "nDCG@10"):
        assert levels(report, "bm25", key) == ["strong"], key
        assert levels(report, "bm25", key, EQUALS_PLACEBO) == ["strong"], key
    for key in RESTING_ON_THE_LIST[1:]:
        assert not report["bm25", key].caveats, key
    # Its order of ranks is a figure about the list alone; the set of relevant passages is its own.
    assert levels(report, "bm25", "AP") == ["soft"]
    assert levels(report, "bm25", "Success@10", "by-construction") == ["strong"]
    assert report["Success@10"].value == 1
    assert "Of all queries, 97.8% succeed" in " ".join(report.details().split())
    assert "‡" in report.details()
    assert "says nothing about your retriever" in " ".join(report.details().split())


@pytest.mark.parametrize(
    ("case", "value", "placebo", "closed"),
    [
        ("people", 0.622, 0.007, []),
        ("pool of depth 100", 0.329, 0.320, ["soft"]),
        ("union of two runs", 0.711, 0.716, ["soft"]),
        ("positives and the judged list", 0.648, 0.007, []),
    ],
)
def test_ra_nwg_and_its_placebo_are_those_of_the_trials(cranfield, case, value, placebo, closed):
    people, runs = cranfield
    labels, evaluated = people, runs
    if case == "pool of depth 100":
        labels, evaluated = dice(top(runs["bm25"], 100)), {"bm25": runs["bm25"]}
    elif case == "union of two runs":
        labels = dice({q: list(dict.fromkeys(runs["bm25"][q][:10] + runs["lsa"][q][:10])) for q in runs["bm25"]})
    elif case.startswith("positives"):
        evaluated = {"bm25": runs["bm25"]}
        labels = {
            query: {passage: grades.get(passage, 1) for passage in runs["bm25"][query][:10]}
            | {passage: grade for passage, grade in grades.items() if grade >= 4}
            for query, grades in people.items()
        }
    report = measured(labels, evaluated)
    figure = report["bm25", "RA-nWG@10"]
    assert (figure.value, figure.placebo) == (pytest.approx(value, abs=0.03), pytest.approx(placebo, abs=0.03))
    assert levels(report, "bm25", "RA-nWG@10") == closed
    assert bool(levels(report, "bm25", "RA-nWG@10", EQUALS_PLACEBO)) == (case.startswith(("pool", "union")))


@pytest.mark.slow
def test_the_placebo_is_the_mean_over_shuffled_labels(cranfield):
    _, runs = cranfield
    lists = {q: list(dict.fromkeys(runs["bm25"][q][:10] + runs["lsa"][q][:10])) for q in list(runs["bm25"])[:60]}
    labels, evaluated = dice(lists), {"bm25": {q: runs["bm25"][q][:30] for q in lists}}
    keys = ("BoR@10", "RA-nWG@10", "PROC@10", "R@10", "nDCG@10", "AP", "RR")
    options = {"bootstrap": None, "measures": ["BoR", "RA-nWG", "PROC", "R", "nDCG", "AP", "RR"]}
    rng, shuffled = np.random.default_rng(3), []
    for _ in range(100):
        mixed = {q: dict(zip(of, rng.permutation(list(of.values())).tolist(), strict=True)) for q, of in labels.items()}
        report = measured(mixed, evaluated, **options)
        shuffled.append([report[key].value for key in keys])
    mean, error = np.mean(shuffled, axis=0), np.std(shuffled, axis=0) / np.sqrt(100)
    report = measured(labels, evaluated, **options)
    for key, expected, spread in zip(keys, mean, error, strict=True):
        # BoR is the logarithm of a mean, so its mean over shuffles is a little lower.
        slack = 0.01 if key.startswith("BoR") else 1e-9
        assert report[key].placebo == pytest.approx(expected, abs=4 * spread + slack), key


# -- no false alarm ------------------------------------------------------------------------------------------


def test_no_alarm_where_labels_reach_beyond_the_lists(cranfield, data):
    people, runs = cranfield
    assert not alarms(measured(people, runs))
    tools = {f"q{i}": {f"t{j}": int(j in (i % 58, (i + 1) % 58)) for j in range(58)} for i in range(40)}
    some = {f"q{i}": [f"t{(i + j) % 58}" for j in range(10)] for i in range(40)}
    assert not alarms(rs.evaluate(tools, {"r": some}, corpus_size=58, measures=["BoR", "R", "AP"], depths=[5, 10]))
    trec = data / "trec"
    assert not alarms(
        rs.evaluate(
            trec / "qrels.dl19-passage.txt",
            {"bm25": trec / "run.msmarco-v1-passage.bm25-default.dl19.txt"},
            corpus_size=8_841_823,
            grade_map="0:1,1:3,2:4,3:5",
            measures=MEASURES,
            depths=[10],
        )
    )


def test_no_alarm_on_positives_only(data):
    qrels = rs.read_qrels(data / "scifact" / "qrels.trec").to_dict()
    rng = np.random.default_rng(5)
    found = {q: [*rng.permutation([*row, *(f"x{i}" for i in range(15))]).tolist()] for q, row in qrels.items()}
    assert not alarms(
        rs.evaluate(qrels, {"r": found}, corpus_size=5183, measures=["BoR", "R", "AP", "nDCG"], depths=[10])
    )


# -- origins decide ------------------------------------------------------------------------------------------


def test_one_of_two_pooled_runs_evaluated_alone_is_still_closed(cranfield):
    _, runs = cranfield
    lists = {q: list(dict.fromkeys(runs["bm25"][q][:10] + runs["lsa"][q][:10])) for q in runs["bm25"]}
    labels, alone = dice(lists), {"bm25": top(runs["bm25"], 10)}
    assert not alarms(measured(labels, alone)) & {("bm25", CLOSED)}  # the shares cannot tell
    known = with_origins(labels, lambda q, p: Chosen.POOL)
    assert levels(measured(known, alone), "bm25", "RA-nWG@10") == ["soft"]


def test_a_tail_makes_it_a_figure_down_to_its_rank(cranfield):
    _, runs = cranfield
    lists = {q: row[:10] + row[20:25] for q, row in runs["bm25"].items()}
    known = with_origins(
        dice(lists), lambda q, p: Chosen.TAIL if p in runs["bm25"][q][20:25] else Chosen.POOL, tail_ranks=(11, 200)
    )
    report = measured(known, {"bm25": runs["bm25"]})
    assert levels(report, "bm25", "RA-nWG@10", "down-to-rank") == ["note"]
    assert not levels(report, "bm25", "RA-nWG@10")
    assert levels(report, "bm25", "BoR@10")
    assert "down to rank 200" in report.details()
    # Candidates that are all of what was graded hold all of it, whatever the retriever missed.
    report = measured(known, {"bm25": top(runs["bm25"], 10)}, pool={"bm25": runs["bm25"]})
    assert report["PROC@10"].value == 1
    assert "; what the runs missed is not known." in decide(report, k=10)["loss"].text


# -- wherever a figure stands --------------------------------------------------------------------------------


def test_a_monitor_says_so_too():
    labels = dice({f"q{i}": [f"d{i}-{j}" for j in range(10)] for i in range(60)})
    monitor = Monitor(labels, corpus_size=5000, scale="utility", measures=["BoR", "RA-nWG", "Harm"])
    for query, row in labels.items():
        monitor.record(Retrieval(query=query, shown=tuple(row)))
    report = monitor.report()
    assert {c.code for c in report["BoR"].caveats} >= {CLOSED, EQUALS_PLACEBO}
    assert not report["Harm"].caveats


def test_the_share_of_all_queries_counts_failures_too():
    """A few labels outside the top: Success is not quite 1, and what is said of all queries allows for that."""
    labels = {f"q{i}": {f"d{i}-{j}": 5 if j == i % 10 and i % 2 else 1 for j in range(10)} for i in range(100)}
    labels["q0"] = {**labels["q0"], "elsewhere": 5}
    run = {q: [p for p in row if p != "elsewhere"] for q, row in labels.items()}
    report = rs.evaluate(labels, {"r": run}, scale="utility", depths=[10], measures=["Success"], bootstrap=None)
    figure = report["Success@10"]
    (caveat,) = [each for each in figure.caveats if each.code == "by-construction"]
    assert (figure.n, figure.value) == (51, pytest.approx(50 / 51))
    assert caveat.figures["of_all_queries"] == pytest.approx(50 / 100)
    labels |= {query: dict.fromkeys(row, 5) for query, row in labels.items() if query != "q2"}
    report = rs.evaluate(labels, {"r": run}, scale="utility", depths=[10], measures=["Success"], bootstrap=None)
    assert "1 query without a relevant label is left out" in report["Success@10"].caveats[0].text


def test_controls_lift_the_caveat_only_where_figures_rest_on_them(cranfield):
    _, runs = cranfield
    lists = top(runs["bm25"], 10)
    controls = dice({q: runs["bm25"][q][100:103] for q in lists}, seed=2)
    report = measured(dice(lists), {"bm25": runs["bm25"]}, controls=controls, measures=["BoR", "BoR_recall"])
    assert report["BoR@10"].basis == "with controls"
    assert not levels(report, "bm25", "BoR@10")
    assert report["BoR_recall@10"].basis == "as judged"
    assert levels(report, "bm25", "BoR_recall@10") == ["strong"]
    assert "No label but the random controls is outside the top 10" in str(report["BoR_recall@10"].caveats)
    unsized = rs.evaluate(dice(lists), {"bm25": runs["bm25"]}, controls=controls, scale="utility", bootstrap=None)
    assert unsized.trust.verdict.startswith("Apart from random controls, only ")


def test_few_queries_are_not_said_to_equal_their_placebo():
    labels = {"a": {"d1": 5, "d2": 1, "d3": 1, "d4": 1}, "b": {"d1": 5, "d2": 1, "d3": 1, "d4": 1}}
    report = rs.evaluate(labels, {"r": {"a": ["d1"], "b": ["d2"]}}, scale="utility", depths=[1], measures=["RA-nWG"])
    (caveat,) = [each for each in report["RA-nWG@1"].caveats if each.code == EQUALS_PLACEBO]
    assert caveat.text.startswith("If the grades were shuffled at random, the figure could look the same")
