"""What an approximate index loses against the exact one: the share of its list, and which passages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_selectivity.results.estimate import Estimate

RELEVANT, DECISIVE = "relevant", "decisive"


@dataclass(frozen=True, slots=True)
class LostPassages:
    """The passages of a kind in the top K of the exact index.

    Attributes
    ----------
    of : int
        How many there are, over all queries.
    lost : int
        How many of them the run does not have in its own top K.
    gained : int
        How many of this kind the run has in its top K and the exact index has not.
    """

    of: int
    lost: int
    gained: int

    def to_dict(self) -> dict[str, int]:
        """As plain data, ready for JSON."""
        return {"of": self.of, "lost": self.lost, "gained": self.gained}


@dataclass(frozen=True, slots=True)
class ExactLoss:
    """What a run from an approximate or quantised index loses against the exact one, at one K.

    Attributes
    ----------
    run, exact : str
    K : int
    overlap : Estimate
        overlap@K: the share of the distinct passages in the exact top K that are in the run's top K too, as the mean
        over queries, with its interval. 0 where the run has no list, undefined where the exact index has none.
    passages : LostPassages
        All passages, with a label or without.
    relevant : LostPassages
        Those whose grade is relevant on the scale (4 and 5 on the utility scale).
    decisive : LostPassages or None
        Those of grade 5; None on other scales.
    unlabelled : int
        How many of the lost passages have no label, so that nobody knows whether they were relevant.
    text : str
        What is kept, what was lost, and which measures are shown to be lower.
    """

    run: str
    exact: str
    K: int
    overlap: Estimate
    passages: LostPassages
    relevant: LostPassages
    decisive: LostPassages | None
    unlabelled: int
    text: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "overlap": self.overlap.to_dict(),
            "passages": self.passages.to_dict(),
            RELEVANT: self.relevant.to_dict(),
            **({} if self.decisive is None else {DECISIVE: self.decisive.to_dict()}),
            "unlabelled": self.unlabelled,
            "text": self.text,
        }
