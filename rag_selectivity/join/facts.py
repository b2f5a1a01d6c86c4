"""Checks of a join that need all queries, from facts that can be collected in parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest

from rag_selectivity.errors import InputError, examples

_EXAMPLES = 3


def first_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """The first few of distinct ids in alphabetical order, the same for any partition of the ids."""
    return tuple(nsmallest(_EXAMPLES, ids))


@dataclass(frozen=True, slots=True)
class JoinFacts:
    """Counts, ranges and examples of a join. Parts are combined with `+`, in any order.

    Attributes
    ----------
    queries, listed : int
        Queries of the qrels, and how many of these the run has.
    unknown : int
        Queries of the run that the qrels lack.
    retrieved, hits : int
        Passages in the lists of the queries that both have, and how many of these are judged.
    query_ids, missing_ids, unknown_ids : tuple of str
        Examples of the queries of the qrels, of those that the run lacks, and of those that the qrels lack.
    judged_passages : (query, passages) or None
        Examples of judged passages.
    overlong : (query, passages, N) or None
        A query whose list is longer than its corpus.
    grades : (lowest, highest) or None
        The range of all judgments; None without judgments.
    missing_is_error : bool
        Whether the policy is `missing_query="error"`.
    counted : (passages, N) or None
        The passages of all documents in `passages_of`, and the N that all queries share.
    beyond_count : (query, document, slots, passages) or None
        A document that has more slots in a list than it has passages.
    uncounted : (query, document) or None
        A document in a list that `passages_of` lacks, if N is the sum of its passages.
    """

    queries: int = 0
    listed: int = 0
    unknown: int = 0
    retrieved: int = 0
    hits: int = 0
    query_ids: tuple[str, ...] = ()
    missing_ids: tuple[str, ...] = ()
    unknown_ids: tuple[str, ...] = ()
    judged_passages: tuple[str, tuple[str, ...]] | None = None
    overlong: tuple[str, int, int] | None = None
    grades: tuple[int, int] | None = None
    missing_is_error: bool = False
    counted: tuple[int, int] | None = None
    beyond_count: tuple[str, str, int, int] | None = None
    uncounted: tuple[str, str] | None = None

    def __add__(self, other: JoinFacts) -> JoinFacts:
        return JoinFacts(
            queries=self.queries + other.queries,
            listed=self.listed + other.listed,
            unknown=self.unknown + other.unknown,
            retrieved=self.retrieved + other.retrieved,
            hits=self.hits + other.hits,
            query_ids=first_ids(self.query_ids + other.query_ids),
            missing_ids=first_ids(self.missing_ids + other.missing_ids),
            unknown_ids=first_ids(self.unknown_ids + other.unknown_ids),
            judged_passages=min(filter(None, (self.judged_passages, other.judged_passages)), default=None),
            overlong=min(filter(None, (self.overlong, other.overlong)), default=None),
            grades=joint_range(self.grades, other.grades),
            missing_is_error=self.missing_is_error or other.missing_is_error,
            counted=self.counted or other.counted,
            beyond_count=min(filter(None, (self.beyond_count, other.beyond_count)), default=None),
            uncounted=min(filter(None, (self.uncounted, other.uncounted)), default=None),
        )

    def check(self, name: str) -> None:
        """Refuse a run that has no query of the qrels, or that lacks some if the policy forbids this."""
        if not self.queries and not self.unknown:
            return
        if not self.queries:
            raise InputError(f"there are no judgments, and {name} has {examples(self.unknown_ids)}: check the qrels")
        if not self.listed:
            raise InputError(
                f"no query id of {name} is in the qrels: {name} has {examples(self.unknown_ids) or 'no queries'}, "
                f"the qrels have {examples(self.query_ids)}; are both about the same queries, with the same ids?"
            )
        missing = self.queries - self.listed
        if missing and self.missing_is_error:
            raise InputError(
                f"{name} lacks {missing} of the {self.queries} queries in the qrels ({examples(self.missing_ids)}), "
                f'and the policy is missing_query="error"'
            )

    def warnings(self, name: str, scale: str) -> list[str]:
        """Warnings about input that is possible but probably not meant."""
        doubts = []
        if self.listed < 0.1 * min(self.queries, self.listed + self.unknown):
            doubts.append(
                f"only {self.listed} query ids are both in {name} and in the qrels: {name} also has "
                f"{examples(self.unknown_ids)}, and the qrels also have {examples(self.missing_ids)}; are both about "
                f"the same queries, with the same ids?"
            )
        if self.retrieved and not self.hits and self.judged_passages is not None:
            doubts.append(
                f"no passage that {name} retrieved is judged for its query; the qrels name passages such as "
                f"{examples(self.judged_passages[1])}: do the run's passage ids come from the same corpus?"
            )
        if self.overlong is not None:
            query, passages, size = self.overlong
            doubts.append(
                f"{name}: query {query!r} has {passages} passages, more than its corpus (N = {size}); is N right?"
            )
        return [*doubts, *self._doubts_of_counts(name), *doubts_of_scale(scale, self.grades)]

    def _doubts_of_counts(self, name: str) -> list[str]:
        """Warnings that `passages_of` may be of another index."""
        doubts = []
        if self.beyond_count is not None:
            query, document, slots, passages = self.beyond_count
            doubts.append(
                f"{name}: query {query!r} lists document {document!r} {slots} times, but passages_of has {passages} "
                f"passages of it: does passages_of count the passages of this index?"
            )
        if self.uncounted is not None:
            query, document = self.uncounted
            doubts.append(
                f"{name}: query {query!r} lists document {document!r}, which passages_of lacks, so that N, the sum of "
                f"its passages, is too small: give the passages of all documents in the index, or corpus_size"
            )
        return doubts

    def notes(self, name: str) -> list[str]:
        """Notes that are no reason to doubt the input."""
        notes = [f"{name} retrieved nothing: its lists are empty"] if self.listed and not self.retrieved else []
        if self.counted is not None:
            passages, size = self.counted
            notes.append(
                f"N = {size:,} is the number of passages of all documents in passages_of"
                if size == passages
                else f"{size - passages:,} of the N = {size:,} passages are of documents that passages_of lacks"
            )
        return notes


def joint_range(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    """The smallest range that contains both."""
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def doubts_of_scale(scale: str, grades: tuple[int, int] | None) -> list[str]:
    """Warnings that the scale may be wrong, given the lowest and the highest grade."""
    if scale == "trec" and grades in ((1, 5), (2, 5)):
        return [
            "the grades go up to 5 and none is 0, as on the utility scale, but on the trec scale all of them "
            "are relevant: did you mean scale='utility' (--scale utility)?"
        ]
    return []
