"""Why a measure has no figure for a whole dataset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a measure has no figure for a whole dataset: how many of what. Parts of a dataset add their numbers.

    >>> print(Refusal(2, "passages are repeated") + Refusal(1, "passages are repeated"))
    3 passages are repeated
    """

    count: int
    what: str

    def __str__(self) -> str:
        return f"{self.count} {self.what}"

    def __add__(self, other: Refusal) -> Refusal:
        return replace(self, count=self.count + other.count)


def joint_refusal(refusals: Iterable[Refusal | None]) -> Refusal | None:
    """The refusal of a dataset, from those of its parts; None if no part is refused."""
    given = [refusal for refusal in refusals if refusal is not None]
    return sum(given[1:], given[0]) if given else None
