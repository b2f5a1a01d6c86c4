"""The lists of a run with their judgments, and what is noticed on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.ids import IdColumn, IntArray, rows_that_may_repeat
from rag_selectivity.data.pair_index import pair_keys
from rag_selectivity.data.passage_counts import PassageCounts
from rag_selectivity.data.policy import Policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError
from rag_selectivity.join.facts import TOP, JoinFacts
from rag_selectivity.join.judged_lists import JudgedLists, facts_of_unknown, remarks_by, whole_grades
from rag_selectivity.join.judged_run import Hits
from rag_selectivity.join.ranks import ListOrder
from rag_selectivity.join.sampled_ids import IdSampler


def judge_lists(
    qrels: Qrels,
    run: Run | Iterable[Run],
    policy: Policy,
    name: str,
    form: IdForm,
    counts: PassageCounts | None = None,
    controls: NDArray[np.bool_] | None = None,
) -> JudgedLists:
    """The lists of a run with their judgments.

    `counts` are the passages of documents, if lists name documents. `controls` are judgments of random passages, which
    do not count as judgments of the lists.
    """
    returned = np.full(len(qrels), -1, np.int64)
    none = np.empty(0, np.int64)
    collected = [Hits(none, none, none, np.empty(0, bool), none)]
    listed_controls = [(none, none)]
    labels = qrels.counts() if controls is None else np.bincount(qrels.query[~controls], minlength=len(qrels))
    sampler = None if form.exact else IdSampler(qrels)
    facts = JoinFacts()
    first_repeat = np.zeros(len(qrels), np.int64)
    duplicates = 0
    for given in [run] if isinstance(run, Run) else run:
        part = given.in_form(form)
        position = qrels.positions(part.queries)
        inside = position >= 0
        _refuse_repeated_queries(part, position, returned, name, form)
        judged = _judge_part(qrels, part, position, policy, name, controls)
        part, copies = judged.part, judged.copies
        listed_controls.append(judged.controls)
        returned[position[inside]] = judged.lengths[inside]
        collected.append(judged.hits)
        duplicates += len(copies)
        first_repeat[position[inside]] = judged.first_repeat[inside]
        if sampler is not None:
            sampler.add(part, position, policy)
        room = np.minimum(part.lengths[inside], TOP)
        facts += JoinFacts(
            retrieved=int(part.lengths[inside].sum()),
            promised=int(np.minimum(labels[position[inside]], room).sum()),
            kept=judged.on_top,
            **_facts_of_scores(part, inside, policy, judged.order),
        )
        if counts is not None:
            facts += JoinFacts(
                beyond_count=_beyond_count(part, copies, counts), uncounted=_uncounted(part, inside, counts)
            )
        if not inside.all():
            facts += facts_of_unknown([part.queries[i] for i in np.flatnonzero(~inside).tolist()], form)
    if sampler is not None:
        facts += JoinFacts(sampled=sampler.sampled())
    judgments, ranks = (np.concatenate(column) for column in zip(*listed_controls, strict=True))
    return JudgedLists(
        returned,
        _in_order(collected),
        duplicates,
        facts,
        (judgments, ranks),
        first_repeat if first_repeat.any() else None,
    )


def _in_order(parts: list[Hits]) -> Hits:
    """The hits of all parts, by query and rank."""
    columns = [np.concatenate([getattr(part, column) for part in parts]) for column in Hits.__slots__]
    order = np.lexsort((columns[1], columns[0]))
    return Hits(*(column[order] for column in columns))


def _refuse_repeated_queries(part: Run, position: IntArray, returned: IntArray, name: str, form: IdForm) -> None:
    """An InputError if the run has a query of the qrels more than once."""
    inside = np.sort(position[position >= 0])
    again = np.concatenate([inside[returned[inside] >= 0], inside[1:][inside[1:] == inside[:-1]]])
    if not len(again):
        return
    query = part.queries[int(np.flatnonzero(position == again[0])[0])]
    if form.changes_ids:
        raise InputError(
            f"{name}: several queries become {query!r} with ids={str(form)!r} (--ids {form}): rename all but one of "
            f"them, or give another form"
        )
    raise InputError(f"{name}: query {query!r} appears in two parts of the run: put its rows into one part")


def _facts_of_scores(part: Run, inside: NDArray[np.bool_], policy: Policy, order: ListOrder) -> dict[str, Any]:
    """What the scores of the lists tell, if these decide the order."""
    if policy.order == "rank":
        return {"remarks": remarks_by(policy, part.remarks)}
    if part.scores is None:
        return {"remarks": part.remarks}
    scores, lengths = part.scores, part.lengths[inside]
    whole = whole_grades(scores)
    scored = int(lengths.sum())
    graded = int((whole & np.repeat(inside, part.lengths)).sum()) if whole.any() else 0
    tied = order.tied_neighbours(inside, exactly=graded == scored) if policy.ties != "as_given" else 0
    return {
        "scored": scored,
        "graded": graded,
        "neighbours": int(np.maximum(lengths - 1, 0).sum()),
        "tied": tied,
        "remarks": part.remarks,
    }


def _beyond_count(part: Run, copies: IntArray, counts: PassageCounts) -> tuple[str, str, int, int] | None:
    """The first document that has more slots in a list than it has passages."""
    query = part.row_queries()[copies].tolist()
    further = Counter(zip(query, part.passages.take(copies), strict=True))
    known = counts.lookup(IdColumn.from_strings([document for _, document in further])).tolist()
    beyond = (
        (part.queries[i], document, slots + 1, passages)
        for ((i, document), slots), passages in zip(further.items(), known, strict=True)
        if 0 < passages <= slots
    )
    return min(beyond, default=None)


def _uncounted(part: Run, inside: NDArray[np.bool_], counts: PassageCounts) -> tuple[str, str] | None:
    """The first query with a document that has no number, and its first such document."""
    query = part.row_queries()
    rows = np.flatnonzero((counts.lookup(part.passages) == 0) & inside[query])
    if not len(rows):
        return None
    first = min(np.unique(query[rows]).tolist(), key=part.queries.__getitem__)
    return part.queries[first], min(part.passages.take(rows[query[rows] == first]))


@dataclass(frozen=True, slots=True)
class _JudgedPart:
    """A part of a run with its judgments.

    `part` is the part itself, or the same lists in rank order if they had to be put in order; `order` is its order. Of
    each of the part's queries the list length; `copies` are rows with a passage that is earlier in its list; `on_top`
    counts the hits in the first rows, before any are dropped; `controls` are judgments and ranks of listed controls;
    `first_repeat` is the rank of each list's first copy, 0 without one.
    """

    part: Run
    order: ListOrder
    lengths: IntArray
    hits: Hits
    copies: IntArray
    on_top: int
    controls: tuple[IntArray, IntArray]
    first_repeat: IntArray


def _judge_part(
    qrels: Qrels,
    part: Run,
    position: IntArray,
    policy: Policy,
    name: str,
    controls: NDArray[np.bool_] | None,
    in_order: bool = False,
) -> _JudgedPart:
    """Judge the lists as they are given, unless they must be put in order, or this is less work."""
    query = np.repeat(position, part.lengths)
    keys = pair_keys(position, part.passages, part.lengths)
    copies = _copies(keys, query, part)
    order = ListOrder(part, policy)
    among = position[position >= 0]
    rows, judgments = qrels.lookup(keys, query, part.passages, among=among)
    local = np.searchsorted(part.offsets, rows, "right") - 1
    rank: IntArray | None = rows - part.offsets[local] + 1
    if not in_order:
        rank = None if len(copies) or policy.unjudged == "condense" else order.ranks(rows)
    if rank is None:
        return _judge_part(qrels, part.ordered(policy), position, policy, name, controls, in_order=True)
    if len(copies) and policy.duplicates == "error":
        row = int(copies[0])
        raise InputError(
            f"{name}: query {qrels.queries[query[row]]!r} lists passage {part.passages[row]!r} more than once, "
            f'and the policy is duplicates="error": remove the repeats, or give another policy'
        )
    listed = np.empty(0, np.int64), np.empty(0, np.int64)
    if controls is not None:
        drawn = controls[judgments]
        listed = judgments[drawn], rank[drawn]
        rows, judgments, rank, local = rows[~drawn], judgments[~drawn], rank[~drawn], local[~drawn]
    repeated = np.isin(rows, copies, assume_unique=True) if len(copies) else np.zeros(len(rows), bool)
    on_top = int((rank <= TOP).sum())
    lengths = part.lengths
    if policy.duplicates == "drop" and len(copies):
        rank = rank - _before(copies, rows, part)
        keep = ~repeated
        rows, judgments, rank, local = rows[keep], judgments[keep], rank[keep], local[keep]
        of_copies = np.searchsorted(part.offsets, copies, "right") - 1
        lengths = lengths - np.bincount(of_copies, minlength=len(lengths))
        repeated = np.zeros(len(rows), bool)
    if policy.unjudged == "condense":
        lengths = np.bincount(local, minlength=len(lengths))
        rank = np.arange(len(rows)) - (np.cumsum(lengths) - lengths)[local] + 1
    hits = Hits(query[rows], rank, qrels.grades_of(judgments), repeated, judgments)
    if policy.unjudged == "condense":
        first_repeat = _first_ranks(local[repeated], rank[repeated], len(lengths))
    else:
        of_copies = np.searchsorted(part.offsets, copies, "right") - 1
        first_repeat = _first_ranks(of_copies, copies - part.offsets[of_copies] + 1, len(lengths))
    return _JudgedPart(part, order, lengths, hits, copies, on_top, listed, first_repeat)


def _first_ranks(lists: IntArray, ranks: IntArray, count: int) -> IntArray:
    """The smallest of the ranks of each list; 0 for a list without one."""
    first = np.zeros(count, np.int64)
    order = np.argsort(-ranks, kind="stable")
    first[lists[order]] = ranks[order]
    return first


def _before(copies: IntArray, rows: IntArray, part: Run) -> IntArray:
    """How many copies stand before each of some rows in its list."""
    starts = part.offsets[np.searchsorted(part.offsets, rows, "right") - 1]
    return np.searchsorted(copies, rows) - np.searchsorted(copies, starts)


def _copies(keys: NDArray[np.uint64], query: IntArray, part: Run) -> IntArray:
    """The rows with a passage that occurs earlier in the same list; only for queries of the qrels."""
    rows = rows_that_may_repeat(keys, part.offsets)
    seen: set[tuple[int, str]] = set()
    copies = []
    for row in rows.tolist():
        pair = (int(query[row]), part.passages[row])
        if pair[0] < 0:
            continue
        if pair in seen:
            copies.append(row)
        seen.add(pair)
    return np.array(copies, np.int64)
