"""Ids of some queries, by which a join is checked."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from operator import itemgetter

import numpy as np

from rag_selectivity.judged.better_form import BetterForm, better_form
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.forms import FORMS, IdForm
from rag_selectivity.tables.ids import IntArray

_QUERIES, _RETRIEVED, _LABELLED = 100, 50, 100
_UNSHARED = 200
_EVERY_FORM = IdForm.of(list(FORMS))
_NUMBERS = re.compile("[0-9]+")

#: The position of a query in the qrels, and its first retrieved and some labelled passages.
Sampled = tuple[int, tuple[str, ...], tuple[str, ...]]
#: A hash of what is alike in ids that meet in some form, and the query id.
Unshared = tuple[int, str]


@dataclass(frozen=True)
class SampledIds:
    """Ids of a join.

    Attributes
    ----------
    lists : tuple of (position, retrieved passages, labelled passages)
        Of the first queries of the qrels that have both. The labelled passages are in any order.
    only_in_qrels, only_in_run : tuple of (hash, query)
        Of the queries that the other side lacks. The hash is that of what is alike in ids that meet in some form, so
        that both sides keep such queries.
    """

    lists: tuple[Sampled, ...] = ()
    only_in_qrels: tuple[Unshared, ...] = ()
    only_in_run: tuple[Unshared, ...] = ()

    @cached_property
    def matching(self) -> int:
        """How many of the labelled passages are among the retrieved ones of their query."""
        return sum(len({*labelled}.intersection(retrieved)) for _, retrieved, labelled in self.lists)

    @cached_property
    def better_for_passages(self) -> BetterForm | None:
        """The form in which more retrieved passages have a label."""
        return better_form([each[1:] for each in self.lists]) if self.lists else None

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
    """Collects the sampled lists of a run that comes in parts: those of the first queries of the qrels."""

    def __init__(self, qrels: Qrels) -> None:
        self._qrels = qrels
        self._lists: list[tuple[int, list[str]]] = []

    def add(self, part: Run, position: IntArray, policy: Policy) -> None:
        """Add a part; `position` is that of its queries in the qrels, −1 for those that are not there."""
        last = self._lists[-1][0] if len(self._lists) == _QUERIES else len(self._qrels)
        usable = np.flatnonzero((position >= 0) & (position < last) & (part.lengths > 0))
        usable = usable[self._qrels.counts()[position[usable]] > 0]
        usable = usable[np.argsort(position[usable], kind="stable")][:_QUERIES]
        lists = part.of_lists(usable).top(_RETRIEVED, policy).lists()
        self._lists += zip(position[usable].tolist(), (passages for _, passages in lists), strict=True)
        self._lists = sorted(self._lists, key=itemgetter(0))[:_QUERIES]

    def sampled(self, missing: Iterable[str], unknown: Iterable[str]) -> SampledIds:
        """The lists that were collected; `missing` are queries of the qrels alone, `unknown` those of the run alone."""
        lists = tuple(
            (place, tuple(retrieved), _some(self._qrels.passages[self._qrels.rows(place)]))
            for place, retrieved in self._lists
        )
        return SampledIds(lists, _unshared(missing), _unshared(unknown))


def _some(labelled: list[str]) -> tuple[str, ...]:
    """The labelled passages of a query, or as many as are compared."""
    return tuple(labelled if len(labelled) <= _LABELLED else sorted(labelled)[:_LABELLED])


def _unshared(queries: Iterable[str]) -> tuple[Unshared, ...]:
    """Those of the queries that represent them in `SampledIds`."""
    return tuple(nsmallest(_UNSHARED, ((zlib.crc32(_without_form(query).encode()), query) for query in queries)))


def _without_form(query: str) -> str:
    """What is alike in ids that meet in some form: the longest number, or the id in every form if it has none."""
    plain = _EVERY_FORM(query)
    numbers = _NUMBERS.findall(plain)
    return max(numbers, key=len).lstrip("0") if numbers else plain
