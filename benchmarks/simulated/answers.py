"""Correlations with scores of answers (`validate`), and what `answers` says of an LLM, where the truth is known."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from benchmarks.simulated import Line, inside, tested
from rag_selectivity.answers.figures import Scored, accuracies, contrasts
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.correlation import KENDALL, PEARSON, SPEARMAN, Series, correlated, detectable
from rag_selectivity.inference.paired import paired_difference
from rag_selectivity.measures.base import Outcome
from rag_selectivity.results.answers import JUNK, SCORES, Shown

#: What becomes of two normal variables: the figures of a measure, and the scores of answers.
WORLDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "continuous, continuous": (lambda x: x, lambda y: y),
    "continuous, half right": (lambda x: x, lambda y: (y > 0) * 1.0),
    "continuous, 90 % right": (lambda x: x, lambda y: (y > -1.28) * 1.0),
    "0/1, half right": (lambda x: (x > 0) * 1.0, lambda y: (y > 0) * 1.0),
    "80 % 1, 80 % right": (lambda x: (x > -0.84) * 1.0, lambda y: (y > -0.84) * 1.0),
    "six values, grades 1-5": (
        lambda x: np.clip(np.round(1.5 * x + 1), 0, 5),
        lambda y: np.clip(np.round(y + 3), 1, 5),
    ),
    "heavy tails": (np.exp, np.exp),
}
SIZES, DRAWS = (10, 20, 60), 400


def pair(world: str, rho: float, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Figures and scores of n queries."""
    x = rng.normal(size=n)
    figures, scores = WORLDS[world]
    return figures(x), scores(rho * x + np.sqrt(1 - rho**2) * rng.normal(size=n))


def true_correlations(world: str, rho: float) -> dict[str, float]:
    """The correlations of very many queries."""
    from scipy.stats import kendalltau, pearsonr, spearmanr

    x, y = pair(world, rho, 400_000, np.random.default_rng(1))
    # exp of normals has tails so heavy that no sample is large enough.
    pearson = (np.exp(rho) - 1) / (np.e - 1) if world == "heavy tails" else pearsonr(x, y).statistic
    tau = kendalltau(x[:60_000], y[:60_000]).statistic
    return {SPEARMAN: spearmanr(x, y).statistic, PEARSON: pearson, KENDALL: tau}


def of_correlations(samples: int) -> Iterator[Line]:
    """Coverage of the intervals of correlations."""
    for world, rho, n in product(WORLDS, (0.0, 0.5, 0.9, 0.99), SIZES):
        truth, rng = true_correlations(world, rho), np.random.default_rng([n, int(100 * rho)])
        held: dict[str, list[bool]] = {kind: [] for kind in (SPEARMAN, PEARSON, KENDALL)}
        for sample in range(samples):
            series = Series(*pair(world, rho, n, rng), np.arange(n))
            for kind, each in {} if series.reason else correlated([series], draws=DRAWS, seed=sample)[0].items():
                interval = each.interval(0.95)
                held[kind].append(interval.low - 1e-9 <= truth[kind] <= interval.high + 1e-9)
        shares = {f"holds: {kind}": np.mean(each) if each else math.nan for kind, each in held.items()}
        yield Line(f"{world}, rho = {rho}, n = {n}", shares)


def of_measures(samples: int) -> Iterator[Line]:
    """How often one of two measures that follow equally is said to follow better."""
    for world, (rho, between) in product(list(WORLDS)[:-1], ((0.0, 0.0), (0.5, 0.3), (0.5, 0.9))):
        figures, scores = WORLDS[world]
        cover = np.array([[1, rho, rho], [rho, 1, between], [rho, between, 1]])
        cells = {}
        for n in SIZES:
            rng, shown = np.random.default_rng([n, int(100 * rho), int(100 * between)]), []
            for sample in range(samples):
                y, *both = rng.multivariate_normal(np.zeros(3), cover, n).T
                series = [Series(figures(x), scores(y), np.arange(n)) for x in both]
                if not any(each.reason for each in series):
                    one, other = correlated(series, draws=DRAWS, seed=sample)
                    shown.append(one[SPEARMAN].minus(other[SPEARMAN]).p <= 0.05)
            cells[f"errs: p ≤ .05, n = {n}"] = np.mean(shown) if shown else math.nan
        yield Line(f"{world}, rho = {rho}, between {between}", cells)


def of_detectable(samples: int) -> Iterator[Line]:
    """How often a true correlation of the size that is called detectable is shown, alone and among twelve."""
    for family, n in product((1, 12), (30, 60, 200)):
        least, rng, shown = detectable(n, 0.05 / family, 0.8), np.random.default_rng([n, family]), 0
        rho = 2 * np.sin(np.pi * least / 6)  # Spearman's rho of normals: 6/pi * arcsin(rho/2)
        for sample in range(samples):
            x = rng.normal(size=n)
            y = rho * x + np.sqrt(max(0.0, 1 - rho**2)) * rng.normal(size=n)
            (found,) = correlated([Series(x, y, np.arange(n))], draws=DRAWS, seed=sample)
            shown += found[SPEARMAN].p <= 0.05 / family
        yield Line(f"n = {n}, {family} tested", {"detectable": least, "shown": shown / samples})


# -- answers of an LLM -----------------------------------------------------------------------------------------

RUNS = (10, 20, 50, 200)


def answers(rng: np.random.Generator, n: int, rates: Sequence[float]) -> np.ndarray:
    """Right (1) or wrong (0) for n queries and several sets; half of the coins are the query's own."""
    own, shared = rng.random((n, len(rates))), rng.random((n, 1))
    return (np.where(rng.random((n, len(rates))) < 0.5, shared, own) < np.array(rates)).astype(np.float64)


def line(cell: str, truth: float, low: Any, high: Any, p: Any) -> Line:
    """Coverage where the figure is defined, how often it differs from 0, and the median width."""
    low, high, p = (np.asarray(each, float) for each in (low, high, p))
    known = ~np.isnan(low)
    shown = np.mean((low[known] > 0) | (high[known] < 0)) if np.isnan(p).all() else np.mean(p[~np.isnan(p)] <= 0.05)
    width = np.median(high[known] - low[known])
    figures = {"truth": truth, "defined": known.mean(), "holds": inside(low, truth, high)}
    return Line(cell, {**figures, **tested(float(shown), equal=truth == 0), "median width": float(width)})


def of_lift(samples: int) -> Iterator[Line]:
    """Lift over no passages, and bits over random passages, from accuracies."""
    lifts = ((0.5, 0.5), (0.05, 0.05), (0.95, 0.95), (0.02, 0.3), (0.66, 0.5))
    bits = ((0.25, 0.25), (0.05, 0.05), (0.95, 0.95), (0.25, 0.9), (0.05, 0.5), (0.02, 0.98))
    for (name, cells), n in product((("lift", lifts), ("bits", bits)), RUNS):
        for one, two in cells:
            drawn = answers(np.random.default_rng(7), n * samples, (one, two))
            sides = [drawn[:, side].reshape(n, samples) for side in (0, 1)]
            first, last = (accuracies(side) if name == "bits" else Outcome((side,), "") for side in sides)
            truth = math.log2(two / one) if name == "bits" else two - one
            found = paired_difference(last, first)
            yield line(f"{name}: {one} and {two}, n = {n}", truth, found.low, found.high, found.p)


def of_slope(samples: int) -> Iterator[Line]:
    """The slope of the accuracy with each junk passage."""
    counts = np.array([0, 2, 5, 10, 20], np.float64)
    shown = [Shown(JUNK, int(count)) for count in counts]
    cells = ((0.9, 0.02), (0.9, 0.0), (0.5, 0.0), (0.03, 0.0), (0.98, 0.0), (0.66, 0.03), (1.0, 0.001))
    for (best, fall), n in product(cells, RUNS):
        rng, rates, found = np.random.default_rng(7), np.maximum(best - fall * counts, 0), []
        for _ in range(samples):
            values = dict(zip(shown, answers(rng, n, rates).T, strict=True))
            scored = Scored(SCORES["choice"], tuple(f"q{i}" for i in range(n)), values)
            found.append(next(each for each in contrasts(scored, Bootstrap(100)) if each.kind == "slope"))
        ends = [[getattr(each, end, math.nan) for each in found] for end in ("low", "high", "p")]
        yield line(f"{best} − {fall} · junk, n = {n}", float(np.polyfit(counts, rates, 1)[0]), *ends)
