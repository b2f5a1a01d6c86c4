"""Paired comparisons against scipy, exact enumeration and simulation."""

import json
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rag_selectivity as rs
from rag_selectivity.explain import explain
from rag_selectivity.inference import bootstrap as bootstrap_module
from rag_selectivity.inference import draws as draws_module
from rag_selectivity.inference import paired as paired_module
from rag_selectivity.inference.paired import holm

pytestmark = pytest.mark.inside


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
        figures = {n: np.array([r[f"{measure}@3"] for r in report.per_query(n)], dtype=float) for n in ("old", "new")}
        gaps = figures["new"] - figures["old"]
        assert row.value == pytest.approx(figures["new"].mean())
        assert row.difference == pytest.approx(gaps.mean())
        sign = -1 if measure == "Harm" else 1
        assert (row.wins, row.losses) == ((sign * gaps > 1e-12).sum(), (sign * gaps < -1e-12).sum())
        assert row.wins + row.ties + row.losses == row.n == row.n_total == 60
        assert row.low < row.difference < row.high
        # Close to the textbook t interval at n = 60.
        interval = stats.ttest_1samp(gaps, 0).confidence_interval()
        assert row.low == pytest.approx(interval.low, abs=0.03)
        assert row.high == pytest.approx(interval.high, abs=0.03)
        if measure != "Success":
            # Three tests: the level of the first one is .05/3.
            reach = stats.norm.isf(0.05 / 6) + stats.norm.isf(0.2)
            assert row.detectable == pytest.approx(reach * gaps.std(ddof=1) / np.sqrt(60), rel=0.05)
        moved = max(range(60), key=lambda i: abs(gaps[i]))
        assert row.moved[0].query == f"q{moved}"
        assert row.moved[0].difference == pytest.approx(gaps[moved])


def test_bits_differ_by_the_log_of_the_ratio_of_success_rates() -> None:
    found = compared()
    success, bor = found["new", "Success@3"], found["new", "BoR@3"]
    assert bor.difference == pytest.approx(np.log2(success.value / success.baseline_value))
    assert (bor.test, bor.p, bor.tested_as) == ("exact", success.p, "Success@3")
    assert bor.p_adjusted == success.p_adjusted
    assert (bor.wins, bor.ties, bor.losses) == (success.wins, success.ties, success.losses)
    assert bor.low < bor.difference < bor.high


def test_the_verdict_minds_the_direction() -> None:
    found = compared(300)
    assert found["new", "RA-nWG@3"].verdict == "better"
    assert found["new", "Harm@3"].difference < 0
    assert found["new", "Harm@3"].verdict == "better"
    assert found["same", "RA-nWG@3"].verdict == "no difference shown"
    # A measure without a largest value has no query that could turn everything.
    unbounded = compared(measures=["DCG"])["new", "DCG@3"]
    assert (unbounded.verdict, unbounded.low > 0, unbounded.high < 10) == ("better", True, True)
    turned = compared(300, baseline="new")
    assert turned["old", "Harm@3"].verdict == turned["old", "RA-nWG@3"].verdict == "worse"
    assert turned["old", "RA-nWG@3"].difference == pytest.approx(-found["new", "RA-nWG@3"].difference)


@pytest.mark.parametrize(("name", "value"), [("draws", 0), ("draws", 1.5), ("power", "x"), ("power", 1)])
def test_what_no_test_can_use_is_named(name, value) -> None:
    with pytest.raises(rs.InputError, match=rf"^{name} \(intervals.{name}\) must be a"):
        compared(12, **{name: value})


# -- the family -----------------------------------------------------------------------------------


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
    tested = [row for row in found.rows if row.test]
    p = {(row.run, row.tested_as): row.p for row in tested}
    # Success and BoR on the same queries with the same baseline are one test; Judged is none.
    assert (len(found.rows), len(tested), len(p), found.settings["family"]) == (10, 8, 6, 6)
    adjusted = dict(zip(p, holm(np.array(list(p.values()))).tolist(), strict=True))
    for row in tested:
        assert row.p_adjusted == adjusted[row.run, row.tested_as] >= row.p
    for row in found.rows:
        if not row.test:
            assert (row.measure.name, row.verdict) == ("Judged", "not tested")
            assert np.isnan([row.p, row.p_adjusted, row.low, row.high, row.detectable]).all()


# -- edges ----------------------------------------------------------------------------------------


def test_identical_systems_have_defined_answers_and_no_warnings() -> None:
    qrels, runs = graded(30, {"a": 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rs.compare(qrels, {"a": runs["a"], "b": runs["a"]}, corpus_size=500, scale="utility", depths=[3])
    assert not any("moved" in cells for cells in found.to_rows())
    for row in (row for row in found.rows if row.test):
        assert (row.difference, row.p, row.wins, row.losses, row.moved) == (0, 1, 0, 0, ())
        # Thirty queries without a difference do not prove that there is none.
        assert row.low < 0 < row.high
        assert row.verdict == "no difference shown"
        # Of means nothing is known without any spread; of success rates, at least that none differed.
        assert np.isnan(row.detectable) == (row.measure.name in ("RA-nWG", "Harm"))


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
    whole = re.split(r"(-?\d+\.\d+(?:e-\d+)?)", json.dumps(compared().to_dict()["differences"]))
    for module, name in (
        (draws_module, "_CELLS_DRAWN"),
        (draws_module, "_CELLS_SUMMED"),
        (paired_module, "_CELLS_PER_CHUNK"),
    ):
        monkeypatch.setattr(module, name, cells)
    monkeypatch.setattr(bootstrap_module, "_SUMS_AT_ONCE", 3)
    draws_module._kept.cache_clear()
    parts = re.split(r"(-?\d+\.\d+(?:e-\d+)?)", json.dumps(compared().to_dict()["differences"]))
    assert parts[::2] == whole[::2]
    assert [float(x) for x in parts[1::2]] == pytest.approx([float(x) for x in whole[1::2]], rel=1e-12, abs=1e-14)


def test_clusters_are_flipped_and_drawn_together() -> None:
    # Ten copies of six queries: as 60 queries a difference is beyond doubt, as six it is not.
    qrels = {f"q{i}": {"d": 1} for i in range(60)}
    runs = {"a": {q: ["x"] for q in qrels}, "b": {q: ["d" if i < 50 else "x"] for i, q in enumerate(qrels)}}
    options = {"measures": ["Success"], "depths": [1], "ids": "exact"}
    alone = rs.compare(qrels, runs, **options)["b", "Success@1"]
    clusters = {f"q{i}": i // 10 for i in range(60)}
    together = rs.compare(qrels, runs, bootstrap=rs.Bootstrap(clusters=clusters), **options)
    row = together["b", "Success@1"]
    assert alone.p < 1e-10
    assert row.p == 2 / 2**5
    assert row.high - row.low > 2 * (alone.high - alone.low)
    with pytest.raises(rs.InputError, match="59 of the 60 queries have none"):
        rs.compare(qrels, runs, bootstrap=rs.Bootstrap(clusters={"q0": 1}), **options)


# -- verdicts that were wrong -----------------------------------------------------------------------


def outcomes(successes: int, others: int, queries: int) -> tuple[dict, dict]:
    """Labels, and two runs of which the first succeeds in the first queries, and the second in the first of its own."""
    qrels = {f"q{i}": {"d": 1} for i in range(queries)}
    runs = {
        name: {query: ["d" if i < count else "x"] for i, query in enumerate(qrels)}
        for name, count in (("old", others), ("new", successes))
    }
    return qrels, runs


@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
@pytest.mark.parametrize(("old", "new", "queries", "p"), [(0, 1, 200, 1.0), (0, 2, 2, 0.5), (0, 2, 200, 0.5)])
def test_a_handful_of_successes_is_no_better_in_bits_than_in_successes(old, new, queries, p) -> None:
    qrels, runs = outcomes(new, old, queries)
    found = rs.compare(qrels, runs, corpus_size=1000, measures=["Success", "BoR", "EF"], depths=[1], ids="exact")
    for row in found.rows:
        assert (row.p, row.verdict) == (p, "no difference shown")
        assert row.low <= 0 <= row.high


def test_a_draw_that_can_never_succeed_leaves_no_difference() -> None:
    qrels, runs = {"q": {"d": 1, "e": 1}}, {name: {"q": ["d"]} for name in "ab"}
    (row,) = rs.compare(qrels, runs, corpus_size=9, measures=["EF(m=2)"], depths=[1]).rows
    assert (row.test, row.reason) == ("", "a random draw of this size can never succeed")


def test_verdicts_hold_at_the_level_that_was_asked_for() -> None:
    qrels, runs = outcomes(6, 0, 20)
    shown = {
        level: rs.compare(
            qrels, runs, measures=["Success"], depths=[1], bootstrap=rs.Bootstrap(level=level), ids="exact"
        ).rows[0]
        for level in (0.95, 0.999)
    }
    assert shown[0.95].p == shown[0.999].p == 0.03125
    assert (shown[0.95].verdict, shown[0.999].verdict) == ("better", "no difference shown")
    assert shown[0.95].low > 0 > shown[0.999].low


def test_harm_of_sixty_alike_queries_has_a_width_and_no_false_sensitivity() -> None:
    qrels = {f"q{i}": {"good": 5, **{f"junk{j}": 1 for j in range(6)}} for i in range(60)}
    runs = {
        "old": {query: ["good", *(f"junk{j}" for j in range(6)), "x", "y", "z"] for query in qrels},
        "new": {query: ["good", *(f"x{j}" for j in range(9))] for query in qrels},
    }
    row = rs.compare(qrels, runs, scale="utility", measures=["Harm"], depths=[10], unjudged="ignore")["new", "Harm@10"]
    assert row.difference == pytest.approx(-0.6)
    assert row.low < -0.6 < row.high < 0
    # Sixty queries that agree do not rule out that one of twenty would not.
    assert row.high - row.low > 0.05
    assert np.isnan(row.detectable)


def test_a_row_names_a_caveat_of_both_runs_once_and_a_comparison_is_read_as_its_report(tmp_path) -> None:
    qrels = {f"q{i}": {"a": 5, "b": 1} for i in range(40)}
    runs = {name: {query: ["a", "b", *more] for query in qrels} for name, more in (("one", "xy"), ("two", "xyz"))}
    found = rs.compare(qrels, runs, scale="utility", measures=["Harm"], depths=[5])
    assert next(iter(found.table()))["caveats"] == "partly-judged"
    found.save(tmp_path / "x.json")
    assert explain(tmp_path / "x.json") == explain(found.report)


def test_unjudged_passages_do_not_make_a_run_cleaner() -> None:
    # The second list is better only if what nobody judged is harmless.
    qrels = {f"q{i}": {"a": 5, "b": 4, "c": 1, "d": 2, "e": 1} for i in range(40)}
    runs = {
        "judged": {query: ["a", "b", "c", "d", "e"] for query in qrels},
        "fresh": {query: ["a", "b", "x", "y", "z"] for query in qrels},
    }
    found = rs.compare(qrels, runs, scale="utility", measures=["Harm", "Precision4+"], depths=[5])
    row = found["fresh", "Harm@5"]
    assert (row.baseline_value, row.value) == (0.6, 0.0)
    assert row.possible == pytest.approx((-0.6, 0.0))
    assert row.p < 1e-9
    assert row.verdict == "undecided: judged in part"
    assert [caveat.code for caveat in row.caveats] == ["partly-judged"]
    assert {caveat.code for caveat in found["fresh", "Precision4+@5"].caveats} == {"partly-judged"}
    assert (found["fresh", "Judged@5"].baseline_value, found["fresh", "Judged@5"].value) == (1.0, 0.4)
    exhaustive = rs.compare(qrels, runs, scale="utility", measures=["Harm"], depths=[5], unjudged="worst")
    assert exhaustive["fresh", "Harm@5"].possible is None
    assert exhaustive["fresh", "Harm@5"].verdict == "no difference shown"
    # One more unjudged slot on the junky side, and the range leaves 0 out.
    runs["judged"] = {query: ["c", "d", "e", "c2", "a"] for query in qrels}
    runs["fresh"] = {query: ["a", "b", "x"] for query in qrels}
    row = rs.compare(qrels, runs, scale="utility", measures=["Harm"], depths=[5])["fresh", "Harm@5"]
    assert row.possible == pytest.approx((-0.8, -0.4))
    assert row.verdict == "better"


# -- runs over different queries -------------------------------------------------------------------


def arms(shared: int = 0) -> tuple[dict, dict]:
    """Labels of 60 queries, and two arms that have half of them each, but for some in common."""
    qrels = {f"q{i}": {"d": 1} for i in range(60)}
    names = list(qrels)
    first, second = names[: 30 + shared], names[30 - shared :]
    found = {"old": first, "new": second}
    runs = {name: {q: ["d" if i % 3 else "x"] for i, q in enumerate(some)} for name, some in found.items()}
    return qrels, runs


def test_queries_in_common_are_compared_where_that_is_asked_for() -> None:
    qrels, runs = arms(shared=10)
    with pytest.raises(rs.InputError, match="share 20 of 60 queries"):
        rs.compare(qrels, runs, measures=["Success"], depths=[1])
    found = rs.compare(qrels, runs, measures=["Success"], depths=[1], missing_query="skip")
    assert found["new", "Success@1"].n == found["new", "Success@1"].n_total == 20
    assert "of all runs 40 queries are left out, since not every run has each of them" in " ".join(str(found).split())
    apart = rs.compare(qrels, runs, measures=["Success"], depths=[1], paired=False)
    assert apart.notes == ("new and old share 20 queries; the comparison treats these as different queries",)
