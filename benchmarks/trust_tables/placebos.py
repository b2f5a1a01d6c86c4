"""Closed labels and placebos: which alarms sound on labels of known origin, and the placebo beside shuffled grades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rag_selectivity as rs

K = 10
MEASURES = ("BoR", "RA-nWG", "PROC", "R", "nDCG", "AP", "RR")
OPTIONS: dict[str, Any] = {
    "scale": "utility",
    "depths": [K],
    "measures": list(MEASURES),
    "bootstrap": rs.Bootstrap(300),
}
Lists = Mapping[str, list[str]]
Labels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Case:
    """Labels and runs, with the alarm that is due and the figures of the trials of the definition."""

    name: str
    labels: Labels
    runs: Mapping[str, Lists]
    due: str
    published: str
    size: int | None = 1400
    options: Mapping[str, Any] | None = None


def cases(data: Path) -> Iterator[Case]:
    """Labels of known origin: made from the run, from pools, from people, complete, or of positives only."""
    people, runs = _cranfield(data)
    bm25 = runs["bm25"]
    one, both = {"bm25": bm25}, runs
    yield Case("own top 10, dice", _dice(_top(bm25, K)), one, "strong", "1.000/1.000")
    yield Case("own top 10, people", _graded(_top(bm25, K), people), one, "strong", "1.000/1.000")
    yield Case("own top 100, dice", _dice(_top(bm25, 100)), one, "soft", ".329/.320")
    pooled = {q: list(dict.fromkeys(bm25[q][:K] + runs["lsa"][q][:K])) for q in bm25}
    yield Case("top 10 of two runs, dice", _dice(pooled), both, "soft", ".711/.716")
    yield Case("top 10 of two runs, people", _graded(pooled, people), both, "soft", "")
    yield Case("people, exhaustive", people, both, "", ".622/.007")
    positives = {
        q: _graded({q: bm25[q][:K]}, people)[q] | {p: g for p, g in row.items() if g >= 4} for q, row in people.items()
    }
    yield Case("positives and the judged top 10", positives, one, "", ".648/.007")
    yield Case(
        "positives only", {q: {p: g for p, g in row.items() if g >= 4} for q, row in people.items()}, both, "", ""
    )
    tools = {f"q{i}": {f"t{j}": 5 if j in (i % 58, (i + 1) % 58) else 1 for j in range(58)} for i in range(60)}
    some = {f"q{i}": [f"t{(i + j) % 58}" for j in range(20)] for i in range(60)}
    yield Case("58 tools, all judged", tools, {"r": some}, "", "", size=58)
    trec = data / "trec"
    yield Case(
        "TREC DL 2019",
        rs.read_qrels(trec / "qrels.dl19-passage.txt").to_dict(),
        {"bm25": _lists(trec / "run.msmarco-v1-passage.bm25-default.dl19.txt")},
        "",
        ".388/.140",
        size=8_841_823,
        options={"grade_map": "0:1,1:3,2:4,3:5"},
    )


def closed_table(data: Path) -> str:
    """A line for each case: RA-nWG@10 with its placebo, and the alarm that sounds beside the one that is due."""
    lines = [f"{'labels':32} {'RA-nWG/placebo':>15} {'published':>12} {'closed':>8} {'due':>8}  equals its placebo"]
    for case in cases(data):
        report = _measured(case)
        run = next(iter(case.runs))
        figure = report[run, f"RA-nWG@{K}"]
        levels = [caveat.level for caveat in figure.caveats if caveat.code == "closed-labels"] or ["–"]
        equal = [
            key
            for key, estimate in report.runs[run].estimates.items()
            if any(caveat.code == "equals-placebo" for caveat in estimate.caveats)
        ]
        told = f"{figure.value:.3f}/{'–' if figure.placebo is None else f'{figure.placebo:.3f}'}"
        alarm = f"{levels[0]:>8} {case.due or '–':>8}"
        lines.append(f"{case.name:32} {told:>15} {case.published:>12} {alarm}  {', '.join(equal) or '–'}")
    return "\n".join(lines)


def placebo_table(data: Path, shuffles: int) -> str:
    """A line for each measure: its placebo and the mean over shuffled grades, with the distance in standard errors."""
    people, runs = _cranfield(data)
    lists = {q: runs["bm25"][q][:50] for q in list(runs["bm25"])[:100]}
    pooled = {q: list(dict.fromkeys(runs["bm25"][q][:20] + runs["lsa"][q][:20])) for q in lists}
    labels = _graded(pooled, people)
    case = Case("two runs, people", labels, {"bm25": lists}, "", "", options={"bootstrap": None})
    keys = [key for key in _measured(case).runs["bm25"].estimates if key.split("@")[0] in MEASURES]
    rng, figures = np.random.default_rng(7), []
    for _ in range(shuffles):
        mixed = {q: _shuffled(row, rng) for q, row in labels.items()}
        report = _measured(Case("", mixed, case.runs, "", "", options=case.options))
        figures.append([report[key].value for key in keys])
    means, errors = np.mean(figures, axis=0), np.std(figures, axis=0, ddof=1) / np.sqrt(shuffles)
    report = _measured(case)
    lines = [f"{'measure':10} {'figure':>8} {'placebo':>8} {'shuffled':>9} {'distance/error':>15}"]
    for key, mean, error in zip(keys, means, errors, strict=True):
        estimate = report[key]
        placebo = float("nan") if estimate.placebo is None else estimate.placebo
        distance = (placebo - mean) / error
        lines.append(f"{key:10} {estimate.value:8.4f} {placebo:8.4f} {mean:9.4f} {distance:15.2f}")
    return "\n".join(lines)


def _shuffled(row: Mapping[str, int], rng: np.random.Generator) -> Mapping[str, int]:
    return dict(zip(row, rng.permutation([*row.values()]).tolist(), strict=True))


def _measured(case: Case) -> rs.Report:
    return rs.evaluate(
        {q: dict(row) for q, row in case.labels.items()},
        {name: {q: list(row) for q, row in run.items()} for name, run in case.runs.items()},
        corpus_size=case.size,
        **{**OPTIONS, **(case.options or {})},
    )


def _cranfield(data: Path) -> tuple[Labels, dict[str, Lists]]:
    folder = data / "cranfield"
    runs = {name: _lists(folder / "runs" / f"{name}.trec") for name in ("bm25", "lsa")}
    return rs.read_qrels(folder / "qrels.trec").to_dict(), runs


def _lists(path: Path) -> Lists:
    run = rs.read_run(path)
    return {query: list(run[query]) for query in run}


def _top(lists: Lists, depth: int) -> Lists:
    return {query: row[:depth] for query, row in lists.items()}


def _dice(lists: Lists, seed: int = 1) -> Labels:
    rng = np.random.default_rng(seed)
    return {query: {passage: int(rng.integers(1, 6)) for passage in row} for query, row in lists.items()}


def _graded(lists: Lists, people: Labels) -> dict[str, dict[str, int]]:
    return {query: {passage: people[query].get(passage, 1) for passage in row} for query, row in lists.items()}
