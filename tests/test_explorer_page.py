"""The explorer in Chromium, driven as a reader drives it; what it shows beside loops over plain dicts.

Where there is no Chromium, or no `playwright` to drive it, these tests are skipped and say so.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.people import draw_pairs
from rag_selectivity.wording import number
from tests.browser import SCHEMES, WIDTHS, Window, axe, overflow
from tests.explorer_world import READY, ExplorerWorld, K, figures, rows, shown_figure, text, written

pytest.importorskip("jinja2", reason="the page needs Jinja2 (the extra `report`)")
pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

REASON = "It <i>names</i> the tower."


@pytest.fixture(scope="module")
def world() -> ExplorerWorld:
    return ExplorerWorld()


@pytest.fixture(scope="module")
def by(world) -> list[dict[str, str]]:
    return [{"query_id": q, "type": ("what", "how")[i % 2], "size": str(i % 5)} for i, q in enumerate(world.ids)]


@pytest.fixture(scope="module")
def window(chromium, world, by, tmp_path_factory) -> Iterator[Window]:
    shown = world.explorer(by=by, reasons={(q, p): REASON for q, row in world.grades.items() for p in row})
    opened = Window(chromium, written(shown, tmp_path_factory.mktemp("page") / "page.html"))
    yield opened
    opened.context.close()


@pytest.fixture
def at(window) -> Callable[[str], Any]:
    """Opens the page at a fragment, in a tab of its own."""
    tabs = []

    def opened(fragment: str = "") -> Any:
        page = window.opened(fragment)
        page.wait_for_selector(READY)
        tabs.append(page)
        return page

    yield opened
    for page in tabs:
        assert page.evaluate("window.harmed") is None
        page.close()
    assert not window.complaints


# -- the table of queries ------------------------------------------------------------------------------------


def test_failures_are_listed_and_counted(at, world) -> None:
    page = at()
    answering = {q: [r for r in world.runs if world.relevant(q) & set(world.top(r, q))] for q in world.ids}
    unanswered = {q for q in world.ids if world.relevant(q) and not answering[q]}
    page.get_by_role("button", name=f"No run answers: {len(unanswered)}", exact=True).click()
    assert {row[0] for row in rows(page)} == unanswered
    assert text(page, "#x-count") == f"{len(unanswered)} of 40 queries are listed."
    assert text(page, "#x-meaning") == f"No run has a relevant passage (grade 4 or higher) in its top {K}."
    alone = {q for q in world.ids if len(answering[q]) == 1}
    page.get_by_role("button", name=f"Only one run answers: {len(alone)}", exact=True).click()
    assert {row[0] for row in rows(page)} == alone
    without = sum(not world.relevant(q) for q in world.ids)
    assert page.get_by_text(f"{without} queries have fewer relevant passages").is_visible()
    assert page.locator("#x-presets [aria-pressed=true]").count() == 1


def test_rows_are_sorted_by_the_figures_with_undefined_ones_last(at, world) -> None:
    page = at()
    of_run = figures(world, "run 2")
    heading = page.locator("#x-queries th", has_text="run 2")
    for direction, sign in (("ascending", 1), ("descending", -1)):
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == direction
        ordered = sorted(world.ids, key=lambda q: (of_run[q] is None, sign * (of_run[q] or 0), world.ids.index(q)))
        shown = rows(page)
        assert [(row[0], row[3]) for row in shown] == [(q, shown_figure(of_run[q])) for q in ordered[: len(shown)]]
    assert page.locator("#x-queries [aria-sort]").count() == 1
    page.locator("#x-queries th", has_text="query").get_by_role("button").click()
    # q2 stands before q10.
    assert [row[0] for row in rows(page)][:11] == [f"q{i}" for i in range(11)]
    page.locator("#x-queries tbody button").first.focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "q1"


def test_search_and_filters_and_the_means_of_what_is_listed(at, world, by) -> None:
    page = at()
    page.get_by_label("Search").fill("TOWN q1")
    assert {row[0] for row in rows(page)} == {q for q in world.ids if q.startswith("q1")}
    page.get_by_label("type").select_option(label="how (20)")
    page.get_by_label("size").select_option(label="1 (8)")
    listed = {r["query_id"] for r in by if r["type"] == "how" and r["size"] == "1" and r["query_id"][:2] == "q1"}
    assert {row[0] for row in rows(page)} == listed
    assert len(listed) > 1
    means = page.locator("#x-means li").all_inner_texts()
    for run, said in zip(world.runs, means, strict=True):
        known = [value for q, value in figures(world, run).items() if q in listed and value is not None]
        assert " ".join(said.split()) == f"{run} {number(float(np.mean(known)))} n = {len(known)}"
    assert page.get_by_text("These means are not tested.").is_visible()
    page.get_by_role("button", name="List all queries").click()
    assert text(page, "#x-count") == "All 40 queries are listed."
    assert not page.get_by_text("These means are not tested.").is_visible()
    page.get_by_label("Search").fill("no such word")
    assert text(page, "#x-count") == "0 of 40 queries are listed."
    assert page.locator("#x-queries").get_by_text("No query is listed.").is_visible()


# -- two runs ------------------------------------------------------------------------------------------------


def test_the_queries_that_moved(at, world) -> None:
    page = at()
    page.get_by_label("First run").select_option(label="run 1")
    page.get_by_label("Second run").select_option(label="run 0")
    a, b = figures(world, "run 1"), figures(world, "run 0")
    moves = {q: b[q] - a[q] for q in world.ids if a[q] is not None and b[q] is not None}
    better, worse = (sum(sign * move > 0 for move in moves.values()) for sign in (1, -1))
    undefined = len(world.ids) - len(moves)
    assert text(page, "#x-moved-count") == (
        f"run 0 is better than run 1 in {better}, the same in {len(moves) - better - worse} and worse in {worse} "
        f"of 40 queries. {undefined} queries without a figure in one of them."
    )
    ordered = sorted((q for q in moves if moves[q]), key=lambda q: (-abs(round(moves[q], 6)), world.ids.index(q)))
    expected = [
        [q, number(a[q]), number(b[q]), f"{moves[q]:+.3f}".replace("-", "−")]
        + [
            str(len(world.relevant(q) & set(world.top(one, q)) - set(world.top(other, q))))
            for one, other in (("run 1", "run 0"), ("run 0", "run 1"))
        ]
        for q in ordered
    ]
    shown = rows(page, "moved")
    assert len(shown) > 10
    assert shown == expected[: len(shown)]
    page.get_by_role("button", name="Swap").click()
    assert text(page, "#x-moved-count").startswith(f"run 1 is better than run 0 in {worse},")
    # The same run twice has no meaning: the two change places.
    page.get_by_label("First run").select_option(label="run 1")
    assert page.get_by_label("Second run").input_value() == "0"


def test_passages_side_by_side(at, world) -> None:
    query = next(
        q
        for q in world.ids
        if world.relevant(q) & set(world.top("run 1", q)) & set(world.top("run 2", q))
        and world.relevant(q) & set(world.top("run 1", q)) - set(world.top("run 2", q))
    )
    page = at(f"#k={K}&a=run+1&b=run+2&q={query}")
    found = {run: world.relevant(query) & set(world.top(run, query)) for run in ("run 1", "run 2")}
    groups = {
        "Only run 1": found["run 1"] - found["run 2"],
        "Only run 2": found["run 2"] - found["run 1"],
        "Both": found["run 1"] & found["run 2"],
    }
    for name, passages in groups.items():
        group = page.locator(".x-found > div", has=page.get_by_text(name, exact=True))
        assert set(group.locator("button").all_inner_texts()) == passages, name
    missed = len(world.relevant(query) - found["run 1"] - found["run 2"])
    assert text(page, ".x-found > div:last-child dd") == (
        "none" if not missed else f"{missed} relevant passage{'s' * (missed > 1)}"
    )
    other_of = {"run 1": "run 2", "run 2": "run 1"}
    for column, run in zip(page.locator(".x-columns > div").all(), found, strict=True):
        items = column.locator("li").all()
        assert len(items) == K
        column.get_by_role("button", name=f"Show ranks {K + 1} to {len(world.runs[run][query])}").click()
        assert column.locator("li").count() == len(world.runs[run][query])
        for rank, (item, passage) in enumerate(zip(items, world.top(run, query), strict=True), 1):
            head = " ".join(item.locator(".x-head").inner_text().split())
            grade = world.grades[query].get(passage)
            other = world.runs[other_of[run]][query]
            where = (
                f"= rank {other.index(passage) + 1} in {other_of[run]}"
                if passage in other
                else f"not in the first 50 of {other_of[run]}"
            )
            assert head == f"{'no label' if grade is None else f'grade {grade}'} {passage} {where}"
            assert item.get_attribute("value") == str(rank)
            assert item.get_by_text(REASON).count() == (grade is not None)
    both = min(groups["Both"])
    first = page.locator(".x-columns > div:first-child li", has=page.get_by_text(both, exact=True))
    first.get_by_role("button", name="= rank").click()
    assert page.evaluate("document.activeElement.querySelector('code').textContent") == both
    assert page.evaluate("document.activeElement.closest('.x-columns > div').previousElementSibling !== null")
    assert page.locator("li.x-same").count() == 2


# -- links ---------------------------------------------------------------------------------------------------


def test_saved_pairs_are_those_without_a_label_that_a_labelling_task_reads(at, world, tmp_path) -> None:
    page = at()
    for name in ("hard", "magnets"):
        with page.expect_download() as download:
            page.locator(f"#x-save-{name} button").click()
        file = tmp_path / download.value.suggested_filename
        download.value.save_as(file)
        pairs = {(each.query, each.passage) for each in draw_pairs(f"file:{file}", rs.Qrels.of(world.grades))}
        assert len(pairs) > 2
        assert all(p not in world.grades[q] and any(p in world.top(r, q) for r in world.runs) for q, p in pairs)
        assert text(page, f"#x-save-{name} [role=status]") == f"{len(pairs)} pairs saved as {file.name}."
    page.locator("#x-magnets button.x-open").first.click()
    magnet = page.locator("#x-magnets button.x-open").first.inner_text()
    queries = [query for query in world.ids if any(magnet in world.top(run, query) for run in world.runs)]
    assert page.locator("#x-magnets-queries button").all_inner_texts() == queries
    page.locator("#x-hard button.x-open").first.click()
    assert page.locator("#x-hard button.x-open").first.inner_text() in text(page, "#x-reading")


def test_the_address_holds_the_state(at, world) -> None:
    page = at()
    assert "#" not in page.url
    page.get_by_role("button", name=re.compile("^Much junk on top")).click()
    page.get_by_label("Search").fill("tower & <town>")
    page.get_by_label("Search").fill("tower")
    page.get_by_label("type").select_option(label="how (20)")
    page.locator("#x-queries th", has_text="size").get_by_role("button").click()
    page.get_by_label("First run").select_option(label="run 2")
    page.locator("#x-queries button.x-open").first.click()
    link, listed, heading = page.url, rows(page), text(page, "#x-query")
    other = at("#" + link.partition("#")[2])
    assert rows(other) == listed
    assert text(other, "#x-query") == heading
    assert other.get_by_label("Search").input_value() == "tower"
    assert other.get_by_label("First run").input_value() == "2"
    assert other.locator("#x-queries [aria-sort=ascending]").inner_text().startswith("size")
    assert text(other, "#x-note") == ""


def test_no_fault_and_no_overflow_at_any_width(window, at, world) -> None:
    page = at(f"#k={K}&a=run+1&b=run+2&q=q7&preset=junk")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert overflow(page) == [], width
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        # Of the rules, only that of contrast can depend on the colours.
        assert axe(page, rules=None if scheme == SCHEMES[0] else ["color-contrast"]) == [], scheme
    page.set_viewport_size({"width": 360, "height": 740})
    lefts = page.locator(".x-columns > div").evaluate_all("(all) => all.map((e) => e.getBoundingClientRect().left)")
    assert lefts[0] == lefts[1]
