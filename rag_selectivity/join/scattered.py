"""The join of a file whose rows of a query do not stand together: read twice, never held as a whole.

First the judged rows are found, then the rows above each of them are counted. Besides the judged rows this takes six
bytes a row: the number of its query, and a part of a hash, by which repeated passages are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.id_numbers import IdNumbers
from rag_selectivity.data.ids import HashArray, IdColumn, IntArray
from rag_selectivity.data.pair_index import pair_keys
from rag_selectivity.data.policy import TIES, Policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.remarks import NO_REMARKS, together
from rag_selectivity.data.run import Rows, Run
from rag_selectivity.join.facts import TOP, JoinFacts
from rag_selectivity.join.judged_lists import JudgedLists, facts_of_unknown, remarks_by, whole_grades
from rag_selectivity.join.judged_run import Hits
from rag_selectivity.join.sampled_ids import IdSampler


def can_be_counted(policy: Policy, form: IdForm) -> bool:
    """Whether the ranks follow from counts: not where passages are taken out of lists, or ids or ties need a rule."""
    by_score = policy.order == "score" and policy.ties not in TIES
    return by_score and policy.unjudged != "condense" and not form.changes_ids


def judge_scattered(
    qrels: Qrels,
    rows: Callable[[], Iterator[Rows]],
    policy: Policy,
    form: IdForm,
    controls: NDArray[np.bool_] | None,
) -> JudgedLists | None:
    """The lists of a run with their judgments; None if a list repeats a passage: the order of all rows then matters."""
    lists = _Lists(qrels)
    none = np.empty(0, np.int64)
    found = [_Found(none, none, none, np.empty(0))]
    repeats, ties = _Repeats(), _Ties(len(qrels))
    remarks: list[Mapping[str, int]] = []
    before = 0
    for block in rows():
        query = lists.add(block)
        inside = query >= 0
        keys = pair_keys(query, block.passages)
        repeats.add(keys[inside])
        ties.add(query[inside], block.scores[inside])
        at, judgment = qrels.lookup(keys, query, block.passages)
        found.append(_Found(query[at], judgment, before + at, block.scores[at]))
        remarks.append(block.remarks)
        before += len(query)
    repeats.look_again()

    hits = _Found.together(found).by_score(policy)
    sampler = None if form.exact else IdSampler(qrels)
    wanted = np.zeros(len(qrels), bool)
    if sampler is not None:
        wanted[sampler.best_of(np.flatnonzero(lists.returned > 0))] = True
    sampled = []
    count = _Above(qrels, hits, policy)
    before = 0
    for block in rows():
        query = lists.again(before, len(block.scores))
        inside = query >= 0
        repeats.check(pair_keys(query, block.passages)[inside])
        count.add(query, block, before)
        if sampler is not None and len(at := np.flatnonzero(inside & wanted[query])):
            sampled.append((query[at], block.passages.take(at).compact(), block.scores[at]))
        before += len(query)
    if repeats.any():
        return None
    if sampler is not None and sampled:
        run = _run_of(qrels, sampled)
        sampler.add(run, qrels.positions(run.queries), policy)

    ranks = count.ranks()
    drawn = np.zeros(len(ranks), bool) if controls is None else controls[hits.judgment]
    labels = qrels.counts() if controls is None else np.bincount(qrels.query[~controls], minlength=len(qrels))
    lengths = lists.returned[lists.returned >= 0]
    listed = int(lengths.sum())
    kept = ~drawn
    facts = JoinFacts(
        retrieved=listed,
        promised=int(np.minimum(labels, np.clip(lists.returned, 0, TOP)).sum()),
        kept=int((ranks[kept] <= TOP).sum()),
        scored=listed,
        graded=ties.graded,
        neighbours=int(np.maximum(lengths - 1, 0).sum()),
        tied=ties.neighbours(listed, len(lengths)) if policy.ties != "as_given" else 0,
        remarks=remarks_by(policy, together(remarks)),
    )
    if lists.unknown:
        facts += facts_of_unknown(lists.unknown, form)
    if sampler is not None:
        facts += JoinFacts(sampled=sampler.sampled())
    order = np.lexsort((ranks, hits.query))
    order = order[kept[order]]
    judged = Hits(
        hits.query[order],
        ranks[order],
        qrels.grades_of(hits.judgment[order]),
        np.zeros(len(order), bool),
        hits.judgment[order],
    )
    return JudgedLists(
        lists.returned,
        judged,
        0,
        facts,
        (hits.judgment[drawn], ranks[drawn]),
    )


class _Lists:
    """The queries of the rows, and how many rows each has; `returned` is −1 for a query that has none."""

    def __init__(self, qrels: Qrels) -> None:
        self._qrels = qrels
        self._numbers = IdNumbers()
        self._position = np.empty(0, np.int64)
        self._of_rows = _Growing(np.uint16)
        self.returned = np.full(len(qrels), -1, np.int64)

    def add(self, block: Rows) -> IntArray:
        """Count the rows of a block; the positions of their queries, −1 for those that the qrels lack."""
        numbers = self._numbers.of(block.queries)
        known = len(self._position)
        if known < len(self._numbers.ids):
            more = self._qrels.positions(list(self._numbers.ids[known:]))
            self._position = np.concatenate([self._position, more])
        self._of_rows.extend(numbers)
        query = self._position[numbers]
        counts = np.bincount(query[query >= 0], minlength=len(self.returned))
        present = counts > 0
        self.returned[present] = np.maximum(self.returned[present], 0) + counts[present]
        return query

    def again(self, before: int, count: int) -> IntArray:
        """What `add` gave for a block."""
        query: IntArray = self._position[self._of_rows.cells[before : before + count]]
        return query

    @property
    def unknown(self) -> list[str]:
        """The queries that the qrels lack."""
        return list(self._numbers.ids.take(np.flatnonzero(self._position < 0)))


class _Found:
    """Judged rows: their queries, judgments, places in the file and scores."""

    def __init__(self, query: IntArray, judgment: IntArray, row: IntArray, score: NDArray[Any]) -> None:
        self.query, self.judgment, self.row, self.score = query, judgment, row, score

    @classmethod
    def together(cls, parts: Iterable[_Found]) -> _Found:
        columns = zip(*((part.query, part.judgment, part.row, part.score) for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def by_score(self, policy: Policy) -> _Found:
        """By query, the highest score first, in the precision in which the policy compares them."""
        score = _compared(self.score, policy)
        order = np.lexsort((-score, self.query))
        return _Found(self.query[order], self.judgment[order], self.row[order], score[order])


class _Above:
    """How many rows come before each judged row of its list."""

    def __init__(self, qrels: Qrels, hits: _Found, policy: Policy) -> None:
        self._qrels, self._hits, self._policy = qrels, hits, policy
        self._starts = np.searchsorted(hits.query, np.arange(len(qrels) + 1))
        # The last one is of the queries that the qrels lack, whose position is −1.
        self._have_hits = np.append(self._starts[:-1] < self._starts[1:], False)
        self._steps = int(np.diff(self._starts).max(initial=0)).bit_length()
        self._from = np.zeros(len(hits.query) + 1, np.int64)
        self._ties = np.zeros(len(hits.query), np.int64)

    def add(self, query: IntArray, block: Rows, before: int) -> None:
        """Add the rows of a block that follows `before` rows."""
        rows = np.flatnonzero(self._have_hits[query])
        start, end = self._starts[query[rows]], self._starts[query[rows] + 1]
        scores, hits = _compared(block.scores, self._policy)[rows], self._hits.score
        # By halves: the first judged row of the list with a smaller score. All from there on come after the row.
        low, high = start.copy(), end.copy()
        for _ in range(self._steps):
            middle = (low + high) >> 1
            not_smaller = (low < high) & (hits[np.minimum(middle, len(hits) - 1)] >= scores)
            low, high = np.where(not_smaller, middle + 1, low), np.where(not_smaller, high, middle)
        after = low < end
        self._from += np.bincount(low[after], minlength=len(self._from))
        self._add_ties(rows, scores, start, low - 1, block, before)

    def _add_ties(
        self, rows: IntArray, scores: NDArray[Any], start: IntArray, hit: IntArray, block: Rows, before: int
    ) -> None:
        while True:
            tied = (hit >= start) & (self._hits.score[hit] == scores)
            if not tied.any():
                return
            rows, scores, start, hit = (column[tied] for column in (rows, scores, start, hit))
            if self._policy.ties == "docid_descending":
                labelled = self._qrels.passages_at(self._hits.judgment[hit])
                judged = labelled.fixed_width(np.arange(len(labelled)))
                first = block.passages.fixed_width(rows) > judged
            else:
                first = before + rows < self._hits.row[hit]
            np.add.at(self._ties, hit[first], 1)
            hit = hit - 1

    def ranks(self) -> IntArray:
        """The rank of each judged row."""
        total = np.cumsum(self._from)
        start = self._starts[self._hits.query]
        earlier = total[start] - self._from[start]
        ranks: IntArray = total[:-1] - earlier + self._ties + 1
        return ranks


class _Growing:
    """Numbers that are added at the end, in a type that is as narrow as they allow."""

    def __init__(self, kind: type[np.unsignedinteger[Any]]) -> None:
        # Large, since the system gives memory only to what is written, and moves what grows beyond without a copy.
        self._cells: NDArray[Any] = np.empty(1 << 24, kind)
        self._used = 0

    def extend(self, more: NDArray[Any]) -> None:
        """Add some."""
        if len(more) and int(more.max()) > np.iinfo(self._cells.dtype).max:
            self._cells = self._cells.astype(np.uint32)
        while self._used + len(more) > len(self._cells):
            self._cells.resize(2 * len(self._cells), refcheck=False)
        self._cells[self._used : self._used + len(more)] = more
        self._used += len(more)

    @property
    def cells(self) -> NDArray[Any]:
        """All of them."""
        return self._cells[: self._used]


class _Repeats:
    """Whether a key occurs twice: the rows that share half of a key with another are looked at again."""

    def __init__(self) -> None:
        self._halves = _Growing(np.uint32)
        self._shared = np.empty(0, np.uint32)
        self._may = np.zeros(1 << 16, bool)
        self._keys: list[HashArray] = []

    def add(self, keys: HashArray) -> None:
        """The keys of some rows."""
        self._halves.extend(keys >> np.uint64(32))

    def look_again(self) -> None:
        """After all rows were added: which halves several of them have."""
        halves = self._halves.cells
        halves.sort()
        step = 1 << 20
        parts = [halves[start : start + step + 1] for start in range(0, len(halves), step)]
        shared = [part[1:][part[1:] == part[:-1]] for part in parts]
        self._shared = np.unique(np.concatenate([np.empty(0, np.uint32), *shared]))
        self._may[self._shared >> np.uint32(16)] = True
        self._halves = _Growing(np.uint32)

    def check(self, keys: HashArray) -> None:
        """The same keys again."""
        keys = keys[self._may[keys >> np.uint64(48)]]
        halves = (keys >> np.uint64(32)).astype(np.uint32)
        self._keys.append(keys[np.isin(halves, self._shared)])

    def any(self) -> bool:
        """Whether a key occurs twice."""
        keys = np.concatenate([np.empty(0, np.uint64), *self._keys])
        return len(np.unique(keys)) < len(keys)


class _Ties:
    """How many neighbours would have equal scores, where this can matter: in constant lists, and in those of grades."""

    def __init__(self, queries: int) -> None:
        self._first = np.full(queries, np.nan)
        self._grades = np.zeros((queries, 6), bool)
        self._constant = True
        self._all = 0
        self.graded = 0

    def add(self, query: IntArray, scores: NDArray[np.float64]) -> None:
        """Add rows of queries of the qrels."""
        new = np.isnan(self._first[query])
        self._first[query[new]] = scores[new]
        self._constant = self._constant and bool((self._first[query] == scores).all())
        whole = whole_grades(scores)
        self._grades[query[whole], scores[whole].astype(np.int64)] = True
        self.graded += int(whole.sum())
        self._all += len(scores)

    def neighbours(self, rows: int, lists: int) -> int:
        """Of so many rows in so many lists."""
        if self._constant:
            return rows - lists
        return rows - int(self._grades.sum()) if self.graded == self._all else 0


def _compared(scores: NDArray[np.float64], policy: Policy) -> NDArray[Any]:
    return scores.astype(np.float32) if policy.scores == "float32" else scores


def _run_of(qrels: Qrels, sampled: list[tuple[IntArray, IdColumn, NDArray[np.float64]]]) -> Run:
    query = np.concatenate([part[0] for part in sampled])
    positions, codes = np.unique(query, return_inverse=True)
    names = [qrels.queries[position] for position in positions.tolist()]
    passages = IdColumn.concatenate([part[1] for part in sampled])
    return Run.of_rows(names, codes, passages, np.concatenate([part[2] for part in sampled]), NO_REMARKS)
