"""Agreement against scikit-learn, krippendorff and scipy; correction by human labels in worlds of known truth."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score, confusion_matrix

import rag_selectivity as rs
from rag_selectivity.grading.store import Label, Settings, Store, digest
from rag_selectivity.statistics.agreement import agreement
from rag_selectivity.statistics.prediction_powered import prediction_powered_mean
from tests.reference import read_trec_qrels

JUDGES = ["Olz-gpt4o", "RMITIR-llama38b", "TREMA-direct", "willia-umbrela1"]
FEW = rs.Bootstrap(resamples=50)


def gwet_ac2(first, second, levels) -> float:
    """By the definition, pair by pair, with quadratic weights."""
    spread = levels[-1] - levels[0]
    weight = {(k, m): 1 - (k - m) ** 2 / spread**2 for k in levels for m in levels}
    observed = np.mean([weight[a, b] for a, b in zip(first, second, strict=True)])
    prevalence = [(np.mean(np.array(first) == k) + np.mean(np.array(second) == k)) / 2 for k in levels]
    q = len(levels)
    by_luck = sum(weight.values()) / (q * (q - 1)) * sum(p * (1 - p) for p in prevalence)
    return (observed - by_luck) / (1 - by_luck)


@pytest.mark.parametrize("judge", JUDGES)
def test_every_figure_on_the_llm_judges_equals_the_libraries(data, judge) -> None:
    folder = data / "judges"
    report = rs.agree(folder / "human.qrels", folder / f"{judge}.qrels", scale="trec", bootstrap=FEW)
    found = report.agreement
    human, other = read_trec_qrels(folder / "human.qrels"), read_trec_qrels(folder / f"{judge}.qrels")
    pairs = [(q, g, other[q][p]) for q, row in human.items() for p, g in row.items()]
    _, first, second = (list(column) for column in zip(*pairs, strict=True))
    assert (found.n, found.queries) == (len(pairs), 25) == (4423, 25)
    assert found.exact.value == pytest.approx(np.mean(np.array(first) == second))
    assert found.within_one.value == pytest.approx(np.mean(np.abs(np.subtract(first, second)) <= 1))
    for name, weights in (("kappa", None), ("kappa_linear", "linear"), ("kappa_quadratic", "quadratic")):
        assert getattr(found, name).value == pytest.approx(cohen_kappa_score(first, second, weights=weights), rel=1e-12)
    alpha = krippendorff.alpha([first, second], level_of_measurement="ordinal")
    assert found.alpha.value == pytest.approx(alpha, rel=1e-9)
    assert found.spearman.value == pytest.approx(stats.spearmanr(first, second).statistic, rel=1e-12)
    assert found.ac2.value == pytest.approx(gwet_ac2(first, second, list(found.levels)), rel=1e-12)
    assert found.bias.value == pytest.approx(np.mean(np.subtract(second, first)))
    assert found.confusion.tolist() == confusion_matrix(first, second).tolist()
    for grade, bias in found.bias_by_grade.items():
        assert bias.value == pytest.approx(np.mean([b - a for a, b in zip(first, second, strict=True) if a == grade]))
    for interval in (found.exact, found.kappa_quadratic, found.ac2, found.alpha, found.spearman):
        assert interval.low < interval.value < interval.high


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=30))
@settings(max_examples=80, deadline=None)
def test_small_tables_equal_the_libraries_or_are_undefined(pairs) -> None:
    first, second = (list(column) for column in zip(*pairs, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = agreement(first, second, ["q"] * len(pairs), bootstrap=rs.Bootstrap(resamples=2))
    assert np.isnan(found.exact.low)  # one query has no interval
    seen = sorted({*first, *second})
    if len(seen) == 1:
        assert np.isnan(found.kappa.value)
        assert found.exact.value == 1
        return
    labels = list(range(seen[0], seen[-1] + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kappa = cohen_kappa_score(first, second, labels=labels, weights="quadratic")
        spearman = stats.spearmanr(first, second).statistic
    assert found.kappa_quadratic.value == pytest.approx(kappa, nan_ok=True)
    assert found.spearman.value == pytest.approx(spearman, nan_ok=True)
    alpha = krippendorff.alpha([first, second], level_of_measurement="ordinal", value_domain=labels)
    assert found.alpha.value == pytest.approx(alpha)
    assert found.ac2.value == pytest.approx(gwet_ac2(first, second, labels))


def test_intervals_keep_queries_together() -> None:
    rng = np.random.default_rng(0)
    held = {"together": 0, "apart": 0}
    for _ in range(150):
        # The judge is good at some queries and bad at others.
        skill = rng.choice([0.4, 0.95], 30)
        right = rng.random((30, 20)) < skill[:, None]
        human = rng.integers(1, 6, (30, 20))
        judge = np.where(right, human, human % 5 + 1)
        queries = np.repeat([f"q{i}" for i in range(30)], 20)
        for name, groups in (("together", queries), ("apart", [str(i) for i in range(600)])):
            exact = agreement(human.ravel(), judge.ravel(), groups, bootstrap=rs.Bootstrap(resamples=200)).exact
            held[name] += exact.low <= 0.675 <= exact.high
    assert held["together"] / 150 > 0.9
    assert held["apart"] / 150 < 0.75


@pytest.mark.parametrize(
    ("noise", "shift", "verdict"), [(0.0, 0, "fit"), (0.0, 1, "fit to rank systems"), (1.0, 0, "unfit")]
)
def test_the_verdict(noise, shift, verdict) -> None:
    rng = np.random.default_rng(1)
    human = rng.integers(1, 5, 800)
    judge = np.where(rng.random(800) < noise, rng.integers(1, 6, 800), human + shift)
    found = agreement(human, judge, [f"q{i % 40}" for i in range(800)], bootstrap=rs.Bootstrap(resamples=500))
    assert found.verdict == verdict


# -- the report and the command line --------------------------------------------------------------


def test_the_json_has_the_keys_that_were_promised(data) -> None:
    folder = data / "judges"
    done = subprocess.run(
        f"{sys.executable} -m rag_selectivity agree --human human.qrels --labels {JUDGES[0]}.qrels --scale trec"
        " --format json --resamples 200".split(),
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    for name in ("exact", "within_one", "kappa", "kappa_linear", "kappa_quadratic", "ac2", "alpha", "spearman", "bias"):
        assert set(found[name]) >= {"value", "low", "high"}
        assert found[name]["low"] <= found[name]["value"] <= found[name]["high"]
    assert found["n"] == 4423
    assert sum(map(sum, found["confusion"]["counts"])) == 4423
    assert found["verdict"] in ("fit", "fit to rank systems", "unfit")
    assert set(found["per_query"]["exact"]) == {"lowest", "quarter", "median", "three_quarters", "highest"}


def test_systems_under_both_labels(data) -> None:
    folder = data / "judges"
    human = read_trec_qrels(folder / "human.qrels")
    rng = np.random.default_rng(0)
    # Systems that find what humans like, more or less.
    runs = {
        f"s{i}": {
            q: sorted(row, key=lambda p, row=row, w=weight: -(w * row[p] + rng.normal())) for q, row in human.items()
        }
        for i, weight in enumerate((0.0, 0.5, 1.0, 2.0))
    }
    options = {"grade_map": "0:1,1:3,2:4,3:5", "labels_grade_map": "0:1,1:3,2:4,3:5", "bootstrap": FEW}
    report = rs.agree(
        folder / "human.qrels", folder / f"{JUDGES[0]}.qrels", runs=runs, corpus_size=100_000, depths=[5], **options
    )
    assert {str(row.measure) for row in report.figures} == {"BoR@5", "RA-nWG@5", "Harm@5"}
    assert report.tau["RA-nWG@5"] > 0.6
    for labels, side in ((folder / "human.qrels", "human"), (folder / f"{JUDGES[0]}.qrels", "judge")):
        expected = rs.evaluate(
            labels,
            runs,
            corpus_size=100_000,
            scale="utility",
            grade_map="0:1,1:3,2:4,3:5",
            measures=["BoR@5", "RA-nWG@5"],
            bootstrap=None,
        )
        for row in report.figures:
            if row.measure.name != "Harm":
                assert getattr(row, side) == pytest.approx(expected[row.run, row.measure].value)
    text = report.to_text()
    assert "Kendall's tau of the runs under RA-nWG@5" in text
    assert "| s0 | BoR@5 |" in report.to_markdown()


def test_a_store_on_either_side_and_a_judge_beside_itself(tmp_path) -> None:
    path = tmp_path / "labels.db"
    with Store(path) as store:
        number = store.settings_id(Settings("grade", "m", {}, "utility", "r", "1"))
        pairs = [(f"q{i}", f"d{j}") for i in range(6) for j in range(5)]
        store.connection.executemany(
            "INSERT INTO pairs VALUES (?, ?, ?, ?)", [(q, p, digest(q), digest(p)) for q, p in pairs]
        )
        for sample, shift in ((0, 0), (1, 1)):
            store.put(
                [Label((number, digest(q), digest(p), sample), min(5, 1 + int(p[1:]) + shift)) for q, p in pairs]
            ).result()
        store.put_human([(q, p, 1 + int(p[1:]), None) for q, p in pairs if q in ("q0", "q1", "q2")], "alice")
    report = rs.agree(path, path, bootstrap=FEW)
    assert (report.agreement.n, report.agreement.exact.value) == (15, 1.0)  # the lower median is the first sample
    assert report.itself.n == 30
    assert report.itself.exact.value == pytest.approx(1 / 5)
    # The judge graded three more queries, so that means over all of them can be corrected.
    assert report.corrected["mean_grade"].value == pytest.approx(3)
    assert report.corrected["mean_grade"].n_judge == 15
    with pytest.raises(rs.InputError, match="no pair was graded by both"):
        rs.agree({"x": {"d": 1}}, path)
    with pytest.raises(rs.InputError, match="choose among the judges of a label store"):
        rs.agree(path, {"q0": {"d0": 1}}, judges=["m"])


# -- correction -----------------------------------------------------------------------------------

WORLDS = {
    "a biased judge": lambda rng, y: np.clip(y + 1 + rng.normal(0, 0.7, y.shape), 1, 5),
    "a constant judge": lambda rng, y: np.full(y.shape, 4.0),
    "a judge that guesses": lambda rng, y: rng.normal(3, 1, y.shape),
    "correlated pairs": lambda rng, y: np.clip(y + rng.normal(0.3, 0.7, y.shape), 1, 5),
    "few queries": lambda rng, y: np.clip(y + 0.5 + rng.normal(0, 0.7, y.shape), 1, 5),
}


@pytest.mark.parametrize("name", WORLDS)
def test_corrected_intervals_hold_the_truth_where_the_judges_own_does_not(name) -> None:
    rng = np.random.default_rng(list(WORLDS).index(name))
    labelled, all_queries, pairs = (8, 40, 20) if name == "few queries" else (30, 150, 10)
    spread = 0.8 if name == "correlated pairs" else 0.4

    def drawn(queries) -> np.ndarray:
        ease = rng.normal(0, spread, (queries, 1))
        return np.clip(np.round(3 + ease + rng.normal(0, 1, (queries, pairs))), 1, 5)

    truth = np.mean([drawn(20_000).mean() for _ in range(5)])
    queries = np.repeat(np.arange(all_queries), pairs).tolist()
    trials, held, human_held, naive_held, narrower = 600, 0, 0, 0, []
    for _ in range(trials):
        y = drawn(all_queries)
        judge = WORLDS[name](rng, y)
        human = np.where(np.arange(all_queries)[:, None] < labelled, y, np.nan)
        found = prediction_powered_mean(human.ravel(), judge.ravel(), queries)
        held += found.low <= truth <= found.high
        human_held += found.human_low <= truth <= found.human_high
        naive_held += abs(judge.mean() - truth) < 1.96 * judge.std() / np.sqrt(judge.size)
        narrower.append((found.high - found.low) / (found.human_high - found.human_low))
    assert 0.93 <= held / trials <= 0.985
    assert 0.92 <= human_held / trials <= 0.98
    assert max(narrower) <= 1 + 1e-12  # never wider than the human labels alone
    if name == "a judge that guesses":
        assert naive_held / trials > 0.9  # it happens to guess around the truth
    else:
        assert naive_held / trials < 0.3
    if name not in ("a constant judge", "a judge that guesses"):
        assert np.median(narrower) < 0.75


@pytest.mark.parametrize("judge", JUDGES)
def test_ten_human_queries_correct_a_real_judge(data, judge) -> None:
    # Of 25 queries with both labels ten are drawn as the human's: do they and the judge find the mean of all?
    human, other = (read_trec_qrels(data / "judges" / f"{name}.qrels") for name in ("human", judge))
    pairs = [(q, p) for q, row in human.items() for p in row]
    said = np.array([human[q][p] for q, p in pairs], float)
    predicted = np.array([other[q][p] for q, p in pairs], float)
    names = sorted(human)
    of_pair = np.array([names.index(q) for q, _ in pairs])
    rng = np.random.default_rng(3)
    held, naive, ratios = 0, 0, []
    for _ in range(200):
        known = np.isin(of_pair, rng.choice(len(names), 10, replace=False))
        found = prediction_powered_mean(np.where(known, said, np.nan), predicted, of_pair.tolist())
        held += found.low <= said.mean() <= found.high
        ratios.append((found.high - found.low) / (found.human_high - found.human_low))
        spread = 1.96 * predicted.std() / np.sqrt(len(predicted))
        naive += abs(predicted.mean() - said.mean()) <= spread
    assert held / 200 >= 0.93
    assert naive in (0, 200)  # the judge's own mean is what it is; for most judges it is off
    assert np.median(ratios) <= 1


def test_the_weight_and_the_estimate_by_hand() -> None:
    human = np.array([1.0, 2.0, 4.0, 5.0, np.nan, np.nan, np.nan, np.nan])
    judge = np.array([1.5, 2.0, 4.5, 5.0, 2.0, 3.0, 4.0, 3.5])
    found = prediction_powered_mean(human, judge)
    y, f, g = human[:4], judge[:4], judge[4:]
    weight = np.mean((y - y.mean()) * (f - f.mean())) / 4 / (f.var() / 4 + g.var() / 4)
    assert found.weight == pytest.approx(min(1, weight))
    assert found.value == pytest.approx((y - found.weight * f).mean() + found.weight * g.mean())
    assert found.judge_only == pytest.approx(judge.mean())
    assert (found.n_human, found.n_judge, found.clusters) == (4, 4, 4)
    assert found.low < found.value < found.high


@pytest.mark.parametrize(
    ("human", "judge", "clusters", "message"),
    [
        ([1.0, np.nan], [1.0, 2.0], None, "at least two queries with both"),
        ([1.0], [1.0, 2.0], None, "one human and one judge value"),
        ([1.0, 2.0], [1.0, 2.0], ["q"], "2 values and 1 clusters"),
    ],
)
def test_mistakes_are_named(human, judge, clusters, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        prediction_powered_mean(human, judge, clusters)
