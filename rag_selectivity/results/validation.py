"""Validation: how far measures follow the scores of answers, and which of them follows better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rag_selectivity.inference.interval import Interval
from rag_selectivity.results.plain import Plain, flat
from rag_selectivity.results.result import Result

#: What a correlation is over: the queries of each run; the differences between runs within each query; or the runs.
QUERIES, WITHIN, RUNS = "queries", "runs within queries", "runs"
RISES, FALLS, NOT_SHOWN = "rises with the answers", "falls as the answers rise", "not shown"


@dataclass(frozen=True, slots=True)
class Following(Plain):
    """How far one measure follows the scores of answers.

    Attributes
    ----------
    measure : str
        With its depth; without one if sets of several K are taken together.
    run : str or None
        None stands for the mean of the correlations within each run, or for a correlation over runs.
    k : int or None
        The passages that the answers were made from; None if the scores do not say, or for several K.
    over : {"queries", "runs within queries", "runs"}
    n : int
        The number of queries (or of runs) with a figure and a score.
    undefined : int
        Scored queries in which the measure is undefined, which are left out.
    spearman, pearson, kendall : Interval
        NaN with a reason if undefined. Kendall's is tau-b.
    partial : Interval or None
        Spearman's partial correlation, given the scores of answers without passages; None without such scores.
    p : float
        Of Spearman's correlation 0; NaN if undefined.
    p_holm : float
        The same, corrected for all measures that were looked at; NaN outside of that family.
    verdict : str
        `rises with the answers`, `falls as the answers rise` or `not shown`, from `p_holm`; empty outside of that
        family.
    """

    measure: str
    run: str | None
    k: int | None
    over: str
    n: int
    undefined: int
    spearman: Interval
    pearson: Interval
    kendall: Interval
    partial: Interval | None = None
    p: float = float("nan")
    p_holm: float = float("nan")
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class FollowingDifference(Plain):
    """Whether one measure follows the answers better than another, over the same queries.

    Attributes
    ----------
    measure, other : str
    difference : Interval
        Spearman's correlation of `measure` minus that of `other`. The sign of a measure of which less is better is
        turned first, so that more is better for both.
    p, p_holm : float
        `p_holm` is corrected for all pairs. NaN if both order the queries in the same way.
    verdict : str
        `follows better`, `follows worse` or `not shown`.
    """

    measure: str
    other: str
    difference: Interval
    p: float
    p_holm: float
    verdict: str


@dataclass(frozen=True, slots=True)
class Segment(Plain):
    """The sets of passages whose K, divided by the number of relevant passages N_p, lies between two borders.

    Attributes
    ----------
    low, high : float
        `low` ≤ K/N_p < `high`.
    sets, queries : int
        The sets (of a query, run and K) with a score, and their different queries.
    rows : tuple of Following
        Each measure over all its K.
    advised : str
        The measure that the recall-free paper advises for such sets: T below 1, nDCG from 1 on; empty for sets on
        both sides of 1.
    summary : str
        What these answers show, in a sentence or two.
    """

    also: ClassVar[tuple[str, ...]] = ("name",)

    low: float
    high: float
    sets: int
    queries: int
    rows: tuple[Following, ...]
    advised: str
    summary: str

    @property
    def name(self) -> str:
        """`K/N_p < 1`, `1 ≤ K/N_p < 2` or `K/N_p ≥ 2`; `all sets` without a border."""
        if math.isinf(self.high):
            return f"K/N_p ≥ {self.low:g}" if self.low > 0 else "all sets"
        return f"{self.low:g} ≤ K/N_p < {self.high:g}" if self.low > 0 else f"K/N_p < {self.high:g}"


@dataclass(frozen=True, repr=False)
class Validation(Result):
    """What `validate` returns.

    Attributes
    ----------
    rows : tuple of Following
        Each measure at each K: within each run, the mean over runs, within queries, and over runs.
    differences : tuple of FollowingDifference
        Each pair of measures at the same K.
    segments : tuple of Segment
        By K/N_p.
    detectable : float
        The smallest Spearman correlation that so many queries show with a power of 80 % after Holm's correction.
    summary : tuple of str
        What the answers show, in sentences.
    notes : tuple of str
        What was left out, and what else may explain a correlation.
    """

    schema = "rag-selectivity/validation/1"

    rows: tuple[Following, ...]
    differences: tuple[FollowingDifference, ...]
    segments: tuple[Segment, ...]
    detectable: float
    summary: tuple[str, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def main_rows(self) -> tuple[Following, ...]:
        """The rows of the family that is corrected: the means over runs, or those of the only run."""
        return tuple(row for row in self.rows if row.verdict)

    def table(self) -> Iterable[dict[str, Any]]:
        """One flat row for each measure, run and K, and those of the segments, with their segment."""
        yield from ({"segment": "", **flat(row)} for row in self.rows)
        yield from ({"segment": segment.name, **flat(row)} for segment in self.segments for row in segment.rows)
