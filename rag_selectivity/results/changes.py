"""What changed in the figures of a decision since a report was stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_selectivity.results.comparison import RunDifference
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.result import Result

#: The verdict on a figure that is the same for every query.
UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure of a run, before and now.

    Attributes
    ----------
    before, now : Estimate
        As judged.
    row : RunDifference
        Now − before, with its verdict.
    """

    before: Estimate
    now: Estimate
    row: RunDifference

    @property
    def verdict(self) -> str:
        """`unchanged`, or as in `RunDifference.verdict`."""
        return UNCHANGED if not self.row.moved else self.row.verdict


@dataclass(frozen=True, slots=True)
class RunChange:
    """A run that both reports have.

    Attributes
    ----------
    stored_as : str
        Its name in the stored report.
    figures : {name of the measure: FigureChange}
        Keyed without depth, in the order of the decision's table.
    not_compared : {key of the measure: reason}
        Of measures that both reports hold.
    """

    run: str
    stored_as: str
    figures: Mapping[str, FigureChange]
    not_compared: Mapping[str, str]

    @property
    def is_unchanged(self) -> bool:
        """Whether every figure is the same for every query."""
        return (
            bool(self.figures)
            and not self.not_compared
            and all(each.verdict == UNCHANGED for each in self.figures.values())
        )


@dataclass(frozen=True, repr=False)
class Changes(Result):
    """What changed in the figures of a decision.

    Attributes
    ----------
    name : str
        The file of the stored report.
    runs : tuple of RunChange
        In the order of the decision.
    new, gone : tuple of str
        Runs that only the report has, and that only the stored report has.
    not_compared : {run: reason}
    not_stored : tuple of str
        Keys of the decision's figures that the stored report does not hold.
    level : float or None
        The level of the intervals and tests; None without them.
    tests : {measure or "": count}
        How many tests were corrected together after Holm: those of the measure that ranks the runs, and (under "")
        those of all other measures.
    as_judged : bool
        Whether figures rest on more than labels as they are, and are compared without that.
    notes : tuple of str
        With `on="shared"`: how many queries are compared.
    """

    schema = "rag-selectivity/changes/1"

    name: str
    runs: tuple[RunChange, ...]
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    not_compared: Mapping[str, str] = field(default_factory=dict)
    not_stored: tuple[str, ...] = ()
    level: float | None = None
    tests: Mapping[str, int] = field(default_factory=dict)
    as_judged: bool = False
    notes: tuple[str, ...] = ()
