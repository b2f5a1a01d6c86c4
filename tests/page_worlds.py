"""The pages of other results than a report, each of a result whose names and texts try to be more than texts."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rag_selectivity as rs
from rag_selectivity.live.tools import ToolMonitor
from rag_selectivity.online import compare_arms, preference

EVIL = "</script><script>window.harmed = 1</script>"
IMAGE = "<img src=x onerror='window.harmed = 2'>"
LONG = "a-name-without-a-blank-" * 8
QUERIES = [f"q{i}" for i in range(25)]
GRADES = {query: {"a": 5, "b": 1, "c": 2 + i % 3} for i, query in enumerate(QUERIES)}
RUNS = {
    EVIL: {query: ["a", "c", "b"] for query in QUERIES},
    LONG: {query: ["b", "x", "a"] if i % 3 else ["a", "b", "c"] for i, query in enumerate(QUERIES)},
}
FEW = rs.Bootstrap(resamples=200)


@dataclass(frozen=True)
class PageWorld:
    """A folder, and what makes the result whose page is written there; it has no queries to look up."""

    folder: Path
    result: Callable[[Path], Any]
    #: Names that the page shows.
    runs: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()

    def report(self) -> Path:
        """The page."""
        target = self.folder / "page.html"
        target.write_text(self.result(self.folder).to_html(), encoding="utf-8")
        return target


def comparison(folder: Path) -> Any:
    return rs.compare(GRADES, RUNS, baseline=LONG, scale="utility", corpus_size=100, depths=[1, 2], bootstrap=FEW)


def claims(folder: Path) -> Any:
    async def judge(messages: Any, schema: Any) -> dict[str, Any]:
        if "claims" in schema["properties"]:
            return {"claims": [EVIL, IMAGE, LONG], "entities": []}
        every = {"reason": EVIL, "supported": [1], "useful": True, "mentioned": [], "statements": []}
        return {name: every[name] for name in schema["properties"]}

    rows = [{"user_input": f"{IMAGE} {i}?", "retrieved_contexts": [EVIL, f"{LONG} {i}"]} for i in range(3)]
    samples = [{"id": f"{EVIL} {i}", "reference": LONG, **row} for i, row in enumerate(rows)]
    return rs.check_claims(samples, judge=judge, store=folder / "claims.db", depths=[1, 2], bootstrap=FEW)


def tools(folder: Path) -> Any:
    monitor = ToolMonitor(catalogue=12, relevant=2)
    names = dict.fromkeys([EVIL, IMAGE, LONG, *(f"tool {i}" for i in range(7))], 50)
    for i in range(12):
        monitor.call(f"{EVIL} {i}?", names, [EVIL if i % 2 else LONG])
    return monitor.report()


def preferred(folder: Path) -> Any:
    team = {"d1": EVIL, "d2": LONG}
    rows = [{"query": "q", "team": team, "credit": {"d2" if i % 4 else "d1": 1}} for i in range(60)]
    return preference(rows)


def arms(folder: Path) -> Any:
    return compare_arms([i % 2 for i in range(60)], [i % 3 > 0 for i in range(60)])


def validation(folder: Path) -> Any:
    report = rs.evaluate(GRADES, RUNS, scale="utility", depths=[1, 2], bootstrap=FEW)
    scores = {run: {query: float((i * 7) % 5) for i, query in enumerate(QUERIES)} for run in RUNS}
    return rs.validate(report, scores, bootstrap=FEW)


def agreement(folder: Path) -> Any:
    people = {
        query: {passage: max(1, grade - i % 2) for passage, grade in row.items()}
        for i, (query, row) in enumerate(GRADES.items())
    }
    return rs.agree(people, GRADES, runs=RUNS, bootstrap=FEW)


PAGES: dict[str, Callable[[Path], PageWorld]] = {
    f"page of {make.__name__}": lambda folder, make=make, names=names: PageWorld(folder, make, names)
    for make, names in (
        (comparison, (EVIL, LONG)),
        (claims, (EVIL, LONG)),
        (tools, (EVIL, IMAGE)),
        (preferred, (EVIL, LONG)),
        (arms, ()),
        (validation, ()),
        (agreement, (EVIL, LONG)),
    )
}
