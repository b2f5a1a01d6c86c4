"""Labels and runs given as dicts of texts and numbers: read at once, without a step for each row."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.cells import LARGEST_GRADE
from rag_selectivity.data.ids import IntArray

_ONLY_DICT, _ONLY_LISTS = frozenset([dict]), frozenset([list, tuple])
_ONLY_STR = frozenset([str])
_PACKED_AT_ONCE = 1 << 16
T = TypeVar("T", bound=np.generic)


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
    passages = _all_of(given)
    if not _has_only_ids(given, passages):
        return None
    try:
        column = _whole_numbers(_all_of(map(dict.values, given)))
    except (TypeError, struct.error):
        return None
    if column.min(initial=0) < 0 or column.max(initial=0) >= LARGEST_GRADE:
        return None
    return np.repeat(np.arange(len(given)), _lengths(given)), passages, column


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
        passages = _all_of(given)
        if not _has_only_ids(given, passages):
            return None
        lengths = _lengths(given)
        if not scored or not passages:
            return cls(lists, lengths, None)
        try:
            scores = packed(map(dict.values, given), np.float64)
        except (struct.error, OverflowError):
            return None
        return None if np.isnan(scores).any() else cls(lists, lengths, scores)

    def passages(self) -> list[str]:
        """The passages of all lists."""
        return _all_of(self.lists.values())


def packed(numbers: Iterable[Iterable[Any]], kind: type[T]) -> NDArray[T]:
    """The numbers of several collections in one column, in a third of the time that NumPy takes.

    Raises
    ------
    struct.error or OverflowError
        If something is not a number of this kind: a whole number of 64 bits, or a number that can be a float.

    >>> packed([[1, 2], [], [3]], np.int64).tolist(), packed([[0.5, 2]], np.float64).tolist()
    ([1, 2, 3], [0.5, 2.0])
    """
    code, blocks, block = np.dtype(kind).char, [], list[Any]()
    for some in numbers:
        block += some
        if len(block) >= _PACKED_AT_ONCE:
            blocks.append(struct.pack(f"{len(block)}{code}", *block))
            block.clear()
    blocks.append(struct.pack(f"{len(block)}{code}", *block))
    return np.frombuffer(bytearray().join(blocks), kind)


def _whole_numbers(numbers: list[Any]) -> IntArray:
    """As `packed`, in less time for numbers below 256, as grades are; a TypeError if one is no whole number."""
    try:
        return np.frombuffer(bytes(numbers), np.uint8).astype(np.int64)
    except ValueError:
        return packed([numbers], np.int64)


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


def _all_of(given: Iterable[Iterable[Any]]) -> list[Any]:
    """The ids of all lists, in less time than a chain of them takes."""
    ids: list[Any] = []
    for some in given:
        ids += some
    return ids


def _lengths(given: list[Any]) -> IntArray:
    return np.fromiter(map(len, given), np.int64, len(given))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
