"""Closed labels and placebos: alarms where they are due, and none where they are not."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.data.origins import Chosen, LabelOrigins
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.estimates import with_caveats
from rag_selectivity.gates import distrusted, failures, parse_fail_if
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.results.estimate import LEVELS, Estimate
from rag_selectivity.results.trust import CLOSED, EQUALS_PLACEBO

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
    given = {
        "scale": "utility",
        "corpus_size": 1400,
        "depths": [10],
        "measures": MEASURES,
        "bootstrap": rs.Bootstrap(200),
    }
    return rs.evaluate(labels, runs, **{**given, **options})


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
    assert "shows nothing about the retriever" in " ".join(report.details().split())


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


def test_the_placebo_is_the_mean_over_shuffled_labels(cranfield):
    _, runs = cranfield
    lists = {q: list(dict.fromkeys(runs["bm25"][q][:10] + runs["lsa"][q][:10])) for q in list(runs["bm25"])[:60]}
    labels, evaluated = dice(lists), {"bm25": {q: runs["bm25"][q][:30] for q in lists}}
    keys = ("BoR@10", "RA-nWG@10", "PROC@10", "R@10", "nDCG@10", "AP", "RR")
    options = {"bootstrap": None, "measures": ["BoR", "RA-nWG", "PROC", "R", "nDCG", "AP", "RR"]}
    rng, shuffled = np.random.default_rng(3), []
    for _ in range(100):
        mixed = {
            q: dict(zip(row, rng.permutation(list(row.values())).tolist(), strict=True)) for q, row in labels.items()
        }
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


def test_a_perfect_run_over_lists_of_exactly_the_relevant_passages_is_named_as_a_possibility():
    labels = {f"q{i}": {f"d{i}-{j}": 1 for j in range(3)} for i in range(30)}
    report = rs.evaluate(
        labels, {"r": {q: list(row) for q, row in labels.items()}}, corpus_size=1000, depths=[3], measures=["R"]
    )
    assert all("perfect run" in caveat.text for caveat in report["R@3"].caveats)


# -- origins decide ------------------------------------------------------------------------------------------


def with_origins(labels, chosen, **facts):
    rows = [(q, p, g) for q, row in labels.items() for p, g in row.items()]
    n = len(rows)
    none = {
        "by_person": np.zeros(n, bool),
        "judge_grade": np.array([g for *_, g in rows]),
        "tail_size": np.zeros(n, np.int64),
    }
    kinds = np.array([int(chosen(q, p)) for q, p, _ in rows], np.uint8)
    return Qrels.from_records(rows, scale="utility", origins=LabelOrigins(chosen=kinds, **none, **facts))


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
        dice(lists),
        lambda q, p: Chosen.TAIL if p in runs["bm25"][q][20:25] else Chosen.POOL,
        tail_ranks=(11, 200),
    )
    report = measured(known, {"bm25": runs["bm25"]})
    assert levels(report, "bm25", "RA-nWG@10", "down-to-rank") == ["note"]
    assert not levels(report, "bm25", "RA-nWG@10")
    assert levels(report, "bm25", "BoR@10")
    assert "down to rank 200" in report.details()


# -- wherever a figure stands --------------------------------------------------------------------------------


def test_json_names_each_caveat_of_a_run_once_with_its_measures(cranfield):
    _, runs = cranfield
    report = measured(dice(top(runs["bm25"], 10)), {"bm25": runs["bm25"]}, depths=[5, 10])
    data = json.loads(report.to_json())["runs"]["bm25"]
    found = {(caveat["code"], caveat["level"]): caveat for caveat in data["caveats"]}
    closed = found[CLOSED, "strong"]
    assert {"BoR@10", "RA-nWG@10"} <= set(closed["measures"])
    assert "BoR@5" not in closed["measures"]
    assert closed["figures"]["labels"] == 2250
    assert closed["text"]
    assert closed["level"] in LEVELS
    assert data["measures"]["RA-nWG@10"]["placebo"] == pytest.approx(1)
    assert [c.code for c in report.runs["bm25"].caveats] == [c["code"] for c in data["caveats"]]


def test_figures_that_equal_their_placebos_have_no_winner(cranfield):
    _, runs = cranfield
    # One run is the other one's list, half of it in place of the top: both are shuffles of the same labels.
    lists = {q: runs["bm25"][q][:40] for q in runs["bm25"]}
    labels = dice(lists)
    a = {q: sorted(row[:20], key=lambda p: -labels[q][p] + 0.1 * hash_of(q, p)) for q, row in lists.items()}
    options = {"baseline": "b", "scale": "utility", "measures": ["RA-nWG"], "depths": [10]}
    good = rs.compare(labels, {"a": a, "b": lists}, **options)
    assert good["a", "RA-nWG@10"].verdict == "better"  # a follows the labels, b does not
    rng = np.random.default_rng(2)
    some = {q: rng.permutation(row).tolist() for q, row in lists.items()}
    others = {q: rng.permutation(row).tolist() for q, row in lists.items()}
    equal = rs.compare(
        labels, {"a": some, "b": others}, baseline="b", scale="utility", measures=["RA-nWG"], depths=[10]
    )
    assert equal["a", "RA-nWG@10"].equal_to_placebos
    assert equal["a", "RA-nWG@10"].verdict in ("no difference shown", "undecided: no more than placebos")


def hash_of(*texts):
    return (sum(map(ord, "".join(texts))) * 2654435761 % 1000) / 1000


def test_trust_can_be_required_of_gated_figures(cranfield):
    _, runs = cranfield
    report = measured(dice(top(runs["bm25"], 10)), {"bm25": runs["bm25"]})
    harm, evidence = parse_fail_if("Harm@10 > 0.9"), parse_fail_if("RA-nWG@10 < 0.5")
    assert not failures(report, [harm, evidence])
    assert not failures(report, [harm], require_trust="soft")
    lines = failures(report, [harm, evidence], require_trust="strong")
    assert any("RA-nWG@10" in line and "closed-labels (strong)" in line for line in lines)
    assert not any("Harm" in line for line in lines)
    assert len(distrusted(report, "note")) >= len(distrusted(report, "soft")) > len(distrusted(report, "strong")) > 0
    with pytest.raises(rs.InputError, match=r"require_trust .* got 'storng'; did you mean"):
        failures(report, [], require_trust="storng")


def test_a_monitor_says_so_too():
    labels = dice({f"q{i}": [f"d{i}-{j}" for j in range(10)] for i in range(60)})
    monitor = Monitor(labels, corpus_size=5000, scale="utility", measures=["BoR", "RA-nWG", "Harm"])
    for query, row in labels.items():
        monitor.record(Retrieval(query=query, shown=tuple(row)))
    report = monitor.report()
    assert {c.code for c in report["BoR"].caveats} >= {CLOSED, EQUALS_PLACEBO}
    assert not report["Harm"].caveats


def test_without_a_corpus_size_positives_have_no_placebo():
    labels = {f"q{i}": {f"d{i}": 1} if i % 3 else {} for i in range(30)}
    run = {f"q{i}": [f"x{i}", f"d{i}", f"y{i}"] for i in range(30)}
    for key in ("R@2", "AP", "RR", "nDCG@2"):
        report = rs.evaluate(labels, {"r": run}, measures=["R", "AP", "RR", "nDCG"], depths=[2])
        assert report[key].placebo is None
        report = rs.evaluate(labels, {"r": run}, measures=["R", "AP", "RR", "nDCG"], depths=[2], corpus_size=500)
        assert 0 < report[key].placebo < 0.02


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


def test_controls_lift_the_caveat_only_where_figures_rest_on_them(cranfield):
    _, runs = cranfield
    lists = top(runs["bm25"], 10)
    controls = dice({q: runs["bm25"][q][100:103] for q in lists}, seed=2)
    report = measured(dice(lists), {"bm25": runs["bm25"]}, controls=controls, measures=["BoR", "BoR_recall"])
    assert report["BoR@10"].basis == "with controls"
    assert not levels(report, "bm25", "BoR@10")
    assert report["BoR_recall@10"].basis == "as judged"
    assert levels(report, "bm25", "BoR_recall@10") == ["strong"]


def test_few_queries_are_not_said_to_equal_their_placebo():
    labels = {"a": {"d1": 5, "d2": 1, "d3": 1, "d4": 1}, "b": {"d1": 5, "d2": 1, "d3": 1, "d4": 1}}
    report = rs.evaluate(labels, {"r": {"a": ["d1"], "b": ["d2"]}}, scale="utility", depths=[1], measures=["RA-nWG"])
    (caveat,) = [each for each in report["RA-nWG@1"].caveats if each.code == EQUALS_PLACEBO]
    assert caveat.text.startswith("It is not shown that the figure differs from its placebo")


# -- in tables and texts ------------------------------------------------------------------------------------


def of_junk(run: dict, **options) -> rs.Report:
    qrels = {"q1": {"a": 5, "j": 1, "k": 1}, "q2": {"a": 5, "j": 2, "k": 1}}
    return rs.evaluate(qrels, {"r": run}, scale="utility", measures=["Harm"], depths=[10], **options)


def test_caveats_of_different_measures_keep_their_own_words() -> None:
    qrels = {"q1": {"a": 5, "j": 1}, "q2": {"a": 5, "j": 1}}
    runs = {"one": {"q1": ["a", "x"], "q2": ["a", "y"]}, "other": {"q1": ["a", "j"], "q2": ["a", "y"]}}
    text = rs.compare(qrels, runs, scale="utility", measures=["P", "Harm"], depths=[1, 2]).details().replace("\n", " ")
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
    assert "Success [99.9%]" in report.details()
