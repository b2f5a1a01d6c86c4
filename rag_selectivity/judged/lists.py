"""The join in memory: the judged passages of lists, and what is noticed on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import compress, islice, pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.rows import Hits
from rag_selectivity.judged.run import Run, ScatteredQueries
from rag_selectivity.judged.terms import Terms
from rag_selectivity.tables.exact import is_frame
from rag_selectivity.tables.ids import IntArray, ranges

#: How many of a list's first passages are compared with what the labels promise.
TOP = 10
#: In so many lists ids are compared with those of the labels, down to a rank.
_SAMPLED_LISTS, _SAMPLED_RANKS = 100, 50
#: Sets the numbers of the passages of one query apart from those of another.
_ODD = np.uint64(0x9E3779B97F4A7C15)
#: The first bits of such a number are a slot.
_SLOTS, _SLOT = 1 << 22, np.uint64(64 - 22)


@dataclass(eq=False)
class Lists:
    """The lists of a run, or of some of its queries, for the queries of the qrels. All of it adds up over parts.

    Attributes
    ----------
    times, length : int64[queries]
        How many lists the run has for each query, which is one or none, and how many passages they hold.
    first_repeat : int64[queries]
        The rank of the first passage that stands above it too; 0 without one.
    counts : {name: count}
        `retrieved` passages, repeated ones (`duplicates`), judged ones that the top 10 have (`kept`) and could have
        (`promised`), and the remarks on the run.
    hits, controls : list of Hits
        The judged passages by query and rank, and the random controls, which do not count as judged.
    unknown : list of str
        The queries that the qrels lack.
    sampled : list of (position, passages)
        Some lists, to compare ids.
    distinct : list of int
        How many different passages a part has, where it has more rows than the corpus has passages.
    """

    times: IntArray
    length: IntArray
    first_repeat: IntArray
    counts: Counter[str] = field(default_factory=Counter)
    hits: list[Hits] = field(default_factory=list)
    controls: list[Hits] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    sampled: list[tuple[int, list[str]]] = field(default_factory=list)
    distinct: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, run: Any, terms: Terms, name: str) -> Lists:
        """The lists of a run, or of several over different queries; anything else is read as a run."""
        is_run = isinstance(run, (Run, Mapping, str)) or not isinstance(run, Iterable) or is_frame(run)
        try:
            total = cls._of_parts([Run.of(run)] if is_run else run, terms, name)
        except ScatteredQueries as scattered:
            total = cls._of_parts(scattered.again(), terms, name)
        again, form = total.repeated(), terms.form
        if again is None:
            return total
        query = terms.qrels.queries[again]
        if form.changes_ids:
            fact = f"{name}: several queries become {query!r} with ids={str(form)!r} (--ids {form})"
            raise InputError(f"{fact}: rename all but one of them, or give another form")
        raise InputError(f"{name}: query {query!r} appears in two parts of the run: put its rows into one part")

    @classmethod
    def _of_parts(cls, parts: Iterable[Run], terms: Terms, name: str) -> Lists:
        total = cls(*np.zeros((3, len(terms.qrels)), np.int64))
        for part in parts:
            total._add(Run.of(part).in_form(terms.form), terms, name)
        return total

    @classmethod
    def together(cls, parts: Iterable[Lists]) -> Lists:
        """The lists of a whole run from those of its parts."""
        first, *others = parts
        for other in others:
            first = cls(*(getattr(first, each.name) + getattr(other, each.name) for each in fields(cls)))
        return replace(first, sampled=sorted(first.sampled, key=itemgetter(0))[:_SAMPLED_LISTS])

    def repeated(self) -> int | None:
        """The first query that has several lists; None if all have one."""
        return next(iter(np.flatnonzero(self.times > 1).tolist()), None)

    def _add(self, part: Run, terms: Terms, name: str) -> None:
        """Judge some lists, each whole."""
        qrels, policy, labels = terms.qrels, terms.policy, terms.left.lengths
        if policy.exclude_self:
            part = part.without_self()
        position = qrels.positions(part.queries)
        known = position >= 0
        if not known.all():
            self.unknown += compress(part.queries, (~known).tolist())
            part = part.take(known[part.query])
        found = None if isinstance(part.passages, list) else _found_by_polars(qrels, part, position)
        if found is None:
            part = replace(part, passages=list(part.passages))
            found = _found(qrels, part, position)
        rows, judgments, repeating = found
        # Where a passage is repeated, every row of equal scores has its say in which copy is the first.
        order = part.order(policy, None if len(repeating) else rows)
        if order is not None:
            # From here on rows are places in rank order.
            place = np.empty(len(order), np.int64)
            place[order] = np.arange(len(order))
            rows = place[rows]
        in_order = np.argsort(rows, kind="stable")
        rows, judgments = rows[in_order], judgments[in_order]
        ordered = part.take(order) if order is not None and len(repeating) else part
        copies, _ = ordered.copies(repeating)
        for row in copies[:1].tolist() if policy.duplicates == "error" else ():
            pair = f"query {part.queries[part.query[row]]!r} lists passage {ordered.passages[row]!r} more than once"
            mend = 'and the policy is duplicates="error": remove the repeats, or give another policy'
            raise InputError(f"{name}: {pair}, {mend}")
        repeated = np.isin(rows, copies, assume_unique=True)
        hits = Hits(part.query[rows], part.ranks(rows), qrels.grade[judgments], repeated, judgments)
        listed = terms.drawn[judgments]
        if listed.any():
            controls, hits = hits.take(listed), hits.take(~listed)
            self.controls.append(replace(controls, query=position[controls.query]))
        self.counts += part.remarks + Counter(
            retrieved=len(part.query),
            promised=int(np.minimum(labels[position], np.minimum(part.lengths, TOP)).sum()),
            kept=int((hits.rank <= TOP).sum()),
            duplicates=len(copies),
            of_one_score=part.of_one_score,
        )
        if (sizes := terms.sizes) is not None and len(part.query) > sizes.max():
            self.distinct.append(len({*part.passages}))
        self._sample(part, order, position, labels)
        hits, lengths, first_repeat = _left_out(hits, part, copies, policy)
        self.hits.append(replace(hits, query=position[hits.query]))
        np.add.at(self.times, position[known], 1)
        self.length[position[known]], self.first_repeat[position[known]] = lengths[known], first_repeat[known]

    def _sample(self, part: Run, order: IntArray | None, position: IntArray, labels: IntArray) -> None:
        """Keep the first passages of the lists of the first queries that have labels."""
        last = self.sampled[-1][0] if len(self.sampled) == _SAMPLED_LISTS else len(labels)
        usable = np.flatnonzero((part.lengths > 0) & (labels[position] > 0) & (position < last))
        usable = usable[np.argsort(position[usable], kind="stable")][:_SAMPLED_LISTS]
        lengths = np.minimum(part.lengths[usable], _SAMPLED_RANKS)
        rows = ranges(part.offsets[usable], lengths)
        passages = iter(part.columns_at(rows if order is None else order[rows])["passages"])
        new = [(int(at), list(islice(passages, length))) for at, length in zip(position[usable], lengths, strict=True)]
        self.sampled = sorted(self.sampled + new, key=itemgetter(0))[:_SAMPLED_LISTS]


def _left_out(hits: Hits, part: Run, copies: IntArray, policy: Policy) -> tuple[Hits, IntArray, IntArray]:
    """The hits by the rules for copies and for unjudged passages, the lengths of the lists, and their first repeats."""
    lengths, of_copies = part.lengths, part.query[copies]
    first_repeat = _first_ranks(of_copies, part.ranks(copies), len(lengths))
    if policy.duplicates == "drop" and len(copies):
        start = part.offsets[hits.query]
        before = np.searchsorted(copies, start + hits.rank - 1) - np.searchsorted(copies, start)
        hits = replace(hits, rank=hits.rank - before).take(~hits.repeated)
        lengths = lengths - np.bincount(of_copies, minlength=len(lengths))
    if policy.unjudged == "condense":
        lengths = np.bincount(hits.query, minlength=len(lengths))
        hits = replace(hits, rank=np.arange(len(hits.rank)) - (np.cumsum(lengths) - lengths)[hits.query] + 1)
        first_repeat = _first_ranks(hits.query[hits.repeated], hits.rank[hits.repeated], len(lengths))
    return hits, lengths, first_repeat


def _first_ranks(lists: IntArray, ranks: IntArray, count: int) -> IntArray:
    """The first of the ranks of each list, which rise; 0 for a list without one."""
    first = np.zeros(count, np.int64)
    first[lists[::-1]] = ranks[::-1]
    return first


def _found(qrels: Qrels, part: Run, position: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The rows that are judged, their judgments, and the lists that hold a passage twice."""
    rows: list[int] = []
    judgments: list[int] = []
    repeating: list[int] = []
    for i, (query, (start, stop)) in enumerate(zip(position.tolist(), pairwise(part.offsets.tolist()), strict=True)):
        row_of, labels = dict(zip(part.passages[start:stop], range(start, stop), strict=True)), qrels.rows(query)
        if len(row_of) < stop - start:
            repeating.append(i)
            continue
        found = list(map(row_of.get, qrels.passages[labels]))
        rows += [row for row in found if row is not None]
        judgments += [label for label, row in enumerate(found, labels.start) if row is not None]
    lists = np.array(repeating, np.int64)
    of_lists = ranges(part.offsets[lists], part.lengths[lists])
    further = qrels.judgments(position[part.query[of_lists]], part.columns_at(of_lists)["passages"])
    both = np.append([rows, judgments], [of_lists[further >= 0], further[further >= 0]], axis=1).astype(np.int64)
    return *both, lists


def _found_by_polars(qrels: Qrels, part: Run, position: IntArray) -> tuple[IntArray, IntArray, IntArray] | None:
    """As `_found`, of passages in a Series; None where a list may hold a passage twice."""
    import polars as pl

    retrieved: pl.Series = part.passages
    # The last bits of a key are a row; the others are equal for equal passages of a list, and hardly ever for others.
    of_row = np.uint64((1 << len(retrieved).bit_length()) - 1)

    def keys(lists: IntArray, passages: pl.Series) -> Any:
        return (lists.view(np.uint64) * _ODD + passages.hash().to_numpy()) & ~of_row

    lengths = np.where((position >= 0) & (part.lengths > 0), qrels.lengths[position], 0)
    judgments = ranges(qrels.offsets[position], lengths)
    labelled = pl.Series([qrels.passages[row] for row in judgments.tolist()], dtype=pl.String)
    of_passage, of_label = keys(part.query, retrieved), keys(np.repeat(np.arange(len(position)), lengths), labelled)
    # Only a row whose slot another row or a label has too can be a repeat or judged: these few alone are sorted.
    row, slot = np.arange(len(retrieved), dtype=np.int32), (of_passage >> _SLOT).view(np.int64)
    last = np.zeros(_SLOTS, np.int32)
    last[slot] = row
    behind = np.flatnonzero(last[slot] != row)
    some = np.concatenate([behind, last[slot[behind]], last[of_label >> _SLOT]])
    in_order = np.sort(of_passage[some] | some.astype(np.uint64))
    # What is 0, a row that is among them twice, becomes the largest number.
    if ((in_order[1:] ^ in_order[:-1]) - 1 < of_row).any():
        return None
    nearest = in_order.take(in_order.searchsorted(of_label), mode="clip")
    found = (nearest ^ of_label) <= of_row
    rows = (nearest[found] & of_row).astype(np.int64)
    if (retrieved.gather(rows) != labelled.filter(found)).any():
        return None
    return rows, judgments[found], np.empty(0, np.int64)
