"""The join in memory: the lists of a run with their judgments, and what is noticed on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.judged.hits import Hits
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run, ScatteredQueries, inverse, texts_at
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.ids import IntArray, mix, ranges

#: How many of a list's first passages are compared with what the labels promise.
TOP = 10
#: In so many lists ids are compared with those of the labels, down to a rank.
_SAMPLED_LISTS, _SAMPLED_RANKS = 100, 50


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of a run, or of a part of it, for the queries of the qrels.

    Attributes
    ----------
    query, length : int64[lists]
        The position of each list's query in the qrels, and how many passages it has.
    first_repeat : int64[lists]
        The rank of the first passage that stands above it too; 0 without one.
    hits, controls : Hits
        The judged passages by query and rank, and the random controls, which do not count as judged.
    counts : {name: count}
        What adds up: `retrieved` passages, repeated ones (`duplicates`), judged ones that the top 10 have (`kept`) and
        could have (`promised`), and the remarks on the run.
    unknown : list of str
        The queries that the qrels lack.
    sampled : list of (position, passages)
        Some lists, to compare ids.
    """

    query: IntArray
    length: IntArray
    first_repeat: IntArray
    hits: Hits
    controls: Hits
    counts: Counter[str]
    unknown: list[str]
    sampled: list[tuple[int, list[str]]]

    @classmethod
    def together(cls, parts: Iterable[Lists]) -> Lists:
        """The lists of a whole run from those of its parts."""
        given: list[Lists] = []
        sampled: list[tuple[int, list[str]]] = []
        for part in parts:
            sampled = sorted([*sampled, *part.sampled], key=itemgetter(0))[:_SAMPLED_LISTS]
            given.append(replace(part, sampled=[]))
        none = np.empty(0, np.int64)
        query, length, first_repeat = (
            np.concatenate([none, *(getattr(part, name) for part in given)])
            for name in ("query", "length", "first_repeat")
        )
        return cls(
            query,
            length,
            first_repeat,
            Hits.together(part.hits for part in given),
            Hits.together(part.controls for part in given),
            sum((part.counts for part in given), Counter[str]()),
            list(chain.from_iterable(part.unknown for part in given)),
            sampled,
        )

    def by_query(self, column: IntArray, queries: int, absent: int) -> IntArray:
        """A column of the lists for all queries of the qrels: int64[queries]."""
        result = np.full(queries, absent, np.int64)
        result[self.query] = column
        return result

    def repeated(self) -> int | None:
        """The first query that has several lists; None if all have one."""
        several = np.flatnonzero(np.bincount(self.query) > 1)
        return int(several[0]) if len(several) else None


@dataclass(frozen=True, slots=True)
class Judging:
    """How lists are judged: the labels with the mask of those that are controls, and the rules."""

    qrels: Qrels
    policy: Policy
    form: IdForm = AS_THEY_ARE
    controls: NDArray[np.bool_] | None = None

    @property
    def labels(self) -> IntArray:
        """How many labels each query has, without the controls: int64[queries]."""
        if self.controls is None:
            return self.qrels.counts()
        return np.bincount(self.qrels.query[~self.controls], minlength=len(self.qrels))

    def lists(self, run: Run | Iterable[Run], name: str) -> Lists:
        """The lists of a run with their judgments."""
        try:
            lists = Lists.together(self._part(part, name) for part in ([run] if isinstance(run, Run) else run))
        except ScatteredQueries as scattered:
            lists = Lists.together(self._part(part, name) for part in scattered.again())
        again = lists.repeated()
        if again is None:
            return lists
        query = self.qrels.queries[again]
        if self.form.changes_ids:
            raise InputError(
                f"{name}: several queries become {query!r} with ids={str(self.form)!r} (--ids {self.form}): rename all "
                f"but one of them, or give another form"
            )
        raise InputError(f"{name}: query {query!r} appears in two parts of the run: put its rows into one part")

    def _part(self, given: Run, name: str) -> Lists:
        """The lists of a part of a run: of all its queries, each whole."""
        qrels, policy = self.qrels, self.policy
        part = given.in_form(self.form)
        if policy.exclude_self:
            part = part.without_self()
        position = qrels.positions(part.queries)
        unknown = [part.queries[i] for i in np.flatnonzero(position < 0).tolist()]
        if unknown:
            part = part.of_lists(np.flatnonzero(position >= 0))
            position = position[position >= 0]
        found = None if isinstance(part.passages, list) else _found_by_polars(qrels, part, position)
        if found is None:
            part = replace(part, passages=list(part.passages))
            found = _found(qrels, part, position)
        rows, judgments, repeating = found
        # Where a passage is repeated, every row of equal scores has its say in which copy is the first.
        order = part.order(policy, None if repeating else rows)
        # From here on rows are places in rank order.
        place = rows if order is None else inverse(order)[rows]
        in_order = np.argsort(place, kind="stable")
        place, judgments = place[in_order], judgments[in_order]
        copies = np.empty(0, np.int64)
        if repeating:
            ordered = part if order is None else part.rows(order)
            copies = copies_in(ordered, repeating)
            if policy.duplicates == "error" and len(copies):
                _refuse_copy(ordered, int(copies[0]), name)
        local, rank = part.places(place)
        hits = Hits(local, rank, qrels.grade[judgments], np.isin(place, copies, assume_unique=True), judgments)
        drawn = np.zeros(len(rank), bool) if self.controls is None else self.controls[judgments]
        listed = hits.chosen(drawn)
        hits = hits.chosen(~drawn) if drawn.any() else hits
        labels = self.labels[position]
        counts = part.remarks + Counter(
            retrieved=len(part.passages),
            promised=int(np.minimum(labels, np.minimum(part.lengths, TOP)).sum()),
            kept=int((hits.rank <= TOP).sum()),
            duplicates=len(copies),
        )
        hits, lengths, first_repeat = _left_out(hits, part, copies, policy)
        return Lists(
            position,
            lengths,
            first_repeat,
            replace(hits, query=position[hits.query]),
            replace(listed, query=position[listed.query]),
            counts,
            unknown,
            [] if self.form.exact else _sampled(part, order, position, labels),
        )


def _sampled(part: Run, order: IntArray | None, position: IntArray, labels: IntArray) -> list[tuple[int, list[str]]]:
    """The first passages of the lists of the first queries that have labels."""
    usable = np.flatnonzero((part.lengths > 0) & (labels > 0))
    usable = usable[np.argsort(position[usable], kind="stable")][:_SAMPLED_LISTS]
    lengths = np.minimum(part.lengths[usable], _SAMPLED_RANKS)
    rows = ranges(part.offsets[usable], lengths)
    passages = iter(texts_at(part.passages, rows if order is None else order[rows]))
    return [(int(at), list(islice(passages, length))) for at, length in zip(position[usable], lengths, strict=True)]


def _left_out(hits: Hits, part: Run, copies: IntArray, policy: Policy) -> tuple[Hits, IntArray, IntArray]:
    """The hits by the rules for copies and for unjudged passages, the lengths of the lists, and their first repeats."""
    lengths = part.lengths
    of_copies, ranks = part.places(copies)
    first_repeat = _first_ranks(of_copies, ranks, len(lengths))
    if policy.duplicates == "drop" and len(copies):
        place = part.offsets[hits.query] + hits.rank - 1
        before = np.searchsorted(copies, place) - np.searchsorted(copies, part.offsets[hits.query])
        hits = replace(hits, rank=hits.rank - before).chosen(~hits.repeated)
        lengths = lengths - np.bincount(of_copies, minlength=len(lengths))
    if policy.unjudged == "condense":
        lengths = np.bincount(hits.query, minlength=len(lengths))
        hits = replace(hits, rank=np.arange(len(hits.rank)) - (np.cumsum(lengths) - lengths)[hits.query] + 1)
        first_repeat = _first_ranks(hits.query[hits.repeated], hits.rank[hits.repeated], len(lengths))
    return hits, lengths, first_repeat


def _found(qrels: Qrels, part: Run, position: IntArray) -> tuple[IntArray, IntArray, list[int]]:
    """The rows that are judged, their judgments, and the lists that hold a passage twice."""
    rows: list[int] = []
    judgments: list[int] = []
    repeating = []
    for i, (query, (start, stop)) in enumerate(zip(position.tolist(), pairwise(part.offsets.tolist()), strict=True)):
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


def _found_by_polars(qrels: Qrels, part: Run, position: IntArray) -> tuple[IntArray, IntArray, list[int]] | None:
    """As `_found`, of passages in a Series; None where a list may hold a passage twice."""
    passages: Any = part.passages
    # Equal passages of a list have equal numbers; different ones hardly ever.
    numbers = mix(passages.hash().to_numpy(), part.row_queries().astype(np.uint64))
    numbers.sort()
    if (numbers[1:] == numbers[:-1]).any():
        return None
    known = chain.from_iterable(qrels.passages[qrels.rows(query)] for query in position.tolist())
    labelled = type(passages)(list(known), dtype=passages.dtype)
    # A label may be of another query.
    rows = np.flatnonzero(passages.is_in(labelled.implode()).to_numpy())
    judgments = qrels.judgments(position[part.places(rows)[0]], passages.gather(rows).to_list())
    return rows[judgments >= 0], judgments[judgments >= 0], []


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


def _refuse_copy(part: Run, row: int, name: str) -> None:
    query = part.queries[int(part.places(np.array([row]))[0][0])]
    raise InputError(
        f"{name}: query {query!r} lists passage {part.passages[row]!r} more than once, and the policy is "
        f'duplicates="error": remove the repeats, or give another policy'
    )


def _first_ranks(lists: IntArray, ranks: IntArray, count: int) -> IntArray:
    """The smallest of the ranks of each list; 0 for a list without one."""
    first = np.zeros(count, np.int64)
    order = np.argsort(-ranks, kind="stable")
    first[lists[order]] = ranks[order]
    return first
