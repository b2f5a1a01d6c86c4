"""A comparison: the differences between runs and a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import Measure
from rag_selectivity.results.estimate import Caveat, finite
from rag_selectivity.results.report import Report
from rag_selectivity.results.result import Result

SCHEMA = "rag-selectivity/comparison/2"

BETTER, WORSE = "better", "worse"
NOT_SHOWN, JUDGED_IN_PART, NOT_TESTED = "no difference shown", "undecided: judged in part", "not tested"
#: In the order in which a table lists them.
VERDICTS = (BETTER, WORSE, JUDGED_IN_PART, NOT_SHOWN, NOT_TESTED)


@dataclass(frozen=True, slots=True)
class Moved:
    """A query's figures under a run and the baseline."""

    query: str
    value: float
    baseline_value: float

    @property
    def difference(self) -> float:
        return self.value - self.baseline_value


@dataclass(frozen=True, slots=True)
class RunDifference:
    """A run beside the baseline under one measure at one depth.

    Paired (the default) it is over the queries defined for both; unpaired each run is over its own.

    Attributes
    ----------
    value, baseline_value, difference : float
        difference = value − baseline_value, whichever direction is better.
    low, high : float
        The interval of the difference, not adjusted for the number of comparisons. It holds 0 exactly where p is more
        than 1 − level. NaN with fewer than two queries.
    p, p_adjusted : float
        Two-sided, and after Holm's correction over the tests of the comparison. NaN where nothing was tested.
    test : {"exact", "randomised", ""}
        Whether all swaps of the two runs' figures were counted, or drawn at random.
    tested_as : str
        The test that the row rests on. On the same queries with the same baseline BoR differs exactly where Success
        does: both are one test, with one place in Holm's family.
    effect : float
        The mean of the queries' differences in standard deviations (Cohen's d for pairs); NaN if unpaired.
    wins, ties, losses : int
        Queries that are better, equal, worse under the run; of Success for BoR and EF. 0 if unpaired.
    n, n_baseline : int
        Queries that the two values rest on; the same if paired.
    n_total : int
    detectable : float
        The smallest true difference that would have been shown with the stated power, at the level that Holm leaves the
        smallest p-value of the family. ∞ where so few queries can show none, NaN where nothing is known of it.
    possible : (low, high) or None
        Where lists are judged in part: between which the difference lies, whatever the unjudged passages are.
    caveats : tuple of Caveat
        What speaks against taking the figures at face value.
    moved : tuple of Moved
        The queries that moved most, either way.
    reason : str or None
        Why the difference is not a finite number.
    """

    run: str
    baseline: str
    measure: Measure
    value: float
    baseline_value: float
    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float
    test: str
    tested_as: str
    effect: float
    wins: int
    ties: int
    losses: int
    n: int
    n_baseline: int
    n_total: int
    detectable: float
    level: float
    possible: tuple[float, float] | None = None
    caveats: tuple[Caveat, ...] = ()
    moved: tuple[Moved, ...] = ()
    reason: str | None = None

    @property
    def verdict(self) -> str:
        """`better`, `worse`, `no difference shown`, `undecided: judged in part` or `not tested`.

        Better and worse are shown by p after Holm's correction at 1 − level; not where unjudged passages could turn the
        difference around.
        """
        if not self.test or math.isnan(self.p_adjusted):
            return NOT_TESTED
        if self.p_adjusted > 1 - self.level:
            return NOT_SHOWN
        if self.possible is not None and self.possible[0] <= 0 <= self.possible[1]:
            return JUDGED_IN_PART
        return BETTER if (self.difference > 0) == bool(self.measure.higher_is_better) else WORSE

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: what is not finite is null."""
        numbers = ("value", "baseline_value", "difference", "low", "high", "p", "p_adjusted", "effect", "detectable")
        names = ("test", "tested_as", "wins", "ties", "losses", "n", "n_baseline", "n_total", "verdict")
        return {
            "run": self.run,
            "baseline": self.baseline,
            "measure": str(self.measure),
            **{name: finite(getattr(self, name)) for name in numbers},
            **{name: getattr(self, name) for name in names},
            **({"possible": [finite(end) for end in self.possible]} if self.possible is not None else {}),
            "caveats": [caveat.to_dict() for caveat in self.caveats],
            "moved": [{"query": m.query, "value": m.value, "baseline_value": m.baseline_value} for m in self.moved],
            **({"reason": self.reason} if self.reason else {}),
        }


@dataclass(frozen=True)
class Comparison(Result):
    """What `compare` returns: `comparison["hybrid", "BoR@10"]` is a RunDifference, `report` the runs themselves."""

    has_latex = True

    baseline: str
    rows: tuple[RunDifference, ...]
    report: Report
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def __getitem__(self, key: tuple[str, str]) -> RunDifference:
        run, measure = key
        for row in self.rows:
            if row.run == run and str(row.measure) == measure:
                return row
        known = dict.fromkeys(str(row.measure) for row in self.rows)
        runs = dict.fromkeys(row.run for row in self.rows)
        raise InputError(
            f"{measure} of {run!r} was not compared with {self.baseline!r}; "
            f"runs: {', '.join(runs)}; measures: {', '.join(known)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "baseline": self.baseline,
            "settings": dict(self.settings),
            "differences": [row.to_dict() for row in self.rows],
            "notes": list(self.notes),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat row a difference, as the CSV view and the DataFrame have it."""
        return [self._flat(row) for row in self.rows]

    @staticmethod
    def _flat(row: RunDifference) -> dict[str, Any]:
        data = {key: value for key, value in row.to_dict().items() if key not in ("moved", "possible", "caveats")}
        low, high = row.possible or (math.nan, math.nan)
        ends = {"possible_low": finite(low), "possible_high": finite(high)}
        return {**data, **ends, "caveats": " ".join(caveat.code for caveat in row.caveats), "reason": row.reason}
