"""What is wrong with records of credit: counted with examples, and too much where a verdict would be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real

from rag_selectivity.errors import InputError

#: The share of credits that may be wrong before there is no verdict.
MAX_FAULTS = 0.01
#: What each kind is called, with the mend.
_WORDS: Mapping[str, tuple[str, str]] = {
    "never_drafted": (
        "credits of an impression that was never drafted",
        "is a part of the log missing, or do ids differ between the retriever and what collects the credit?",
    ),
    "not_shown": (
        "credits for a passage that was not shown",
        "give credit only for the passages of the impression's draft, by the same ids",
    ),
}
#: What is no fault, and is told.
_TWICE: Mapping[str, str] = {
    "repeated": "came a second time, and count once",
    "changed": "gave a passage another number than before, of which the latest counts",
}
_EXAMPLES = 3


@dataclass(slots=True)
class Faults:
    """Counts of credits, and of what was wrong with them.

    Attributes
    ----------
    credits : int
        Credits that were read.
    counts : {kind: count}
        `never_drafted`, `not_shown`; of joined logs also `repeated` (the same credit again, which counts once),
        `changed` (another number for the same passage, of which the latest counts) and `drafted_again` (the same draft
        a second time).
    """

    credits: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    _examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, example: str) -> None:
        """Count one, and keep the first few as examples."""
        count = self.counts[kind] = self.counts.get(kind, 0) + 1
        if count <= _EXAMPLES:
            self._examples.setdefault(kind, []).append(example)

    def take_joined(self, joined: Faults) -> None:
        """Add what was found wrong with the same credits while their log was joined."""
        self.credits = joined.credits
        for kind, count in joined.counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + count
            self._examples.setdefault(kind, []).extend(joined._examples.get(kind, ()))

    def refuse(self, most: float = MAX_FAULTS) -> None:
        """An InputError if a share of more than `most` of the credits is wrong.

        Credit that is lost is not lost at random: a client that sends no ids, say, is used by certain users.
        """
        if isinstance(most, bool) or not isinstance(most, Real) or not 0 <= most <= 1:
            raise InputError(f"max_faults must be a share from 0 to 1, got {most!r}")
        for kind, (words, mend) in _WORDS.items():
            count = self.counts.get(kind, 0)
            if count > most * self.credits:
                raise InputError(
                    f"{count:,} of {self.credits:,} {words} ({self._shown(kind)}), more than max_faults={most:g}: "
                    f"{mend}"
                )

    def notes(self) -> tuple[str, ...]:
        """What was left out, and what came twice, in sentences."""
        left_out = [
            f"{self.counts[kind]:,} of {self.credits:,} {words} left out ({self._shown(kind)})."
            for kind, (words, _) in _WORDS.items()
            if self.counts.get(kind)
        ]
        twice = [
            f"{self.counts[kind]:,} of {self.credits:,} credits {words} ({self._shown(kind)})."
            for kind, words in _TWICE.items()
            if self.counts.get(kind)
        ]
        return (*left_out, *twice)

    def _shown(self, kind: str) -> str:
        return "; ".join(self._examples.get(kind, ())[:_EXAMPLES])
