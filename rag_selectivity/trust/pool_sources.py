"""What each of several pools is worth: PROC of one alone, PROC without it, and the difference that it makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import Measure, Outcome
from rag_selectivity.tables.ids import IntArray


@dataclass(frozen=True, slots=True)
class SourceOutcomes:
    """The figures of every query for one of several pools.

    Attributes
    ----------
    alone : Outcome
        The ceiling of this pool alone. A query that it lacks has an empty pool.
    without : Outcome
        The ceiling of the passages that the other pools hold too, or that no pool holds and the run shows.
    adds : Outcome
        The ceiling of all pools minus `without`.
    """

    alone: Outcome
    without: Outcome
    adds: Outcome


def source_outcomes(
    judged: JudgedRun, measure: Measure, depths: IntArray, figures: Outcome
) -> Iterator[tuple[str, SourceOutcomes]]:
    """Each pool with its figures under a ceiling such as PROC; `figures` are those of all pools together."""
    pool = judged.candidates
    nothing = judged.hits.chosen(np.empty(0, np.int64))
    for name, hits in judged.pool_sources.items():
        others = [each.judgment for other, each in judged.pool_sources.items() if other != name]
        alone_in_it = np.setdiff1d(hits.judgment, np.concatenate(others))
        reduced = replace(
            judged,
            pool=pool.chosen(~np.isin(pool.judgment, alone_in_it)),
            hits=judged.hits.chosen(~np.isin(judged.hits.judgment, alone_in_it)),
        )
        without = measure.outcome(reduced, depths).settled()
        alone = measure.outcome(replace(judged, pool=hits, hits=nothing), depths).settled()
        gap = figures.parts[0] - without.parts[0]
        yield name, SourceOutcomes(alone, without, Outcome((gap,), figures.undefined, weights=figures.weights))
