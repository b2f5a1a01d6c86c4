"""Where a measure has no figure for a whole dataset: many lists repeat a passage, and no rule says what that means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: A draw takes every passage once. A list that repeats an id holds chunks of one document, or copies: R, N and K then
#: count different things.
_REPEATS = (
    "lists repeat a passage within their top K: if these are chunks of documents, give passages_of=… (-c "
    "data.passages_of=FILE); if they are copies, duplicates='drop' (-c rules.duplicates=drop) takes them out, and "
    "duplicates='count_once' lets them fill their slots (how-to: chunks-and-documents) [repeated-passages]"
)
#: In more than one of so many lists repeats are no accident.
_ONE_OF = 10


@dataclass(frozen=True, slots=True)
class Refusal:
    """How many of the lists of a dataset repeat a passage within each depth. Parts of a dataset add their numbers.

    >>> both = Refusal((0, 1), 1) + Refusal((0, 1), 12)
    >>> both.refused.tolist(), both.reason(1)[:33]
    ([False, True], '2 of 13 lists repeat a passage wi')
    """

    repeating: tuple[int, ...]
    lists: int

    @property
    def refused(self) -> NDArray[np.bool_]:
        """Whether the measure has no figure at each depth: bool[depths]."""
        return _ONE_OF * np.array(self.repeating, np.int64) > self.lists

    def reason(self, column: int) -> str:
        """Why there is no figure at a depth."""
        return f"{self.repeating[column]} of {self.lists} {_REPEATS}"

    def at(self, columns: slice) -> Refusal:
        """At some of the depths."""
        return Refusal(self.repeating[columns], self.lists)

    def __add__(self, other: Refusal) -> Refusal:
        both = zip(self.repeating, other.repeating, strict=True)
        return Refusal(tuple(one + more for one, more in both), self.lists + other.lists)


def joint_refusal(refusals: Iterable[Refusal | None]) -> Refusal | None:
    """The refusal of a dataset, from those of its parts; None if no part has one."""
    given = [refusal for refusal in refusals if refusal is not None]
    return sum(given[1:], given[0]) if given else None


def reasons(undefined: str, refused: Refusal | None, depths: int) -> list[str]:
    """Why a measure may have no figure, at each depth."""
    if refused is None:
        return [undefined] * depths
    return [refused.reason(i) if no else undefined for i, no in enumerate(refused.refused.tolist())]
