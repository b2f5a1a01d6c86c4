"""Random controls: the estimate against known judges, what is shown without a model, and what is refused."""

import json

import numpy as np
import pytest
from scipy.stats import beta

import rag_selectivity as rs
from rag_selectivity.advice.decide import decide
from rag_selectivity.judged.origins import Chosen
from rag_selectivity.judged.qrels import Qrels
from tests.conftest import DATA
from tests.label_origins import with_origins

pytestmark = pytest.mark.inside

SIZE, K, QUERIES = 2000, 10, 120


@pytest.fixture(scope="module")
def trial():
    """The trials whose short form is here; they stand beside the package, not in it."""
    return pytest.importorskip("benchmarks.trust_tables.controls")


def judged_by(accepts, *, number: int, seed: int = 1, relevant_rank: int = 3):
    """Labels of the lists' own top 10, the lists, and controls, all by one judge who accepts a share of anything."""
    rng = np.random.default_rng(seed)
    labels, run, drawn = {}, {}, {}
    for i in range(QUERIES):
        query = f"q{i}"
        run[query] = [f"d{i % 60}-{rank}" for rank in range(1, 31)]
        hit = i % 5 != 0
        labels[query] = {
            passage: int(rng.random() < accepts or (hit and rank == relevant_rank))
            for rank, passage in enumerate(run[query][:K], 1)
        }
        drawn[query] = {f"c{i}-{j}": int(rng.random() < accepts) for j in range(number)}
    return labels, {"own": run}, drawn


def report(judge=None, **options):
    labels, runs, drawn = judged_by(0.4, number=3) if judge is None else judge
    asked = {"corpus_size": SIZE, "controls": drawn, "depths": [K], "measures": ["BoR", "Success"], "scale": "trec"}
    return rs.evaluate(labels, runs, **asked | options)


# -- without a model ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "hits", "of_bound", "times"),
    # Of more controls than slots, ten of thirty hold the only relevant one in a third of the cases.
    [(5, 30, 30, 2), (10, 30, 30, 1), (30, 30, 10, 1), (3, 0, 0, 10 / 3)],
)
def test_what_is_shown_is_the_bound_of_clopper_and_pearson(number, hits, of_bound, times) -> None:
    labels, runs, drawn = judged_by(0.0, number=number)
    labels = {query: {**row, f"d{int(query[1:]) % 60}-3": 1} for query, row in labels.items()}
    for i in range(hits):
        drawn[f"q{i}"][f"c{i}-0"] = 1
    most = times * beta.ppf(0.975, of_bound + 1, QUERIES - of_bound) + 10 / SIZE
    shown = report((labels, runs, drawn))["BoR@10"].shown
    assert shown == pytest.approx(np.log2(0.025 ** (1 / QUERIES) / min(1.0, most)), abs=1e-9)


def test_a_query_with_a_failed_grading_does_not_spoil_the_rest() -> None:
    labels, runs, drawn = judged_by(0.0, number=10)
    one_less = {**drawn, "q0": dict(list(drawn["q0"].items())[:9])}
    whole, less = (report((labels, runs, each))["BoR@10"].shown for each in (drawn, one_less))
    assert whole - 0.2 < less < whole


def test_controls_as_many_as_the_draw_need_no_model_of_their_likeness() -> None:
    """A fifth of the queries accepts every passage in five: no beta distribution of rates."""
    labels, runs, drawn = judged_by(0.0, number=40)
    rng = np.random.default_rng(3)
    accepts = {query: 0.2 * (rng.random() < 0.2) for query in drawn}
    drawn = {q: {p: int(rng.random() < accepts[q]) for p in row} for q, row in drawn.items()}
    none = {query: {f"d{int(query[1:]) % 60}-1": 0} for query in labels}
    found = report((none, runs, drawn), measures=["RandomSuccess"])["RandomSuccess@10"]
    truth = np.mean([1 - (1 - accepts[query]) ** 10 for query in drawn])
    assert found.low < truth < found.high
    assert found.value == pytest.approx(truth, abs=0.02)


# -- known judges ------------------------------------------------------------------------------------------


def test_a_judge_that_rolls_dice_is_shown_to_say_nothing() -> None:
    bits = report()["BoR@10"]
    assert bits.low < 0 < bits.high < 0.2
    assert abs(bits.value) < 0.05
    assert bits.shown is not None
    assert bits.shown < 0
    assert bits.basis == "with controls"
    assert bits.as_judged == pytest.approx(report(controls=None)["BoR@10"].value, abs=1e-12)
    assert bits.as_judged > 5


def test_intervals_cover_the_truth_and_what_is_shown_is_true(trial) -> None:
    """A short form of benchmarks/trust_tables/controls.py, with the ugly worlds in it."""
    worlds = [world for world in trial.made() if world.size == 100_000]
    rows = [line.figures for line in trial.controls_rows(25, DATA, worlds=worlds, numbers=(3, 10))]
    assert min(row["holds"] for row in rows) >= 0.8
    assert np.mean([row["holds"] for row in rows]) >= 0.92
    assert np.mean([row["holds: shown bits"] for row in rows]) >= 0.98


def test_on_cranfield_the_estimate_is_near_the_truth(trial) -> None:
    worlds = trial.cranfield(DATA / "cranfield")
    if not worlds:
        pytest.skip("Cranfield is not here")
    lines = trial.controls_rows(25, DATA, worlds=worlds, numbers=(10,))
    assert lines[0].cell.startswith("Cranfield, people")
    assert lines[0].figures["truth"] == pytest.approx(5.21, abs=0.01)
    for row in (line.figures for line in lines):
        assert abs(row["BoR"] - row["truth"]) < 0.15
        assert row["holds"] >= 0.8
        assert row["holds: shown bits"] >= 0.96


def test_held_out_judges_are_covered_too(trial) -> None:
    """30 queries, rules as judges."""
    if not (DATA / "scifact").is_dir():
        pytest.skip("SciFact is not here")
    for world in ("SciFact, BM25, overlap ≥ .2", "Cranfield, LSA, accepts nearly all"):
        row = trial.held_out_row((world, 30, 10, 10), 15, DATA).figures
        assert row["holds"] >= 0.8
        assert row["holds: shown bits"] >= 0.9


def test_a_judge_that_accepts_nearly_all_shows_nothing_on_either_side() -> None:
    bits = report(judged_by(0.99, number=3))["BoR@10"]
    assert bits.low < 0 <= bits.high < 0.01


def test_controls_that_differ_less_than_by_chance_are_not_extended_beyond_equal_rates() -> None:
    """Whatever the rates, 10 passages miss at least as often as at equal ones (Jensen), by what is known of them."""
    found = report(judged_by(0.45, number=3, seed=13), depths=[1, 5, K], measures=["RandomSuccess"])
    for depth in (5, K):
        figure = found[f"RandomSuccess@{depth}"]
        assert figure.low < 1 - 0.55**depth < figure.high
        assert 1 - figure.value >= (1 - found["RandomSuccess@1"].high) ** depth


def test_every_chance_corrected_figure_rests_on_the_same_baseline() -> None:
    measures = ["BoR", "EF", "RandomSuccess", "BoR_max", "lambda"]
    figures = report(judged_by(0.01, number=20), measures=measures)
    value = {measure: figures[f"{measure}@10"].value for measure in measures}
    assert {figures[f"{measure}@10"].basis for measure in measures} == {"with controls"}
    assert value["EF"] == pytest.approx(2 ** value["BoR"], rel=1e-3)
    assert value["BoR_max"] == pytest.approx(-np.log2(value["RandomSuccess"]), abs=1e-3)
    # Rare relevant passages: a draw succeeds about as often as it holds one.
    assert value["lambda"] == pytest.approx(-np.log(1 - value["RandomSuccess"]), rel=0.25)
    assert value["RandomSuccess"] == pytest.approx(1 - 0.99**10, rel=0.35)


def test_two_hits_are_undefined_with_the_reason() -> None:
    bits = report(measures=["BoR(m=2)"])["BoR(m=2)@10"]
    assert np.isnan(bits.value)
    assert "m=1 only" in str(bits.reason)
    assert bits.as_judged is not None


def test_clusters_of_queries_widen_the_interval() -> None:
    judge = judged_by(0.05, number=10)
    groups = {query: int(query[1:]) // 12 for query in judge[0]}
    alone, together = (report(judge, bootstrap=rs.Bootstrap(clusters=of))["BoR@10"] for of in (None, groups))
    assert together.shown < alone.shown
    assert together.high - together.low >= 0.95 * (alone.high - alone.low)


def test_clusters_of_one_query_each_are_no_clusters() -> None:
    judge, groups = judged_by(0.05, number=3), {f"q{i}": i for i in range(QUERIES)}
    alone, each = (report(judge, bootstrap=rs.Bootstrap(clusters=of))["BoR@10"] for of in (None, groups))
    assert each == alone


# -- no relevant control -----------------------------------------------------------------------------------


def test_nothing_lies_between_two_ends_where_no_list_has_a_relevant_passage() -> None:
    queries = [f"q{i}" for i in range(12)]
    controls, run = {query: {"c": 0} for query in queries}, {query: ["x"] for query in queries}
    kind = {query: "ab"[i % 2] for i, query in enumerate(queries)}
    about = {"controls": controls, "corpus_size": 100, "depths": [1], "measures": ["BoR"], "by": {"kind": kind}}
    found = rs.evaluate({query: {"d": 1, "x": 0} for query in queries}, {"r": run}, **about)
    why = "none of the {} controls is relevant, and no list has a relevant passage in its top 1"
    assert found["BoR@1"].reason == why.format(12)
    assert f"no BoR@1 of a, b: {why.format(6)}" in " ".join(found.details().split())


def test_without_a_relevant_control_the_figure_is_between_two_ends() -> None:
    result = report(judged_by(0.0, number=3))
    bits = result["BoR@10"]
    assert np.isnan(bits.value)
    assert (bits.low, bits.high) == (pytest.approx(bits.shown), pytest.approx(bits.as_judged))
    assert "none of the 360 controls is relevant" in str(bits.reason)
    assert "low(BoR@10) or shown(BoR@10)" in str(bits.reason)
    assert f"BoR@10 ≥ {bits.low:.3f} {bits.shown:.3f}" in " ".join(result.details().split())
    decided = decide(result).lines[0].figures["BoR"].estimate
    assert np.isnan(decided.value)
    assert f"≥ {decided.low:.3f}" in decide(result).to_text()
    assert json.loads(result.to_json())["runs"]["own"]["measures"]["BoR@10"]["value"] is None


# -- where controls come from -------------------------------------------------------------------------------


def test_controls_are_no_labels() -> None:
    labels, runs, drawn = judged_by(0.3, number=6)
    graded = {query: {passage: 5 if grade else 1 for passage, grade in row.items()} for query, row in labels.items()}
    others = {query: {passage: 5 if grade else 1 for passage, grade in row.items()} for query, row in drawn.items()}
    shared = {"scale": "utility", "measures": ["RA-nWG", "Harm", "Judged", "AP", "Success"], "depths": [5, K]}
    alone = rs.evaluate(graded, runs, corpus_size=SIZE, **shared)
    beside = rs.evaluate(graded, runs, corpus_size=SIZE, controls=others, **shared)
    figures = [[str(each.to_dict()) for each in report.runs["own"].estimates.values()] for report in (alone, beside)]
    # All other labels are of what was retrieved: the caveat names the controls.
    assert figures[0] == [text.replace("label but the random controls", "label") for text in figures[1]]


def in_a_store(labels, drawn) -> Qrels:
    every = {query: row | drawn[query] for query, row in labels.items()}
    return with_origins(every, lambda _, p: Chosen.CONTROL if p.startswith("c") else Chosen.POOL, scale="trec")


def test_controls_of_a_store_and_separate_ones_give_the_same() -> None:
    labels, runs, drawn = judged_by(0.05, number=5)
    separate = report((labels, runs, drawn))
    stored = report((in_a_store(labels, drawn), runs, None))
    assert stored["BoR@10"] == separate["BoR@10"]
    facts = stored.runs["own"].input["controls"]
    assert facts["queries"] == QUERIES
    assert facts["graded"] == 5 * QUERIES
    assert facts["relevant"] == sum(grade for row in drawn.values() for grade in row.values())
    least = 0.025 ** (1 / QUERIES)
    assert facts["can_show"]["BoR@10"] == pytest.approx(np.log2(least / (2 * (1 - least))))


def test_a_control_in_the_list_is_left_out_and_counted() -> None:
    labels, runs, drawn = judged_by(0.05, number=5)
    # The list has it at rank 7, but the pool that was labelled did not.
    del labels["q3"]["d3-7"]
    moved = {**drawn, "q3": {"d3-7": 1}}
    result = report((labels, runs, moved))
    (note,) = [note for note in result.runs["own"].notes if "control" in note]
    assert note == "1 control is in the top 10 of the query's list, and left out of the controls there"
    without = {query: row for query, row in drawn.items() if query != "q3"}
    assert result["BoR@10"] == report((labels, runs, without))["BoR@10"]
    assert result["Success@10"] == report((labels, runs, without))["Success@10"]
    # At K = 5 the list does not hold it: it is a control like the others.
    assert report((labels, runs, moved), depths=[5])["BoR@5"] != report((labels, runs, without), depths=[5])["BoR@5"]


def test_a_control_with_a_label_is_a_label() -> None:
    labels, runs, drawn = judged_by(0.05, number=5)
    twice = {**drawn, "q2": {**drawn["q2"], "d2-1": labels["q2"]["d2-1"]}}
    assert report((labels, runs, twice))["BoR@10"] == report((labels, runs, drawn))["BoR@10"]


def test_a_control_that_people_call_relevant_keeps_the_grade_of_the_judge() -> None:
    labels, runs, drawn = judged_by(0.05, number=5)
    stored = in_a_store(labels, drawn)
    row = next(i for i, passage in enumerate(stored.passages) if passage == "c4-2")
    stored.grade[row] = 1
    stored.origins.by_person[row] = True
    stored.origins.judge_grade[row] = 0
    result = report((stored, runs, None))
    as_graded = {**drawn, "q4": {**drawn["q4"], "c4-2": 0}}
    assert result["BoR@10"].value == report((labels, runs, as_graded))["BoR@10"].value


def test_a_sampled_tail_stands_for_the_rest_of_it() -> None:
    labels, runs, drawn = judged_by(0.0, number=10)
    drawn["q1"]["c1-0"] = 1
    stored = in_a_store(labels, drawn)
    rows = np.flatnonzero([passage.endswith("-10") for passage in stored.passages])
    stored.origins.chosen[rows] = int(Chosen.TAIL)
    stored.origins.tail_size[rows] = 100
    stored.grade[rows] = 1
    plain = in_a_store(labels, drawn)
    plain.grade[rows] = 1
    tail, pooled = (report((of, runs, None), measures=["RandomSuccess"])["RandomSuccess@10"] for of in (stored, plain))
    # Each query has about 100 more relevant passages in 2,000.
    assert tail.value == pytest.approx(1 - 0.95**10, rel=0.1)
    assert tail.value > 10 * pooled.value
    # What is shown: all 120 queries succeed; a draw finds a relevant control, one of the tail's 99, or a known one.
    known = [1 - (1 - 10 / SIZE) * (1 - 10 / (SIZE - 1)) if i % 5 else 10 / SIZE for i in range(QUERIES)]
    chance = beta.ppf(0.975, 2, QUERIES - 1) + 10 * 99 / SIZE + np.mean(known)
    shown = report((stored, runs, None), measures=["BoR"])["BoR@10"].shown
    assert shown == pytest.approx(max(0.0, np.log2(0.025 ** (1 / QUERIES) / chance)), abs=1e-3)


def test_lambda_counts_what_two_labels_of_a_tail_stand_for() -> None:
    """λ is a mean of K/N · (known relevant + relevant of the tail) where no control is relevant."""
    labels, runs, drawn = judged_by(0.0, number=10)
    stored = in_a_store(labels, drawn)
    rows = np.flatnonzero([passage.startswith("d") and passage.endswith(("-9", "-10")) for passage in stored.passages])
    stored.origins.chosen[rows] = int(Chosen.TAIL)
    stored.origins.tail_size[rows] = 60
    first = np.array([row for row in rows.tolist() if stored.passages[row].endswith("-9")])
    before = {query: sum(grade > 0 for grade in stored[query].values()) for query in stored}
    stored.grade[first] = 1
    per_query = np.bincount(stored.query[first], minlength=len(stored))
    assert per_query.max() == 1
    known = np.array([before[query] for query in stored.queries]) + per_query
    labelled = np.bincount(stored.query[rows], minlength=len(stored))
    found = report((stored, runs, None), measures=["lambda"])["lambda@10"]
    expected = np.mean(10 / SIZE * (known + (60 - labelled) * per_query / labelled))
    assert found.low == pytest.approx(expected, rel=1e-12)
    # At the upper end, the controls' highest rate holds of every passage without a label and outside the tail.
    labels_of = np.bincount(stored.query[[not p.startswith("c") for p in stored.passages]], minlength=len(stored))
    outside = SIZE - labels_of - (60 - labelled)
    highest = beta.ppf(0.975, 1, QUERIES)
    assert found.high == pytest.approx(expected + np.mean(10 / SIZE * outside) * highest, rel=1e-9)


def test_the_ceiling_without_a_relevant_control_ends_where_the_random_draw_does() -> None:
    result = report(judged_by(0.0, number=10), measures=["RandomSuccess", "BoR_max"])
    chance, ceiling = result["RandomSuccess@10"], result["BoR_max@10"]
    assert (ceiling.low, ceiling.high) == pytest.approx((-np.log2(chance.high), -np.log2(chance.low)), rel=1e-9)


def test_what_is_shown_beside_tails_of_different_sizes_is_true() -> None:
    """One query of ten has a tail of 400 with 320 relevant passages; those of the others hold 12, and none."""
    labels, runs, drawn = judged_by(0.0, number=10)
    long = [f"q{i}" for i in range(0, QUERIES, 10)]
    for i in range(QUERIES):
        labels[f"q{i}"] |= {f"t{i}-{j}": int(f"q{i}" in long and j < 8) for j in range(10)}
    stored = in_a_store(labels, drawn)
    rows = np.flatnonzero([passage.startswith("t") for passage in stored.passages])
    stored.origins.chosen[rows] = int(Chosen.TAIL)
    stored.origins.tail_size[rows] = [400 if stored.queries[stored.query[row]] in long else 12 for row in rows]
    bits = report((stored, runs, None), measures=["BoR"])["BoR@10"]
    relevant = [(i % 5 != 0) + 320 * (f"q{i}" in long) for i in range(QUERIES)]
    chance = np.mean([1 - np.prod([1 - 10 / (SIZE - n) for n in range(each)]) for each in relevant])
    assert 1 < bits.shown <= np.log2(np.mean([i % 5 != 0 for i in range(QUERIES)]) / chance)


def test_tails_of_which_few_queries_have_labels_bound_what_a_draw_finds() -> None:
    labels, runs, drawn = judged_by(0.0, number=10)
    stored = in_a_store(labels, drawn)
    drawn_of_tail = {f"q{i}": ("-9", "-10")[: i % 3] for i in range(QUERIES)}
    rows = np.array(
        [
            row
            for row, passage in enumerate(stored.passages)
            if passage.startswith("d") and passage.endswith(drawn_of_tail[f"q{passage[1:].split('-')[0]}"] or ("none",))
        ]
    )
    stored.origins.chosen[rows] = int(Chosen.TAIL)
    stored.origins.tail_size[rows] = 60
    stored.grade[[row for row in rows if stored.passages[row].endswith("-9")][::3]] = 1
    shown = report((stored, runs, None), measures=["BoR"])["BoR@10"].shown
    queries = range(QUERIES)
    tails = [i for i in queries if i % 3]
    relevant = [i % 5 != 0 for i in queries]
    for i in tails[::3]:
        relevant[i] += 1
    # A label stands for 60 passages, or for 30 where two were drawn; the bound allows for one more of 60.
    weights = np.array([60 / (i % 3) for i in tails[::3]] + [60])
    total, variance = weights.sum(), (weights * (weights - 1)).sum()
    hits, trials = total**2 / variance, total * 60 * len(tails) / variance
    upper = beta.ppf(0.975, hits, trials - hits + 1) * 60 * len(tails) - len(tails[::3])
    known = [1 - np.prod([1 - 10 / (SIZE - n) for n in range(int(each))]) for each in relevant]
    outside = beta.ppf(0.975, 1, QUERIES)
    successes = sum(each > 0 for each in relevant)
    low = beta.ppf(0.025, successes, QUERIES - successes + 1)
    assert shown == pytest.approx(np.log2(low / (outside + upper / QUERIES * 10 / SIZE + np.mean(known))), abs=1e-3)


# -- what is printed, compared and advised -------------------------------------------------------------------


def test_a_paired_difference_in_bits_needs_no_baseline() -> None:
    labels, runs, drawn = judged_by(0.02, number=20)
    worse = {query: ids[5:] + ids[:5] if int(query[1:]) % 3 else ids for query, ids in runs["own"].items()}
    both = {"old": {q: [f"z{i}" for i in range(K)] if i % 4 == 0 else ids for i, (q, ids) in enumerate(worse.items())}}
    both["new"] = runs["own"]
    shared = {"corpus_size": SIZE, "measures": ["BoR", "EF"], "depths": [K], "scale": "trec"}
    plain, row = (rs.compare(labels, both, controls=controls, **shared)["new", "BoR@10"] for controls in (None, drawn))
    assert row.difference == pytest.approx(plain.difference)
    assert (row.low, row.high, row.p) == (plain.low, plain.high, plain.p)
    level = rs.evaluate(labels, both, controls=drawn, **shared)["old", "BoR@10"].value
    assert row.baseline_value == pytest.approx(level)
    assert row.value == pytest.approx(level + row.difference)
    ratio = rs.compare(labels, both, controls=drawn, **shared)["new", "EF@10"]
    assert "as-judged-baseline" in [caveat.code for caveat in ratio.caveats]
