"""The recall-free measures and the calibration of their α."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

import rag_selectivity as rs
from rag_selectivity.measures.recall_free import f_score, t_score
from rag_selectivity.results.stored import read_report

pytestmark = pytest.mark.inside

RELEVANCE = st.lists(st.booleans(), min_size=1, max_size=12)


def ranking(relevance, further: int = 0) -> tuple[dict[str, int], list[str]]:
    ranked = [f"d{i}" for i in range(len(relevance))]
    judged = {passage: int(hit) for passage, hit in zip(ranked, relevance, strict=True)}
    return judged | {f"missed{i}": 1 for i in range(further)}, ranked


def one(relevance, measure: str, *, further: int = 0, **options) -> rs.Estimate:
    judged, ranked = ranking(relevance, further)
    return rs.evaluate({"q": judged}, {"r": {"q": ranked}}, measures=[measure], bootstrap=None, **options)[measure]


@given(RELEVANCE, st.sampled_from([0, 0.2, 0.5, 0.9, 1]))
@settings(max_examples=60, deadline=None)
def test_t_as_printed_is_precision_less_alpha(relevance, alpha) -> None:
    depth = len(relevance)
    precision = sum(relevance) / depth
    assert one(relevance, f"T(alpha={alpha})@{depth}").value == pytest.approx(precision - alpha)


def test_the_two_forms_of_t() -> None:
    assert one([1, 1, 0, 1, 0], "T@5").value == pytest.approx(0.1)
    assert one([1, 1, 0, 1, 0], "T(form=code)@5").value == pytest.approx(1.5 - 0.2)
    assert one([0], "T(form=code)@1").value == -0.5
    # Unjudged passages count among the others; the empty slots of a short list do not.
    report = rs.evaluate(
        {"q": {"a": 1}}, {"r": {"q": ["a", "x"]}}, measures=["T", "T(form=code)"], depths=[4], bootstrap=None
    )
    assert report["T@4"].value == pytest.approx((0.5 - 0.5) / 4)
    assert report["T(form=code)@4"].value == pytest.approx(0.5 - 0.5 * 1 / 2)


@pytest.mark.parametrize("measure", ["T(alpha=0.3)", "T(alpha=0.3,form=code)"])
def test_t_lies_between_the_ends_that_its_interval_rests_on(measure) -> None:
    labels = {"all": dict.fromkeys("abcd", 1), "none": {"e": 1}}
    judged = rs.join(rs.Qrels.of(labels), rs.Run.of({query: list("abcd") for query in labels}))
    outcome = rs.parse_measure(measure).outcome(judged, np.array([2, 4]))
    for column in (0, 1):
        assert outcome.ends_at(column) == pytest.approx(tuple(outcome.parts[0][::-1, column]))


@given(RELEVANCE, st.integers(0, 4), st.sampled_from([0, 0.1, 0.25, 0.5, 0.9, 1]))
@settings(max_examples=60, deadline=None)
def test_f_by_alpha_is_the_weighted_harmonic_mean(relevance, further, alpha) -> None:
    depth = len(relevance)
    total = sum(relevance) + further
    actual = one(relevance, f"F(alpha={alpha})@{depth}", further=further).value
    if not sum(relevance):
        assert actual == 0
        return
    precision, recall = sum(relevance) / depth, sum(relevance) / total
    assert actual == pytest.approx(1 / (alpha / precision + (1 - alpha) / recall))
    if alpha:
        beta = (1 / alpha - 1) ** 0.5
        assert one(relevance, f"F(beta={beta!r})@{depth}", further=further).value == pytest.approx(actual)


def test_fe_estimates_r_from_twice_the_depth() -> None:
    relevance = [1, 1, 0, 1, 0, 0, 0, 1, 0, 0]
    assert one(relevance, "Fe@5", further=7).value == pytest.approx(3 / (0.5 * 5 + 0.5 * 4))
    short = one(relevance[:9], "Fe@5")
    assert np.isnan(short.value)
    assert "2K passages" in short.to_dict()["reason"]
    # From the pool, where one is given.
    judged, ranked = ranking(relevance)
    with_pool = rs.evaluate(
        {"q": judged}, {"r": {"q": ranked[:5]}}, pool={"q": ranked}, measures=["Fe"], depths=[5], bootstrap=None
    )
    assert with_pool["Fe@5"].value == pytest.approx(3 / 4.5)


@pytest.mark.parametrize("alpha", [0, 0.25, 0.5, 1])
def test_fe_of_a_run_that_reranks_its_pool_is_no_more_than_1(alpha, tmp_path) -> None:
    """Its top K can hold more relevant passages than the first 2K of the pool, and there are at least these."""
    rng = np.random.default_rng(5)
    qrels, runs, pools, by_hand = {}, {}, {}, []
    for i in range(30):
        qrels[f"q{i}"], ranked = ranking(rng.random(20) < 0.3)
        pools[f"q{i}"] = ranked
        runs[f"q{i}"] = [ranked[j] for j in rng.permutation(20)[:5]]
        shown, pooled = (sum(qrels[f"q{i}"][p] for p in part) for part in (runs[f"q{i}"], ranked[:10]))
        by_hand.append(shown / (alpha * 5 + (1 - alpha) * max(shown, pooled)) if shown else 0.0)
    measure = f"Fe(alpha={alpha})@5"
    report = rs.evaluate(qrels, {"r": runs}, pool=pools, measures=[measure], bootstrap=None)
    assert report["r", measure].value == pytest.approx(np.mean(by_hand))
    assert max(by_hand) <= 1
    report.save(tmp_path / "report.json")
    stored = read_report(tmp_path / "report.json").runs["r"]
    assert stored.estimates[str(rs.parse_measure(measure))].value == report["r", measure].value


# -- calibration ----------------------------------------------------------------------------------


def counted(counts):
    """A join with so many relevant (n_p) and other (n_n) passages in the top K of each query, and R relevant in all."""
    qrels, run = {}, {}
    for i, (positive, depth, relevant) in enumerate(zip(counts["n_p"], counts["K"], counts["R"], strict=True)):
        run[f"q{i}"] = [f"d{j}" for j in range(depth)]
        grades = {f"d{j}": int(j < positive) for j in range(depth)}
        qrels[f"q{i}"] = grades | {f"x{j}": 1 for j in range(relevant - positive)}
    return rs.join(rs.Qrels.of(qrels), rs.Run.of(run))


def calibrated(counts, quality, **options):
    scores = {f"q{i}": float(score) for i, score in enumerate(quality)}
    return rs.calibrate_alpha(counted(counts), scores, **{"measure": f"F@{counts['K'][0]}"} | options)


@pytest.fixture(scope="module")
def world() -> tuple[dict[str, list[int]], np.ndarray]:
    """Counts of 120 queries, and answers whose quality follows F at α = .2, with noise."""
    rng = np.random.default_rng(3)
    K = np.full(120, 10)
    R = rng.integers(1, 40, 120)
    positive = rng.binomial(np.minimum(K, R), rng.uniform(0.2, 0.9, 120))
    quality = f_score(positive, K, R, 0.2) + rng.normal(0, 0.01, 120)
    counts = {"n_p": positive, "n_n": K - positive, "K": K, "R": R}
    return {key: column.tolist() for key, column in counts.items()}, quality


def test_calibration_finds_the_alpha_that_made_the_quality(world) -> None:
    counts, quality = world
    found = calibrated(counts, quality)
    assert abs(found.alpha - 0.2) < 0.1
    values = f_score(np.array(counts["n_p"]), np.array(counts["K"]), np.array(counts["R"]), found.alpha)
    assert found.correlation == pytest.approx(spearmanr(values, quality).statistic)
    assert 0.8 < found.out_of_fold <= found.correlation + 0.02
    assert found.n == 120


def test_the_best_alpha_of_the_grid_is_the_best_by_trying_them_all(world) -> None:
    counts, quality = world
    grid = [0.0, 0.1, 0.3, 0.7, 1.0]
    for measure, values_at in (
        ("F@10", lambda a: f_score(np.array(counts["n_p"]), np.array(counts["K"]), np.array(counts["R"]), a)),
        (
            "T(form=code)@10",
            lambda a: t_score(np.array(counts["n_p"]), np.array(counts["n_n"]), np.array(counts["K"]), a, "code"),
        ),
    ):
        by_hand = {}
        for alpha in grid:
            values = values_at(alpha)
            if len(set(values.tolist())) > 1:
                by_hand[alpha] = spearmanr(values, quality).statistic
        found = calibrated(counts, quality, measure=measure, grid=grid)
        assert found.correlation == pytest.approx(max(by_hand.values()))
        assert by_hand[found.alpha] == pytest.approx(found.correlation)


def test_noise_has_no_honest_correlation(world) -> None:
    counts, _ = world
    found = calibrated(counts, np.random.default_rng(0).normal(size=120))
    assert found.correlation >= found.out_of_fold
    assert abs(found.out_of_fold) < 0.25


def test_t_as_printed_says_that_alpha_cannot_matter(world) -> None:
    counts, quality = world
    found = calibrated(counts, quality, measure="T@10")
    assert found.alpha is None
    assert "alpha cannot change the order of queries" in found.advice
    assert found.correlation == pytest.approx(spearmanr(counts["n_p"], quality).statistic)


def test_ties_take_the_middle_of_the_best_alphas() -> None:
    # All queries with the same R: every alpha below 1 ranks them alike.
    counts = {"n_p": [1, 2, 3, 4], "K": [5] * 4, "R": [6] * 4}
    found = calibrated(counts, [0.1, 0.2, 0.3, 0.4], grid=[0.0, 0.25, 0.5, 0.75, 1.0])
    assert (found.alpha, found.correlation) == (0.5, pytest.approx(1.0))


@pytest.mark.parametrize("constant", ["quality", "values"])
def test_constant_input_has_no_correlation_and_says_so(constant) -> None:
    counts = {"n_p": [1, 2, 3, 4] if constant == "quality" else [2] * 4, "K": [5] * 4, "R": [6] * 4}
    quality = [1.0] * 4 if constant == "quality" else [0.1, 0.2, 0.3, 0.4]
    found = calibrated(counts, quality)
    assert found.alpha is None
    assert np.isnan(found.correlation)
    assert "same for all queries" in found.advice


def test_a_report_calibrates_as_its_join_does() -> None:
    rng = np.random.default_rng(5)
    qrels, run = {}, {}
    for i in range(40):
        judged, ranked = ranking(rng.random(20) < 0.4, further=int(rng.integers(0, 12)))
        qrels[f"q{i}"], run[f"q{i}"] = judged, ranked
    quality = {query: float(rng.random()) for query in qrels}
    report = rs.evaluate(qrels, {"r": run}, measures=["P@10"], bootstrap=None)
    for measure in ("F@10", "Fe@10"):
        options = {"measure": measure, "grid": [0, 0.25, 0.5, 0.75, 1]}
        of_join = rs.calibrate_alpha(rs.join(rs.Qrels.of(qrels), rs.Run.of(run)), quality, **options)
        assert rs.calibrate_alpha(report, quality, **options) == of_join
        with pytest.raises(rs.InputError, match="no run 'nope'"):
            rs.calibrate_alpha(report, quality, run="nope", **options)
    # Weighted, and where the labels name documents and the run their chunks.
    for rules in ({"weights": quality}, {"passages_of": dict.fromkeys(rs.Qrels.of(qrels).passages, 3)}):
        report = rs.evaluate(qrels, {"r": run}, measures=["F"], depths=[10], bootstrap=None, **rules)
        slots = report.slots_per_relevant("r").get(10, np.nan)
        found = rs.calibrate_alpha(report, quality)
        assert found.regime == pytest.approx(slots, nan_ok=True)
        assert found.advice.endswith("K counts chunks.") == np.isnan(slots)


@pytest.mark.parametrize(("depth", "relevant", "speaks_for"), [(5, 20, "T"), (20, 5, "nDCG")])
def test_the_regime_names_the_measure_it_speaks_for(depth, relevant, speaks_for) -> None:
    counts = {"n_p": [1, 2, 3, 4], "K": [depth] * 4, "R": [relevant] * 4}
    found = calibrated(counts, [0.1, 0.2, 0.3, 0.4], grid=[0, 0.5, 1])
    assert found.regime == depth / relevant
    assert f"The recall-free paper advises {speaks_for} there; whether {speaks_for} follows" in found.advice
    assert "favours" not in found.advice


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measure": "P@10"}, "alpha is a parameter of F, Fe and T, not of P"),
        ({"grid": []}, "grid of alphas"),
        ({"grid": [0.5, 2]}, "numbers from 0 to 1"),
        ({"grid": ["half"]}, "numbers from 0 to 1"),
        ({"quality": {"q0": "good"}}, "quality must be .* with numbers, got .*good"),
        ({"measure": "F"}, "name the depth, as in F@10"),
        ({"quality": {"q0": 1.0, "q1": 2.0, "q2": float("nan")}}, "only 2 queries"),
        ({"source": {"n_p": [1], "K": [1]}}, "source must be a Report"),
    ],
)
def test_mistakes_are_named(arguments, message) -> None:
    source = counted({"n_p": [1, 2, 3, 4], "K": [5] * 4, "R": [6] * 4})
    given_ = {"source": source, "quality": {f"q{i}": float(i) for i in range(4)}} | arguments
    with pytest.raises(rs.InputError, match=message):
        rs.calibrate_alpha(given_.pop("source"), given_.pop("quality"), **given_)
