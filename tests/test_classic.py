"""The classic measures: published worked examples, trec_eval's own test run, and pytrec_eval query by query."""

from collections.abc import Iterator

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from tests import reference

pytestmark = pytest.mark.contract

DEPTHS = [1, 2, 5, 10, 20, 100, 1000]
LEVELS = [i / 10 for i in range(11)]


def one(relevance: list[int], measure: str, *, further: int = 0, **options) -> float:
    """A measure of one ranking, given the grades down the list and how many relevant ones it misses."""
    judged = {f"d{i}": grade for i, grade in enumerate(relevance)}
    judged.update({f"missed{i}": 1 for i in range(further)})
    ranked = [f"d{i}" for i in range(len(relevance))]
    options = {"scale": "trec", "measures": [measure], "bootstrap": None, **options}
    return rs.evaluate({"q": judged}, {"r": {"q": ranked}}, **options)[measure].value


# -- trec_eval's own test -------------------------------------------------------------------------


def printed(path) -> Iterator[tuple[str, str, float]]:
    """What trec_eval printed, but for what is no number."""
    for line in path.read_text().splitlines():
        name, query, value = line.split()
        if name not in ("runid", "relstring"):
            yield name, query, float(value)


def ours(name: str) -> str | None:
    """Our name of a trec_eval measure, None for what we do not offer."""
    if name in ("map", "recip_rank", "Rprec"):
        return {"map": "AP", "recip_rank": "RR", "Rprec": "Rprec"}[name]
    stem, _, cut = name.rpartition("_")
    if stem == "iprec_at_recall":
        # The published outputs are of version 10, which rounds recall levels otherwise than 9 did.
        return f"IPrec(rounding=nearest)@{float(cut):g}"
    known = {"P": "P", "recall": "R", "map_cut": "AP", "ndcg_cut": "nDCG", "success": "Success"}
    return f"{known[stem]}@{cut}" if stem in known else None


@pytest.mark.parametrize("name", ["trec_eval.out.test.a", "trec_eval.out.test.aq", "trec_eval.out.test"])
def test_trec_evals_own_test_run_prints_the_same(data, name) -> None:
    folder = data / "trec"
    expected = [(ours(measure), *rest) for measure, *rest in printed(folder / name) if ours(measure)]
    measures = list(dict.fromkeys(measure for measure, *_ in expected))
    assert {"AP", "Rprec", "RR", "IPrec(rounding=nearest)@0.5", "P@10"} <= set(measures)
    report = rs.evaluate(
        folder / "trec_eval.qrels.test",
        {"run": folder / "trec_eval.results.test"},
        measures=measures,
        policy="trec_eval",
        bootstrap=None,
    )
    rows = {row["query"]: row for row in report.per_query()}
    for measure, query, value in expected:
        actual = report[measure].value if query == "all" else rows[query][measure]
        assert actual == pytest.approx(value, abs=5.1e-5), (measure, query)
    curve = [report[f"IPrec(rounding=nearest)@{level:g}"].value for level in LEVELS]
    for measure, query, value in printed(folder / name):
        if (measure, query) == ("11pt_avg", "all"):
            assert np.mean(curve) == pytest.approx(value, abs=5.1e-5)


# -- pytrec_eval, query by query ------------------------------------------------------------------


COLLECTIONS = {
    "trec": ("trec/trec_eval.qrels.test", "trec/trec_eval.results.test", "trec", 1),
    "cranfield bm25": ("cranfield/qrels.trec", "cranfield/runs/bm25.trec", "utility", 4),
    "cranfield lsa": ("cranfield/qrels.trec", "cranfield/runs/lsa.trec", "utility", 5),
    "dl19": ("trec/qrels.dl19-passage.txt", "trec/run.msmarco-v1-passage.bm25-default.dl19.txt", "trec", 2),
}


def scores(path) -> dict[str, dict[str, float]]:
    run: dict[str, dict[str, float]] = {}
    for line in path.read_text().splitlines():
        query, _, passage, _, score, _ = line.split()
        run.setdefault(query, {})[passage] = float(score)
    return run


def spoiled(run, *, tied: bool, missing: bool) -> dict[str, dict[str, float]]:
    """Scores made equal in large groups, or every fifth query left out."""
    kept = [query for i, query in enumerate(run) if not (missing and i % 5 == 0 and len(run) > 5)]
    return {query: {p: round(s / 3) if tied else s for p, s in run[query].items()} for query in kept}


@pytest.mark.parametrize(("tied", "missing"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("name", COLLECTIONS)
def test_every_measure_equals_pytrec_eval_query_by_query(data, name, tied, missing) -> None:
    qrels_file, run_file, scale, rel = COLLECTIONS[name]
    qrels = reference.read_trec_qrels(data / qrels_file)
    run = spoiled(scores(data / run_file), tied=tied, missing=missing)
    ranked = [f"{measure}(rel={rel})" for measure in ("P", "R", "Success", "AP", "RR", "Rprec", "IPrec")]
    report = rs.evaluate(
        data / qrels_file,
        {"run": run},
        scale=scale,
        measures=[
            *(*ranked, f"F(rel={rel},beta=2)", "nDCG", "nDCG(gain=exp)", f"IPrec11(rel={rel})"),
            *(f"{measure}(rel={rel})@{k}" for measure in ("AP", "RR") for k in DEPTHS),
        ],
        depths=DEPTHS,
        policy="trec_eval",
        bootstrap=None,
    )
    cuts = ",".join(map(str, DEPTHS))
    wanted = {f"{measure}.{cuts}" for measure in ("P", "recall", "success", "map_cut", "ndcg_cut")}
    peer = pytrec_eval.RelevanceEvaluator(
        qrels, {*wanted, "map", "recip_rank", "Rprec", "iprec_at_recall", "11pt_avg"}, relevance_level=rel
    ).evaluate(run)
    # The exponential gain is the linear one of other grades.
    gains = {query: {passage: 2**grade - 1 for passage, grade in row.items()} for query, row in qrels.items()}
    by_gains = pytrec_eval.RelevanceEvaluator(gains, {f"ndcg_cut.{cuts}"}).evaluate(run)
    for row in report.per_query():
        theirs = peer.get(row["query"])
        relevant = sum(grade >= rel for grade in qrels[row["query"]].values())
        for depth in DEPTHS:
            pairs = {
                f"P(rel={rel})": "P",
                f"R(rel={rel})": "recall",
                f"AP(rel={rel})": "map_cut",
                "nDCG": "ndcg_cut",
                f"Success(rel={rel})": "success",
            }
            found = {theirs_: row[f"{ours_}@{depth}"] for ours_, theirs_ in pairs.items()}
            if not relevant:
                # No success was possible: left out of chance-corrected means. trec_eval's success is 0.
                assert found.pop("success") is None
            for measure, value in found.items():
                expected = theirs[f"{measure}_{depth}"] if theirs else 0
                assert value == pytest.approx(expected, abs=1e-9), (row["query"], measure, depth)
            exponential = by_gains[row["query"]][f"ndcg_cut_{depth}"] if theirs else 0
            assert row[f"nDCG(gain=exp)@{depth}"] == pytest.approx(exponential, abs=1e-9)
            first = theirs["recip_rank"] if theirs else 0
            assert row[f"RR(rel={rel})@{depth}"] == pytest.approx(first if first * depth >= 1 - 1e-9 else 0, abs=1e-9)
            precision, recall = found["P"], found["recall"]
            combined = 5 * precision * recall / (4 * precision + recall) if precision else 0
            assert row[f"F(rel={rel},beta=2)@{depth}"] == pytest.approx(combined, abs=1e-9)
        for measure, value in (("AP", "map"), ("RR", "recip_rank"), ("Rprec", "Rprec"), ("IPrec11", "11pt_avg")):
            assert row[f"{measure}(rel={rel})"] == pytest.approx(theirs[value] if theirs else 0, abs=1e-9)
        for level in LEVELS:
            expected = theirs[f"iprec_at_recall_{level:.2f}"] if theirs else 0
            assert row[f"IPrec(rel={rel})@{level:g}"] == pytest.approx(expected, abs=1e-9)
    means = report[f"AP(rel={rel})"]
    assert means.n == means.n_total == len(qrels)
    assert means.value == pytest.approx(sum(cell["map"] for cell in peer.values()) / len(qrels), abs=1e-12)


def test_among_ties_rr_follows_trec_eval_where_ir_measures_takes_the_msmarco_script() -> None:
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}
    report = rs.evaluate(qrels, {"r": run}, measures=["RR", "RR@10"], bootstrap=None)
    trec_eval = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)["q"]["recip_rank"]
    msmarco = ir_measures.calc_aggregate([ir_measures.RR @ 10], qrels, run)[ir_measures.RR @ 10]
    assert report["RR"].value == report["RR@10"].value == pytest.approx(trec_eval) == pytest.approx(1 / 3)
    assert msmarco == 1  # ascending ids


# -- properties -----------------------------------------------------------------------------------


CLASSIC = ["P", "R", "F", "AP@5", "RR@5", "nDCG", "nDCG(gain=exp)", "AP", "RR", "Rprec", "IPrec"]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_no_order_beats_the_ideal_one(grades) -> None:
    ideal = sorted(grades, reverse=True)
    for gain in ("linear", "exp"):
        best = one(ideal, f"nDCG(gain={gain})@{len(grades)}")
        assert best == pytest.approx(1.0 if any(grades) else 0.0)
        assert one(grades, f"nDCG(gain={gain})@{len(grades)}") <= best + 1e-12
