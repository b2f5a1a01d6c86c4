"""The explorer's data beside loops over plain dicts: figures, lists of failures, what to label next, sizes."""

import csv
from collections import Counter, defaultdict
from importlib import import_module

import pytest

import rag_selectivity as rs
from rag_selectivity.figures.by import read_query_table
from rag_selectivity.render.explorer import explorer
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
    assert packed["best"] == 0


def test_lists_of_failures(world, packed) -> None:
    presets = {"none": set(), "pool": set(), "one": set(), "junk": set(), "undefined": set()}
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
        if max(junk) >= 0.5:
            presets["junk"].add(query)
    found = {
        name: {query for query, given in zip(packed["queries"], packed["presets"], strict=True) if name in given}
        for name in ("none", "pool", "one", "junk")
    }
    assert all(presets.values()), "each list needs a query for this test to mean anything"
    assert found == {name: listed for name, listed in presets.items() if name != "undefined"}
    assert world.explorer().counts[0].startswith(f"{len(presets['undefined'])} queries have fewer relevant passages")


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


@pytest.mark.parametrize(
    ("unjudged", "listed", "to_label"), [("condense", "ab", 0), ("ignore", "uvab", 2), ("worst", "uvab", 0)]
)
def test_lists_and_what_to_label_are_those_of_the_figures(unjudged, listed, to_label) -> None:
    labels, runs = {"q": {"a": 5, "b": 1}}, {"x": {"q": ["u", "v", "a", "b"]}}
    report = rs.evaluate(labels, runs, scale="utility", unjudged=unjudged, depths=[2], bootstrap=None)
    data = unpacked(explorer(report, 2, runs=runs))
    assert (data["passages"], len(data["hard"])) == ([*listed], to_label)


def test_hard_negatives(world, packed) -> None:
    scores = {}
    for query in world.ids:
        for passage in set(world.corpus) - set(world.grades[query]):
            tops = [world.top(run, query) for run in world.runs]
            ranks = [top.index(passage) + 1 if passage in top else None for top in tops]
            if sum(rank is not None for rank in ranks) >= 2:
                scores[query, passage] = (ranks, sum(1 / rank for rank in ranks if rank))
    found = {(packed["queries"][q], packed["passages"][p]): ranks for q, p, ranks in packed["hard"]}
    assert len(scores) > 5
    assert found == {pair: ranks for pair, (ranks, _) in scores.items()}
    assert packed["totals"]["hard"] == len(scores)
    in_order = [scores[pair][1] for pair in found]
    assert in_order == pytest.approx(sorted(in_order, reverse=True))


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
        if each["junk"] >= 2 or each["queries"] == each["none"] >= 3
    }
    assert len(expected) > 2
    assert {packed["passages"][row[0]]: row[1:] for row in packed["magnets"]} == expected
    bad = [row[2] + row[4] for row in packed["magnets"]]
    assert bad == sorted(bad, reverse=True)


# -- the table of queries ------------------------------------------------------------------------------------


def test_columns_to_filter_by(world, tmp_path) -> None:
    path = tmp_path / "by.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["qid", "type", "customer"])
        rows.writerows([query, "what" if i % 3 else "how", f"c{i % 4}"] for i, query in enumerate(world.ids[:-2]))
        rows.writerow(["q0", "how", "c0"])  # once more, with the same values
        rows.writerow(["of another report", "how", "c0"])
    shown = world.explorer(by=path)
    kinds, customers = unpacked(shown)["columns"]
    assert (kinds["name"], customers["name"]) == ("type", "customer")
    cells = [kinds["words"][code] for code in kinds["codes"][0]]
    assert cells == ["what" if i % 3 else "how" for i in range(len(world.ids) - 2)] + ["", ""]
    assert shown.counts[-1] == "2 queries are not in the table of queries."
    rows = [{"query_id": "q1", "n": 3}, {"query_id": "q2", "language": None}]
    assert read_query_table(rows, world.ids).columns == {"n": {"q1": "3"}, "language": {}}


# -- size ----------------------------------------------------------------------------------------------------


def test_texts_are_cut_and_those_of_the_worst_queries_come_first(world, monkeypatch) -> None:
    data = unpacked(world.explorer(corpus=dict.fromkeys(world.corpus, "x" * 5000)))
    assert {len(text) for text in data["texts"]} == {data["longest"] + 1}
    assert data["texted"] is None
    monkeypatch.setattr(import_module("rag_selectivity.render.explorer"), "_MOST_TEXTS", 30)
    shown = world.explorer()
    data = unpacked(shown)
    figures = data["figures"][data["best"]]
    texted = [figures[query] for query in data["texted"]]
    assert max(texted) <= min(value for i, value in enumerate(figures) if i not in data["texted"] and value is not None)
    for query in data["texted"]:
        assert all(data["texts"][passage] for of_run in data["lists"] for passage in of_run[query])
    assert sum(text is not None for text in data["texts"]) <= 30
    assert f"Passages have texts for the {len(texted)} worst of 40 queries" in shown.notes[0]
