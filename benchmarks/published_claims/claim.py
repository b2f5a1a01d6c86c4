"""A published figure, how it is computed here, and whether the two agree."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

#: A figure, the two ends of a figure whose printed inputs are rounded, or a word such as "healthy".
Value = float | tuple[float, float] | str

#: The distance by which a decimal number as a float may miss a limit of rounding.
_FLOAT_SLACK = 1e-12

#: More decimals are not the same on every machine.
_MOST_DECIMALS = 14


@dataclass(frozen=True)
class Claim:
    """A figure that a source prints.

    Attributes
    ----------
    where : str
        The section, table or file of the source.
    what : str
        Which figure, with the inputs that are not in the data.
    published : str
        The figure as printed: its decimals say how it is rounded. A leading `~` says nothing, `≤` makes it a bound.
    ours : function of the folder DATA
        The figure by rag-selectivity.
    needs : tuple of str
        The files of DATA that it reads.
    differs : str
        Why it cannot agree; empty if it should.
    note : str
        What a reader of a figure that agrees should know.
    within : float, optional
        How far it may be away instead of its rounding, for a figure that is drawn at random.
    counts : bool
        Whether it is a published figure of its own; not if it explains another row or was worked out by hand.
    """

    where: str
    what: str
    published: str
    ours: Callable[[Path], Value]
    needs: tuple[str, ...] = ()
    differs: str = ""
    note: str = ""
    within: float | None = None
    counts: bool = True


@dataclass(frozen=True)
class Source:
    """A source with its claims; `more` makes those that are read from DATA."""

    title: str
    about: str
    claims: tuple[Claim, ...]
    more: Callable[[Path], Sequence[Claim]] | None = None


@dataclass(frozen=True)
class NotRebuilt:
    """A published figure that is not computed here, why, and how it could be."""

    source: str
    what: str
    why: str
    how: str


@dataclass(frozen=True)
class Row:
    """A claim beside what is computed; `ours` is None if its data are not there."""

    claim: Claim
    ours: Value | None

    @property
    def agrees(self) -> bool:
        """Whether some value that rounds to the published one is ours; NaN never is."""
        if self.ours is None or isinstance(self.ours, str):
            return self.ours == self.claim.published
        low, high = self._ends()
        value, half = self._printed()
        half = (self.claim.within or half) + _FLOAT_SLACK
        return low <= value + half and (self.claim.published.startswith("≤") or high >= value - half)

    @property
    def right(self) -> bool:
        """Whether it agrees if it should, and does not if the claim says why it cannot."""
        return self.ours is None or self.agrees != bool(self.claim.differs)

    @property
    def difference(self) -> str:
        """Ours less the published figure, in the units in which it is printed; 0 if it lies between our two ends."""
        if self.ours is None or isinstance(self.ours, str) or self.claim.published.startswith("≤"):
            return ""
        low, high = self._ends()
        value, _ = self._printed()
        nearest = low if math.isnan(low) else min(max(value, low), high)
        return _signed(self._scaled(nearest - value), min(self._decimals() + 2, _MOST_DECIMALS))

    @property
    def shown(self) -> str:
        """Ours, with two decimals more than the published figure."""
        if self.ours is None:
            return "not run"
        if isinstance(self.ours, str):
            return self.ours
        decimals = min(self._decimals() + 2, _MOST_DECIMALS)
        low, high = (f"{self._scaled(end) + 0.0:.{decimals}f}{self._unit()}" for end in self._ends())
        return low if low == high else f"{low} to {high}"

    def _ends(self) -> tuple[float, float]:
        if self.ours is None or isinstance(self.ours, str):
            raise TypeError(f"{self.claim.what}: {self.ours!r} is no figure")
        return self.ours if isinstance(self.ours, tuple) else (self.ours, self.ours)

    def _printed(self) -> tuple[float, float]:
        """The published value and half a unit of its last decimal."""
        scale = 0.01 if self._unit() else 1.0
        return float(self._number()) * scale, 0.5 * 10.0 ** -self._decimals() * scale

    def _number(self) -> str:
        found = re.search(r"-?\d+(\.\d+)?", self.claim.published.replace("−", "-"))
        if found is None:
            raise ValueError(f"{self.claim.published!r} holds no number")
        return found[0]

    def _decimals(self) -> int:
        return len(self._number().partition(".")[2])

    def _unit(self) -> str:
        return "%" if self.claim.published.endswith("%") else ""

    def _scaled(self, value: float) -> float:
        return value * 100 if self._unit() else value


def _signed(value: float, decimals: int) -> str:
    text = f"{value:+.{decimals}f}"
    return "0" if not float(text) else text.replace("-", "−")


def printed_range(text: str) -> tuple[float, float]:
    """The two ends of what rounds to a printed rate: "94%" is .935 to .945; no end is above 1."""
    number = text.removesuffix("%")
    scale = 0.01 if text.endswith("%") else 1.0
    half = 0.5 * 10.0 ** -len(number.partition(".")[2])
    return (float(number) - half) * scale, min(1.0, (float(number) + half) * scale)
