"""What runs are joined with: labels, corpus and rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.rows import NO_HITS, Documents, Hits
from rag_selectivity.tables.cells import iterated, whole_count
from rag_selectivity.tables.exact import is_frame
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.grades import Scale, scale_named
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.small import PassageCounts, UnderFilter, passage_counts_of, per


@dataclass(frozen=True)
class Terms:
    """What runs are joined with.

    Attributes
    ----------
    qrels : Qrels
        The labels with the controls.
    drawn : bool[judgments]
        The judgments that are controls.
    scale, policy, form
    corpus : frozenset of str or None
        The passages of the corpus.
    left : Qrels
        The labels of passages that a retriever's filter leaves, which alone its lists can hold; all without one.
    outside : Hits
        The judgments of passages that it leaves out, at no rank.
    sizes : int64[queries] or None
        N of each query.
    documents : Documents or None
        The judged documents with the numbers of their passages.
    counted : (passages, N) or None
        The passages of all documents, and the N that all queries share.
    doubts : sequence of SelectivityWarning
    """

    qrels: Qrels
    drawn: NDArray[np.bool_]
    scale: Scale
    policy: Policy
    form: IdForm
    corpus: frozenset[str] | None
    left: Qrels
    outside: Hits
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
        qrels = qrels.on_scale(qrels.scale or policy.scale if scale is None else scale).in_form(form)
        settled = scale_named(qrels.scale or "trec")
        if not len(qrels):
            raise InputError(f"{qrels.source or 'qrels'}: there are no judgments")
        if controls is not None:
            qrels = qrels.with_controls(controls.on_scale(settled).in_form(form))
        if policy.exclude_self:
            qrels = qrels.without_self()
        known, doubts = None, list[SelectivityWarning]()
        if corpus is not None and not isinstance(corpus, UnderFilter):
            ids = iterated(corpus, "corpus: give the ids of all passages that can be retrieved, as a list")
            known = frozenset(map(form, map(str, ids)))
            qrels, doubts = _within_corpus(qrels, known)
        if in_order:
            qrels = qrels.in_order(by_passage=qrels.origins is not None)
        left, outside = qrels, NO_HITS
        if isinstance(corpus, UnderFilter):
            leaves = {*map(form, corpus)}
            inside = np.array([passage in leaves for passage in qrels.passages], bool)
            # Controls from elsewhere are not from what was searched.
            searched = inside | ~qrels.controls
            qrels, left, out = qrels.take(searched), qrels.take(inside), np.flatnonzero(~inside[searched])
            outside = Hits(qrels.query[out], 0 * out, qrels.grade[out], np.zeros(len(out), bool), out)
        drawn, counts = qrels.controls, passage_counts_of(passages_of, form)
        if drawn.any() and counts is not None:
            raise InputError(
                "random controls cannot be combined with passages_of, since a control is one passage and a label is of "
                "a document: label passages, as Qrels.inherit does, or leave the controls out"
            )
        if known is not None and corpus_size is None and counts is None:
            corpus_size = len(known)
            if policy.exclude_self:
                corpus_size = {query: len(known) - (query in known) for query in qrels.queries}
        size = size_of(corpus_size, counts, form)
        documents, judged = None, left.lengths
        if counts is not None:
            documents = _documents(left, counts, settled, policy)
            judged = np.bincount(left.query, documents.passages, minlength=len(left)).astype(np.int64)
        sizes = None if size is None else _sizes(size, qrels, judged)
        counted = (counts.total, size) if counts is not None and isinstance(size, int) else None
        left = left.without_controls()
        return cls(qrels, drawn, settled, policy, form, known, left, outside, sizes, documents, counted, doubts)

    @cached_property
    def labels(self) -> Qrels:
        """The labels without the controls."""
        return self.qrels.without_controls()


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
    unknown = passages - ids
    if not unknown:
        return qrels, []
    if len(unknown) == len(passages):
        sides = f"the qrels name {examples(qrels.passages)}, the corpus has {examples(sorted(ids)[:3])}"
        none = f"no judged passage is in the corpus: {sides}"
        raise InputError(f"{none}; do both use the same ids? (how-to: ids-do-not-match)")
    some = f"{len(unknown)} of {len(passages)} judged passages are not among those that can be retrieved"
    text = f"{some} ({examples(sorted(unknown))}): their labels are left out"
    inside = np.array([passage in ids for passage in qrels.passages], bool)
    return qrels.take(inside), [SelectivityWarning(text, "outside-corpus")]


def size_of(corpus_size: Any, counts: PassageCounts | None, form: IdForm = AS_THEY_ARE) -> int | dict[str, int] | None:
    """N in passages, or {query: N}: of a number, a mapping or a frame, or the passages of all documents.

    The queries are there as they were given and in the form.
    """
    given: int | dict[str, int] | None = None
    if is_frame(corpus_size) or isinstance(corpus_size, Mapping):
        sizes = per("query", corpus_size, "corpus size", int, name="corpus_size")
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


def _sizes(given: int | dict[str, int], qrels: Qrels, judged: IntArray) -> IntArray:
    """N of each query."""
    sizes = given if isinstance(given, dict) else dict.fromkeys(qrels.queries, given)
    if absent := sorted(query for query in qrels.queries if query not in sizes):
        fact = f"corpus_size has no entry for {len(absent)} of the {len(qrels)} queries"
        raise InputError(f"{fact} ({examples(absent[:3])}): add them")
    result = np.array([sizes[query] for query in qrels.queries], np.int64)
    if len(off := np.flatnonzero(judged > result)):
        raise InputError(
            f"query {qrels.queries[off[0]]!r} has {judged[off[0]]} judged passages, more than the corpus size "
            f"N = {result[off[0]]}: correct corpus_size, or leave out the labels of passages that the index lacks"
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
    return Documents(qrels.query, qrels.grade, passages, counts.fingerprint, counts.complete)
