"""The files that `speed.py` reads; all are made of random numbers with a seed."""

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

CORPUS_SIZE = 8_841_823
#: A row of a TREC file by form; `blanks` has runs of blanks between its fields.
FORMS = {
    "run": "{} Q0 {} {} {:.6f} bm25\n",
    "ties": "{} Q0 {} {} {:.1f} bm25\n",
    "repr": "{} Q0 {} {} {!r} bm25\n",
    "blanks": "{}  Q0  {}  {}   {:.6f}  bm25\n",
}


def of_runs(folder: Path, queries: int, depth: int) -> None:
    """A run, its qrels, and the same rows in awkward forms and as tables."""
    rng = np.random.default_rng(3)
    files = {name: (folder / f"{name}.trec").open("w") for name in (*FORMS, "unsorted", "qrels", "dense")}
    every: list[str] = []
    for query in range(1_000_000, 1_000_000 + queries):
        passages = rng.choice(CORPUS_SIZE, depth, replace=False).tolist()
        scores = np.sort(rng.gamma(4, 3, depth))[::-1].tolist()
        rows = list(zip(passages, range(1, depth + 1), scores, strict=True))
        for name, form in FORMS.items():
            files[name].writelines(form.format(query, *row) for row in rows)
        plain = [FORMS["run"].format(query, *row) for row in rows]
        files["unsorted"].writelines(plain[i] for i in rng.permutation(depth).tolist())
        every += plain
        for place in rng.choice(int(1.3 * depth), 1 + (rng.random() < 0.07), replace=False).tolist():
            files["qrels"].write(f"{query} 0 {passages[place] if place < depth else CORPUS_SIZE + place} 1\n")
        for place in rng.choice(depth, max(1, depth // 10), replace=False).tolist():
            files["dense"].write(f"{query} 0 {passages[place]} {place % 2}\n")
    for file in files.values():
        file.close()
    with (folder / "shuffled.trec").open("w") as shuffled:
        shuffled.writelines(every[i] for i in rng.permutation(len(every)).tolist())
    with gzip.open(folder / "run.trec.gz", "wt", 6) as packed:
        packed.writelines(every)
    _tables(folder)


def _tables(folder: Path) -> None:
    import polars as pl

    names = ["query_id", "q0", "doc_id", "rank", "score", "tag"]
    text = {"query_id": pl.String, "doc_id": pl.String}
    frame = pl.read_csv(folder / "run.trec", separator=" ", has_header=False, new_columns=names, schema_overrides=text)
    frame = frame.select("query_id", "doc_id", "score")
    frame.write_parquet(folder / "run.parquet")
    frame.write_csv(folder / "run.csv")
    frame.write_ndjson(folder / "run.jsonl")


def larger(folder: Path, times: int) -> None:
    """The same run many times over, with other queries each time; labels stay those of the first."""
    with (folder / f"run{times}.trec").open("w") as file:
        for time in range(times):
            with (folder / "run.trec").open() as lines:
                file.writelines(line if not time else f"{time}-{line}" for line in lines)


def with_texts(folder: Path, queries: int, depth: int = 50, judged: int = 12) -> None:
    """Two runs, labels, queries and a corpus in which each passage is retrieved for 1.6 queries on average."""
    rng = np.random.default_rng(5)
    words = np.array(["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), n)) for n in rng.integers(2, 11, 5000)])

    def texts(lengths: list[int]) -> Iterator[str]:
        for count in lengths:
            yield " ".join(words[(rng.random(count) ** 3 * len(words)).astype(int)])

    size = queries * depth
    for name, letter, lengths in (
        ("corpus", "d", rng.integers(25, 95, size).tolist()),
        ("queries", "q", [6] * queries),
    ):
        with (folder / f"{name}.jsonl").open("w") as file:
            for i, text in enumerate(texts(lengths)):
                file.write(json.dumps({"_id": f"{letter}{i}", "text": text}) + "\n")
    files = {name: (folder / f"{name}.trec").open("w") for name in ("bm25", "dense", "grades")}
    for query in range(queries):
        passages = list(dict.fromkeys(rng.integers(0, size, 4 * depth).tolist()))[: depth + 30]
        grades = rng.choice([5, 4, 3, 2, 1], judged, p=[0.1, 0.1, 0.2, 0.3, 0.3])
        files["grades"].writelines(f"q{query} 0 d{passages[i]} {grade}\n" for i, grade in enumerate(grades.tolist()))
        for name, skill in (("bm25", 0.4), ("dense", 1.0)):
            scores = rng.normal(10, 1, len(passages))
            scores[:judged] += skill * (grades - 2)
            ranked = enumerate(np.argsort(-scores)[:depth].tolist(), 1)
            files[name].writelines(f"q{query} Q0 d{passages[i]} {rank} {scores[i]:.6f} x\n" for rank, i in ranked)
    for file in files.values():
        file.close()


def slices(folder: Path, queries: list[str]) -> Path:
    """A table of the queries with three columns of slices."""
    rng = np.random.default_rng(0)
    path = folder / "by.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["query_id", "language", "type", "customer"])
        rows.writerows([query, *rng.integers(0, [5, 4, 3]).tolist()] for query in queries)
    return path


def dicts(queries: int, depth: int, labels: int = 8) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Labels and a run in memory; most labels are of passages near the top."""
    rng = np.random.default_rng(7)
    qrels, run = {}, {}
    for i in range(queries):
        ids = [f"doc{number}" for number in rng.choice(10_000, 3 * depth, replace=False).tolist()]
        run[f"q{i}"] = dict(zip(ids[:depth], np.sort(rng.random(depth))[::-1].tolist(), strict=True))
        found = labels * 6 // 10
        judged = [*rng.permutation(min(depth, 2 * found))[:found].tolist(), *range(depth, depth + labels - found)]
        qrels[f"q{i}"] = {ids[place]: int(rng.random() < 0.4) for place in judged}
    return qrels, run
