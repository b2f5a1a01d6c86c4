"""The explorer in Chromium with one run, without lists, with hostile texts, and without scripts."""

import re
from urllib.parse import urlencode

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.render.explorer import explorer
from rag_selectivity.wording import number, signed
from tests.browser import Window, overflow
from tests.explorer_world import ExplorerWorld, page_of, rows, text, until
from tests.report_worlds import HOSTILE, HOSTILE_IDS

pytest.importorskip("jinja2", reason="the page needs Jinja2 (the extra `report`)")
pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]


@pytest.fixture(scope="module")
def world() -> ExplorerWorld:
    return ExplorerWorld()


def test_hostile_ids_names_and_texts_are_text(chromium, tmp_path) -> None:
    draws = np.random.default_rng(3)
    names = (*HOSTILE_IDS, '"two" "quoted", words', " blank ")
    queries = {f"{id_}?": HOSTILE[i] or "?" for i, id_ in enumerate(HOSTILE_IDS)}
    corpus = {id_: HOSTILE[i] for i, id_ in enumerate(names)}
    grades = {q: {p: 1 + (i + j) % 5 for j, p in enumerate(HOSTILE_IDS[:8])} for i, q in enumerate(queries)}
    runs = {
        name: {q: [*names[-2:], *draws.permutation(HOSTILE_IDS).tolist()] for q in queries}
        for name in ('<b>bold</b> & "quoted"', "</script><script>window.harmed = 1</script>")
    }
    by = [{"query_id": q, "</script><b>": HOSTILE[i % 10], "__proto__": "x"} for i, q in enumerate(queries)]
    report = rs.evaluate(grades, runs, scale="utility", measures=["RA-nWG"], depths=[4], bootstrap=None)
    reasons = {(q, p): HOSTILE[0] for q, row in grades.items() for p in row}
    shown = explorer(report, 4, runs=runs, queries=queries, corpus=corpus, by=by, reasons=reasons)
    window = page_of(chromium, shown, tmp_path)
    page = window.page
    assert {row[0] for row in rows(page)} == set(queries)
    for query in queries:
        page.evaluate("(hash) => { location.hash = hash }", "#" + urlencode({"k": 4, "q": query}))
        until(page, "(id) => document.querySelector('#x-query')?.textContent === 'Query ' + id", query)
        assert text(page, "#x-note") == ""
        ids = page.locator(".x-columns > div:first-child code").evaluate_all("(all) => all.map((e) => e.textContent)")
        assert ids == next(iter(runs.values()))[query][:4]
        page.locator("button[aria-expanded=false]").evaluate_all("(all) => all.forEach((e) => e.click())")
        assert page.locator(".x-text :not(mark)").count() == 0
    page.set_viewport_size({"width": 360, "height": 740})
    assert overflow(page) == []
    assert window.is_quiet()
    window.context.close()


def test_one_run(chromium, tmp_path) -> None:
    window = page_of(chromium, ExplorerWorld(runs=1).explorer(), tmp_path)
    page = window.page
    assert page.get_by_text("Two runs against each other").count() == 0
    assert page.get_by_role("button", name=re.compile("^Only one")).count() == 0
    page.locator("#x-queries button.x-open").first.click()
    assert page.locator(".x-columns > div").count() == 1
    assert page.locator(".x-found dt").all_inner_texts() == ["Found", "Not found"]
    assert window.is_quiet()
    window.context.close()


def test_one_query_with_a_small_difference_and_texts_that_are_whole(chromium, tmp_path) -> None:
    grades = {"q": {f"d{i}": 5 if i < 10 else 3 for i in range(410)}}
    runs = {"a": {"q": ["d99"]}, "b": {"q": ["x"]}}
    corpus = {"d99": "x" * 2000, "x": "😀 " * 1000}
    options = {"scale": "utility", "ids": "exact", "bootstrap": None}
    report = rs.evaluate(grades, runs, measures=["RA-nWG"], depths=[10], **options)
    value = report["a", "RA-nWG@10"].value
    window = page_of(chromium, explorer(report, 10, runs=runs, corpus=corpus), tmp_path)
    page = window.page
    assert text(page, "#x-count") == "1 of 1 query is listed."
    assert rows(page, "moved")[0][1:4] == [number(value), number(0.0), signed(-value)]
    page.locator("#x-queries button.x-open").click()
    page.locator("button[aria-expanded=false]").evaluate_all("(all) => all.forEach((e) => e.click())")
    assert page.locator(".x-text").all_inner_texts() == list(corpus.values())
    window.context.close()


def test_figures_alone(chromium, world, tmp_path) -> None:
    window = page_of(chromium, world.explorer(qrels=None, runs=None, queries=None, corpus=None), tmp_path)
    page = window.page
    page.locator("#x-moved button.x-open").first.click()
    assert "so it has no passages" in text(page, "#x-reading")
    assert not page.get_by_text("What to label next").is_visible()
    assert window.is_quiet()
    window.context.close()


def test_without_scripts_or_without_decompression_the_page_says_what_it_lacks(chromium, world, tmp_path) -> None:
    shown = world.explorer()
    window = page_of(chromium, shown, tmp_path, java_script_enabled=False)
    assert "need JavaScript, which is switched off" in text(window.page, "#explorer noscript")
    # No heading of what only a script fills, not even a hidden one.
    headings = window.page.locator("#explorer :is(h2, h3, h4)").evaluate_all("(all) => all.map((e) => e.textContent)")
    assert headings == ["Queries and passages"]
    window.context.close()
    window = Window(chromium, tmp_path / "page.html")
    window.context.add_init_script("delete window.DecompressionStream")
    assert "cannot unpack the data" in text(window.opened(), "#x-note")
    window.context.close()
    damaged = tmp_path / "damaged.html"
    damaged.write_text((tmp_path / "page.html").read_text(encoding="utf-8").replace(shown.data[50:], "AAAA"), "utf-8")
    window = Window(chromium, damaged)
    until(window.page, "document.querySelector('#x-note').textContent.includes('are damaged')")
    window.context.close()
