"""The choice of a tool: what a model called, against what applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.plain import Plain

#: Names and reasons are the application's own; this bounds what a faulty one can fill.
_MOST_NAMES = 1000
OTHERS = "(others)"
_TAIL = 0.025
Name = TypeVar("Name")


@dataclass(frozen=True, slots=True)
class Confusion(Plain):
    """A cell of the confusion table: so many labelled calls in which these tools applied and that one was called.

    Attributes
    ----------
    expected : tuple of str
        The tools that applied, any of which would have been right; empty if the labels say that none does.
    called : str or None
        None if no tool was called.
    calls : int
    """

    also: ClassVar[tuple[str, ...]] = ("right",)

    expected: tuple[str, ...]
    called: str | None
    calls: int

    @property
    def right(self) -> bool:
        """Whether one of the expected tools was called; or none, where none applies."""
        return self.called in self.expected if self.called is not None else not self.expected


@dataclass(frozen=True, slots=True)
class ToolChoice(Plain):
    """Which tools a model called, over the model calls with labels. Intervals are exact, at 95 %.

    `right`, `wrong` and `none` add up to 1. A call in which a right and a wrong tool were called is wrong. If the
    labels say that no tool applies, calling none is right. A call after the results of tools in which no tool is called
    is the answer: it is counted in `answers`, and in no rate.

    Attributes
    ----------
    calls, answers : int
        Model calls with labels in which a tool could be chosen; and those that gave the answer.
    right, wrong, none : Estimate
        The shares in which only tools that apply were called; a called tool does not apply; no tool was called
        although one applies.
    right_if_shown : Estimate
        The share that is right, over the calls to which a tool that applies was shown.
    confusion : tuple of Confusion
        Wrong cells first, by how often they occurred. A call of several tools is in several cells. After 1,000 cells,
        the others are counted together.
    """

    calls: int
    answers: int
    right: Estimate
    wrong: Estimate
    none: Estimate
    right_if_shown: Estimate
    confusion: tuple[Confusion, ...]


def rate(count: int, total: int, of: str) -> Estimate:
    """A share with Clopper and Pearson's interval, which takes the calls as independent; `of` says what is counted."""
    if not total:
        nan = float("nan")
        return Estimate(nan, nan, nan, 0, 0, reason=f"there were no {of}")
    counts, totals = np.array([count, total - count]), np.array([total, total])
    high, rest = clopper_pearson(counts, totals, _TAIL)[1]
    return Estimate(count / total, float(1 - rest), float(high), total, total)


def count_name(counts: Counter[Name], name: Name, others: Name) -> None:
    """Count a name; those that come after 1,000 are counted together."""
    counts[name if name in counts or len(counts) < _MOST_NAMES else others] += 1


class ChoiceCounts:
    """The counts behind a ToolChoice, in memory that does not grow with the calls."""

    def __init__(self) -> None:
        self._calls = self._right = self._wrong = self._shown = self._right_if_shown = self._answers = 0
        self._cells: Counter[tuple[tuple[str, ...], str | None]] = Counter()

    def add(
        self, expected: frozenset[str], shown: Iterable[str], called: Sequence[str], *, after_results: bool
    ) -> list[str]:
        """Take in a model call with labels; the called tools that do not apply."""
        if after_results and not called:
            self._answers += 1
            return []
        wrong = [name for name in called if name not in expected]
        is_right = not wrong and bool(called) == bool(expected)
        self._calls += 1
        self._wrong += bool(wrong)
        self._right += is_right
        if not expected.isdisjoint(shown):
            self._shown += 1
            self._right_if_shown += is_right
        row = tuple(sorted(expected))
        for name in called or (None,):
            count_name(self._cells, (row, name), ((), OTHERS))
        return wrong

    def choice(self) -> ToolChoice | None:
        """The shares so far; None without a model call with labels."""
        if not self._calls + self._answers:
            return None
        none = self._calls - self._right - self._wrong
        cells = [Confusion(expected, called, calls) for (expected, called), calls in self._cells.items()]
        cells.sort(key=lambda cell: (cell.right, -cell.calls, cell.expected, cell.called or ""))
        of = "model calls with labels in which a tool could be chosen"
        return ToolChoice(
            self._calls,
            self._answers,
            rate(self._right, self._calls, of),
            rate(self._wrong, self._calls, of),
            rate(none, self._calls, of),
            rate(self._right_if_shown, self._shown, "model calls to which a tool that applies was shown"),
            tuple(cells),
        )
