"""Join a run with its judgments."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.grades import Scale, scale_named
from rag_selectivity.data.ids import HashArray, IdColumn, IntArray, mix
from rag_selectivity.data.policy import Policy, resolve_policy
from rag_selectivity.data.qrels import Qrels, pair_keys
from rag_selectivity.data.remarks import without
from rag_selectivity.data.run import Run, ScatteredQueries
from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.join.corpus import check_corpus, corpus_has, corpus_sizes
from rag_selectivity.join.facts import TOP, JoinFacts, first_ids
from rag_selectivity.join.judged_run import Coverage, Hits, JudgedRun, Sample
from rag_selectivity.join.sampled_ids import IdSampler, SampledIds, unshared


def join(
    qrels: Qrels,
    run: Run | Iterable[Run],
    *,
    pool: Run | Iterable[Run] | None = None,
    sample: Qrels | None = None,
    sample_size: int | None = None,
    corpus_size: Any = None,
    corpus: Iterable[Any] | None = None,
    scale: str | Scale = "trec",
    policy: str | Policy | None = None,
    name: str = "run",
    ids: str | IdForm | None = None,
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
    scale : {"trec", "utility"}
    policy : Policy or its name
    name : str
        The name of the run in messages.
    ids : str, optional
        The form that all ids are brought into, as in `evaluate`.
    part_of_whole : bool
        Whether these are only some of the queries. The checks that need all queries are then left to the caller, who
        has them in `JudgedRun.facts`.

    Returns
    -------
    JudgedRun

    Raises
    ------
    InputError
        If an argument is wrong, if run and qrels have no query in common, if no retrieved passage is judged, or if the
        policy refuses the input.
    """
    scale, policy, form = scale_named(scale), resolve_policy(policy), IdForm.of(ids)
    qrels = qrels.in_form(form)
    qrels.check_scale(scale)
    if not len(qrels):
        raise InputError(f"{qrels.source or 'qrels'}: there are no judgments")
    known = None if corpus is None else check_corpus(qrels, corpus, form)
    if known is not None and corpus_size is None:
        corpus_size = len(known)

    joined = _join(qrels, run, policy, name, form)
    candidates = _join(qrels, pool, policy, f"the pool of {name}", form) if pool is not None else None
    returned, hits = joined.returned, joined.hits

    present = returned >= 0
    facts = _facts(qrels, joined, policy, form)
    ids_known = known is not None and corpus_has(known, facts.sampled.retrieved, name, form.exact)
    if not part_of_whole:
        facts.check(name, ids_known=ids_known)
    sizes = corpus_sizes(corpus_size, qrels, np.bincount(qrels.query, minlength=len(qrels)), part_of_whole)
    facts = replace(facts, overlong=_overlong(qrels, returned, sizes))
    if not part_of_whole:
        for doubt in facts.warnings(name, scale.name, ids_known=ids_known):
            warnings.warn(doubt, SelectivityWarning, stacklevel=2)
    missing = int((~present).sum())

    outside = None if sample is None else sample.in_form(form)
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
        sample=_sample(outside, sample_size, qrels, scale) if outside is not None else None,
        missing=~present if missing else None,
        label_hashes=_label_hashes(qrels, outside, sample_size),
        coverage=Coverage(missing, joined.not_in_qrels, joined.duplicates, qrels.repeated, qrels.negative),
        facts=facts,
    )
    own = 0 if judged.own_pool is None else int((judged.own_pool & present).sum())
    not_in_pool = len(judged.hits_outside_pool().query)
    judged = replace(judged, coverage=replace(judged.coverage, outside_pool=not_in_pool, missing_from_pool=own))
    return judged.over(present) if policy.missing_query == "skip" and missing else judged


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
    """List lengths by the qrels' queries (−1: not in the run), hits in order, and facts that the lists alone give."""

    returned: IntArray
    hits: Hits
    duplicates: int
    facts: JoinFacts

    @property
    def not_in_qrels(self) -> int:
        return self.facts.unknown


def _facts(qrels: Qrels, joined: _Joined, policy: Policy, form: IdForm) -> JoinFacts:
    present = joined.returned >= 0
    missing = [qrels.queries[i] for i in np.flatnonzero(~present).tolist()]
    passages = None
    if len(qrels.query):
        first = min(qrels.queries[i] for i in np.unique(qrels.query).tolist())
        passages = first, first_ids(qrels[first])
    of_qrels = JoinFacts(
        queries=len(qrels),
        listed=int(present.sum()),
        hits=len(joined.hits.query),
        query_ids=first_ids(qrels.queries),
        missing_ids=first_ids(missing),
        judged_passages=passages,
        grades=(int(qrels.grade.min()), int(qrels.grade.max())) if len(qrels.grade) else None,
        missing_is_error=policy.missing_query == "error",
        ids=str(form),
        remarks=qrels.remarks,
        sampled=SampledIds() if form.exact else SampledIds(only_in_qrels=unshared(missing)),
    )
    return of_qrels + joined.facts


def facts_of_run(run: Run, policy: Policy, form: IdForm) -> JoinFacts:
    """The facts of a run without judgments of its queries."""
    return _facts_of_unknown(run.in_form(form).queries, form) + JoinFacts(remarks=remarks_by(policy, run.remarks))


def remarks_by(policy: Policy, remarks: Mapping[str, int]) -> Mapping[str, int]:
    """The remarks that matter under a policy."""
    return without(remarks, "rank_against_score") if policy.order == "rank" else remarks


def _facts_of_unknown(queries: Sequence[str], form: IdForm) -> JoinFacts:
    return JoinFacts(
        unknown=len(queries),
        unknown_ids=first_ids(queries),
        ids=str(form),
        sampled=SampledIds() if form.exact else SampledIds(only_in_run=unshared(queries)),
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


def _join(qrels: Qrels, run: Run | Iterable[Run], policy: Policy, name: str, form: IdForm) -> _Joined:
    try:
        return _join_parts(qrels, [run] if isinstance(run, Run) else run, policy, name, form)
    except ScatteredQueries as scattered:
        return _join_parts(qrels, scattered.again(), policy, name, form)


def _join_parts(qrels: Qrels, parts: Iterable[Run], policy: Policy, name: str, form: IdForm) -> _Joined:
    returned = np.full(len(qrels), -1, np.int64)
    none = np.empty(0, np.int64)
    collected = [Hits(none, none, none, np.empty(0, bool), none)]
    labels = np.bincount(qrels.query, minlength=len(qrels))
    sampler = None if form.exact else IdSampler(qrels)
    facts = JoinFacts()
    duplicates = 0
    for given in parts:
        part = given.in_form(form).ordered(policy)
        position = np.array([qrels.position(query) for query in part.queries], np.int64)
        inside = position >= 0
        _refuse_repeated_queries(part, position, returned, name, form)
        lengths, hits, repeats, kept = _judge_part(qrels, part, position, policy, name)
        returned[position[inside]] = lengths[inside]
        collected.append(hits)
        duplicates += repeats
        if sampler is not None:
            sampler.add(part, position)
        room = np.minimum(part.lengths[inside], TOP)
        facts += JoinFacts(
            retrieved=int(part.lengths[inside].sum()),
            promised=int(np.minimum(labels[position[inside]], room).sum()),
            kept=kept,
            **_facts_of_scores(part, inside, policy),
        )
        if not inside.all():
            facts += _facts_of_unknown([part.queries[i] for i in np.flatnonzero(~inside).tolist()], form)
    if sampler is not None:
        facts += JoinFacts(sampled=sampler.sampled())
    columns = [np.concatenate([getattr(part, column) for part in collected]) for column in Hits.__slots__]
    order = np.lexsort((columns[1], columns[0]))
    return _Joined(returned, Hits(*(column[order] for column in columns)), duplicates, facts)


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
    raise InputError(f"{name}: query {query!r} appears in two parts of the run")


def _facts_of_scores(part: Run, inside: NDArray[np.bool_], policy: Policy) -> dict[str, Any]:
    """What the scores of the lists tell, which are in rank order, if these decide the order."""
    if policy.order == "rank":
        return {"remarks": remarks_by(policy, part.remarks)}
    if part.scores is None:
        return {"remarks": part.remarks}
    row_inside = np.repeat(inside, part.lengths)
    query = part.row_queries()
    scores = part.scores
    neighbours = (query[1:] == query[:-1]) & row_inside[1:]
    whole = (scores >= 0) & (scores <= 5) & (scores == np.floor(scores))
    return {
        "scored": int(row_inside.sum()),
        "graded": int((whole & row_inside).sum()),
        "neighbours": int(neighbours.sum()),
        "tied": int((neighbours & (scores[1:] == scores[:-1])).sum()) if policy.ties != "as_given" else 0,
        "remarks": part.remarks,
    }


def _judge_part(
    qrels: Qrels, part: Run, position: IntArray, policy: Policy, name: str
) -> tuple[IntArray, Hits, int, int]:
    """List lengths (one for each of the part's queries), judged hits, and the numbers of duplicates and of hits on top.

    Each list is in rank order. The hits on top are those in its first rows, before any are dropped.
    """
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
    return lengths, Hits(query[rows], rank, qrels.grade[judgments], repeated, judgments), len(copies), on_top


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
