"""Six real runs on Cranfield, made without a network: BM25, its reranked top 50, LSA, both merged, two dense ones.

The given files are `bm25` and `lsa`; the others are made from the texts.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

#: The runs in the order of a report; the first is the baseline.
NAMES = ("bm25", "bm25+rerank", "lsa", "hybrid", "dense-small", "dense-large")
GIVEN = ("bm25", "lsa")
RERANKED, MERGED, DENSE = 50, 200, 50
#: A word in more than this share of the texts says nothing about one of them.
COMMON = 0.3

#: {query: {passage: score}}, the best passage first.
Lists = dict[str, dict[str, float]]


@cache
def six_runs(data: Path) -> dict[str, Lists]:
    """The runs by name; `data` is the folder of Cranfield."""
    texts, questions = (_texts(data / f"{name}.jsonl") for name in ("corpus", "queries"))
    bm25, lsa = (_lists_of(data / "runs" / f"{name}.trec") for name in GIVEN)
    small, middle, large = _similarities(texts, questions, (50, 200, 300))
    made = {
        "bm25": bm25,
        "bm25+rerank": _reranked(bm25, middle, list(questions), list(texts)),
        "lsa": lsa,
        "hybrid": _merged(bm25, lsa),
        "dense-small": _nearest(small, list(questions), list(texts)),
        "dense-large": _nearest(large, list(questions), list(texts)),
    }
    return {name: made[name] for name in NAMES}


def write_six_runs(data: Path, folder: Path) -> dict[str, Path]:
    """Write the runs into a folder as TREC files, `bm25.trec` and so on; the paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.trec" for name in NAMES}
    for name, lists in six_runs(data).items():
        if name in GIVEN:
            shutil.copyfile(data / "runs" / f"{name}.trec", paths[name])
            continue
        rows = (
            f"{query} Q0 {passage} {rank} {score:.6f} {name}\n"
            for query, scores in lists.items()
            for rank, (passage, score) in enumerate(scores.items(), 1)
        )
        paths[name].write_text("".join(rows), encoding="utf-8")
    return paths


def _texts(path: Path) -> dict[str, str]:
    records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {record["_id"]: record["text"] for record in records}


def _lists_of(path: Path) -> Lists:
    lists: Lists = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        query, _, passage, _, score, _ = line.split()
        lists.setdefault(query, {})[passage] = float(score)
    return lists


def _similarities(texts: Mapping[str, str], questions: Mapping[str, str], sizes: Sequence[int]) -> list[Any]:
    """Cosines [query, passage] of latent semantic vectors (LSA), for each number of dimensions."""
    of_texts = [_terms(text) for text in texts.values()]
    documents = Counter(term for terms in of_texts for term in set(terms))
    common = COMMON * len(texts)
    columns = {term: i for i, term in enumerate(sorted(t for t, count in documents.items() if 2 <= count <= common))}
    weights = np.array([1 + np.log(len(texts) / documents[term]) for term in columns])
    passages = _tf_idf(of_texts, columns, weights)
    queries = _tf_idf([_terms(question) for question in questions.values()], columns, weights)
    # The singular vectors of the passages from their inner products: exact, and so the same everywhere.
    values, vectors = np.linalg.eigh((passages @ passages.T).toarray())
    cosines = []
    for size in sizes:
        lengths, directions = np.sqrt(values[-size:]), vectors[:, -size:]
        cosines.append(_unit((queries @ passages.T) @ directions / lengths) @ _unit(directions * lengths).T)
    return cosines


def _terms(text: str) -> list[str]:
    """Words and pairs of neighbouring words."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return words + [" ".join(pair) for pair in pairwise(words)]


def _tf_idf(texts: Sequence[Sequence[str]], columns: Mapping[str, int], weights: Any) -> Any:
    """Rows of length 1 with sublinear counts; a row without known terms is 0."""
    counts = [Counter(columns[term] for term in terms if term in columns) for terms in texts]
    rows = np.repeat(np.arange(len(counts)), [len(count) for count in counts])
    cells = np.array([column for count in counts for column in count], int)
    values = (1 + np.log([n for count in counts for n in count.values()])) * weights[cells]
    lengths = np.sqrt(np.bincount(rows, values**2, len(counts)))
    return csr_array((values / lengths[rows], (rows, cells)), shape=(len(counts), len(columns)))


def _unit(vectors: Any) -> Any:
    """Vectors of length 1; those of texts without known words are 0, whatever rounding left in them."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.where(lengths > 1e-9, vectors / np.maximum(lengths, 1e-9), 0)


def _nearest(similarities: Any, questions: Sequence[str], passages: Sequence[str]) -> Lists:
    return {
        query: _best({p: row[i] for i, p in enumerate(passages)}, DENSE)
        for query, row in zip(questions, similarities, strict=True)
    }


def _reranked(run: Lists, similarities: Any, questions: Sequence[str], passages: Sequence[str]) -> Lists:
    """The top 50 of a run by the sum of its scores and the cosines, each scaled to 0–1 within the query."""
    column = {passage: i for i, passage in enumerate(passages)}
    lists = {}
    for query, row in zip(questions, similarities, strict=True):
        pool = dict(list(run[query].items())[:RERANKED])
        own = _scaled(np.array(list(pool.values())))
        cosines = _scaled(row[[column[passage] for passage in pool]])
        lists[query] = _best(dict(zip(pool, own + cosines, strict=True)), RERANKED)
    return lists


def _scaled(scores: Any) -> Any:
    spread = scores.max() - scores.min()
    return (scores - scores.min()) / spread if spread else np.zeros_like(scores)


def _merged(*runs: Lists) -> Lists:
    """Reciprocal rank fusion."""
    lists = {}
    for query in runs[0]:
        sums: dict[str, float] = {}
        for run in runs:
            for rank, passage in enumerate(run[query], 1):
                sums[passage] = sums.get(passage, 0.0) + 1 / (60 + rank)
        lists[query] = _best(sums, MERGED)
    return lists


def _best(scores: Mapping[str, float], depth: int) -> dict[str, float]:
    """The best passages, ties by descending id as in a TREC file, so that ranks do not hang on the last digits."""
    rounded = {passage: round(float(score), 6) for passage, score in scores.items()}
    ordered = sorted(rounded.items(), key=lambda item: (item[1], item[0]), reverse=True)
    return dict(ordered[:depth])
