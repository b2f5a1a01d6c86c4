"""Detects that a mean has risen above a limit, at any time and with a known rate of false alarms."""

import math
from collections.abc import Hashable
from typing import Generic, TypeVar

from rag_selectivity.errors import InputError

Mark = TypeVar("Mark", bound=Hashable)

#: Stakes as shares of the largest stake that cannot lose more than everything. A small stake finds a small change, a
#: large stake finds a large change soon.
_STAKES = (0.005, 0.012, 0.03, 0.07, 0.17, 0.4, 0.9)


class RiseDetector(Generic[Mark]):
    """Detects when the mean of values rises above 0, whenever that happens.

    Each of seven accounts bets that the next value y is above 0: it multiplies its money by 1 + s·y/least, where −least
    is the lowest possible y. An account with less than 1 starts again with 1. The rise is shown when the mean of the
    accounts reaches `run_length`.

    As long as the expectation of each value, given the values before it, is at most 0, the expected number of values
    until a false alarm is at least `run_length`. This holds for any distribution, with any upper tail, and the
    distribution may change. It does not hold for the mean over a long time if values depend on each other (bursts): a
    burst whose own mean is above 0 is a rise.

    Parameters
    ----------
    run_length : float
        The expected number of values until a false alarm is at least this. More than 1.

    Raises
    ------
    InputError
        If `run_length` is not a finite number above 1.

    References
    ----------
    Shin, Ramdas and Rinaldo 2023, E-detectors: a nonparametric framework for sequential change detection, NEJSDS.

    Examples
    --------
    Failures, of which 5 % are allowed. At first every 25th fails, and from the 1,000th on every 5th:

    >>> detector = RiseDetector(100_000)
    >>> failures = [not i % (25 if i < 1000 else 5) for i in range(2000)]
    >>> shown_at = next(i for i, failed in enumerate(failures) if detector.add(failed - 0.05, 0.05, i))
    >>> shown_at, detector.mark
    (1090, 1000)
    """

    def __init__(self, run_length: float) -> None:
        if isinstance(run_length, bool) or not 1 < run_length < math.inf:
            raise InputError(f"the run length until a false alarm must be a number above 1, got {run_length!r}")
        self._needed = run_length * len(_STAKES)
        self._money = [0.0] * len(_STAKES)
        self._marks: list[Mark | None] = [None] * len(_STAKES)

    def add(self, value: float, least: float, mark: Mark) -> bool:
        """Take in a value; whether a rise is shown.

        Parameters
        ----------
        value : float
            Not below −least.
        least : float
            Known before the value is. 0 or less: a single value above 0 shows the rise.
        mark : hashable
            What `mark` returns, if the rise began with this value.
        """
        money, marks = self._money, self._marks
        share = value / least if least > 0 else math.inf if value > 0 else 0.0
        total = 0.0
        for i, stake in enumerate(_STAKES):
            now = money[i]
            if now <= 1.0:
                now = 1.0
                marks[i] = mark
            money[i] = now = now * max(0.0, 1.0 + stake * share)
            total += now
        return total >= self._needed

    @property
    def mark(self) -> Mark | None:
        """The mark of the value with which the rise probably began; None before the first value."""
        return max(zip(self._money, self._marks, strict=True), key=lambda account: account[0])[1]
