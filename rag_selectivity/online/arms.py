"""`compare_arms`: two arms of an A/B test, looked at every day or once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.inference import two_arms
from rag_selectivity.inference.always_valid import Blocks, MeanEvidence
from rag_selectivity.inference.interval import Tested
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.online.records import check_flag, check_share
from rag_selectivity.results.difference import BETTER, WORSE
from rag_selectivity.results.workflows import BROKEN, EQUAL, KEPT, NOT_YET, ArmComparison
from rag_selectivity.tables.cells import LARGEST, check_number, check_one_of, ends_of, shown
from rag_selectivity.wording import counted

KINDS = RATE, MEAN = ("rate", "mean")
#: A share of traffic, or a covariate, that differs with a smaller p-value is taken for a fault.
FAULT_LEVEL = 0.001
#: The most values in a block, unless an arm gets less than one of them.
_LARGEST_BLOCK = 20
#: No traffic is planned for an arm with a smaller share.
_LEAST_SHARE = 1e-6


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of an A/B test, or a guardrail.

    Attributes
    ----------
    name : str
        The column.
    kind : {"rate", "mean"}
    bounds : (low, high)
        Of a mean.
    clip : bool
        Whether values outside the bounds count as the bound.
    higher_is_better : bool
    margin : float, optional
        Differences up to this do not matter; of a guardrail: how much worse the candidate may be.
    guardrail : bool
        Not to be improved, but to be kept: not worse by more than the margin.
    covariate : str, optional
        A column from before the experiment.
    covariate_bounds : (low, high)

    Raises
    ------
    InputError
        If one of them is none, or a guardrail has no margin.
    """

    name: str
    kind: str = RATE
    bounds: tuple[float, float] = (0.0, 1.0)
    clip: bool = False
    higher_is_better: bool = True
    margin: float | None = None
    guardrail: bool = False
    covariate: str | None = None
    covariate_bounds: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.covariate, (str, type(None))):
            raise InputError(f"the names of a metric must be texts, got {shown((self.name, self.covariate))}")
        check_one_of("kind", self.kind, KINDS)
        check_flag("clip", self.clip)
        check_number("margin", self.margin, above=0)
        if self.guardrail and self.margin is None:
            raise InputError(f"guardrail {self.name!r} needs a margin: how much worse the candidate may be")
        for what, bounds in (("bounds", self.bounds), ("covariate_bounds", self.covariate_bounds)):
            object.__setattr__(self, what, ends_of(bounds, what, LARGEST))
        if self.kind == RATE:
            object.__setattr__(self, "bounds", (0.0, 1.0))

    def fault_of(self, value: float, *, sequential: bool, of_covariate: bool = False) -> str:
        """What is wrong with a value of an arm, or a covariate; empty if nothing is, and for NaN."""
        name = "covariate_bounds" if of_covariate else "bounds"
        low, high = getattr(self, name)
        if self.kind == RATE and not of_covariate:
            other = f'For other numbers give kind="mean" (--mean {self.name}=LOW:HIGH)'
            return "" if value in (0, 1) or math.isnan(value) else f"is {value:g}; a rate takes 0 and 1. {other}"
        if not sequential or (self.clip and not of_covariate) or not (value < low or value > high):
            return ""
        clipped = "" if of_covariate else ", or clip=True (--clip) to count what is beyond as the bound"
        return f"is {value:g}, outside {name}=({low:g}, {high:g}); give its bounds{clipped}"


def compare_arms(
    a: Any,
    b: Any,
    kind: str = RATE,
    *,
    sequential: bool = True,
    level: float = 0.95,
    margin: float | None = None,
    higher_is_better: bool = True,
    bounds: tuple[float, float] = (0.0, 1.0),
    clip: bool = False,
    covariate: tuple[Any, Any] | None = None,
    covariate_bounds: tuple[float, float] = (0.0, 1.0),
    planned: Sequence[float] = (1, 1),
    detect: float | None = None,
    power: float = 0.8,
) -> ArmComparison:
    """Compare the outcomes of two arms: b minus a.

    Parameters
    ----------
    a, b : sequence of numbers
        The outcome of each unit that was assigned to the arm (an impression, a session, a user), in the order in which
        they came. Units must be independent: if users were assigned, give one value for each user.
    kind : {"rate", "mean"}
        `rate`: 0 and 1 (or False and True). `mean`: numbers within `bounds`.
    sequential : bool
        True: p and the interval are valid however often one looks. False: for one look, at a number of units that was
        fixed beforehand; looking more often makes false winners.
    level : float
    margin : float, optional
        Differences up to this do not matter: an interval within ±margin is "equal within the margin".
    higher_is_better : bool
        False for harm, latency and cost: then b is better if the difference is below 0.
    bounds : (low, high)
        Of a mean. Needed for `sequential=True`: without a bound, a single value could turn every conclusion.
    clip : bool
        Whether values outside the bounds count as the bound; otherwise they are an error. The figures are then means of
        clipped values.
    covariate : (values of a, values of b), optional
        Something known of each unit from before the experiment, such as the same outcome a week earlier: CUPED. It
        narrows the interval as far as it predicts the outcome.
    covariate_bounds : (low, high)
        For `sequential=True`.
    planned : (share of a, share of b)
        The traffic as planned, in any unit: (1, 1), (0.9, 0.1).
    detect : float, optional
        The difference that shall be found: says how many impressions that needs. Default: the margin.
    power : float

    Returns
    -------
    ArmComparison

    Raises
    ------
    InputError
        If an arm has no traffic, shares of traffic are not as planned (p below .001), the covariate differs between the
        arms (p below .001), so that it cannot be from before the experiment, or a value is not of its kind.

    Notes
    -----
    Sequential, values are paired in their order (in blocks of the planned shares), and the evidence is on the
    differences of pairs: an empirical-Bernstein confidence sequence (`MeanEvidence`). Once: the score test with
    Miettinen and Nurminen's interval for rates, Welch's t-test for means and with a covariate. Where fewer than 15 hits
    or misses are expected in the smaller arm, the interval of two rates comes from Clopper and Pearson's intervals of
    both (MOVER), and p from it. Equal arms of any size are then told apart in at most 6 % of the tests at 5 %; means in
    arms that are too unequal for values so skewed get no interval, p or verdict.

    References
    ----------
    Miettinen and Nurminen 1985; Zou and Donner 2008, Construction of confidence limits about effect measures;
    Johari, Koomen, Pekelis and Walsh 2022, Always valid inference; Deng, Xu, Kohavi and Walker 2013 (CUPED).

    Examples
    --------
    >>> found = compare_arms([0, 0, 1, 0] * 500, [0, 1, 1, 0] * 500, kind="rate")
    >>> found.difference, found.verdict, found.p <= 0.05, found.low > 0
    (0.25, 'better', True, True)
    """
    if covariate is not None and (not isinstance(covariate, Sequence) or len(covariate) != 2):
        raise InputError(f"covariate must be (values of a, values of b), got {shown(covariate)}")
    known = None if covariate is None else "covariate"
    metric = Metric("outcome", kind, bounds, clip, higher_is_better, margin, False, known, covariate_bounds)
    arms = TwoArms(metric, sequential=sequential, planned=planned)
    arms.add(a, b, covariate)
    return arms.compared(level=level, detect=detect, power=power)


class TwoArms:
    """The outcomes of two arms, seen part by part in memory that does not grow with them.

    Parameters
    ----------
    metric : Metric
    sequential, planned
        As in `compare_arms`.
    """

    def __init__(self, metric: Metric, *, sequential: bool = True, planned: Sequence[float] = (1, 1)) -> None:
        check_flag("sequential", sequential)
        self.metric, self.sequential = metric, bool(sequential)
        self._has_covariate = metric.covariate is not None
        self._is_of_counts = metric.kind == RATE and not self._has_covariate
        self._share = _share_of(planned)
        self._clipped = 0
        self._moments = (two_arms.ArmMoments(), two_arms.ArmMoments())
        self._blocks, self._covariate_blocks = Blocks(_sizes(self._share)), Blocks(_sizes(self._share))
        self._width = metric.bounds[1] - metric.bounds[0]
        other_width = metric.covariate_bounds[1] - metric.covariate_bounds[0]
        self._steepest = self._width / other_width
        self._balance = MeanEvidence(other_width)
        self._slope_sums = np.zeros(2)
        self._evidence = MeanEvidence((1 + self._has_covariate) * self._width)

    def add(self, a: Any, b: Any, covariate: Sequence[Any] | None = None, units: Sequence[Any] | None = None) -> None:
        """See further values of both arms, either of which may be empty; with units, the means of each are seen.

        Raises
        ------
        InputError
            If a value is not of its kind, or a covariate is missing.
        """
        if (covariate is not None) != self._has_covariate:
            raise InputError("give the covariate of every value, or of none")
        values = [self._checked(each, f"{self.metric.name} of arm {arm}") for each, arm in ((a, "a"), (b, "b"))]
        others: list[FloatArray] | None = None
        if covariate is not None:
            others = [
                self._checked(each, f"covariate of arm {arm}", len(own))
                for each, own, arm in zip(covariate, values, "ab", strict=True)
            ]
        if units is not None and any(len(set(names)) < len(names) for names in units):
            self._is_of_counts = False
            values = [_means_by(each, names) for each, names in zip(values, units, strict=True)]
            others = others and [_means_by(each, names) for each, names in zip(others, units, strict=True)]
        for moments, own, other in zip(self._moments, values, others or (None, None), strict=True):
            moments.add(own, other)
        if not self.sequential:
            return
        differences = self._blocks.add(*values)
        if others is not None:
            steps = self._covariate_blocks.add(*others)
            self._balance.add(steps)
            differences = differences - self._predictable_slopes(differences, steps) * steps
        self._evidence.add(differences)

    def p(self) -> float:
        """The two-sided p-value of no difference; NaN where nothing can be said."""
        if self.sequential:
            return self._evidence.p()
        if not self._is_of_counts:
            return self._two_sided(0.95).p
        return two_arms.rates_p(*self._hits()) if all(arm.n for arm in self._moments) else math.nan

    def compared(self, *, level: float = 0.95, detect: float | None = None, power: float = 0.8) -> ArmComparison:
        """The comparison of what was seen so far; of a guardrail: whether b is worse by at most the margin.

        Raises
        ------
        InputError
            As `compare_arms`.
        """
        check_share("level", level)
        check_share("power", power)
        check_number("detect", detect, above=0)
        ratio_p = self._refuse_faults()
        found = self._two_sided(level)
        first, second = self._moments
        slope = self._slope() if self._has_covariate else None
        metric = self.metric
        wanted = metric.margin if detect is None else detect
        needed = None if wanted is None else self._needed(wanted, level, power)
        once = "Welch" if not self._is_of_counts else "Clopper-Pearson" if two_arms.are_few(*self._hits()) else "score"
        decide = _guarded if metric.guardrail else verdict_on
        return ArmComparison(
            metric=metric.name,
            kind=metric.kind,
            n_a=first.n,
            n_b=second.n,
            mean_a=first.mean,
            mean_b=second.mean,
            difference=found.value,
            p=found.p,
            low=found.low,
            high=found.high,
            level=level,
            margin=metric.margin,
            verdict=decide(found.low, found.high, metric.margin, metric.higher_is_better),
            higher_is_better=metric.higher_is_better,
            guardrail=metric.guardrail,
            sequential=self.sequential,
            test="empirical Bernstein on pairs" if self.sequential else once,
            planned=self._share,
            sample_ratio_p=ratio_p,
            slope=slope,
            variance_left=None if slope is None else self._variance_left(slope),
            detect=wanted,
            needed=needed,
            still_needed=None if needed is None else max(0, needed - first.n - second.n),
            power=power,
            notes=tuple(self._notes(found)),
        )

    # -- what was seen ------------------------------------------------------------------------------

    def _two_sided(self, level: float) -> Tested:
        first, second = self._moments
        if not self.sequential:
            if self._is_of_counts:
                return two_arms.rates(*self._hits(), level)
            return two_arms.means(first, second, level, self._slope())
        low, high = self._evidence.interval(level)
        difference = self._evidence.mean if self._has_covariate else second.mean - first.mean
        # Values that wait for a partner count in the difference and not in the interval.
        if not low <= difference <= high:
            difference = self._evidence.mean if self._evidence.n else difference
        return Tested(difference, self._evidence.p(), max(low, -self._width), min(high, self._width))

    def _hits(self) -> tuple[int, int, int, int]:
        first, second = self._moments
        return round(first.mean * first.n), first.n, round(second.mean * second.n), second.n

    def _slope(self) -> float:
        if not self._has_covariate:
            return 0.0
        if self.sequential:
            products, squares = self._slope_sums
            return float(np.clip(products / squares, -self._steepest, self._steepest)) if squares > 0 else 0.0
        return two_arms.slope_of(*self._moments)

    def _predictable_slopes(self, differences: FloatArray, steps: FloatArray) -> FloatArray:
        """The slope before each pair: one that knew the pair itself would make the test invalid."""
        added = np.stack([differences * steps, steps * steps])
        sums = np.cumsum(np.column_stack([self._slope_sums, added]), axis=1)
        (products, squares), self._slope_sums = sums[:, :-1], sums[:, -1]
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes = np.where(squares > 0, products / squares, 0.0)
        return np.clip(slopes, -self._steepest, self._steepest)

    def _variance_left(self, slope: float) -> float:
        plain = sum(arm.variance() / arm.n for arm in self._moments)
        return sum(arm.variance(slope) / arm.n for arm in self._moments) / plain if plain > 0 else math.nan

    def _needed(self, difference: float, level: float, power: float) -> int | None:
        """Impressions of both arms at which such a difference is shown with the power; None where it is not known."""
        from scipy.special import ndtri

        sizes = self._blocks.sizes
        variance = sum(arm.variance(self._slope()) / size for arm, size in zip(self._moments, sizes, strict=True))
        if not variance > 0:
            return None
        reach = float(ndtri(power))
        if not self.sequential:
            blocks = (float(ndtri((1 + level) / 2)) + reach) ** 2 * variance / difference**2
        else:
            limit = math.log(2) - math.log1p(-level)

            def is_shown(n: float) -> bool:
                likely = difference - reach * math.sqrt(variance / n)
                return likely > 0 and self._evidence.log_e(n * likely, n * variance) >= limit

            blocks = next((2.0**power for power in range(51) if is_shown(2.0**power)), math.inf)
            if blocks == math.inf:
                return None
            least = blocks / 2
            while blocks - least > max(0.5, blocks * 1e-4):
                middle = (least + blocks) / 2
                least, blocks = (least, middle) if is_shown(middle) else (middle, blocks)
        return math.ceil(blocks) * sum(sizes)

    # -- what is wrong ------------------------------------------------------------------------------

    def _refuse_faults(self) -> float:
        first, second = self._moments
        for arm, other, name in ((first, second, "a"), (second, first, "b")):
            if not arm.n:
                raise InputError(
                    f"{self.metric.name}: arm {name} has no traffic, and the other has {counted(other.n, 'value')}: "
                    "is the name of the arm right, and has the experiment begun?"
                )
        if self._has_covariate:
            self._refuse_late_covariate()
        p = two_arms.sample_ratio_p(first.n, second.n, self._share)
        if p < FAULT_LEVEL:
            seen = first.n / (first.n + second.n)
            raise InputError(
                f"{self.metric.name}: {first.n:,} values of arm a and {second.n:,} of arm b are {seen:.1%} and "
                f"{1 - seen:.1%}, but {self._share:.1%} and {1 - self._share:.1%} were planned (p = {p:.1e}): values "
                "are lost in one arm, or the assignment is wrong, and no verdict would be right. If the plan was "
                "another, give planned="
            )
        return p

    def _refuse_late_covariate(self) -> None:
        first, second = self._moments
        if self.sequential:
            p = self._balance.p()
        else:
            before, after = (
                two_arms.ArmMoments(arm.n, arm.covariate_mean, 0.0, np.poly1d(arm.squares[2]), np.poly1d(-arm.cubes[3]))
                for arm in self._moments
            )
            p = two_arms.means(before, after, 0.95).p
        if p < FAULT_LEVEL:
            raise InputError(
                f"{self.metric.name}: the covariate's mean is {first.covariate_mean:.4g} in arm a and "
                f"{second.covariate_mean:.4g} in arm b (p = {p:.1e}): it is not from before the experiment, or the "
                "assignment is not random; leave it out"
            )

    def _notes(self, found: Tested) -> list[str]:
        notes = []
        if self._clipped:
            low, high = self.metric.bounds
            notes.append(
                f"{counted(self._clipped, 'value')} outside {low:g} to {high:g} counted as the bound: "
                "the figures are means of clipped values."
            )
        if not self.sequential:
            notes.append("p and the interval are for one look, at a number of units that was fixed beforehand.")
        first, second = self._moments
        if math.isnan(found.p) and two_arms.too_skewed(first, second, self._slope()):
            notes.append(
                f"No interval: arms of {first.n:,} and {second.n:,} are too unequal for means of values so skewed, and "
                "would too often be told apart: give arms of one size, more values, or sequential=True (no --once)."
            )
        elif math.isnan(found.p):
            notes.append("No interval: an arm has fewer than two values, or no value differs from the others.")
        unpaired = first.n + second.n - self._evidence.n * sum(self._blocks.sizes) if self.sequential else 0
        if unpaired > 0.1 * (first.n + second.n):
            notes.append(
                f"{counted(unpaired, 'value')} wait for a partner in the other arm, and are not in p and the interval: "
                "give planned= as the traffic was planned."
            )
        return notes

    def _checked(self, values: Any, what: str, outcomes: int | None = None) -> FloatArray:
        """The values of an arm; of a covariate, if the number of outcomes is given."""
        metric, array, of_covariate = self.metric, _numbers(values, what), outcomes is not None
        if outcomes not in (None, len(array)):
            raise InputError(f"{what}: {len(array):,} values for {outcomes:,} outcomes; give one for each")
        low, high = metric.covariate_bounds if of_covariate else metric.bounds
        of_rate = metric.kind == RATE and not of_covariate
        outside = (array != 0) & (array != 1) if of_rate else (array < low) | (array > high)
        if not outside.any():
            return array
        place = int(np.argmax(outside))
        if fault := metric.fault_of(float(array[place]), sequential=self.sequential, of_covariate=of_covariate):
            raise InputError(f"{what}: value {place + 1} {fault}")
        if of_covariate or not metric.clip:
            return array
        self._clipped += int(outside.sum())
        return np.clip(array, low, high)


def verdict_on(low: float, high: float, margin: float | None, higher_is_better: bool = True) -> str:
    """What the interval of a difference shows."""
    if low > 0 or high < 0:
        return BETTER if (low > 0) == higher_is_better else WORSE
    if margin is not None and -margin < low and high < margin:
        return EQUAL
    return NOT_YET


def _guarded(low: float, high: float, margin: float | None, higher_is_better: bool) -> str:
    """Whether b is shown to be worse by less than the margin, or by more."""
    if not higher_is_better:
        low, high = -high, -low
    most = margin or 0.0
    if low > -most:
        return KEPT
    return BROKEN if high < -most else NOT_YET


def _means_by(values: FloatArray, names: Any) -> FloatArray:
    """The mean of the values of each name."""
    place = np.unique(names, return_inverse=True)[1]
    return np.bincount(place, values) / np.bincount(place)


def _numbers(values: Any, what: str) -> FloatArray:
    if isinstance(values, (str, bytes)):
        raise InputError(f"{what}: must be numbers, got {shown(values)}")
    try:
        array = np.asarray(values if hasattr(values, "__array__") else list(values), np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what}: must be numbers, got {shown(values)}") from None
    if array.ndim != 1:
        raise InputError(f"{what}: must be a list of numbers, got an array of {array.ndim} dimensions")
    odd = ~(np.abs(array) <= LARGEST)
    if odd.any():
        place = int(np.argmax(odd))
        mend = "leave out what is unknown, in both arms alike"
        if math.isfinite(array[place]):
            mend = "its square is no number; give the metric in another unit"
        raise InputError(f"{what}: value {place + 1} is {array[place]:g}; {mend}")
    return array


def _share_of(planned: Any) -> float:
    try:
        first, second = (float(each) for each in planned)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"planned (--planned) must be two shares, of a and of b, got {shown(planned)}") from None
    if not (first > 0 and second > 0 and _LEAST_SHARE <= first / (first + second) <= 1 - _LEAST_SHARE):
        raise InputError(f"planned shares must be above 0, at least {_LEAST_SHARE:g} of all, got {shown(planned)}")
    return first / (first + second)


def _sizes(share: float) -> tuple[int, int]:
    """The smallest block with nearly the planned shares."""
    rare = min(share, 1 - share)
    if rare * _LARGEST_BLOCK < 1:
        return round(share / rare), round((1 - share) / rare)
    part = Fraction(share).limit_denominator(_LARGEST_BLOCK)
    return part.numerator, part.denominator - part.numerator
