"""Ids of some queries, by which a join is checked; the same queries for any partition of them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from itertools import pairwise
from operator import itemgetter

import numpy as np

from rag_selectivity.data.forms import FORMS, IdForm
from rag_selectivity.data.ids import HashArray, IdColumn, IntArray
from rag_selectivity.data.policy import Policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.join.better_form import BetterForm, better_form

_QUERIES, _RETRIEVED, _LABELLED = 100, 50, 100
_UNSHARED = 200
_EVERY_FORM = IdForm.of(list(FORMS))
_NUMBERS = re.compile("[0-9]+")

#: A hash of a query id, and the first retrieved and some labelled passages of the query.
Sampled = tuple[int, tuple[str, ...], tuple[str, ...]]
#: A hash of what is alike in ids that meet in some form, and the query id.
Unshared = tuple[int, str]


@dataclass(frozen=True)
class SampledIds:
    """Ids of a join. Parts over different queries are combined with `+`, in any order.

    Attributes
    ----------
    lists : tuple of (hash, retrieved passages, labelled passages)
        Of the queries with the smallest hashes, among those that have both. The labelled passages are in any order.
    only_in_qrels, only_in_run : tuple of (hash, query)
        Of the queries that the other side lacks. The hash is that of what is alike in ids that meet in some form, so
        that both sides keep such queries.
    met : int or None
        How many of the labelled passages are among the retrieved ones of their query, if it was counted before.
    """

    lists: tuple[Sampled, ...] = ()
    only_in_qrels: tuple[Unshared, ...] = ()
    only_in_run: tuple[Unshared, ...] = ()
    met: int | None = field(default=None, repr=False, compare=False)

    def __add__(self, other: SampledIds) -> SampledIds:
        for one, alone in ((other, self), (self, other)):
            if not (one.lists or one.only_in_qrels or one.only_in_run):
                return alone
        return SampledIds(
            tuple(nsmallest(_QUERIES, self.lists + other.lists)),
            tuple(nsmallest(_UNSHARED, self.only_in_qrels + other.only_in_qrels)),
            tuple(nsmallest(_UNSHARED, self.only_in_run + other.only_in_run)),
        )

    @cached_property
    def matching(self) -> int:
        """How many of the labelled passages are among the retrieved ones of their query."""
        if self.met is not None:
            return self.met
        return sum(len({*labelled}.intersection(retrieved)) for _, retrieved, labelled in self.lists)

    @cached_property
    def better_for_passages(self) -> BetterForm | None:
        """The form in which more retrieved passages have a label."""
        return better_form((retrieved, labelled) for _, retrieved, labelled in self.lists)

    @cached_property
    def better_for_queries(self) -> BetterForm | None:
        """The form in which more queries are in both."""
        sides = [[query for _, query in side] for side in (self.only_in_run, self.only_in_qrels)]
        return better_form([(sides[0], sides[1])]) if all(sides) else None

    @cached_property
    def labelled_for_any(self) -> float:
        """The share of the retrieved passages that have a label for any of these queries."""
        retrieved: set[str] = set().union(*(of_query for _, of_query, _ in self.lists))
        labelled: set[str] = set().union(*(of_query for _, _, of_query in self.lists))
        return len(retrieved & labelled) / max(1, len(retrieved))

    @property
    def retrieved(self) -> list[str]:
        """The retrieved passages, those of the first query first."""
        return list(dict.fromkeys(passage for _, of_query, _ in self.lists for passage in of_query))

    @property
    def labelled(self) -> list[str]:
        """The labelled passages, those of the first query first."""
        return list(dict.fromkeys(passage for _, _, of_query in self.lists for passage in sorted(of_query)))


class IdSampler:
    """Collects the sampled lists of a run that comes in parts."""

    def __init__(self, qrels: Qrels) -> None:
        self._qrels = qrels
        self._starts = np.append(0, np.cumsum(qrels.counts()))
        self._hashes = _hashes(qrels.queries)
        self._lists: list[tuple[int, int, Iterable[str]]] = []
        self._largest = np.uint64(np.iinfo(np.uint64).max)

    def best_of(self, position: IntArray) -> IntArray:
        """Of some queries of the qrels, those whose lists would be collected."""
        labelled = position[np.diff(self._starts)[position] > 0]
        return labelled[np.argsort(self._hashes[labelled], kind="stable")[:_QUERIES]]

    def add(self, part: Run, position: IntArray, policy: Policy) -> None:
        """Add a part; `position` is that of its queries in the qrels, −1 for those that are not there."""
        chosen = self._chosen(position, part.lengths)
        if not len(chosen):
            return
        lists = part.of_lists(chosen).ordered(policy)
        for i, (start, end) in zip(chosen.tolist(), pairwise(lists.offsets.tolist()), strict=True):
            retrieved = lists.passages[start : min(start + _RETRIEVED, end)].compact()
            self._lists.append((int(self._hashes[position[i]]), int(position[i]), retrieved))
        self._keep_best()

    def add_lists(self, position: IntArray, lengths: IntArray, first_of: Callable[[int, int], tuple[str, ...]]) -> None:
        """As `add`; `first_of(i, most)` gives the first passages of list i, and at most so many."""
        chosen = self._chosen(position, lengths)
        of = position[chosen]
        for i, query, hash in zip(chosen.tolist(), of.tolist(), self._hashes[of].tolist(), strict=True):
            self._lists.append((hash, query, first_of(i, _RETRIEVED)))
        self._keep_best()

    def _chosen(self, position: IntArray, lengths: IntArray) -> IntArray:
        labels = np.diff(self._starts)
        usable = np.flatnonzero((position >= 0) & (lengths > 0))
        usable = usable[labels[position[usable]] > 0]
        hashes = self._hashes[position[usable]]
        usable = usable[hashes <= self._largest]
        return usable[np.argsort(self._hashes[position[usable]], kind="stable")[:_QUERIES]]

    def _keep_best(self) -> None:
        if len(self._lists) > _QUERIES:
            self._lists = sorted(self._lists, key=itemgetter(0))[:_QUERIES]
            self._largest = np.uint64(self._lists[-1][0])

    def _labelled(self, position: int) -> tuple[str, ...]:
        start, stop = int(self._starts[position]), int(self._starts[position + 1])
        if self._qrels.texts is not None and stop - start <= _LABELLED:
            return tuple(self._qrels.texts[start:stop])
        passages = self._qrels.passages_at(np.arange(start, stop))
        if len(passages) > _LABELLED:
            passages = passages.take(np.argsort(passages.hashes(), kind="stable")[:_LABELLED])
        return tuple(passages)

    def sampled(self, hits: tuple[IntArray, IntArray] | None = None) -> SampledIds:
        """The lists that were collected; `hits` are the queries and the ranks of all judged passages, each once."""
        lists = [(hash, tuple(retrieved), self._labelled(position)) for hash, position, retrieved in self._lists]
        return SampledIds(tuple(nsmallest(_QUERIES, lists)), met=None if hits is None else self._met(*hits))

    def _met(self, query: IntArray, rank: IntArray) -> int | None:
        """How many of the hits are in the lists that were collected; None where these lack some of the labels."""
        collected = np.zeros(len(self._qrels), bool)
        collected[[position for _, position, _ in self._lists]] = True
        if np.diff(self._starts)[collected].max(initial=0) > _LABELLED:
            return None
        return int(np.count_nonzero(collected[query] & (rank <= _RETRIEVED)))


def unshared(queries: Iterable[str]) -> tuple[Unshared, ...]:
    """Those of the queries that represent them in `SampledIds`."""
    return tuple(nsmallest(_UNSHARED, ((zlib.crc32(_without_form(query).encode()), query) for query in queries)))


def _without_form(query: str) -> str:
    """What is alike in ids that meet in some form: the longest number, or the id in every form if it has none."""
    plain = _EVERY_FORM(query)
    numbers = _NUMBERS.findall(plain)
    return max(numbers, key=len).lstrip("0") if numbers else plain


def _hashes(queries: Iterable[str]) -> HashArray:
    return IdColumn.from_strings(list(queries)).hashes()
