"""Reproduce a published row: BoR of plain BM25 on a BEIR folder.

    python examples/reproduce_scifact.py PATH/TO/scifact

The folder contains corpus.jsonl, queries.jsonl and qrels (`qrels/test.tsv`, or `qrels.trec`). For SciFact,
"The 99% Success Paradox" reports success .80 and BoR 8.52 at K = 10, with a ceiling of 8.84.
The script needs `pip install 'rag-selectivity[demo]'`.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import bm25s

import rag_selectivity as rs


def read_jsonl(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def words(texts: list[str]) -> list[list[str]]:
    """Lower-case words, without stemming and with stop words."""
    return [re.findall(r"\w+", text.lower()) for text in texts]


def retrieve(folder: Path, depth: int) -> tuple[dict[str, list[str]], int]:
    """Plain BM25 (k1 = .9, b = .4) over title and text: {query id: passage ids}, and the corpus size."""
    corpus = read_jsonl(folder / "corpus.jsonl")
    queries = read_jsonl(folder / "queries.jsonl")
    index = bm25s.BM25(k1=0.9, b=0.4)
    index.index(words([f"{p.get('title', '')} {p['text']}" for p in corpus]), show_progress=False)
    found, _ = index.retrieve(words([q["text"] for q in queries]), k=min(depth, len(corpus)), show_progress=False)
    run = {q["_id"]: [corpus[i]["_id"] for i in row] for q, row in zip(queries, found.tolist(), strict=True)}
    return run, len(corpus)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 5, 10, 20, 50, 100])
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    arguments = parser.parse_args()

    labels = arguments.folder / "qrels.trec"
    run, corpus_size = retrieve(arguments.folder, max(arguments.depths))
    report = rs.evaluate(
        labels if labels.exists() else arguments.folder,
        {"BM25": run},
        corpus_size=corpus_size,
        depths=arguments.depths,
    )
    print(report.to_json() if arguments.json else report)


if __name__ == "__main__":
    main()
