"""The explorer's data beside loops over plain dicts: figures, lists of failures, hard negatives, magnets, sizes."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.render.explorer import explorer
from rag_selectivity.slices.table import read_query_table
from tests.explorer_world import JUNK, REL, ExplorerWorld, K, unpacked

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]


@pytest.fixture(scope="module")
def world() -> ExplorerWorld:
    return ExplorerWorld()


@pytest.fixture(scope="module")
def packed(world):
    return unpacked(world.explorer())


def test_figures_and_diagnoses_are_those_of_evaluate(world, packed) -> None:
    rows = {(row["run"], row["query"]): row for row in world.report.per_query()}
    words = packed["diagnoses"]["words"]
    for r, run in enumerate(packed["runs"]):
        for q, query in enumerate(packed["queries"]):
            row = rows[run, query]
            figure, code = packed["figures"][r][q], packed["diagnoses"]["codes"][r][q]
            assert figure == pytest.approx(row[f"RA-nWG@{K}"], abs=1e-6)
            assert (None if code is None else words[code]) == row[f"diagnosis@{K}"]
    means = {run: world.report[run, f"RA-nWG@{K}"].value for run in world.runs}
    assert packed["runs"][packed["best"]] == max(means, key=means.__getitem__)


def test_lists_of_failures(world, packed) -> None:
    presets = {"none": set(), "pool": set(), "one": set(), "junk": set(), "undefined": set()}
    only = {}
    for query in world.ids:
        relevant = world.relevant(query)
        if not relevant:
            presets["undefined"].add(query)
            continue
        answering = [run for run in world.runs if relevant & set(world.top(run, query))]
        # A passage of the list that the pool lacks is a part of the pool.
        pools = [{*world.pools.get(run, {}).get(query, ()), *world.runs[run][query]} for run in world.runs]
        junk = [sum(world.grades[query].get(p, REL) <= JUNK for p in world.top(run, query)) / K for run in world.runs]
        if not answering:
            presets["none"].add(query)
        if not any(relevant & pool for pool in pools):
            presets["pool"].add(query)
        if len(answering) == 1:
            presets["one"].add(query)
            only[query] = answering[0]
        if max(junk) >= 0.5:
            presets["junk"].add(query)
    found = {
        name: {query for query, given in zip(packed["queries"], packed["presets"], strict=True) if name in given}
        for name in ("none", "pool", "one", "junk")
    }
    assert all(presets.values()), "each list needs a query for this test to mean anything"
    assert found == {name: listed for name, listed in presets.items() if name != "undefined"}
    assert packed["undefined"] == len(presets["undefined"])
    assert {
        query: packed["runs"][run]
        for query, run in zip(packed["queries"], packed["only"], strict=True)
        if run is not None
    } == only


def test_what_a_run_shows_is_in_its_pool() -> None:
    """A passage of the list that the pool lacks counts as a part of the pool, as in PROC."""
    grades, run = {"a": {"d1": 5}, "b": {"d2": 5}}, {"a": ["d1"], "b": ["d3"]}
    pool = {"a": ["d4"], "b": ["d4"]}
    report = rs.evaluate(
        grades, {"run": run}, pool={"run": pool}, scale="utility", measures=["RA-nWG"], depths=[1], bootstrap=None
    )
    packed = unpacked(explorer(report, 1, runs={"run": run}))
    assert dict(zip(packed["queries"], packed["presets"], strict=True)) == {"a": [], "b": ["none", "pool"]}


def test_passages_and_their_grades(world, packed) -> None:
    for r, run in enumerate(packed["runs"]):
        for q, query in enumerate(packed["queries"]):
            grades = dict(zip(packed["grades"][q][::2], packed["grades"][q][1::2], strict=True))
            listed = [(packed["passages"][p], grades.get(p)) for p in packed["lists"][r][q]]
            assert listed == [(p, world.grades[query].get(p)) for p in world.runs[run][query]]
    assert packed["texts"] == [world.corpus[p] for p in packed["passages"]]
    assert packed["relevant"] == [len(world.relevant(query)) for query in packed["queries"]]


def test_hard_negatives(world, packed) -> None:
    scores = {}
    for query in world.ids:
        for passage in world.corpus:
            if passage in world.grades[query]:
                continue
            ranks = [
                world.top(run, query).index(passage) + 1 if passage in world.top(run, query) else None
                for run in world.runs
            ]
            if sum(rank is not None for rank in ranks) >= 2:
                scores[query, passage] = (ranks, sum(1 / rank for rank in ranks if rank) / len(ranks))
    found = {
        (packed["queries"][q], packed["passages"][p]): (ranks, pytest.approx(score, abs=1e-6))
        for q, p, ranks, score in packed["hard"]
    }
    assert len(scores) > 5
    assert found == scores
    assert [row[3] for row in packed["hard"]] == sorted((row[3] for row in packed["hard"]), reverse=True)


def test_with_one_run_hard_negatives_are_its_own() -> None:
    world = ExplorerWorld(runs=1)
    data = unpacked(world.explorer())
    own = {(q, p) for q in world.ids for p in world.top("run 0", q) if p not in world.grades[q]}
    assert {(data["queries"][q], data["passages"][p]) for q, p, *_ in data["hard"]} == own
    assert not any("one" in presets for presets in data["presets"])


def test_magnets(world, packed) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for query in world.ids:
        for passage in {p for run in world.runs for p in world.top(run, query)}:
            grade = world.grades[query].get(passage)
            kind = "none" if grade is None else "junk" if grade <= JUNK else "relevant" if grade >= REL else "useful"
            counts[passage].update(("queries", kind))
    expected = {
        passage: [each["queries"], each["junk"], each["relevant"], each["none"]]
        for passage, each in counts.items()
        if each["junk"] >= 2
    }
    assert len(expected) > 2
    assert {packed["passages"][row[0]]: row[1:] for row in packed["magnets"]} == expected
    assert [row[2] for row in packed["magnets"]] == sorted((row[2] for row in packed["magnets"]), reverse=True)
    crowd = {p: each["queries"] for p, each in counts.items() if each["queries"] == each["none"] >= 3}
    assert {packed["passages"][row[0]]: row[1] for row in packed["unlabelled"]} == crowd


def test_unlabelled_passages_that_many_queries_retrieve() -> None:
    grades = {f"q{i}": {f"good-{i}": 5} for i in range(4)}
    run = {q: ["everywhere", "good-0", f"own-{q}"] for q in grades}
    report = rs.evaluate(grades, run, scale="utility", measures=["RA-nWG"], depths=[2], bootstrap=None)
    data = unpacked(explorer(report, 2, runs={"run": run}))
    # "good-0" has a label for one of the four.
    assert [(data["passages"][row[0]], row[1]) for row in data["unlabelled"]] == [("everywhere", 4)]


def test_figures_alone_without_runs(world) -> None:
    data = unpacked(shown := world.explorer(qrels=None, runs=None, queries=None, corpus=None))
    assert data["lists"] is data["texts"] is data["query_texts"] is None
    assert data["figures"] == unpacked(world.explorer())["figures"]
    assert data["presets"] == unpacked(world.explorer())["presets"]
    assert "made without the runs" in shown.notes[0]


def test_a_binary_report_ranks_by_success(world) -> None:
    grades = {q: {p: int(g >= REL) for p, g in row.items()} for q, row in world.grades.items()}
    report = rs.evaluate(grades, world.runs, measures=["Success(m=2)"], depths=[K], bootstrap=None)
    data = unpacked(explorer(report, K, runs=world.runs))
    assert (data["measure"], data["rel"], data["m"], data["junk"]) == (f"Success(m=2)@{K}", 1, 2, 0)
    values = {row["query"]: row[data["measure"]] for row in report.per_query("run 1")}
    assert dict(zip(data["queries"], data["figures"][1], strict=True)) == values
    answered = [
        any(sum(grades[q].get(p, 0) for p in world.top(run, q)) >= 2 for run in world.runs) for q in data["queries"]
    ]
    enough = [sum(grades[q].values()) >= 2 for q in data["queries"]]
    assert ["none" in each for each in data["presets"]] == [
        can and not got for can, got in zip(enough, answered, strict=True)
    ]


def test_the_order_of_the_report_is_shown(world) -> None:
    """Equal scores are ordered as the report's policy says, here by the order of the file."""
    run = {"q0": [("a", 1.0), ("b", 1.0), ("c", 2.0)]}
    report = rs.evaluate({"q0": {"a": 5}}, run, scale="utility", measures=["RA-nWG"], depths=[2], bootstrap=None)
    data = unpacked(explorer(report, 2, runs={"run": run}))
    assert [data["passages"][p] for p in data["lists"][0][0]] == ["c", "b", "a"]
    trusting = rs.evaluate(
        {"q0": {"a": 5}}, run, scale="utility", measures=["RA-nWG"], depths=[2], bootstrap=None, ties="as_given"
    )
    data = unpacked(explorer(trusting, 2, runs={"run": run}))
    assert [data["passages"][p] for p in data["lists"][0][0]] == ["c", "a", "b"]


# -- the table of queries ------------------------------------------------------------------------------------


def test_columns_to_filter_by(world, tmp_path) -> None:
    path = tmp_path / "by.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["qid", "type", "customer"])
        rows.writerows([query, "what" if i % 3 else "how", f"c{i % 4}"] for i, query in enumerate(world.ids[:-2]))
        rows.writerow(["q0", "how", "c0"])  # once more, with the same values
        rows.writerow(["of another report", "how", "c0"])
    data = unpacked(world.explorer(by=path))
    kinds, customers = data["columns"]
    assert (kinds["name"], customers["name"]) == ("type", "customer")
    cells = [kinds["words"][code] for code in kinds["codes"][0]]
    assert cells == ["what" if i % 3 else "how" for i in range(len(world.ids) - 2)] + ["", ""]
    assert data["not_in_table"] == 2
    rows = [{"query_id": "q1", "n": 3}, {"query_id": "q2", "language": None}]
    table = read_query_table(rows, world.ids)
    assert table.columns == ("n", "language")
    assert table.values == {"q1": ("3", ""), "q2": ("", "")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("type,language\nwhat,en\n", "no column for the query"),
        ("query_id\nq1\n", "no column besides the query ids"),
        ("query_id,type\n", "no rows"),
        ("query_id,type\n,what\n", r":2: the query id is empty"),
        ("query_id,type\nq1,what\nq1,how\n", r":3: query 'q1' has other values than in .*:2; keep one row"),
        ("query_id,type\nx1,what\n", r"none of the 1 query ids is in the report .*'x1'.*'q0'"),
    ],
)
def test_a_table_that_cannot_be_used(world, tmp_path, text, message) -> None:
    path = tmp_path / "by.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(rs.InputError, match=message):
        world.explorer(by=path)


# -- size ----------------------------------------------------------------------------------------------------


def test_texts_are_cut_to_the_budget_and_the_page_says_so(world) -> None:
    draws = np.random.default_rng(1)
    corpus = {p: " ".join(map(str, draws.integers(0, 1 << 30, 500))) for p in world.corpus}
    whole = world.explorer(corpus=corpus, budget=None)
    assert unpacked(whole)["longest"] is None
    assert not whole.notes
    cut = world.explorer(corpus=corpus, budget=len(whole.data) // 3)
    data = unpacked(cut)
    assert len(cut.data) <= len(whole.data) // 3
    assert {len(text) for text in data["texts"]} == {data["longest"]}
    assert f"Texts are cut at {data['longest']:,} characters (100.0% of the passages are longer)" in cut.notes[0]
    asked = unpacked(world.explorer(corpus=corpus, max_text=100, budget=None))
    assert {len(text) for text in asked["texts"]} == {100}
    least = world.explorer(corpus=corpus, budget=1)
    assert unpacked(least)["texts"] is None
    assert {len(ids) for ids in unpacked(least)["lists"][1]} == {K}
    assert ["lists end at rank 5" in least.notes[0], "Texts of passages are left out" in least.notes[1]] == [True, True]


@pytest.fixture(scope="module")
def crowded():
    """A report of 500 queries, its runs and their texts, which are too long for all to fit."""
    draws = np.random.default_rng(8)
    ids = [[f"d{i}-{j}" for j in range(14)] for i in range(500)]
    grades = {f"q{i}": dict(zip(row, draws.integers(1, 6, 9).tolist(), strict=False)) for i, row in enumerate(ids)}
    runs = {
        name: {q: [row[j] for j in draws.permutation(14)[:12]] for q, row in zip(grades, ids, strict=True)}
        for name in ("a", "b")
    }
    words = draws.integers(0, 1 << 30, (500, 14, 12)).astype(str).tolist()
    corpus = {p: " ".join(w) for row, of_row in zip(ids, words, strict=True) for p, w in zip(row, of_row, strict=True)}
    report = rs.evaluate(grades, runs, scale="utility", measures=["RA-nWG", "Harm"], depths=[5], bootstrap=None)
    return report, grades, runs, corpus


def test_where_texts_do_not_fit_the_queries_that_matter_have_them(crowded) -> None:
    report, grades, runs, corpus = crowded
    whole = explorer(report, 5, runs=runs, corpus=corpus, budget=None)
    assert unpacked(whole)["texted"] is None
    shown = explorer(report, 5, runs=runs, corpus=corpus, budget=len(whole.data) * 4 // 5)
    data = unpacked(shown)
    assert data["longest"] is None
    assert data["candidates"] == 50
    assert len(shown.data) <= len(whole.data) * 4 // 5
    # Which queries these are, by loops over the rows of the report.
    rows = {run: {row["query"]: row for row in report.per_query(run)} for run in runs}
    names = list(grades)
    best = rows[shown.best]
    figure = {run: {q: of_run[q]["RA-nWG@5"] for q in names} for run, of_run in rows.items()}
    low = sorted((q for q in names if figure[shown.best][q] is not None), key=lambda q: figure[shown.best][q])[:50]
    harmful = sorted(names, key=lambda q: -best[q]["Harm@5"])[:50]
    gaps = {q: abs(round(figure["a"][q], 6) - round(figure["b"][q], 6)) for q in names if figure["a"][q] is not None}
    moved = sorted(gaps, key=lambda q: -gaps[q])[:50]
    hard = list(dict.fromkeys(data["queries"][q] for q, *_ in data["hard"]))[:50]
    texted = {data["queries"][q] for q in data["texted"]}
    assert {*low, *harmful, *moved, *hard} <= texted
    assert len(texted) == len({*low, *harmful, *moved, *hard}) + 50
    expected = {p for q in texted for of_run in runs.values() for p in of_run[q]}
    expected |= {data["passages"][row[1]] for row in data["hard"]}
    texts = dict(zip(data["passages"], data["texts"], strict=True))
    assert {p for p, text in texts.items() if text is not None} == expected
    assert all(texts[p] == corpus[p] for p in expected)
    note = shown.notes[0]
    assert f"have texts for {len(texted)} of 500 queries" in note
    assert "--all-texts" in note
    for words in ("50 worst of a by", "by Harm@5", "50 with the largest difference in RA-nWG@5", "50 others drawn at"):
        assert words.replace("of a", f"of {shown.best}") in note
    assert explorer(report, 5, runs=runs, corpus=corpus, budget=len(whole.data) * 4 // 5) == shown


def test_less_room_leaves_fewer_queries_then_short_lists_then_no_texts(crowded) -> None:
    report, _, runs, corpus = crowded
    bare = len(explorer(report, 5, runs=runs, budget=None).data)
    found = []
    for budget in (4 * bare, 2 * bare, bare + 1000, bare - 1, 1000):
        shown = explorer(report, 5, runs=runs, corpus=corpus, candidates=12, budget=budget)
        data = unpacked(shown)
        found.append((data["candidates"], len(data["texted"]) if data["texts"] else 0))
        assert len(shown.data) <= budget or budget == 1000
        assert any("--all-texts" in note for note in shown.notes)
    (deep, many), (short, few), *rest = found
    assert many > few > 0
    assert (deep, short) == (12, 5)
    assert rest == [(12, 0), (5, 0), (5, 0)]


def test_six_runs_of_cranfield_fit_whole(data) -> None:
    cranfield = data / "cranfield"
    lists = {name: rs.read_run(cranfield / "runs" / f"{name}.trec").to_dict() for name in ("bm25", "lsa")}
    draws = np.random.default_rng(4)
    for name, of_run in list(lists.items()):
        for number in (1, 2):
            lists[f"{name} {number}"] = {q: draws.permutation(ids[:90]).tolist() for q, ids in of_run.items()}
    report = rs.evaluate(
        cranfield / "qrels.trec", lists, scale="utility", measures=["RA-nWG"], depths=[10], bootstrap=None
    )
    shown = explorer(
        report, 10, runs=lists, queries=cranfield / "queries.jsonl", corpus=cranfield / "corpus.jsonl", candidates=50
    )
    packed = unpacked(shown)
    assert [len(ids) for of_run in packed["lists"] for ids in of_run] == [50] * 6 * 225
    assert packed["longest"] is None
    assert not shown.notes
    assert len(shown.data) < 1_000_000


def test_two_sevenths_of_seven_thousand_queries_fit_into_two_sevenths() -> None:
    """Lists of 20 almost without a passage in common, which is the most that can be needed."""
    draws = np.random.default_rng(2)
    ids = draws.integers(0, 8_841_823, (2000, 31)).astype(str).tolist()
    grades = {f"{1000000 + 7 * i}": {row[0]: 1} for i, row in enumerate(ids)}
    runs = {
        name: {q: [row[i] for i in draws.permutation(31)[:20]] for q, row in zip(grades, ids, strict=True)}
        for name in ("a", "b")
    }
    report = rs.evaluate(grades, runs, measures=["Success"], depths=[10], bootstrap=None)
    shown = explorer(report, 10, runs=runs, candidates=20)
    assert len(shown.data) < 2_200_000 * 2 / 7
    assert unpacked(shown)["candidates"] == 20
