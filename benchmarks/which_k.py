"""How often the advice on K calls "shown" what is false, in worlds whose losses are known.

    python -m benchmarks.which_k

In each world the budget is K = 20 and two percentage points may be lost. "too large" is the true loss at K = 10 and
at K = 19; where neither is above .02, whatever is shown is true. "interval" is what would falsely be called
shown by the paired interval of `compare` in place of the bound by betting.
"""

from __future__ import annotations

import numpy as np

from rag_selectivity.advice import advise
from rag_selectivity.measures import RANWG
from rag_selectivity.measures.base import Outcome
from rag_selectivity.statistics.paired import paired_difference
from tests.advice_worlds import HARMLESS, MAX_K, MAX_LOSS, WORLDS, World, tried

QUERIES = (20, 50, 100, 200, 500, 1000)
SAMPLES, COMPARED = 1000, 200


def falsely_by_interval(world: World, queries: int) -> float:
    """The share of samples in which the interval's upper ends would call a larger loss shown."""
    losses, false = world.true_losses(), 0
    for sample in world.samples(queries, COMPARED, seed=2):
        figures = RANWG().outcome(sample, np.arange(1, MAX_K + 1)).parts[0]
        last = Outcome((np.repeat(figures[:, -1:], MAX_K - 1, axis=1),), "")
        difference = paired_difference(last, Outcome((figures[:, :-1],), ""), draws=1000)
        chosen = advise(sample, None, max_k=MAX_K, max_loss=MAX_LOSS).K
        shown = chosen is not None and chosen < MAX_K and bool((difference.high[chosen - 1 :] <= MAX_LOSS).all())
        false += shown and bool(losses[chosen - 1] > MAX_LOSS)
    return false / COMPARED


def main() -> None:
    print(f"{SAMPLES:,} samples each, {COMPARED} of the interval; shares of samples\n")
    print(
        f"{'world':48} {'true loss':>12} {'queries':>8} {'shown':>6} {'falsely':>8} {'bound < loss':>13} "
        f"{'interval':>9}"
    )
    for world in (*WORLDS, *HARMLESS):
        losses = world.true_losses()
        for queries in QUERIES:
            found = tried(world, queries, SAMPLES)
            by_interval = f"{falsely_by_interval(world, queries):9.3f}" if world.scale == "utility" else f"{'':9}"
            print(
                f"{world.name:48} {losses[9]:6.3f} {losses[18]:5.3f} {queries:8} {found.shown:6.3f} "
                f"{found.falsely:8.3f} {found.missed:13.3f} {by_interval}".rstrip(),
                flush=True,
            )


if __name__ == "__main__":
    main()
