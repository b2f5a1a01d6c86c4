"""Results of workflows: a choice of α, the agreement of a judge, a validation, a preference, an experiment."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from rag_selectivity.inference.interval import Interval
from rag_selectivity.results.plain import Plain, flat, plain, plain_fields
from rag_selectivity.results.provenance import Provenance, Trust
from rag_selectivity.results.report import Report
from rag_selectivity.results.result import Result
from rag_selectivity.trust.agreement import Agreement


class Calibration(Result):
    """The α with the highest rank correlation with answer quality, and that correlation.

    Attributes
    ----------
    alpha : float or None
        None if α cannot change the order of queries, or if the scores are constant.
    correlation : float
        Spearman's rho at `alpha` on all queries, which the choice of α on the same queries raises.
    out_of_fold : float
        Spearman's rho of values whose α was chosen on the other queries. Unlike `correlation` it is not raised by the
        choice of α on the same queries. It has no interval here; `validate` has one, which takes the choice as fixed.
    n : int
        Queries with a value and a quality score.
    regime : float
        K/N_p: K / mean number of relevant passages. The recall-free paper (arXiv 2512.20854) advises T below 1, and
        nDCG from 1 on.
    advice : str
        Two or three sentences: what was chosen, and what the paper advises at this K/N_p, which is not tested here.
    """

    schema = "rag-selectivity/calibration/1"

    alpha: float | None
    correlation: float
    out_of_fold: float
    n: int
    regime: float
    advice: str


#: The verdicts of a ranking.
AS_PEOPLE, INVERTS, OPEN = "as_people", "inverts", "open"


class Ranking(Plain):
    """Whether a judge ranks two runs as people do.

    Attributes
    ----------
    runs : (str, str)
    measure : str
        With its depth: the share of the top K that is relevant.
    verdict : {"as_people", "inverts", "open"}
        `as_people`: the interval leaves out 0, and the judge's difference has its sign. `inverts`: it leaves out 0,
        and the judge's difference has the other sign. `open`: neither.
    difference : Interval
        The first run's figure minus the second's on completed labels, for these queries; `reason` says why there is
        none.
    as_judged : float
        The same on the judge's labels.
    labels, pairs : int
        The pairs in one of the two lists only: those that people labelled, and all.
    labels_needed : int or None
        Roughly how many labels of these pairs would settle an open verdict.
    """

    runs: tuple[str, str]
    measure: str
    verdict: str
    difference: Interval
    as_judged: float
    labels: int
    pairs: int
    labels_needed: int | None = None


class JudgeReport(Result):
    """What `labels agree` returns.

    Attributes
    ----------
    agreement : Agreement
        The agreement over the pairs that both sides graded.
    itself : Agreement or None
        The agreement of the judge's first grade of a pair with its second; None without pairs graded twice.
    provenance : Provenance or None
        Where both sides' labels come from.
    ranks : tuple of Ranking
        Of every two runs, whether the judge ranks them as people do; empty without runs.
    biases : {"run", "rank" or "length": {group: Interval}}
        The mean of the judge's grade minus people's in each run, at each rank, and by the length of the passage.
    """

    schema = "rag-selectivity/agreement/3"

    agreement: Agreement
    itself: Agreement | None
    provenance: Provenance | None = None
    ranks: tuple[Ranking, ...] = ()
    biases: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)

    @property
    def trust(self) -> Trust:
        """What the labels are worth: where they come from, and the verdict on the judge."""
        return Report({}, (), (), None, "", provenance=self.provenance).trust

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; the figures of the agreement are its own."""
        figures, more = plain(self.agreement), plain_fields(self, "agreement", "provenance")
        return {"schema": self.schema, "trust": self.trust.to_dict() | {"verdict": None}, **figures, **more}

    def to_rows(self) -> list[dict[str, Any]]:
        """One row for each figure, as in the CSV output."""
        figures = {name: each for name, each in vars(self.agreement).items() if isinstance(each, Interval)}
        for ranking in self.ranks:
            one, other = ranking.runs
            figures[f"{ranking.measure}: {one} minus {other} ({ranking.verdict})"] = ranking.difference
        for kind, by_group in self.biases.items():
            figures |= {f"bias, {kind} {group}": bias for group, bias in by_group.items()}
        return [{"figure": name, "value": x.value, "low": x.low, "high": x.high} for name, x in figures.items()]


#: What a correlation is over: the queries of each run; the differences between runs within each query; or the runs.
QUERIES, WITHIN, RUNS = "queries", "runs within queries", "runs"
RISES, FALLS, NOT_SHOWN = "rises with the answers", "falls as the answers rise", "not shown"


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
        `follows better`, `follows worse` or `not shown`. Not shown if both go the wrong way.
    """

    measure: str
    other: str
    difference: Interval
    p: float
    p_holm: float
    verdict: str


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

    also = ("name",)

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


EQUAL, NOT_YET = "equal within the margin", "not yet"
#: The verdicts on a guardrail.
KEPT, BROKEN = "kept", "broken"


class _Tested(Result, kw_only=True):
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


class Preference(_Tested, kw_only=True):
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


class ArmComparison(_Tested, kw_only=True):
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
    planned : float
        The share of a that was planned.
    sample_ratio_p : float
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
    planned: float
    sample_ratio_p: float
    slope: float | None = None
    variance_left: float | None = None


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
