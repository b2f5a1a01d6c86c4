"""Labels and runs given as dicts of texts and numbers: read at once, without a step for each row."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.cells import LARGEST_GRADE
from rag_selectivity.data.ids import IntArray
from rag_selectivity.errors import InputError

_ONLY_DICT, _ONLY_LISTS = frozenset([dict]), frozenset([list, tuple])
_ONLY_STR = frozenset([str])


def labels_of_dicts(judgments: Mapping[Any, Any]) -> tuple[IntArray, list[str], IntArray] | None:
    """The position of each label's query, its passage and its grade; None if something needs a closer look.

    >>> query, passages, grades = labels_of_dicts({"q1": {"d1": 5, "d2": 1}, "q2": {}, "q3": {"d1": 4}})
    >>> query.tolist(), passages, grades.tolist()
    ([0, 0, 2], ['d1', 'd2', 'd1'], [5, 1, 4])
    >>> labels_of_dicts({"q1": {"d1": -1}}) is labels_of_dicts({"q1": ["d1"]}) is labels_of_dicts({1: {}}) is None
    True
    """
    given = list(judgments.values())
    if not _ONLY_DICT.issuperset(map(type, given)) or not _has_only_texts(judgments):
        return None
    passages = list(chain.from_iterable(given))
    if not _has_only_ids(given, passages):
        return None
    try:
        # Unlike NumPy, an array takes whole numbers only.
        grades = array("q", chain.from_iterable([judged.values() for judged in given]))
    except (TypeError, OverflowError):
        return None
    column = np.frombuffer(grades, np.int64)
    if column.min(initial=0) < 0 or column.max(initial=0) >= LARGEST_GRADE:
        return None
    return np.repeat(np.arange(len(given)), _lengths(given)), passages, column


def records_of_dicts(judgments: Mapping[Any, Any]) -> tuple[list[tuple[Any, Any, Any]], list[bool]]:
    """The (query, passage, grade) rows of judgments in any form that a dict may have, and which are expected ids.

    Raises
    ------
    InputError
        If a query has neither a dict of grades nor a list of ids.

    >>> records_of_dicts({"q1": {"d1": 5}, "q2": ["d2"]})
    ([('q1', 'd1', 5), ('q2', 'd2', 1)], [False, True])
    """
    rows: list[tuple[Any, Any, Any]] = []
    expected: list[bool] = []
    for query, judged in judgments.items():
        if isinstance(judged, Mapping):
            rows.extend((query, passage, grade) for passage, grade in judged.items())
        elif isinstance(judged, str) or not isinstance(judged, Iterable):
            raise InputError(f"qrels of query {query!r}: expected {{passage: grade}} or a list of ids, got {judged!r}")
        else:
            rows.extend((query, passage, 1) for passage in judged)
        expected.extend([not isinstance(judged, Mapping)] * (len(rows) - len(expected)))
    return rows, expected


@dataclass(frozen=True, slots=True)
class DictRun:
    """A run as the dict that it was given as, whose ids were checked. It is not to be kept: the dict may change.

    Attributes
    ----------
    lists : {query: {passage: score}} or {query: sequence of passages}
        All of one kind.
    lengths : int64[queries]
    scores : float64[rows] or None
        In the order of the lists; None if these have no scores, or are all empty.
    """

    lists: Mapping[str, dict[str, Any]] | Mapping[str, list[str] | tuple[str, ...]]
    lengths: IntArray
    scores: NDArray[np.float64] | None

    @classmethod
    def of(cls, lists: Any) -> DictRun | None:
        """The run; None if something in it needs a closer look, which `Run.from_dict` takes.

        >>> DictRun.of({"q1": {"d1": 0.5, "d2": 2}, "q2": {}}).scores.tolist()
        [0.5, 2.0]
        >>> DictRun.of({"q1": [1, 2]}) is DictRun.of({"q1": {"d1": None}}) is None
        True
        """
        if not isinstance(lists, Mapping) or not _has_only_texts(lists):
            return None
        given = list(lists.values())
        scored = _ONLY_DICT.issuperset(map(type, given))
        if not scored and not _ONLY_LISTS.issuperset(map(type, given)):
            return None
        passages = list(chain.from_iterable(given))
        if not _has_only_ids(given, passages):
            return None
        lengths = _lengths(given)
        if not scored or not passages:
            return cls(lists, lengths, None)
        try:
            scores = np.fromiter(chain.from_iterable([ranked.values() for ranked in given]), np.float64, lengths.sum())
        except (TypeError, ValueError, OverflowError):
            return None
        return None if np.isnan(scores).any() else cls(lists, lengths, scores)

    def passages(self) -> list[str]:
        """The passages of all lists."""
        return list(chain.from_iterable(self.lists.values()))


def _has_only_texts(queries: Mapping[Any, Any]) -> bool:
    """Whether all query ids are texts as `query_text` takes them."""
    return "" not in queries and _ONLY_STR.issuperset(map(type, queries)) and _has_only_characters("".join(queries))


def _has_only_ids(given: list[Any], passages: list[Any]) -> bool:
    """Whether all passages are ids as `IdColumn` takes them, and texts."""
    if list(map(type, passages)).count(str) < len(passages) or any("" in ids for ids in given):
        return False
    return _has_only_characters("".join(passages))


def _has_only_characters(text: str) -> bool:
    return "\0" not in text and (text.isascii() or _is_unicode(text))


def _lengths(given: list[Any]) -> IntArray:
    return np.fromiter(map(len, given), np.int64, len(given))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
