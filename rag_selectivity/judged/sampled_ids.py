"""Ids of some queries, by which a join is checked."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from heapq import nsmallest
from operator import itemgetter

import numpy as np

from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.forms import FORMS, IdForm
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.matching import Match

_QUERIES, _RETRIEVED, _LABELLED = 100, 50, 100
_UNSHARED = 200
_EVERY_FORM = IdForm.of(list(FORMS))
_NUMBERS = re.compile("[0-9]+")


class IdSampler:
    """Collects lists of a run that comes in parts: those of the first queries of the qrels that have labels."""

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

    def match(self) -> Match:
        """The first passages of these lists, and some of those that are labelled."""
        return Match([(retrieved, self._labelled(place)) for place, retrieved in self._lists])

    def _labelled(self, place: int) -> list[str]:
        labelled = self._qrels.passages[self._qrels.rows(place)]
        return labelled if len(labelled) <= _LABELLED else sorted(labelled)[:_LABELLED]


def match_of_unshared(unknown: Iterable[str], missing: Iterable[str]) -> Match:
    """Some queries that only the run has, and some that only the qrels have: of both those that may be meant alike."""
    # Those with the smallest hashes of what is alike in ids that meet in some form.
    hashed = ([(zlib.crc32(_alike(query).encode()), query) for query in queries] for queries in (unknown, missing))
    first, second = ([query for _, query in nsmallest(_UNSHARED, each)] for each in hashed)
    return Match([(first, second)])


def _alike(query: str) -> str:
    """The longest number, or the id in every form if it has none."""
    plain = _EVERY_FORM(query)
    numbers = _NUMBERS.findall(plain)
    return max(numbers, key=len).lstrip("0") if numbers else plain
