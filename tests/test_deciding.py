"""Pairs that decide between two runs: their scores by brute force, the stop rule, and the command end to end."""

from __future__ import annotations

import csv
import io
import json
from itertools import product

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.golden.deciding import deciding, deciding_pairs
from rag_selectivity.golden.drawing import draw_tasks
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
from rag_selectivity.grading.store import Label, Settings, Store, digest
from tests.forked_cli import run_command
from tests.six_runs import six_runs

Pair = tuple[str, str]


def small(seed: int = 1, queries: int = 12) -> tuple[dict[str, dict[str, int]], dict[str, rs.Run], dict[Pair, int]]:
    """A judge's grades of all passages of two runs, and people's true grades."""
    random = np.random.default_rng(seed)
    judge = {f"q{i}": {f"d{i}-{j}": int(random.integers(1, 6)) for j in range(8)} for i in range(queries)}
    lists = {
        name: rs.Run.from_dict({q: [str(p) for p in random.permutation(list(row))[:5]] for q, row in judge.items()})
        for name in ("one", "other")
    }
    truth = {
        (q, p): grade if random.random() < 0.7 else int(random.integers(1, 6))
        for q, row in judge.items()
        for p, grade in row.items()
    }
    return judge, lists, truth


def test_with_all_labels_the_verdict_is_that_of_compare() -> None:
    for seed in range(3):
        judge, runs, truth = small(seed, 30)
        # One run is made better in some worlds, so that all verdicts occur.
        graded = {q: {p: truth[q, p] for p in row} for q, row in judge.items()}
        if seed:
            ordered = {q: sorted(row, key=lambda p: -row[p] if seed == 1 else row[p])[:5] for q, row in graded.items()}
            runs["one"] = rs.Run.from_dict(ordered)
        found = deciding(rs.Qrels.from_dict(judge), runs, truth, "RA-nWG@3", completions=2)
        report = rs.compare(
            graded, {"other": runs["other"], "one": runs["one"]}, measures=["RA-nWG@3"], scale="utility"
        )
        row = next(each for each in report.to_rows() if each["measure"] == "RA-nWG@3" and each["run"] == "one")
        assert found.settled
        assert found.share == 1.0
        assert found.difference == pytest.approx(row["difference"])
        assert (found.low, found.high) == (pytest.approx(found.difference), pytest.approx(found.difference))
        assert found.verdict == ("none" if row["p"] > 0.05 else "better" if row["difference"] > 0 else "worse")


def test_a_measure_against_a_random_draw_takes_the_corpus_size() -> None:
    judge, runs, truth = small(5, 30)
    graded = {q: {p: truth[q, p] for p in row} for q, row in judge.items()}
    runs["one"] = rs.Run.from_dict({q: sorted(row, key=lambda p: -row[p])[:5] for q, row in graded.items()})
    labels = rs.Qrels.from_dict(judge)
    with pytest.raises(rs.InputError, match="BoR@2 compares with a random draw and needs the corpus size"):
        deciding(labels, runs, truth, "BoR@2")
    with pytest.raises(rs.InputError, match="needs the corpus size"):
        deciding(labels, runs, {}, "BoR@2")
    found = deciding(labels, runs, truth, "BoR@2", corpus_size=500, completions=2)
    options = {"measures": ["BoR@2"], "scale": "utility", "corpus_size": 500}
    report = rs.compare(graded, {"other": runs["other"], "one": runs["one"]}, **options)
    row = next(each for each in report.to_rows() if each["measure"] == "BoR@2" and each["run"] == "one")
    assert found.difference == pytest.approx(row["difference"])
    assert found.verdict == ("none" if row["p"] > 0.05 else "better")
    # Other sizes change both runs alike.
    by_query = deciding(labels, runs, truth, "BoR@2", corpus_size=dict.fromkeys(judge, 500), completions=2)
    assert by_query.difference == found.difference


def test_less_harm_is_better() -> None:
    judge, runs, truth = small(4, 30)
    graded = {q: {p: truth[q, p] for p in row} for q, row in judge.items()}
    runs["one"] = rs.Run.from_dict({q: sorted(row, key=lambda p: -row[p])[:5] for q, row in graded.items()})
    found = deciding(rs.Qrels.from_dict(judge), runs, truth, "Harm@3", completions=2)
    assert found.difference < 0
    assert found.verdict == "better"


def test_scores_are_the_expected_changes_of_a_querys_difference() -> None:
    judge, runs, truth = small(2, 6)
    open_pairs = [("q0", "d0-0"), ("q0", "d0-1"), ("q3", "d3-2")]
    people = {pair: grade for pair, grade in truth.items() if pair not in open_pairs}
    labels = rs.Qrels.from_dict(judge)
    found = deciding(labels, runs, people, "RA-nWG@3", completions=400)
    assert found.scores.keys() == set(open_pairs)

    def difference(query: str, changed: dict[Pair, int]) -> float:
        grades = {p: {**truth, **changed}[query, p] for p in judge[query]}
        values = [
            rs.evaluate({query: grades}, {"r": {query: list(run[query])}}, measures=["RA-nWG@3"], scale="utility")[
                "RA-nWG@3"
            ].value
            for run in (runs["one"], runs["other"])
        ]
        return float(np.nan_to_num(values[0]) - np.nan_to_num(values[1]))

    # The largest change bounds the expected one, and both are by brute force over the grades.
    largest = deciding(labels, runs, people, "RA-nWG@3", completions=400, choice="largest")
    for pair in open_pairs:
        others = [other for other in open_pairs if other[0] == pair[0] and other != pair]
        spans = []
        for given in product(range(1, 6), repeat=len(others)):
            fixed = dict(zip(others, given, strict=True))
            values = [difference(pair[0], {**fixed, pair: grade}) for grade in range(1, 6)]
            spans.append(max(values) - min(values))
        assert found.scores[pair] <= largest.scores[pair] + 1e-9
        assert largest.scores[pair] <= max(spans) + 1e-9
    alone = ("q3", "d3-2")
    values = [difference("q3", {alone: grade}) for grade in range(1, 6)]
    assert min(abs(largest.scores[alone] - max(abs(v - base) for v in values)) for base in values) < 1e-9


def test_the_first_pairs_are_drawn_at_random_and_later_ones_half() -> None:
    judge, runs, truth = small(3, 20)
    labels = rs.Qrels.from_dict(judge)
    nothing = deciding(labels, runs, {}, "RA-nWG@3")
    assert not nothing.settled
    assert "people have labelled no pair" in nothing.sentence
    first = deciding_pairs(nothing, 40, seed=5)
    assert len({(each.query, each.passage) for each in first}) == 40
    assert not np.isnan([each.weight for each in first]).any()
    assert deciding_pairs(nothing, 40, seed=5) == first
    people = {(each.query, each.passage): truth[each.query, each.passage] for each in first}
    found = deciding(labels, runs, people, "RA-nWG@3", completions=50)
    then = deciding_pairs(found, 20)
    assert sum(np.isnan(each.weight) for each in then) == 10
    assert not {(each.query, each.passage) for each in then} & people.keys()
    best = sorted(found.scores.values(), reverse=True)
    chosen = [found.scores[each.query, each.passage] for each in then if np.isnan(each.weight)]
    assert min(chosen) >= best[19]


def test_what_was_chosen_teaches_nothing_about_other_pairs() -> None:
    judge, runs, truth = small(6, 20)
    labels = rs.Qrels.from_dict(judge)
    sample = [pair for i, pair in enumerate(sorted(truth)) if i % 3 == 0]
    people = {pair: truth[pair] for pair in sample}
    targeted = next(pair for pair in sorted(truth) if pair not in people and judge[pair[0]][pair[1]] == 5)
    # Ten more pairs with the judge's 5, all of which people graded 1, of queries whose scores are not looked at.
    more = [p for p in sorted(truth) if p not in people and p != targeted and judge[p[0]][p[1]] == 5][:10]
    wrong = people | dict.fromkeys(more, 1)
    common = {"completions": 100, "sample": sample}
    plain = deciding(labels, runs, people, "RA-nWG@3", **common)
    learned = deciding(labels, runs, wrong, "RA-nWG@3", **common)
    others = [p for p in plain.scores if p[0] not in {q for q, _ in more} and p in learned.scores]
    assert others
    assert all(plain.scores[p] == pytest.approx(learned.scores[p]) for p in others)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "RA-nWG"}, "name the depth, as in RA-nWG@10"),
        ({"measure": "RandomSuccess@3"}, "says of no run that it is better"),
        ({"choice": "best"}, "must be expected or largest, got 'best'"),
    ],
)
def test_mistakes(options, message) -> None:
    judge, runs, truth = small()
    with pytest.raises(rs.InputError, match=message):
        deciding(rs.Qrels.from_dict(judge), runs, truth, **options)


def test_the_unsettled_verdict_is_rarely_another_one() -> None:
    """A short form of benchmarks/deciding.py, on made worlds whose runs are equal in truth."""
    wrong = settled = 0
    for seed in range(8):
        judge, runs, truth = small(100 + seed, 25)
        labels, people, sample = rs.Qrels.from_dict(judge), {}, set()
        full = deciding(labels, runs, truth, "RA-nWG@3", completions=1).verdict
        for _ in range(4):
            found = deciding(labels, runs, people, "RA-nWG@3", sample=sample, completions=60, seed=seed)
            if found.settled:
                settled += 1
                wrong += found.verdict != full
                break
            for each in deciding_pairs(found, 40, seed=len(people)):
                people[each.query, each.passage] = truth[each.query, each.passage]
                sample |= set() if np.isnan(each.weight) else {(each.query, each.passage)}
    assert settled >= 4
    assert wrong <= 1


# -- end to end: scripted annotators on Cranfield ---------------------------------------------------------


@pytest.mark.slow
def test_cranfield_from_a_judge_to_a_settled_and_adjudicated_verdict(data, tmp_path) -> None:
    """Scripted annotators, one grade off in a tenth of the pairs, label what the commands draw for them."""
    random = np.random.default_rng(2)
    cranfield = data / "cranfield"
    lists, qrels = six_runs(cranfield), rs.read_qrels(cranfield / "qrels.trec")
    texts = {
        name: {
            row["_id"]: f"{row.get('title', '')} {row['text']}"
            for row in map(json.loads, (cranfield / f"{name}.jsonl").read_text("utf-8").splitlines())
        }
        for name in ("corpus", "queries")
    }
    queries = sorted(lists["bm25"])[:50]
    runs = {name: {q: list(lists[name][q])[:12] for q in queries} for name in ("bm25", "hybrid")}
    truth = {
        (q, p): max(1, qrels[q].get(p, 1) if q in qrels else 1)
        for q in queries
        for p in dict.fromkeys(runs["bm25"][q] + runs["hybrid"][q])
    }
    judged = {
        pair: grade if random.random() < 0.7 else int(np.clip(grade + random.choice([-2, -1, 1, 2]), 1, 5))
        for pair, grade in truth.items()
    }
    store = tmp_path / "labels.db"
    with Store(store) as labels:
        number = labels.settings_id(Settings("grade", "judge", {}, DEFAULT_RUBRIC.name, DEFAULT_RUBRIC.version, "1"))
        hashes = {(q, p): (digest(texts["queries"][q]), digest(texts["corpus"][p])) for q, p in judged}
        labels.add_texts((*pair, *both) for pair, both in hashes.items())
        labels.put([Label((number, *hashes[pair], 0), grade) for pair, grade in judged.items()]).result()
    for name, rows in texts.items():
        lines = (json.dumps({"_id": id_, "text": text}) for id_, text in rows.items())
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for name, rows in runs.items():
        lines = (f"{q} Q0 {p} {rank} {-rank} x" for q, row in rows.items() for rank, p in enumerate(row, 1))
        (tmp_path / f"{name}.trec").write_text("\n".join(lines), encoding="utf-8")

    def answer(sheet: str, error: float) -> None:
        """Fill in a sheet as an annotator does, and import it."""
        path = tmp_path / sheet
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
        by_text = {(texts["queries"][q], texts["corpus"][p]): grade for (q, p), grade in truth.items()}
        for row in rows:
            true = by_text[row["question"], row["passage"]]
            off = random.random() < error
            row["grade"] = str(int(np.clip(true + (random.choice([-1, 1]) if off else 0), 1, 5)))
        path.unlink()
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        done = run_command("store", "import", "labels.db", sheet, cwd=tmp_path)
        assert done.returncode == 0, done.stderr

    files = ("--queries", "queries.jsonl", "--corpus", "corpus.jsonl")
    draw = ("golden", "draw", "--store", "labels.db", *files, "--run", "hybrid.trec", "--run", "bm25.trec")
    with Store(store) as labels:
        first = draw_tasks(
            labels,
            "decide:60",
            queries=tmp_path / "queries.jsonl",
            corpus=tmp_path / "corpus.jsonl",
            runs={name: tmp_path / f"{name}.trec" for name in ("hybrid", "bm25")},
            annotators=["ada", "ben"],
            overlap=60,
        ).tasks
    for size, said in (
        ((), f"N = {len(texts['corpus']):,}, the passages of the corpus"),
        (("--corpus-size", "9999"), ""),
    ):
        done = run_command(
            *(*draw, "--draw", "decide:60", "--measure", "BoR@10", *size, "-o", "bor.csv"), cwd=tmp_path, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert (said in done.stdout) if said else ("N =" not in done.stdout)
        (tmp_path / "bor.csv").unlink()
    state = ""
    for turn in range(8):
        done = run_command(
            *(*draw, "--draw", "decide:60", "--annotator", "ada", "--annotator", "ben", "--overlap", "60"),
            *("-o", f"t{turn}.csv"),
            cwd=tmp_path,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        state = done.stdout
        if state.startswith("settled:"):
            break
        assert f"wrote t{turn}-ada.csv: {60} pairs for ada" in done.stderr
        answer(f"t{turn}-ada.csv", 0.1)
        answer(f"t{turn}-ben.csv", 0.1)
    assert state.startswith("settled:"), state
    assert not list(tmp_path.glob(f"t{turn}-*.csv"))
    assert len(first[0].drawn) == 60
    # What all true labels say.
    full = rs.compare(
        {q: {p: g for (x, p), g in truth.items() if x == q} for q in queries},
        {"bm25": runs["bm25"], "hybrid": runs["hybrid"]},
        measures=["RA-nWG@10"],
        scale="utility",
    )
    row = next(each for each in full.to_rows() if each["measure"] == "RA-nWG@10" and each["run"] == "hybrid")
    said = (
        "hybrid is better than bm25"
        if row["p"] <= 0.05 and row["difference"] > 0
        else "hybrid is worse than bm25"
        if row["p"] <= 0.05
        else "no difference between hybrid and bm25 is shown"
    )
    assert said in state
    # The pairs were chosen: they calibrate nothing.
    with pytest.raises(rs.InputError, match="which say nothing about other pairs"):
        rs.evaluate(
            rs.read_qrels(store, humans=False), {"bm25": runs["bm25"]}, human=store, measures=["Harm"], depths=[10]
        )
    adjudicated = run_command(
        *("golden", "adjudicate", "--store", "labels.db", *files, "--task", "a.csv", "--format", "json"), cwd=tmp_path
    )
    assert adjudicated.returncode == 0, adjudicated.stderr
    found = json.loads(adjudicated.stdout)
    labelled = 60 * turn
    # Two annotators, each right in nine of ten: they differ in 1 − .9² − .1²/2 of the pairs or less (clipped grades).
    assert 0.08 * labelled < len(found["disagreements"]) < 0.27 * labelled
    answer("a.csv", 0.0)
    again = run_command("golden", "adjudicate", "--store", "labels.db", "--format", "json", cwd=tmp_path)
    rows = json.loads(again.stdout)["disagreements"]
    assert all(each["adjudicated"] == truth[each["query_id"], each["passage_id"]] for each in rows)
