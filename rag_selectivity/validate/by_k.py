"""Which K by the answers: the smallest K whose answers are hardly worse than those of the budget, and what is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.chance import Success
from rag_selectivity.results.sweep import AnswersAtK, AnswersByK, Recommendation
from rag_selectivity.statistics.betting import highest_mean, highest_rate
from rag_selectivity.statistics.bootstrap import Bootstrap
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
    return _ByK(judged, run, scores, score_range, max_k, max_loss, bootstrap).result(max_tokens, tokens, rel, m)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The loss at each K against the last one, as shares of the range, with the ends of what is shown of it."""

    value: FloatArray
    high: FloatArray
    fall_at_least: FloatArray


class _ByK:
    """The scores of one run at each K, over the queries that have all of them."""

    def __init__(
        self,
        judged: JudgedRun,
        run: str,
        scores: AnswerScores,
        score_range: tuple[float, float] | None,
        max_k: int,
        max_loss: float,
        bootstrap: Bootstrap,
    ) -> None:
        self.judged, self.run, self.max_loss, self.bootstrap = judged, run, max_loss, bootstrap
        self.low, self.high = _range(scores, score_range)
        by_k = scores.by_run[run]
        if None in by_k:
            raise InputError(
                f"the scores of run {run!r} do not say from how many passages the answers were made: add a column k"
            )
        self.ks = sorted(k for k in by_k if k is not None and k <= max_k)
        if len(self.ks) < 2:
            known = ", ".join(str(k) for k in sorted(k for k in by_k if k is not None))
            raise InputError(
                f"run {run!r} has answers from K = {known}, and max_k is {max_k}: scores at two or more K up to max_k "
                f"are needed"
            )
        columns = [[by_k[k].get(query, math.nan) for query in judged.queries] for k in self.ks]
        every = np.array(columns, np.float64).T
        self.known = ~np.isnan(every).any(axis=1)
        self.left_out = int((~np.isnan(every).all(axis=1)).sum() - self.known.sum())
        self.scores = every[self.known]
        units = bootstrap.units(judged.queries)
        self.units = None if units is None else np.unique(units[self.known], return_inverse=True)[1]

    def result(self, max_tokens: float | None, tokens: FloatArray | None, rel: int | None, m: int) -> AnswersByK:
        """The rows, the advice and the sentence."""
        last = self.ks[-1]
        count = len(self.scores)
        units = count if self.units is None else len(np.unique(self.units))
        if units < _FEWEST_QUERIES:
            what = "queries" if self.units is None else "clusters of queries"
            none = (
                f"No advice on K by the answers: {units} {what} with a score at all of K = "
                f"{', '.join(map(str, self.ks))} are too few; at least {_FEWEST_QUERIES} are needed."
            )
            return AnswersByK((), Recommendation(None, none, ANSWERS, last), None, count, self.left_out)
        bounds = self._bounds()
        rows = tuple(
            AnswersAtK(
                k,
                float(self.scores[:, i].mean()),
                float(bounds.value[i]),
                None if k == last else float(bounds.high[i]),
                None if tokens is None else float(tokens[min(k, len(tokens)) - 1]),
            )
            for i, k in enumerate(self.ks)
        )
        advice = self._advice(bounds, rows, max_tokens)
        return AnswersByK(rows, advice, self._sentence(bounds, advice, rel, m), count, self.left_out)

    def _bounds(self) -> _Bounds:
        gaps = (self.scores[:, -1:] - self.scores) / (self.high - self.low)
        tail = (1 - self.bootstrap.level) / 2
        smaller = gaps[:, :-1]
        high = np.append(highest_mean(smaller, -1.0, 1.0, tail, self.units), 0.0)
        tail /= max(1, 2 * smaller.shape[1])
        fall = np.append(-highest_mean(smaller, -1.0, 1.0, tail, self.units), 0.0)
        return _Bounds(gaps.mean(axis=0), high, fall)

    # -- advice ----------------------------------------------------------------------------------

    def _advice(self, bounds: _Bounds, rows: tuple[AnswersAtK, ...], max_tokens: float | None) -> Recommendation:
        last = self.ks[-1]
        dear = np.flatnonzero(bounds.value > self.max_loss + _SAME)
        place = int(dear[-1]) + 1 if len(dear) else 0
        affordable = None
        warnings: tuple[str, ...] = ()
        if max_tokens is not None:
            within = [i for i, row in enumerate(rows) if row.tokens is not None and row.tokens <= max_tokens]
            affordable = rows[within[-1]].K if within else 0
            if not within:
                text = f"even K = {self.ks[0]} has more than {max_tokens:g} tokens on average"
                none = "No advice on K: no K with scored answers meets the requirements."
                return Recommendation(None, none, ANSWERS, last, within_tokens=0, warnings=(text,))
            if within[-1] < place:
                warnings = (
                    f"by the answers alone K = {self.ks[place]} is advised, but {max_tokens:g} tokens are enough only "
                    f"for K = {affordable}",
                )
                place = within[-1]
        shown = place < len(self.ks) - 1 and bool((bounds.high[place:-1] <= self.max_loss).all())
        reason = self._reason(place, bounds, shown)
        return Recommendation(
            self.ks[place],
            reason,
            ANSWERS,
            last,
            float(bounds.value[place]),
            float(bounds.high[place]),
            shown,
            affordable,
            warnings,
        )

    def _reason(self, place: int, bounds: _Bounds, shown: bool) -> str:
        chosen, last, queries = self.ks[place], self.ks[-1], counted(len(self.scores), "query", "queries")
        means = self.scores.mean(axis=0)
        allowed = f"{100 * self.max_loss:.4g}"
        if place == len(self.ks) - 1:
            before = self.ks[-2]
            return (
                f"K = {chosen} by the answers, the largest K with scores up to the budget: their mean score is "
                f"{number(means[-2])} at K = {before} and {number(means[-1])} at K = {last}, a loss of "
                f"{_points(bounds.value[-2])} points of the scale in {queries}, more than the {allowed} allowed."
            )
        level = level_text(self.bootstrap.level)
        sentence = (
            f"K = {chosen} by the answers, the smallest K with scores that loses no more than {allowed} points of the "
            f"scale against K = {last}: the mean score is {number(means[place])} at K = {chosen} and "
            f"{number(means[-1])} at K = {last} in {queries}, {_change(bounds.value[place])}. The paired {level} "
            f"interval of the loss ends at {_points(bounds.high[place], up=True)} points"
        )
        best = int(means.argmax())
        higher = "" if best == place else f" The highest mean score is {number(means[best])} at K = {self.ks[best]}."
        if shown:
            return f"{sentence}, so it is shown that no more than {allowed} are lost.{higher}"
        return f"{sentence}; that no more than {allowed} are lost there, and at every larger K, is not shown.{higher}"

    # -- success stayed, answers fell ------------------------------------------------------------

    def _sentence(self, bounds: _Bounds, advice: Recommendation, rel: int | None, m: int) -> str | None:
        """That success stayed and the answers fell from a K to the largest one, if both are shown."""
        if advice.K is None:
            return None
        stayed = self._success_rose_at_most(rel, m)
        both = [
            i
            for i, k in enumerate(self.ks[:-1])
            if bounds.fall_at_least[i] > 0 and stayed[i] <= self.max_loss and k in self.ks
        ]
        if not both:
            return None
        place = self.ks.index(advice.K) if advice.K in [self.ks[i] for i in both] else both[0]
        fall, last = -bounds.value[place], self.ks[-1]
        return (
            f"Success stayed and answers fell: from K = {self.ks[place]} to K = {last} success rose by at most "
            f"{_points(stayed[place], up=True)} percentage points, and the answers lost {_points(fall)} points of the "
            f"scale, at least {_points_down(bounds.fall_at_least[place])} (both are shown together at "
            f"{level_text(self.bootstrap.level)})."
        )

    def _success_rose_at_most(self, rel: int | None, m: int) -> FloatArray:
        """The upper end of the rise of success from each smaller K to the largest one."""
        outcome = Success(rel=rel, m=m).outcome(self.judged, np.array(self.ks)).settled()
        gaps = outcome.parts[0][:, -1:] - outcome.parts[0][:, :-1]
        tail = (1 - self.bootstrap.level) / 2 / max(1, 2 * gaps.shape[1])
        units = self.bootstrap.units(self.judged.queries)
        if not outcome.defined[:, -1].any():
            return np.ones(gaps.shape[1])
        if units is not None:
            return highest_mean(gaps, 0.0, 1.0, tail, units)
        rose: Any = np.nan_to_num(gaps).sum(axis=0).astype(np.int64)
        return highest_rate(rose, outcome.defined[:, :-1].sum(axis=0), tail)


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


def _change(loss: float) -> str:
    return f"a loss of {_points(loss)} points" if loss >= 0 else f"a gain of {_points(-loss)} points"


def _points(share: float, *, up: bool = False) -> str:
    """A share in percentage points, with one decimal."""
    rounded = math.ceil(1000 * share - 1e-9) / 10 if up else round(100 * share, 1)
    return f"{rounded + 0.0:.1f}".replace("-", "−")


def _points_down(share: float) -> str:
    return f"{math.floor(1000 * share + 1e-9) / 10:.1f}"
