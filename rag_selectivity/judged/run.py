"""Run: for each query a list of passages, best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from operator import ne
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.judged.policy import TIES, Policy
from rag_selectivity.tables.cells import iterated
from rag_selectivity.tables.columns import Columns, read
from rag_selectivity.tables.exact import is_frame
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.ids import IntArray, ranges

#: Terms are whole numbers of this unit: their sums are exact but for far less than a float tells apart.
_UNIT = 1 << 160


class ScatteredQueries(Exception):
    """A streamed file repeats a query after other queries; `again()` starts over with the rows grouped by query."""

    def __init__(self, again: Callable[[], Iterator[Run]]) -> None:
        super().__init__("the lines of a query are not consecutive")
        self.again = again


def _against(codes: NDArray[np.integer[Any]], ranks: NDArray[np.float64], scores: NDArray[np.float64]) -> int:
    """How many neighbouring rows of a query have the better rank and the worse score.

    A better passage has a smaller rank and a larger score.
    """
    rising = (ranks[1:] > ranks[:-1]) & (scores[1:] > scores[:-1])
    falling = (ranks[1:] < ranks[:-1]) & (scores[1:] < scores[:-1])
    return int(((codes[1:] == codes[:-1]) & (rising | falling)).sum())


def grouped(codes: NDArray[np.integer[Any]]) -> IntArray:
    """The rows in the order of their codes; rows with equal codes stay as they are."""
    # NumPy sorts 16-bit numbers stably by radix sort, which is faster.
    return np.argsort(codes.astype(np.uint16) if codes.max(initial=0) < 1 << 16 else codes, kind="stable")


def texts_at(texts: Any, rows: IntArray) -> Any:
    """Some of the texts, which are a list, or a Series of Polars as in a part of a large file."""
    return list(map(texts.__getitem__, rows.tolist())) if isinstance(texts, list) else texts.gather(rows)


def inverse(order: IntArray) -> IntArray:
    """The place of each row in an order."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


@dataclass(eq=False, repr=False)
class Run:
    """Ranked passage ids for each query, with scores if they are known.

    >>> run = Run.of({"q1": ["d3", "d1"], "q2": ["d7"]})
    >>> run["q1"], len(run)
    (['d3', 'd1'], 2)

    Attributes
    ----------
    queries : tuple of str
    offsets : int64[queries + 1]
        The list of query i is rows `offsets[i]:offsets[i + 1]`, in the order given.
    passages : list of str
        In a part of a large file or frame, a Series of Polars, so that few of them become objects of Python.
    scores : float64[rows] or None
        None: the order given is the ranking.
    tokens : float64[rows] or None
        Lengths of the passages, if the run was given with them.
    remarks : {code: count}
        What was noticed when it was read; `rag_selectivity.evaluation.doubts` has the words of the codes.
    form : IdForm
        The form that the ids were brought into.
    """

    queries: tuple[str, ...]
    offsets: IntArray
    passages: list[str]
    scores: NDArray[np.float64] | None = None
    tokens: NDArray[np.float64] | None = None
    remarks: Counter[str] = field(default_factory=Counter)
    form: IdForm = AS_THEY_ARE

    # -- making one ------------------------------------------------------------------------------

    @classmethod
    def of(cls, source: Any, policy: Policy | None = None) -> Run:
        """From a Run, a dict, rows, a frame (of pandas, polars or Arrow) or a path, as `read_run` reads it.

        A dict is {query: [passage, …]} (best first), {query: {passage: score}}, or {query: [(passage, score), …]}.

        Raises
        ------
        InputError
            For anything else, and for what is wrong in it.
        """
        long_tags = policy is not None and policy.long_tags
        return source if isinstance(source, cls) else cls.from_columns(read(source, "run", long_tags=long_tags))

    @classmethod
    def from_columns(cls, columns: Columns) -> Run:
        """From the columns of a run, as `rag_selectivity.tables` reads them, whose rows are in any order.

        Without scores, ranks order the lists. Of a file, the negatives of its ranks are scores.
        """
        codes, passages = columns.query, columns.passage
        scores, ranks, tokens = columns.score, columns.rank, columns.tokens
        order: IntArray | None = None
        counted = Counter[str]()
        if scores is not None and ranks is not None:
            counted["rank_against_score"] = _against(codes, ranks, scores)
        if scores is None and ranks is not None:
            order, scores = np.lexsort((ranks, codes)), -ranks if columns.lines is not None else None
        elif (codes[1:] < codes[:-1]).any():
            order = grouped(codes)
        if order is not None:
            scores, tokens = (None if column is None else column[order] for column in (scores, tokens))
            passages = texts_at(passages, order)
        offsets = np.append(0, np.cumsum(np.bincount(codes, minlength=len(columns.queries))))
        return cls(columns.queries, offsets, passages, scores, tokens, +counted)

    @classmethod
    def fused(cls, runs: Iterable[Any], k: int = 60, *, policy: Policy = Policy()) -> Run:
        """One run from several by reciprocal rank fusion: the score of a passage is Σ 1/(k + rank) over the runs.

        Each run is ordered first as the policy says (by score, ties by descending passage id). A run that does not list
        a passage adds nothing to it; of a passage that a list holds twice, the first rank counts; a query has the lists
        of the runs that have it. Sums are exact and rounded once, and equal scores are ordered by descending passage
        id, as trec_eval orders them. Lengths of passages (tokens) are not kept.

        Parameters
        ----------
        runs : sequence of Run, dicts or frames
        k : int
            How slowly the weight falls with the rank; 60 in the paper.
        policy : Policy
            How each run is ordered.

        Raises
        ------
        InputError
            If there are no runs, a run has two lists for a query, or k is not a whole number ≥ 0.

        References
        ----------
        Cormack, Clarke and Büttcher 2009, Reciprocal Rank Fusion outperforms Condorcet and Individual Rank Learning
        Methods.

        Examples
        --------
        >>> fused = Run.fused([Run.of({"q": ["a", "b"]}), Run.of({"q": ["b", "c"]})])
        >>> fused["q"], round(float(fused.scores[0]), 4)
        (['b', 'a', 'c'], 0.0325)
        """
        if isinstance(runs, (Run, Mapping, str)) or is_frame(runs):
            raise InputError("Run.fused takes a list of runs, as in Run.fused([one, other])")
        held = [cls.of(run) for run in iterated(runs, "Run.fused takes a list of runs")]
        if not held:
            raise InputError("Run.fused takes a list of runs, and got an empty one")
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
            raise InputError(f"Run.fused: k must be a whole number ≥ 0, got {k!r}")
        for each in held:
            twice = [query for query, count in Counter(each.queries).items() if count > 1]
            if twice:
                raise InputError(f"Run.fused: query {twice[0]!r} has two lists in a run: put their rows into one")
        lists = _fused([dict(run.ordered(policy).lists()) for run in held], int(k))
        scores = np.fromiter(chain.from_iterable(fused.values() for fused in lists.values()), np.float64)
        offsets = np.append(0, np.cumsum([len(fused) for fused in lists.values()], dtype=np.int64))
        remarks = sum((run.remarks for run in held), Counter[str]())
        passages = list(chain.from_iterable(lists.values()))
        return cls(tuple(lists), offsets, passages, scores, remarks=remarks, form=held[0].form)

    def without_self(self) -> Run:
        """The same lists without the passages that have the id of their query.

        >>> Run.of({"d1": ["d1", "d2"], "d2": ["d3"]}).without_self().to_dict()
        {'d1': ['d2'], 'd2': ['d3']}
        """
        own = map(self.queries.__getitem__, self.row_queries().tolist())
        kept = np.fromiter(map(ne, own, self.passages), bool, len(self.passages))
        if kept.all():
            return self
        return self._with_rows(self.queries, np.append(0, np.cumsum(kept))[self.offsets], np.flatnonzero(kept))

    def without_scores(self) -> Run:
        """The same lists, whose order is that of their rows."""
        return replace(self, scores=None)

    def top(self, depth: int, policy: Policy = Policy()) -> Run:
        """The first ranks of every list, in rank order."""
        ordered = self.ordered(policy)
        if not (self.lengths > depth).any():
            return ordered
        return ordered.of_lists(np.arange(len(self)), depth)

    def in_form(self, form: IdForm) -> Run:
        """The same run with all ids in a form; two queries may get the same id, which `join` refuses.

        >>> Run.of({"Q1": ["D1", "D2"]}).in_form(IdForm.of("casefold")).to_dict()
        {'q1': ['d1', 'd2']}
        """
        if not form.changes_ids or form == self.form:
            return self
        return replace(self, queries=tuple(map(form, self.queries)), passages=[*map(form, self.passages)], form=form)

    # -- reading it ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __getitem__(self, query: str) -> list[str]:
        try:
            i = self.queries.index(query)
        except ValueError:
            raise KeyError(query) from None
        return self.passages[int(self.offsets[i]) : int(self.offsets[i + 1])]

    def to_dict(self) -> dict[str, list[str]]:
        """As {query: [passage, …]}, in the order given."""
        return dict(self.lists())

    def lists(self, depth: int | None = None) -> Iterator[tuple[str, list[str]]]:
        """(query, passages in the order given) of each list, down to a depth."""
        for query, (start, stop) in zip(self.queries, pairwise(self.offsets.tolist()), strict=True):
            yield query, self.passages[start : stop if depth is None else min(stop, start + depth)]

    @property
    def lengths(self) -> IntArray:
        """Length of each query's list: int64[queries]."""
        return np.diff(self.offsets)

    def places(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """The list of each of some rows, by its position, and the row's rank there."""
        lists = np.searchsorted(self.offsets, rows, "right") - 1
        return lists, rows - self.offsets[lists] + 1

    def row_queries(self) -> IntArray:
        """The position of each row's query: int64[rows]."""
        return np.repeat(np.arange(len(self.queries)), self.lengths)

    def compared_scores(self, policy: Policy) -> NDArray[np.floating[Any]] | None:
        """The scores as the policy compares them; None where the order given is the ranking."""
        if self.scores is None or policy.order == "rank":
            return None
        if policy.scores != "float32":
            return self.scores
        with np.errstate(over="ignore"):  # a score beyond float32 is infinite to trec_eval too
            return self.scores.astype(np.float32)

    def neighbours(self, scores: NDArray[np.floating[Any]]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether each row but the last has a smaller score than the next one of its list, and whether an equal one."""
        last_rows = self.offsets[1:-1] - 1
        last_rows = last_rows[(last_rows >= 0) & (last_rows < len(scores) - 1)]
        rising, tied = scores[1:] > scores[:-1], scores[1:] == scores[:-1]
        # The order of a list's last row and the next list's first row does not matter.
        rising[last_rows] = tied[last_rows] = False
        return rising, tied

    def ordered(self, policy: Policy) -> Run:
        """The same lists in rank order: by score and the policy for ties, or in the order given."""
        order = self.order(policy)
        return self if order is None else self.rows(order)

    def order(self, policy: Policy, needed: IntArray | None = None) -> IntArray | None:
        """The rows in rank order; None where they stand in it.

        `needed` are rows whose ranks are asked for: rows with equal scores are put in order only where one is needed.
        """
        scores = self.compared_scores(policy)
        if scores is None:
            return None
        order: IntArray | None = None
        rising, tied = self.neighbours(scores)
        if rising.any():
            order = self.by_score(scores)
            tied = self.neighbours(scores[order])[1]
        if policy.ties == "as_given" or not tied.any():
            return order
        return self._settled(order, tied, policy.ties, needed)

    def by_score(self, scores: NDArray[np.floating[Any]]) -> IntArray:
        """The rows of each list by falling score; equal scores stay as they are."""
        order: IntArray = np.argsort(-scores, kind="stable")
        return order[grouped(self.row_queries()[order])]

    def _settled(
        self, order: IntArray | None, tied: NDArray[np.bool_], rule: str, needed: IntArray | None
    ) -> IntArray | None:
        """The order with rows of equal scores in the order of a rule; `tied` says so of each row and the next."""
        starts = np.flatnonzero(tied & ~np.append(False, tied[:-1]))
        ends = np.flatnonzero(tied & ~np.append(tied[1:], False)) + 2
        if needed is not None:
            place = needed if order is None else inverse(order)[needed]
            asked = np.zeros(len(self.passages) + 1, np.int64)
            asked[place + 1] = 1
            asked = np.cumsum(asked)
            wanted = asked[ends] > asked[starts]
            starts, ends = starts[wanted], ends[wanted]
        passages = self.passages
        if rule == "docid_descending":
            key: Callable[[int], Any] = passages.__getitem__
        else:
            query = self.row_queries()
            of_pair = TIES[rule]
            key = lambda row: of_pair(self.queries[query[row]], passages[row])  # noqa: E731
        rows = np.arange(len(passages)) if order is None else order
        changed = order is not None
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            group = rows[start:end].tolist()
            settled = sorted(group, key=key, reverse=rule == "docid_descending")
            if settled != group:
                rows[start:end], changed = settled, True
        return rows if changed else None

    def rows(self, order: IntArray) -> Run:
        """The same lists with their rows in another order."""
        return self._with_rows(self.queries, self.offsets, order)

    def of_lists(self, chosen: NDArray[np.integer[Any]], depth: int | None = None) -> Run:
        """The lists at some positions, down to a depth."""
        lengths = np.minimum(self.lengths[chosen], np.iinfo(np.int64).max if depth is None else depth)
        queries, offsets = tuple(self.queries[i] for i in chosen.tolist()), np.append(0, np.cumsum(lengths))
        return self._with_rows(queries, offsets, ranges(self.offsets[chosen], lengths))

    def _with_rows(self, queries: tuple[str, ...], offsets: IntArray, rows: IntArray) -> Run:
        scores, tokens = (None if column is None else column[rows] for column in (self.scores, self.tokens))
        passages = texts_at(self.passages, rows)
        return replace(self, queries=queries, offsets=offsets, passages=passages, scores=scores, tokens=tokens)

    def __repr__(self) -> str:
        return f"<Run: {len(self.queries)} queries, {len(self.passages)} passages>"


def _fused(runs: Sequence[Mapping[str, Sequence[str]]], k: int) -> dict[str, dict[str, float]]:
    """{query: {passage: score}}, best first: the score of a passage is Σ 1/(k + rank) over the runs that list it.

    The sums are rounded to a float once, so that equal sums are equal scores whatever they are made of. Equal scores
    are ordered by descending passage id. Of a passage that a list holds twice, the first rank counts. Queries come in
    the order in which the runs name them.

    >>> _fused([{"q": ["a", "b"]}, {"q": ["b", "c"]}], 0)
    {'q': {'b': 1.5, 'a': 1.0, 'c': 0.5}}
    """
    longest = max((len(passages) for run in runs for passages in run.values()), default=0)
    terms = [_UNIT // (k + rank) for rank in range(1, longest + 1)]
    fused: dict[str, dict[str, float]] = {}
    for query in dict.fromkeys(query for run in runs for query in run):
        sums: dict[str, int] = {}
        for run in runs:
            passages = run.get(query, ())
            # Read from the end, so that the first rank of a repeated passage is the one that stays.
            for passage, term in dict(zip(reversed(passages), reversed(terms[: len(passages)]), strict=True)).items():
                sums[passage] = sums.get(passage, 0) + term
        scores = {passage: total / _UNIT for passage, total in sums.items()}
        best = sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)
        fused[query] = {passage: scores[passage] for passage in best}
    return fused
