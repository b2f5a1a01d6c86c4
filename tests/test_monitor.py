"""The live monitor: equal to `evaluate` on the same retrievals, whatever the batches; bounded; deaf to bad input."""

from __future__ import annotations

import threading
from fractions import Fraction
from math import comb, isnan, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.live import monitor as monitor_module
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.measures import Outcome
from rag_selectivity.measures.chance import _BITS
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.moments import Moments

pytestmark = pytest.mark.inside

MEASURES = ["Success", "BoR", "BoR_max", "lambda", "RA-nWG", "PROC", "%PROC", "Harm", "Judged"]


def world(queries: int, seed: int = 0):
    """Labels, final lists and pools of a made-up retriever with a reranker."""
    rng = np.random.default_rng(seed)
    labels, finals, pools = {}, {}, {}
    for q in range(queries):
        judged = rng.choice(200, size=12, replace=False).tolist()
        labels[f"q{q}"] = {f"d{d}": int(grade) for d, grade in zip(judged, rng.integers(1, 6, 12), strict=True)}
        pool = list(
            dict.fromkeys([f"d{d}" for d in rng.permutation([*judged[:8], *rng.integers(0, 200, 12).tolist()])])
        )
        pools[f"q{q}"], finals[f"q{q}"] = pool, pool[: int(rng.integers(1, 11))]
    return labels, finals, pools


def watched(labels, finals, pools=None, **options) -> Monitor:
    monitor = Monitor(labels, scale="utility", corpus_size=200, depths=[1, 2, 5, 10], **options)
    for query, shown in finals.items():
        monitor.record(Retrieval(query, shown, pool=pools[query] if pools else None))
    return monitor


@pytest.mark.parametrize("bad_from", [0, 30, 60])
def test_placebos_are_those_of_evaluate_whichever_universe_counts_at_the_end(monkeypatch, bad_from: int) -> None:
    monkeypatch.setattr(monitor_module, "_BATCH", 7)
    labels, finals, _ = world(60)
    # Labels of the lowest grade outside of the lists decide that grades are shuffled among the labels.
    labels = {
        query: {passage: grade if i >= bad_from else max(2, grade) for passage, grade in row.items()}
        for i, (query, row) in enumerate(labels.items())
    }
    live = watched(labels, finals, measures=MEASURES).report()
    whole = rs.evaluate(
        labels,
        {"live": finals},
        corpus_size=200,
        scale="utility",
        measures=MEASURES,
        depths=[1, 2, 5, 10],
        policy=rs.Policy(short_lists="returned"),
    )
    for key in ("BoR@5", "RA-nWG@5", "PROC@10"):
        assert live[key].placebo == pytest.approx(whole[key].placebo), key
        assert live[key].above_placebo == pytest.approx(whole[key].above_placebo), key
    # In the corpus, shuffling is what BoR compares with.
    assert (abs(live["BoR@5"].placebo) < 1e-9) == (bad_from == 60)


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("batch", [1, 7, 256])
def test_the_figures_are_those_of_evaluate(monkeypatch, pooled: bool, batch: int) -> None:
    monkeypatch.setattr(monitor_module, "_BATCH", batch)
    labels, finals, pools = world(60)
    live = watched(labels, finals, pools if pooled else None, measures=MEASURES).report()
    whole = rs.evaluate(
        labels,
        {"live": finals},
        pool=pools if pooled else None,
        corpus_size=200,
        scale="utility",
        measures=MEASURES,
        depths=[1, 2, 5, 10],
        policy=rs.Policy(short_lists="returned"),
    )
    for key, expected in whole.runs["live"].estimates.items():
        found = live[key]
        assert (found.value, found.low, found.high) == pytest.approx(
            (expected.value, expected.low, expected.high), rel=1e-12, nan_ok=True
        ), key
        assert (found.n, found.n_total) == (expected.n, expected.n_total)
    ours, theirs = ({row["query"]: row for row in report.per_query()} for report in (live, whole))
    assert ours["q7"]["RA-nWG@5"] == theirs["q7"]["RA-nWG@5"]


def test_without_a_depth_it_is_what_was_shown() -> None:
    labels = {"a": {"x": 1, "y": 1}, "b": {"z": 1}, "c": {"w": 1}}
    monitor = Monitor(labels, corpus_size=50)
    monitor.record(Retrieval("a", ["x", "1", "2"], tokens=30, seconds=0.5))
    monitor.record(Retrieval("b", [str(i) for i in range(10)], tokens=100, seconds=1.5))
    monitor.record(Retrieval("c", []))
    chance = (1 - Fraction(comb(48, 3), comb(50, 3)) + Fraction(10, 50) + Fraction(6, 50)) / 3
    assert monitor.report()["BoR"].value == pytest.approx(log2(Fraction(1, 3) / chance), rel=1e-13)
    assert monitor.report()["lambda"].value == pytest.approx((3 * 2 + 10 + 6) / 50 / 3)
    traffic = monitor.traffic
    assert (traffic.retrievals, traffic.empty, traffic.longest, traffic.tokens, traffic.seconds) == (3, 1, 10, 65, 1)
    assert "BoR@20" not in monitor.report().runs["live"].estimates
    assert "1 retrievals returned nothing" in monitor.report().details()


def test_utility_as_shown_compares_with_the_best_set_of_that_size() -> None:
    grades = {"q": dict(zip("abcdefgh", [5, 4, 4, 3, 3, 3, 2, 1], strict=True))}
    monitor = Monitor(grades, scale="utility")
    monitor.record(Retrieval("q", ["b", "g"]))
    report = monitor.report()
    assert report["RA-nWG"].value == pytest.approx(0.25 / 1.25)
    assert report["Harm"].value == 0.5
    empty = Monitor(grades, scale="utility")
    empty.record(Retrieval("q", []))
    assert empty.report()["RA-nWG"].value == 0
    assert isnan(empty.report()["Harm"].value)


def test_after_the_sample_is_full_values_stay_exact_and_intervals_near_the_bootstraps() -> None:
    labels, finals, pools = world(1500, seed=4)
    full = watched(labels, finals, pools, sample_size=2000).report()
    bounded = watched(labels, finals, pools, sample_size=100)
    report = bounded.report()
    assert len(bounded.sample) == len(report.per_query()) == 100
    assert any("a random sample of 100" in note for note in report.runs["live"].notes)
    assert report.settings["method"] == "delta"
    for key, expected in full.runs["live"].estimates.items():
        found = report[key]
        assert found.value == pytest.approx(expected.value, rel=1e-12, nan_ok=True), key
        width = expected.high - expected.low
        if width > 0 and not key.startswith(("BoR_max", "lambda")):
            assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.08 * width), key


def test_every_retrieval_has_the_same_chance_to_be_kept() -> None:
    labels = {f"q{i}": {"d": 1} for i in range(40)}
    kept = np.zeros(40)
    for seed in range(400):
        monitor = Monitor(labels, sample_size=10, seed=seed, measures=["Success"], depths=[1])
        for query in labels:
            monitor.record(Retrieval(query, ["d"]))
        for retrieval in monitor.sample:
            kept[int(retrieval.query[1:])] += 1
    assert kept.sum() == 4000
    assert abs(kept - 100).max() < 4.5 * np.sqrt(400 * 0.25 * 0.75)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 0.9)), min_size=2, max_size=60), st.data())
def test_moments_do_not_depend_on_how_the_queries_were_split(rows, data) -> None:
    success = np.array([[float(hit)] for hit, _ in rows])
    chance = np.array([[p] for _, p in rows])
    whole = Moments.of(Outcome((success, chance, 1 - chance), "-", _BITS))
    cut = data.draw(st.integers(0, len(rows)))
    parts = [Outcome((success[s], chance[s], 1 - chance[s]), "-", _BITS) for s in (slice(0, cut), slice(cut, None))]
    joined = Moments.of(parts[1])
    joined.add(parts[0])
    assert joined.value == pytest.approx(whole.value)
    assert np.array(joined.interval()) == pytest.approx(np.array(whole.interval()), rel=1e-6)


@pytest.mark.slow
def test_the_delta_intervals_hold_what_they_promise() -> None:
    rng = np.random.default_rng(5)
    population = np.clip(rng.lognormal(-3, 1, 100_000), 0, 0.9)
    hit_rate = np.clip(4 * population + 0.2, 0, 1)
    truth = log2(hit_rate.mean() / population.mean())
    inside = 0
    for _ in range(1500):
        drawn = rng.integers(0, len(population), 400)
        chance = population[drawn, None]
        success = (rng.random((400, 1)) < hit_rate[drawn, None]).astype(float)
        low, high = Moments.of(Outcome((success, chance, 1 - chance), "-", _BITS)).interval()
        inside += low[0] <= truth <= high[0]
    assert 0.93 <= inside / 1500 <= 0.97


def test_a_success_rate_next_to_one_keeps_its_exact_interval() -> None:
    success = np.ones((2000, 1))
    chance = np.full((2000, 1), 0.5)
    outcome = Outcome((success, chance, 1 - chance), "-", _BITS)
    ours, theirs = Moments.of(outcome).interval(), Bootstrap().intervals([outcome])[0]
    assert np.array(ours) == pytest.approx(np.array(theirs))
    success[:3] = 0
    ours, theirs = Moments.of(outcome).interval(), Bootstrap().intervals([outcome])[0]
    assert np.array(ours) == pytest.approx(np.array(theirs))
    with pytest.raises(rs.InputError, match="moments of different measures or depths"):
        Moments.of(outcome).merge(Moments.of(Outcome((success,), "-")))


def test_junk_in_any_label_makes_harm_known_as_in_a_batch_evaluation(monkeypatch) -> None:
    monkeypatch.setattr(monitor_module, "_BATCH", 1)
    labels = {"clean": {"a": 5}, "dirty": {"b": 4, "j": 1}}
    monitor = Monitor(labels, scale="utility")
    monitor.record(Retrieval("clean", ["a"]))
    assert (monitor.report()["Harm"].value, monitor.report()["Harm"].n) == (0, 1)
    monitor.record(Retrieval("dirty", ["j", "b"]))
    assert (monitor.report()["Harm"].value, monitor.report()["Harm"].n) == (0.25, 2)


def test_junk_among_grades_of_any_batch_makes_harm_known_in_all(monkeypatch) -> None:
    monkeypatch.setattr(monitor_module, "_BATCH", 1)
    monitor = Monitor({"another": {"x": 4}}, scale="utility")
    monitor.record(Retrieval("clean", ["a"], grades={"a": 5}))
    only_clean = monitor.report()["Harm"]
    assert isnan(only_clean.value)
    assert "no grade ≤ 2" in only_clean.to_dict()["reason"]
    monitor.record(Retrieval("dirty", ["j", "b"], grades={"b": 4, "j": 1}))
    assert (monitor.report()["Harm"].value, monitor.report()["Harm"].n) == (0.25, 2)


def test_one_retrieval_that_cannot_be_measured_costs_no_other() -> None:
    labels = {"good": {"a": 1}, "full": {f"d{i}": 1 for i in range(60)}}
    monitor = Monitor(labels, corpus_size=50)
    for query in ("good", "full", "good", "good"):
        monitor.record(Retrieval(query, ["a"]))
    report = monitor.report()
    assert report["Success@1"].n == 3
    assert any("1 retrievals could not be measured" in note for note in report.runs["live"].notes)


def test_labels_that_fit_nothing_are_said_so() -> None:
    monitor = Monitor({"q": {"a": 1}})
    monitor.record(Retrieval("another", ["a"]))
    with pytest.raises(rs.InputError, match="none of the 1 retrievals so far had labels"):
        monitor.report()
    monitor.record(Retrieval("q", ["x"]))
    assert "not one labelled passage was ever retrieved" in monitor.report().details()
    by_id = Monitor({"7": {"a": 1}})
    by_id.record(Retrieval("what is it?", ["a"], query_id="7"))
    by_id.record(Retrieval("graded just now", ["b"], grades={"b": 1}))
    assert by_id.report()["Success@1"].n == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"corpus_size": 0}, "corpus_size must be a whole number ≥ 1"),
        ({"sample_size": -1}, "sample_size must be a whole number ≥ 0"),
        ({"depths": [0]}, "depth 0 is not a whole number ≥ 1"),
        ({"measures": ["BoRR"]}, "unknown measure 'BoRR'"),
        ({"measures": ["BoR"]}, "needs the corpus size N"),
        ({"alerts": ["BoR < 3"]}, "needs the corpus size N"),
        ({"alerts": ["RA-nWG < .3"]}, "needs grades 1 to 5"),
    ],
)
def test_settings_that_cannot_be(options, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        Monitor({"q": {"a": 1}}, **options)


def test_threads_lose_nothing() -> None:
    labels, finals, pools = world(50)
    monitor = Monitor(labels, scale="utility", corpus_size=200)

    def work() -> None:
        for query, shown in finals.items():
            for _ in range(10):
                monitor.record(Retrieval(query, shown, pool=pools[query]))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = monitor.report()
    assert (monitor.traffic.retrievals, report["Success@1"].n_total) == (3000, 3000)
    once = watched(labels, finals, pools).report()
    assert report["RA-nWG@5"].value == pytest.approx(once["RA-nWG@5"].value)


def test_odd_traffic_is_measured_and_said() -> None:
    labels = {"q": {"a": 5, "b": 4, "j": 1}, "é 😀": {"a": 5, "j": 2}}
    monitor = Monitor(labels, scale="utility", corpus_size=100, depths=[], name='a "b" <x>')
    monitor.record(Retrieval("q", ["a", "a", "j"]))
    monitor.record(Retrieval("é 😀", []))
    monitor.record(Retrieval("q", [f"x{i}" for i in range(1000)], pool=["a"]))
    report = monitor.report()
    assert report.depths == ()
    text = " ".join(report.details().split())
    for part in ("1 retrievals returned nothing", "1 retrievals showed more passages than", "1 passages stood twice"):
        assert part in text
    assert "&lt;x&gt;" in report.to_html()
    assert report.to_dataframe().shape[0] == len(report.runs['a "b" <x>'].estimates)


def test_measures_of_every_kind_have_their_place() -> None:
    monitor = Monitor(
        {"q": {"a": 1, "b": 1}}, corpus_size=9, measures=["nDCG@10", "AP", "IPrec", "BoR(m=2)"], depths=[2]
    )
    monitor.record(Retrieval("q", ["a", "x", "b"]))
    report = monitor.report()
    assert report.depths == (2,)
    assert report["AP"].value == pytest.approx((1 + 2 / 3) / 2)
    assert report["IPrec@0.5"].value == 1.0
    assert report["BoR(m=2)"].value == pytest.approx(log2(1 / Fraction(comb(7, 1), comb(9, 3))))
    heads = [line.split() for line in report.details().splitlines() if line.split()[:1] in (["run"], ["K"])]
    assert {head[0] for head in heads} == {"run", "K"}
    assert not any("IPrec" in head for head in heads)


def test_bad_ids_are_named() -> None:
    monitor = Monitor({"q": {"a": 1}})
    monitor.record(Retrieval("q", [1, ""]))
    with pytest.raises(rs.InputError, match="no retrieval could be measured so far: passage id number 2 is empty"):
        monitor.report()


def test_the_corpus_size_may_be_an_index() -> None:
    pytest.importorskip("rag_selectivity.indexes")
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexFlatL2(2)
    index.add(np.zeros((64, 2), np.float32))
    monitor = Monitor({"q": {"a": 1}}, corpus_size=index)
    monitor.record(Retrieval("q", ["a"]))
    assert (monitor.corpus_size, monitor.report()["BoR@1"].value) == (64, 6.0)
    with pytest.raises(rs.InputError, match="corpus_size: object does not tell how many passages"):
        Monitor({"q": {"a": 1}}, corpus_size=object())
