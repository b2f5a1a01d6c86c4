"""Weights of queries: as if each query were there so many times; equal weights change no digit; none are ignored."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.advice.costs import Costs
from rag_selectivity.advice.losses import losses_of
from rag_selectivity.errors import InputError
from rag_selectivity.gates import check
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.paired import paired_difference
from rag_selectivity.measures.base import Outcome
from rag_selectivity.measures.chance import BoR
from rag_selectivity.results.stored import read_report
from tests.test_slices import HARD, LABELS, QUERIES, RUNS

pytestmark = pytest.mark.inside

MEASURES = (
    "Success Success(m=2) BoR EF BoR_max BoR_opt BoR_recall lambda RA-nWG PROC %PROC %PROC(aggregate=ratio) Harm "
    "N-Recall4+ Precision4+ T Fe P R F AP RR nDCG IPrec@0.3 UDCG_grades DCG RBP ERR Judged"
)
OPTIONS = {"scale": "utility", "corpus_size": 500, "depths": [1, 3, 10], "measures": MEASURES.split()}
WEIGHTS = {query: 1 + (7 * i + 3 * i * i) % 11 for i, query in enumerate(QUERIES)}


def repeated(weights: dict[str, int]) -> tuple[dict, dict]:
    """The labels and the runs with each query as many times as its weight says."""
    copies = {query: [f"{query}/{copy}" for copy in range(weights[query])] for query in QUERIES}
    labels = {name: LABELS[query] for query in QUERIES for name in copies[query]}
    runs = {run: {name: p for query, p in lists.items() for name in copies[query]} for run, lists in RUNS.items()}
    return labels, runs


def test_a_weighted_decision_is_that_of_queries_repeated_so_many_times() -> None:
    labels, runs = repeated(WEIGHTS)
    options = {"scale": "utility", "corpus_size": 500, "bootstrap": None}
    weighted = rs.evaluate(LABELS, RUNS, weights=WEIGHTS, **options)
    by_hand = rs.evaluate(labels, runs, **options)
    first, second = decide(weighted), decide(by_hand)
    for run, advised in first.k_by_run.items():
        other = second.k_by_run[run]
        assert (advised.value, advised.reason) == (other.value, other.reason)
        assert np.allclose(advised.evidence, other.evidence, rtol=1e-12)
        joins = [report.runs[run].judged for report in (weighted, by_hand)]
        for k in (1, 3):
            losses = [losses_of(judged, rs.parse_measure(f"RA-nWG@{k}"), None) for judged in joins]
            gained = [(each.pool, each.selected, each.rerank, each.widen) for each in losses]
            assert np.allclose(*gained, rtol=1e-12, equal_nan=True)
    assert (first.best, first.K) == (second.best, second.K)
    with pytest.raises(InputError, match="a cost of reading cannot be weighted"):
        decide(weighted, costs=Costs(measured={"one": {"tokens": 9.0}}))
    plain = decide(rs.evaluate(LABELS, RUNS, **options))
    assert not np.allclose(plain.k_by_run["one"].evidence, first.k_by_run["one"].evidence)


def without_effective(figures):
    return {key: repr(replace(estimate, effective=None)) for key, estimate in figures.items()}


# -- figures ----------------------------------------------------------------------------------------------


def test_a_weighted_figure_is_that_of_queries_repeated_so_many_times() -> None:
    labels, runs = repeated(WEIGHTS)
    weighted = rs.evaluate(LABELS, RUNS, weights=WEIGHTS, bootstrap=None, **OPTIONS)
    by_hand = rs.evaluate(labels, runs, bootstrap=None, **OPTIONS)
    plain = rs.evaluate(LABELS, RUNS, bootstrap=None, **OPTIONS)
    for run in RUNS:
        assert weighted.runs[run].estimates.keys() == by_hand.runs[run].estimates.keys()
        for key, estimate in weighted.runs[run].estimates.items():
            other = by_hand.runs[run].estimates[key]
            assert estimate.value == pytest.approx(other.value, rel=1e-11, nan_ok=True), key
            assert (estimate.placebo is None) == (other.placebo is None), key
            if estimate.placebo is not None:
                assert estimate.placebo == pytest.approx(other.placebo, rel=1e-9, abs=1e-12), key
            if estimate.possible is not None:
                assert estimate.possible == pytest.approx(other.possible, rel=1e-11), key
            if estimate.n and not math.isnan(estimate.value):
                known = effective(plain.runs[run].per_query.get(key))
                assert estimate.effective == pytest.approx(known or estimate.effective)


def effective(values) -> float | None:
    """Kish's effective number of the queries with a figure, by hand; None for a measure without single figures."""
    if values is None:
        return None
    known = [Fraction(WEIGHTS[query]) for query, value in zip(QUERIES, values, strict=True) if value == value]
    return float(sum(known) ** 2 / sum(weight**2 for weight in known))


def test_differences_are_weighted() -> None:
    measures = ["Success", "BoR", "RA-nWG", "%PROC(aggregate=ratio)", "Harm", "nDCG"]
    labels, runs = repeated(WEIGHTS)
    weighted = rs.compare(LABELS, RUNS, weights=WEIGHTS, by=HARD, **{**OPTIONS, "measures": measures})
    by = {f"{query}/{copy}": HARD[query] for query in QUERIES for copy in range(WEIGHTS[query])}
    by_hand = rs.compare(labels, runs, by=by, **{**OPTIONS, "measures": measures})
    for row, other in zip(weighted.to_rows(), by_hand.to_rows(), strict=True):
        for name in ("value", "baseline_value", "difference"):
            assert row[name] == pytest.approx(other[name], rel=1e-10, abs=1e-12, nan_ok=True), row["measure"]
    row = weighted["other", "RA-nWG@3"]
    assert row.wins + row.ties + row.losses == row.n == 60 - (60 - row.n)
    assert row.effective is not None
    assert row.effective < row.n


@pytest.fixture(scope="module")
def plain() -> rs.Report:
    return rs.evaluate(LABELS, RUNS, by=HARD, **OPTIONS)


@pytest.mark.parametrize("weight", [2.5, 1e-200, 3e90])
def test_equal_weights_change_no_digit(weight, plain) -> None:
    weighted = rs.evaluate(LABELS, RUNS, by=HARD, weights=dict.fromkeys(QUERIES, weight), **OPTIONS)
    for run in RUNS:
        assert without_effective(weighted.runs[run].estimates) == without_effective(plain.runs[run].estimates)
        for value, part in weighted.runs[run].slices["slice"].items():
            other = plain.runs[run].slices["slice"][value]
            assert without_effective(part.estimates) == without_effective(other.estimates)
        assert weighted.weights["effective"] == pytest.approx(60)


def test_only_ratios_of_weights_matter() -> None:
    options = {**OPTIONS, "measures": ["Success", "BoR", "RA-nWG"], "by": HARD}
    one = rs.compare(LABELS, RUNS, weights=WEIGHTS, **options)
    other = rs.compare(LABELS, RUNS, weights={query: 1e30 * weight for query, weight in WEIGHTS.items()}, **options)
    for row, same in zip(one.to_rows(), other.to_rows(), strict=True):
        for name in ("difference", "low", "high", "p", "detectable"):
            assert row[name] == pytest.approx(same[name], rel=1e-9, abs=1e-12, nan_ok=True), (row["measure"], name)


def test_queries_of_weight_0_are_left_out() -> None:
    weights = {query: 0 if HARD[query] == "hard" else WEIGHTS[query] for query in QUERIES}
    easy = {query: LABELS[query] for query in QUERIES if HARD[query] == "easy"}
    report = rs.evaluate(LABELS, RUNS, weights=weights, **OPTIONS)
    runs = {name: {q: p for q, p in run.items() if q in easy} for name, run in RUNS.items()}
    only = rs.evaluate(easy, runs, weights=WEIGHTS, **OPTIONS)
    for key, estimate in report.runs["one"].estimates.items():
        assert repr(estimate.numbers) == repr(only.runs["one"].estimates[key].numbers), key
    assert report.weights is not None
    assert report.weights["left_out"] == 15
    assert "15 queries with the weight 0 left out" in report.runs["one"].notes


# -- intervals and tests ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_p_is_the_share_of_all_swaps(seed) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 11))
    weights = rng.choice([1.0, 2.0, 5.0, 20.0], n)
    binary = seed % 2 == 0
    one, other = (rng.integers(0, 2, n).astype(float) if binary else rng.random(n) for _ in range(2))
    found = paired_difference(*(Outcome((values[:, None],), "", weights=weights) for values in (one, other)))
    gaps = weights * (one - other)
    sums = [abs(sum(s * g for s, g in zip(signs, gaps, strict=True))) for signs in itertools.product((1, -1), repeat=n)]
    assert found.p[0] == pytest.approx(np.mean([value >= abs(gaps.sum()) - 1e-12 for value in sums]))
    assert found.value[0] == pytest.approx(gaps.sum() / weights.sum())
    assert (found.low[0] <= 0 <= found.high[0]) == (found.p[0] > 0.05)


def test_bits_share_the_test_of_the_successes_that_one_query_could_turn() -> None:
    """Nearly all weight is on one query, in which the runs do not differ; in twelve others one of them is better."""
    labels = {f"q{i}": ["d"] for i in range(60)}
    runs = {"new": {q: ["d"] for q in labels}, "old": {q: ["x" if i < 12 else "d"] for i, q in enumerate(labels)}}
    weights = {query: 1000.0 if i == 59 else 1.0 for i, query in enumerate(labels)}
    options = {"corpus_size": 500, "depths": [1], "measures": ["BoR", "Success"], "weights": weights}
    for order in (options["measures"], options["measures"][::-1]):
        found = rs.compare(labels, runs, baseline="old", **{**options, "measures": order})
        rows = [found["new", key] for key in ("BoR@1", "Success@1")]
        assert all(row.p > 0.05 and row.low < 0 < row.high and row.verdict == "no difference shown" for row in rows)
        assert decide(found.report, k=1)["next"].text.startswith("Add questions with labels: 1.1 of 60 count: too few")
        # One query holds .94 of the weight.
        assert 0.8 < rows[1].detectable <= 1
        turned = rs.compare(labels, runs, baseline="old", **{**options, "weights": weights | {"q0": 1000.0}})
        assert all(math.isinf(turned["new", key].detectable) for key in ("BoR@1", "Success@1"))
        line = next(line for line in decide(found.report, k=1, baseline="old").lines if line.run == "new")
        assert {line.figures[name].verdict for name in ("BoR", "Success")} == {"no difference shown"}


def test_few_successes_of_heavy_queries_do_not_make_a_narrow_interval() -> None:
    weights = np.array([1.0] * 38 + [50.0, 50.0])
    success = (np.arange(40.0) < 3).astype(float)[:, None]
    chance = np.full((40, 1), 0.01) * np.linspace(0.5, 1.5, 40)[:, None]
    outcome = Outcome((success, chance, 1 - chance), "", BoR.aggregate, weights=weights)
    ((_, high),) = Bootstrap(1000).intervals([outcome])
    # One of the two heavy queries alone would raise the rate to more than a third.
    assert high[0] > math.log2(0.33 / 0.01)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("clusters", [None, dict.fromkeys(QUERIES, "one")])
def test_however_unequal_weights_are_an_interval_holds_its_figure_and_keeps_to_its_measure(clusters) -> None:
    labels = {query: LABELS[query] for query in QUERIES[:6]}
    weights = {query: 10.0 ** (6 * (i % 3 - 1)) for i, query in enumerate(labels)}
    options = {**OPTIONS, "measures": [*OPTIONS["measures"], "RandomSuccess", "BoR(null=lists)"], "weights": weights}
    report = rs.evaluate(labels, RUNS, bootstrap=Bootstrap(300, clusters=clusters), **options)
    for key, found in report.runs["one"].estimates.items():
        lowest, highest = rs.parse_measure(key).ends
        assert math.isnan(found.low) == math.isnan(found.high), key
        assert math.isnan(found.low) or lowest <= found.low <= found.value <= found.high <= highest, key


def test_clusters_and_weights_together() -> None:
    clusters = {query: i // 3 for i, query in enumerate(QUERIES)}
    report = rs.evaluate(LABELS, RUNS, weights=WEIGHTS, bootstrap=Bootstrap(300, clusters=clusters), **OPTIONS)
    plain = rs.evaluate(LABELS, RUNS, weights=WEIGHTS, bootstrap=None, **OPTIONS)
    for key, estimate in report.runs["one"].estimates.items():
        assert estimate.value == pytest.approx(plain.runs["one"].estimates[key].value, nan_ok=True)
    estimate = report["one", "RA-nWG@3"]
    assert estimate.low < estimate.value < estimate.high


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["heavier better", "heavier worse"])
def test_coverage_of_golden_samples(relation) -> None:
    """Queries drawn with probabilities proportional to their frequency."""
    from benchmarks.simulated.weighted import GOLDEN, of_weights

    (line,) = of_weights(60, [GOLDEN], [30], [relation])
    assert min(line.figures[f"holds: {figure}"] for figure in ("Success", "mean", "BoR")) >= 0.85
    assert max(line.figures[f"errs: p ≤ .05, {figure}"] for figure in ("Success", "mean")) <= 0.15


# -- what users give --------------------------------------------------------------------------------------


WITHOUT = {query: weight for query, weight in WEIGHTS.items() if query != "q07"}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({**WEIGHTS, "q03": -1}, r"weights\['q03'\]: the weight of .* 'q03' is -1; give a number ≥ 0, at most 1e\+100"),
        ({**WEIGHTS, "q03": math.nan}, r"weight of query 'q03' is nan; give a number"),
        ({**WEIGHTS, "q03": None}, r"the weight of query 'q03' is None"),
        ({**WEIGHTS, "q03": True}, r"the weight of query 'q03' is True"),
        ({**WEIGHTS, "q03": 10**400}, r"the weight of query 'q03' is 1000"),
        (WITHOUT, r"1 of the 60 measured .* have no weight \('q07'; there are weights of 'q00', 'q01', 'q02'\): give"),
        (dict.fromkeys(QUERIES, 0), r"all measured queries have the weight 0"),
        ({"x": 1}, r"60 of the 60 measured queries have no weight \('q00', 'q01', 'q02'; there are weights of 'x'\)"),
        ({}, r"weights: 60 of the 60 measured queries have no weight \(.*; there are weights of no query\)"),
    ],
)
def test_wrong_weights_are_named(weights, message) -> None:
    with pytest.raises(InputError, match=message):
        rs.evaluate(LABELS, RUNS, weights=weights, scale="utility")


def test_weights_of_other_queries_are_counted() -> None:
    weights = {**WEIGHTS, "elsewhere": sum(WEIGHTS.values())}
    report = rs.evaluate(LABELS, RUNS, weights=weights, measures=["Harm"], scale="utility", bootstrap=None)
    assert report.weights is not None
    assert (report.weights["unmeasured"], report.weights["unmeasured_sum"]) == (1, sum(WEIGHTS.values()))
    assert any("1 weighted query of weights not measured: 50.0% of the weight" in n for n in report.runs["one"].notes)


# -- labels by people -------------------------------------------------------------------------------------


def test_where_people_labelled_all_pairs_the_figure_is_the_weighted_one_of_their_labels() -> None:
    judge = {query: {passage: 6 - grade for passage, grade in row.items()} for query, row in LABELS.items()}
    options = {**OPTIONS, "measures": ["RA-nWG", "Harm", "P", "nDCG"], "depths": [3], "bootstrap": None}
    exact = rs.evaluate(LABELS, RUNS, weights=WEIGHTS, **options)
    calibrated = rs.evaluate(judge, RUNS, human=LABELS, weights=WEIGHTS, **options)
    for name, run in exact.runs.items():
        for key, estimate in run.estimates.items():
            assert calibrated[name, key].value == pytest.approx(estimate.value, rel=1e-12), key
            assert calibrated[name, key].effective == pytest.approx(estimate.effective)


def test_equal_weights_change_no_digit_of_a_calibrated_figure_or_difference() -> None:
    human = {query: dict(list(LABELS[query].items())[i % 2 :: 2]) for i, query in enumerate(QUERIES)}
    options = {**OPTIONS, "measures": ["RA-nWG", "Harm"], "depths": [3], "human": human}
    plain, weighted = (rs.compare(LABELS, RUNS, weights=each, **options) for each in (None, dict.fromkeys(QUERIES, 3)))
    for one, other in zip(plain.rows, weighted.rows, strict=True):
        assert repr(one) == repr(replace(other, effective=None))


@pytest.mark.slow
def test_a_weighted_calibrated_figure_covers_the_truth_where_heavy_queries_differ() -> None:
    """Heavy queries hold more relevant passages, so labels that count alike would say too little of them."""
    random, covered = np.random.default_rng(3), 0
    for seed in range(40):
        weights = {f"q{i}": float(weight) for i, weight in enumerate(random.choice([1, 1, 1, 5, 10], 60))}
        truth = {q: random.choice([5, 1], 15, p=[share, 1 - share]) for q, w in weights.items()
                 for share in [0.15 + 0.5 * (w > 3)]}  # fmt: skip
        judge = {q: {f"d{j}": int(6 - g if random.random() < 0.25 else g) for j, g in enumerate(row)}
                 for q, row in truth.items()}  # fmt: skip
        human: dict[str, dict[str, int]] = {}
        for pair in random.choice(60 * 15, 200, replace=False).tolist():
            query, passage = f"q{pair // 15}", pair % 15
            human.setdefault(query, {})[f"d{passage}"] = int(truth[query][passage])
        run = {query: [f"d{j}" for j in range(10)] for query in weights}
        options = {"human": human, "weights": weights, "bootstrap": Bootstrap(resamples=100, seed=seed)}
        found = rs.evaluate(judge, run, scale="utility", measures=["Harm@10"], **options)["Harm@10"]
        covered += found.low <= (3 * 0.85 + 15 * 0.35) / 18 <= found.high
    assert covered >= 34, covered  # P[Binomial(40, .95) < 34] < .01


# -- what takes no weights --------------------------------------------------------------------------------

CONTROLS = {query: {f"c{j}": 1 + j % 5 for j in range(3)} for query in QUERIES}


def test_what_would_ignore_weights_is_refused() -> None:
    with pytest.raises(InputError, match="a random baseline from controls cannot be weighted"):
        rs.evaluate(LABELS, RUNS, weights=WEIGHTS, controls=CONTROLS, **{**OPTIONS, "measures": ["BoR"]})


# -- stored reports and views -----------------------------------------------------------------------------


def stored(folder: Path, weights, name: str = "before.json") -> rs.Report:
    measures = ["RA-nWG", "Success"]
    report = rs.evaluate(LABELS, {"one": RUNS["one"]}, weights=weights, **{**OPTIONS, "measures": measures})
    report.save(folder / name)
    return read_report(folder / name)


def test_a_stored_report_is_compared_with_its_weights(tmp_path) -> None:
    before = stored(tmp_path, WEIGHTS)
    assert before.runs["one"].estimates["RA-nWG@3"].effective is not None
    options = {**OPTIONS, "measures": ["RA-nWG", "Success"]}
    now = rs.evaluate(LABELS, {"one": RUNS["other"]}, weights=WEIGHTS, **options)
    drops = ["low(drop(RA-nWG@3)) > -1", "high(drop(RA-nWG@3)) > -1"]
    messages = [result.message for result in check(now, drops, tmp_path / "before.json")]
    row = rs.compare(LABELS, RUNS, weights=WEIGHTS, **options)["other", "RA-nWG@3"]
    ends = [float(message.split(" = ")[1].split()[0]) for message in messages]
    assert ends == pytest.approx([-row.high, -row.low], rel=1e-3)
    doubled = rs.evaluate(LABELS, {"one": RUNS["other"]}, weights={q: 2 * w for q, w in WEIGHTS.items()}, **options)
    assert [result.message for result in check(doubled, drops, before)] == messages
    assert "over 60 queries" in messages[0]


# -- the command line -------------------------------------------------------------------------------------


def test_bits_of_a_success_of_hardly_any_weight_keep_their_digits() -> None:
    """BoR where the one success has 1e-14 of the weight: log2(success / chance) without a 1 to add it to."""
    labels, weights = {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": 1.0, "q2": 1e-14}
    run = {"q1": ["x"], "q2": ["b"]}
    report = rs.evaluate(labels, {"run": run}, weights=weights, corpus_size=4, measures=["BoR@1"], bootstrap=None)
    assert report["BoR@1"].value == pytest.approx(math.log2(1e-14 / (1 + 1e-14) / 0.25), rel=1e-12)
