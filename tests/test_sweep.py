"""The sweep over K: its figures against evaluate, its recommendation against worlds with a known answer."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys

import numpy as np
import pandas
import pytest

import rag_selectivity as rs
from rag_selectivity.results.sweep import Recommendation

pytestmark = pytest.mark.inside


def world(queries: int, depth: int, first: list[int], relevant: int = 1) -> tuple[dict, dict]:
    """Queries whose first relevant passage stands at the given rank, 0 for nowhere."""
    qrels, run = {}, {}
    for i in range(queries):
        rank = first[i % len(first)]
        ranked = [f"q{i}x{j}" for j in range(depth)]
        judged = {f"q{i}g{j}": 1 for j in range(relevant)}
        if rank:
            ranked[rank - 1] = f"q{i}g0"
        qrels[f"q{i}"], run[f"q{i}"] = judged, ranked
    return qrels, run


def test_every_row_is_what_evaluate_says(data) -> None:
    folder = data / "cranfield"
    run = folder / "runs" / "bm25.trec"
    options = {"corpus_size": 1400, "scale": "utility"}
    swept = rs.sweep(folder / "qrels.trec", run, **options)["bm25"]
    depths = [1, 7, 10, 40, 200]
    report = rs.evaluate(
        folder / "qrels.trec",
        run,
        measures=["Success", "BoR", "BoR_max", "lambda", "RA-nWG", "Harm"],
        depths=sorted({*depths, *(2 * d for d in depths if d < 200)}),
        bootstrap=None,
        **options,
    )
    assert [row["K"] for row in swept.rows] == list(range(1, 201))
    assert {k: swept.rows[k - 1]["slots_per_relevant"] for k in depths} == pytest.approx(
        {k: report.slots_per_relevant("bm25")[k] for k in depths}
    )
    for depth in depths:
        row = swept.rows[depth - 1]
        for column, measure in (("success", "Success"), ("BoR", "BoR"), ("BoR_max", "BoR_max"), ("lambda", "lambda")):
            assert row[column] == pytest.approx(report[f"{measure}@{depth}"].value, rel=1e-12)
        for measure in ("RA-nWG", "Harm"):
            assert row[measure] == pytest.approx(report[f"{measure}@{depth}"].value, rel=1e-12)
        assert row["headroom"] == pytest.approx(row["BoR_max"] - row["BoR"])
        if depth == 200:
            assert row["doubling"] is row["doubling_predicted"] is None
        else:
            change = report.delta("bm25", "BoR", depth, 2 * depth)
            assert row["doubling"] == pytest.approx(change.observed)
            assert row["doubling_predicted"] == pytest.approx(change.predicted)


def test_slots_per_relevant_passage_stand_beside_lambda() -> None:
    """N_p is the mean over queries that have a relevant passage, with the rel of the sweep."""
    qrels, run = {"q1": {"a": 2, "b": 1}, "q2": {"a": 2}, "q3": {"a": 0}}, {f"q{i}": ["a", "b", "c"] for i in (1, 2, 3)}
    swept = rs.sweep(qrels, {"r": run}, corpus_size=50, scale="trec", bootstrap=rs.Bootstrap(10))
    assert [row["slots_per_relevant"] for row in swept["r"].rows] == pytest.approx([k / 1.5 for k in (1, 2, 3)])
    assert re.search(r"lambda +K/N_p", swept.to_text())
    stricter = rs.sweep(qrels, {"r": run}, corpus_size=50, scale="trec", rel=2, bootstrap=rs.Bootstrap(10))
    assert [row["slots_per_relevant"] for row in stricter["r"].rows] == [1, 2, 3]


def test_no_slots_per_relevant_passage_where_they_are_not_known() -> None:
    """Documents with chunks: K counts chunks. Labels of people: lambda is that of completed labels."""
    chunks = rs.sweep(
        {"q1": {"a": 1}}, {"r": {"q1": ["a#1", "a#2"]}}, ids="name", passages_of={"a": 9}, corpus_size=90,
        bootstrap=rs.Bootstrap(10),
    )  # fmt: skip
    qrels, run = world(30, 8, [1, 2, 3, 4, 0], relevant=2)
    people = {query: dict(list(grades.items())[:1]) for query, grades in qrels.items()}
    calibrated = rs.sweep(qrels, {"r": run}, corpus_size=1000, human=people, max_k=4, bootstrap=rs.Bootstrap(10))
    for swept in (chunks, calibrated):
        assert {row["slots_per_relevant"] for row in swept["r"].rows} == {None}
        assert "K/N_p" not in swept.to_text()


@pytest.fixture
def tokens() -> tuple[dict, dict, dict]:
    qrels, run = world(50, 8, [1, 2, 3, 4, 0])
    return qrels, run, {passage: 100 for ranked in run.values() for passage in ranked}


def test_tokens_and_bits_per_thousand(tokens) -> None:
    qrels, run, lengths = tokens
    swept = rs.sweep(qrels, {"r": run}, corpus_size=1000, tokens=lengths)["r"]
    assert [row["tokens"] for row in swept.rows] == [100 * k for k in range(1, 9)]
    for row in swept.rows:
        assert row["bits_per_1000_tokens"] == pytest.approx(row["BoR"] / (row["K"] / 10))


def test_budgets(tokens) -> None:
    qrels, run, lengths = tokens

    def advice(**budget) -> Recommendation:
        return rs.sweep(qrels, {"r": run}, corpus_size=1000, tokens=lengths, **budget)["r"].recommendation

    assert advice(min_success=0.35).K == 2
    assert advice(min_success=0.35).reason == (
        "K = 2, the smallest with a success rate of 35.0% or more in these queries (40.0%). No list reaches K = 20: "
        "K = 8, the longest list, takes its place."
    )
    assert (advice(max_tokens=250).K, advice(max_tokens=250).within_tokens) == (2, 2)
    assert "the largest within 250 tokens on average: Success is 40.0% there and 80.0% at K = 4." in (
        advice(max_tokens=250).reason
    )
    impossible = advice(min_success=0.9)
    assert impossible.K is None
    assert impossible.warnings == ("no K up to 8 has a success rate of 90.0% or more; the best is 80.0%",)
    conflict = advice(min_success=0.8, max_tokens=300)
    assert conflict.K is None
    assert conflict.warnings == ("that success rate needs K = 4, but 300 tokens are enough only for K = 3",)
    assert advice(max_tokens=50).warnings == ("the first passage alone has more than 50 tokens on average",)


def test_lengths_from_a_file_a_frame_or_the_run_itself(tokens, tmp_path) -> None:
    qrels, run, lengths = tokens
    lengths = {passage: 10 + i % 7 for i, passage in enumerate(lengths)}
    expected = [row["tokens"] for row in rs.sweep(qrels, {"r": run}, corpus_size=1000, tokens=lengths)["r"].rows]
    by_hand = [np.mean([sum(lengths[p] for p in ranked[:k]) for ranked in run.values()]) for k in range(1, 9)]
    assert expected == pytest.approx(by_hand)
    table = pandas.DataFrame({"passage_id": lengths.keys(), "tokens": lengths.values()})
    table.to_csv(tmp_path / "lengths.csv", index=False)
    rows = [
        {"query_id": q, "doc_id": p, "score": -i, "tokens": lengths[p]} for q, r in run.items() for i, p in enumerate(r)
    ]
    frame = pandas.DataFrame(rows).sample(frac=1, random_state=3)
    with (tmp_path / "run.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["query_id", "doc_id", "score", "tokens"])
        writer.writeheader()
        writer.writerows(frame.to_dict("records"))
    for source, given in (
        (run, {"tokens": table}),
        (run, {"tokens": tmp_path / "lengths.csv"}),
        (frame, {}),
        (tmp_path / "run.csv", {}),
    ):
        found = rs.sweep(qrels, {"r": source}, corpus_size=1000, **given)["r"]
        assert [row["tokens"] for row in found.rows] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"corpus_size": None}, "a sweep compares with a random draw and needs the corpus size"),
        ({"max_tokens": 5}, "max_tokens needs the lengths"),
        ({"max_tokens": 0}, "max_tokens must be more than 0"),
        ({"min_success": 2}, "min_success must be more than 0 and at most 1"),
        ({"max_depth": 0}, "max_depth must be a whole number"),
        ({"tokens": {"q0x0": 1}}, r"r: \d+ passages have no length in tokens"),
        ({"tokens": {"q0x0": -1}}, "the number of tokens of passage 'q0x0' is -1; give a finite number ≥ 0"),
    ],
)
def test_mistakes_are_named(options, message) -> None:
    qrels, run = world(5, 4, [1])
    with pytest.raises(rs.InputError, match=message):
        rs.sweep(qrels, {"r": run}, **{"corpus_size": 100, **options})


@pytest.mark.slow
def test_the_command_line_and_the_views_agree(data) -> None:
    folder = data / "cranfield"
    base = ["sweep", "--qrels", "qrels.trec", "--run", "bm25=runs/bm25.trec", "--corpus-size", "1400"]
    outputs = {}
    for format in ("table", "json", "csv", "markdown"):
        done = subprocess.run(
            [sys.executable, "-m", "rag_selectivity", *base, "--scale", "utility", "--format", format],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs[format] = done.stdout
    data = json.loads(outputs["json"])["runs"]["bm25"]
    chosen = data["recommendation"]["K"]
    assert f"K = {chosen}, the smallest that loses no more than 2 percentage points" in outputs["table"]
    assert f"{chosen}* " in outputs["table"]
    assert max(map(len, outputs["table"].splitlines())) <= 80
    rows = list(csv.DictReader(outputs["csv"].splitlines()))
    assert float(rows[9]["BoR"]) == pytest.approx(data["rows"][9]["BoR"])
    assert f"| {chosen}\\* |" in outputs["markdown"].replace("  ", " ")
