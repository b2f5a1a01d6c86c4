"""Results of online evaluation: a preference, a comparison of arms, a decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.results.plain import flat
from rag_selectivity.results.result import Result

BETTER, WORSE, EQUAL, NOT_YET = "better", "worse", "equal within the margin", "not yet"
#: The verdicts on a guardrail.
KEPT, BROKEN = "kept", "broken"


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class _Tested(Result):
    """What was tested, and what follows from it."""

    p: float
    low: float
    high: float
    level: float
    margin: float | None
    verdict: str
    sequential: bool
    detect: float | None = None
    needed: int | None = None
    still_needed: int | None = None
    power: float = 0.8
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Preference(_Tested):
    """Which of two interleaved systems got more credit.

    Attributes
    ----------
    baseline, candidate : str
        The systems; wins are the candidate's, and the verdict is on it.
    wins, losses, ties : int
        Units in which the candidate's passages got more credit than the baseline's, less, or as much.
    share : float
        Wins / (wins + losses); NaN without either.
    p : float
        Of the hypothesis that a unit that differs is as often a win as a loss.
    low, high : float
        The interval of `share`, from the same distribution: 1/2 is outside it if and only if p ≤ 1 − level.
    level : float
    margin : float or None
        `equal within the margin` is said if the interval is within 1/2 ± margin.
    verdict : str
        better, worse, equal within the margin, or not yet.
    unit : str
        What casts a vote: impression, session or user.
    impressions : int
    sequential : bool
        Whether p and the interval are valid however often one looks. If not, they are for one look, at a number of
        units that was fixed beforehand.
    credits : int
        Credits that were read.
    detect : float or None
        The share of wins that shall be found.
    needed, still_needed : int or None
        Units of which as many differ as did so far, at which such a share is shown with the power, and how many of them
        are missing.
    power : float
    notes : tuple of str
    """

    schema = "rag-selectivity/preference/1"

    baseline: str
    candidate: str
    wins: int
    losses: int
    ties: int
    share: float
    unit: str
    impressions: int
    credits: int


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ArmComparison(_Tested):
    """The difference between two arms of an A/B test: b minus a.

    Attributes
    ----------
    metric : str
    kind : str
        rate or mean.
    n_a, n_b : int
        Values of each arm.
    mean_a, mean_b : float
    difference : float
        b − a, also where lower is better; adjusted by the covariate if there is one.
    p, low, high, level : float
        From one distribution: 0 is outside the interval if and only if p ≤ 1 − level. NaN where nothing can be said.
    margin : float or None
    verdict : str
        On b: better, worse, equal within the margin, or not yet. On a guardrail: kept, broken, or not yet.
    higher_is_better, guardrail, sequential : bool
    test : str
        What p and the interval come from.
    planned : float or None
        The share of a that was planned.
    sample_ratio_p : float or None
        Of the hypothesis that the shares are as planned.
    slope : float or None
        Of the values over the covariate.
    variance_left : float or None
        The variance with the covariate, as a share of that without.
    detect : float or None
        The difference that shall be found.
    needed, still_needed : int or None
        Impressions of both arms at which such a difference is shown with the power, and how many are missing.
    power : float
    notes : tuple of str
    """

    schema = "rag-selectivity/arms/1"

    metric: str
    kind: str
    n_a: int
    n_b: int
    mean_a: float
    mean_b: float
    difference: float
    higher_is_better: bool
    guardrail: bool
    test: str
    planned: float | None = None
    sample_ratio_p: float | None = None
    slope: float | None = None
    variance_left: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class ExperimentDecision(Result):
    """Several metrics and guardrails of an A/B test, decided together.

    Attributes
    ----------
    metrics : tuple of ArmComparison
        Each with the level of its step in Holm's correction, so that p, interval and verdict agree.
    guardrails : tuple of ArmComparison
    p_adjusted : tuple of float
        Of the metrics, by Holm.
    level : float
        Of the whole family.
    verdict : str
        better: some metric is better, none is worse, and every guardrail is kept. worse: some metric is worse or some
        guardrail is broken. equal within the margin: all metrics are, and every guardrail is kept. Otherwise not yet.
    missing : {metric: (int, int)}
        Rows of each arm without a value.
    notes : tuple of str
    """

    schema = "rag-selectivity/experiment/1"

    metrics: tuple[ArmComparison, ...]
    guardrails: tuple[ArmComparison, ...]
    p_adjusted: tuple[float, ...]
    level: float
    verdict: str
    missing: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def table(self) -> Iterable[dict[str, Any]]:
        """A row for each metric and guardrail."""
        yield from ({**flat(row), "p_adjusted": p} for row, p in zip(self.metrics, self.p_adjusted, strict=True))
        yield from ({**flat(row), "p_adjusted": None} for row in self.guardrails)
