"""PoolSource: what one of several pools is worth to a run."""

from __future__ import annotations

from dataclasses import dataclass

from rag_selectivity.results.estimate import Estimate


@dataclass(frozen=True, slots=True)
class PoolSource:
    """The best evidence that one of several pools holds, as PROC at a depth, over the queries of a run.

    All three rest on the labels as they are. Intervals are those of the report's bootstrap, with the same resamples.

    Attributes
    ----------
    alone : Estimate
        PROC of this pool alone. A query that it lacks counts as an empty pool.
    without : Estimate
        PROC of what the other pools hold. Passages that the run shows and no pool holds count too, as in PROC.
    adds : Estimate
        PROC of all pools minus `without`, query by query: what would be lost without this pool. From 0 to 1.
    """

    alone: Estimate
    without: Estimate
    adds: Estimate
