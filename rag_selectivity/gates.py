"""Gates: conditions on the figures of a report that make a command, a test or a build fail."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_selectivity.compare.differences import ROUNDING
from rag_selectivity.compare.stored import differences_since
from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.measures import Measure, parse_measure
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.conditions import limit_of, parts_of
from rag_selectivity.results.claims import ClaimMeasure, ClaimReport
from rag_selectivity.results.difference import RunDifference
from rag_selectivity.results.estimate import AS_JUDGED, FAVOURS, LEVELS, Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.results.stored import read_claims, read_report
from rag_selectivity.wording import counted, visible

__all__ = ["Gate", "GateResult", "check", "parse"]

_SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_OPPOSITE = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}
#: What a gate can look at: figures, how much worse a figure is than in a stored report, and levels of caveats.
FIGURE, DROP, CAVEATS = "figure", "drop", "caveats"
_VALUE, _LOW, _HIGH, _SHOWN = "value", "low", "high", "shown"
_BOUNDS = (_LOW, _HIGH, _SHOWN, "as_judged")
#: What can stand around a measure, from the outside in.
_CALLS = {(), (DROP,), (CAVEATS,), (_LOW, DROP), (_HIGH, DROP), *((bound,) for bound in _BOUNDS)}
_KNOWN = "known are M, low(M), high(M), shown(M), as_judged(M), caveats(M), drop(M), also of Harm, and high(drop(M))"


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition that a report must not meet.

    Attributes
    ----------
    kind : {"figure", "drop", "caveats"}
    bound : {"value", "low", "high", "shown", "as_judged"}
        The figure itself, an end of its interval, the bits that are shown without a model of the judge's errors, or
        the figure without random controls and people's labels.
    measure : Measure or None
        None, for caveats of any figure.
    sign : {"<", "<=", ">", ">="}
    limit : float
        The limit of figures; for caveats the place of the level among note, soft and strong.
    """

    kind: str
    bound: str
    measure: Measure | None
    sign: str
    limit: float

    @property
    def opposite(self) -> Gate:
        """The gate that fails exactly where this one passes, if the figure is defined."""
        return replace(self, sign=_OPPOSITE[self.sign])

    @property
    def what(self) -> str:
        """What it looks at, as in `low(BoR@10)`."""
        if self.kind == CAVEATS:
            return CAVEATS if self.measure is None else f"{CAVEATS}({self.measure})"
        what = f"{DROP}({self.measure})" if self.kind == DROP else str(self.measure)
        return what if self.bound == _VALUE else f"{self.bound}({what})"

    def __str__(self) -> str:
        limit = LEVELS[int(self.limit)] if self.kind == CAVEATS else f"{self.limit:g}"
        return f"{self.what} {self.sign} {limit}"

    def meets(self, value: float) -> bool:
        """Whether a figure is on the side of the limit where the gate fails."""
        return bool(_SIGNS[self.sign](value, self.limit))

    def look(self, estimate: Estimate) -> float:
        """The figure itself where there is none as judged beside it, and NaN where no bits are shown."""
        found: float | None = getattr(estimate, self.bound)
        return (math.nan if self.bound == _SHOWN else estimate.value) if found is None else found


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate found in a run.

    Attributes
    ----------
    gate : Gate
    run : str
    message : str
        Why it failed; empty if it passed.
    note : str
        With `on="shared"`, over which queries a drop was computed; else empty.
    """

    gate: Gate
    run: str
    message: str = ""
    note: str = ""

    @property
    def passed(self) -> bool:
        return not self.message


def parse(text: str, *, of_claims: bool = False) -> Gate:
    """Read a condition.

    Parameters
    ----------
    text : str
        `BoR@10 < 4.5`, `low(BoR@10) < 4.5` or `high(…)` for an end of the interval; with random controls
        `shown(BoR@10) < 2` and `as_judged(BoR@10) < 2`. `drop(RA-nWG@10) > .02`: worse than in a stored report by more
        than that, also for measures of which less is better; `high(drop(RA-nWG@10)) > .02`: not shown to be worse by at
        most that. `caveats(BoR@10) >= soft`, or `caveats >= strong` for those of all figures.
    of_claims : bool
        Whether the measure is one of claim checks, as in `ContextRecall@5 < .8`.

    Raises
    ------
    InputError

    Examples
    --------
    >>> parse("high( drop(ra-nwg@10) ) > .02").what
    'high(drop(RA-nWG@10))'
    >>> str(parse("caveats >= strong"))
    'caveats >= strong'
    """
    named = f"gate {text!r}"
    found = parts_of(text, r"low|high|shown|as_judged|drop|caveats|[a-z_]+(?=\([^(=]*\)$)")
    if found is None:
        raise InputError(f"{named} is no condition (--fail-if) such as 'BoR@10 < 4.5' or 'drop(RA-nWG@10) > .02'")
    calls, name = found.calls, found.name
    if calls not in _CALLS:
        raise InputError(f"{named}: {'('.join(calls)}({name}) is nothing that a gate can look at; {_KNOWN}")
    kind = next((each for each in (DROP, CAVEATS) if each in (*calls, name)), FIGURE)
    bound = next((call for call in calls if call != kind), _VALUE)
    measure: Measure | None = None
    if calls or kind != CAVEATS:
        try:
            measure = ClaimMeasure.parse(name) if of_claims else parse_measure(name)
        except InputError as error:
            raise InputError(f"{named}: {error}") from None
        if not of_claims and measure.at is None and not measure.takes_whole_lists:
            raise InputError(f"{named}: name the depth, as in {measure}@10")
        if kind == DROP and measure.higher_is_better is None:
            why = "neither more nor less of it is better" if of_claims else "it depends on corpus, judgments and K only"
            raise InputError(f"{named}: {measure} cannot get worse, since {why}; name another measure")
    if measure is not None and kind != CAVEATS:
        limit = limit_of(found.limit, named)
        lowest, highest = measure.ends
        lowest = lowest if kind == FIGURE else lowest - highest
        if not lowest <= limit <= highest:
            meant = f"; {limit:g}% is {limit / 100:g}" if 1 < limit <= 100 else ""
            raise InputError(f"{named}: the figure is from {lowest:g} to {highest:g}, never {limit:g}{meant}")
        return Gate(kind, bound, measure, found.sign, limit)
    if found.limit not in LEVELS:
        wrong = f"{found.limit!r}{did_you_mean(found.limit, LEVELS)}"
        raise InputError(f"{named}: caveats have the levels {', '.join(LEVELS)}, not {wrong}")
    return Gate(kind, bound, measure, found.sign, float(LEVELS.index(found.limit)))


def check(
    report: Report | ClaimReport,
    gates: Iterable[str | Gate],
    against: str | Report | ClaimReport | Any = None,
    *,
    on: str = "all",
) -> list[GateResult]:
    """What each gate finds in each run of a report.

    A gate fails where its condition holds, where its figure is undefined, and where lists are judged in part and some
    grades of the rest would make the condition hold.

    Parameters
    ----------
    report : Report or ClaimReport
    gates : sequence of str or Gate
        As in `parse`.
    against : path, Report or ClaimReport, optional
        The report, saved as JSON, from which drops are counted.
    on : {"all", "shared"}
        The queries of drops: all, which both reports must have with the same judgments; or those that they share.

    Raises
    ------
    InputError
        If a gate cannot be read or the report lacks its measure; if drops have no stored report, or one that cannot be
        compared; if `high(drop(…))` has no interval.
    """
    of_claims = isinstance(report, ClaimReport)
    read = [parse(gate, of_claims=of_claims) if isinstance(gate, str) else gate for gate in gates]
    since = _since(report, [gate for gate in read if gate.kind == DROP], against, on)
    results = []
    for gate in read:
        for run in report:
            note = ""
            if gate.kind == CAVEATS:
                message = _of_caveats(gate, run, report)
            elif gate.kind == DROP:
                rows, note = since[run]
                message = _of_drop(gate, rows[gate], " as judged" * (report[run, str(gate.measure)].basis != AS_JUDGED))
            else:
                estimate = report[run, str(gate.measure)]
                message = _beyond(gate, _exact(gate, estimate, report.settings), estimate)
            results.append(GateResult(gate, run, message and visible(f"{run}: {message}"), note))
    return results


def _since(
    report: Report | ClaimReport, drops: Sequence[Gate], against: Any, on: str
) -> dict[str, tuple[dict[Gate, RunDifference], str]]:
    """For each run, the difference from the stored report under each gate on a drop, and a note on the queries."""
    if against is None and drops:
        raise InputError(f"gate {str(drops[0])!r} needs a stored report: against=PATH (--against FILE)")
    if against is None:
        return {}
    if not drops:
        mend = "name each figure that must not get worse, and by how much it may, as in 'drop(RA-nWG@10) > .02'"
        raise InputError(f"a stored report (--against) needs a gate on a drop: {mend} (how-to: gate-a-pull-request)")
    for gate in drops:
        if gate.bound != _VALUE and report.bootstrap is None:
            raise InputError(f"gate {str(gate)!r} needs intervals: leave out --resamples 0 (bootstrap=None)")
    stored, labels = against, "judgments"
    if not isinstance(against, (Report, ClaimReport)):
        stored = read_claims(against) if isinstance(report, ClaimReport) else read_report(against)
    if isinstance(stored, ClaimReport) and isinstance(report, ClaimReport):
        stored.refuse_other(report.judge, list(report.runs))
        labels = "questions or reference answers"
    measures, found = [gate.measure for gate in drops if gate.measure is not None], {}
    for run, now in report.runs.items():
        sides = run, now, stored.run_like(run, len(report.runs)), str(stored.path or "the stored report")
        rows, note = differences_since(*sides, measures, report.bootstrap, on=on, labels=labels)
        found[run] = dict(zip(drops, rows, strict=True)), note
    return found


# -- what a gate finds ------------------------------------------------------------------------------------


def _of_drop(gate: Gate, row: RunDifference, judged: str) -> str:
    """Why a figure that changed fails; empty if it passes. The row is the figure now minus the stored one.

    `judged` says that it is as judged, where the report shows a figure that rests on more.
    """
    before, now, sign = row.baseline_value, row.value, -1 if row.measure.higher_is_better else 1
    low, high = sorted((sign * row.low, sign * row.high))
    # Without a success on both sides nothing has changed.
    value = 0.0 if before == now == -math.inf else sign * row.difference + 0.0  # not −0
    possible = row.possible if sign > 0 or row.possible is None else (-row.possible[1], -row.possible[0])
    drop = Estimate(value, low, high, row.n, row.n_total, row.reason, possible)
    tested = gate.look(drop)
    room = ROUNDING * max((abs(each) for each in (before, now) if math.isfinite(each)), default=0.0)
    # An end of an interval is on the side of 0 that p says, however near it is.
    is_limit = abs(tested - gate.limit) <= room and (gate.limit != 0 or gate.bound == _VALUE)
    message = _beyond(gate, gate.limit if is_limit else tested, drop)
    # A drop is known where it is found in spite of the labels, and a rise likewise.
    if row.unequal is not None and not math.isnan(value):
        favours_stored = row.unequal.figures[FAVOURS] == row.baseline
        if favours_stored == bool(message):
            return f"{gate.what} is unknown, and {gate.sign} {gate.limit:g} is not ruled out: {row.unequal.text}"
    if not message or row.possible is not None or (math.isnan(value) and row.reason):
        return message
    # Where less is better, what counts as a drop is a rise of the figure.
    change, rose = ("drop", "") if sign < 0 else ("rise", "it rose " if now > before else "it fell ")
    ends = ", ".join(f"{round(end, 12) + 0.0:.4g}" for end in (low, high))
    few = "" if row.moved or gate.bound == _VALUE else ", which so few queries leave open though none of them changed"
    known = "without an interval" if math.isnan(low) else f"{change} {value:.4g} [{ends}]{few}"
    over = f"{rose}from {before:.4g} to {now:.4g}{judged} over {counted(row.n, 'query', 'queries')}"
    return f"{message} ({over}; {known})"


def _beyond(gate: Gate, value: float, estimate: Estimate) -> str:
    """`BoR@10 = 4.2 < 4.5`, or why the gate fails otherwise; empty if it passes."""
    if estimate.possible is not None and gate.bound != _LOW:
        least, most = estimate.possible
        between = f"is between {least:.4g} and {most:.4g}, since lists are judged in part"
        if gate.bound == _HIGH:
            return f"{gate.what} is unknown: the figure {between}"
        if any(map(gate.meets, estimate.possible)):
            return f"{gate.what} {between}, and {gate.sign} {gate.limit:g} is not ruled out"
        return ""
    if math.isnan(value):
        reason = estimate.reason or "the figure has no interval"
        if gate.bound == _SHOWN and estimate.shown is None:
            reason = "it needs random controls, and is known of BoR only (give controls=…, -c data.controls=FILE)"
        return f"{gate.what} is undefined: {reason}"
    if not gate.meets(value):
        return ""
    # With as many digits as show that it holds.
    texts = [f"{value:.{digits}g}" for digits in range(4, 18)]
    shown = next((text for text in texts if gate.meets(float(text))), texts[-1])
    return f"{gate.what} = {shown} {gate.sign} {gate.limit:g}"


def _of_caveats(gate: Gate, run: str, report: Report | ClaimReport) -> str:
    """The caveats of a run's figures that are of such levels; empty without any."""
    asked = None if gate.measure is None else str(gate.measure)
    if asked is not None:
        report[run, asked]  # an error if the report lacks it
    found = []
    for caveat in report.runs[run].caveats:
        concerned = [key for key in caveat.measures if asked in (None, key)]
        if concerned and gate.meets(LEVELS.index(caveat.level)):
            found.append(f"{', '.join(concerned)}: {caveat.code} ({caveat.level}): {caveat.text.rstrip('.')}")
    return "; ".join(found)


def _exact(gate: Gate, estimate: Estimate, settings: Mapping[str, Any]) -> float:
    """What a gate looks at; of a success rate, an end that errs in at most half of 1 − level of all cases.

    Clopper and Pearson 1934. The interval that is shown (mid-P) is nearer to its level on average, and errs more often
    for some rates. Rates of weighted or clustered queries, and completed ones, have their own interval.
    """
    value, of_rate = gate.look(estimate), isinstance(gate.measure, Success) and gate.bound in (_LOW, _HIGH)
    plain = estimate.basis == AS_JUDGED and estimate.effective is None and "clusters" not in settings
    if not of_rate or math.isnan(value) or not plain:
        return value
    low, high = clopper_pearson(round(estimate.value * estimate.n), estimate.n, (1 - settings["level"]) / 2)
    return float(low if gate.bound == _LOW else high)
