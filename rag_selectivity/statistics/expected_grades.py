"""Whether a judge's expected grades are closer to people's grades than its grades are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IntArray
from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.statistics.agreement import Interval
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.dirichlet import WeightedSums

CLOSER, FARTHER, NOT_SHOWN = "closer", "farther", "not shown to be closer"
#: A mean over probabilities may be a rounding error beyond the end of the scale.
ROUNDING = 1e-9


@dataclass(frozen=True)
class ExpectedGrades:
    """How well a judge's expected grades follow people's grades, compared with its grades over the same pairs.

    Attributes
    ----------
    n, queries : int
        The pairs that have an expected grade, and their queries; all figures are over them.
    expected_error, grade_error : Interval
        The mean distance of the expected grade, and of the grade, from people's grade: in grades, from 0 to the width
        of the scale.
    error_difference : Interval
        expected_error − grade_error; below 0 if the expected grade is closer.
    relevant_from : int
        The lowest grade of people that counts as relevant in the two areas.
    expected_auc, grade_auc : float
        The area under the ROC curve, from 0 to 1: how often a relevant pair has a higher expected grade (grade) than
        another pair has; ties count half. NaN without relevant pairs, or without others. They have no intervals.
    auc_reason : str
        Why the areas are NaN; empty if they are not.

    Notes
    -----
    The intervals are made as those of the means in `Agreement`: from Dirichlet(1, …, 1) weights over the queries (or
    their clusters) and one unseen unit of average size, whose values are all at the end of the range. Those of the
    errors and of their difference come from the same weights, so that the difference is paired.

    References
    ----------
    Gaffke 2005 (the intervals); Hanley and McNeil 1982 (the area).
    """

    n: int
    queries: int
    expected_error: Interval
    grade_error: Interval
    error_difference: Interval
    relevant_from: int
    expected_auc: float
    grade_auc: float
    auc_reason: str = ""

    @property
    def verdict(self) -> str:
        """`closer` or `farther` if the whole interval of the difference is on that side of 0.

        Otherwise `not shown to be closer`.
        """
        if self.error_difference.high < 0:
            return CLOSER
        return FARTHER if self.error_difference.low > 0 else NOT_SHOWN

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; an undefined area is None, with a reason."""
        areas = {name: getattr(self, name) for name in ("expected_auc", "grade_auc")}
        return {
            "n": self.n,
            "queries": self.queries,
            **{name: getattr(self, name).to_dict() for name in ("expected_error", "grade_error", "error_difference")},
            "relevant_from": self.relevant_from,
            **{name: None if np.isnan(area) else area for name, area in areas.items()},
            "auc_reason": self.auc_reason or None,
            "verdict": self.verdict,
        }


def expected_grades(
    human: Sequence[int] | IntArray,
    judge: Sequence[int] | IntArray,
    expected: Sequence[float] | FloatArray,
    queries: Sequence[str],
    *,
    grades: tuple[int, int],
    relevant_from: int,
    bootstrap: Bootstrap = Bootstrap(),
) -> ExpectedGrades:
    """Compare a judge's expected grades, and its grades, with people's grades of the same pairs.

    Parameters
    ----------
    human, judge : int64[pairs]
    expected : float64[pairs]
        The mean grade under the probabilities that the judge's endpoint gave.
    queries : sequence of str
        The query of each pair; for the intervals, queries are drawn whole.
    grades : (int, int)
        The lowest and the highest possible grade.
    relevant_from : int
        The lowest grade of people that counts as relevant.
    bootstrap : Bootstrap
        Gives resamples, seed, level and clusters.

    Raises
    ------
    InputError
        If there are no pairs, if the sequences differ in length, if a value is not between the lowest and the highest
        grade, or if a query has no cluster.

    >>> found = expected_grades([5, 1, 4], [4, 2, 4], [4.5, 1.5, 4.0], ["p", "p", "q"], grades=(1, 5), relevant_from=4)
    >>> found.error_difference.value, found.expected_auc, found.verdict
    (-0.3333333333333333, 1.0, 'not shown to be closer')
    """
    by_hand, plain, mean = (np.asarray(values, np.float64) for values in (human, judge, expected))
    lengths = [len(by_hand), len(plain), len(mean), len(queries)]
    if len(set(lengths)) > 1:
        raise InputError(f"expected grades need one value of each kind for each pair, got {lengths} values")
    if not len(mean):
        raise InputError("no pair has an expected grade and a grade of a person: give at least one")
    lowest, highest = grades
    mean = np.where(np.abs(mean - np.clip(mean, lowest, highest)) < ROUNDING, np.clip(mean, lowest, highest), mean)
    for name, values in (("a person's grade", by_hand), ("the judge's grade", plain), ("the expected grade", mean)):
        for row in np.flatnonzero(~((values >= lowest) & (values <= highest)))[:1].tolist():
            raise InputError(
                f"row {row} (query {queries[row]!r}): {name} must be between {lowest} and {highest}, got {values[row]}"
            )
    names, of_pair = np.unique(np.asarray(queries, object).astype(str), return_inverse=True)
    clusters = bootstrap.units(names.tolist())
    _, unit = np.unique(of_pair if clusters is None else clusters[of_pair], return_inverse=True)
    errors = np.stack([np.abs(mean - by_hand), np.abs(plain - by_hand)], axis=1)
    columns = np.column_stack([errors, errors[:, 0] - errors[:, 1], np.ones(len(mean))])
    of_units = np.zeros((int(unit.max()) + 1, columns.shape[1]))
    np.add.at(of_units, unit, columns)
    sums = WeightedSums.of(of_units, draws=bootstrap.resamples, seed=bootstrap.seed)
    width, size, tail = highest - lowest, len(mean) / len(of_units), (1 - bootstrap.level) / 2
    expected_error, grade_error, error_difference = (
        Interval(float(columns[:, column].mean()), *sums.mean_bounds(column, 3, size, *ends, tail))
        for column, ends in enumerate(((0, width), (0, width), (-width, width)))
    )
    relevant = by_hand >= relevant_from
    return ExpectedGrades(
        n=len(mean),
        queries=len(names),
        expected_error=expected_error,
        grade_error=grade_error,
        error_difference=error_difference,
        relevant_from=relevant_from,
        expected_auc=_area(mean, relevant),
        grade_auc=_area(plain, relevant),
        auc_reason=_why_no_area(relevant, relevant_from),
    )


def _area(values: FloatArray, relevant: NDArray[np.bool_]) -> float:
    """The share of all (relevant, other) couples in which the relevant one has the higher value; ties count half."""
    above, below = int(relevant.sum()), int((~relevant).sum())
    if not (above and below):
        return float("nan")
    others = np.sort(values[~relevant])
    left, right = (np.searchsorted(others, values[relevant], side) for side in ("left", "right"))
    return float((left.sum() + right.sum()) / 2 / (above * below))


def _why_no_area(relevant: NDArray[np.bool_], relevant_from: int) -> str:
    if relevant.all():
        return f"People gave {relevant_from} or more to every pair: the area needs pairs below {relevant_from} too."
    if not relevant.any():
        return f"People gave less than {relevant_from} to every pair: the area needs pairs of {relevant_from} or more."
    return ""
