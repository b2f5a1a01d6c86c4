"""Which K by the answers: the smallest K whose answers are hardly worse than those of the budget, and what is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.inference.betting import highest_mean
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.chance import Success
from rag_selectivity.results.sweep import AnswersAtK, AnswersByK, Recommendation
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.scores import AnswerScores
from rag_selectivity.wording import counted, level_text, number

#: What stands in the place of a measure.
ANSWERS = "answers"
#: As in the advice by success: with fewer queries, one of them would weigh more than 10 percentage points.
_FEWEST_QUERIES = 10
_SAME = 1e-12


def answers_by_k(
    judged: JudgedRun,
    run: str,
    scores: AnswerScores,
    *,
    score_range: tuple[float, float] | None,
    max_k: int,
    max_loss: float,
    max_tokens: float | None,
    tokens: FloatArray | None,
    rel: int | None,
    m: int,
    bootstrap: Bootstrap,
) -> AnswersByK:
    """The answers of a run at each K, and the advised K.

    The rule is that of the advice by success: the smallest K such that this K, and every larger one with answers, loses
    at most `max_loss` of the range of the scores against the largest K up to `max_k`. Only queries with a score at all
    these K count.

    Parameters
    ----------
    judged : JudgedRun
    run : str
    scores : AnswerScores
        With the K of each answer.
    score_range : (float, float), optional
        The lowest and the highest possible score. Needed unless all scores are from 0 to 1.
    tokens : float64[depths], optional
        The mean tokens of the top 1, 2, 3, … passages.

    Raises
    ------
    InputError
        If the scores do not say K, if there are fewer than two K up to `max_k`, or if the range of the scores is not
        known.

    Notes
    -----
    The bounds are by betting: they hold for scores of any distribution. That the answers fell between a K and the
    largest one, and that success did not rise by more than `max_loss`, is said only if both are shown, each at the
    level divided by twice the number of smaller K (Bonferroni).

    References
    ----------
    Waudby-Smith and Ramdas 2024, JRSS B 86 (betting).
    """
    low, high = _range(scores, score_range)
    ks = _ks(scores, run, max_k)
    every = np.array([[scores.by_run[run][k].get(query, math.nan) for k in ks] for query in judged.queries], np.float64)
    known = ~np.isnan(every).any(axis=1)
    left_out = int((~np.isnan(every).all(axis=1)).sum() - known.sum())
    given = every[known]
    clusters = bootstrap.units(judged.queries)
    units = None if clusters is None else np.unique(clusters[known], return_inverse=True)[1]
    count = len(given) if units is None else len(np.unique(units))
    if count < _FEWEST_QUERIES:
        what = "queries" if units is None else "clusters of queries"
        none = (
            f"No advice on K by the answers: {count} {what} with a score at all of K = {', '.join(map(str, ks))} are "
            f"too few; at least {_FEWEST_QUERIES} are needed."
        )
        return AnswersByK((), Recommendation(None, none, ANSWERS, ks[-1]), None, len(given), left_out)
    gaps = (given[:, -1:] - given) / (high - low)
    tail = (1 - bootstrap.level) / 2
    curve = _Curve(
        ks,
        given.mean(axis=0),
        gaps.mean(axis=0),
        np.append(highest_mean(gaps[:, :-1], -1.0, 1.0, tail, units), 0.0),
        [None if tokens is None else float(tokens[min(k, len(tokens)) - 1]) for k in ks],
        len(given),
        max_loss,
        bootstrap.level,
    )
    advice = curve.advice(max_tokens)
    tail /= 2 * (len(ks) - 1)
    fall = -highest_mean(gaps[:, :-1], -1.0, 1.0, tail, units)
    finding = None
    if advice.K is not None:
        finding = curve.finding(ks.index(advice.K), fall, _success_rose_at_most(judged, ks, rel, m, tail, clusters))
    return AnswersByK(curve.rows(), advice, finding, len(given), left_out)


@dataclass(frozen=True)
class _Curve:
    """The mean score at each K, with the loss against the last K as a share of the range and its upper end."""

    ks: list[int]
    means: FloatArray
    loss: FloatArray
    high: FloatArray
    tokens: list[float | None]
    queries: int
    max_loss: float
    level: float

    def rows(self) -> tuple[AnswersAtK, ...]:
        """A row for each K."""
        ends: list[float | None] = [*self.high[:-1].tolist(), None]
        columns = (self.ks, self.means.tolist(), self.loss.tolist(), ends, self.tokens)
        return tuple(AnswersAtK(*row) for row in zip(*columns, strict=True))

    def advice(self, max_tokens: float | None) -> Recommendation:
        """The smallest K from which on no more than `max_loss` is lost, within the budget of tokens."""
        dear = np.flatnonzero(self.loss > self.max_loss + _SAME)
        place = int(dear[-1]) + 1 if len(dear) else 0
        affordable = None
        warnings: tuple[str, ...] = ()
        if max_tokens is not None:
            within = [i for i, cost in enumerate(self.tokens) if cost is not None and cost <= max_tokens]
            affordable = self.ks[within[-1]] if within else 0
            if not within:
                text = f"even K = {self.ks[0]} has more than {max_tokens:g} tokens on average"
                none = "No advice on K: no K with scored answers meets the requirements."
                return Recommendation(None, none, ANSWERS, self.ks[-1], within_tokens=0, warnings=(text,))
            if within[-1] < place:
                warnings = (
                    f"by the answers alone K = {self.ks[place]} is advised, but {max_tokens:g} tokens are enough only "
                    f"for K = {affordable}",
                )
                place = within[-1]
        shown = place < len(self.ks) - 1 and bool((self.high[place:-1] <= self.max_loss).all())
        ends = float(self.loss[place]), float(self.high[place])
        reason = self._reason(place, shown)
        return Recommendation(self.ks[place], reason, ANSWERS, self.ks[-1], *ends, shown, affordable, warnings)

    def _reason(self, place: int, shown: bool) -> str:
        chosen, last, queries = self.ks[place], self.ks[-1], counted(self.queries, "query", "queries")
        allowed = f"{100 * self.max_loss:.4g}"
        if place == len(self.ks) - 1:
            return (
                f"K = {chosen} by the answers, the largest K with scores up to the budget: their mean score is "
                f"{number(self.means[-2])} at K = {self.ks[-2]} and {number(self.means[-1])} at K = {last}, a loss of "
                f"{_points(self.loss[-2])} points of the scale in {queries}, more than the {allowed} allowed."
            )
        loss, best = self.loss[place], int(self.means.argmax())
        change = f"a loss of {_points(loss)} points" if loss >= 0 else f"a gain of {_points(-loss)} points"
        sentence = (
            f"K = {chosen} by the answers, the smallest K with scores that loses no more than {allowed} points of the "
            f"scale against K = {last}: the mean score is {number(self.means[place])} at K = {chosen} and "
            f"{number(self.means[-1])} at K = {last} in {queries}, {change}. The paired {level_text(self.level)} "
            f"interval of the loss ends at {_points(self.high[place], math.inf)} points"
        )
        higher = (
            "" if best == place else f" The highest mean score is {number(self.means[best])} at K = {self.ks[best]}."
        )
        if shown:
            return f"{sentence}, so it is shown that no more than {allowed} are lost.{higher}"
        return f"{sentence}; that no more than {allowed} are lost there, and at every larger K, is not shown.{higher}"

    def finding(self, advised: int, fall: FloatArray, stayed: FloatArray) -> str | None:
        """That success stayed and the answers fell from a K to the largest one, if both are shown."""
        both = np.flatnonzero((fall > 0) & (stayed <= self.max_loss)).tolist()
        if not both:
            return None
        place = advised if advised in both else both[0]
        return (
            f"Success stayed and answers fell: from K = {self.ks[place]} to K = {self.ks[-1]} success rose by at most "
            f"{_points(stayed[place], math.inf)} percentage points, and the answers lost {_points(-self.loss[place])} "
            f"points of the scale, at least {_points(fall[place], -math.inf)} (both are shown together at "
            f"{level_text(self.level)})."
        )


def _success_rose_at_most(
    judged: JudgedRun, ks: list[int], rel: int | None, m: int, tail: float, units: IntArray | None
) -> FloatArray:
    """The upper end of the rise of success from each smaller K to the largest one."""
    outcome = Success(rel=rel, m=m).outcome(judged, np.array(ks)).settled()
    gaps = outcome.parts[0][:, -1:] - outcome.parts[0][:, :-1]
    if not outcome.defined[:, -1].any():
        return np.ones(gaps.shape[1])
    if units is not None:
        return highest_mean(gaps, 0.0, 1.0, tail, units)
    rose = np.nan_to_num(gaps).sum(axis=0).astype(np.int64)
    return clopper_pearson(rose, outcome.defined[:, :-1].sum(axis=0), tail)[1]


def _ks(scores: AnswerScores, run: str, max_k: int) -> list[int]:
    """Every K of the answers up to `max_k`."""
    known = [k for k in scores.by_run[run] if k is not None]
    if not known:
        raise InputError(
            f"the scores of run {run!r} do not say from how many passages the answers were made: add a column k"
        )
    ks = sorted(k for k in known if k <= max_k)
    if len(ks) < 2:
        raise InputError(
            f"run {run!r} has answers from K = {', '.join(map(str, sorted(known)))}, and max_k is {max_k}: scores at "
            f"two or more K up to max_k are needed"
        )
    return ks


def _range(scores: AnswerScores, score_range: tuple[float, float] | None) -> tuple[float, float]:
    if score_range is not None:
        return float(score_range[0]), float(score_range[1])
    low, high = scores.ends
    if low < 0 or high > 1:
        raise InputError(
            f"the scores are from {low:g} to {high:g}: give the lowest and the highest possible score as "
            f"score_range=(1, 5) (--score-range 1,5), since losses are shares of that range"
        )
    return 0.0, 1.0


def _points(share: float, toward: float | None = None) -> str:
    """A share in percentage points, with one decimal; rounded `toward` a bound (±∞), or to the nearest."""
    rounded = round(100 * share, 1)
    if toward is not None:
        rounded = (math.ceil(1000 * share - 1e-9) if toward > 0 else math.floor(1000 * share + 1e-9)) / 10
    return f"{rounded + 0.0:.1f}".replace("-", "−")
