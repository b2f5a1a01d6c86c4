"""Grade scales, and grade maps from one scale to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_selectivity.errors import InputError, did_you_mean


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of whole-number grades and the lowest one that counts as relevant by default."""

    name: str
    lowest: int
    highest: int | None
    relevant_from: int

    def holds(self, grade: int) -> bool:
        """Whether a grade is on the scale."""
        return grade >= self.lowest and (self.highest is None or grade <= self.highest)

    @property
    def range_text(self) -> str:
        return f"{self.lowest} to {self.highest}" if self.highest is not None else f"{self.lowest} and up"


SCALES = {
    "trec": Scale("trec", lowest=0, highest=None, relevant_from=1),
    "utility": Scale("utility", lowest=1, highest=5, relevant_from=4),
}


def scale_named(name: str | Scale) -> Scale:
    """The scale of a name: `trec` (0 = not relevant, relevant from 1) or `utility` (1–5, relevant from 4)."""
    if isinstance(name, Scale):
        return name
    if name not in SCALES:
        raise InputError(f"unknown scale {name!r}{did_you_mean(str(name), SCALES)} (known: {', '.join(SCALES)})")
    return SCALES[name]


def parse_grade_map(text: str | Mapping[int, int] | None) -> dict[int, int] | None:
    """Read `0:1,1:3,2:4,3:5` (or a mapping) as a map from the grades of a file to the grades of a scale.

    >>> parse_grade_map("0:1, 1:3,2:4,3:5")
    {0: 1, 1: 3, 2: 4, 3: 5}
    """
    if text is None:
        return None
    if isinstance(text, Mapping):
        pairs: list[tuple[int, int]] = list(text.items())
    else:
        pairs = []
        for part in text.split(","):
            before, _, after = part.partition(":")
            try:
                pairs.append((int(before), int(after)))
            except ValueError:
                raise InputError(
                    f"grade map {text!r}: {part!r} is not of the form OLD:NEW, as in 0:1,1:3,2:4,3:5"
                ) from None
    result: dict[int, int] = {}
    for old, new in pairs:
        if not isinstance(old, int) or not isinstance(new, int):
            raise InputError(f"grade map {text!r}: {old!r}:{new!r}: grades must be whole numbers")
        if result.setdefault(old, new) != new:
            raise InputError(f"grade map {text!r}: grade {old} is given twice, with different new grades; remove one")
    return result
