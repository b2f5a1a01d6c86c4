"""What an application with two retrievers would leave behind: made by a script, with users that are drawn at random."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from rag_selectivity.online import interleave
from rag_selectivity.online.records import SCHEMA
from rag_selectivity.sample.rows import SEED, run, texts
from rag_selectivity.tables.writing import json_line, write_whole

_K = 5
#: How often a passage is cited: by whether it is relevant, times by its position.
_CITED = {True: 0.7, False: 0.05}
_READ = (1.0, 0.9, 0.8, 0.7, 0.6)
_IMPRESSIONS, _USERS, _ROWS = 1200, 300, 6000


def write_online(folder: Path, relevant: Mapping[str, set[str]]) -> None:
    """Write a log of interleaved lists, and the rows of an A/B test."""
    random = Random(SEED)
    lists = {name: run(name) for name in ("bm25", "dense")}
    queries = list(texts("queries.jsonl"))
    drafts, credits = [], []
    for number in range(_IMPRESSIONS):
        query = random.choice(queries)
        draft = interleave({name: lists[name].get(query, []) for name in lists}, k=_K, seed=f"i{number}")
        user = f"u{random.randrange(_USERS)}"
        drafts.append({"schema": SCHEMA, "time": float(number), **draft.record(query, user=user)})
        credit = _cited(draft.passages, relevant[query], random)
        if credit:
            late = number + random.choice((1.0, 5.0, 200.0))
            credits.append({"schema": SCHEMA, "time": late, "credit_of": draft.id, "credit": credit})
    log = sorted([*drafts, *credits], key=lambda row: row["time"])
    # One event was sent twice, as it happens.
    log.append(credits[0])
    _write(folder / "impressions.jsonl", log)
    _write_arms(folder / "arms.csv", random)


def _cited(passages: list[str], relevant: set[str], random: Random) -> dict[str, float]:
    return {
        passage: 1.0
        for place, passage in enumerate(passages)
        if random.random() < _CITED[passage in relevant] * _READ[place]
    }


def _write_arms(path: Path, random: Random) -> None:
    """A row for each user: whether an answer cited a passage, the junk in the prompt, and the rate of weeks before."""
    lines = ["arm,user,cited,harm,before"]
    for number in range(_ROWS):
        arm = random.choice("ab")
        likes = random.betavariate(4, 4)
        before = sum(random.random() < likes for _ in range(10)) / 10
        cited = int(random.random() < min(1.0, likes + (0.06 if arm == "b" else 0.0)))
        harm = random.choice((0.0, 0.2, 0.4) if arm == "a" else (0.0, 0.2, 0.2, 0.4))
        lines.append(f"{arm},u{number},{cited},{harm},{before}")
    write_whole(path, "".join(f"{line}\n" for line in lines))


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    write_whole(path, "".join(f"{json_line(row)}\n" for row in rows))
