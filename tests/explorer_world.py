"""A small collection, its explorer, and the explorer in a page of its own, for the tests of the explorer."""

import gzip
import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np

import rag_selectivity as rs
from rag_selectivity.render.explorer import Explorer, explorer
from rag_selectivity.wording import number
from tests.browser import Window

K = 5
REL, JUNK = 4, 2
#: What an explorer that can be used is in.
READY = "html[data-explorer=ready]"
Lists = dict[str, dict[str, list[str]]]

_SHELL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>{{ style | safe }}</style></head><body class="first-screen"><main><h1>A page</h1>
<section id="explorer" aria-labelledby="explorer-title">{% include "explorer.html.j2" %}</section>
</main></body></html>"""


class ExplorerWorld:
    """Labels of 40 queries, a part of which have no relevant passage, and three runs, one with a pool."""

    def __init__(self, *, queries: int = 40, runs: int = 3, seed: int = 5) -> None:
        draws = np.random.default_rng(seed)
        self.ids = [f"q{i}" for i in range(queries)]
        passages = [f"d{i}" for i in range(60)]
        shared = passages[:6]  # which every query may retrieve
        self.grades: dict[str, dict[str, int]] = {}
        for i, query in enumerate(self.ids):
            # Without a grade above 2 RA-nWG is undefined; without one above 3 no passage is relevant.
            highest = {0: 2, 4: 3}.get(i % 8, 5)
            judged = draws.permutation(passages)[:12]
            self.grades[query] = {str(p): int(draws.integers(1, highest + 1)) for p in judged}
            self.grades[query] |= {p: 1 for p in shared[:3] if draws.random() < 0.4}
        self.runs: Lists = {}
        for place in range(runs):
            of_run = {}
            for query in self.ids:
                common = np.random.default_rng(len(query) * 1000 + int(query[1:])).permutation(passages)[:6]
                chosen = dict.fromkeys([*draws.permutation(common)[:3], *draws.permutation(shared)[:2]])
                rest = [p for p in draws.permutation(passages) if p not in chosen]
                of_run[query] = [str(p) for p in draws.permutation(list(chosen))] + [str(p) for p in rest[:7]]
            self.runs[f"run {place}"] = of_run
        self.runs["run 0"]["q3"] = []
        self.pools = {"run 0": {q: [*ids[:2], *ids[6:9]] for q, ids in self.runs["run 0"].items()}}
        self.queries = {query: f"Where is the tower of town {query}?" for query in self.ids}
        self.corpus = {p: f"The Tower of {p} is in town. " * 30 for p in passages}
        self.report = rs.evaluate(
            self.grades,
            self.runs,
            pool=self.pools,
            scale="utility",
            measures=["RA-nWG", "PROC", "%PROC", "Harm"],
            depths=[K],
            bootstrap=None,
        )

    def explorer(self, **options: Any) -> Explorer:
        given: dict[str, Any] = {"qrels": self.grades, "runs": self.runs, "queries": self.queries}
        return explorer(self.report, K, **{**given, "corpus": self.corpus, **options})

    def top(self, run: str, query: str, depth: int = K) -> list[str]:
        return self.runs[run][query][:depth]

    def relevant(self, query: str) -> set[str]:
        return {p for p, grade in self.grades[query].items() if grade >= REL}


def unpacked(shown: Explorer) -> dict[str, Any]:
    """The data as the browser reads it."""
    assert shown.data is not None
    data: dict[str, Any] = json.loads(gzip.decompress(b64decode(shown.data)))
    for of_run in data["lists"] or ():
        of_run[:] = [[first + p for p in ids] for first, ids in zip(data["firsts"], of_run, strict=True)]
    return data


def written(shown: Explorer, path: Path) -> Path:
    """A page that holds the explorer alone, under the policy of the report's page."""
    from rag_selectivity.render.templates import environment, style_of

    style = style_of("colours", "base", "style", "explorer/style")
    path.write_text(environment("tests").from_string(_SHELL).render(explorer=shown, style=style), encoding="utf-8")
    return path


# -- in a browser -------------------------------------------------------------------------------------------


def rows(page: Any, table: str = "queries") -> list[list[str]]:
    """The cells of the rows of a table that are drawn."""
    script = """(rows) => rows.map((row) => [...row.cells].map((cell) =>
        cell.querySelector("button") ? cell.querySelector("button").textContent : cell.textContent))"""
    cells: list[list[str]] = page.locator(f"#x-{table} tbody tr").evaluate_all(script)
    return cells


def text(page: Any, selector: str) -> str:
    return " ".join(page.locator(selector).inner_text().split())


def figures(world: ExplorerWorld, run: str) -> dict[str, float | None]:
    """As the page shows them: figures that agree to six decimals are the same."""
    rows = world.report.per_query(run)
    return {row["query"]: None if (value := row[f"RA-nWG@{K}"]) is None else round(value, 6) for row in rows}


def shown_figure(value: float | None) -> str:
    return "–" if value is None else number(value)


def until(page: Any, script: str, arg: Any = None) -> None:
    """Waits until a script is true. The page's policy forbids `eval`, which playwright's own waiting needs."""
    for _ in range(250):
        if page.evaluate(script, arg):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"{script} stays false for {arg!r}")


def page_of(chromium: Any, shown: Any, folder: Path, **options: Any) -> Window:
    window = Window(chromium, written(shown, folder / "page.html"), **options)
    if options.get("java_script_enabled", True):
        window.page.wait_for_selector(READY)
    return window
