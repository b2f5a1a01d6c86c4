"""The pages in Chromium, in every world that they must work in; `tests/browser.py` says what that needs."""

import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("jinja2", reason="the page needs Jinja2 (the extra `report`)")
pytest.importorskip("matplotlib", reason="the page needs matplotlib (the extra `report`)")

from tests.browser import WIDTHS, Window, axe, first_screen, overflow
from tests.page_worlds import PAGES, PageWorld
from tests.report_worlds import HOSTILE, WORLDS, ReportWorld, six_runs

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.contract]
SLOW = ("many_queries", "partly_judged", "binary_without_size", "one_run", "no_success")
#: What the page says once its explorer is drawn.
READY = "html[data-explorer=ready]"
#: How many rows of each table are opened.
OPENED = 3
#: The answers in which a text covers another one, or leaves the screen.
CROWDED = """() => [...document.querySelectorAll(".answer")].flatMap((answer) => {
  const boxes = [...answer.querySelectorAll("h2, .text, .mark, summary")].map((each) => {
    const range = document.createRange();
    range.selectNodeContents(each.lastChild);
    return range.getBoundingClientRect();
  });
  const cover = (a, b) => a !== b && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return boxes.some((a) => a.right > innerWidth || boxes.some((b) => cover(a, b))) ? [answer.innerText] : [];
})"""


@dataclass(frozen=True)
class Shown:
    """A world, and its report in a window."""

    world: ReportWorld | PageWorld
    window: Window

    @property
    def page(self) -> Any:
        return self.window.page


# The worlds are one after the other, so that only one report is open at a time.
@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in ("six_runs", *WORLDS, *PAGES)
    ],
)
def shown(request, chromium, tmp_path_factory) -> Iterator[Shown]:
    """The page as it opens on a screen of 1280 × 800."""
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "-"))
    world: ReportWorld | PageWorld
    if request.param == "six_runs":
        world = six_runs(folder, request.getfixturevalue("data") / "cranfield", queries=60)
    else:
        world = {**WORLDS, **PAGES}[request.param](folder)
    window = Window(chromium, world.report(), viewport={"width": 1280, "height": 800})
    yield Shown(world, window)
    window.context.close()


def unfold(page: Any) -> None:
    """Open what is closed: the first rows of each table, and everything that unfolds."""
    page.evaluate(
        """(count) => {
          for (const details of document.querySelectorAll("details")) details.open = true;
          for (const body of document.querySelectorAll("tbody"))
            for (const button of [...body.querySelectorAll("button[aria-expanded]")].slice(0, count))
              if (button.ariaExpanded === "false") button.click();
        }""",
        OPENED,
    )


def test_every_run_and_every_query_is_named(shown) -> None:
    words = " ".join(shown.page.evaluate("document.body.textContent").split())
    for name in shown.world.runs:
        assert " ".join(name.split()) in words
    # A page draws the first queries; a search finds the others.
    missing = [query for query in shown.world.queries if " ".join(query.split()) not in words]
    for query in missing[:: max(1, len(missing) // 5)]:
        shown.page.get_by_label("Search").fill(query)
        assert shown.page.locator("#x-queries tbody th", has_text=query).count()
    if missing:
        shown.page.get_by_label("Search").fill("")


def test_nothing_is_wider_than_the_screen(shown) -> None:
    unfold(shown.page)
    faults = []
    # Colours move nothing, so that one width will do in the other scheme, the one where most would stick out.
    for width, scheme in [*((width, "light") for width in WIDTHS), (min(WIDTHS), "dark")]:
        shown.window.resize(width)
        shown.window.recolour(scheme)
        faults += [f"{width} px, {scheme}: {each}" for each in overflow(shown.page)]
        faults += shown.page.evaluate(CROWDED)
        # Pictures of one width have letters of one size.
        assert len({each.bounding_box()["width"] for each in shown.page.locator("figure > svg").all()}) < 2
    shown.window.resize(1280)
    assert faults == []


@pytest.mark.parametrize("shown", ["six_runs", "single_query"], indirect=True)
def test_a_finger_meets_every_control(shown) -> None:
    """On a telephone all that can be pressed is at least 44 pixels high; the button of a row fills its cell."""
    shown.window.resize(390)
    unfold(shown.page)
    small = shown.page.evaluate(
        """() => [...document.querySelectorAll("button, summary, select, input")].flatMap((each) => {
          const target = each.matches(".x-open") ? each.closest("th") : each;
          const { width, height } = target.getBoundingClientRect();
          return width && height < 44 ? [`${each.tagName} ${each.className} ${each.textContent}: ${height}`] : [];
        })"""
    )
    shown.window.resize(1280)
    assert small == []


@pytest.mark.parametrize("shown", [each for each in PAGES if each != "page of comparison"], indirect=True)
def test_a_page_of_another_result_shows_hostile_names_as_texts(shown) -> None:
    assert shown.page.locator("h1").count() == 1
    assert shown.page.locator("script, img, link").count() == 0
    assert shown.window.is_quiet(), (shown.window.complaints, shown.window.requests)


@pytest.mark.parametrize("shown", ["six_runs"], indirect=True)
def test_columns_that_scroll_have_a_shade(shown) -> None:
    shown.window.resize(390)
    table = shown.page.locator(".scroll:has(table.runs)")
    assert table.evaluate("(each) => each.scrollWidth > each.clientWidth")
    assert "local" in table.evaluate("(each) => getComputedStyle(each).backgroundAttachment")
    shown.window.resize(1280)


def test_axe_finds_nothing_serious(shown) -> None:
    unfold(shown.page)
    shown.window.recolour("light")
    faults = axe(shown.page)
    shown.window.recolour("dark")
    faults += [f"dark: {each}" for each in axe(shown.page, rules=["color-contrast"])]
    assert not faults, "\n".join(faults)


def test_all_that_can_be_pressed_chosen_and_typed_does_no_harm(shown) -> None:
    """Every kind of control is used once; the page neither complains nor loads anything, at the start and now."""
    page = shown.page
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
    for menu in page.locator("select:visible").all():
        for value in menu.evaluate("(menu) => [...menu.options].slice(0, 4).map((option) => option.value)"):
            menu.select_option(value=value)
    for sort in page.locator("th:visible").all()[:12]:
        for button in sort.locator("button").all():
            button.click()
            button.click()
    for search in page.locator("input[type=search]:visible").all():
        for words in ("tower", "</script>'\"&", ""):
            search.fill(words)
    unfold(page)
    assert shown.window.is_quiet(), (shown.window.complaints, shown.window.requests)


@pytest.mark.parametrize("shown", ["six_runs", "closed_labels", "single_query"], indirect=True)
def test_the_decision_is_read_first_and_without_scrolling(shown) -> None:
    """Every answer is that of the JSON, above 800 pixels, and comes before all tables, pictures and controls."""
    decision = shown.world.decision()
    seen = "\n".join(first_screen(shown.page, 800))
    for answer in decision["answers"]:
        assert answer["text"] in seen, seen
    spoken = shown.page.locator("body").aria_snapshot()
    places = [spoken.find(answer["question"]) for answer in decision["answers"]]
    assert -1 not in places, spoken[:2000]
    assert places == sorted(places)
    others = re.search("- (table|img|searchbox|combobox|navigation)", spoken)
    assert others is None or places[-1] < others.start(), spoken[:2000]


@pytest.mark.parametrize("shown", ["hostile"], indirect=True)
def test_hostile_texts_are_shown_as_they_are(shown) -> None:
    tab = shown.window.opened()
    tab.wait_for_selector(READY)
    unfold(tab)
    words = tab.evaluate("document.body.textContent")
    for text in HOSTILE:
        # HTML knows no nul: a page can only leave it out or put a mark in its place. Ends of lines are blanks there.
        for part in text[:200].split("\x00"):
            assert any(e in words for e in (part, escaped(part), " ".join(part.replace("\ufeff", " ").split()))), part
    assert tab.title() == "What retrieval is worth"
    assert tab.locator("svg[onload], img, link").count() == 0
    assert tab.evaluate("window.harmed") is None
    tab.close()
    assert shown.window.is_quiet()


@pytest.mark.parametrize("shown", ["hostile"], indirect=True)
def test_the_policy_stops_whatever_would_have_come_into_the_page(shown, chromium, tmp_path) -> None:
    """As if a text had not been escaped: what stands in the page by its own hand runs, and nothing else does."""
    text = shown.window.path.read_text(encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        host = f"127.0.0.1:{server.getsockname()[1]}"
        brought = (
            f"<script>window.harmed = 1</script><script src=http://{host}/x.js></script>"
            f"<img src=http://{host}/x.png onerror='window.harmed = 2'>"
            f"<svg onload='window.harmed = 3'></svg><iframe src=http://{host}/></iframe>"
            f"<link rel=stylesheet href=http://{host}/x.css><style>h1 {{ display: none }}</style>"
            f"<base href=http://{host}/><object data=http://{host}/x></object>"
            f"<form id=sent action=http://{host}/><input name=a></form>"
        )
        assert "<main>" in text
        page = tmp_path / "brought.html"
        page.write_text(text.replace("<main>", f"<main>{brought}", 1), encoding="utf-8")
        window = Window(chromium, page)
        window.page.wait_for_selector(READY)
        window.page.evaluate("document.querySelector('#sent').submit()")
        window.page.evaluate(
            f"for (const how of [() => fetch('http://{host}/'), () => new WebSocket('ws://{host}/'),"
            f" () => navigator.sendBeacon('http://{host}/')])"
            " try { Promise.resolve(how()).catch(() => null) } catch {}"
        )
        window.page.wait_for_timeout(200)
        assert received(server) == b""
    assert window.page.evaluate("window.harmed") is None
    assert window.page.locator("h1").is_visible()
    refused = "\n".join(window.complaints)
    for directive in ("script-src", "style-src-elem", "img-src", "base-uri", "form-action", "connect-src"):
        assert directive in refused, directive
    window.context.close()


def escaped(text: str) -> str:
    """As tables show what a terminal would obey."""
    obeyed = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
    return re.sub(obeyed, lambda found: found[0].encode("unicode_escape").decode(), text)


def received(server: socket.socket) -> bytes:
    """All that was sent to a server; a browser may connect before it knows that it must not send."""
    found = b""
    with suppress(BlockingIOError):
        while True:
            connection = server.accept()[0]
            connection.setblocking(False)
            with connection, suppress(BlockingIOError):
                found += connection.recv(1000)
    return found
