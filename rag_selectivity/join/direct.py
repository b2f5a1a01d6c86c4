"""The join of a few queries straight from dicts and lists, at a small part of the cost of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from rag_selectivity.data.grades import SCALES, Scale
from rag_selectivity.data.ids import IdColumn, IntArray
from rag_selectivity.data.passage_counts import PassageCounts
from rag_selectivity.data.policy import resolve_policy
from rag_selectivity.join.coverage import Coverage
from rag_selectivity.join.judged_run import Documents, Hits, JudgedRun

_ONLY_STR, _ONLY_INT = frozenset([str]), frozenset([int])
_BINARY = frozenset([0, 1])


@dataclass(frozen=True, slots=True)
class QueryLists:
    """What is known of one query.

    Attributes
    ----------
    grades : {passage: grade}
        Its labels.
    passages : sequence of str
        What was retrieved, in rank order.
    pool : sequence of str, optional
        The candidates before reranking or selection.
    corpus_size : int, optional
        N.
    checked : bool
        Whether the caller vouches for it that ids are non-empty strings and grades whole numbers.
    """

    grades: Mapping[str, int]
    passages: Sequence[str]
    pool: Sequence[str] | None = None
    corpus_size: int | None = None
    checked: bool = False


def join_directly(
    queries: Sequence[QueryLists],
    *,
    passages_of: PassageCounts | None = None,
    scale: str | None = None,
    levels: Iterable[int] = (),
) -> JudgedRun | None:
    """The join of queries with the default policy; all or none of them have a pool, and a corpus size.

    Returns
    -------
    JudgedRun or None
        What `join` makes of the same lists, without the facts that only warnings and reports need. None if the input
        needs one of `join`'s checks: it raises the error, or reads what is here left unread.
    """
    if not queries or not _is_plain(queries):
        return None
    sizes = _sizes([each.corpus_size for each in queries], passages_of)
    if sizes is None:
        return None
    label_query = np.repeat(np.arange(len(queries)), [len(each.grades) for each in queries])
    try:
        label_grade = np.fromiter(chain.from_iterable(q.grades.values() for q in queries), np.int64, len(label_query))
    except OverflowError:
        return None
    grades = np.array(sorted({*label_grade.tolist(), *levels}), np.int64)
    settled = _settled(scale, label_grade, grades)
    if settled is None:
        return None
    cells = label_query * len(grades) + np.searchsorted(grades, label_grade)
    labels = np.bincount(cells, minlength=len(queries) * len(grades)).reshape(len(queries), len(grades))
    numbers: list[dict[str, int]] = [{} for _ in queries]
    documents = None
    if passages_of is not None:
        numbers = _numbered(queries)
        documents = _documents(queries, passages_of, settled, label_query, label_grade)
        if documents is None:
            return None
    judged = labels.sum(axis=1) if documents is None else np.bincount(label_query, documents.passages, len(queries))
    if sizes.size and (judged > sizes).any():
        return None
    returned = np.array([len(each.passages) for each in queries], np.int64)
    hits = _hits(queries, [each.passages for each in queries], numbers)
    pool: dict[str, Any] = {}
    if queries[0].pool is not None:
        pools = [each.pool or () for each in queries]
        pool = {
            "pool": _hits(queries, pools, numbers),
            "pool_returned": np.array([len(each) for each in pools], np.int64),
            "own_pool": np.zeros(len(queries), bool),
        }
    return JudgedRun(
        queries=("query",) * len(queries),
        hits=hits,
        returned=returned,
        grades=grades,
        labels=labels,
        corpus_size=sizes if sizes.size else None,
        scale=settled,
        policy=resolve_policy(),
        coverage=Coverage(duplicates=sum(len(each.passages) - len(set(each.passages)) for each in queries)),
        first_repeat=np.array([_first_repeat(each.passages) for each in queries], np.int64),
        documents=documents,
        **pool,
    )


def _first_repeat(passages: Sequence[str]) -> int:
    """The rank of the first passage that stands above it too; 0 without one."""
    if len(set(passages)) == len(passages):
        return 0
    return next(rank for rank, passage in enumerate(passages, 1) if passage in passages[: rank - 1])


def _is_plain(queries: Sequence[QueryLists]) -> bool:
    """Whether ids are non-empty strings and grades whole numbers, and all queries bring the same things."""
    first = queries[0]
    for each in queries:
        if (each.pool is None) != (first.pool is None) or (each.corpus_size is None) != (first.corpus_size is None):
            return False
        if not each.checked and not has_plain_ids(each):
            return False
    return True


def has_plain_ids(query: QueryLists) -> bool:
    """Whether ids are non-empty strings and grades whole numbers."""
    grades, listed = query.grades, (query.passages, query.pool or ())
    if type(grades) is not dict or not _ONLY_INT.issuperset(map(type, grades.values())):
        return False
    return all(_ONLY_STR.issuperset(map(type, ids)) and "" not in ids for ids in (grades, *listed))


def _sizes(given: Sequence[int | None], passages_of: PassageCounts | None) -> IntArray | None:
    """N of each query, empty if there is none; None if a size has to be refused."""
    if given[0] is None:
        return np.full(0 if passages_of is None else len(given), 0 if passages_of is None else passages_of.total)
    if not _ONLY_INT.issuperset(map(type, given)):
        return None
    try:
        sizes = np.array(given, np.int64)
    except OverflowError:
        return None
    return None if sizes.min() < (0 if passages_of is None else passages_of.total) else sizes


def _settled(scale: str | None, label_grade: IntArray, grades: IntArray) -> Scale | None:
    if not len(grades) or (scale is not None and scale not in SCALES):
        return None
    if scale is None and not _BINARY.issuperset(label_grade.tolist()):
        return None
    settled = SCALES[scale or "trec"]
    lowest, highest = int(grades[0]), int(grades[-1])
    if lowest < settled.lowest or (settled.highest is not None and highest > settled.highest):
        return None
    return settled


def _numbered(queries: Sequence[QueryLists]) -> list[dict[str, int]]:
    """{passage: its number among the labels of all queries} of each query."""
    numbers, first = [], 0
    for each in queries:
        numbers.append({passage: first + i for i, passage in enumerate(each.grades)})
        first += len(each.grades)
    return numbers


def _documents(
    queries: Sequence[QueryLists], counts: PassageCounts, scale: Scale, label_query: IntArray, label_grade: IntArray
) -> Documents | None:
    """The labelled documents with the numbers of their passages; None if a relevant one has to be refused."""
    passages = counts.lookup(IdColumn.from_strings([passage for each in queries for passage in each.grades]))
    if not counts.complete and ((passages == 0) & (label_grade >= scale.relevant_from)).any():
        return None
    rows = np.arange(len(label_query))
    return Documents(label_query, rows, label_grade, passages, counts.fingerprint, counts.complete)


def _hits(queries: Sequence[QueryLists], lists: Sequence[Sequence[str]], numbers: Sequence[dict[str, int]]) -> Hits:
    """The labelled passages of the lists; a passage that has no number yet gets one."""
    cells: list[int] = []
    for i, (each, passages, known) in enumerate(zip(queries, lists, numbers, strict=True)):
        grade_of, seen = each.grades.get, set()
        for rank, passage in enumerate(passages, 1):
            grade = grade_of(passage)
            if grade is not None:
                number = known.setdefault(passage, (i << 32) + len(known))
                cells += (i, rank, grade, number in seen, number)
                seen.add(number)
    columns = np.array(cells, np.int64).reshape(-1, 5)
    return Hits(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3].astype(bool), columns[:, 4])
