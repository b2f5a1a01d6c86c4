"""Agreement against scikit-learn, krippendorff and scipy; correction by human labels in worlds of known truth."""

import warnings

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score, confusion_matrix

import rag_selectivity as rs
from tests.reference import read_trec_qrels

pytestmark = pytest.mark.contract

JUDGES = ["Olz-gpt4o", "RMITIR-llama38b", "TREMA-direct", "willia-umbrela1"]
FEW = rs.Bootstrap(resamples=50)


def agreement(human, judge, queries, bootstrap=FEW):
    """Of grades from 1 to 5 of the same pairs."""
    sides: tuple[dict, dict] = ({}, {})
    for i, query in enumerate(queries):
        for side, grades in zip(sides, (human, judge), strict=True):
            side.setdefault(str(query), {})[f"d{i}"] = int(grades[i])
    return rs.agree(*sides, bootstrap=bootstrap).agreement


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
    assert np.isnan(found.kappa.low)  # too few for an interval
    assert found.kappa.reason.endswith("over all pairs, need at least 30 pairs of 10 queries or clusters.")
    seen = sorted({*first, *second})
    if len(seen) == 1:
        assert np.isnan(found.kappa.value)
        assert found.exact.value == 1
        return
    labels = list(range(1, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kappa = cohen_kappa_score(first, second, labels=labels, weights="quadratic")
        spearman = stats.spearmanr(first, second).statistic
    assert found.kappa_quadratic.value == pytest.approx(kappa, nan_ok=True)
    assert found.spearman.value == pytest.approx(spearman, nan_ok=True)
    alpha = krippendorff.alpha([first, second], level_of_measurement="ordinal", value_domain=labels)
    assert found.alpha.value == pytest.approx(alpha)
    assert found.ac2.value == pytest.approx(gwet_ac2(first, second, labels))


def gaffke(values: list[float], lowest: float, highest: float) -> tuple[float, float]:
    """From its definition: uniform order statistics over the sorted values, the end of the range beyond them."""
    cuts = np.sort(np.random.default_rng(0).random((200_000, len(values))), axis=1)
    spacings = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    low = np.quantile(spacings @ np.append(values, lowest), 0.025)
    return float(low), float(np.quantile(spacings @ np.append(values, highest), 0.975))


def test_shares_have_clopper_and_pearsons_interval_and_means_gaffkes() -> None:
    # One pair a query: people's 3 beside 3, 3 and then 4, 3, 3, …
    judge = [3, 3, 4, 3, 3, 3, 5, 3, 3, 3, 3, 3]
    found = agreement([3] * 12, judge, [f"q{i}" for i in range(12)], bootstrap=rs.Bootstrap(40_000))
    exact = stats.binomtest(10, 12).proportion_ci(method="exact")
    assert (found.exact.low, found.exact.high) == pytest.approx((exact.low, exact.high), abs=0.01)
    assert (found.bias.low, found.bias.high) == pytest.approx(gaffke([g - 3 for g in judge], -4, 4), abs=0.04)
    of_threes = found.bias_by_grade[3]
    assert (of_threes.low, of_threes.high) == pytest.approx(gaffke([g - 3 for g in judge], -2, 2), abs=0.03)


def test_no_interval_has_width_zero() -> None:
    same = [1 + i % 5 for i in range(60)]
    found = agreement(same, same, [f"q{i // 3}" for i in range(60)], rs.Bootstrap(5000))
    for name in ("exact", "within_one", "kappa", "kappa_linear", "kappa_quadratic", "ac2", "alpha", "spearman"):
        interval = getattr(found, name)
        assert interval.low < 0.95 < interval.value == interval.high == 1
    assert found.exact.low == pytest.approx(0.025 ** (1 / 20), abs=0.01)
    assert found.bias.low < 0 == found.bias.value < found.bias.high


# -- the verdict -----------------------------------------------------------------------------------


def graded(judge: str, queries: int, pairs: int, seed: int = 0) -> rs.JudgeReport:
    rng = np.random.default_rng([seed, queries, pairs])
    human = rng.integers(1, 6, queries * pairs)
    guess, noise = rng.integers(1, 6, len(human)), rng.random(len(human))
    given = {
        "same": human,
        "good": np.where(noise < 0.93, human, guess),
        "kind": np.minimum(human + 1, 5),
        "half": np.where(noise < 0.5, human, guess),
        "guesses": guess,
    }[judge]
    names = [f"q{i // pairs}" for i in range(len(human))]
    return agreement(human, given, names, bootstrap=rs.Bootstrap(resamples=500))


@pytest.mark.parametrize(("skill", "shares"), [(0.3, (0.2, 0.2, 0.2, 0.2, 0.2)), (0.93, (0.8, 0.1, 0.05, 0.03, 0.02))])
def test_coefficients_hold_the_truth_with_ten_queries_of_three_pairs(skill, shares) -> None:
    # The full simulation is benchmarks/simulated/labels.py.
    rng = np.random.default_rng([round(100 * skill), round(100 * shares[0])])

    def sample(queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        query = np.repeat(np.arange(queries), 3)
        human, guess = (rng.choice(5, len(query), p=shares) + 1 for _ in range(2))
        right = rng.random(len(query)) < rng.beta(2 * skill, 2 * (1 - skill), queries)[query]
        return human, np.where(right, human, guess), query.astype(str)

    names = ("kappa", "kappa_linear", "kappa_quadratic", "ac2", "alpha", "spearman", "exact", "within_one", "bias")
    human, judge, _ = sample(60_000)
    truth = agreement(human, judge, ["q"] * len(human), bootstrap=rs.Bootstrap(resamples=1))
    held, trials = dict.fromkeys(names, 0), 0
    for _ in range(120):
        found = agreement(*sample(10), bootstrap=rs.Bootstrap(resamples=300))
        if not found.kappa.reason:
            trials += 1
            for name in names:
                held[name] += getattr(found, name).low <= getattr(truth, name).value <= getattr(found, name).high
    assert trials > 80
    assert min(held.values()) / trials >= 0.92, held


@pytest.mark.parametrize(
    ("judge", "queries", "pairs", "verdict", "reason"),
    [
        ("same", 2, 2, "too few to tell", "at least 30 pairs of 10 queries"),
        ("same", 9, 10, "too few to tell", "at least 30 pairs of 10 queries"),
        ("same", 29, 1, "too few to tell", "at least 30 pairs of 10 queries"),
        ("same", 30, 3, "moderate", "the interval of the bias must be within ±0.25 grades"),
        ("same", 100, 3, "good", "that of the bias is within ±0.25 grades"),
        ("good", 150, 3, "good", "is at or above 0.6"),
        ("kind", 400, 3, "moderate", "the interval of the bias must be within ±0.25 grades (it is"),
        ("half", 30, 3, "undetermined", "contains 0.4. More queries make it narrower."),
        ("guesses", 200, 3, "poor", "is below 0.4."),
    ],
)
def test_the_verdict_and_what_it_rests_on(judge, queries, pairs, verdict, reason) -> None:
    found = graded(judge, queries, pairs)
    assert (found.verdict, reason in found.reason) == (verdict, True), found.reason


@pytest.mark.parametrize(
    ("human", "judge", "who"),
    [
        ([5] * 60, [5] * 60, "People gave grade 5 to every pair"),
        ([5] * 60, [4, 5] * 30, "People gave grade 5 to every pair"),
        ([4, 5] * 30, [3] * 60, "The judge gave grade 3 to every pair"),
    ],
)
def test_one_grade_alone_is_undetermined(human, judge, who) -> None:
    found = agreement(human, judge, [f"q{i // 3}" for i in range(60)])
    assert found.verdict == "undetermined"
    assert found.reason.startswith(who)
    assert found.kappa_quadratic.reason.startswith(who)
    assert np.isnan(found.kappa_quadratic.low)
    assert found.exact.low < found.exact.high


def test_clusters_are_the_drawn_units() -> None:
    rng = np.random.default_rng(0)
    people = {f"q{i}": {f"d{j}": int(rng.integers(1, 6)) for j in range(4)} for i in range(40)}
    # The judge is right on the documents of one half and wrong on the other.
    judged = {q: {d: g if int(q[1:]) % 8 < 4 else 6 - g for d, g in row.items()} for q, row in people.items()}
    clusters = {query: int(query[1:]) % 8 for query in people}
    alone = rs.agree(people, judged).agreement
    together = rs.agree(people, judged, bootstrap=rs.Bootstrap(clusters=clusters)).agreement
    assert (alone.clusters, together.clusters) == (None, 8)
    assert together.exact.high - together.exact.low > 1.5 * (alone.exact.high - alone.exact.low)
    assert together.verdict == "too few to tell"
    assert "10 queries or clusters" in together.reason
    text = rs.agree(people, judged, bootstrap=rs.Bootstrap(clusters=clusters)).to_text()
    assert "160 pairs of 40 queries in 8 clusters: too few to tell." in text
    del clusters["q7"]
    with pytest.raises(rs.InputError, match=r"clusters: 1 of the 40 queries have none \('q7'\)"):
        rs.agree(people, judged, bootstrap=rs.Bootstrap(clusters=clusters))
