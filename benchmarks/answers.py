"""Whether the figures of `answers` hold what they say: coverage and type I error in worlds whose truth is known.

    python benchmarks/answers.py [lift | bits | share | slope] [--worlds 1000]

Every world draws, for each query, answers that are right or wrong. The answers of one query to several sets are alike
to a degree: each is decided by the query's own coin with probability `alike`, and else by a coin of its own.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence

import numpy as np

from rag_selectivity.answers.figures import Scored, contrasts
from rag_selectivity.measures.answers import SCORES, accuracies
from rag_selectivity.measures.base import Outcome
from rag_selectivity.results.answers import JUNK, Contrast, Shown
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.paired import Difference, paired_difference
from rag_selectivity.statistics.share_of_lift import Share, share_of_lift

BOOTSTRAP = Bootstrap(resamples=100)
JUNK_COUNTS = (0, 2, 5, 10, 20)


def answers(rng: np.random.Generator, n: int, rates: Sequence[float], alike: float) -> np.ndarray:
    """Right (1) or wrong (0) for n queries and several sets: float64[n, sets]."""
    own, shared = rng.random((n, len(rates))), rng.random((n, 1))
    return (np.where(rng.random((n, len(rates))) < alike, shared, own) < np.array(rates)).astype(np.float64)


def contrast(kind: str, shown: Sequence[Shown], values: np.ndarray) -> Contrast:
    """The contrast of a kind that the package makes of these answers."""
    queries = tuple(f"q{i}" for i in range(len(values)))
    scored = Scored(SCORES["choice"], queries, dict(zip(shown, values.T, strict=True)))
    return next(each for each in contrasts(scored, BOOTSTRAP) if each.kind == kind)


def row(name: str, n: int, truth: float, found: Sequence[Contrast] | Sequence[Share] | Difference) -> str:
    """A line of the table: coverage where the figure is defined, how often it differs from 0, and the median width."""
    if isinstance(found, Difference):
        low, high, p = found.low, found.high, found.p
    else:
        low, high, p = (np.array([getattr(each, end, math.nan) for each in found]) for end in ("low", "high", "p"))
    known = ~np.isnan(low)
    covered = np.mean((low[known] - 1e-12 <= truth) & (truth <= high[known] + 1e-12))
    shown = np.mean((low[known] > 0) | (high[known] < 0)) if np.isnan(p).all() else np.mean(p[~np.isnan(p)] <= 0.05)
    width = np.median(high[known] - low[known])
    return f"| {name} | {n} | {truth:.3f} | {known.mean():.2f} | {covered:.3f} | {shown:.3f} | {width:.3f} |"


def pairs(worlds: int, n: int, first: float, second: float) -> tuple[np.ndarray, np.ndarray]:
    """The answers of many worlds at once: float64[queries, worlds] of each set."""
    drawn = answers(np.random.default_rng(7), n * worlds, (first, second), 0.5)
    return drawn[:, 0].reshape(n, worlds), drawn[:, 1].reshape(n, worlds)


def lift(worlds: int) -> Iterator[str]:
    for closed, run in [(0.5, 0.5), (0.05, 0.05), (0.95, 0.95), (0.02, 0.3), (0.66, 0.5)]:
        for n in (10, 20, 50, 200):
            without, given = (Outcome((side,), "") for side in pairs(worlds, n, closed, run))
            yield row(f"without passages {closed}, with {run}", n, run - closed, paired_difference(given, without))


def bits(worlds: int) -> Iterator[str]:
    for random, run in [(0.25, 0.25), (0.05, 0.05), (0.95, 0.95), (0.25, 0.9), (0.05, 0.5), (0.02, 0.98)]:
        for n in (10, 20, 50, 200):
            drawn, given = map(accuracies, pairs(worlds, n, random, run))
            yield row(f"random {random}, run {run}", n, math.log2(run / random), paired_difference(given, drawn))


def share(worlds: int) -> Iterator[str]:
    for rates in [
        (0.25, 0.6, 0.9),
        (0.25, 0.25, 0.9),
        (0.02, 0.5, 0.98),
        (0.6, 0.65, 0.75),
        (0.3, 0.2, 0.8),
        (0.3, 0.9, 0.9),
    ]:
        for n in (20, 50, 200):
            rng = np.random.default_rng(7)
            closed, run, ideal = rates
            found = []
            for _ in range(worlds):
                without, given, best = answers(rng, n, rates, 0.5).T
                found.append(share_of_lift(given, without, best, (0.0, 1.0)))
            truth = (run - closed) / (ideal - closed)
            yield row(f"{closed}, {run}, {ideal}", n, truth, found)


def slope(worlds: int) -> Iterator[str]:
    counts = np.array(JUNK_COUNTS, np.float64)
    shown = [Shown(JUNK, count) for count in JUNK_COUNTS]
    for best, fall in [(0.9, 0.02), (0.9, 0.0), (0.5, 0.0), (0.03, 0.0), (0.98, 0.0), (0.66, 0.03), (1.0, 0.001)]:
        for n in (10, 20, 50, 200):
            rng = np.random.default_rng(7)
            rates = np.maximum(best - fall * counts, 0)
            truth = float(np.polyfit(counts, rates, 1)[0])
            found = [contrast("slope", shown, answers(rng, n, rates, 0.5)) for _ in range(worlds)]
            yield row(f"{best} − {fall} · junk", n, truth, found)


HEADS = {
    "lift": "accuracies",
    "bits": "accuracies",
    "share": "accuracies without passages, with the run, ideal",
    "slope": "accuracy",
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("figure", choices=list(HEADS))
    parser.add_argument("--worlds", type=int, default=1000)
    asked = parser.parse_args()
    print(f"| {HEADS[asked.figure]} | queries | truth | defined | coverage | shown to differ from 0 | median width |")
    print("|---|---|---|---|---|---|---|")
    for line in globals()[asked.figure](asked.worlds):
        print(line, flush=True)
