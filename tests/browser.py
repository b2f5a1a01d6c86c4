"""A real browser for tests of pages: what a page complains of, whether it fits, what it shows first, who can use it.

It needs a Chromium on the machine and the package `playwright`, which drives it; where one is missing, the tests that
use the fixture `chromium` are skipped and say so. RAG_SELECTIVITY_CHROMIUM names the program if it has an unusual name.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
NO_CHROMIUM = "there is no Chromium on this machine (Debian: apt-get install chromium)"
#: Widths that a page must fit, from a phone to a projector.
WIDTHS = (360, 768, 1280, 1920)
SCHEMES = ("light", "dark")
HEIGHT = 800
#: The first row of a table or list that axe-core does not read, and of a table whose cells are nothing but text.
ROWS, PLAIN_ROWS = 7, 3


def chromium_program() -> str | None:
    """The path of a Chromium on this machine."""
    return os.environ.get("RAG_SELECTIVITY_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


# One for each module: while playwright runs, no other test of the process can start an event loop.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser without windows; `tests/conftest.py` gives it to all test modules."""
    driver = pytest.importorskip("playwright.sync_api", reason="the package `playwright` drives the browser")
    program = chromium_program()
    if program is None:
        pytest.skip(NO_CHROMIUM)
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


class Window:
    """A page in a browser, with all that it complained of and asked the network for.

    `options` are those of playwright's `new_context`, such as `viewport` and `color_scheme`.
    """

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.path = path
        self.context = browser.new_context(**options)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = self.opened()

    def opened(self, fragment: str = "") -> Any:
        """The page in a new tab of the same browser, at a fragment such as `#k=10`."""
        page = self.context.new_page()
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(self.path.as_uri() + fragment)
        return page

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def saved(self, selector: str, folder: Path) -> Path:
        """The file that a click saves."""
        with self.page.expect_download() as download:
            self.page.click(selector)
        target = folder / download.value.suggested_filename
        download.value.save_as(target)
        return target

    def resize(self, width: int, height: int = HEIGHT) -> None:
        self.page.set_viewport_size({"width": width, "height": height})

    def recolour(self, scheme: str) -> None:
        """Show the page in the scheme "light" or "dark"."""
        self.page.emulate_media(color_scheme=scheme)

    def is_quiet(self) -> bool:
        """Whether nothing was complained of, nothing harmful ran, and only the file itself was loaded."""
        harmed = self.page.evaluate("window.harmed")
        loaded = {url.partition("#")[0] for url in self.requests}
        return not self.complaints and harmed is None and loaded == {self.path.as_uri()}


def axe(page: Any, *, rules: Sequence[str] | None = None) -> list[str]:
    """The serious and critical faults that axe-core finds, each with its rule, its first elements and their number.

    What it need not read is out of the page meanwhile, since axe-core takes milliseconds for each element: the later
    rows of long tables and lists, and what is inside of pictures. The script is evaluated by the browser's debugger, so
    that the page's Content-Security-Policy stays as it is.

    Parameters
    ----------
    rules : sequence of str, optional
        The ids of the rules to check, such as "color-contrast". Default: all.
    """
    page.evaluate(_axe_script())
    violations = page.evaluate(
        """async ([unread, rules]) => {
          const taken = [...document.querySelectorAll(unread)].reverse().map((part) => {
            const place = [part.parentNode, part, part.nextSibling];
            part.remove();
            return place;
          });
          const only = rules ? {runOnly: {type: "rule", values: rules}} : {};
          const found = await axe.run({resultTypes: ["violations"], ...only});
          for (const [parent, part, next] of taken.reverse()) parent.insertBefore(part, next);
          return found.violations;
        }""",
        [
            f"tbody > tr:nth-child(n+{ROWS}), table.figures tbody > tr:nth-child(n+{PLAIN_ROWS}), "
            f"li:nth-child(n+{ROWS}), svg[role=img] > *",
            rules,
        ],
    )
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: {len(each['nodes'])}, such as "
        + "; ".join(_element(node) for node in each["nodes"][:3])
        for each in violations
        if each["impact"] in ("serious", "critical")
    ]


@cache
def _axe_script() -> str:
    pytest.importorskip("axe_playwright_python", reason="the package `axe-playwright-python` brings axe-core")
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def _element(node: Any) -> str:
    measured = [check["data"] for check in node["any"] if check["id"] == "color-contrast" and check["data"]]
    contrast = (
        f" {measured[0]['contrastRatio']}: {measured[0]['fgColor']} on {measured[0]['bgColor']}" if measured else ""
    )
    return f"{' '.join(map(str, node['target']))}{contrast}"


def overflow(page: Any) -> list[str]:
    """What is wider than the viewport, the innermost elements; the content of the page's own `.scroll` is not.

    A text that is wider than its element counts as the element.
    """
    found: list[str] = page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          const clips = (e) => e !== document.body && ["hidden", "clip"].includes(getComputedStyle(e).overflowX);
          const kept = (e) => {
            for (let p = e.parentElement; p && p !== document.body; p = p.parentElement)
              if (p.matches(".scroll, svg") || clips(p)) return true;
            return false;
          };
          const sticksOut = (rect) => rect.width > 0 && rect.right > width + 1;
          const spills = (e) => {
            if (e.matches(".scroll") || clips(e)) return false;
            return [...e.childNodes].some((n) => {
              if (n.nodeType !== 3 || !n.data.trim()) return false;
              const range = document.createRange();
              range.selectNodeContents(n);
              return sticksOut(range.getBoundingClientRect());
            });
          };
          const wide = [...document.body.querySelectorAll("*")].filter((e) =>
            e.checkVisibility() && (sticksOut(e.getBoundingClientRect()) || spills(e)) && !kept(e));
          const inner = wide.filter((e) => !wide.some((other) => other !== e && e.contains(other)));
          const name = (e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") +
            [...e.classList].map((c) => "." + c).join("");
          const told = inner.slice(0, 10).map((e) =>
            `${name(e)} ends at ${Math.round(e.getBoundingClientRect().right)} of ${width} px: ` +
            JSON.stringify((e.textContent || "").trim().slice(0, 40)));
          const whole = document.documentElement.scrollWidth;
          return told.length || whole <= width ? told : [`the page is ${whole} of ${width} px wide`];
        }"""
    )
    return found


def first_screen(page: Any, height: int = HEIGHT) -> list[str]:
    """The texts that are seen above a height without scrolling, in the order of the document, one for each block.

    A piece of text of which a line is cut off does not count.
    """
    texts: list[str] = page.evaluate(
        """(height) => {
          const width = document.documentElement.clientWidth;
          const blockOf = (e) => {
            while (e !== document.body && getComputedStyle(e).display.startsWith("inline")) e = e.parentElement;
            return e;
          };
          const isWithin = (r, box) =>
            r.left >= box.left - 1 && r.right <= box.right + 1 && r.top >= box.top - 1 && r.bottom <= box.bottom + 1;
          const boxesOf = (e) => {
            const boxes = [{left: 0, top: 0, right: width, bottom: height}];
            for (; e && e !== document.body; e = e.parentElement) {
              if (getComputedStyle(e).overflow === "visible") continue;
              const r = e.getBoundingClientRect();
              boxes.push({left: r.left, right: r.right, top: r.top + scrollY, bottom: r.bottom + scrollY});
            }
            return boxes;
          };
          const isFolded = (e) => {
            const details = e.closest("details:not([open])");
            return details && !(e.closest("summary") && e.closest("summary").parentElement === details);
          };
          const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          const blocks = new Map();
          for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const parent = node.parentElement;
            if (!node.data.trim() || parent.closest("script, style") || isFolded(parent) ||
                !parent.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
            const range = document.createRange();
            range.selectNodeContents(node);
            const lines = [...range.getClientRects()].map((r) =>
              ({left: r.left, right: r.right, top: r.top + scrollY, bottom: r.bottom + scrollY}));
            if (!lines.length) continue;
            const boxes = boxesOf(parent);
            if (!lines.every((line) => boxes.every((box) => isWithin(line, box)))) continue;
            const block = blockOf(parent);
            blocks.set(block, (blocks.get(block) || "") + node.data);
          }
          return [...blocks.values()].map((text) => text.replace(/\\s+/g, " ").trim());
        }""",
        height,
    )
    return texts
