"""Golden sets: mistakes of users and damaged folders, each an error that says what, where and the mend."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.decision.measured_costs import measured_costs
from rag_selectivity.errors import InputError
from rag_selectivity.golden import GoldenSet, build, check, diff, export
from rag_selectivity.golden.adjudicating import annotator_agreement
from rag_selectivity.golden.forms import FORMS
from rag_selectivity.golden.manifest import MANIFEST
from rag_selectivity.golden.render import difference_text
from rag_selectivity.grading.store import Store
from tests.golden_world import CORPUS as WORLD
from tests.golden_world import golden_set

pytestmark = pytest.mark.inside

QUERIES = {"q1": "What is RAG?", "q2": "How do I rerank?"}
LABELS = {"q1": {"d1": 5, "d2": 1}, "q2": {"d2": 4}}
CORPUS = {"d1": "RAG is retrieval and generation.", "d2": "A reranker orders."}
OTHERS = {**LABELS, "q2": {"d2": 5}}


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    build("s", labels=LABELS, queries=QUERIES, corpus=CORPUS, name="faq", licence="MIT", description="of ours")
    return tmp_path


def content_of(folder: str) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in sorted(Path(folder).rglob("*")) if each.is_file()}


# -- folders ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["s", "s/v1", "s/v1/../v1"])
@pytest.mark.parametrize("form", FORMS)
def test_an_export_into_a_set_is_refused_and_leaves_it(home, target, form) -> None:
    before = content_of("s")
    with pytest.raises(InputError, match="golden set, whose files an export would replace: name another folder"):
        export("s", target, form)
    assert content_of("s") == before


def test_a_version_that_lost_its_manifest_is_not_passed_over(home) -> None:
    build("s", labels=OTHERS, queries=QUERIES, corpus=CORPUS)
    Path("s/v2/manifest.json").unlink()
    for act in (
        lambda: GoldenSet.read("s"),
        lambda: build("s", labels=LABELS, queries=QUERIES, corpus=CORPUS),
        lambda: check("s"),
    ):
        with pytest.raises(InputError, match=r"v2.manifest\.json: there is no such file"):
            act()
    assert GoldenSet.read("s/v1").version == 1


def test_a_folder_in_the_place_of_a_version_is_named(home) -> None:
    Path("s/v2").mkdir()
    Path("s/v2/notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"s.v2: there is something else in the place of the next version: move it"):
        build("s", labels=OTHERS, queries=QUERIES, corpus=CORPUS)


def test_a_version_under_another_number_is_refused(home) -> None:
    shutil.copytree("s/v1", "s/v3")
    with pytest.raises(InputError, match=r"s.v3.manifest\.json: this is version 1, and the folder is called v3"):
        GoldenSet.read("s")
    shutil.copytree("s/v1", "copy")
    assert GoldenSet.read("copy").version == 1


def damage(path: Sequence[str], value: Any) -> None:
    file = Path("s/v1") / MANIFEST
    data = json.loads(file.read_text())
    place = data
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    file.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["queries", "weighted"], True),
        (["queries", "count"], 7),
        (["labels", "rows"], 8),
        (["corpus", "passages"], 1),
        (["corpus"], None),
        (["fingerprint"], "0123456789abcdef"),
        (["files", "queries.jsonl", "rows"], 0),
        (["files", "labels.jsonl", "rows"], 9),
    ],
)
def test_a_manifest_that_contradicts_the_files_is_damaged(home, path, value) -> None:
    damage(path, value)
    with pytest.raises(InputError, match=r"manifest\.json: the manifest is damaged: .*make the set again"):
        GoldenSet.read("s")


@pytest.mark.parametrize("value", ["99999999999999999999", "soon", "-1", "٣"])
def test_a_source_date_that_is_no_time_is_an_error(home, monkeypatch, value) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", value)
    with pytest.raises(InputError, match="SOURCE_DATE_EPOCH must be a time in seconds"):
        build("t", labels=LABELS, queries=QUERIES)
    assert not Path("t").exists()


# -- queries ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["weight", "stratum"])
def test_a_query_that_stands_twice_with_other_values_is_an_error(home, name) -> None:
    rows = [{"query_id": "q1", "text": "a", name: value} for value in (1, 2)]
    with pytest.raises(InputError, match=rf"queries, row 2: query 'q1' has another {name} than in queries, row 1"):
        build("t", labels=LABELS, queries=rows)
    assert len(build("t", labels=LABELS, queries=[rows[0], rows[0]]).golden.queries) == 1


@pytest.mark.parametrize("row", [{"_id": "q1", "query_id": 7, "text": "a"}, {"query_id": "q1", "id": 5, "text": "a"}])
def test_two_ids_of_a_query_are_an_error(home, row) -> None:
    with pytest.raises(InputError, match=r"queries, row 1: the columns .* hold two ids of the query"):
        build("t", labels=LABELS, queries=[row])


def test_an_id_that_stands_in_two_columns_is_kept_once(home) -> None:
    golden = build("t", labels=LABELS, queries=[{"_id": "q1", "query_id": "q1", "Text": "a", "text": None}]).golden
    assert golden.queries == ({"query_id": "q1", "text": "a"},)


def test_half_a_character_in_a_query_is_an_error(home) -> None:
    with pytest.raises(InputError, match="queries\\['q1'\\]: the query holds half of a surrogate pair"):
        build("t", labels=LABELS, queries={"q1": "\ud800 x"})


def test_labels_of_other_queries_are_refused(home) -> None:
    with pytest.raises(InputError, match=r"no label \(there are 2\) belongs to a query of the set \(there are 1\)"):
        build("t", labels={"q8": {"d1": 5, "d2": 1}}, queries={"q1": "a"})


# -- forms ------------------------------------------------------------------------------------------------


# -- check and diff ---------------------------------------------------------------------------------------


def test_the_judged_share_is_over_all_queries_of_the_set(home) -> None:
    build("t", labels=LABELS, queries={**QUERIES, "q3": "Something else, which nobody labelled"}, corpus=CORPUS)
    runs = {"mine": {"q1": ["d1", "d2"], "q2": ["d2"], "q3": ["d8", "d9"]}}
    found = check("t", runs=runs, depths=[2], min_judged=0.9)
    assert found.judged["mine"][2] == 2 / 3
    assert "judged" in [each.code for each in found.of_level("problem")]


@pytest.mark.parametrize("depth", [0, -2, 1.5, True])
def test_a_pool_depth_that_is_none_is_an_error(home, depth) -> None:
    with pytest.raises(InputError, match=r"pool_depth \(--pool-depth\) must be a whole number ≥ 1"):
        check("s", runs={"mine": {"q1": ["d1"], "q2": ["d2"]}}, pool_depth=depth)


def test_labels_of_a_judge_whose_text_has_changed_are_named(tmp_path) -> None:
    golden = golden_set(tmp_path)
    found = check(golden, corpus={**WORLD, "d0": "another text"})
    pairs = {tuple(pair) for each in found.findings if each.code == "text-changed" for pair in each.items}
    assert pairs == {(row["query_id"], "d0") for row in golden.label_rows if row["passage_id"] == "d0"}
    assert all(each.to_dict()["count"] for each in found.findings if each.code == "text-changed")


def test_an_unknown_judge_is_named_with_the_set(home) -> None:
    for act in (check, export_to_trec):
        with pytest.raises(InputError, match=r"labels\.jsonl has no judge 'nobody'") as error:
            act("s", judges=["nobody"])
        assert os.path.join("s", "v1") in str(error.value)


def export_to_trec(golden: str, **options: Any) -> None:
    export(golden, "x", "trec", **options)


def test_a_difference_in_words_alone_is_told(home) -> None:
    build("s", labels=LABELS, queries=QUERIES, corpus=CORPUS, description="of theirs")
    found = diff("s")
    assert not found.is_empty
    assert "description: of ours → of theirs" in difference_text(found)


def test_other_columns_of_queries_are_told(home) -> None:
    rows = [{"query_id": id_, "text": text, "stratum": "a"} for id_, text in QUERIES.items()]
    build("s", labels=LABELS, queries=rows, corpus=CORPUS)
    found = diff("s")
    assert found.queries_with_other_columns == ("q1", "q2")
    assert "2 queries with other columns" in difference_text(found)
    assert "nothing that figures rest on" not in difference_text(found)


def test_a_corpus_that_is_new_or_gone_is_told(home) -> None:
    build("s", labels=LABELS, queries=QUERIES)
    text = difference_text(diff("s"))
    assert "the corpus is no longer given" in text
    assert "the corpus is given now" in difference_text(diff("s/v2", "s/v1"))


def test_disagreements_below_the_asked_distance_are_not_denied(tmp_path) -> None:
    with Store(tmp_path / "two.db") as store:
        for name, grades in {"ada": [5, 1, 2], "ben": [5, 2, 2]}.items():
            store.put_human([("q1", f"d{i}", grade, None) for i, grade in enumerate(grades)], name)
    found = annotator_agreement(tmp_path / "two.db", at_least=2)
    assert found.lines()[-1] == "0 pairs with grades that are 2 or more apart, 0 of them adjudicated; 0 left"


# -- weights and costs ------------------------------------------------------------------------------------


def test_weights_whose_sum_no_number_holds_are_refused() -> None:
    runs = {"mine": {"q1": ["d1"], "q2": ["d1"]}}
    options = {"scale": "utility", "measures": ["RA-nWG"], "depths": [1], "bootstrap": None}
    with pytest.raises(InputError, match="the sum of the weights is more than a number can hold"):
        rs.evaluate(LABELS, runs, weights={"q1": 1e308, "q2": 1e308}, **options)
    with pytest.raises(InputError, match="weights: give a file, a frame, a mapping or a list of rows, got 5"):
        rs.evaluate(LABELS, runs, weights=5, **options)


@pytest.mark.parametrize("price", [10**400, np.True_, True, -1, float("inf"), "dear"])
def test_a_cost_that_is_no_number_is_an_error(price) -> None:
    with pytest.raises(InputError, match=r"costs, row 1: price is .*; give a number ≥ 0"):
        measured_costs([{"query_id": "q1", "price": price}], ["mine"])
