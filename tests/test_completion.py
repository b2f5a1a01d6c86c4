"""Figures calibrated by people's labels: the completion of labels, and what evaluate, compare and sweep make of it."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict

import numpy as np
import pytest
from scipy import optimize

import rag_selectivity as rs
from rag_selectivity.judged.origins import Chosen, LabelOrigins
from rag_selectivity.measures import REGISTRY
from rag_selectivity.measures.base import parse_measure
from rag_selectivity.people.designs import calibrate_draw, tail_weights
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.trust.calibrated import Sampling, calibrated_figures
from rag_selectivity.trust.completion import Completion
from rag_selectivity.trust.ground import Ground, Places, Strata, tops
from rag_selectivity.trust.people import calibration_ground

pytestmark = pytest.mark.inside

MEASURES = ["Success", "BoR", "RA-nWG", "Harm"]


def world(queries: int = 40, passages: int = 25, seed: int = 1, judge_error: float = 0.0):
    """People's grades of all pairs, a judge that raises a share of them by one or two, and two runs."""
    random = np.random.default_rng(seed)
    ease = random.normal(0, 0.7, queries)
    human = {
        f"q{i}": {f"d{j}": int(np.clip(round(2 + ease[i] + random.normal(0, 1.2)), 1, 5)) for j in range(passages)}
        for i in range(queries)
    }
    judge = {
        q: {p: g if random.random() >= judge_error else min(5, g + int(random.integers(1, 3))) for p, g in row.items()}
        for q, row in human.items()
    }
    runs = {}
    for name, noise in (("one", 1.0), ("two", 2.5)):
        lists = {}
        for q, row in human.items():
            scores = np.array(list(row.values())) + random.normal(0, noise, passages)
            lists[q] = [f"d{j}" for j in np.argsort(-scores)[:15]]
        runs[name] = lists
    return human, judge, runs


def drawn(human, judge, runs, n: int, seed: int = 1, **options):
    some: dict[str, dict[str, int]] = {}
    named = {name: rs.Run.of(lists) for name, lists in runs.items()}
    for pair in calibrate_draw(rs.Qrels.of(judge), named, n, depth=10, seed=seed, **options):
        some.setdefault(pair.query, {})[pair.passage] = human[pair.query][pair.passage]
    return some


def evaluated(labels, runs, **options):
    return rs.evaluate(
        labels, runs, scale="utility", corpus_size=1000, depths=[10], **{"measures": MEASURES, **options}
    )


# -- the completion ---------------------------------------------------------------------------------


def test_the_mean_of_completions_follows_the_labels_of_each_stratum() -> None:
    random = np.random.default_rng(2)
    stratum, query = random.integers(0, 2, 4000), random.integers(0, 50, 4000)
    truth = np.where(stratum == 0, random.random(4000) < 0.8, random.random(4000) < 0.1).astype(np.int64)
    label = np.where(random.random(4000) < 0.1, truth, -1)
    completion = Completion(query, stratum, label, np.full((2, 2), 0.1), np.array([0.0, 1.0]), 50)
    draws = np.array(list(completion.draws(np.random.default_rng(0), 200)))
    known = label >= 0
    assert (draws[:, known] == truth[known]).all()
    for each in (0, 1):
        rows = (stratum == each) & ~known
        expected = truth[(stratum == each) & known].mean()
        assert draws[:, rows].mean() == pytest.approx(expected, abs=0.02)


def test_a_query_effect_is_learnt_from_the_labels_of_the_query() -> None:
    # Two queries of one stratum: in one all labels are relevant, in the other none.
    query = np.repeat([0, 1], 60)
    label = np.full(120, -1)
    label[:20], label[60:80] = 1, 0
    completion = Completion(query, np.zeros(120, np.int64), label, np.full((1, 2), 0.1), np.array([0.0, 1.0]), 2)
    draws = np.array(list(completion.draws(np.random.default_rng(0), 200)))
    assert draws[:, 20:60].mean() > draws[:, 80:].mean() + 0.2


@pytest.mark.parametrize("spread", [0.1, 0.7, 2.0])
def test_the_effect_of_a_query_is_the_mode_of_what_its_labels_say(spread) -> None:
    random = np.random.default_rng(4)
    query, stratum = random.integers(0, 6, 40), random.integers(0, 2, 40)
    label = random.integers(-1, 3, 40)
    label[query == 5] = -1
    steps, base = np.array([0.0, 1.0, 2.0]), random.dirichlet(np.ones(3), 2)
    completion = Completion(query, stratum, label, np.full((2, 3), 0.1), steps, 6)
    modes, deviations = completion._query_effects(base, spread)
    for each in range(6):
        known = (query == each) & (label >= 0)

        def log_density(effect: float, known=known) -> float:
            tilted = base[stratum[known]] * np.exp(effect * steps)
            chosen = tilted[np.arange(known.sum()), label[known]] / tilted.sum(axis=1)
            return float(np.log(chosen).sum() - effect**2 / (2 * spread**2))

        best = optimize.minimize_scalar(lambda effect, f=log_density: -f(effect), bounds=(-9, 9), method="bounded")
        assert modes[each] == pytest.approx(best.x, abs=1e-3)
        h = 1e-3
        curvature = (2 * log_density(best.x) - log_density(best.x + h) - log_density(best.x - h)) / h**2
        assert deviations[each] == pytest.approx(curvature**-0.5, rel=1e-3)


# -- evaluate -----------------------------------------------------------------------------------------


def test_labels_of_all_pairs_give_the_figures_of_people_exactly() -> None:
    human, judge, runs = world(judge_error=0.5)
    found, truth = evaluated(judge, runs, human=human), evaluated(human, runs)
    as_judged = evaluated(judge, runs)
    for run in runs:
        for name in MEASURES:
            figure = found[run, f"{name}@10"]
            assert figure.value == pytest.approx(truth[run, f"{name}@10"].value, abs=1e-12)
            assert figure.basis == "calibrated"
            assert figure.as_judged == as_judged[run, f"{name}@10"].value
            assert figure.as_judged_interval == (
                as_judged[run, f"{name}@10"].low,
                as_judged[run, f"{name}@10"].high,
            )


def test_with_a_perfect_judge_the_interval_holds_the_truth() -> None:
    human, judge, runs = world()
    found, truth = evaluated(judge, runs, human=drawn(human, judge, runs, 200)), evaluated(human, runs)
    for run in runs:
        for name in MEASURES:
            figure, true = found[run, f"{name}@10"], truth[run, f"{name}@10"].value
            assert figure.low <= true <= figure.high
            assert figure.value == pytest.approx(true, abs=0.15 if name == "BoR" else 0.06)


def test_a_judge_that_guesses_is_corrected_where_as_judged_is_wrong() -> None:
    human, judge, runs = world(queries=60, judge_error=0.6)
    truth = evaluated(human, runs)
    held = []
    for seed in range(3):
        found = evaluated(judge, runs, human=drawn(human, judge, runs, 200, seed))
        for run in runs:
            figure, true = found[run, "Harm@10"], truth[run, "Harm@10"].value
            assert abs(figure.value - true) < abs(figure.as_judged - true)
            held += [
                e.low <= truth[run, k].value <= e.high for k, e in found.runs[run].estimates.items() if "J" not in k
            ]
    assert np.mean(held) >= 0.95


def test_the_order_of_the_queries_changes_the_random_draws_alone() -> None:
    human, judge, runs = world(judge_error=0.3)
    some = drawn(human, judge, runs, 200)
    found = evaluated(judge, runs, human=some)
    turned = evaluated(dict(reversed(judge.items())), runs, human=dict(reversed(some.items())))
    for run in runs:
        for name in MEASURES:
            one, other = found[run, f"{name}@10"], turned[run, f"{name}@10"]
            assert one.as_judged == pytest.approx(other.as_judged, abs=1e-12)
            assert one.value == pytest.approx(other.value, abs=0.25 * (one.high - one.low))


def test_every_measure_is_calibrated_or_says_why_not() -> None:
    human, judge, runs = world(queries=15, judge_error=0.3)
    names = [name for name in REGISTRY if name not in ("Judged", "Redundancy")]
    report = evaluated(judge, {"one": runs["one"]}, human=drawn(human, judge, runs, 150), measures=names)
    for key, figure in report.runs["one"].estimates.items():
        if parse_measure(key).name != "Judged":
            assert figure.basis == "calibrated", key
            assert math.isfinite(figure.value) or figure.reason, key


@pytest.mark.parametrize("lacks", ["a stratum", "all but one query", "what is below the top"])
def test_what_labels_cannot_tell_is_undefined_with_the_reason(lacks) -> None:
    human, judge, runs = world(judge_error=0.3)
    some = drawn(human, judge, runs, 200)
    if lacks == "a stratum":
        some = {q: {p: g for p, g in row.items() if judge[q][p] != 4} for q, row in some.items()}
    elif lacks == "all but one query":
        some = {"q0": human["q0"]}
    else:
        some = {q: {p: human[q][p] for p in runs["one"][q][:10]} for q in list(human)[:20]}
    some = {q: row for q, row in some.items() if row}
    report = evaluated(judge, {"one": runs["one"]}, human=some)
    figure = report["RA-nWG@10"]
    assert math.isnan(figure.value)
    assert math.isnan(figure.low)
    assert not math.isnan(figure.as_judged)
    text = {"a stratum": "graded 4 in the top 10", "all but one query": "of one query"}.get(lacks, "outside the top 10")
    assert text in figure.reason
    assert any("no calibrated figure" in note for note in report.runs["one"].notes)


# -- compare and sweep --------------------------------------------------------------------------------


def test_the_verdict_the_interval_and_p_of_a_difference_agree() -> None:
    human, judge, runs = world(queries=80, judge_error=0.3)
    some = drawn(human, judge, runs, 300, differences=True)
    options = {"scale": "utility", "corpus_size": 1000, "depths": [10], "measures": MEASURES}
    found = rs.compare(judge, runs, human=some, **options)
    truth = rs.compare(human, runs, **options)
    for row in found.rows:
        if row.measure.name == "Judged":
            continue
        assert row.basis == "calibrated"
        assert row.as_judged is not None
        assert (row.p <= 0.05) == (not row.low <= 0 <= row.high)
        true = truth["two", str(row.measure)].difference
        assert row.low <= true <= row.high
    assert found["two", "Harm@10"].verdict == "worse"
    assert "differences as judged" in found.details()


def test_a_run_compared_with_itself_never_differs() -> None:
    human, judge, runs = world(queries=30, judge_error=0.5)
    same = {"one": runs["one"], "again": runs["one"]}
    some = drawn(human, judge, same, 200, differences=True)
    found = rs.compare(judge, same, human=some, scale="utility", corpus_size=1000, depths=[10])
    assert {row.verdict for row in found.rows if row.test} == {"no difference shown"}
    assert all(row.difference == 0 for row in found.rows if row.test)


def test_sweep_and_its_advice_rest_on_calibrated_figures() -> None:
    human, judge, runs = world(queries=40, judge_error=0.5)
    some = drawn(human, judge, runs, 300)
    options = {"scale": "utility", "corpus_size": 1000, "max_k": 10}
    found = rs.sweep(judge, {"one": runs["one"]}, human=some, **options)["one"]
    truth = rs.sweep(human, {"one": runs["one"]}, **options)["one"]
    wrong = rs.sweep(judge, {"one": runs["one"]}, **options)["one"]
    assert len(found.rows) == 10
    errors = [
        np.mean([abs(row["Harm"] - true["Harm"]) for row, true in zip(part.rows, truth.rows[:10], strict=False)])
        for part in (found, wrong)
    ]
    assert errors[0] < errors[1]
    assert found.recommendation.loss_high >= found.recommendation.loss


# -- tails -------------------------------------------------------------------------------------------------


def with_tail(ends=(100,), shares=(0.01,), queries: int = 60, graded: int = 20, sampled: int = 8, knows: bool = False):
    """A judge without any knowledge, or with all; of the pool's passages 3 in 10 are relevant.

    Lists end at each of some ranks in turn, and a share of the passages of such a list's tail is relevant.
    """
    random = np.random.default_rng(3)
    run = {f"q{i}": [f"d{j}" for j in range(ends[i % len(ends)])] for i in range(queries)}
    human = {
        q: {p: 5 if random.random() < (0.3 if j < graded else shares[i % len(ends)]) else 1 for j, p in enumerate(row)}
        for i, (q, row) in enumerate(run.items())
    }
    records, tail, size = [], [], []
    for query, row in run.items():
        below = random.choice(row[graded:], sampled, replace=False).tolist()
        records += [
            (query, passage, human[query][passage] if knows else int(random.choice([1, 3, 5])))
            for passage in (*row[:graded], *below)
        ]
        tail += [False] * graded + [True] * sampled
        size += [0] * graded + [len(row) - graded] * sampled
    in_tail = np.array(tail)
    labels = rs.Qrels.from_records(records, scale="utility")
    labels.origins = LabelOrigins(
        np.where(in_tail, int(Chosen.TAIL), int(Chosen.POOL)).astype(np.uint8),
        np.zeros(len(tail), bool),
        labels.grade,
        np.array(size),
        tail_ranks=(graded + 1, max(ends)),
    )
    return human, labels, {"one": rs.Run.of(run)}


def relevant_of_all(human) -> float:
    return float(np.mean([sum(g >= 4 for g in row.values()) for row in human.values()]))


def completed_relevant(labels, runs, people) -> float:
    """Relevant passages of a query, over completions."""
    ground, _ = calibration_ground(labels, people)
    judged = {"one": rs.join(labels, runs["one"], corpus_size=1000, scale="utility")}
    strata = Strata.of(ground, Places.of_run(tops(judged, labels, 10), "one", "top 10"))
    assert strata.missing is None
    tables = [table[:, strata.levels >= 4].sum(axis=1).mean() for _, table in strata.draws(60, (1,))]
    return float(np.mean(tables))


def test_a_tail_is_as_relevant_as_peoples_labels_of_the_tail_say() -> None:
    human, labels, runs = with_tail()
    relevant = []
    for seed in range(3):
        people: dict[str, dict[str, int]] = {}
        for pair in calibrate_draw(labels, runs, 300, seed=seed):
            people.setdefault(pair.query, {})[pair.passage] = human[pair.query][pair.passage]
        relevant.append(completed_relevant(labels, runs, people))
    truth = relevant_of_all(human)
    assert truth == pytest.approx(6.8, abs=0.5)
    assert float(np.mean(relevant)) == pytest.approx(truth, rel=0.2)


@pytest.mark.parametrize(("ends", "shares"), [((30, 220), (0.3, 0.0)), ((30, 220), (0.02, 0.2))])
def test_tails_of_different_sizes_are_completed_by_what_each_label_stands_for(ends, shares) -> None:
    """A label of a tail of 10 stands for 2 passages, and one of 200 for 24: pooled, they would count alike."""
    human, labels, runs = with_tail(ends, shares, knows=True)
    assert completed_relevant(labels, runs, None) == pytest.approx(relevant_of_all(human), rel=0.15)
    figure = rs.evaluate(labels, runs, scale="utility", depths=[10], measures=["R"])["R@10"]
    truth = rs.evaluate(human, runs, scale="utility", depths=[10], measures=["R"], bootstrap=None)["R@10"]
    assert figure.low <= truth.value <= figure.high

    human, labels, runs = with_tail(ends, shares)
    relevant = []
    for seed in range(4):
        people: dict[str, dict[str, int]] = {}
        for pair in calibrate_draw(labels, runs, 300, seed=seed):
            people.setdefault(pair.query, {})[pair.passage] = human[pair.query][pair.passage]
        relevant.append(completed_relevant(labels, runs, people))
    assert float(np.mean(relevant)) == pytest.approx(relevant_of_all(human), rel=0.25)


def test_labels_of_unequal_tails_weigh_as_the_docs_say() -> None:
    """By hand: w = (T − t)/t for the judge's grades, T/t for people's, and n·W(g)/W for n = W²/Σw²."""
    human, labels, runs = with_tail((25, 60, 200), (0.4, 0.1, 0.02), sampled=4)
    in_tail = labels.origins.are(Chosen.TAIL)
    size = dict(zip(labels.query[in_tail].tolist(), labels.origins.tail_size[in_tail].tolist(), strict=True))
    random = np.random.default_rng(6)
    asked = {(int(q), p) for q, p in zip(labels.query, labels.passages, strict=True) if random.random() < 0.5}
    people: dict[str, dict[str, int]] = {}
    of_judge, of_people = defaultdict(list), defaultdict(list)
    for query, passage, grade, tail in zip(labels.query.tolist(), labels.passages, labels.grade, in_tail, strict=True):
        if tail:
            of_judge[int(grade)].append((size[query] - 4) / 4)
        if (query, passage) in asked:
            given = people.setdefault(labels.queries[query], {})[passage] = human[labels.queries[query]][passage]
            if tail:
                of_people[int(grade), given].append(size[query] / 4)
    ground, _ = calibration_ground(labels, people)
    judged = {"one": rs.join(labels, runs["one"], corpus_size=1000, scale="utility")}
    strata = Strata.of(ground, Places.of_run(tops(judged, labels, 10), "one", "top 10"))

    def parameters(weights):
        every = np.concatenate(weights)
        return [every.sum() * sum(each) / (every**2).sum() for each in weights]

    levels = strata.levels.tolist()
    assert strata.tail.counts[2].tolist() == pytest.approx(parameters([of_judge[level] for level in levels]))
    for grade in (1, 3, 5):
        row = strata.completion.counts[strata.tail_strata[levels.index(grade)]]
        assert row.tolist() == pytest.approx(parameters([of_people[grade, level] for level in levels]))


def test_a_tail_shrinks_as_its_drawn_passages_are_pooled_later() -> None:
    """A second run, graded into the same store, brings relevant passages of the tail sooner than others."""
    random = np.random.default_rng(0)
    rows: list[tuple[str, str, int]] = []
    chosen: list[int] = []
    still_open = 0
    for query in range(600):
        relevant = random.random(60) < 0.1
        pooled = random.random(60) < np.where(relevant, 0.7, 0.3)
        drawn = np.zeros(60, bool)
        drawn[random.choice(60, 6, replace=False)] = True
        still_open += int((relevant & ~pooled & ~drawn).sum())
        for j in np.flatnonzero(pooled | drawn).tolist():
            rows.append((f"q{query}", f"q{query}-{j}", 5 if relevant[j] else 1))
            chosen.append(Chosen.TAIL * int(drawn[j]) | Chosen.POOL * int(pooled[j]))
    labels = rs.Qrels.from_records(rows, scale="utility")
    assert [(labels.queries[q], p) for q, p in zip(labels.query, labels.passages, strict=True)] == [r[:2] for r in rows]
    flags = np.array(chosen, np.uint8)
    labels.origins = LabelOrigins(
        flags, np.zeros(len(rows), bool), labels.grade, np.where(flags & int(Chosen.TAIL), 60, 0), tail_ranks=(11, 70)
    )
    ground = Ground.of(labels, np.full(len(rows), -1), scale_named("utility"))
    counted = float(ground.open_of_a_label[labels.grade == 5].sum())
    assert counted == pytest.approx(still_open, rel=0.1)
    assert tail_weights(labels)[ground.in_tail] == pytest.approx(1 + ground.open_of_a_label[ground.in_tail])


def test_a_tail_without_labels_follows_the_rest_of_the_pool() -> None:
    human, labels, runs = with_tail()
    people = {q: {p: human[q][p] for p in row[:20:2]} for q, row in {q: runs["one"][q] for q in human}.items()}
    # All 100 passages are then as relevant as the pool's 20, by the labels and not by the prior.
    assert completed_relevant(labels, runs, people) == pytest.approx(30, rel=0.15)


# -- real judges: a short form of benchmarks/trust_tables/calibrated.py --------------------------------------


@pytest.fixture(scope="module")
def benchmark(data):
    reason = "the benchmarks are not beside these tests"
    module = pytest.importorskip("benchmarks.trust_tables.calibrated", reason=reason)

    module.worlds.SHARED = data
    return module


@pytest.mark.slow
def test_four_llm_judges_and_two_hundred_labels(benchmark) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = np.concatenate(
            [
                benchmark.trial(benchmark.Cell("judges", f"judges:{judge}", 200, range(2)))
                for judge in benchmark.worlds.JUDGES
            ]
        )
    for place, most in enumerate((0.04, 0.07, 0.24)):
        of_measure = rows[rows[:, 0] == place]
        assert np.nanmean(of_measure[:, 1]) <= most
        assert np.nanmean(of_measure[:, 3]) >= 0.9
        assert np.nanmean(of_measure[:, 4]) >= 0.95


def test_a_tail_is_completed_down_to_its_last_rank(benchmark) -> None:
    worlds = benchmark.worlds
    for judge in ("people", "dice"):
        world = worlds.world_of(f"Cranfield, BM25, {judge}")
        tail = worlds.with_tail(world.judge.to_dict(), 1)
        joins = [benchmark.joined(world, labels)["run"] for labels in (world.judge, tail)]
        ground, _ = calibration_ground(tail, None)
        measure, at = parse_measure("RA-nWG"), np.array([10])
        figure = calibrated_figures(ground, {"run": joins[1]}, [(measure, at)], Sampling(draws=60))["run"]["RA-nWG@10"]
        true, as_judged = (float(measure.outcome(join, at).value()[0]) for join in joins)
        assert figure.fixed_low <= true <= figure.fixed_high
        assert abs(figure.value - true) < abs(as_judged - true)
