"""Figures of queries that a judge or a user gives: columns of a table that no join makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import Measure, Outcome


@dataclass(frozen=True, repr=False)
class Given(Measure):
    """A measure whose figures are given; it prints as `ContextRecall@10`.

    Attributes
    ----------
    of : str
        Its name.
    lowest, highest : float
        The ends of its scale.
    better : bool or None
        Whether more of it is better; None if neither is.
    """

    of: str = ""
    lowest: float = 0.0
    highest: float = 1.0
    better: bool | None = True

    def __init_subclass__(cls) -> None:
        """A subclass has no name: each of its values has one."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.of

    @property
    def higher_is_better(self) -> bool | None:  # type: ignore[override]
        return self.better

    @property
    def ends(self) -> tuple[float, float]:  # type: ignore[override]
        return self.lowest, self.highest

    def at_ranks(self, judged: JudgedRun, depths: NDArray[Any]) -> Outcome:
        raise InputError(f"{self} is given, by a judge or a user: lists and labels do not make it")
