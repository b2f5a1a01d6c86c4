"""What is known to go wrong with a measure in the sets at hand, as notes beside its figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import count_at
from rag_selectivity.measures.base import Measure
from rag_selectivity.measures.chance import RandomSuccess, regime
from rag_selectivity.validate.sets import AnsweredRun
from rag_selectivity.wording import percent

#: From this K/N_p on, the passages that are not relevant are nearly all of the K for every query.
_FAR_ABOVE = 3.0
#: Below this share of the relevant passages, a pool is too poor to estimate their number.
_POOR_POOL = 0.5
#: From this share of other passages in the top K on, it matters that nDCG does not count them.
_MUCH_JUNK = 0.5


def notes_on(measure: Measure, k: int | None, runs: Sequence[AnsweredRun]) -> tuple[str, ...]:
    """The notes on a measure at K, over the queries of all runs; none if K is not known."""
    return () if k is None else tuple(_notes(measure, k, runs))


def _notes(measure: Measure, k: int, runs: Sequence[AnsweredRun]) -> Iterator[str]:
    rel = getattr(measure, "rel", None)
    if measure.name == "T":
        ratios = np.concatenate([run.ratios(k, rel) for run in runs])
        ratio = 0.0 if np.isnan(ratios).all() else float(np.nanmedian(ratios))
        if ratio < _FAR_ABOVE:
            return
        yield (
            f"K is {ratio:.1f} times N_p in the median query: most of the K passages cannot be relevant, and T charges "
            f"the retriever for them"
        )
    if measure.name == "Fe":
        yield from _of_pool(k, runs, rel)
    if measure.name == "RA-nWG":
        without = [float((run.judged.labels[:, run.judged.grades == 5].sum(axis=1) == 0).mean()) for run in runs]
        if (share := float(np.mean(without))) > 0:
            yield (
                f"{percent(share)} of the queries have no passage of grade 5: there a grade 4 weighs as much as a 5 "
                f"does elsewhere"
            )
    if measure.name == "Success" and (drawn := _random_success(measure, k, runs)) is not None:
        yield (
            f"a random draw of {k} passages succeeds in {percent(drawn)} of the queries (the collapse zone of BoR): a "
            f"success says little about the retriever there"
        )
    if measure.name == "nDCG":
        others = [1 - run.judged.hits_at(np.array([k]), rel)[:, 0].mean() / k for run in runs]
        if (share := float(np.mean(others))) >= _MUCH_JUNK:
            yield (
                f"{percent(share)} of the top {k} are not relevant, and nDCG has no penalty for them: junk and an "
                f"empty slot are the same to it"
            )


def _of_pool(k: int, runs: Sequence[AnsweredRun], rel: int | None) -> Iterator[str]:
    """How many of the relevant passages the first 2K of the pool hold, from which Fe estimates their number."""
    found = known = 0
    for run in runs:
        pool = run.judged.candidates
        positives = pool.chosen((pool.grade >= run.judged.threshold(rel)) & ~pool.repeated)
        found += int(count_at(positives, len(run.judged), np.array([2 * k])).sum())
        known += int(run.judged.relevant(rel).sum())
    if known and found / known < _POOR_POOL:
        yield (
            f"the first {2 * k} of the pools hold {percent(found / known)} of the relevant passages: Fe estimates too "
            f"few of them, and is too high"
        )


def _random_success(measure: Measure, k: int, runs: Sequence[AnsweredRun]) -> float | None:
    """The mean success of a random draw, if that is in the collapse zone; None elsewhere, or if it is not known."""
    if any(run.judged.corpus_size is None for run in runs):
        return None
    chance = RandomSuccess(rel=getattr(measure, "rel", None), m=getattr(measure, "m", 1))
    try:
        drawn = float(np.mean([chance.outcome(run.judged, np.array([k])).settled().value()[0] for run in runs]))
    except InputError:
        return None
    return drawn if np.isfinite(drawn) and regime(drawn) == "collapse" else None
