"""Gates for continuous integration: conditions on a report that make a command fail."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.measures import Measure, parse_measure
from rag_selectivity.report.report import SCHEMA, Report

_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compared(sign: str, limit: float) -> Callable[[float], bool]:
    """Whether a value is on the given side of a limit: `<`, `<=`, `>` or `>=`."""
    return lambda value: _COMPARED[sign](value, limit)


_CONDITION = re.compile(
    r"\s*(?:(?P<bound>low|high|value)\((?P<inner>.+)\)|(?P<plain>[^<>]+?))\s*(?P<op>[<>]=?)\s*(?P<limit>\S+)\s*"
)


@dataclass(frozen=True, slots=True)
class FailIf:
    """`BoR@10 < 4.5` of the value, `low(BoR@10) < 4.5` or `high(…)` of the interval's bound."""

    measure: Measure
    bound: str
    comparison: str
    limit: float

    def failures(self, report: Report) -> list[str]:
        """A line for each run whose figure meets the condition, or does not exist."""
        found = []
        for run in report:
            value = getattr(report[run, self.measure], self.bound)
            what = str(self.measure) if self.bound == "value" else f"{self.bound}({self.measure})"
            if math.isnan(value):
                found.append(f"{run}: {what} is undefined")
            elif _COMPARED[self.comparison](value, self.limit):
                found.append(f"{run}: {what} = {value:.4g} {self.comparison} {self.limit:g}")
        return found


@dataclass(frozen=True, slots=True)
class MaxDrop:
    """`RA-nWG@10:0.02`: no more than so much worse than in a stored report; for Harm, no more than so much higher."""

    measure: Measure
    amount: float

    def failures(self, report: Report, stored: StoredReport) -> list[str]:
        """A line for each run that is worse by more than the amount, or has no figure to compare."""
        found = []
        for run in report:
            before, now = stored.value(run, self.measure, len(report.runs)), report[run, self.measure].value
            drop = before - now if self.measure.higher_is_better else now - before
            if math.isnan(drop) and before != now:
                found.append(
                    f"{run}: {self.measure} cannot be compared with the stored report ({before:.4g} → {now:.4g})"
                )
            elif drop > self.amount:
                found.append(
                    f"{run}: {self.measure} went from {before:.4g} to {now:.4g}, worse by more than {self.amount:g}"
                )
        return found


@dataclass(frozen=True, slots=True)
class StoredReport:
    """The values of a report that was saved as JSON."""

    path: Path
    values: dict[str, dict[str, float]]

    @classmethod
    def read(cls, path: str | Path) -> StoredReport:
        """From `Report.save`, `evaluate --format json` or the report beside a comparison."""
        file = Path(path)
        try:
            data: Any = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from None
        except ValueError as error:
            raise InputError(f"{file}: not JSON ({error})") from None
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise InputError(
                f"{file}: not a report of rag-selectivity (schema {SCHEMA}); write one with -o report.json"
            )
        return cls(
            file,
            {run: {key: _number(cell) for key, cell in part["measures"].items()} for run, part in data["runs"].items()},
        )

    def value(self, run: str, measure: Measure, runs: int) -> float:
        """The stored figure of a run; with one run on either side, its name does not matter."""
        if run not in self.values and len(self.values) == 1 and runs == 1:
            run = next(iter(self.values))
        if run not in self.values:
            raise InputError(f"{self.path} has no run {run!r} (it has: {', '.join(self.values)})")
        try:
            return self.values[run][str(measure)]
        except KeyError:
            raise InputError(
                f"{self.path} has no {measure} of {run!r} (it has: {', '.join(self.values[run])})"
            ) from None


def _number(cell: dict[str, Any]) -> float:
    """A stored value; null is −inf where the reason says so, else not a number."""
    if cell["value"] is not None:
        return float(cell["value"])
    return -math.inf if "log2 of 0" in cell.get("reason", "") else math.nan


def parse_fail_if(text: str) -> FailIf:
    """Read `BoR@10 < 4.5` or `low(BoR@10) < 4.5`.

    >>> parse_fail_if("low(BoR(rel=5)@10) < 4.5").failures.__name__
    'failures'
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InputError(f"--fail-if {text!r} is not a condition such as 'BoR@10 < 4.5' or 'low(BoR@10) < 4.5'")
    measure = _with_depth(match["inner"] or match["plain"], f"--fail-if {text!r}")
    return FailIf(measure, match["bound"] or "value", match["op"], _limit(match["limit"], f"--fail-if {text!r}"))


def parse_max_drop(text: str) -> MaxDrop:
    """Read `RA-nWG@10:0.02`."""
    name, colon, amount = text.rpartition(":")
    if not colon:
        raise InputError(f"--max-drop {text!r} is not MEASURE@K:AMOUNT, as in RA-nWG@10:0.02")
    measure = _with_depth(name, f"--max-drop {text!r}")
    if measure.higher_is_better is None:
        raise InputError(f"--max-drop {text!r}: {measure.name} is a property of the corpus and cannot get worse")
    return MaxDrop(measure, _limit(amount, f"--max-drop {text!r}"))


def failures(
    report: Report, conditions: Sequence[FailIf], drops: Sequence[MaxDrop] = (), stored: StoredReport | None = None
) -> list[str]:
    """What the gates find wrong with a report, a line each."""
    if drops and stored is None:
        raise InputError("--max-drop needs --against FILE, a report saved as JSON")
    found = [line for condition in conditions for line in condition.failures(report)]
    return found + [line for drop in drops if stored is not None for line in drop.failures(report, stored)]


def _with_depth(name: str, what: str) -> Measure:
    measure = parse_measure(name)
    if measure.at is None and not measure.takes_whole_lists:
        raise InputError(f"{what}: name the depth, as in {measure}@10")
    return measure


def _limit(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InputError(f"{what}: {text!r} is not a number")
    return value
