"""The packed files of the sample, as values."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rag_selectivity.grading.store import Draw, Origin
from rag_selectivity.tables.small import passage_text

#: The folder of the packed files, such as `corpus.jsonl`; `write_sample` makes the others.
FILES = Path(__file__).with_name("files")
#: How the pairs were drawn for the chat model: the top ranks of two runs, some of the ranks below, some of the corpus.
POOL_DEPTH, TAIL_DEPTH, DRAWN, SEED = 20, 30, 3, 7


@dataclass(frozen=True, slots=True)
class GradedPair:
    """A (query, passage) pair with the two grades that the chat model gave it, and how the pair was drawn.

    Attributes
    ----------
    drawn : str
        `bm25:10 dense:3` (its ranks in the runs of the pool), `tail:23:15` (its best rank in the runs, and how many
        passages the query has there), `control` (from the corpus at random), or `expected` (in no draw: the passage
        from which the question was written).
    first, second : int
        1 to 5.
    """

    query: str
    passage: str
    drawn: str
    first: int
    second: int

    @property
    def origins(self) -> list[Origin]:
        """For a label store; none for a pair that no draw holds."""
        if self.drawn == "expected":
            return []
        kind, *numbers = self.drawn.split(":")
        if kind == "control":
            size = len(texts("corpus.jsonl"))
            how = {"below": TAIL_DEPTH, "corpus_size": size, "drawn": DRAWN, "seed": SEED}
            return [Origin(Draw("control", how=how), detail={"drawn": DRAWN})]
        if kind == "tail":
            rank, size = map(int, numbers)
            how = {"drawn": DRAWN, "first": POOL_DEPTH + 1, "last": TAIL_DEPTH, "seed": SEED}
            draw = Draw("tail", "bm25+dense", TAIL_DEPTH, how)
            return [Origin(draw, rank, {"drawn": DRAWN, "of": size})]
        ranks = (each.split(":") for each in self.drawn.split())
        return [Origin(Draw("pool", run, POOL_DEPTH), int(rank)) for run, rank in ranks]


@cache
def graded_pairs() -> tuple[GradedPair, ...]:
    """Every pair that the chat model graded."""
    with (FILES / "grades.csv").open(encoding="utf-8", newline="") as lines:
        return tuple(
            GradedPair(row["query_id"], row["passage_id"], row["drawn"], int(row["first"]), int(row["second"]))
            for row in csv.DictReader(lines)
        )


@cache
def texts(name: str) -> dict[str, str]:
    """{id: text} of `corpus.jsonl` or `queries.jsonl`, as a judge reads it."""
    return {record["_id"]: passage_text(record) or "" for record in records(name)}


def expected() -> dict[str, str]:
    """{query: the passage from whose first line the question was written}."""
    return {record["_id"]: record["expected"] for record in records("queries.jsonl")}


def run(name: str) -> dict[str, list[str]]:
    """{query: passages, the best first} of `bm25`, `dense`, `reranked`, or `candidates`: what was reranked."""
    lists: dict[str, list[str]] = {}
    for line in (FILES / f"{name}.trec").read_text(encoding="utf-8").splitlines():
        query, _, passage, *_ = line.split()
        lists.setdefault(query, []).append(passage)
    return lists


def records(name: str) -> Iterator[dict[str, str]]:
    with (FILES / name).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
