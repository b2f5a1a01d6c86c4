"""Worlds in which the loss of every K against the budget is known, and what the advice claims in their samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rag_selectivity.advice.by_loss import advise
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.hits import Hits
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import resolve_policy
from rag_selectivity.results.sweep import Recommendation
from rag_selectivity.tables.grades import SCALES

MAX_K, MAX_LOSS = 20, 0.02
#: A query: the grade at each rank up to one beyond MAX_K, 0 where nothing is judged.
Kind = tuple[int, ...]


def at_rank(rank: int, grade: int) -> Kind:
    """A query whose only judged passage stands at a rank."""
    return tuple(grade if place == rank else 0 for place in range(1, MAX_K + 2))


@dataclass(frozen=True)
class World:
    """Kinds of queries with their shares."""

    name: str
    scale: str
    kinds: tuple[Kind, ...]
    shares: tuple[float, ...]

    def joined(self, drawn: np.ndarray) -> JudgedRun:
        """The join of a sample of queries, given by their kinds."""
        grades = np.array(self.kinds)[drawn]
        query, place = np.nonzero(grades)
        known = np.arange(1, 6)
        return JudgedRun(
            queries=tuple(map(str, range(len(drawn)))),
            hits=Hits(query, place + 1, grades[query, place], np.zeros(len(query), bool), np.arange(len(query))),
            returned=np.full(len(drawn), MAX_K + 1),
            grades=known,
            labels=(grades[:, :, None] == known).sum(axis=1),
            corpus_size=None,
            scale=SCALES[self.scale],
            policy=resolve_policy(None),
        )

    def true_losses(self) -> np.ndarray:
        """The expected loss of each K, from a sample that holds every kind once."""
        from rag_selectivity.measures.chance import Success
        from rag_selectivity.measures.utility import RANWG

        every = self.joined(np.arange(len(self.kinds)))
        measure = RANWG() if self.scale == "utility" else Success()
        figures = measure.outcome(every, np.arange(1, MAX_K + 1)).parts[0]
        return np.array(self.shares) @ (figures[:, -1:] - figures)

    def samples(self, queries: int, times: int, seed: int) -> Iterator[JudgedRun]:
        rng = np.random.default_rng(seed)
        for _ in range(times):
            yield self.joined(rng.choice(len(self.kinds), size=queries, p=self.shares))


def _success_world(name: str, lost_at: dict[int, float]) -> World:
    """Success at rank 1, but for the shares of queries whose first hit stands at the given ranks."""
    ranks = [1, *lost_at]
    shares = [1 - sum(lost_at.values()), *lost_at.values()]
    return World(name, "trec", tuple(at_rank(rank, 1) for rank in ranks), tuple(shares))


def _utility_world(name: str, lost_at: dict[int, float]) -> World:
    """RA-nWG 1 at rank 1, or lost up to a rank, beside queries that gain or lose a little from K to K."""
    steady, noisy = 0.5 * (1 - sum(lost_at.values())), 0.25 * (1 - sum(lost_at.values()))
    gains = (5, *([3] * 18), 0, 3)
    loses = (5, *([3] * 17), 0, 3, 0)
    kinds = (at_rank(1, 5), gains, loses, *(at_rank(rank, 5) for rank in lost_at))
    return World(name, "utility", kinds, (steady, noisy, noisy, *lost_at.values()))


WORLDS = (
    _success_world("success: 2.1 % found at rank 20", {20: 0.021}),
    _success_world("success: .3 % at each of ranks 11 to 20", dict.fromkeys(range(11, 21), 0.003)),
    _success_world("success: 1 % at each of ranks 16 to 20", dict.fromkeys(range(16, 21), 0.01)),
    _utility_world("RA-nWG: 2.4 % lost up to rank 20", {20: 0.024}),
    _utility_world("RA-nWG: .4 % lost up to each of ranks 11 to 20", dict.fromkeys(range(11, 21), 0.004)),
)
HARMLESS = (
    _success_world("success: nothing is lost", {}),
    _success_world("success: .2 % found at rank 12", {12: 0.002}),
    _utility_world("RA-nWG: .2 % lost up to rank 12", {12: 0.002}),
)


@dataclass(frozen=True)
class Outcome:
    """Shares of samples: shown at all, shown though the true loss is larger, and the bound below the true loss."""

    shown: float
    falsely: float
    missed: float


def tried(world: World, queries: int, times: int, seed: int = 1) -> Outcome:
    """What the advice claims in samples of a world."""
    losses = world.true_losses()
    found: list[Recommendation] = [
        advise(sample, Bootstrap(), max_k=MAX_K, max_loss=MAX_LOSS) for sample in world.samples(queries, times, seed)
    ]
    advised = [advice for advice in found if advice.K is not None]
    return Outcome(
        sum(advice.shown for advice in advised) / times,
        sum(advice.shown and losses[advice.K - 1] > MAX_LOSS for advice in advised) / times,
        sum(advice.loss_high < losses[advice.K - 1] - 1e-12 for advice in advised) / times,
    )
