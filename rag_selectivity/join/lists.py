"""The lists of a run with their judgments, and what is noticed on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.ids import IdColumn, IntArray
from rag_selectivity.data.passage_counts import PassageCounts
from rag_selectivity.data.policy import Policy
from rag_selectivity.data.qrels import Qrels, pair_keys
from rag_selectivity.data.remarks import NO_REMARKS, without
from rag_selectivity.data.run import Run, ScatteredQueries
from rag_selectivity.errors import InputError
from rag_selectivity.join.facts import TOP, JoinFacts, first_ids
from rag_selectivity.join.judged_run import Hits
from rag_selectivity.join.sampled_ids import IdSampler, SampledIds, unshared


@dataclass(frozen=True, slots=True)
class JudgedLists:
    """What a run's lists give with the judgments.

    List lengths by the qrels' queries (−1: not in the run), hits in order, facts that the lists alone give, and the
    judgments and ranks of the controls that are listed.
    """

    returned: IntArray
    hits: Hits
    duplicates: int
    facts: JoinFacts
    controls: tuple[IntArray, IntArray]

    @property
    def not_in_qrels(self) -> int:
        """The queries of the run that the qrels lack."""
        return self.facts.unknown


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
    none = np.empty(0, np.int64)
    collected = [Hits(none, none, none, np.empty(0, bool), none)]
    listed_controls = [(none, none)]
    of_lists = qrels.query if controls is None else qrels.query[~controls]
    labels = np.bincount(of_lists, minlength=len(qrels))
    sampler = None if form.exact else IdSampler(qrels)
    facts = JoinFacts()
    duplicates = 0
    for given in parts:
        part = given.in_form(form).ordered(policy)
        position = np.array([qrels.position(query) for query in part.queries], np.int64)
        inside = position >= 0
        _refuse_repeated_queries(part, position, returned, name, form)
        lengths, hits, copies, kept, listed = _judge_part(qrels, part, position, policy, name, controls)
        listed_controls.append(listed)
        returned[position[inside]] = lengths[inside]
        collected.append(hits)
        duplicates += len(copies)
        if sampler is not None:
            sampler.add(part, position)
        room = np.minimum(part.lengths[inside], TOP)
        facts += JoinFacts(
            retrieved=int(part.lengths[inside].sum()),
            promised=int(np.minimum(labels[position[inside]], room).sum()),
            kept=kept,
            **facts_of_scores(part.scores, part.lengths, inside, policy, part.remarks),
        )
        if counts is not None:
            facts += JoinFacts(
                beyond_count=_beyond_count(part, copies, counts), uncounted=_uncounted(part, inside, counts)
            )
        if not inside.all():
            facts += facts_of_unknown([part.queries[i] for i in np.flatnonzero(~inside).tolist()], form)
    if sampler is not None:
        facts += JoinFacts(sampled=sampler.sampled())
    columns = [np.concatenate([getattr(part, column) for part in collected]) for column in Hits.__slots__]
    order = np.lexsort((columns[1], columns[0]))
    judgments, ranks = (np.concatenate(column) for column in zip(*listed_controls, strict=True))
    return JudgedLists(returned, Hits(*(column[order] for column in columns)), duplicates, facts, (judgments, ranks))


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


def facts_of_scores(
    scores: NDArray[np.float64] | None,
    lengths: IntArray,
    inside: NDArray[np.bool_],
    policy: Policy,
    remarks: Mapping[str, int] = NO_REMARKS,
) -> dict[str, Any]:
    """What the scores of the lists tell, which are in rank order, if these decide the order."""
    if policy.order == "rank":
        return {"remarks": remarks_by(policy, remarks)}
    if scores is None:
        return {"remarks": remarks}
    row_inside = np.repeat(inside, lengths)
    query = np.repeat(np.arange(len(lengths)), lengths)
    neighbours = (query[1:] == query[:-1]) & row_inside[1:]
    whole = (scores >= 0) & (scores <= 5) & (scores == np.floor(scores))
    return {
        "scored": int(row_inside.sum()),
        "graded": int((whole & row_inside).sum()),
        "neighbours": int(neighbours.sum()),
        "tied": int((neighbours & (scores[1:] == scores[:-1])).sum()) if policy.ties != "as_given" else 0,
        "remarks": remarks,
    }


def facts_of_run(run: Run, policy: Policy, form: IdForm) -> JoinFacts:
    """The facts of a run without judgments of its queries."""
    return facts_of_unknown(run.in_form(form).queries, form) + JoinFacts(remarks=remarks_by(policy, run.remarks))


def remarks_by(policy: Policy, remarks: Mapping[str, int]) -> Mapping[str, int]:
    """The remarks that matter under a policy."""
    return without(remarks, "rank_against_score") if policy.order == "rank" else remarks


def facts_of_unknown(queries: Sequence[str], form: IdForm) -> JoinFacts:
    return JoinFacts(
        unknown=len(queries),
        unknown_ids=first_ids(queries),
        ids=str(form),
        sampled=SampledIds() if form.exact else SampledIds(only_in_run=unshared(queries)),
    )


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


def _judge_part(
    qrels: Qrels, part: Run, position: IntArray, policy: Policy, name: str, controls: NDArray[np.bool_] | None
) -> tuple[IntArray, Hits, IntArray, int, tuple[IntArray, IntArray]]:
    """List lengths (one for each of the part's queries), judged hits, rows of duplicates, hits on top, listed controls.

    Each list is in rank order. The hits on top are those in its first rows, before any are dropped. Of the listed
    controls, the judgments and the ranks.
    """
    local = part.row_queries()
    query = position[local]
    keys = pair_keys(query, part.passages)
    copies = _copies(keys, query, part.passages)
    if len(copies) and policy.duplicates == "error":
        row = int(copies[0])
        raise InputError(
            f"{name}: query {qrels.queries[query[row]]!r} lists passage {part.passages[row]!r} more than once, "
            f'and the policy is duplicates="error": remove the repeats, or give another policy'
        )
    rows, judgments = qrels.lookup(keys, query, part.passages)
    listed = np.empty(0, np.int64), np.empty(0, np.int64)
    if controls is not None:
        drawn = controls[judgments]
        listed = judgments[drawn], (rows - part.offsets[local[rows]] + 1)[drawn]
        rows, judgments = rows[~drawn], judgments[~drawn]
    repeated = np.isin(rows, copies, assume_unique=True)
    rank = rows - part.offsets[local[rows]] + 1
    on_top = int((rank <= TOP).sum())
    lengths = part.lengths
    if policy.duplicates == "drop" and len(copies):
        dropped_before = np.searchsorted(copies, rows) - np.searchsorted(copies, part.offsets[local[rows]])
        keep = ~repeated
        rows, judgments, rank = rows[keep], judgments[keep], (rank - dropped_before)[keep]
        lengths = lengths - np.bincount(local[copies], minlength=len(lengths))
        repeated = np.zeros(len(rows), bool)
    if policy.unjudged == "condense":
        lengths = np.bincount(local[rows], minlength=len(lengths))
        rank = np.arange(len(rows)) - (np.cumsum(lengths) - lengths)[local[rows]] + 1
    return lengths, Hits(query[rows], rank, qrels.grade[judgments], repeated, judgments), copies, on_top, listed


def _copies(keys: NDArray[np.uint64], query: IntArray, passages: IdColumn) -> IntArray:
    """The rows with a passage that occurs earlier in the same list; only for queries of the qrels."""
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():
        return np.empty(0, np.int64)
    order = np.argsort(keys, kind="stable")
    shared = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    seen: set[tuple[int, str]] = set()
    copies = []
    for row in np.unique(order[np.concatenate([shared, shared + 1])]).tolist():
        pair = (int(query[row]), passages[row])
        if pair[0] < 0:
            continue
        if pair in seen:
            copies.append(row)
        seen.add(pair)
    return np.array(copies, np.int64)
