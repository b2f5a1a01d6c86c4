"""Which measure follows the answers: correlations against scipy, intervals and differences in worlds of known truth."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, norm, pearsonr, rankdata, spearmanr, t

import rag_selectivity as rs
from rag_selectivity.inference.correlation import (
    KENDALL,
    PARTIAL,
    PEARSON,
    SPEARMAN,
    Distribution,
    Series,
    correlated,
    correlated_means,
    detectable,
)
from rag_selectivity.results.workflows import Segment, Validation
from rag_selectivity.tables.scores import answer_scores

pytestmark = pytest.mark.inside

# -- correlations ---------------------------------------------------------------------------------


def of(figures, scores, others=None, draws: int = 500):
    n = len(figures)
    return correlated(
        [Series.of(np.asarray(figures, float), np.asarray(scores, float), np.arange(n), others)], draws=draws, seed=7
    )[0]


@pytest.mark.parametrize("n", [4, 11, 60])
@pytest.mark.parametrize("ties", [False, True])
def test_the_three_correlations_are_those_of_scipy(n, ties) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=n), rng.normal(size=n)
    y = x + y
    if ties:
        x, y = np.round(x), np.round(y)
    found = of(x, y)
    for kind, statistic in ((SPEARMAN, spearmanr), (PEARSON, pearsonr), (KENDALL, kendalltau)):
        assert found[kind].value == pytest.approx(statistic(x, y).statistic, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 4)), min_size=4, max_size=12).filter(
        lambda rows: len({x for x, _, _ in rows}) > 1 and len({y for _, y, _ in rows}) > 1
    )
)
def test_whole_weights_are_copies_of_rows(rows) -> None:
    """A draw with whole weights is the correlation of each row repeated as often."""
    from rag_selectivity.inference.correlation import weighted_correlations

    x, y, weight = (np.array(column, float) for column in zip(*rows, strict=True))
    times = weight.astype(int)
    drawn = weighted_correlations(Series(x, y, np.arange(len(x))))(weight[None] / weight.sum())
    for kind, statistic in ((SPEARMAN, spearmanr), (PEARSON, pearsonr), (KENDALL, kendalltau)):
        expected = statistic(np.repeat(x, times), np.repeat(y, times)).statistic
        assert drawn[kind][0] == pytest.approx(expected, abs=1e-9)


def test_kendall_of_many_different_pairs_is_that_of_scipy_too() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=1500)
    y = x + rng.normal(size=1500)
    found = of(x, y, draws=200)[KENDALL]
    assert found.value == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)
    # The exact spread from a part of the draws that look at all pairs.
    assert found.drawn.std() == pytest.approx(0.0133, rel=0.2)


def test_the_partial_correlation_is_that_of_residuals_of_ranks() -> None:
    rng = np.random.default_rng(4)
    c = rng.normal(size=80)
    x, y = c + rng.normal(size=80), c + rng.normal(size=80)
    ranks = [rankdata(column) for column in (x, y, c)]
    residuals = [column - np.polyval(np.polyfit(ranks[2], column, 1), ranks[2]) for column in ranks[:2]]
    found = of(x, y, c)
    assert found[PARTIAL].value == pytest.approx(pearsonr(*residuals).statistic, abs=1e-12)
    assert found[PARTIAL].value < found[SPEARMAN].value


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([5, 9, 30]), st.sampled_from([0.5, 0.8, 0.95, 0.999]))
def test_interval_and_p_value_never_disagree(seed, n, level) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, n).astype(float)
    y = np.round(rng.normal(size=n) + rng.choice([0.0, 0.7, 3.0]) * x)
    for found in of(x, y, draws=200).values():
        if found.reason:
            continue
        interval = found.interval(level)
        assert -1 <= interval.low <= found.value <= interval.high <= 1
        if abs(found.p - (1 - level)) > 1e-9 and found.p > 1e-6:
            assert (interval.low > 0 or interval.high < 0) == (found.p <= 1 - level)


@pytest.mark.parametrize(
    ("furthest", "sign", "bias"), [*itertools.product((1.0, 2.0), (1, -1), (-0.9, -0.3, 0.0, 0.3))]
)
def test_draws_that_are_normal_in_z_have_ends_and_p_in_closed_form(furthest, sign, bias) -> None:
    """999 exact quantiles of z: the ends are those of Student's t, wherever they lie; a bias moves them outwards."""
    places = norm.ppf(np.arange(1, 1000) / 1000)
    # At a bias that is not 0, the value lies between two draws.
    below = round(norm.cdf(bias) * 1000)
    value = math.tanh(0.6 + 0.2 * norm.ppf((below + (0.5 if bias else 0.0)) / 1000))
    drawn = furthest * np.tanh(0.6 + 0.2 * places)
    found = Distribution(sign * furthest * value, sign * drawn, np.zeros(999), 13.0, furthest)
    moved = 0.0 if bias == 0 else max(-0.5, norm.ppf(below / 999))
    for level in (0.5, 0.95, 0.9999):
        reach, ends = -t.ppf((1 - level) / 2, 12) * math.sqrt(13 / 12), found.interval(level)
        for end, outwards, at in ((ends.low, min(0.0, sign * moved), -1), (ends.high, min(0.0, -sign * moved), 1)):
            share = norm.cdf(2 * outwards - reach)
            # From the lowest hundredth on, the end is a draw.
            place = math.floor(share * 1000 + 1e-9) / 1000 if share >= 0.009 else share
            assert end == pytest.approx(furthest * math.tanh(sign * 0.6 + 0.2 * at * -norm.ppf(place)), abs=1e-9)
    assert found.p == pytest.approx(2 * t.sf((3 + 2 * min(0.0, moved)) * math.sqrt(12 / 13), 12), rel=1e-4)


def test_a_query_that_was_not_seen_is_at_its_worst_at_either_end() -> None:
    drawn, unseen = np.linspace(0.1, 0.3, 999), np.linspace(0.05, 0.2, 999)
    found = Distribution(0.2, drawn, unseen, 1e9).interval(0.901)
    assert found.low == pytest.approx(np.sort((1 - unseen) * drawn - unseen)[48])
    assert found.high == pytest.approx(np.sort((1 - unseen) * drawn + unseen)[-49])
    alone = Distribution(0.2, drawn, unseen, 1.0).interval(0.9)
    assert (alone.low, alone.high) == pytest.approx((-1, 1))
    other = Distribution(0.1, drawn / 2, unseen[::-1], 7.0)
    one = Distribution(0.2, drawn, unseen, 9.0)
    gap, mean = one.minus(other), Distribution.mean([other, one])
    assert (gap.value, gap.effective, gap.furthest) == (pytest.approx(0.1), 7.0, 2.0)
    np.testing.assert_allclose(gap.unseen, np.maximum(unseen, unseen[::-1]))
    np.testing.assert_allclose([gap.drawn, mean.drawn], [drawn / 2, drawn * 0.75])
    np.testing.assert_allclose(mean.unseen, 0.125)
    assert (mean.value, mean.effective) == (pytest.approx(0.15), 7.0)


def test_draws_are_correlations_under_exponential_weights_of_whole_queries() -> None:
    rng = np.random.default_rng(9)
    units = np.array([0, 0, 1, 2, 3, 3, 3, 5])
    x, y = rng.normal(size=(2, 8))
    found = correlated([Series(x, y, units)], draws=40, seed=3)[0][PEARSON]
    runs = [Series(rng.normal(size=8) + i, rng.normal(size=8) - i, units) for i in range(4)]
    over_runs = correlated_means(runs, draws=40, seed=3)
    # Queries 0 to 5, of which 4 has no row, and one unseen.
    weights = np.random.default_rng(3).standard_exponential((40, 7))
    for k, weight in enumerate(weights):
        rows = weight[units]
        cov = np.cov(x, y, aweights=rows)
        assert found.drawn[k] == pytest.approx(cov[0, 1] / math.sqrt(cov[0, 0] * cov[1, 1]))
        assert found.unseen[k] == pytest.approx(weight[-1] / (weight[[0, 1, 2, 3, 5, 6]].sum()))
        means = [[np.average(column, weights=rows) for column in (run.figures, run.scores)] for run in runs]
        for kind, statistic in ((SPEARMAN, spearmanr), (PEARSON, pearsonr), (KENDALL, kendalltau)):
            assert over_runs[kind].drawn[k] == pytest.approx(statistic(*np.transpose(means)).statistic)
        assert over_runs[PEARSON].unseen[k] == pytest.approx(weight[-1] / weight.sum())
    means = [(run.figures.mean(), run.scores.mean()) for run in runs]
    assert over_runs[PEARSON].value == pytest.approx(pearsonr(*np.transpose(means)).statistic)
    assert over_runs[PEARSON].effective == 5
    assert correlated_means(runs[:3], draws=10, seed=1)[SPEARMAN].reason == "fewer than 4 runs"


# -- simulations ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.6, 0.95])
@pytest.mark.parametrize("kind", ["continuous", "right or wrong", "few wrong"])
def test_intervals_hold_the_truth(rho, kind) -> None:
    rng = np.random.default_rng(1)
    score = {
        "continuous": lambda y: y,
        "right or wrong": lambda y: (y > 0) * 1.0,
        "few wrong": lambda y: (y > -1.1) * 1.0,
    }[kind]

    def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.normal(size=n)
        return np.round(4 * x), score(rho * x + math.sqrt(1 - rho**2) * rng.normal(size=n))

    truth = spearmanr(*sample(200_000)).statistic
    held = defined = 0
    for seed in range(150):
        x, y = sample(25)
        series = Series(x, y, np.arange(25))
        if series.reason:
            continue
        defined += 1
        interval = correlated([series], draws=300, seed=seed)[0][SPEARMAN].interval(0.95)
        held += interval.low <= truth <= interval.high
    assert held / defined >= 0.95 - 2.5 * math.sqrt(0.95 * 0.05 / defined)


@pytest.mark.slow
@pytest.mark.parametrize("between", [0.2, 0.9])
def test_equal_followers_are_rarely_told_apart(between) -> None:
    rng = np.random.default_rng(2)
    cover = np.array([[1, 0.5, 0.5], [0.5, 1, between], [0.5, between, 1]])
    shown = 0
    for seed in range(200):
        y, a, b = rng.multivariate_normal(np.zeros(3), cover, 30).T
        right = (y > 0) * 1.0
        series = [Series(x, right, np.arange(30)) for x in (a, b)]
        one, other = correlated(series, draws=300, seed=seed)
        shown += one[SPEARMAN].minus(other[SPEARMAN]).p <= 0.05
    assert shown / 200 <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / 200)


@pytest.mark.slow
def test_the_detectable_correlation_is_detected_four_times_of_five() -> None:
    n = 50
    rho = 2 * math.sin(math.pi * detectable(n, 0.05, 0.8) / 6)
    rng = np.random.default_rng(3)
    shown = 0
    for seed in range(200):
        x = rng.normal(size=n)
        y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=n)
        found = correlated([Series(x, y, np.arange(n))], draws=400, seed=seed)[0]
        shown += found[SPEARMAN].p <= 0.05
    assert 0.72 <= shown / 200 <= 0.9


# -- validate -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world() -> tuple[rs.Report, list[dict]]:
    """Two runs over 60 queries; answers follow RA-nWG, with noise, at K = 3 and 6."""
    rng = np.random.default_rng(8)
    qrels, runs = {}, {"a": {}, "b": {}}
    for i in range(60):
        query = f"q{i}"
        passages = [f"d{j}" for j in range(14)]
        grades = rng.choice([1, 2, 3, 4, 5], 14, p=[0.4, 0.25, 0.15, 0.12, 0.08])
        qrels[query] = dict(zip(passages, grades.tolist(), strict=True))
        for run in runs:
            runs[run][query] = rng.permutation(passages).tolist()
    report = rs.evaluate(
        qrels,
        runs,
        scale="utility",
        corpus_size=1000,
        measures=["RA-nWG", "P", "nDCG", "Harm", "F", "T(form=code)", "Success", "BoR"],
        depths=[3, 6],
        bootstrap=rs.Bootstrap(resamples=50),
    )
    rows = [
        {"query_id": query, "run": run, "k": k, "score": float(np.nan_to_num(value) + 0.2 * rng.normal())}
        for run, part in report.runs.items()
        for k in (3, 6)
        for query, value in zip(part.queries, part.per_query[f"RA-nWG@{k}"], strict=True)
    ]
    return report, rows


@pytest.fixture(scope="module")
def validated(world) -> rs.Validation:
    return rs.validate(*world, bootstrap=rs.Bootstrap(resamples=400))


def test_each_row_is_what_scipy_says_of_the_same_queries(world, validated) -> None:
    report, rows = world
    scores = {(row["run"], row["k"], row["query_id"]): row["score"] for row in rows}
    alone = [row for row in validated.rows if row.run is not None]
    assert len(alone) == 2 * 2 * 7
    for row in alone:
        part = report.runs[row.run]
        figures = part.per_query[row.measure]
        known = [(x, scores[row.run, row.k, q]) for x, q in zip(figures, part.queries, strict=True) if not np.isnan(x)]
        x, y = np.array(known).T
        x = np.round(x, 12)  # Equal figures may differ by rounding.
        assert row.n == len(x)
        assert row.undefined == 60 - len(x)
        assert row.spearman.value == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
        assert row.pearson.value == pytest.approx(pearsonr(x, y).statistic, abs=1e-12)
        assert row.kendall.value == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)
    for row in validated.main_rows:
        of_runs = [each.spearman.value for each in alone if (each.measure, each.k) == (row.measure, row.k)]
        assert row.spearman.value == pytest.approx(np.mean(of_runs))


@pytest.mark.parametrize(("of_world", "level"), [(60, 0.95), (12, 0.8)])
def test_verdicts_are_those_of_adjusted_p_values_which_agree_with_the_intervals(world, of_world, level) -> None:
    report, rows = world
    some = [row for row in rows if int(row["query_id"][1:]) < of_world]
    found = rs.validate(report, some, bootstrap=rs.Bootstrap(150, 3, level))
    for row in [*found.rows, *(row for segment in found.segments for row in segment.rows)]:
        ends = row.spearman
        assert math.isnan(row.p) or (ends.low > 0 or ends.high < 0) == (row.p <= 1 - level), row
        assert math.isnan(ends.value) or ends.low <= ends.value <= ends.high
        shown = "rises with the answers" if ends.value > 0 else "falls as the answers rise"
        assert row.verdict in ("", shown if row.p_holm <= 1 - level else "not shown"), row
    for gap in found.differences:
        ends, shown = gap.difference, "follows better" if gap.difference.value > 0 else "follows worse"
        assert math.isnan(gap.p) or (ends.low > 0 or ends.high < 0) == (gap.p <= 1 - level), gap
        assert gap.verdict == (shown if gap.p_holm <= 1 - level else "not shown"), gap
    assert len({row.verdict for row in found.rows}) > 2 or level < 0.95


def test_the_measure_behind_the_answers_is_found(validated) -> None:
    by_name = {row.measure: row for row in validated.main_rows}
    assert max(by_name.values(), key=lambda row: row.spearman.value).measure in ("RA-nWG@3", "RA-nWG@6")
    assert by_name["RA-nWG@3"].verdict == "rises with the answers"
    better = {(each.measure, each.other): each.verdict for each in validated.differences}
    assert better["RA-nWG@3", "Harm@3"] == "follows better"
    # P and T(form=code) order the same sets in the same way.
    same = next(each for each in validated.differences if (each.measure, each.other) == ("P@3", "T(form=code)@3"))
    assert math.isnan(same.p)
    assert same.verdict == "not shown"
    assert any("RA-nWG@3" in sentence and "rise" in sentence for sentence in validated.summary)


def test_holm_is_over_all_that_was_looked_at(validated) -> None:
    rows = [row for row in validated.main_rows if not math.isnan(row.p)]
    assert len(rows) == 14
    order = sorted(row.p for row in rows)
    expected, highest = {}, 0.0
    for i, p in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - i)))
        expected.setdefault(p, highest)
    for row in rows:
        assert row.p_holm >= row.p
    assert {row.p: row.p_holm for row in rows}[order[0]] == pytest.approx(expected[order[0]])


@pytest.mark.parametrize(
    ("borders", "named"),
    [
        ({}, ("K/N_p < 1", "K/N_p ≥ 1")),
        ({"borders": [2, 0.5, 1]}, ("K/N_p < 0.5", "0.5 ≤ K/N_p < 1", "1 ≤ K/N_p < 2", "K/N_p ≥ 2")),
        ({"borders": [0.5, 2]}, ("K/N_p < 0.5", "0.5 ≤ K/N_p < 2", "K/N_p ≥ 2")),
    ],
)
def test_segments_hold_the_sets_between_the_borders(world, borders, named) -> None:
    report, rows = world
    found = rs.validate(report, rows, **borders, bootstrap=rs.Bootstrap(resamples=60))
    relevant = dict(zip(report.runs["a"].queries, report.runs["a"].judged.relevant().tolist(), strict=True))
    ratios = [row["k"] / relevant[row["query_id"]] for row in rows if relevant[row["query_id"]]]
    for segment in found.segments:
        assert segment.sets == sum(segment.low <= ratio < segment.high for ratio in ratios)
    assert sum(segment.sets for segment in found.segments) == len(ratios)
    names = [segment.name for segment in found.segments]
    assert names == [name for name in named if name in names]
    for segment in found.segments:
        assert segment.advised == ("T" if segment.high <= 1 else "nDCG" if segment.low >= 1 else "")
        assert ("paper advises" in segment.summary) == bool(segment.advised)


def test_what_the_model_knows_by_itself_is_taken_out() -> None:
    """Queries that are easy to retrieve for are those that the model knows: the partial correlation is about 0."""
    rng = np.random.default_rng(1)
    easy = rng.random(120)
    qrels = {f"q{i}": {f"d{j}": int(rng.random() < easy[i]) for j in range(10)} for i in range(120)}
    run = {query: [f"d{j}" for j in range(10)] for query in qrels}
    report = rs.evaluate(qrels, {"r": run}, measures=["P"], depths=[10], bootstrap=None)
    score = {f"q{i}": easy[i] + 0.05 * rng.normal() for i in range(120)}
    known = {f"q{i}": easy[i] for i in range(120)}
    found = rs.validate(report, score, closed_book=known, bootstrap=rs.Bootstrap(resamples=300)).main_rows[0]
    assert found.spearman.value > 0.8
    assert found.partial.low < 0 < found.partial.high or abs(found.partial.value) < 0.3


def test_differences_between_runs_within_a_query(world, validated) -> None:
    report, rows = world
    scores = {(row["run"], row["query_id"]): row["score"] for row in rows if row["k"] == 3}
    figures = {run: dict(zip(part.queries, part.per_query["P@3"], strict=True)) for run, part in report.runs.items()}
    queries = report.runs["a"].queries
    x = np.round([(figures["a"][q] - figures["b"][q]) / 2 for q in queries], 9)
    y = np.round([(scores["a", q] - scores["b", q]) / 2 for q in queries], 9)
    row = next(r for r in validated.rows if r.over == "runs within queries" and r.measure == "P@3")
    both = spearmanr(np.r_[x, -x], np.r_[y, -y]).statistic
    assert row.spearman.value == pytest.approx(both, abs=1e-12)


def test_over_runs_needs_four_of_them(world) -> None:
    report, rows = world
    assert not any(row.over == "runs" for row in rs.validate(report, rows, bootstrap=rs.Bootstrap(20)).rows)
    qrels = {f"q{i}": {"a": 1, "b": 0, "c": 1} for i in range(12)}
    orders = list(itertools.permutations("abc"))[:5]
    runs = {f"r{j}": {q: list(order) for q in qrels} for j, order in enumerate(orders)}
    for i, q in enumerate(qrels):
        runs["r0"][q] = ["b", "a", "c"] if i % 3 else ["a", "c", "b"]
    report = rs.evaluate(qrels, runs, measures=["nDCG"], depths=[2], bootstrap=None)
    scores = {run: {q: j + i % 3 for i, q in enumerate(qrels)} for j, run in enumerate(runs)}
    rows = [row for row in rs.validate(report, scores, bootstrap=rs.Bootstrap(50)).rows if row.over == "runs"]
    assert [(row.n, row.run) for row in rows] == [(5, None)]


def test_no_measure_is_best_where_all_go_the_wrong_way(world) -> None:
    report, rows = world
    turned = [{**row, "score": -row["score"]} for row in rows]
    found = rs.validate(report, turned, bootstrap=rs.Bootstrap(resamples=100))
    assert any("fall as" in sentence for sentence in found.summary)
    assert not any("better than Harm" in sentence for sentence in found.summary)
    assert {gap.verdict for gap in found.differences if "Harm" in gap.measure + gap.other} == {"not shown"}
    assert all(segment.summary.startswith("No measure goes the right way in these ") for segment in found.segments)


# -- what scores may look like ---------------------------------------------------------------------

SCORES = {"q0": 1.0, "q1": 0.0, "q2": 0.5}
QUERIES = ("q0", "q1", "q2", "q3")


@pytest.mark.parametrize(
    ("given_scores", "message"),
    [
        ([{"query_id": "q0", "run": "s", "score": 1}], "left out: runs: 's'"),
        ([{"query_id": "q0", "score": math.inf}], "is inf"),
        ([{"query_id": "q0", "k": -1, "score": 1}], "k is -1"),
        ([{"query_id": "q0", "score": 7}], "off its scale of 0 to 1"),
        ([{"query_id": "q0", "score": 1, "k": 0}, {"query_id": "q0", "score": 0, "k": 0}], "has a score already"),
        ([{"query_id": "q0", "score": 1, "k": 3}, {"query_id": "q1", "score": 0, "k": None}], "in every row of a run"),
        (
            [{"query_id": "q0", "score": 1, "model": "a"}, {"query_id": "q1", "score": 1, "model": "b"}],
            "answers are of several models: 'a'",
        ),
        ([{"query_id": "other", "score": 1}], "left out: queries: 'other'"),
        ([{"query_id": "q0", "score": None}], "left out: unknown: 'q0'"),
        ([], "there are no rows"),
        ({"r": {"q0": 1.0}, "q1": 2.0}, "some values are mappings"),
        (3, "scores: give a file, a frame, a mapping or a list of rows, got 3"),
    ],
)
def test_wrong_scores_are_named(given_scores, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        answer_scores(given_scores, ["r"], QUERIES, score_range=(0, 1))


def test_weighted_queries_are_refused() -> None:
    qrels = {f"q{i}": {"a": 1} for i in range(6)}
    weights = {query: i + 1.0 for i, query in enumerate(qrels)}
    run = {query: ["a"] for query in qrels}
    report = rs.evaluate(qrels, {"r": run}, measures=["P"], depths=[1], weights=weights)
    with pytest.raises(rs.InputError, match="correlation with scores of answers cannot be weighted"):
        rs.validate(report, dict.fromkeys(qrels, 1.0))


# -- the commands ---------------------------------------------------------------------------------


def test_one_set_is_one() -> None:
    segment = Segment(0.0, math.inf, 1, 1, (), "", "Nothing.")
    assert "all sets: 1 set of 1 query" in str(Validation((), (), (segment,), 0.5, (), ()))
