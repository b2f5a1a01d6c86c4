"""Join runs with their judgments."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.judged.controls import Controls, control_rows, with_controls
from rag_selectivity.judged.hits import Coverage, Documents, Hits
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.lists import Judging, Lists
from rag_selectivity.judged.policy import Policy, resolve_policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.cells import iterated, shown, whole_count
from rag_selectivity.tables.exact import is_frame
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.grades import SCALES, Scale, scale_named
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.small import PassageCounts, passage_counts_of, per_query


def join(
    qrels: Qrels,
    run: Run | Iterable[Run],
    *,
    pool: Run | Iterable[Run] | None = None,
    controls: Qrels | None = None,
    corpus_size: Any = None,
    corpus: Iterable[Any] | None = None,
    passages_of: Any = None,
    scale: str | Scale | None = None,
    policy: str | Policy | None = None,
    name: str = "run",
    ids: str | IdForm | None = None,
) -> JudgedRun:
    """Join a run with its judgments.

    Parameters
    ----------
    qrels : Qrels
    run : Run, or iterable of Runs over different queries
        An iterable lets a file of any length be streamed.
    pool : Run or iterable of Runs, optional
        The candidates before reranking or selection, which include the run's passages.
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
    Returns
    -------
    JudgedRun

    Raises
    ------
    InputError
        If an argument is wrong, or the policy refuses the input. Whether labels and run have the same ids is decided
        where a report is made.
    """
    terms = Terms.of(
        Qrels.of(qrels),
        controls=None if controls is None else Qrels.of(controls),
        corpus_size=corpus_size,
        corpus=corpus,
        passages_of=passages_of,
        scale=scale,
        policy=resolve_policy(policy),
        form=IdForm.of(ids),
    )
    for doubt in terms.doubts:
        warnings.warn(doubt, stacklevel=2)
    return terms.join(_lists_of(run), None if pool is None else _lists_of(pool), name=name)


def _lists_of(run: Any) -> Run | Iterable[Run]:
    """A Run, or several over different queries; anything else is read as a run."""
    if isinstance(run, (Run, Mapping, str)) or not isinstance(run, Iterable):
        return Run.of(run)
    return run


@dataclass(frozen=True, slots=True)
class Terms:
    """What runs are joined with: labels, corpus and rules.

    Attributes
    ----------
    judging : Judging
        How lists are judged: the labels with the controls, and the rules.
    labels : Qrels
        Without the controls.
    scale : Scale
    corpus : frozenset of str or None
        The passages of the corpus.
    sizes : int64[queries] or None
        N of each query.
    documents : Documents or None
        The judged documents with the numbers of their passages.
    counted : (passages, N) or None
        The passages of all documents, and the N that all queries share.
    doubts : sequence of SelectivityWarning
    """

    judging: Judging
    labels: Qrels
    scale: Scale
    corpus: frozenset[str] | None
    sizes: IntArray | None
    documents: Documents | None
    counted: tuple[int, int] | None
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
        if controls is not None:
            qrels = with_controls(qrels, controls.on_scale(scale).in_form(form))
        if policy.exclude_self:
            qrels = qrels.without_self()
        known, doubts = None, list[SelectivityWarning]()
        if corpus is not None:
            ids = iterated(corpus, "corpus: give the ids of all passages that can be retrieved, as a list")
            known = frozenset(map(form, map(str, ids)))
            qrels, doubts = _within_corpus(qrels, known)
        if in_order:
            qrels = qrels.in_order(by_passage=qrels.origins is not None)
        drawn, counts = control_rows(qrels), passage_counts_of(passages_of, form)
        if drawn is not None and counts is not None:
            raise InputError(
                "random controls cannot be combined with passages_of, since a control is one passage and a label is of "
                "a document: label passages, as Qrels.inherit does, or leave the controls out"
            )
        if known is not None and corpus_size is None and counts is None:
            corpus_size = len(known)
            if policy.exclude_self:
                corpus_size = {query: len(known) - (query in known) for query in qrels.queries}
        size = size_with_counts(corpus_size, counts, form)
        documents, judged = None, qrels.counts()
        if counts is not None:
            documents = _documents(qrels, counts, scale, policy)
            judged = np.bincount(qrels.query, documents.passages, minlength=len(qrels)).astype(np.int64)
        return cls(
            judging=Judging(qrels, policy, form, drawn),
            labels=qrels if drawn is None else qrels.only(~drawn),
            scale=scale,
            corpus=known,
            sizes=_sizes(size, qrels, judged),
            documents=documents,
            counted=(counts.total, size) if counts is not None and isinstance(size, int) else None,
            doubts=doubts,
        )

    @property
    def qrels(self) -> Qrels:
        """The labels with the controls."""
        return self.judging.qrels

    def join(
        self,
        run: Run | Iterable[Run],
        pool: Run | Iterable[Run] | None = None,
        *,
        name: str,
    ) -> JudgedRun:
        """Join a run, as `join` does."""
        part = Part(
            self,
            self.judging.lists(run, name),
            None if pool is None else self.judging.lists(pool, f"the pool of {name}"),
        )
        return self.joined(part)

    def overlong(self, lists: Lists) -> tuple[str, int, int] | None:
        """A query whose list is longer than its corpus, with both numbers; None if there is none."""
        if self.sizes is None:
            return None
        sizes = self.sizes[lists.query]
        too_long = np.flatnonzero(lists.length > sizes).tolist()
        listed = [(self.qrels.queries[lists.query[i]], int(lists.length[i]), int(sizes[i])) for i in too_long]
        return min(listed, default=None)

    @property
    def not_in_index(self) -> int:
        """Relevant labels of documents that the index lacks, if the passages of all documents were counted in it."""
        if self.documents is None or not self.documents.complete:
            return 0
        relevant = self.documents.grade >= self.scale.relevant_from
        return int((relevant & (self.documents.passages == 0)).sum())

    def joined(self, part: Part) -> JudgedRun:
        """The join of lists that were judged, without the queries that the run lacks if the policy leaves these out."""
        judged = self._with_pool(self._joined(part), part)
        skips = self.judging.policy.missing_query == "skip" and judged.missing is not None
        return judged.over(judged.in_run) if skips else judged

    def _joined(self, part: Part) -> JudgedRun:
        qrels, labels, lists = self.qrels, self.labels, part.lists
        length = lists.by_query(lists.length, len(qrels), -1)
        repeats = lists.by_query(lists.first_repeat, len(qrels), 0)
        present = length >= 0
        missing = int((~present).sum())
        grades = np.array(sorted({*labels.grades_present(), *labels.levels}), np.int64)
        expected = 0 if labels.expected is None else int(labels.expected.sum())
        controls = None
        if qrels.origins is not None and self.judging.controls is not None:
            controls = Controls.of(qrels, qrels.origins, self.judging.controls, lists.controls)
        coverage = Coverage(
            missing,
            len(lists.unknown),
            lists.counts["duplicates"],
            qrels.repeated,
            qrels.negative,
            expected=expected,
            graded=labels.size - expected,
        )
        return JudgedRun(
            queries=qrels.queries,
            hits=lists.hits,
            returned=np.maximum(length, 0),
            grades=grades,
            labels=labels.counts_by_grade(grades),
            corpus_size=self.sizes,
            scale=self.scale,
            policy=self.judging.policy,
            controls=controls,
            missing=~present if missing else None,
            documents=self.documents,
            coverage=coverage,
            made_of=part,
            qrels=qrels,
            first_repeat=repeats if repeats.any() else None,
        )

    def _with_pool(self, judged: JudgedRun, part: Part) -> JudgedRun:
        """The join with the candidates; a query that the pool lacks has its own list as its pool."""
        if part.pool is None:
            return judged
        in_pool = part.pool.by_query(part.pool.length, len(judged), -1)
        own = in_pool < 0
        judged = replace(
            judged,
            pool=Hits.together([part.pool.hits, judged.hits.chosen(own[judged.hits.query])]),
            pool_returned=np.where(own, judged.returned, in_pool),
            own_pool=own,
        )
        outside, lacking = len(judged.hits_outside_pool().query), int((own & judged.in_run).sum())
        return replace(judged, coverage=replace(judged.coverage, outside_pool=outside, missing_from_pool=lacking))


@dataclass(frozen=True, slots=True)
class Part:
    """What a join was made of, so that the whole can be made of parts, and said whether labels and run fit together."""

    terms: Terms
    lists: Lists
    pool: Lists | None

    def beside(self, others: Sequence[Part]) -> JudgedRun:
        """The join of the whole run, from this part and others."""
        parts = [self, *others]
        lists = Lists.together(part.lists for part in parts)
        again = lists.repeated()
        if again is not None:
            raise InputError(f"concat: two parts have a list for query {self.terms.qrels.queries[again]!r}")
        pools = [part.pool for part in parts if part.pool is not None]
        return self.terms.joined(Part(self.terms, lists, Lists.together(pools) if pools else None))


# -- the corpus ----------------------------------------------------------------------------------------


def _within_corpus(qrels: Qrels, ids: Set[str]) -> tuple[Qrels, list[SelectivityWarning]]:
    """The judgments of the corpus's passages, which alone can be retrieved or drawn, and a warning if others were left.

    Raises
    ------
    InputError
        If no judged passage is in the corpus.
    """
    if not ids:
        raise InputError("the corpus has no passages: give the ids of all passages that can be retrieved")
    passages = set(qrels.passages)
    unknown, judged = passages - ids, len(passages)
    if not unknown:
        return qrels, []
    if len(unknown) == judged:
        raise InputError(
            f"no judged passage is in the corpus: the qrels name {examples(qrels.passages)}, "
            f"the corpus has {examples(sorted(ids)[:3])}; do both use the same ids? (how-to: ids-do-not-match)"
        )
    text = (
        f"{len(unknown)} of {judged} judged passages are not in the corpus ({examples(sorted(unknown))}): their labels "
        f"are left out"
    )
    inside = np.array([passage in ids for passage in qrels.passages], bool)
    return qrels.only(inside), [SelectivityWarning(text, "outside-corpus")]


def size_with_counts(
    corpus_size: Any, counts: PassageCounts | None, form: IdForm = AS_THEY_ARE
) -> int | dict[str, int] | None:
    """N in passages, or {query: N}: of a number, a mapping or a frame, or the passages of all documents.

    The queries are there as they were given and in the form.
    """
    given: int | dict[str, int] | None = None
    if is_frame(corpus_size) or isinstance(corpus_size, Mapping):
        sizes = per_query(corpus_size, "corpus size", int, name="corpus_size")
        given = {form(query): size for query, size in sizes.items()} | sizes
    elif corpus_size is not None:
        given = whole_count(corpus_size, "corpus_size")
    if counts is None:
        return given
    if isinstance(given, int) and given < counts.total:
        raise InputError(
            f"corpus_size is {given}, less than the {counts.total} passages of the documents in passages_of: "
            f"N counts passages, not documents; leave corpus_size out, or give the number of passages in the index"
        )
    return counts.total if given is None else given


def _sizes(given: int | dict[str, int] | None, qrels: Qrels, judged: IntArray) -> IntArray | None:
    """N of each query."""
    if given is None:
        return None
    if isinstance(given, dict):
        absent = [query for query in qrels.queries if query not in given]
        if absent:
            raise InputError(
                f"corpus_size has no entry for {len(absent)} of the {len(qrels)} queries "
                f"({examples(sorted(absent)[:3])}): add them"
            )
    sizes = map(given.__getitem__, qrels.queries) if isinstance(given, dict) else repeat(given, len(qrels))
    result = np.fromiter(sizes, np.int64)
    over = np.flatnonzero(judged > result)
    if len(over):
        i = int(over[0])
        raise InputError(
            f"query {qrels.queries[i]!r} has {judged[i]} judged passages, more than the corpus size "
            f"N = {result[i]}: correct the corpus size"
        )
    return result


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
