"""What can be done next about the best run, with the most that each action can gain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rag_selectivity.advice.losses import Gain, Losses, ceilings, figures, gain_of, joined_hits
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.hits import Hits
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import FloatArray, Measure
from rag_selectivity.results.decision import Action
from rag_selectivity.results.sweep import Recommendation
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.wording import number, percent, signed

#: A merge names the smallest of these depths of the other pool that brings nine tenths of what the whole pool brings.
_DEPTHS = (5, 10, 20, 50, 100, 200, 500, 1000)
_MOST_OF_IT = 0.9
#: A gain below this is nothing to work for.
LEAST_GAIN = 0.005


@dataclass(frozen=True, slots=True)
class Situation:
    """What the actions about a run follow from.

    `closed` says whether nearly all labels are of what the runs retrieved, so that it is unknown what a pool lacks.
    `unbelieved` says that the labels show nothing about the retriever, and `label_step` how to have labels that do.
    `completed` says that the run's figures rest on completed labels, which say nothing of the union of two pools.
    """

    judged: Mapping[str, JudgedRun]
    run: str
    measure: Measure
    losses: Losses | None
    advice: Recommendation
    bootstrap: Bootstrap | None
    closed: bool
    unbelieved: bool
    completed: bool
    label_step: str

    @property
    def depth(self) -> int:
        return int(self.measure.at or 1)

    def actions(self) -> tuple[Action, ...]:
        """The actions, the most to gain first; labelling comes first where the labels show nothing without it."""
        gains = [action for action in (*self._of_the_pool(), *self._of_k()) if not action.gain < LEAST_GAIN]
        gains.sort(key=lambda action: -math.inf if math.isnan(action.gain) else -action.gain)
        cuts = [*self._cut()]
        labels = [Action("label", self.label_step)] if self.label_step else []
        return (*labels, *gains, *cuts) if self.unbelieved else (*gains, *cuts, *labels)

    # -- the pool ------------------------------------------------------------------------------------------

    def _of_the_pool(self) -> Iterator[Action]:
        if self.losses is None:
            if not self.completed:
                yield Action("candidates", "give the candidates (--pool) to see whether to rerank or to widen the pool")
            return
        size = int(self.judged[self.run].candidates_returned.max(initial=0))
        best = f"the best {self.depth} of the pool's {size} instead of these"
        yield _action("rerank", "rerank better", self.losses.rerank, best)
        if not self.closed:
            all_of_it = f"all of the evidence instead of what the {size} hold, with the same share of it selected"
            yield _action("widen", "widen the pool", self.losses.widen, all_of_it)
        merge = None if self.completed else self._merge()
        if merge is not None:
            name, depth, gain = merge
            yield _action("merge", f"add the first {depth} of {name} to the pool", gain)

    def _merge(self) -> tuple[str, int, Gain] | None:
        """The run whose pool adds most to this run's pool, how deep, and the gain at the share that is now selected."""
        own = self.judged[self.run]
        kept, ceiling = figures(own, self.measure), ceilings(own, self.measure)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(ceiling > 0, kept / ceiling, np.nan)
        if np.isnan(share).all():
            return None
        share = np.where(np.isnan(share), np.nanmean(share), share)
        best: tuple[str, FloatArray] | None = None
        for name, other in self.judged.items():
            if name == self.run or other.queries != own.queries:
                continue
            gaps = share * (self._with(other.candidates, other.candidates_returned) - ceiling)
            if best is None or np.nanmean(gaps) > np.nanmean(best[1]) + 1e-12:
                best = name, gaps
        if best is None or not np.nanmean(best[1]) >= LEAST_GAIN:
            return None
        name, gaps = best
        return (
            name,
            self._deep_enough(self.judged[name], ceiling, share, float(np.nanmean(gaps))),
            gain_of(own, gaps, self.bootstrap),
        )

    def _with(self, hits: Hits, sizes: IntArray) -> FloatArray:
        """The ceiling of this run's pool together with another's."""
        own = self.judged[self.run]
        pool = joined_hits([own.candidates, hits])
        return ceilings(own, self.measure, pool, own.candidates_returned + sizes)

    def _deep_enough(self, other: JudgedRun, ceiling: FloatArray, share: FloatArray, most: float) -> int:
        longest = int(other.candidates_returned.max(initial=1))
        for depth in _DEPTHS:
            if depth >= longest:
                break
            within = other.candidates.chosen(other.candidates.rank <= depth)
            gaps = share * (self._with(within, np.minimum(other.candidates_returned, depth)) - ceiling)
            if np.nanmean(gaps) >= _MOST_OF_IT * most:
                return depth
        return longest

    # -- K -------------------------------------------------------------------------------------------------

    def _of_k(self) -> Iterator[Action]:
        advised, curve = self.advice.K, self.advice.figures
        if advised is None or advised <= self.depth or len(curve) < advised:
            return
        gain = curve[advised - 1] - curve[self.depth - 1]
        text = f"show {advised} passages: {signed(gain)}"
        yield Action("raise", text, gain)

    def _cut(self) -> Iterator[Action]:
        advised = self.advice.K
        if advised is None or advised >= self.depth:
            return
        saved = 1 - advised / self.depth
        loss = "" if self.advice.loss is None else f", {self.advice.measure} loses {number(max(self.advice.loss, 0.0))}"
        yield Action("cut", f"show {advised} passages: the LLM reads {percent(saved)} less{loss}", saves=saved)


def _action(code: str, text: str, gain: Gain, detail: str = "") -> Action:
    return Action(code, f"{text}: at most {signed(gain.value)}", gain.value, gain.low, gain.high, detail=detail)
