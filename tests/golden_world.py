"""A small golden set that the tests share: two judges' pools, people, and texts."""

import re
from pathlib import Path
from typing import Any

import rag_selectivity as rs
from rag_selectivity.golden import GoldenSet, build
from rag_selectivity.grading.store import Draw, HumanLabel, Store

QUERIES = {f"q{i}": f"question number {i} about {'tea' if i % 2 else 'coffee'}?" for i in range(6)}
CORPUS = {f"d{i}": f"passage {i}\nwith a second line, and a tab\there" for i in range(24)}
#: Each run lists what the other lacks, and a common part.
RUNS = {
    "left": {q: [f"d{i}", f"d{i + 6}", f"d{i + 1}"] for i, q in enumerate(QUERIES)},
    "right": {q: [f"d{i + 12}", f"d{i}", f"d{i + 2}"] for i, q in enumerate(QUERIES)},
}


def grade_of(query: str, passage: str) -> int:
    numbers = [int(number) for number in re.findall(r"\d+", f"{query} {passage}")]
    return 5 if numbers[0] == numbers[1] else 4 if numbers[1] == numbers[0] + 12 else 1 + sum(numbers) % 3


async def judge(messages: Any, schema: Any) -> dict[str, Any]:
    said = messages[-1]["content"]
    query = re.search(r"question number (\d+)", said)
    passage = re.search(r"passage (\d+)", said)
    assert query is not None
    assert passage is not None
    return {"reason": "by its number", "grade": grade_of(query[1], passage[1])}


def graded_store(path: Path, *, corpus: Any = None, people: bool = True) -> Path:
    """A store that a judge graded from two named pools, with grades of two people."""
    texts = CORPUS if corpus is None else corpus
    pools = [rs.Run.of(run) for run in RUNS.values()]
    files = []
    for name, run in zip(RUNS, pools, strict=True):
        file = path.parent / f"{name}.trec"
        lines = (f"{q} Q0 {p} {r} {9 - r} {name}\n" for q in run.queries for r, p in enumerate(RUNS[name][q], 1))
        file.write_text("".join(lines), encoding="utf-8")
        files.append(file)
    rs.grade(QUERIES, texts, files, store=path, judge=judge)
    if people:
        drawn = Draw("person", "ada", how={"design": "agree:3"})
        with Store(path) as store:
            store.put_human_labels(
                [
                    HumanLabel("q0", "d0", "ada", 4, "not all of it", draw=drawn),
                    HumanLabel("q0", "d0", "ada", 5, sample=1, draw=drawn),
                    HumanLabel("q1", "d1", "ada", 5, draw=drawn),
                    HumanLabel("q2", "d3", "ben", None),
                ]
            )
    return path


def golden_set(place: Path, **options: Any) -> GoldenSet:
    """The set of such a store, with weights."""
    store = graded_store(place / "labels.db")
    queries = [
        {"query_id": q, "text": text, "weight": 1.5 + i, "stratum": text.split()[-1], "reference": f"answer {i}"}
        for i, (q, text) in enumerate(QUERIES.items())
    ]
    given: dict[str, Any] = {"queries": queries, "corpus": CORPUS, "licence": "CC0", **options}
    return build(place / "golden", labels=store, **given).golden
