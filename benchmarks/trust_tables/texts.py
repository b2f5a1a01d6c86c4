"""Every passage of a collection beside every query: BM25, tf-idf, and the share of a query's words in a passage."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import rag_selectivity as rs

FloatArray = NDArray[np.float64]
K1, B = 0.9, 0.4
#: Words in more of the passages than this are no words of a query.
_TOO_COMMON = 0.1


@dataclass(frozen=True)
class Collection:
    """Texts, and people's grades above the lowest; what is not in `grades` is not relevant.

    Scores are float64[queries, passages].
    """

    passages: tuple[str, ...]
    queries: tuple[str, ...]
    passage_texts: tuple[str, ...]
    query_texts: tuple[str, ...]
    grades: Mapping[str, Mapping[str, int]]

    @cached_property
    def _counts(self) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        words: dict[str, int] = {}
        both = []
        for texts in (self.passage_texts, self.query_texts):
            rows, columns = [], []
            for row, text in enumerate(texts):
                found = [words.setdefault(word, len(words)) for word in re.findall(r"[a-z0-9]+", text.lower())]
                rows += [row] * len(found)
                columns += found
            both.append((rows, columns, len(texts)))
        matrices = [
            sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(size, len(words))).tocsr()
            for rows, columns, size in both
        ]
        return matrices[0], matrices[1]

    @cached_property
    def lengths(self) -> FloatArray:
        """Words of each passage: float64[passages]."""
        return np.asarray(self._counts[0].sum(axis=1)).ravel()

    @cached_property
    def _rarity(self) -> FloatArray:
        present = np.asarray((self._counts[0] > 0).sum(axis=0)).ravel()
        return np.log(1 + (len(self.passages) - present + 0.5) / (present + 0.5))

    @cached_property
    def bm25(self) -> FloatArray:
        """BM25."""
        counts, queries = self._counts
        cells = counts.tocoo()
        norm = K1 * (1 - B + B * self.lengths / self.lengths.mean())
        weights = self._rarity[cells.col] * cells.data * (K1 + 1) / (cells.data + norm[cells.row])
        weighted = sparse.coo_matrix((weights, (cells.row, cells.col)), shape=counts.shape).tocsr()
        return np.asarray((queries @ weighted.T).todense())

    @cached_property
    def tfidf(self) -> FloatArray:
        """The cosine of tf-idf vectors."""
        vectors = []
        for counts in self._counts:
            weighted = counts @ sparse.diags(self._rarity)
            length = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
            vectors.append(sparse.diags(1 / np.maximum(length, 1e-12)) @ weighted)
        return np.asarray((vectors[1] @ vectors[0].T).todense())

    @cached_property
    def overlap(self) -> FloatArray:
        """The share of a query's words, common ones left out, that the passage has; rare words count more."""
        counts, queries = ((each > 0).astype(np.float64) for each in self._counts)
        common = np.asarray(counts.sum(axis=0)).ravel() > _TOO_COMMON * len(self.passages)
        weights = sparse.diags(np.where(common, 0.0, self._rarity))
        total = np.asarray((queries @ weights).sum(axis=1)).ravel()
        return np.asarray((queries @ weights @ counts.T).todense()) / np.maximum(total, 1e-12)[:, None]

    @cached_property
    def people(self) -> NDArray[np.int64]:
        """People's grades of every pair: int64[queries, passages]."""
        result = np.ones((len(self.queries), len(self.passages)), np.int64)
        place = {passage: column for column, passage in enumerate(self.passages)}
        for row, query in enumerate(self.queries):
            for passage, grade in self.grades[query].items():
                result[row, place[passage]] = grade
        return result


def collection(folder: Path, grade_of: Mapping[int, int] | None = None) -> Collection:
    """A collection from corpus.jsonl, queries.jsonl and qrels.trec; `grade_of` maps grades to 1–5."""
    passages, queries = (
        [json.loads(line) for line in (folder / f"{kind}.jsonl").read_text().splitlines()]
        for kind in ("corpus", "queries")
    )
    graded = rs.read_qrels(folder / "qrels.trec").to_dict()
    queries = [query for query in queries if query["_id"] in graded]
    return Collection(
        tuple(passage["_id"] for passage in passages),
        tuple(query["_id"] for query in queries),
        tuple(f"{passage.get('title', '')} {passage['text']}" for passage in passages),
        tuple(query["text"] for query in queries),
        {q: {p: grade_of[g] if grade_of else g for p, g in row.items()} for q, row in graded.items()},
    )


def ranked(scores: FloatArray, depth: int) -> NDArray[np.int64]:
    """The positions of each query's best passages: int64[queries, depth]."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :depth]
