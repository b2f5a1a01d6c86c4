"""Make the scripted files of the sample data set: candidates, chunks, lengths, logs, scores of answers, an A/B test.

    python docs/make_sample.py [FOLDER]

They are packed in rag_selectivity/sample/files (the default), beside the texts, runs and grades that no script made.
Nobody asked or answered here: users and a model are drawn at random, the same at each call.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from rag_selectivity.online import interleave
from rag_selectivity.online.records import SCHEMA
from rag_selectivity.sample.rows import FILES, POOL_DEPTH, SEED, expected, graded_pairs, run, texts
from rag_selectivity.tables.writing import json_line

RUNS = ("bm25", "dense", "reranked")
#: Passages of a prompt of the application, and of an interleaved list.
SHOWN, INTERLEAVED = 10, 5
#: Of the scripted model: the K that it answers from, and how often it is right: without passages, with a relevant one
#: before junk is counted, less for each passage of junk, and without a relevant one.
ANSWERED = (3, 5, 10, 20)
KNOWN, FOUND, DISTRACTION, NOT_FOUND = 0.15, 0.9, 0.02, 0.3
#: How often a passage is cited: by whether it is relevant, times by its position.
CITED = {True: 0.7, False: 0.05}
READ = (1.0, 0.9, 0.8, 0.7, 0.6)
IMPRESSIONS, USERS, ROWS = 1200, 300, 6000


def main(folder: Path) -> None:
    for below in ("chunks", "formats"):
        (folder / below).mkdir(parents=True, exist_ok=True)
    dense = run("dense")
    candidates = {
        query: list(dict.fromkeys(ids[:POOL_DEPTH] + dense[query][:POOL_DEPTH])) for query, ids in run("bm25").items()
    }
    write_run(folder / "candidates.trec", candidates)
    write_chunks(folder / "chunks")
    write_counts(folder)
    write_scores(folder / "scores.csv")
    random = Random(SEED)
    write_impressions(folder / "impressions.jsonl", random)
    write_arms(folder / "arms.csv", random)


def relevant() -> dict[str, set[str]]:
    """The passages of grade 4 or 5 of each query."""
    found: dict[str, set[str]] = {query: set() for query in texts("queries.jsonl")}
    for pair in graded_pairs():
        if pair.first >= 4 and pair.drawn != "control":
            found[pair.query].add(pair.passage)
    return found


def write_chunks(folder: Path) -> None:
    """The modules as documents, whose parts are the chunks."""
    chunk, of_module = {}, Counter[str]()
    for name in texts("corpus.jsonl"):
        module = name.split(".")[0]
        of_module[module] += 1
        chunk[name] = f"{module}#{of_module[module]}"
    labels = dict.fromkeys((query, passage.split(".")[0]) for query, passage in expected().items())
    (folder / "qrels.trec").write_text("".join(f"{query} 0 {module} 1\n" for query, module in labels))
    write_run(folder / "bm25.trec", {query: [chunk[name] for name in ids] for query, ids in run("bm25").items()})
    write_table(folder / "passages.csv", "document_id,passages", of_module.items())


def write_counts(folder: Path) -> None:
    """Lengths of passages, clusters of queries, and a log of counts."""
    passages, wanted = texts("corpus.jsonl"), relevant()
    tokens = ((name, len(re.findall(r"\w+|[^\w\s]", text))) for name, text in passages.items())
    write_table(folder / "tokens.csv", "passage_id,tokens", tokens)
    clusters = ((query, passage.split(".")[0]) for query, passage in expected().items())
    write_table(folder / "clusters.csv", "query_id,cluster", clusters)
    log = [
        {"N": len(passages), "K": SHOWN, "R": len(wanted[query]), "hit": int(not wanted[query].isdisjoint(ids[:SHOWN]))}
        for query, ids in run("bm25").items()
        if wanted[query]
    ]
    write_records(folder / "log.jsonl", log)
    write_table(folder / "formats" / "log.csv", "N,K,R,hit", (row.values() for row in log))


def write_scores(path: Path) -> None:
    """Scores of a scripted model: right more often with a relevant passage, and less often with each one of junk."""
    grade = {(pair.query, pair.passage): pair.first for pair in graded_pairs() if pair.drawn != "control"}
    luck = {query: Random(f"{SEED} {query}").random() for query in texts("queries.jsonl")}
    rows: list[tuple[str, str, int, int]] = [(query, "", 0, int(luck[query] < KNOWN)) for query in luck]
    for name in RUNS:
        for query, ids in run(name).items():
            for k in ANSWERED:
                grades = [grade.get((query, passage), 1) for passage in ids[:k]]
                right = FOUND - DISTRACTION * sum(each <= 2 for each in grades) if max(grades) >= 4 else NOT_FOUND
                chance = (Random(f"{SEED} {query} {name} {k}").random() + luck[query]) / 2
                rows.append((query, name, k, int(chance < right)))
    write_table(path, "query_id,run,k,score", rows)


def write_impressions(path: Path, random: Random) -> None:
    """A log of interleaved lists, and of the passages that answers cite."""
    wanted, lists = relevant(), {name: run(name) for name in ("bm25", "dense")}
    queries = list(texts("queries.jsonl"))
    drafts, credits = [], []
    for number in range(IMPRESSIONS):
        query = random.choice(queries)
        draft = interleave({name: lists[name].get(query, []) for name in lists}, k=INTERLEAVED, seed=f"i{number}")
        user = f"u{random.randrange(USERS)}"
        drafts.append({"schema": SCHEMA, "time": float(number), **draft.record(query, user=user)})
        credit = {
            passage: 1.0
            for place, passage in enumerate(draft.passages)
            if random.random() < CITED[passage in wanted[query]] * READ[place]
        }
        if credit:
            late = number + random.choice((1.0, 5.0, 200.0))
            credits.append({"schema": SCHEMA, "time": late, "credit_of": draft.id, "credit": credit})
    log = sorted([*drafts, *credits], key=lambda row: row["time"])
    # One event was sent twice, as it happens.
    write_records(path, [*log, credits[0]])


def write_arms(path: Path, random: Random) -> None:
    """A row for each user: whether an answer cited a passage, the junk in the prompt, and the rate of weeks before."""
    rows = []
    for number in range(ROWS):
        arm = random.choice("ab")
        likes = random.betavariate(4, 4)
        before = sum(random.random() < likes for _ in range(10)) / 10
        cited = int(random.random() < min(1.0, likes + (0.06 if arm == "b" else 0.0)))
        harm = random.choice((0.0, 0.2, 0.4) if arm == "a" else (0.0, 0.2, 0.2, 0.4))
        rows.append((arm, f"u{number}", cited, harm, before))
    write_table(path, "arm,user,cited,harm,before", rows)


def write_run(path: Path, lists: Mapping[str, list[str]]) -> None:
    ranked = ((query, passage, rank) for query, ids in lists.items() for rank, passage in enumerate(ids, 1))
    path.write_text("".join(f"{query} Q0 {id_} {rank} {-rank} {path.stem}\n" for query, id_, rank in ranked))


def write_table(path: Path, header: str, rows: Iterable[Iterable[Any]]) -> None:
    path.write_text("".join(f"{line}\n" for line in (header, *(",".join(map(str, row)) for row in rows))))


def write_records(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(f"{json_line(row)}\n" for row in rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILES)
