"""The figures of brackets of ranks: what passages a+1 to b hold, and what a random draw from the rest would hold."""

from __future__ import annotations

import numpy as np

from rag_selectivity.data.ids import IntArray
from rag_selectivity.join.judged_run import Documents, Hits, JudgedRun
from rag_selectivity.measures.base import Aggregate, FloatArray, Outcome
from rag_selectivity.measures.chance import BoR, Success, refuse_with_documents
from rag_selectivity.measures.hypergeometric import random_success

#: Ranks after which a bracket ends: 1, 2, 5, 10, 20, 50, …
_STEPS = (1, 2, 5)


def _log_ratio(observed: FloatArray, expected: FloatArray) -> FloatArray:
    return _log2(_ratio(observed, expected))


def _ratio(observed: FloatArray, expected: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return observed / expected


def _log2(ratio: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log2(ratio) + 0.0


_BITS_OF_COUNTS = Aggregate(value=_log_ratio, statistic=_ratio, link=_log2)


def bracket_edges(reach: int) -> IntArray:
    """0, 1, 2, 5, 10, … and the length of the longest list."""
    edges, scale = [0], 1
    while edges[-1] < reach:
        edges += [min(step * scale, reach) for step in _STEPS]
        scale *= 10
    return np.unique(edges)


def bracket_outcomes(
    judged: JudgedRun, size: IntArray, edges: IntArray, rel: int | None, m: int
) -> tuple[Outcome, Outcome]:
    """Success in queries without one before the bracket, and relevant passages as a share of its slots.

    Of judged documents with several passages, a document counts as one relevant passage, and one that was found before
    the bracket adds nothing.
    """
    documents = None
    if judged.documents is not None:
        refuse_with_documents("what the next passages add", m)
        documents = judged.relevant_documents(judged.documents, rel)
    taken = np.where(edges > 0, judged.drawn_at(np.maximum(edges, 1)), 0)
    hits = np.where(edges > 0, judged.hits_at(np.maximum(edges, 1), rel), 0)
    before, after = hits[:, :-1], hits[:, 1:]
    left = size[:, None] - taken[:, :-1]
    # The empty slots of a short list have drawn passages too, which may have been relevant ones.
    # Only queries without m hits are compared, and with documents m is 1: none of their passages has been drawn.
    relevant = np.minimum(judged.relevant_in_corpus(rel)[:, None] - before, left)
    drawn = np.diff(taken, axis=1)

    possible = Success(rel=rel, m=m).outcome(judged, edges[1:]).defined
    waiting = possible & (before < m)
    success = np.where(waiting, after >= m, np.nan)
    chance, miss = np.full(waiting.shape, np.nan), np.full(waiting.shape, np.nan)
    for needed in range(1, m + 1):
        cells = waiting & (m - before == needed)
        chance[cells], miss[cells] = random_success(left[cells], relevant[cells], drawn[cells], needed)

    known = (judged.relevant(rel) > 0)[:, None]
    width = np.diff(edges)
    observed = np.where(known, (after - before) / width, np.nan)
    if documents is None:
        drawn_relevant = drawn * relevant / np.maximum(left, 1)
    else:
        drawn_relevant = _new_documents(judged.hits, documents, edges[:-1], left, drawn)
    expected = np.where(known, drawn_relevant / width, np.nan)
    return (
        Outcome((success, chance, miss), "every query succeeds before these ranks", BoR.aggregate),
        Outcome((observed, expected), "no query has a relevant passage", _BITS_OF_COUNTS),
    )


def _new_documents(hits: Hits, documents: Documents, edges: IntArray, left: IntArray, drawn: IntArray) -> FloatArray:
    """How many documents that the list has not found before each edge a random draw from the rest would find."""
    first_rank = np.full(int(documents.judgment.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    inside = hits.judgment < len(first_rank)
    np.minimum.at(first_rank, hits.judgment[inside], hits.rank[inside])
    new = first_rank[documents.judgment][:, None] > edges
    row = documents.query
    # The slots of a short list are empty, but drawn: then fewer passages may be left than the document has.
    passages = np.minimum(documents.passages[:, None], left[row])
    chance, _ = random_success(left[row], passages, drawn[row])
    total = np.zeros(left.shape)
    np.add.at(total, row, np.where(new, chance, 0.0))
    return total
