"""`Experiment`: several metrics and guardrails of an A/B test, row by row, decided together."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.inference.paired import holm
from rag_selectivity.online.arms import Metric, TwoArms
from rag_selectivity.online.records import AUTO, Unit, named
from rag_selectivity.results.difference import BETTER, WORSE
from rag_selectivity.results.workflows import BROKEN, EQUAL, KEPT, NOT_YET, ArmComparison, ExperimentDecision
from rag_selectivity.tables.cells import is_missing, names_in, number_of, shown
from rag_selectivity.wording import counted, enumeration

#: Rows that are handed on together: a call for each value would cost more than the value.
_ROWS_AT_ONCE = 4096
_Sides = tuple[list[Any], list[Any]]


class Experiment:
    """An A/B test with several metrics: rows come in, and a decision can be asked for at any time.

    Rows of one `user` (else `session`), if they name it, are not independent, and count as one value: their mean at one
    look; if `sequential`, the first, since a value that could change at each look would be another chance of an error.

    Parameters
    ----------
    metrics : sequence of Metric
        At least one that is no guardrail. The verdicts on them are corrected for their number by Holm; guardrails must
        all be kept, which needs no correction.
    arms : (str, str)
        The names of the arms, the baseline first.
    sequential, planned
        As in `compare_arms`.

    Raises
    ------
    InputError
        If no metric is to be improved, two have one name, or an option is wrong.

    Examples
    --------
    >>> harm = Metric("harm", "mean", higher_is_better=False, margin=0.05, guardrail=True)
    >>> test = Experiment([Metric("cited"), harm])
    >>> for i in range(4000):
    ...     test.add({"arm": "ab"[i % 2], "cited": i % 10 < (4, 7)[i % 2], "harm": (i % 7) / 10})
    >>> decided = test.decide()
    >>> decided.verdict, decided.metrics[0].verdict, decided.guardrails[0].verdict
    ('better', 'better', 'kept')
    """

    def __init__(
        self,
        metrics: Iterable[Metric],
        *,
        arms: Sequence[str] = ("a", "b"),
        sequential: bool = True,
        planned: Sequence[float] = (1, 1),
    ) -> None:
        self.metrics = tuple(metrics)
        names = [metric.name for metric in self.metrics]
        if all(metric.guardrail for metric in self.metrics):
            raise InputError("an experiment needs a metric that is to be improved, beside its guardrails")
        if len(set(names)) < len(names):
            raise InputError(f"two metrics have one name: {', '.join(names)}")
        if len(names_in(arms, "arms")) != 2 or arms[0] == arms[1]:
            raise InputError(f"arms (--arms) must be two different names, the baseline first, got {shown(arms)}")
        self._arms, self._rows, self._sequential, self._planned = arms, 0, sequential, planned
        self._compared = {metric.name: self._two_arms(metric) for metric in self.metrics}
        #: The values, the covariates and the units of both arms that are to be handed on.
        self._waiting: dict[str, list[_Sides]] = {name: [([], []), ([], []), ([], [])] for name in names}
        self._unit = Unit(AUTO, "leave the column out, if rows were assigned one by one")
        self._side_of: dict[str, int] = {}
        #: The units that have a value of a metric already.
        self._counted: dict[str, set[str]] = {name: set() for name in names}
        self._missing = {name: [0, 0] for name in names}
        self._columns: tuple[str, ...] = ()

    def _two_arms(self, metric: Metric) -> TwoArms:
        return TwoArms(metric, sequential=self._sequential, planned=self._planned)

    def add(self, row: Mapping[str, Any], where: str = "") -> None:
        """See a row: {arm, metric: value …}. A metric that is missing or None is counted.

        Raises
        ------
        InputError
            If the row is of no arm of the experiment, a value is no number, or its user was in the other arm.
        """
        self._rows += 1
        where = where or f"row {self._rows}"
        if not isinstance(row, Mapping):
            raise InputError(f"{where}: must be a row such as {{arm, metric: value}}, got {shown(row)}")
        self._columns = self._columns or tuple(map(str, row))
        arm = named(row, "arm", where)
        if arm not in self._arms:
            raise InputError(
                f"{where}: arm {shown(row.get('arm'))} is neither {self._arms[0]!r} nor {self._arms[1]!r}: name the "
                "arms of the experiment, the baseline first"
            )
        side, unit = self._arms.index(arm), self._unit.of(row, where)
        if unit is not None and self._side_of.setdefault(unit, side) != side:
            raise InputError(
                f"{where}: {self._unit.name} {unit!r} is in arm {arm!r}, and was in {self._arms[1 - side]!r} before: "
                f"leave out each {self._unit.name} that is in both, or {self._unit.otherwise}"
            )
        for metric in self.metrics:
            value, other = _number(row.get(metric.name), metric.name, where), 0.0
            fault, column = metric.fault_of(value, sequential=self._sequential), metric.name
            if metric.covariate is not None and not (fault or math.isnan(value)):
                other, column = _number(row.get(metric.covariate), metric.covariate, where), metric.covariate
                fault = metric.fault_of(other, sequential=self._sequential, of_covariate=True)
            if fault:
                raise InputError(f"{where}: {column} {fault}")
            if math.isnan(value) or math.isnan(other):
                self._missing[metric.name][side] += 1
                continue
            if unit is not None and self._sequential:
                if unit in self._counted[metric.name]:
                    continue
                self._counted[metric.name].add(unit)
            for sides, each in zip(self._waiting[metric.name], (value, other, unit), strict=True):
                sides[side].append(each)
        if self._sequential and self._rows % _ROWS_AT_ONCE == 0:
            self._hand_on()

    def _hand_on(self) -> None:
        """Give the rows that wait to the comparisons; at one look they wait on, since further rows change means."""
        for metric in self.metrics:
            waiting = self._waiting[metric.name]
            (a, b), others, units = ([np.array(values) for values in sides] for sides in waiting)
            if not self._sequential:
                self._compared[metric.name] = self._two_arms(metric)
            covariate = None if metric.covariate is None else others
            self._compared[metric.name].add(a, b, covariate, units if self._side_of else None)
            if self._sequential:
                waiting[:] = [([], []), ([], []), ([], [])]

    def _refuse_absent(self) -> None:
        """An InputError for a metric without a value in any row: its column, or its covariate's, is not there."""
        for metric in self.metrics:
            counts = self._missing[metric.name]
            if not sum(counts) or sum(counts) < self._rows:
                continue
            wanted = [metric.name, *([] if metric.covariate is None else [metric.covariate])]
            absent = next((column for column in wanted if column not in self._columns), None)
            if absent is None:
                raise InputError(f"no row has a value of {enumeration(wanted)}: leave the metric out, or fill it in")
            raise InputError(
                f"no row has a value of {absent!r}; the first row has {', '.join(self._columns)}"
                f"{did_you_mean(absent, self._columns)}"
            )

    def decide(
        self, *, level: float = 0.95, detect: Mapping[str, float] | None = None, power: float = 0.8
    ) -> ExperimentDecision:
        """The verdicts on what was seen so far.

        Parameters
        ----------
        level : float
            Of all metrics together, and of each guardrail.
        detect : {metric: difference}, optional
            What shall be found, to say how many impressions are still needed.
        power : float

        Raises
        ------
        InputError
            As `compare_arms`, for any metric: shares of traffic are checked on the values of each, so that values which
            are missing in one arm more than in the other are noticed.
        """
        self._refuse_absent()
        self._hand_on()
        if detect is not None and not isinstance(detect, Mapping):
            raise InputError(f"detect must be a dict by metric, got {shown(detect)}")
        wanted = dict(detect or {})
        if unknown := [name for name in wanted if name not in self._compared]:
            raise InputError(
                f"detect names {unknown[0]!r}, which is no metric{did_you_mean(unknown[0], self._compared)}"
            )

        def compared(metric: Metric, at: float) -> ArmComparison:
            return self._compared[metric.name].compared(level=at, detect=wanted.get(metric.name), power=power)

        sought = [metric for metric in self.metrics if not metric.guardrail]
        p = np.array([compared(metric, level).p for metric in sought])
        metrics = tuple(compared(metric, at) for metric, at in zip(sought, _levels(p, level), strict=True))
        guardrails = tuple(compared(metric, level) for metric in self.metrics if metric.guardrail)
        return ExperimentDecision(
            metrics=metrics,
            guardrails=guardrails,
            p_adjusted=tuple(holm(p).tolist()),
            level=level,
            verdict=_together(metrics, guardrails),
            missing={name: (a, b) for name, (a, b) in self._missing.items()},
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        if 0 < len(self._side_of) < self._rows:
            units = counted(len(self._side_of), self._unit.name)
            value = "its first value" if self._sequential else "the mean of its values"
            yield f"{units}, {self._rows:,} rows: each {self._unit.name} counts once, with {value}."
        lacking = [f"{name} in {a:,} and {b:,}" for name, (a, b) in self._missing.items() if a or b]
        if lacking:
            total = counted(sum(map(sum, self._missing.values())), "value")
            yield f"{total} missing in the rows of both arms ({enumeration(lacking)}), and left out."


def _levels(p: np.ndarray[Any, np.dtype[np.float64]], level: float) -> list[float]:
    """The level of each metric's step in Holm's correction; after the first that is not shown, its level."""
    order = np.argsort(np.where(np.isnan(p), np.inf, p), kind="stable")
    levels = [level] * len(p)
    known = int((~np.isnan(p)).sum())
    are_shown = True
    for step, place in enumerate(order.tolist()):
        if are_shown:
            alpha = (1 - level) / max(1, known - step)
            are_shown = bool(p[place] <= alpha)
        levels[place] = 1 - alpha
    return levels


def _together(metrics: tuple[ArmComparison, ...], guardrails: tuple[ArmComparison, ...]) -> str:
    verdicts = {row.verdict for row in metrics}
    rails = {row.verdict for row in guardrails}
    if WORSE in verdicts or BROKEN in rails:
        return WORSE
    if not rails <= {KEPT}:
        return NOT_YET
    if BETTER in verdicts:
        return BETTER
    return EQUAL if verdicts == {EQUAL} else NOT_YET


def _number(value: Any, name: str, where: str) -> float:
    """A number; NaN for a value that is missing."""
    if is_missing(value):
        return math.nan
    try:
        number = number_of(value)
    except (TypeError, ValueError):
        raise InputError(f"{where}: {name} must be a number, got {shown(value)}") from None
    if math.isinf(number):
        raise InputError(f"{where}: {name} is infinite; leave out what is unknown, in both arms alike")
    return number
