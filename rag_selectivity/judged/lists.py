"""The lists of a run with their judgments, and what is noticed on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.judged.facts import TOP, first_ids
from rag_selectivity.judged.hits import Hits
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run, ScatteredQueries
from rag_selectivity.judged.sampled_ids import IdSampler, match_of_unshared
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.matching import Match
from rag_selectivity.tables.passage_counts import PassageCounts

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class JudgedLists:
    """What a run's lists give with the judgments.

    List lengths by the qrels' queries (−1: not in the run), hits in order, the queries that the qrels lack, the part
    of `JoinFacts` that the lists alone give, the judgments and ranks of the controls that are listed, and the rank of
    each list's first passage that repeats one (0: none does).
    """

    returned: IntArray
    hits: Hits
    duplicates: int
    unknown: list[str]
    facts: Mapping[str, Any]
    controls: tuple[IntArray, IntArray]
    first_repeat: IntArray | None = None


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
    try:
        return _judge_parts(qrels, [run] if isinstance(run, Run) else run, policy, name, form, counts, controls)
    except ScatteredQueries as scattered:
        return _judge_parts(qrels, scattered.again(), policy, name, form, counts, controls)


def _judge_parts(
    qrels: Qrels,
    parts: Iterable[Run],
    policy: Policy,
    name: str,
    form: IdForm,
    counts: PassageCounts | None,
    controls: NDArray[np.bool_] | None,
) -> JudgedLists:
    returned = np.full(len(qrels), -1, np.int64)
    first_repeat = np.zeros(len(qrels), np.int64)
    hits: list[Hits] = []
    listed: list[tuple[IntArray, IntArray]] = []
    duplicates = 0
    labels = qrels.counts() if controls is None else np.bincount(qrels.query[~controls], minlength=len(qrels))
    sampler = IdSampler(qrels)
    counted: Counter[str] = Counter()
    remarks = Counter(qrels.remarks)
    miscounted: list[tuple[str, str, int, int]] = []
    unknown: list[str] = []
    for given in parts:
        part = given.in_form(form)
        if policy.exclude_self:
            part = part.without_self()
        position = qrels.positions(part.queries)
        inside = position >= 0
        _refuse_repeated_queries(part, position, returned, name, form)
        lists = _judge_part(qrels, part, position, policy, name, controls)
        hits.append(lists.hits)
        listed.append(lists.controls)
        duplicates += len(lists.copies)
        returned[position[inside]] = lists.lengths[inside]
        first_repeat[position[inside]] = lists.first_repeat[inside]
        if not form.exact:
            sampler.add(part, position, policy)
        room = np.minimum(part.lengths[inside], TOP)
        counted["retrieved"] += int(part.lengths[inside].sum())
        counted["promised"] += int(np.minimum(labels[position[inside]], room).sum())
        counted["kept"] += lists.on_top
        counted.update(_facts_of_scores(part, inside, policy))
        remarks += part.remarks
        if counts is not None:
            miscounted += _miscounted(compress(part.lists(), inside), counts)
        unknown += [part.queries[i] for i in np.flatnonzero(~inside).tolist()]
    if policy.order == "rank":
        del remarks["rank_against_score"]
    missing = [qrels.queries[i] for i in np.flatnonzero(returned < 0).tolist()]
    facts = {
        **counted,
        "beyond_count": min((each for each in miscounted if each[3]), default=None),
        "uncounted": min((each[:2] for each in miscounted if not each[3]), default=None),
        "missing_ids": first_ids(missing),
        "unknown": len(unknown),
        "unknown_ids": first_ids(unknown),
        "remarks": dict(remarks),
        "passages": sampler.match(),
        "unshared": Match() if form.exact else match_of_unshared(unknown, missing),
    }
    return JudgedLists(
        returned,
        Hits.together(hits),
        duplicates,
        unknown,
        facts,
        (np.concatenate([_NONE, *(one for one, _ in listed)]), np.concatenate([_NONE, *(rank for _, rank in listed)])),
        first_repeat if first_repeat.any() else None,
    )


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


def _facts_of_scores(part: Run, inside: NDArray[np.bool_], policy: Policy) -> dict[str, int]:
    """What the scores of the lists tell, if these decide the order."""
    if policy.order == "rank" or part.scores is None:
        return {}
    rows = np.repeat(inside, part.lengths)
    scores, lengths = part.scores, part.lengths[inside]
    whole = scores == np.floor(scores)
    if whole.any():
        whole &= (scores >= 0) & (scores <= 5)
    scored, graded = int(lengths.sum()), int(np.count_nonzero(whole & rows))
    rising, tied = part.neighbours(scores)
    if scored == graded and rising.any():
        # Only of what may be grades the exact number matters, of everything else whether all are equal.
        tied = part.neighbours(scores[part.by_score(scores)])[1]
    return {
        "scored": scored,
        "graded": graded,
        "neighbours": int(np.maximum(lengths - 1, 0).sum()),
        "tied": 0 if policy.ties == "as_given" else int(np.count_nonzero(tied & rows[1:])),
    }


@dataclass(frozen=True, slots=True)
class _JudgedPart:
    """A part of a run with its judgments.

    Of each of the part's queries the list length; `copies` are rows with a passage that is earlier in its list;
    `on_top` counts the hits in the first rows, before any are dropped; `controls` are judgments and ranks of listed
    controls; `first_repeat` is the rank of each list's first copy, 0 without one.
    """

    lengths: IntArray
    hits: Hits
    copies: IntArray
    on_top: int
    controls: tuple[IntArray, IntArray]
    first_repeat: IntArray


def _judge_part(
    qrels: Qrels, part: Run, position: IntArray, policy: Policy, name: str, controls: NDArray[np.bool_] | None
) -> _JudgedPart:
    rows, judgments, repeating = _found(qrels, part, position)
    # Where a passage is repeated, every row of equal scores has its say in which copy is the first.
    order = part.order(policy, None if repeating else rows)
    offsets = part.offsets
    place = rows
    if order is not None:
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        place = places[rows]
    in_order = np.argsort(place, kind="stable")
    place, judgments = place[in_order], judgments[in_order]
    local = np.searchsorted(offsets, place, "right") - 1
    rank = place - offsets[local] + 1
    # From here on rows are places in rank order.
    copies = copies_in(part if order is None else part.rows(order), repeating) if repeating else _NONE
    if len(copies) and policy.duplicates == "error":
        row = int(copies[0] if order is None else order[copies[0]])
        query = part.queries[int(np.searchsorted(offsets, row, "right")) - 1]
        raise InputError(
            f"{name}: query {query!r} lists passage {part.passages[row]!r} more than once, "
            f'and the policy is duplicates="error": remove the repeats, or give another policy'
        )
    listed = _NONE, _NONE
    if controls is not None:
        drawn = controls[judgments]
        listed = judgments[drawn], rank[drawn]
        place, judgments, rank, local = place[~drawn], judgments[~drawn], rank[~drawn], local[~drawn]
    repeated = np.isin(place, copies, assume_unique=True) if len(copies) else np.zeros(len(place), bool)
    on_top = int((rank <= TOP).sum())
    lengths = part.lengths
    of_copies = np.searchsorted(offsets, copies, "right") - 1
    first_repeat = _first_ranks(of_copies, copies - offsets[of_copies] + 1, len(lengths))
    if policy.duplicates == "drop" and len(copies):
        before = np.searchsorted(copies, place) - np.searchsorted(copies, offsets[local])
        rank, keep = rank - before, ~repeated
        judgments, rank, local = judgments[keep], rank[keep], local[keep]
        lengths = lengths - np.bincount(of_copies, minlength=len(lengths))
        repeated = np.zeros(len(rank), bool)
    if policy.unjudged == "condense":
        lengths = np.bincount(local, minlength=len(lengths))
        rank = np.arange(len(rank)) - (np.cumsum(lengths) - lengths)[local] + 1
        first_repeat = _first_ranks(local[repeated], rank[repeated], len(lengths))
    hits = Hits(position[local], rank, qrels.grade[judgments], repeated, judgments)
    return _JudgedPart(lengths, hits, copies, on_top, listed, first_repeat)


def _found(qrels: Qrels, part: Run, position: IntArray) -> tuple[IntArray, IntArray, list[int]]:
    """The rows that are judged, their judgments, and the lists that hold a passage twice."""
    rows: list[int] = []
    judgments: list[int] = []
    repeating = []
    for i, (query, (start, stop)) in enumerate(zip(position.tolist(), pairwise(part.offsets.tolist()), strict=True)):
        if query < 0:
            continue
        passages, labels = part.passages[start:stop], qrels.rows(query)
        row_of = dict(zip(passages, range(start, stop), strict=True))
        if len(row_of) == stop - start:
            found = list(map(row_of.get, qrels.passages[labels]))
            rows += [row for row in found if row is not None]
            judgments += [label for label, row in enumerate(found, labels.start) if row is not None]
        else:
            repeating.append(i)
            judgment_of = qrels.judgments_of(query)
            found = list(map(judgment_of.get, passages))
            rows += [row for row, label in enumerate(found, start) if label is not None]
            judgments += [label for label in found if label is not None]
    return np.array(rows, np.int64), np.array(judgments, np.int64), repeating


def copies_in(part: Run, lists: Iterable[int]) -> IntArray:
    """The rows of some lists with a passage that is earlier in its list."""
    copies = []
    for i in lists:
        seen: set[str] = set()
        for row in range(int(part.offsets[i]), int(part.offsets[i + 1])):
            if part.passages[row] in seen:
                copies.append(row)
            seen.add(part.passages[row])
    return np.array(copies, np.int64)


def _first_ranks(lists: IntArray, ranks: IntArray, count: int) -> IntArray:
    """The smallest of the ranks of each list; 0 for a list without one."""
    first = np.zeros(count, np.int64)
    order = np.argsort(-ranks, kind="stable")
    first[lists[order]] = ranks[order]
    return first


def _miscounted(lists: Iterable[tuple[str, list[str]]], counts: PassageCounts) -> Iterator[tuple[str, str, int, int]]:
    """The query, the document, its slots and its passages where a document has more slots in a list than passages."""
    for query, documents in lists:
        for document, slots in Counter(documents).items():
            if (passages := counts.of_document(document)) < slots:
                yield query, document, slots, passages
