"""Paired comparisons against scipy, exact enumeration and simulation."""

from __future__ import annotations

import json
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rag_selectivity as rs
from rag_selectivity.statistics import bootstrap as bootstrap_module
from rag_selectivity.statistics import paired as paired_module
from rag_selectivity.statistics.paired import holm, sign_flip

RNG = np.random.default_rng(4)


def graded(queries: int, skill: dict[str, float], *, seed: int = 0) -> tuple[dict, dict]:
    """Qrels with grades 1–5, and a run for each skill in which better passages rise."""
    rng = np.random.default_rng(seed)
    qrels, runs = {}, {name: {} for name in skill}
    for i in range(queries):
        grades = {f"d{j}": int(g) for j, g in enumerate(rng.choice([5, 4, 3, 2, 1], 12, p=[0.1, 0.1, 0.2, 0.2, 0.4]))}
        grades["d0"] = 5
        noise = rng.normal(0, 1, 12)
        qrels[f"q{i}"] = grades
        for name, weight in skill.items():
            own = rng.normal(0, 0.5, 12)
            order = np.argsort(-(weight * np.array(list(grades.values())) / 5 + noise + own))
            runs[name][f"q{i}"] = [f"d{j}" for j in order]
    return qrels, runs


def compared(queries: int = 60, **options) -> rs.Comparison:
    qrels, runs = graded(queries, {"old": 0.5, "new": 2.0, "same": 0.5})
    arguments = {"corpus_size": 500, "scale": "utility", "depths": [3], **options}
    return rs.compare(qrels, runs, **arguments)


def test_every_figure_of_a_row_follows_from_the_per_query_figures() -> None:
    qrels, runs = graded(60, {"old": 0.5, "new": 2.0})
    found = rs.compare(qrels, runs, corpus_size=500, scale="utility", depths=[3])
    for measure in ("Success", "RA-nWG", "Harm"):
        row = found["new", f"{measure}@3"]
        report = rs.evaluate(
            qrels, runs, corpus_size=500, scale="utility", depths=[3], measures=[measure], bootstrap=None
        )
        figures = {
            name: np.array([r[f"{measure}@3"] for r in report.per_query(name)], dtype=float) for name in ("old", "new")
        }
        gaps = figures["new"] - figures["old"]
        assert row.value == pytest.approx(figures["new"].mean())
        assert row.difference == pytest.approx(gaps.mean())
        sign = -1 if measure == "Harm" else 1
        assert (row.wins, row.losses) == ((sign * gaps > 1e-12).sum(), (sign * gaps < -1e-12).sum())
        assert row.wins + row.ties + row.losses == row.n == row.n_total == 60
        assert row.low < row.difference < row.high
        # Close to the textbook t interval, and to d = mean/sd, at n = 60.
        interval = stats.ttest_1samp(gaps, 0).confidence_interval()
        assert row.low == pytest.approx(interval.low, abs=0.02)
        assert row.high == pytest.approx(interval.high, abs=0.02)
        assert row.effect == pytest.approx(gaps.mean() / gaps.std(ddof=1), rel=0.1)
        assert row.detectable == pytest.approx(2.8016 * gaps.std(ddof=1) / np.sqrt(60), rel=0.1)
        moved = max(range(60), key=lambda i: abs(gaps[i]))
        assert row.moved[0].query == f"q{moved}"
        assert row.moved[0].difference == pytest.approx(gaps[moved])


def test_bits_differ_by_the_log_of_the_ratio_of_success_rates() -> None:
    found = compared()
    success, bor = found["new", "Success@3"], found["new", "BoR@3"]
    assert bor.difference == pytest.approx(np.log2(success.value / success.baseline_value))
    assert bor.test == "resampled"
    assert (bor.wins, bor.ties, bor.losses) == (success.wins, success.ties, success.losses)
    assert bor.low < bor.difference < bor.high


def test_the_verdict_minds_the_direction() -> None:
    found = compared(300)
    assert found["new", "RA-nWG@3"].verdict == "better"
    assert found["new", "Harm@3"].difference < 0
    assert found["new", "Harm@3"].verdict == "better"
    assert found["same", "RA-nWG@3"].verdict == "no difference shown"
    turned = compared(300, baseline="new")
    assert turned["old", "Harm@3"].verdict == turned["old", "RA-nWG@3"].verdict == "worse"
    assert turned["old", "RA-nWG@3"].difference == pytest.approx(-found["new", "RA-nWG@3"].difference)


# -- tests and corrections ------------------------------------------------------------------------


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=10))
@settings(max_examples=80, deadline=None)
def test_sign_flips_are_counted_exactly_by_brute_force(gaps) -> None:
    observed = abs(sum(gaps))
    every = [abs(sum(s * g for s, g in zip(signs, gaps, strict=True))) for signs in product((1, -1), repeat=len(gaps))]
    expected = sum(value >= observed for value in every) / len(every)
    found = sign_flip(np.array(gaps, float)[:, None])
    assert found.p[0] == pytest.approx(expected)
    assert found.test == ("exact",)


def test_successes_won_and_lost_are_mcnemars_exact_test_at_any_size() -> None:
    gaps = np.array([1.0] * 40 + [-1.0] * 20 + [0.0] * 300)[:, None]
    found = sign_flip(gaps)
    assert found.p[0] == pytest.approx(stats.binomtest(40, 60).pvalue)
    assert found.test == ("exact",)


def test_drawn_signs_come_close_to_scipys_permutation_test() -> None:
    gaps = RNG.normal(0.25, 1, (40, 3))
    found = sign_flip(gaps, draws=40_000)
    assert found.test == ("randomised",) * 3
    for column in range(3):
        peer = stats.permutation_test(
            (gaps[:, column],), np.mean, permutation_type="samples", n_resamples=40_000, rng=np.random.default_rng(1)
        )
        assert found.p[column] == pytest.approx(peer.pvalue, abs=0.012)


def test_the_sign_flip_keeps_its_level_under_no_difference() -> None:
    gaps = np.random.default_rng(2).exponential(1, (30, 2000)) * np.random.default_rng(3).choice([-1, 1], (30, 2000))
    rejected = (sign_flip(gaps, draws=2000).p < 0.05).mean()
    assert 0.035 <= rejected <= 0.065


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
@settings(max_examples=80, deadline=None)
def test_holm_by_its_definition(p) -> None:
    adjusted = holm(np.array(p))
    for alpha in (0.01, 0.05, 0.2):
        rejected = set()
        for step, i in enumerate(sorted(range(len(p)), key=p.__getitem__)):
            if not p[i] * (len(p) - step) <= alpha:
                break
            rejected.add(i)
        assert {i for i in range(len(p)) if adjusted[i] <= alpha} == rejected


def test_the_family_is_everything_that_was_compared() -> None:
    found = compared()
    p = np.array([row.p for row in found.rows])
    assert len(found.rows) == found.settings["family"] == 8
    assert [row.p_adjusted for row in found.rows] == pytest.approx(holm(p).tolist())
    assert all(row.p_adjusted >= row.p for row in found.rows)


def test_resampled_p_values_keep_their_level_and_find_what_is_there() -> None:
    # 400 comparisons at once, each a column: two systems alike, and one 0.5 bits better.
    rng = np.random.default_rng(8)
    chance = np.full((150, 400), 0.01)
    easy = rng.random((150, 400))
    outcomes = []
    for rate, seed in ((0.5, 1), (0.5, 2), (0.5 * 2**0.5, 3)):
        own = np.random.default_rng(seed).random((150, 400))
        success = ((easy + own) / 2 < stats.triang.ppf(rate, 0.5)).astype(float)
        outcomes.append(rs.measures.Outcome((success, chance, 1 - chance), "", rs.measures.BoR.aggregate))
    alike, better = rs.Bootstrap(resamples=1000).differences([(outcomes[1], outcomes[0]), (outcomes[2], outcomes[0])])
    assert 0.02 <= (alike.p < 0.05).mean() <= 0.08
    assert (better.p < 0.05).mean() > 0.95
    assert 0.92 <= ((alike.low <= 0) & (alike.high >= 0)).mean() <= 0.98
    assert 0.92 <= ((better.low <= 0.5) & (better.high >= 0.5)).mean() <= 0.98


# -- edges ----------------------------------------------------------------------------------------


def test_identical_systems_have_defined_answers_and_no_warnings() -> None:
    qrels, runs = graded(30, {"a": 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rs.compare(qrels, {"a": runs["a"], "b": runs["a"]}, corpus_size=500, scale="utility", depths=[3])
    for row in found.rows:
        assert (row.difference, row.p, row.effect, row.wins, row.losses, row.moved) == (0, 1, 0, 0, 0, ())
        # Thirty queries without a difference do not prove that there is none.
        assert row.low < 0 < row.high
        assert row.verdict == "no difference shown"
        assert np.isnan(row.detectable)


@pytest.mark.parametrize("kind", ["none succeeds", "all succeed", "one query", "one succeeds"])
def test_degenerate_runs_have_defined_answers_and_no_warnings_from_numpy(kind) -> None:
    names = ["q0"] if kind == "one query" else [f"q{i}" for i in range(20)]
    qrels = {query: {"d": 5, "j": 1} for query in names}
    found = {"none succeeds": 0, "all succeed": len(names), "one query": 1, "one succeeds": 1}[kind]
    good = {query: ["d" if i < found else "j"] for i, query in enumerate(names)}
    other = {query: ["j"] for query in names} if kind == "one succeeds" else good
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comparison = rs.compare(qrels, {"a": good, "b": other}, corpus_size=100, scale="utility", depths=[1])
    data = json.loads(comparison.to_json())
    bor = comparison["b", "BoR@1"]
    if kind == "none succeeds":
        assert np.isnan(bor.difference)
        assert "log2 of 0" in bor.reason
    elif kind == "one succeeds":
        assert bor.difference == -np.inf
        assert next(row for row in data["differences"] if row["measure"] == "BoR@1")["difference"] is None
    else:
        assert bor.difference == 0
    if kind == "one query":
        assert np.isnan(bor.low)


def test_a_query_counts_only_where_both_runs_define_it() -> None:
    qrels = {"q1": {"a": 5, "b": 1}, "q2": {"a": 5, "b": 1}, "q3": {"a": 5, "b": 1}}
    runs = {"full": {q: ["a"] for q in qrels}, "part": {"q1": ["b"], "q2": ["a"]}}
    row = rs.compare(qrels, runs, scale="utility", depths=[1], measures=["Harm"])["part", "Harm@1"]
    assert (row.n, row.n_total, row.losses, row.ties) == (2, 3, 1, 1)


@pytest.mark.parametrize("cells", [500, 4096, 1 << 22])
def test_the_same_seed_gives_the_same_digits_for_every_chunk_size(monkeypatch, cells) -> None:
    whole = json.loads(compared().to_json())
    for module in (bootstrap_module, paired_module):
        monkeypatch.setattr(module, "_CELLS_PER_CHUNK", cells)
    monkeypatch.setattr(bootstrap_module, "_COLUMNS_AT_ONCE", 3)
    for row, expected in zip(json.loads(compared().to_json())["differences"], whole["differences"], strict=True):
        for key, value in expected.items():
            assert row[key] == (pytest.approx(value, rel=1e-12, abs=1e-14) if isinstance(value, float) else value)


def test_figures_of_seed_7_do_not_move() -> None:
    """Pinned: equal on every platform and with every later version to 12 digits, or somebody's gate breaks."""
    pinned = {
        "RA-nWG@3": {
            "difference": 0.27619161921830415,
            "low": 0.1995508663452712,
            "high": 0.3521648496299664,
            "p": 9.999000099990002e-05,
            "effect": 0.9599233112881751,
            "detectable": 0.10406439646860496,
        },
        "BoR@3": {
            "difference": 0.23132554610645606,
            "low": 0.05558243102365231,
            "high": 0.47007592161842493,
            "p": 0.01219756048790242,
        },
    }
    found = compared()
    for measure, figures in pinned.items():
        for name, value in figures.items():
            assert getattr(found["new", measure], name) == pytest.approx(value, rel=1e-12), (measure, name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "newer"}, "no run 'newer'; did you mean \"new\""),
        ({"measures": ["lambda"]}, "lambda is a property of corpus, labels and K"),
        ({"power": 1}, r"`power` must be in the open interval \(0, 1\), got 1"),
    ],
)
def test_mistakes_are_named(options, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        compared(**options)


def test_one_run_is_nothing_to_compare() -> None:
    with pytest.raises(rs.InputError, match="at least two runs, got a"):
        rs.compare({"q": {"d": 1}}, {"a": {"q": ["d"]}})


def test_clusters_are_flipped_and_drawn_together() -> None:
    # Ten copies of six queries: as 60 queries a difference is beyond doubt, as six it is not.
    qrels = {f"q{i}": {"d": 1} for i in range(60)}
    runs = {"a": {q: ["x"] for q in qrels}, "b": {q: ["d" if i < 50 else "x"] for i, q in enumerate(qrels)}}
    alone = rs.compare(qrels, runs, measures=["Success"], depths=[1])["b", "Success@1"]
    clusters = {f"q{i}": i // 10 for i in range(60)}
    together = rs.compare(qrels, runs, measures=["Success"], depths=[1], bootstrap=rs.Bootstrap(clusters=clusters))
    row = together["b", "Success@1"]
    assert alone.p < 1e-10
    assert row.p == 2 / 2**5
    assert row.high - row.low > 2 * (alone.high - alone.low)
    with pytest.raises(rs.InputError, match="59 of the 60 queries have none"):
        rs.compare(qrels, runs, depths=[1], bootstrap=rs.Bootstrap(clusters={"q0": 1}))


def test_views_say_the_same(tmp_path) -> None:
    found = compared()
    rows = json.loads(found.to_json())["differences"]
    assert [row["measure"] for row in rows] == [str(row.measure) for row in found.rows]
    assert found.to_dataframe()["difference"].tolist() == pytest.approx([row.difference for row in found.rows])
    text = found.to_text()
    assert "new beside old: 60 queries" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "| RA-nWG@3 |" in found.to_markdown()
    found.save(tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text())["schema"] == "rag-selectivity/comparison/1"
