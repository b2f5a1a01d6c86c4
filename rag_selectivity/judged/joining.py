"""Join runs with their judgments."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.judged.controls import control_rows, controls_of, with_controls
from rag_selectivity.judged.corpus import corpus_has, corpus_sizes, size_with_counts, within_corpus
from rag_selectivity.judged.facts import JoinFacts
from rag_selectivity.judged.hits import Coverage, Documents, Hits
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.lists import Judging, Lists
from rag_selectivity.judged.policy import Policy, resolve_policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.cells import iterated, shown
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.grades import SCALES, Scale, scale_named
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.small import PassageCounts, passage_counts_of


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
        Whether these are only some of the queries. The checks that need all queries are then left to
        `JudgedRun.concat`, which makes the whole of such parts.

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
    terms = Terms.of(
        qrels,
        controls=controls,
        corpus_size=corpus_size,
        corpus=corpus,
        passages_of=passages_of,
        scale=scale,
        policy=resolve_policy(policy),
        form=IdForm.of(ids),
    )
    for doubt in terms.doubts:
        warnings.warn(doubt, stacklevel=2)
    return terms.join(run, pool, pool_sources or {}, name=name, part_of_whole=part_of_whole)


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


@dataclass(frozen=True, slots=True)
class Terms:
    """What runs are joined with: labels, corpus and rules.

    Attributes
    ----------
    qrels : Qrels
        With the controls.
    labels : Qrels
        Without the controls.
    scale : Scale
    judging : Judging
        How lists are judged.
    corpus : frozenset of str or None
        The passages of the corpus.
    passages_of : PassageCounts or None
    sizes : int64[queries] or None
        N of each query.
    documents : Documents or None
        The judged documents with the numbers of their passages.
    counted : (passages, N) or None
        The passages of all documents, and the N that all queries share.
    control_notes : tuple of str
    doubts : sequence of SelectivityWarning
    """

    qrels: Qrels
    labels: Qrels
    scale: Scale
    judging: Judging
    corpus: frozenset[str] | None
    passages_of: PassageCounts | None
    sizes: IntArray | None
    documents: Documents | None
    counted: tuple[int, int] | None
    control_notes: tuple[str, ...]
    doubts: Sequence[SelectivityWarning]

    @classmethod
    def of(
        cls,
        qrels: Qrels,
        *,
        policy: Policy,
        form: IdForm,
        scale: str | Scale | None = None,
        controls: Qrels | None = None,
        corpus_size: Any = None,
        corpus: Iterable[Any] | None = None,
        passages_of: Any = None,
        in_order: bool = False,
    ) -> Terms:
        """The terms of what `join` takes; `in_order` brings queries into their natural order (q2 before q10).

        Raises
        ------
        InputError
        """
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
        known, doubts = None, list[SelectivityWarning]()
        if corpus is not None:
            ids = iterated(corpus, "corpus: give the ids of all passages that can be retrieved, as a list")
            known = frozenset(map(form, map(str, ids)))
            qrels, doubts = within_corpus(qrels, known)
        if in_order:
            qrels = qrels.in_order(by_passage=qrels.origins is not None)
        drawn, counts = control_rows(qrels), passage_counts_of(passages_of, form)
        labels = qrels if drawn is None else qrels.only(~drawn)
        if drawn is not None and counts is not None:
            raise InputError(
                "random controls cannot be combined with passages_of, since a control is one passage and a label is of "
                "a document: label passages, as Qrels.inherit does, or leave the controls out"
            )
        if known is not None and corpus_size is None and counts is None:
            corpus_size = len(known)
            if policy.exclude_self:
                corpus_size = {query: len(known) - (query in known) for query in qrels.queries}
        corpus_size = size_with_counts(corpus_size, counts, form)
        documents, judged = None, qrels.counts()
        if counts is not None:
            documents = _documents(qrels, counts, scale, policy)
            judged = np.bincount(qrels.query, documents.passages, minlength=len(qrels)).astype(np.int64)
        return cls(
            qrels,
            labels,
            scale,
            Judging(qrels, labels.counts(), policy, form, drawn),
            known,
            counts,
            corpus_sizes(corpus_size, qrels, judged),
            documents,
            (counts.total, corpus_size) if counts is not None and isinstance(corpus_size, int) else None,
            control_notes,
            doubts,
        )

    def join(
        self,
        run: Run | Iterable[Run],
        pool: Run | Iterable[Run] | None = None,
        pool_sources: Mapping[str, Run] | None = None,
        *,
        name: str,
        part_of_whole: bool = False,
    ) -> JudgedRun:
        """Join a run; the rest is as in `join`."""
        lists = self.judging.lists(run, name, self.passages_of)
        candidates = None if pool is None else self.judging.lists(pool, f"the pool of {name}")
        sources = {
            source: self.judging.lists(of_source, f"the pool {source} of {name}")
            for source, of_source in (pool_sources or {}).items()
        }
        facts = self.facts(lists)
        judged = self.joined(lists, facts, candidates, {source: each.hits for source, each in sources.items()})
        if part_of_whole:
            return replace(judged, part=Part(replace(self, corpus=None, passages_of=None), lists, candidates, sources))
        ids_known = self.corpus is not None and corpus_has(
            self.corpus, facts.passages.sides[0], name, self.judging.form.exact
        )
        facts.check(name, ids_known=ids_known)
        for doubt in facts.warnings(name, ids_known=ids_known):
            warnings.warn(doubt, stacklevel=3)
        return self.kept(judged)

    def kept(self, judged: JudgedRun) -> JudgedRun:
        """The join without the queries that the run lacks, if the policy leaves these out."""
        skips = self.judging.policy.missing_query == "skip" and judged.missing is not None
        return judged.over(judged.in_run) if skips else judged

    def facts(self, lists: Lists) -> JoinFacts:
        """What is said of the join of lists."""
        overlong, lost = None, 0
        if self.sizes is not None:
            sizes = self.sizes[lists.query]
            too_long = np.flatnonzero(lists.length > sizes).tolist()
            listed = [(self.qrels.queries[lists.query[i]], int(lists.length[i]), int(sizes[i])) for i in too_long]
            overlong = min(listed, default=None)
        if self.documents is not None and self.documents.complete:
            relevant = self.documents.chosen(self.documents.grade >= self.scale.relevant_from)
            lost = int((relevant.passages == 0).sum())
        return JoinFacts(self.judging, lists, self.counted, overlong, lost)

    def joined(
        self, lists: Lists, facts: JoinFacts, candidates: Lists | None, sources: Mapping[str, Hits]
    ) -> JudgedRun:
        """The join of lists that were judged."""
        qrels, labels = self.qrels, self.labels
        length = lists.by_query(lists.length, len(qrels), -1)
        repeats = lists.by_query(lists.first_repeat, len(qrels), 0)
        present = length >= 0
        missing = int((~present).sum())
        grades = np.array(sorted({*labels.grades_present(), *labels.levels}), np.int64)
        expected = 0 if labels.expected is None else int(labels.expected.sum())
        controls = None
        if self.judging.controls is not None:
            controls = controls_of(
                qrels, self.judging.controls, lists.controls, self.scale.relevant_from, self.control_notes
            )
        coverage = Coverage(
            missing,
            len(lists.unknown),
            lists.counts["duplicates"],
            qrels.repeated,
            qrels.negative,
            expected=expected,
            graded=labels.size - expected,
        )
        judged = JudgedRun(
            queries=qrels.queries,
            hits=lists.hits,
            returned=np.maximum(length, 0),
            grades=grades,
            labels=labels.counts_by_grade(grades),
            corpus_size=self.sizes,
            scale=self.scale,
            policy=self.judging.policy,
            pool_sources=sources,
            controls=controls,
            missing=~present if missing else None,
            documents=self.documents,
            coverage=coverage,
            facts=facts,
            qrels=qrels,
            first_repeat=repeats if repeats.any() else None,
        )
        if candidates is None:
            return judged
        # A query that the pool lacks has its own list as its pool.
        in_pool = candidates.by_query(candidates.length, len(qrels), -1)
        own = in_pool < 0
        judged = replace(
            judged,
            pool=Hits.together([candidates.hits, lists.hits.chosen(own[lists.hits.query])]),
            pool_returned=np.where(own, judged.returned, in_pool),
            own_pool=own,
        )
        outside, lacking = len(judged.hits_outside_pool().query), int((own & present).sum())
        return replace(judged, coverage=replace(coverage, outside_pool=outside, missing_from_pool=lacking))


@dataclass(frozen=True, slots=True)
class Part:
    """What a join of some of the queries was made of, so that the whole can be made of the parts."""

    terms: Terms
    lists: Lists
    pool: Lists | None
    sources: Mapping[str, Lists]

    def whole(self, parts: Sequence[Part]) -> JudgedRun:
        """The join of the whole run."""
        lists = Lists.together(part.lists for part in parts)
        again = lists.repeated()
        if again is not None:
            raise InputError(f"concat: two parts have a list for query {self.terms.qrels.queries[again]!r}")
        pools = [part.pool for part in parts if part.pool is not None]
        sources = {name: Lists.together(part.sources[name] for part in parts).hits for name in self.sources}
        facts = self.terms.facts(lists)
        facts.check("the run")
        return self.terms.kept(self.terms.joined(lists, facts, Lists.together(pools) if pools else None, sources))


def _documents(qrels: Qrels, counts: PassageCounts, scale: Scale, policy: Policy) -> Documents:
    """The judged documents with the numbers of their passages; an InputError if a relevant one has none."""
    if policy.duplicates == "drop":
        raise InputError(
            'duplicates="drop" takes further passages of a document out of the lists, but with passages_of each of '
            "them has its slot: leave one of the two out"
        )
    passages = np.array([counts.passages.get(each, 0) for each in qrels.passages], np.int64)
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
