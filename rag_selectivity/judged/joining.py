"""Join a run with its judgments."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.judged.controls import control_rows, controls_of, with_controls
from rag_selectivity.judged.corpus import CorpusIds, corpus_has, corpus_sizes, size_with_counts, within_corpus
from rag_selectivity.judged.facts import JoinFacts, first_ids
from rag_selectivity.judged.hits import Coverage, Documents, Hits
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.lists import JudgedLists, judge_lists
from rag_selectivity.judged.policy import Policy, resolve_policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.grades import SCALES, Scale, scale_named
from rag_selectivity.tables.passage_counts import PassageCounts, passage_counts_of


def join(
    qrels: Qrels,
    run: Run | Iterable[Run],
    *,
    pool: Run | Iterable[Run] | None = None,
    pool_sources: Mapping[str, Run] | None = None,
    controls: Qrels | None = None,
    corpus_size: Any = None,
    corpus: Iterable[Any] | None = None,
    passages_of: Any = None,
    scale: str | Scale | None = None,
    policy: str | Policy | None = None,
    name: str = "run",
    ids: str | IdForm | None = None,
    part_of_whole: bool = False,
) -> JudgedRun:
    """Join a run with its judgments.

    Parameters
    ----------
    qrels : Qrels
    run : Run, or iterable of Runs over different queries
        An iterable lets a file of any length be streamed.
    pool : Run or iterable of Runs, optional
        The candidates before reranking or selection, which include the run's passages.
    pool_sources : {name: Run}, optional
        The pools that `pool` was fused from, if they are several.
    controls : Qrels, optional
        Judgments of passages drawn at random from the corpus, separately for each query, by the judge of the labels.
        Judgments whose origin is a control are controls without being given here.
    corpus_size : int, {query: int}, DataFrame or None
        N, for all queries or for each.
    corpus : iterable of passage ids, optional
        The corpus: gives N. Judgments of passages that it lacks are left out.
    passages_of : {document: number of its passages}, DataFrame or path, optional
        For judged documents and retrieved passages (chunks): qrels and lists name documents, and each slot of a list
        is a passage. N and the random draw then count passages. Without a corpus size, N is the sum of all numbers.
    scale : {"trec", "utility"}, optional
        Not needed for labels that are 0 or 1, or that name their scale, as a label store does.
    policy : Policy or its name
    name : str
        The name of the run in messages.
    ids : str, optional
        The form that all ids are brought into, as in `evaluate`.
    part_of_whole : bool
        Whether these are only some of the queries. The checks that need all queries are then left to the caller, who
        has them in `JudgedRun.facts`. `JudgedRun.concat` makes the whole of such parts.

    Returns
    -------
    JudgedRun

    Raises
    ------
    InputError
        If an argument is wrong, if run and qrels have no query in common, if no retrieved passage is judged, or if the
        policy refuses the input.
    """
    _check_kinds(qrels, run, pool, controls)
    policy, form = resolve_policy(policy), IdForm.of(ids)
    if not isinstance(scale, (str, Scale, type(None))):
        raise InputError(f"unknown scale {shown(scale)} (known: {', '.join(SCALES)})")
    qrels = qrels.on_scale(scale or qrels.scale or policy.scale).in_form(form)
    scale = scale_named(qrels.scale or "trec")
    if not len(qrels):
        raise InputError(f"{qrels.source or 'qrels'}: there are no judgments")
    control_notes: tuple[str, ...] = ()
    if controls is not None:
        qrels, control_notes = with_controls(qrels, controls.on_scale(scale).in_form(form))
    if policy.exclude_self:
        qrels = qrels.without_self()
    known = None if corpus is None else CorpusIds.of(corpus, form)
    if known is not None:
        qrels, lost = within_corpus(qrels, known)
        for doubt in lost:
            warnings.warn(doubt, stacklevel=2)
    drawn = control_rows(qrels)
    labels_of = qrels if drawn is None else qrels.only(~drawn)
    counts = passage_counts_of(passages_of, form)
    if drawn is not None and counts is not None:
        raise InputError(
            f"{name}: random controls cannot be combined with passages_of, since a control is one passage and a label "
            f"is of a document: label passages, as Qrels.inherit does, or leave the controls out"
        )
    if known is not None and corpus_size is None and counts is None:
        corpus_size = len(known)
        if policy.exclude_self:
            corpus_size = {query: len(known) - (query in known) for query in qrels.queries}
    corpus_size = size_with_counts(corpus_size, counts, form)
    documents = None if counts is None else _documents(qrels, counts, scale, policy)

    joined = judge_lists(qrels, run, policy, name, form, counts, drawn)
    pool_name = f"the pool of {name}"
    candidates = None if pool is None else judge_lists(qrels, pool, policy, pool_name, form, None, drawn)
    sources = {
        source: judge_lists(qrels, lists, policy, f"the pool {source} of {name}", form, None, drawn).hits
        for source, lists in (pool_sources or {}).items()
    }
    returned, hits = joined.returned, joined.hits

    present = returned >= 0
    facts = _facts(qrels, joined, policy, form)
    ids_known = known is not None and corpus_has(known, facts.passages.sides[0], name, form.exact)
    if not part_of_whole:
        facts.check(name, ids_known=ids_known)
    judged_passages = qrels.counts()
    if documents is not None:
        judged_passages = np.bincount(qrels.query, documents.passages, minlength=len(qrels)).astype(np.int64)
    sizes = corpus_sizes(corpus_size, qrels, judged_passages, part_of_whole)
    if sizes is not None and (returned > sizes).any():
        i = min(np.flatnonzero(returned > sizes).tolist(), key=qrels.queries.__getitem__)
        facts = replace(facts, overlong=(qrels.queries[i], int(returned[i]), int(sizes[i])))
    if documents is not None and documents.complete:
        lost = (documents.passages == 0) & (documents.grade >= scale.relevant_from)
        facts = replace(facts, not_in_index=int(lost.sum()))
    if counts is not None and isinstance(corpus_size, int):
        uncounted = facts.uncounted if corpus_size == counts.total else None
        facts = replace(facts, counted=(counts.total, corpus_size), uncounted=uncounted)
    if not part_of_whole:
        for doubt in facts.warnings(name, ids_known=ids_known):
            warnings.warn(doubt, stacklevel=2)
    missing = int((~present).sum())

    grades = np.array(sorted({*labels_of.grades_present(), *labels_of.levels}), np.int64)
    judged = JudgedRun(
        queries=qrels.queries,
        hits=hits,
        returned=np.maximum(returned, 0),
        grades=grades,
        labels=labels_of.counts_by_grade(grades),
        corpus_size=sizes,
        scale=scale,
        policy=policy,
        **_pool(candidates, joined),
        pool_sources=sources,
        controls=None
        if drawn is None
        else controls_of(qrels, drawn, joined.controls, grades, scale.relevant_from, control_notes),
        missing=~present if missing else None,
        documents=documents,
        coverage=Coverage(
            missing,
            len(joined.unknown),
            joined.duplicates,
            qrels.repeated,
            qrels.negative,
            expected=(expected := 0 if labels_of.expected is None else int(labels_of.expected.sum())),
            graded=labels_of.size - expected,
        ),
        facts=facts,
        qrels=qrels,
        first_repeat=joined.first_repeat,
    )
    if judged.own_pool is not None:
        own, not_in_pool = int((judged.own_pool & present).sum()), len(judged.hits_outside_pool().query)
        judged = replace(judged, coverage=replace(judged.coverage, outside_pool=not_in_pool, missing_from_pool=own))
    return judged.over(present) if policy.missing_query == "skip" and missing and not part_of_whole else judged


def _check_kinds(qrels: Any, run: Any, pool: Any, controls: Any) -> None:
    """Refuse what `evaluate` takes and `join` does not."""
    for name, labels in (("qrels", qrels), ("controls", controls)):
        if not isinstance(labels, Qrels) and (labels is not None or name == "qrels"):
            raise InputError(f"join: {name} must be Qrels, got {shown(labels)}; make them with Qrels.of or read_qrels")
    for name, lists in (("run", run), ("pool", pool)):
        if isinstance(lists, Run) or (lists is None and name == "pool"):
            continue
        if isinstance(lists, (str, Mapping)) or not isinstance(lists, Iterable):
            raise InputError(f"join: {name} must be a Run, got {shown(lists)}; make it with Run.of or read_run")


def _documents(qrels: Qrels, counts: PassageCounts, scale: Scale, policy: Policy) -> Documents:
    """The judged documents with the numbers of their passages; an InputError if a relevant one has none."""
    if policy.duplicates == "drop":
        raise InputError(
            'duplicates="drop" takes further passages of a document out of the lists, but with passages_of each of '
            "them has its slot: leave one of the two out"
        )
    passages = counts.lookup(qrels.passages)
    unknown = np.flatnonzero((passages == 0) & (qrels.grade >= scale.relevant_from))
    if len(unknown) and not counts.complete:
        query = min(np.unique(qrels.query[unknown]).tolist(), key=qrels.queries.__getitem__)
        names = [qrels.passages[row] for row in unknown.tolist() if qrels.query[row] == query]
        raise InputError(
            f"query {qrels.queries[query]!r}: passages_of has no number of passages for its relevant documents "
            f"{examples(names)}: add them, or leave out the labels of documents that the index lacks"
        )
    rows = np.arange(len(qrels.query))
    return Documents(qrels.query, rows, qrels.grade, passages, counts.fingerprint, counts.complete)


def _facts(qrels: Qrels, joined: JudgedLists, policy: Policy, form: IdForm) -> JoinFacts:
    first = min(compress(qrels.queries, qrels.counts()), default="")
    return JoinFacts(
        **joined.facts,
        queries=len(qrels),
        listed=int((joined.returned >= 0).sum()),
        hits=len(joined.hits.query),
        query_ids=first_ids(qrels.queries),
        judged_passages=(first, first_ids(qrels[first])) if qrels.size else None,
        grades=(grades[0], grades[-1]) if (grades := qrels.grades_present()) else None,
        missing_is_error=policy.missing_query == "error",
        ids=str(form),
    )


def _pool(candidates: JudgedLists | None, run: JudgedLists) -> dict[str, Any]:
    """The pool of each query: its candidates, or the run's own list if there are no candidates for it."""
    if candidates is None:
        return {}
    own = candidates.returned < 0
    hits = Hits.together([candidates.hits, run.hits.chosen(own[run.hits.query])])
    returned = np.where(own, np.maximum(run.returned, 0), candidates.returned)
    return {"pool": hits, "pool_returned": returned, "own_pool": own}
