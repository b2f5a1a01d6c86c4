"""How often the cheapest run that is said to lose little loses more, in made worlds whose truth is known.

    python benchmarks/cheapest.py --worlds 200

The dearest run is the best. Each of the others is cheaper and loses `loss` on average; in a near-margin world that is a
hair more than the margin, so that naming any of them is an error. The columns:

- falsely: worlds in which a run is named whose true loss is above the margin (at most 2.5 %).
- intervals alone: the same, if the bound were the end of the interval of `compare` and nothing else.
- all hold: worlds in which the bounds of all runs hold at once (at least 97.5 %).
- named: worlds in which one of the cheaper runs is named.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.measures.base import Outcome
from rag_selectivity.render.blocks import align
from rag_selectivity.statistics.behind_best import behind_best
from rag_selectivity.statistics.draws import kept_draws
from rag_selectivity.statistics.paired import paired_difference

Floats = NDArray[np.float64]
LEVEL, DRAWS = 0.95, 2000
#: A true loss that is above the margin by this share of it.
_HAIR = 0.001


def _scores(random: np.random.Generator, queries: int, cheaper: int, loss: float) -> Floats:
    """Figures that differ a little in each query."""
    own = random.uniform(0.3, 0.7, queries) + random.uniform(-0.2, 0.2, (cheaper + 1, queries))
    own[:-1] -= loss
    return own


def _seldom_all(random: np.random.Generator, queries: int, cheaper: int, loss: float) -> Floats:
    """Ties, but for a few queries of which everything is lost."""
    return np.vstack([random.random((cheaper, queries)) >= loss, np.ones(queries)]).astype(float)


def _successes(random: np.random.Generator, queries: int, cheaper: int, loss: float) -> Floats:
    """Successes of which none depends on another."""
    rates = np.append(np.full(cheaper, 0.8 - loss), 0.8)
    return (random.random((cheaper + 1, queries)) < rates[:, None]).astype(float)


def _both_ways(random: np.random.Generator, queries: int, cheaper: int, loss: float) -> Floats:
    """Ties, but for a few queries that lose much and fewer that gain as much."""
    lost = random.random((cheaper, queries))
    gained = 0.02
    steps = np.where(lost < gained, 0.5, np.where(lost > 1 - gained - 2 * loss, -0.5, 0.0))
    return np.vstack([0.5 + steps, np.full(queries, 0.5)])


def _small_gains(random: np.random.Generator, queries: int, cheaper: int, loss: float) -> Floats:
    """A small gain in nearly every query, and everything lost in a few."""
    fails = 1 - (0.9 - loss) / 0.91
    return np.vstack([np.where(random.random((cheaper, queries)) < fails, 0.0, 0.91), np.full(queries, 0.9)])


WORLDS: dict[str, Callable[[np.random.Generator, int, int, float], Floats]] = {
    "a little in each query": _scores,
    "seldom everything": _seldom_all,
    "successes": _successes,
    "seldom much, both ways": _both_ways,
    "small gains, seldom all lost": _small_gains,
}
#: (queries, margin)
SIZES = ((20, 0.1), (100, 0.1), (400, 0.02))


def _intervals_alone(outcomes: list[Outcome]) -> Floats:
    most = np.zeros(len(outcomes))
    level = 1 - (1 - LEVEL) / (len(outcomes) - 1)
    for i, j in combinations(range(len(outcomes)), 2):
        gap = paired_difference(outcomes[i], outcomes[j], level=level, draws=DRAWS)
        most[i], most[j] = max(most[i], -gap.low[0]), max(most[j], gap.high[0])
    return most


def shares(name: str, queries: int, cheaper: int, margin: float, loss: float, worlds: int) -> tuple[float, ...]:
    """(falsely, intervals alone, all hold, named) of so many worlds."""
    falsely = alone = hold = named = 0
    with kept_draws():
        for seed in range(worlds):
            random = np.random.default_rng([seed, queries, cheaper])
            values = WORLDS[name](random, queries, cheaper, loss)
            outcomes = [Outcome((row[:, None],), "") for row in values]
            most = behind_best(outcomes, level=LEVEL, draws=DRAWS)
            chosen = bool((most[:-1] <= margin).any())
            named += chosen
            falsely += chosen and loss > margin
            alone += loss > margin and bool((_intervals_alone(outcomes)[:-1] <= margin).any())
            hold += bool((most[:-1] >= loss).all())
    return tuple(count / worlds for count in (falsely, alone, hold, named))


def main() -> None:
    """Print two tables: near the margin, and equal runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=200)
    worlds = parser.parse_args().worlds
    rows = []
    for name in WORLDS:
        for queries, margin in SIZES:
            for cheaper in (1, 3):
                found = shares(name, queries, cheaper, margin, margin * (1 + _HAIR), worlds)
                cells = [f"{share:.3f}" for share in found[:3]]
                rows.append([name, str(queries), f"{margin:g}", str(cheaper + 1), *cells])
    print("True loss a hair above the margin\n")
    print(align(["world", "queries", "margin", "runs", "falsely", "intervals alone", "all hold"], rows))
    rows = []
    for name in WORLDS:
        for queries, margin in ((100, 0.1), (400, 0.02), (400, 0.1)):
            for cheaper in (1, 3):
                found = shares(name, queries, cheaper, margin, 0.0, worlds // 4)
                rows.append([name, str(queries), f"{margin:g}", str(cheaper + 1), f"{found[2]:.3f}", f"{found[3]:.3f}"])
    print("\nEqual runs\n")
    print(align(["world", "queries", "margin", "runs", "all hold", "named"], rows))


if __name__ == "__main__":
    main()
