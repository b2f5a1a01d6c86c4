"""Run: for each query a list of passages, best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.judged.policy import TIES, Policy
from rag_selectivity.judged.rows import Pairs
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


@dataclass(eq=False, repr=False)
class Run(Pairs):
    """Ranked passage ids for each query, with scores if they are known.

    >>> run = Run.of({"q1": ["d3", "d1"], "q2": ["d7"]})
    >>> run["q1"], len(run)
    (['d3', 'd1'], 2)

    Attributes
    ----------
    queries : tuple of str
    query : int64[rows]
        The position of each row's query in `queries`; the rows of a list stand together, in the order given.
    passages : list of str
        In a part of a large file or frame, a Series of Polars, so that few of them become objects of Python.
    scores : float64[rows] or None
        None: the order given is the ranking.
    tokens : float64[rows] or None
        Lengths of the passages, if the run was given with them.
    remarks : {code: count}
        What was noticed when it was read; `rag_selectivity.evaluation.doubts` has the words.
    form : IdForm
        The form that the ids were brought into.
    """

    queries: tuple[str, ...]
    query: IntArray
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
        """From the columns of a run, as `rag_selectivity.tables` reads them, whose rows are in any order."""
        run, order = cls.scattered(columns)
        return run if order is None else run.take(order)

    @classmethod
    def scattered(cls, columns: Columns) -> tuple[Run, IntArray | None]:
        """The rows of a run as they stand, and the order in which they are one; None where they stand in it.

        Without scores, the negatives of ranks are scores.
        """
        codes, scores, ranks = columns.query, columns.score, columns.rank
        remarks, order = Counter[str](), None
        if scores is not None and ranks is not None:
            rising = (ranks[1:] > ranks[:-1]) & (scores[1:] > scores[:-1])
            falling = (ranks[1:] < ranks[:-1]) & (scores[1:] < scores[:-1])
            # How many neighbouring rows of a query have the better, smaller rank and the worse score.
            remarks["rank_against_score"] = int(((codes[1:] == codes[:-1]) & (rising | falling)).sum())
        elif ranks is not None:
            order, scores = np.lexsort((ranks, codes)), -ranks
        if order is None and (codes[1:] < codes[:-1]).any():
            # NumPy sorts 16-bit numbers stably by radix sort, which is faster.
            order = np.argsort(codes.astype(np.uint16) if len(columns.queries) < 1 << 16 else codes, kind="stable")
        return cls(columns.queries, codes, columns.passage, scores, columns.tokens, +remarks), order

    @classmethod
    def fused(cls, runs: Iterable[Any], k: int = 60, *, policy: Policy = Policy()) -> Run:
        """One run from several by reciprocal rank fusion: the score of a passage is Σ 1/(k + rank) over the runs.

        Each run is ordered first as the policy says (by score, ties by descending passage id). A run that does not list
        a passage adds nothing to it; of a passage that a list holds twice, the first rank counts; a query has the lists
        of the runs that have it. Sums are exact and rounded once, so that equal sums are equal scores whatever they are
        made of, and equal scores are ordered by descending passage id, as trec_eval orders them. Lengths of passages
        (tokens) are not kept.

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
        is_one = isinstance(runs, (Run, Mapping, str)) or is_frame(runs)
        held = [] if is_one else [cls.of(run) for run in iterated(runs, "Run.fused takes a list of runs")]
        if not held:
            raise InputError("Run.fused takes a list of runs, as in Run.fused([one, other])")
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
            raise InputError(f"Run.fused: k must be a whole number ≥ 0, got {k!r}")
        sums: dict[str, dict[str, int]] = {}
        for run in held:
            if again := [query for query, count in Counter(run.queries).items() if count > 1]:
                raise InputError(f"Run.fused: query {again[0]!r} has two lists in a run: put their rows into one")
            terms = [_UNIT // (int(k) + rank) for rank in range(1, int(run.lengths.max(initial=0)) + 1)]
            for query, passages in run.ordered(policy).lists():
                of_query = sums.setdefault(query, {})
                # Read from the end, so that the first rank of a repeated passage is the one that stays.
                first = dict(zip(reversed(passages), reversed(terms[: len(passages)]), strict=True))
                for passage, term in first.items():
                    of_query[passage] = of_query.get(passage, 0) + term
        lists: dict[str, dict[str, float]] = {}
        for query, of_query in sums.items():
            scores = {passage: total / _UNIT for passage, total in sorted(of_query.items(), reverse=True)}
            lists[query] = dict(sorted(scores.items(), key=lambda each: each[1], reverse=True))
        return replace(cls.of(lists), remarks=sum((run.remarks for run in held), Counter[str]()), form=held[0].form)

    def top(self, depth: int, policy: Policy = Policy()) -> Run:
        """The first ranks of every list, in rank order."""
        ordered = self.ordered(policy)
        return ordered.take(ranges(ordered.offsets[:-1], np.minimum(ordered.lengths, depth)))

    def in_form(self, form: IdForm) -> Run:
        """The same run with all ids in a form; two queries may get the same id, which `join` refuses.

        >>> Run.of({"Q1": ["D1", "D2"]}).in_form(IdForm.of("casefold")).to_dict()
        {'q1': ['d1', 'd2']}
        """
        if not form.changes_ids or form == self.form:
            return self
        return replace(self, queries=tuple(map(form, self.queries)), passages=[*map(form, self.passages)], form=form)

    # -- reading it ------------------------------------------------------------------------------

    def __getitem__(self, query: str) -> list[str]:
        return self.passages[self.rows(self.place[query])]

    def to_dict(self) -> dict[str, list[str]]:
        """As {query: [passage, …]}, in the order given."""
        return dict(self.lists())

    def lists(self, depth: int | None = None) -> Iterator[tuple[str, list[str]]]:
        """(query, passages in the order given) of each list, down to a depth."""
        for query, (start, stop) in zip(self.queries, pairwise(self.offsets.tolist()), strict=True):
            yield query, self.passages[start : stop if depth is None else min(stop, start + depth)]

    def ordered(self, policy: Policy) -> Run:
        """The lists in rank order: by score and the policy for ties, or in the order given.

        What the policy leaves out is not there: a query's own passage, and copies. But all unjudged passages are.
        """
        kept = self.without_self() if policy.exclude_self else self
        order = kept.order(policy)
        kept = kept if order is None else kept.take(order)
        copies = kept.copies(np.arange(len(kept)))[0] if policy.duplicates == "drop" else np.zeros(0, np.int64)
        return kept.take(np.delete(np.arange(len(kept.query)), copies)) if len(copies) else kept

    @property
    def of_one_score(self) -> int:
        """How many lists of several passages begin and end with the same score."""
        first, last = self.offsets[:-1][self.lengths > 1], self.offsets[1:][self.lengths > 1] - 1
        return 0 if self.scores is None else int((self.scores[first] == self.scores[last]).sum())

    def order(self, policy: Policy, needed: IntArray | None = None) -> IntArray | None:
        """The rows in rank order; None where they stand in it.

        `needed` are rows whose ranks are asked for: rows with equal scores are put in order only where one is needed.
        """
        if self.scores is None or policy.order == "rank":
            return None
        with np.errstate(over="ignore"):  # a score beyond float32 is infinite to trec_eval too
            scores = self.scores.astype(policy.scores, copy=False)
        within = self.query[1:] == self.query[:-1]
        order: IntArray | None = None
        rising = within & (scores[1:] > scores[:-1])
        if rising.any():
            order = np.arange(len(scores))
            kind: Any = "stable" if policy.ties == "as_given" else None
            for i in np.flatnonzero(np.bincount(self.query[1:][rising])).tolist():
                rows = self.rows(i)
                order[rows] = rows.start + np.argsort(-scores[rows], kind=kind)
            scores = scores[order]
        tied = within & (scores[1:] == scores[:-1])
        if policy.ties == "as_given" or not tied.any():
            return order
        return self._tied_in_order(order, tied, policy.ties, needed)

    def _tied_in_order(
        self, order: IntArray | None, tied: NDArray[np.bool_], rule: str, needed: IntArray | None
    ) -> IntArray | None:
        """The order with rows of equal scores in the order of a rule; `tied` says so of each row and the next."""
        starts = np.flatnonzero(tied & ~np.append(False, tied[:-1]))
        ends = np.flatnonzero(tied & ~np.append(tied[1:], False)) + 2
        if needed is not None:
            places = np.sort(needed) if order is None else np.flatnonzero(np.isin(order, needed))
            wanted = np.searchsorted(places, ends) > np.searchsorted(places, starts)
            starts, ends = starts[wanted], ends[wanted]
        key: Callable[[int], Any] = self.passages.__getitem__
        if rule != "docid_descending":
            key = lambda row: TIES[rule](self.queries[self.query[row]], self.passages[row])  # noqa: E731
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            group = list(range(start, end)) if order is None else sorted(order[start:end].tolist())
            settled = sorted(group, key=key, reverse=rule == "docid_descending")
            if order is not None or settled != group:
                order = np.arange(len(self.query)) if order is None else order
                order[start:end] = settled
        return order
