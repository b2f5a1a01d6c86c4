"""Join a run with its judgments."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.grades import Scale, scale_named
from rag_selectivity.data.ids import HashArray, IdColumn, IntArray, mix
from rag_selectivity.data.passage_counts import PassageCounts
from rag_selectivity.data.policy import Policy, resolve_policy
from rag_selectivity.data.qrels import Qrels, pair_keys
from rag_selectivity.data.run import Run, ScatteredQueries
from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.io.reading import passage_counts_of
from rag_selectivity.join.corpus import check_corpus, corpus_sizes, size_with_counts
from rag_selectivity.join.facts import JoinFacts, first_ids
from rag_selectivity.join.judged_run import Coverage, Documents, Hits, JudgedRun, Sample


def join(
    qrels: Qrels,
    run: Run | Iterable[Run],
    *,
    pool: Run | Iterable[Run] | None = None,
    sample: Qrels | None = None,
    sample_size: int | None = None,
    corpus_size: Any = None,
    corpus: Iterable[Any] | None = None,
    passages_of: Any = None,
    scale: str | Scale = "trec",
    policy: str | Policy | None = None,
    name: str = "run",
    part_of_whole: bool = False,
) -> JudgedRun:
    """Join a run with its judgments.

    Parameters
    ----------
    qrels : Qrels
    run : Run or iterable of Runs over different queries
        An iterable lets a file of any length be streamed.
    pool : Run or iterable of Runs, optional
        The candidates before reranking or selection, which include the run's passages.
    sample : Qrels, optional
        Judgments of passages drawn at random, separately for each query, from those that are not in the qrels.
    sample_size : int, optional
        How many passages were drawn for each query, if `sample` lists only some of them, such as the relevant
        ones. Without it, every drawn passage must be listed.
    corpus_size : int, {query: int}, DataFrame or None
        N, for all queries or for each.
    corpus : iterable of passage ids, optional
        The corpus: gives N, and shows which judgments belong to another corpus.
    passages_of : {document: number of its passages}, DataFrame or path, optional
        For judged documents and retrieved passages (chunks): qrels and lists name documents, and each slot of a list
        is a passage. N and the random draw then count passages. Without a corpus size, N is the sum of all numbers.
    scale : {"trec", "utility"}
    policy : Policy or its name
    name : str
        The name of the run in messages.
    part_of_whole : bool
        Whether these are only some of the queries. The checks that need all queries are then left to the caller, who
        has them in `JudgedRun.facts`.

    Returns
    -------
    JudgedRun

    Raises
    ------
    InputError
        If an argument is wrong, if run and qrels have no query in common, or if the policy refuses the input.
    """
    scale, policy = scale_named(scale), resolve_policy(policy)
    qrels.check_scale(scale)
    if not len(qrels):
        raise InputError(f"{qrels.source or 'qrels'}: there are no judgments")
    counts = passage_counts_of(passages_of)
    if corpus is not None:
        known = check_corpus(qrels, corpus)
        corpus_size = known if corpus_size is None and counts is None else corpus_size
    corpus_size = size_with_counts(corpus_size, counts)
    documents = None if counts is None else _documents(qrels, counts, scale, policy)

    joined = _join(qrels, run, policy, name, counts)
    candidates = _join(qrels, pool, policy, f"the pool of {name}") if pool is not None else None
    returned, hits = joined.returned, joined.hits

    present = returned >= 0
    facts = _facts(qrels, joined, policy)
    if not part_of_whole:
        facts.check(name)
    judged_passages = np.bincount(
        qrels.query, None if documents is None else documents.passages, minlength=len(qrels)
    ).astype(np.int64)
    sizes = corpus_sizes(corpus_size, qrels, judged_passages, part_of_whole)
    facts = replace(facts, overlong=_overlong(qrels, returned, sizes))
    if counts is not None and isinstance(corpus_size, int):
        uncounted = joined.uncounted if corpus_size == counts.total else None
        facts = replace(facts, counted=(counts.total, corpus_size), uncounted=uncounted)
    if not part_of_whole:
        for doubt in facts.warnings(name, scale.name):
            warnings.warn(doubt, SelectivityWarning, stacklevel=2)
    missing = int((~present).sum())

    grades = np.unique(qrels.grade)
    labels = np.zeros((len(qrels), len(grades)), np.int64)
    np.add.at(labels, (qrels.query, np.searchsorted(grades, qrels.grade)), 1)
    judged = JudgedRun(
        queries=qrels.queries,
        hits=hits,
        returned=np.maximum(returned, 0),
        grades=grades,
        labels=labels,
        corpus_size=sizes,
        scale=scale,
        policy=policy,
        **_pool(candidates, joined),
        sample=_sample(sample, sample_size, qrels, scale) if sample is not None else None,
        missing=~present if missing else None,
        label_hashes=_label_hashes(qrels, sample, sample_size),
        documents=documents,
        coverage=Coverage(missing, joined.not_in_qrels, joined.duplicates, qrels.repeated, qrels.negative),
        facts=facts,
    )
    own = 0 if judged.own_pool is None else int((judged.own_pool & present).sum())
    outside = len(judged.hits_outside_pool().query)
    judged = replace(judged, coverage=replace(judged.coverage, outside_pool=outside, missing_from_pool=own))
    return judged.over(present) if policy.missing_query == "skip" and missing else judged


def _documents(qrels: Qrels, counts: PassageCounts, scale: Scale, policy: Policy) -> Documents:
    """The judged documents with the numbers of their passages; an InputError if a relevant one has none."""
    if policy.duplicates == "drop":
        raise InputError(
            'duplicates="drop" takes further passages of a document out of the lists, but with passages_of each of '
            "them has its slot: leave one of the two out"
        )
    passages = counts.lookup(qrels.passages)
    unknown = np.flatnonzero((passages == 0) & (qrels.grade >= scale.relevant_from))
    if len(unknown):
        query = min(np.unique(qrels.query[unknown]).tolist(), key=qrels.queries.__getitem__)
        names = [qrels.passages[row] for row in unknown.tolist() if qrels.query[row] == query]
        raise InputError(
            f"query {qrels.queries[query]!r}: passages_of has no number of passages for its relevant documents "
            f"{examples(names)}: add them, or leave out the labels of documents that the index lacks"
        )
    return Documents(qrels.query, np.arange(len(qrels.query)), qrels.grade, passages, counts.fingerprint)


def _label_hashes(qrels: Qrels, sample: Qrels | None, sample_size: int | None) -> HashArray:
    """A hash of each query's judgments, including those of the sample."""
    hashes = qrels.label_hashes()
    if sample is None:
        return hashes
    position = np.array([qrels.position(query) for query in sample.queries], np.int64)
    drawn = np.zeros(len(qrels), np.uint64)
    drawn[position] = sample.label_hashes()
    return mix(hashes, mix(drawn, np.full(len(qrels), (sample_size or 0) + 1, np.uint64)))


def _sample(sample: Qrels, size: int | None, qrels: Qrels, scale: Scale) -> Sample:
    """The sample by the qrels' queries; an InputError for a passage in the qrels, or a query that is not."""
    sample.check_scale(scale)
    where = sample.source or "sample"
    if size is not None and (isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1):
        raise InputError(f"sample_size must be a whole number ≥ 1, got {size!r}")
    unknown = [query for query in sample.queries if query not in qrels]
    if unknown:
        raise InputError(
            f"{where}: {len(unknown)} queries of the sample are not in the qrels ({examples(unknown)}): remove them"
        )
    position = np.array([qrels.position(query) for query in sample.queries], np.int64)
    row = position[sample.query]
    pooled, _ = qrels.lookup(pair_keys(row, sample.passages), row, sample.passages)
    if len(pooled):
        i = int(pooled[0])
        raise InputError(
            f"{where}: query {qrels.queries[row[i]]!r}: passage {sample.passages[i]!r} is in the qrels too; "
            f"draw the sample from the passages that are not in the qrels"
        )
    grades = np.unique(sample.grade)
    labels = np.zeros((len(qrels), len(grades)), np.int64)
    np.add.at(labels, (row, np.searchsorted(grades, sample.grade)), 1)
    listed = labels.sum(axis=1)
    if size is not None and (listed > size).any():
        i = int(np.argmax(listed > size))
        raise InputError(
            f"{where}: query {qrels.queries[i]!r} lists {listed[i]} passages, more than sample_size = {size}"
        )
    return Sample(listed if size is None else np.full(len(qrels), size), grades, labels)


@dataclass(frozen=True, slots=True)
class _Joined:
    """List lengths by the qrels' queries (−1: not in the run), hits in order, and counts of what was left out."""

    returned: IntArray
    hits: Hits
    not_in_qrels: int
    unknown: tuple[str, ...]
    duplicates: int
    retrieved: int
    beyond_count: tuple[str, str, int, int] | None
    uncounted: tuple[str, str] | None


def _facts(qrels: Qrels, joined: _Joined, policy: Policy) -> JoinFacts:
    present = joined.returned >= 0
    passages = None
    if not len(joined.hits.query) and len(qrels.query):
        first = min(qrels.queries[i] for i in np.unique(qrels.query).tolist())
        passages = first, first_ids(qrels[first])
    return JoinFacts(
        queries=len(qrels),
        listed=int(present.sum()),
        unknown=joined.not_in_qrels,
        retrieved=joined.retrieved,
        hits=len(joined.hits.query),
        query_ids=first_ids(qrels.queries),
        missing_ids=first_ids(qrels.queries[i] for i in np.flatnonzero(~present).tolist()),
        unknown_ids=joined.unknown,
        judged_passages=passages,
        grades=(int(qrels.grade.min()), int(qrels.grade.max())) if len(qrels.grade) else None,
        missing_is_error=policy.missing_query == "error",
        beyond_count=joined.beyond_count,
    )


def _overlong(qrels: Qrels, returned: IntArray, sizes: IntArray | None) -> tuple[str, int, int] | None:
    """The first query in the order of ids whose list is longer than its corpus."""
    if sizes is None or not (returned > sizes).any():
        return None
    i = min(np.flatnonzero(returned > sizes).tolist(), key=qrels.queries.__getitem__)
    return qrels.queries[i], int(returned[i]), int(sizes[i])


def _pool(candidates: _Joined | None, run: _Joined) -> dict[str, Any]:
    """The pool of each query: its candidates, or the run's own list if there are no candidates for it."""
    if candidates is None:
        return {}
    own = candidates.returned < 0
    hits, returned = candidates.hits, np.where(own, np.maximum(run.returned, 0), candidates.returned)
    if own.any():
        added = run.hits.chosen(own[run.hits.query])
        hits = Hits(*(np.concatenate([getattr(part, name) for part in (hits, added)]) for name in Hits.__slots__))
        hits = hits.chosen(np.argsort(hits.query, kind="stable"))
    return {"pool": hits, "pool_returned": returned, "own_pool": own}


def _join(
    qrels: Qrels, run: Run | Iterable[Run], policy: Policy, name: str, counts: PassageCounts | None = None
) -> _Joined:
    try:
        return _join_parts(qrels, [run] if isinstance(run, Run) else run, policy, name, counts)
    except ScatteredQueries as scattered:
        return _join_parts(qrels, scattered.again(), policy, name, counts)


def _join_parts(qrels: Qrels, parts: Iterable[Run], policy: Policy, name: str, counts: PassageCounts | None) -> _Joined:
    returned = np.full(len(qrels), -1, np.int64)
    none = np.empty(0, np.int64)
    collected = [Hits(none, none, none, np.empty(0, bool), none)]
    unknown: tuple[str, ...] = ()
    not_in_qrels = duplicates = retrieved = 0
    beyond: list[tuple[str, str, int, int]] = []
    uncounted: list[tuple[str, str]] = []
    for part in (each.ordered(policy) for each in parts):
        position = np.array([qrels.position(query) for query in part.queries], np.int64)
        inside = position >= 0
        not_in_qrels += int((~inside).sum())
        unknown = first_ids([*unknown, *(part.queries[i] for i in np.flatnonzero(~inside).tolist())])
        retrieved += int(part.lengths[inside].sum())
        if (returned[position[inside]] >= 0).any():
            raise InputError(f"{name}: a query appears in two parts of the run")
        lengths, hits, copies = _judge_part(qrels, part, position, policy, name)
        returned[position[inside]] = lengths[inside]
        collected.append(hits)
        duplicates += len(copies)
        if counts is not None:
            beyond += _beyond_count(part, copies, counts)
            uncounted += _uncounted(part, inside, counts)
    columns = [np.concatenate([getattr(part, column) for part in collected]) for column in Hits.__slots__]
    order = np.lexsort((columns[1], columns[0]))
    return _Joined(
        returned,
        Hits(*(column[order] for column in columns)),
        not_in_qrels,
        unknown,
        duplicates,
        retrieved,
        min(beyond, default=None),
        min(uncounted, default=None),
    )


def _beyond_count(part: Run, copies: IntArray, counts: PassageCounts) -> list[tuple[str, str, int, int]]:
    """The documents that have more slots in a list than they have passages."""
    query = part.row_queries()[copies].tolist()
    further = Counter(zip(query, part.passages.take(copies), strict=True))
    known = counts.lookup(IdColumn.from_strings([document for _, document in further])).tolist()
    return [
        (part.queries[i], document, slots + 1, passages)
        for ((i, document), slots), passages in zip(further.items(), known, strict=True)
        if 0 < passages <= slots
    ]


def _uncounted(part: Run, inside: NDArray[np.bool_], counts: PassageCounts) -> list[tuple[str, str]]:
    """The first query with a document that has no number, and its first such document."""
    query = part.row_queries()
    rows = np.flatnonzero((counts.lookup(part.passages) == 0) & inside[query])
    if not len(rows):
        return []
    first = min(np.unique(query[rows]).tolist(), key=part.queries.__getitem__)
    return [(part.queries[first], min(part.passages.take(rows[query[rows] == first])))]


def _judge_part(
    qrels: Qrels, part: Run, position: IntArray, policy: Policy, name: str
) -> tuple[IntArray, Hits, IntArray]:
    """List lengths (one for each of the part's queries), judged hits, and the rows of duplicates."""
    local = part.row_queries()
    query = position[local]
    keys = pair_keys(query, part.passages)
    copies = _copies(keys, query, part.passages)
    if len(copies) and policy.duplicates == "error":
        row = int(copies[0])
        raise InputError(
            f"{name}: query {qrels.queries[query[row]]!r} lists passage {part.passages[row]!r} more than once, "
            f'and the policy is duplicates="error"'
        )
    rows, judgments = qrels.lookup(keys, query, part.passages)
    repeated = np.isin(rows, copies, assume_unique=True)
    rank = rows - part.offsets[local[rows]] + 1
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
    return lengths, Hits(query[rows], rank, qrels.grade[judgments], repeated, judgments), copies


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
