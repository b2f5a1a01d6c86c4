"""Gates for continuous integration: conditions on a report that make a command fail."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_selectivity.against import ON, SAME, Against, Change
from rag_selectivity.compare.claims import ClaimsAgainst
from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.inference.betting import highest_rate
from rag_selectivity.measures import Measure, parse_measure
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.claims import ClaimMeasure
from rag_selectivity.results.claims import ClaimReport
from rag_selectivity.results.estimate import AS_JUDGED, LEVELS, Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.wording import counted, visible

__all__ = ["FailIf", "MaxDrop", "distrusted", "failures", "on_lines", "parse_fail_if", "parse_max_drop"]

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
    r"\s*(?:(?P<bound>low|high|value|shown|as_judged)\((?P<inner>.+)\)|(?P<plain>[^<>]+?))\s*(?P<op>[<>]=?)\s*(?P<limit>\S+)\s*"
)
_DROP = re.compile(r"\s*(?:(?P<bound>low|high|value)\((?P<inner>.+)\)|(?P<plain>.+?))\s*:\s*(?P<amount>[^:]*)")


def figure(estimate: Estimate, bound: str = "value") -> float:
    """The figure of an estimate that a gate tests.

    Its `value`, the `low` or `high` end of its interval, the figure `as_judged`, which is the value itself if nothing
    but the labels was used, or the bits `shown` without a model, NaN without random controls.
    """
    chosen: float | None = getattr(estimate, bound)
    if chosen is None:
        chosen = estimate.value if bound == "as_judged" else math.nan
    return chosen


def _exact_end(estimate: Estimate, bound: str, settings: Mapping[str, Any]) -> float:
    """An end of the interval of a success rate that errs in at most half of 1 − level of all cases, not on average.

    Clopper and Pearson 1934. The interval that is shown (mid-P) is nearer to its level, and errs more often for some
    rates. Rates of weighted or clustered queries, and completed ones, have their own interval.
    """
    as_drawn = estimate.basis == AS_JUDGED and estimate.effective is None and "clusters" not in settings
    if bound not in ("low", "high") or not as_drawn:
        return figure(estimate, bound)
    successes, tail = round(estimate.value * estimate.n), (1 - settings["level"]) / 2
    events = successes if bound == "high" else estimate.n - successes
    highest = float(highest_rate(np.array([events]), np.array([estimate.n]), tail)[0])
    return highest if bound == "high" else 1 - highest


def _undefined(estimate: Estimate, bound: str) -> str:
    """Why the figure of a gate is undefined."""
    if bound == "shown" and estimate.shown is None:
        return "it needs random controls, and is known of BoR only (give controls=…, --controls FILE)"
    return estimate.reason or "the figure has no interval"


@dataclass(frozen=True, slots=True)
class FailIf:
    """The gate `BoR@10 < 4.5` on a figure; `low(BoR@10) < 4.5` or `high(…)` is on an end of its interval.

    With random controls, `shown(BoR@10) < 2` is on the bits that are shown without a model, and `as_judged(BoR@10)` on
    the figure without the controls.
    """

    measure: Measure | ClaimMeasure
    bound: str
    comparison: str
    limit: float

    def failures(self, report: Report | ClaimReport) -> list[str]:
        """A line for each run whose figure meets the condition or is undefined."""
        lines = []
        for run in report:
            estimate = report[run, str(self.measure)]
            value = figure(estimate, self.bound)
            if isinstance(report, Report) and isinstance(self.measure, Success) and not math.isnan(value):
                value = _exact_end(estimate, self.bound, report.settings)
            what = str(self.measure) if self.bound == "value" else f"{self.bound}({self.measure})"
            if estimate.possible is not None and self.bound != "low":
                lines += self._of_range(f"{run}: {what}", estimate.possible)
            elif math.isnan(value):
                lines.append(f"{run}: {what} is undefined: {_undefined(estimate, self.bound)}")
            elif _COMPARED[self.comparison](value, self.limit):
                lines.append(f"{run}: {what} = {value:.4g} {self.comparison} {self.limit:g}")
        return lines

    def _of_range(self, what: str, possible: tuple[float, float]) -> list[str]:
        """The lines for a figure with a possible range: a gate passes only if the whole range passes."""
        between = f"is between {possible[0]:.4g} and {possible[1]:.4g}, since lists are judged in part"
        if self.bound == "high":
            return [f"{what} is unknown: {self.measure} {between}"]
        if any(_COMPARED[self.comparison](end, self.limit) for end in possible):
            return [f"{what} {between}, and {self.comparison} {self.limit:g} is not ruled out"]
        return []


@dataclass(frozen=True, slots=True)
class MaxDrop:
    """The gate `RA-nWG@10:0.02`: the figure is at most 0.02 worse than in a stored report (for Harm: higher).

    `low(RA-nWG@10):0.02` uses the worst end of the paired interval of the difference: it fails unless the queries show
    that the figure is at most 0.02 worse.
    """

    measure: Measure | ClaimMeasure
    amount: float
    bound: str = "value"

    def failures(self, report: Report | ClaimReport, against: Against | ClaimsAgainst) -> list[str]:
        """A line for each run that is worse by more than the amount, or whose figures cannot be compared."""
        lines = [self._failure(run, _change(against, run, self.measure)) for run in report]
        return [line for line in lines if line is not None]

    def _failure(self, run: str, change: Change) -> str | None:
        before, now = figure(change.before), figure(change.now)
        drop, *bounds = _for_the_worse(change, self.measure)
        if change.reason is not None:
            return f"{run}: {self.measure} cannot be compared: {change.reason}"
        if change.before.possible is not None or change.now.possible is not None:
            return self._of_ranges(run, change)
        if math.isnan(drop) and before != now:
            reason = change.now.reason or change.before.reason
            return f"{run}: {self.measure} cannot be compared ({before:.4g} → {now:.4g}): {reason}"
        if self.bound == "low" and math.isnan(bounds[1]):
            compared = counted(change.n, "query", "queries")
            return (
                f"{run}: low({self.measure}) is unknown: {compared} give no paired interval ({before:.4g} → {now:.4g})"
            )
        drop = 0.0 if math.isnan(drop) else drop  # no success in either report
        worst = max(drop, bounds[1]) if self.bound == "low" else drop
        room = SAME * max((abs(value) for value in (before, now) if math.isfinite(value)), default=0.0)
        if worst <= self.amount + room:
            return None
        shown = _decimals(worst, self.amount)
        unproven = f"a drop of {worst:.{shown}f} is not ruled out; " if worst > drop else ""
        return (
            f"{run}: {self.measure} went from {before:.{shown}f} to {now:.{shown}f}, {_worse(drop, bounds, shown)} "
            f"over {counted(change.n, 'query', 'queries')}; {unproven}at most {self.amount:g} is allowed"
        )

    def _of_ranges(self, run: str, change: Change) -> str | None:
        """The line for figures with possible ranges: the largest drop that unjudged passages allow."""
        before, now = (each.possible or (each.value, each.value) for each in (change.before, change.now))
        worst = before[1] - now[0] if self.measure.higher_is_better else now[1] - before[0]
        if worst <= self.amount:
            return None
        return (
            f"{run}: {self.measure} was between {before[0]:.4g} and {before[1]:.4g} and is between {now[0]:.4g} and "
            f"{now[1]:.4g}, since lists are judged in part: it may be worse by up to {worst:.4g}; "
            f"at most {self.amount:g} is allowed"
        )


# -- words ------------------------------------------------------------------------------------------------


def _for_the_worse(change: Change, measure: Measure | ClaimMeasure) -> tuple[float, float, float]:
    """How much worse the figure is now, and the ends of the interval of that, the worse end last."""
    gain = figure(change.now) - figure(change.before)
    if measure.higher_is_better:
        return -gain, -change.high, -change.low
    return gain, change.low, change.high


def _decimals(drop: float, amount: float) -> int:
    """The fewest decimals, at least three, with which the printed drop is still more than the amount."""
    return next((places for places in range(3, 15) if float(f"{drop:.{places}f}") > amount), 15)


def _worse(drop: float, bounds: Sequence[float], places: int) -> str:
    """`worse by 0.032 [0.010, 0.055]`, or `better by …`."""
    word, amounts = ("better", [-drop, -bounds[1], -bounds[0]]) if drop < 0 else ("worse", [drop, *bounds])
    amount, low, high = (re.sub(r"^-(0\.0*)$", r"\1", f"{value:.{places}f}") for value in amounts)
    interval = ", without an interval," if math.isnan(sum(bounds)) else f" [{low}, {high}]"
    return f"{word} by {amount}{interval}"


# -- reading ----------------------------------------------------------------------------------------------


def parse_fail_if(text: str, *, what: str | None = None, of_claims: bool = False) -> FailIf:
    """Read `BoR@10 < 4.5` or `low(BoR@10) < 4.5`.

    `what` is what an error calls the condition, where it does not come from the option `--fail-if`. With `of_claims`
    the measure is one of claim checks, as in `ContextRecall@5 < .8`.

    >>> parse_fail_if("low(BoR(rel=5)@10) < 4.5").failures.__name__
    'failures'
    """
    what = what or f"--fail-if {text!r}"
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InputError(f"{what} is not a condition such as 'BoR@10 < 4.5' or 'low(BoR@10) < 4.5'")
    measure = _with_depth(match["inner"] or match["plain"], what, of_claims)
    return FailIf(measure, match["bound"] or "value", match["op"], _limit(match["limit"], what))


def parse_max_drop(text: str, *, of_claims: bool = False) -> MaxDrop:
    """Read `RA-nWG@10:0.02` or `low(RA-nWG@10):0.02`; `of_claims` as in `parse_fail_if`.

    >>> drop = parse_max_drop("low(RA-nWG@10):0.02")
    >>> drop.bound, str(drop.measure), drop.amount
    ('low', 'RA-nWG@10', 0.02)
    """
    match = _DROP.fullmatch(text)
    if match is None:
        raise InputError(f"--max-drop {text!r} is not MEASURE@K:AMOUNT, as in RA-nWG@10:0.02 or low(RA-nWG@10):0.02")
    measure = _with_depth(match["inner"] or match["plain"], f"--max-drop {text!r}", of_claims)
    if match["bound"] == "high":
        raise InputError(
            f"--max-drop {text!r}: high(…) cannot be used here; use {measure}:{match['amount']} for the figures "
            f"themselves, or low({measure}):{match['amount']} for the worst end of the interval"
        )
    if measure.higher_is_better is None and isinstance(measure, ClaimMeasure):
        raise InputError(
            f"--max-drop {text!r}: {measure.name} cannot get worse, since neither more nor less of it is better; "
            f"name another measure"
        )
    if measure.higher_is_better is None:
        raise InputError(
            f"--max-drop {text!r}: {measure.name} cannot get worse, since it depends on corpus, judgments and K only; "
            f"name another measure"
        )
    return MaxDrop(measure, _limit(match["amount"], f"--max-drop {text!r}"), match["bound"] or "value")


def check_options(drops: Sequence[MaxDrop], *, stored: bool, on: str | None = None) -> None:
    """Refuse --max-drop, --against and --on if one is given without another that it needs."""
    if drops and not stored:
        raise InputError(
            "--max-drop needs a stored report: add --against FILE, a report saved as JSON (how-to: gate-a-pull-request)"
        )
    if stored and not drops:
        raise InputError(
            "--against needs --max-drop: name each figure that must not get worse, and by how much it may, "
            "as in --max-drop 'RA-nWG@10:0.02' (how-to: gate-a-pull-request)"
        )
    if on is not None and not stored:
        raise InputError("--on needs a stored report: add --against FILE, a report saved as JSON")
    if on is not None and on not in ON:
        raise InputError(f"--on must be one of {', '.join(ON)}, got {on!r}")


def check_level(level: str | None) -> None:
    """Refuse an unknown level of --require-trust."""
    if level is not None and level not in LEVELS:
        raise InputError(
            f"require_trust (--require-trust) must be one of {', '.join(LEVELS)}, got {level!r}"
            f"{did_you_mean(level, LEVELS)}"
        )


def distrusted(report: Report | ClaimReport, level: str, measures: Sequence[Measure | ClaimMeasure] = ()) -> list[str]:
    """A line for each caveat of this level or above that a figure has.

    Parameters
    ----------
    report : Report
    level : {"note", "soft", "strong"}
    measures : sequence of Measure
        The figures that must be trusted. Default: all that the report shows.

    Raises
    ------
    InputError
        If the level is not known.
    """
    check_level(level)
    keys = {str(measure) for measure in measures}
    lines = []
    for name, run in report.runs.items():
        for caveat in run.caveats:
            concerned = [key for key in caveat.measures if key in keys or not keys]
            if concerned and caveat.is_at_least(level):
                lines.append(f"{name}: {', '.join(concerned)}: {caveat.code} ({caveat.level}): {caveat.text}")
    return lines


def failures(
    report: Report | ClaimReport,
    conditions: Sequence[FailIf],
    drops: Sequence[MaxDrop] = (),
    against: Against | ClaimsAgainst | None = None,
    *,
    require_trust: str | None = None,
) -> list[str]:
    """The gates that a report fails, one line each.

    With `require_trust`, a figure that a gate names fails if it has a caveat of this level (`note`, `soft`, `strong`)
    or above. Without gates, this holds for every figure of the report.

    Raises
    ------
    InputError
        If `drops` or `against` is given without the other, or if `low(…)` has no interval.
    """
    check_options(drops, stored=against is not None)
    lines = [line for condition in conditions for line in condition.failures(report)]
    if require_trust is not None:
        gated = [*(condition.measure for condition in conditions), *(drop.measure for drop in drops)]
        lines += distrusted(report, require_trust, gated)
    if against is None:
        return lines
    for drop in drops:
        if drop.bound == "low":
            _check_paired(drop, against)
        lines += drop.failures(report, against)
    return lines


def _check_paired(drop: MaxDrop, against: Against | ClaimsAgainst) -> None:
    """Refuse `low(…)` if no interval can be computed."""
    if against.bootstrap is None:
        what = f"--max-drop 'low({drop.measure}):{drop.amount:g}'"
        raise InputError(f"{what} needs intervals: leave out --resamples 0")


def _change(against: Against | ClaimsAgainst, run: str, measure: Measure | ClaimMeasure) -> Change:
    if isinstance(measure, ClaimMeasure) and isinstance(against, ClaimsAgainst):
        return against.change(run, measure)
    if isinstance(measure, Measure) and isinstance(against, Against):
        return against.change(run, measure)
    raise InputError(f"{measure} is not a measure of {against.stored.path}")


def _with_depth(name: str, what: str, of_claims: bool = False) -> Measure | ClaimMeasure:
    if of_claims:
        try:
            return ClaimMeasure.parse(name)
        except InputError as error:
            raise InputError(f"{what}: {error}") from None
    measure = parse_measure(name)
    if measure.at is None and not measure.takes_whole_lists:
        raise InputError(f"{what}: name the depth, as in {measure}@10")
    return measure


def on_lines(failures: Iterable[str]) -> str:
    """Each failure on a line; what it quotes begins no line of its own."""
    return "\n".join(map(visible, failures))


def _limit(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InputError(f"{what}: {text!r} is not a number")
    if math.isinf(value):
        raise InputError(f"{what}: the limit is not a finite number, so that the gate would always fail or never")
    return value
