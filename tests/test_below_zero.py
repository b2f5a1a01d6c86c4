"""Grades below 0: passages of the pool that nobody judged. infAP asks for them, as in trec_eval, and nothing else."""

from __future__ import annotations

import importlib
import json
import random
from dataclasses import asdict

import numpy as np
import pytest
import pytrec_eval
from rag_selectivity_pytest import Retrievals

import rag_selectivity as rs
from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.groups import Groups
from rag_selectivity.data.policy import register_ties
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.results.query_scorer import QueryScorer
from rag_selectivity.scale.out_of_core import evaluate_out_of_core
from rag_selectivity.single import Labels, evaluate_query
from tests.extensions import registries_as_before
from tests.forked_cli import run_command

__all__ = ["registries_as_before"]  # a fixture

pytestmark = pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
OPTIONS = {"scale": "trec", "ids": "exact", "policy": "trec_eval"}


def world(seed: int) -> tuple[dict, dict]:
    """Qrels and scored lists: ties, short lists, queries without a list, relevant passages that no list holds."""
    draw = random.Random(seed)
    ids = [f"d{i}" for i in range(draw.choice([3, 12, 40]))]
    queries = [f"q{i}" for i in range(draw.randint(1, 6))]
    qrels = {q: {d: draw.choice([-2, -1, -1, 0, 1, 2]) for d in draw.sample(ids, draw.randint(1, len(ids)))}
             for q in queries}  # fmt: skip
    for grades in qrels.values():
        # pytrec_eval crashes on a query whose grades are all below −1.
        if max(grades.values()) < -1:
            grades[next(iter(grades))] = -1
    score = draw.choice([lambda: float(draw.randint(1, 3)), draw.random])
    run = {q: {d: score() for d in draw.sample(ids, draw.randint(1, len(ids)))} for q in queries if draw.random() < 0.8}
    return qrels, run or {"q0": {ids[0]: 1.0}}


def of_trec_eval(qrels: dict, run: dict, rel: int = 1) -> dict[str, float]:
    """infAP by query, where a query that the run lacks counts 0."""
    found = pytrec_eval.RelevanceEvaluator(qrels, {"infAP"}, relevance_level=rel).evaluate(run)
    return {query: found.get(query, {}).get("infAP", 0.0) for query in qrels}


def figures(qrels, run, measure: str = "infAP", **options) -> dict[str, float]:
    report = rs.evaluate(qrels, {"run": run}, measures=[measure], bootstrap=None, **{**OPTIONS, **options})
    return {row["query"]: row[measure] for row in report.per_query()}


def write(folder, qrels: dict, run: dict, shuffled: bool = False) -> None:
    rows = [f"{q} Q0 {d} 0 {score!r} r\n" for q, scored in run.items() for d, score in scored.items()]
    if shuffled:
        random.Random(len(rows)).shuffle(rows)
    (folder / "run.trec").write_text("".join(rows))
    (folder / "qrels.trec").write_text("".join(f"{q} 0 {d} {g}\n" for q, row in qrels.items() for d, g in row.items()))


# -- figures beside trec_eval's ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_infap_is_that_of_trec_eval_for_every_form_of_a_run(seed, tmp_path) -> None:
    qrels, run = world(seed)
    write(tmp_path, qrels, run)
    parts = [rs.Run.from_dict({query: scored}) for query, scored in run.items()]
    records = [(q, d, score) for q, scored in run.items() for d, score in scored.items()]
    for rel in (1, 2):
        expected = pytest.approx(of_trec_eval(qrels, run, rel), abs=1e-6)
        measure = "infAP" if rel == 1 else "infAP(rel=2)"
        assert figures(qrels, run, measure) == expected
        assert figures(qrels, rs.Run.from_records(records), measure) == expected
        assert figures(tmp_path / "qrels.trec", tmp_path / "run.trec", measure) == expected
        joined = rs.join(rs.Qrels.from_dict(qrels), iter(parts), **OPTIONS)
        outcome = rs.parse_measure(measure).outcome(joined, np.array([1]))
        assert dict(zip(joined.queries, outcome.parts[0][:, 0].tolist(), strict=True)) == expected


@pytest.mark.parametrize("seed", range(30))
def test_rows_that_are_scattered_over_a_file_are_counted_and_not_held(seed, tmp_path, monkeypatch) -> None:
    lists = importlib.import_module("rag_selectivity.join.lists")
    counted, judge = [], lists.judge_scattered
    monkeypatch.setattr(lists, "judge_scattered", lambda *given: counted.append(judge(*given)) or counted[-1])
    qrels, run = world(seed)
    write(tmp_path, qrels, run, shuffled=True)
    assert figures(qrels, tmp_path / "run.trec") == pytest.approx(of_trec_eval(qrels, run), abs=1e-6)
    assert None not in counted


def test_scattered_rows_are_met_at_all(tmp_path, monkeypatch) -> None:
    qrels = {q: {"a": 1, "n": -1, "b": 0, "c": 1} for q in ("q1", "q2")}
    run = {q: {"n": 5.0, "b": 4.0, "a": 4.0, "x": 3.0, "c": 1.0} for q in qrels}
    lists = importlib.import_module("rag_selectivity.join.lists")
    counted, judge = [], lists.judge_scattered
    monkeypatch.setattr(lists, "judge_scattered", lambda *given: counted.append(judge(*given)) or counted[-1])
    rows = [(q, d) for d in run["q1"] for q in run]
    (tmp_path / "run.trec").write_text("".join(f"{q} Q0 {d} 0 {run[q][d]} r\n" for q, d in rows))
    assert figures(qrels, tmp_path / "run.trec") == pytest.approx(of_trec_eval(qrels, run), abs=1e-6)
    assert len(counted) == 1
    assert counted[0] is not None


@pytest.mark.parametrize("tables", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_out_of_core_gives_the_same(seed, tables, tmp_path) -> None:
    qrels, run = world(100 + seed)
    qrels["none"], qrels["marked"] = {"d0": 0}, {"d1": -1}
    write(tmp_path, qrels, run)
    labels, lists = tmp_path / "qrels.trec", tmp_path / "run.trec"
    if tables:
        pandas = pytest.importorskip("pandas")
        names = {"query": str, "passage": str}
        pandas.read_csv(labels, sep=" ", names=["query", "_", "passage", "grade"], dtype=names).to_parquet(
            tmp_path / "qrels.parquet"
        )
        pandas.read_csv(
            lists, sep=" ", names=["query", "_", "passage", "rank", "score", "run"], dtype=names
        ).drop(columns="rank").to_parquet(tmp_path / "run.parquet")  # fmt: skip
        labels, lists = tmp_path / "qrels.parquet", tmp_path / "run.parquet"
    whole = rs.evaluate(labels, {"run": lists}, measures=["infAP", "Bpref"], bootstrap="poisson", **OPTIONS)
    parts = evaluate_out_of_core(labels, {"run": lists}, measures=["infAP", "Bpref"], **OPTIONS)
    expected = np.mean(list(of_trec_eval(qrels, run).values()))
    assert whole["infAP"].value == pytest.approx(expected, abs=1e-6)
    for measure in ("infAP", "Bpref"):
        assert parts[measure].value == pytest.approx(whole[measure].value, rel=1e-12)
        assert parts[measure].n == whole[measure].n == len(qrels)
    below = sum(grade < 0 for row in qrels.values() for grade in row.values())
    note = f"{below} judgments below 0 were treated as not judged"
    assert note in parts.runs["run"].notes
    assert note in whole.runs["run"].notes


def test_the_command_compares_and_divides_runs_as_trec_eval_has_them(tmp_path) -> None:
    qrels, run = world(7)
    run["q0"] = {passage: float(i) for i, passage in enumerate(qrels["q0"])}
    other = {q: {passage: -score for passage, score in scored.items()} for q, scored in run.items()}
    other["unlabelled"] = {"d0": 1.0}
    write(tmp_path, qrels, other)
    (tmp_path / "run.trec").rename(tmp_path / "other.trec")
    write(tmp_path, qrels, run)
    groups = {query: "odd" if i % 2 else "even" for i, query in enumerate(qrels)}
    weights = {query: i + 1.0 for i, query in enumerate(qrels)}
    (tmp_path / "groups.csv").write_text("query,group\n" + "".join(f"{q},{group}\n" for q, group in groups.items()))
    (tmp_path / "weights.csv").write_text("query,weight\n" + "".join(f"{q},{w}\n" for q, w in weights.items()))
    words = ["--qrels", "qrels.trec", "--run", "run.trec", "--run", "other.trec", "--scale", "trec", "--ids", "exact"]
    words += ["--policy", "trec_eval", "--measure", "infAP", "--format", "json"]

    def told(*more: str) -> dict:
        done = run_command("evaluate", *words, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["runs"]

    difference = rs.compare(qrels, {"run": run, "other": other}, measures=["infAP"], **OPTIONS)
    means = [np.mean(list(of_trec_eval(qrels, lists).values())) for lists in (run, other)]
    assert difference.rows[0].difference == pytest.approx(means[1] - means[0], abs=1e-6)
    for name, lists in (("run", run), ("other", other)):
        expected = of_trec_eval(qrels, lists)
        assert told()[name]["measures"]["infAP"]["value"] == pytest.approx(np.mean(list(expected.values())), abs=1e-6)
        for value, part in told("--by", "groups.csv")[name]["slices"]["group"].items():
            mean = np.mean([expected[query] for query in qrels if groups[query] == value])
            assert part["measures"]["infAP"]["value"] == pytest.approx(mean, abs=1e-6)
        weighted = np.average([expected[query] for query in weights], weights=list(weights.values()))
        assert told("--weights", "weights.csv")[name]["measures"]["infAP"]["value"] == pytest.approx(weighted, abs=1e-6)


# -- the lists as a policy leaves them ---------------------------------------------------------------------


def test_a_policy_decides_which_of_them_stand_above() -> None:
    qrels = {"q": {"n": -1, "m": -3, "b": 0, "a": 1}}
    lists = {"q": ["n", "b", "n", "x", "m", "b", "a"]}

    def first(passages: list[str]) -> float:
        run = {"q": {passage: float(-i) for i, passage in enumerate(passages)}}
        return pytest.approx(of_trec_eval(qrels, run)["q"], abs=1e-6)

    # A further copy fills its slot and is nothing, as a passage from outside the pool.
    assert figures(qrels, lists, policy=None)["q"] == first(["n", "b", "copy", "x", "m", "other copy", "a"])
    assert figures(qrels, lists, policy=None, duplicates="drop")["q"] == first(["n", "b", "x", "m", "a"])
    condensed = figures(qrels, {"q": ["n", "b", "x", "m", "a"]}, policy=None, unjudged="condense")
    assert condensed["q"] == first(["b", "a"])
    assert figures(qrels, lists, policy=None, unjudged="worst") == figures(qrels, lists, policy=None)
    with pytest.raises(rs.InputError, match="only 1 of the first 2 passages are judged"):
        figures(qrels, lists, "P@2", policy=None, unjudged="error")


@pytest.mark.usefixtures("registries_as_before")
@pytest.mark.parametrize("seed", range(20))
def test_ties_go_as_the_policy_says(seed) -> None:
    register_ties("ascending")(lambda query, passage: passage)
    qrels, run = world(seed)
    run = {q: {d: float(int(3 * score)) for d, score in scored.items()} for q, scored in run.items()}
    for ties, before in (
        ("docid_descending", lambda row: sorted(row, reverse=True)),
        ("as_given", list),
        ("ascending", sorted),
    ):
        settled = {
            q: {d: float(-i) for i, d in enumerate(sorted(before(row), key=lambda d: -row[d]))}
            for q, row in run.items()
        }
        assert figures(qrels, run, policy=None, ties=ties) == pytest.approx(of_trec_eval(qrels, settled), abs=1e-6)


# -- labels made of others ---------------------------------------------------------------------------------


def ranked(*passages: str) -> dict[str, list[str]]:
    return {"q": list(passages)}


MARKED = {"q": {"n": -1, "b": 0, "a": 1}}


def of(qrels, run=None, **options) -> float:
    found = figures(qrels, run or ranked("x", "b", "a"), policy=None, **options)
    return found["q"] if len(found) == 1 else found


def test_the_formula_by_hand() -> None:
    assert of(MARKED, ranked("n", "b", "a")) == pytest.approx(1 / 3 + 2 / 3 * (1e-5 / (1 + 2e-5)), rel=1e-12)
    assert of(MARKED, ranked("x", "b", "a")) == pytest.approx(1 / 3 + 1 / 3 * (1e-5 / (1 + 2e-5)), rel=1e-12)
    for grade in (-1, -2, -7):
        labels = {"q": {"n": grade, "b": 1, "a": 1}}
        assert of(labels, ranked("n", "x", "a")) == pytest.approx((1 / 3 + 1 / 3 * 0.5) / 2, rel=1e-12)
    assert figures({"q": {"n": -1}, "r": {"b": 0}}, {"q": ["n"], "r": ["b"]}) == {"q": 0.0, "r": 0.0}
    assert evaluate_query("infAP", MARKED["q"], ["n", "b", "a"]).value == of(MARKED, ranked("n", "b", "a"))


def test_a_pair_that_is_judged_too_is_judged(tmp_path) -> None:
    lines = ["q 0 b 0\n", "q 0 a 1\n", "q 0 n -1\n", "q 0 n -2\n"]
    (tmp_path / "once.trec").write_text("".join(lines))
    (tmp_path / "twice.trec").write_text("".join([*lines, "q 0 b -1\n", "q 0 a -1\n"]))
    lists = ranked("n", "b", "a")
    assert of(tmp_path / "once.trec", lists) == of(tmp_path / "twice.trec", lists) == of(MARKED, lists)


def test_labels_made_of_others_keep_them() -> None:
    qrels = rs.Qrels.from_dict({"q": {"N": -1, "b": 1, "a": 1}})
    lists, expected = ranked("N", "x", "a"), (1 / 3 + 1 / 3 * 0.5) / 2
    assert of(qrels, lists) == pytest.approx(expected)
    assert of(qrels, ranked("n", "x", "a")) < expected
    assert of(qrels.in_form(IdForm.of("casefold")), ranked("n", "x", "a")) == pytest.approx(expected)
    assert of(qrels, ranked("n", "x", "a"), ids="casefold") == pytest.approx(expected)
    assert of(qrels.only(np.array([True, True])), lists) == pytest.approx(expected)
    assert of(qrels.regraded("0:1,1:2"), lists) == pytest.approx(expected)
    assert of(qrels.on_scale("trec"), lists) == pytest.approx(expected)
    renamed = qrels.under({"one": "q", "two": "q"}, passage=lambda query, id_: f"{query}-{id_}")
    runs = {name: [f"{name}-{passage}" for passage in lists["q"]] for name in ("one", "two")}
    assert of(renamed, runs) == pytest.approx({"one": expected, "two": expected})
    chunks = qrels.inherit({"N#0": "N", "N#1": "N", "b#0": "b", "a#0": "a", "c#0": "c"})
    assert of(chunks, ranked("N#1", "x", "a#0")) == pytest.approx(expected)
    assert of(qrels.inherit({"b#0": "b", "a#0": "a"}), ranked("N#1", "x", "a#0")) < expected
    grouped = Groups({"N": "same", "n": "same"}).of_qrels(qrels)
    assert of(grouped, ranked("=same", "x", "a")) == pytest.approx(expected)


def test_a_grade_map_can_mark_them() -> None:
    qrels = rs.Qrels.from_dict({"q": {"n": 3, "m": -1, "b": 1, "a": 1}}).regraded("1:1,3:-1")
    assert qrels.to_dict() == {"q": {"b": 1, "a": 1}}
    assert of(qrels, ranked("n", "m", "a")) == pytest.approx((1 / 3 + 2 / 3 * 0.5) / 2)
    classes = rs.Qrels.from_classes({"q": "x"}, {"n": "x"}).regraded("1:-1")
    assert classes.unjudged.to_dict() == {"q": {"n": 0}}


def test_controls_leave_them_as_they_are() -> None:
    labels, lists = {"q": {"n": -1, "m": -1, "b": 1, "a": 1}}, ranked("n", "m", "x", "a")
    controls = {"q": {"n": 0, "z": 0, "y": 0}}
    expected = (1 / 4 + 2 / 4 * 0.5) / 2
    options = {"corpus_size": 100, "controls": controls}
    assert of(labels, lists) == pytest.approx(expected)
    assert of(labels, lists, **options) == pytest.approx(expected)


# -- nothing else asks for them ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_no_other_figure_changes(seed) -> None:
    qrels, run = world(seed)
    qrels["q0"]["d0"] = 1
    without = rs.Qrels.from_records(
        [(q, d, g) for q, row in qrels.items() for d, g in row.items() if g >= 0], queries=qrels
    )
    measures = ["BoR", "P", "R", "AP", "RR", "nDCG", "Bpref", "RBP", "Judged", "F", "T", "Fe", "IPrec11", "Rprec"]
    options = {"measures": measures, "depths": [1, 3], "corpus_size": 100, "scale": "trec", "ids": "exact"}
    one, other = (rs.evaluate(labels, {"run": run}, **options) for labels in (qrels, without))
    assert repr(one.runs["run"].estimates) == repr(other.runs["run"].estimates)
    joins = [
        rs.join(labels, rs.Run.from_dict(run), scale="trec", ids="exact") for labels in (rs.Qrels.of(qrels), without)
    ]
    assert joins[0].facts == joins[1].facts
    for name, value in asdict(joins[0].hits).items():
        assert (value == asdict(joins[1].hits)[name]).all()


def test_reports_of_other_marks_are_of_other_labels() -> None:
    run = rs.Run.from_dict(ranked("n", "b", "a"))
    labels = [{"b": 0, "a": 1}, {"b": 0, "a": 1, "n": 0}, {"b": 0, "a": 1, "n": -1}, {"b": -1, "a": 1, "n": -1}]
    hashes = [rs.join(rs.Qrels.from_dict({"q": row}), run, ids="exact").label_hashes.tolist() for row in labels]
    assert len({*map(tuple, hashes)}) == len(labels)
    both = rs.join(rs.Qrels.from_dict({"q": labels[2], "r": labels[0]}), run, ids="exact").label_hashes.tolist()
    assert both == [*hashes[2], *hashes[0]]


# -- labels of hosts, which ask by query -------------------------------------------------------------------


def test_labels_of_hosts_keep_them_for_all_queries_and_refuse_single_ones() -> None:
    labels, lists = Labels.of({"who?": {"n": -1, "b": 1, "a": 1}}), ["n", "x", "a"]
    expected = pytest.approx((1 / 3 + 1 / 3 * 0.5) / 2)
    assert labels.of_query("who?") == {"b": 1, "a": 1}
    assert of(labels.qrels.under({"q": "who?"}), {"q": lists}) == expected
    assert of(labels.judgments({"q": labels.of_query("who?")}, {"q": "who?"}), {"q": lists}) == expected
    of_others = labels.judgments({"q": {"b": 1, "a": 1}}, {"q": None})
    assert of_others.unjudged is None or not of_others.unjudged.size

    monitor = Monitor({"who?": {"n": -1, "b": 1, "a": 1}}, measures=["infAP"], ids="exact")
    for _ in range(2):
        monitor.record(Retrieval(query="who?", shown=lists))
    assert monitor.report()["infAP"].value == expected

    retrievals = Retrievals()
    for _ in range(2):
        retrievals.record("who?", lists)
    report = retrievals.report({"who?": {"n": -1, "b": 1, "a": 1}}, measures=["infAP"], bootstrap=None, ids="exact")
    assert report["infAP"].value == expected
    assert report["infAP"].n == 2

    with pytest.raises(rs.InputError, match="infAP takes labels below 0 as passages of the pool that were not judged"):
        QueryScorer("infAP", labels={"who?": {"n": -1, "a": 1}})
    assert QueryScorer("infAP", labels={"who?": {"n": 0, "a": 1}}).figures(["a"], "who?")[0].value == 1
