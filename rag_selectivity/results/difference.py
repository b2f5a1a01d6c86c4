"""Differences between two figures with their verdicts: of runs, and of a run before and now."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import Measure
from rag_selectivity.results.estimate import AS_JUDGED, FAVOURS, Caveat, Estimate
from rag_selectivity.results.plain import Ends, Plain
from rag_selectivity.results.run_report import FEWEST

BETTER, WORSE = "better", "worse"
NOT_SHOWN, JUDGED_IN_PART, NOT_TESTED = "no difference shown", "undecided: judged in part", "not tested"
PLACEBO, SHORTER = "undecided: no more than placebos", "undecided: shorter lists"
#: The verdict on a difference within a slice that has too few queries for one.
TOO_FEW = f"none: under {FEWEST} queries"
#: The test of a difference over completions of the labels by people's.
COMPLETED = "completions"
#: In the order of the notes below a table.
VERDICTS = (BETTER, WORSE, JUDGED_IN_PART, PLACEBO, SHORTER, NOT_SHOWN, TOO_FEW, NOT_TESTED)


class Moved(Plain):
    """A query's figures under a run and under the baseline run."""

    query: str
    value: float
    baseline_value: float

    @property
    def difference(self) -> float:
        return self.value - self.baseline_value


class RunDifference(Plain, kw_only=True):
    """The difference between a run and the baseline run under one measure at one depth.

    A paired difference (the default) is over the queries that have a figure under both runs; in an unpaired one, each
    run is measured over its own queries.

    Attributes
    ----------
    value, baseline_value, difference : float
        difference = value − baseline_value, also if lower is better. BoR of a paired comparison with random controls
        has the random baseline that they give. Where the report completes figures from a sample of the tail, all three
        are of the labels as they are. With labels by people the two figures are those of the report, and the difference
        is the median over labels completed for both runs alike: it need not be that of the two figures.
    low, high : float
        The interval of the difference, not adjusted for the number of tests. It contains 0 if and only if p is more
        than 1 − level. NaN with fewer than two queries.
    p, p_adjusted : float
        The two-sided p-value, and the p-value after Holm's correction over the tests of the comparison. NaN if the row
        was not tested.
    test : {"exact", "randomised", "bounded", "completions", ""}
        Whether all swaps of the two runs' figures were counted, or a random part of them, or an unseen query was
        allowed for since one could turn the sign, or completions of the labels by people's; empty if not tested.
    tested_as : str
        The measure that was tested. On the same queries with the same random baseline, BoR differs exactly where
        Success does: both rows share one test, which counts once in Holm's correction.
    wins, ties, losses : int
        Queries that are better, equal and worse under the run (for BoR and EF: in Success); 0 if unpaired.
    n, n_baseline : int
        The number of queries of each value; the same if paired.
    n_total : int
        The number of queries that were compared, including those without a figure.
    detectable : float
        The smallest true difference that would have been shown with the stated power, at the level of Holm's correction
        for the smallest p-value of the family. ∞ if so few queries can show none, NaN if it is unknown.
    times : float
        How many times the queries would show the observed difference with this power at this level; it is not stored.
    possible : (low, high) or None
        The possible range of the difference, if lists are judged in part.
    caveats : tuple of Caveat
        The caveats of both runs' figures.
    moved : tuple of Moved
        The queries with the largest differences in either direction.
    equal_to_placebos : bool
        Whether neither figure is shown to differ from its placebo.
    by_padding : bool
        Whether the empty slots below one run's lists could be all of the difference (Harm only).
    reason : str or None
        Why the difference is not a finite number; None if it is.
    basis : {"as judged", "with controls", "calibrated"}
        What the figures rest on; the random baseline that controls give cancels in the difference and its p.
    as_judged : float or None
        The difference with the judge's labels alone, if it rests on people's labels too; else None.
    as_judged_interval : (low, high) or None
        The interval of that difference.
    by : (column, value) or None
        The slice of the queries that the difference is within; None for all queries.
    effective : float or None
        With weights of queries, the effective number of the n queries; None without weights. All figures of the row but
        `wins`, `ties`, `losses` and `moved`, which are of single queries, are then weighted.
    """

    also = ("verdict",)
    sparse = True

    run: str
    baseline: str
    measure: Measure
    value: float
    baseline_value: float
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_adjusted: float = math.nan
    detectable: float = math.nan
    times: float = field(default=math.nan, repr=False, compare=False)
    test: str = ""
    tested_as: str
    wins: int
    ties: int
    losses: int
    n: int
    n_baseline: int
    n_total: int
    level: float = field(repr=False)
    possible: Ends | None = None
    caveats: tuple[Caveat, ...] = ()
    moved: tuple[Moved, ...] = ()
    reason: str | None = None
    equal_to_placebos: bool = field(default=False, repr=False)
    by_padding: bool = field(default=False, repr=False)
    basis: str = AS_JUDGED
    as_judged: float | None = None
    as_judged_interval: Ends | None = None
    by: tuple[str, str] | None = field(default=None, repr=False)
    effective: float | None = None

    @property
    def few(self) -> bool:
        """Whether it is within a slice, and over fewer than 20 queries."""
        return self.by is not None and min(self.n, self.n_baseline) < FEWEST

    @property
    def verdict(self) -> str:
        """`better`, `worse`, `no difference shown`, `undecided: …`, `none: under 20 queries` or `not tested`.

        Better and worse need an adjusted p-value of at most 1 − level, and that unjudged passages cannot change the
        sign of the difference: where labels follow the list of one run alone, only the other run can be better. There
        is no verdict between two figures neither of which is shown to differ from its placebo, none on Harm that empty
        slots could explain, none against the order of figures that rest on further labels, and none within a slice over
        fewer than 20 queries.
        """
        if self.test and self.few:
            return TOO_FEW
        if not self.test or math.isnan(self.p_adjusted):
            return NOT_TESTED
        is_shown = self.p_adjusted <= 1 - self.level
        is_better = (self.difference > 0) == bool(self.measure.higher_is_better)
        better, unequal = self.run if is_better else self.baseline, self.unequal
        if unequal is not None and (not is_shown or unequal.figures[FAVOURS] == better):
            return JUDGED_IN_PART
        # Figures that rest on other labels than the test can contradict it.
        if not is_shown or (self.value - self.baseline_value) * self.difference <= 0:
            return NOT_SHOWN
        if self.equal_to_placebos or self.by_padding:
            return PLACEBO if self.equal_to_placebos else SHORTER
        if self.possible is not None and self.possible[0] <= 0 <= self.possible[1]:
            return JUDGED_IN_PART
        return BETTER if is_better else WORSE

    @property
    def unequal(self) -> Caveat | None:
        """Which run the labels favour, since they follow its list and not that of the other; None if neither."""
        return next((each for each in self.caveats if FAVOURS in each.figures), None)


def difference_of(rows: Sequence[RunDifference], run: str, measure: str | Measure) -> RunDifference:
    """The difference of a run from the baseline under a measure, among some."""
    for row in rows:
        if (row.run, str(row.measure)) == (run, str(measure)):
            return row
    runs, measures = dict.fromkeys(row.run for row in rows), dict.fromkeys(str(row.measure) for row in rows)
    known = f"the runs {', '.join(runs)} and the measures {', '.join(measures)}"
    raise InputError(f"{measure} of {run!r} was not compared: choose from {known}")


# -- since a stored report --------------------------------------------------------------------------------

#: The verdict on a figure that is the same for every query.
UNCHANGED = "unchanged"


class FigureChange(Plain):
    """A figure of a run, before and now.

    Attributes
    ----------
    before, now : Estimate
        As judged. The values are of the queries that are compared; with `on="shared"`, the intervals are of all.
    row : RunDifference
        Now − before, with its verdict.
    """

    also = ("verdict",)

    before: Estimate
    now: Estimate
    row: RunDifference

    @property
    def verdict(self) -> str:
        """`unchanged` if it is the same for every query, else as in `RunDifference.verdict`."""
        return UNCHANGED if not self.row.moved else self.row.verdict


class Changes(Plain):
    """What changed in the figures of a decision.

    Attributes
    ----------
    name : str
        The file of the stored report.
    figures : tuple of FigureChange
        Run by run, in the order of the decision.
    stored_as : {run: name in the stored report}
        The runs that both reports have.
    new, gone : tuple of str
        Runs that only the report has, and that only the stored report has.
    not_compared : {run: {measure or "": reason}}
        Of runs, and of measures of runs, that both reports hold.
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

    name: str
    figures: tuple[FigureChange, ...]
    stored_as: Mapping[str, str]
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    not_compared: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    not_stored: tuple[str, ...] = ()
    level: float | None = None
    tests: Mapping[str, int] = field(default_factory=dict)
    as_judged: bool = False
    notes: tuple[str, ...] = ()
