"""Do the intervals, tests and differences of `validate` hold? Made worlds whose correlations are known.

    python -m benchmarks.validation [--samples 400] [--draws 1000] [--only coverage|differences|power|chosen]

Coverage is the share of samples whose interval of 95 % holds the true correlation; "shown" is the share whose p-value
is .05 or less. In 400 samples .95 varies by ±.011.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from rag_selectivity.statistics.choosing import folds_of, out_of_fold, rank_correlations
from rag_selectivity.statistics.correlation import (
    KENDALL,
    PEARSON,
    SPEARMAN,
    Series,
    correlated,
    detectable,
)

#: What becomes of two normal variables: the figures of a measure, and the scores of answers.
WORLDS: dict[str, tuple[Callable, Callable]] = {
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
CORRELATIONS = (0.0, 0.5, 0.9, 0.99)
SIZES = (10, 20, 60)


def pair(world: str, rho: float, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Figures and scores of n queries."""
    x = rng.normal(size=n)
    y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=n)
    figures, scores = WORLDS[world]
    return figures(x), scores(y)


def coverage(samples: int, draws: int) -> None:
    """The coverage of all three correlations, by world and number of queries: the lowest over the correlations."""
    print(f"coverage of 95 % intervals, {samples} samples a cell: the lowest of rho = 0, .5, .9, .99 (and that rho)")
    print(f"{'world':26}{'n':>5}   spearman      pearson       kendall")
    for world in WORLDS:
        truth = {rho: true_correlations(world, rho) for rho in CORRELATIONS}
        for n in SIZES:
            # All pairs of many queries in all draws take long.
            kinds = (SPEARMAN, PEARSON, KENDALL) if n < 30 else (SPEARMAN, PEARSON)
            found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
            for rho in CORRELATIONS:
                held = dict.fromkeys(found, 0)
                defined = 0
                rng = np.random.default_rng([n, int(100 * rho)])
                for sample in range(samples):
                    series = Series(*pair(world, rho, n, rng), np.arange(n), kinds=kinds)
                    if series.reason:
                        continue
                    defined += 1
                    for kind, each in correlated([series], draws=draws, seed=sample)[0].items():
                        interval = each.interval(0.95)
                        held[kind] += interval.low - 1e-9 <= truth[rho][kind] <= interval.high + 1e-9
                for kind, count in held.items():
                    found[kind].append((count / defined, rho))
            cells = "   ".join(f"{share:.3f} ({rho:4.2f})" for share, rho in (min(each) for each in found.values()))
            print(f"{world:26}{n:5}   {cells}", flush=True)


def true_correlations(world: str, rho: float) -> dict[str, float]:
    """The correlations of very many queries."""
    from scipy.stats import kendalltau, pearsonr, spearmanr

    x, y = pair(world, rho, 400_000, np.random.default_rng(1))
    # exp of normals has tails so heavy that no sample is large enough.
    pearson = (np.exp(rho) - 1) / (np.e - 1) if world == "heavy tails" else pearsonr(x, y).statistic
    tau = kendalltau(x[:60_000], y[:60_000]).statistic
    return {SPEARMAN: spearmanr(x, y).statistic, PEARSON: pearson, KENDALL: tau}


def differences(samples: int, draws: int) -> None:
    """How often one of two measures that follow equally is said to follow better."""
    print(f"\ntwo measures that follow the answers equally: share of {samples} samples with p <= .05")
    print(f"{'scores':26}{'rho':>5}{'between':>9}" + "".join(f"{f'n = {n}':>9}" for n in SIZES))
    for world in list(WORLDS)[:-1]:
        figures, scores = WORLDS[world]
        for rho, between in ((0.0, 0.0), (0.5, 0.3), (0.5, 0.9)):
            cells = []
            for n in SIZES:
                rng = np.random.default_rng([n, int(100 * rho), int(100 * between)])
                shown = defined = 0
                for sample in range(samples):
                    y, a, b = three(rho, between, n, rng)
                    first, second = (Series(figures(x), scores(y), np.arange(n), kinds=(SPEARMAN,)) for x in (a, b))
                    if first.reason or second.reason:
                        continue
                    defined += 1
                    one, other = correlated([first, second], draws=draws, seed=sample)
                    shown += one[SPEARMAN].minus(other[SPEARMAN]).p <= 0.05
                cells.append(f"{shown / max(1, defined):9.3f}")
            print(f"{world:26}{rho:5.1f}{between:9.2f}{''.join(cells)}", flush=True)


def three(rho: float, between: float, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores and two measures with the same correlation with them, and one between themselves."""
    cover = np.array([[1, rho, rho], [rho, 1, between], [rho, between, 1]])
    y, a, b = rng.multivariate_normal(np.zeros(3), cover, n).T
    return y, a, b


def power(samples: int, draws: int) -> None:
    """How often a true correlation of the size that is called detectable is shown, alone and among twelve."""
    print(f"\na true correlation of the detectable size: share of {samples} samples in which it is shown")
    for tested in (1, 12):
        for n in (30, 60, 200):
            least = detectable(n, 0.05 / tested, 0.8)
            # Spearman's rho of normals: 6/pi * arcsin(rho/2).
            rho = 2 * np.sin(np.pi * least / 6)
            rng = np.random.default_rng([n, tested])
            shown = 0
            for sample in range(samples):
                x = rng.normal(size=n)
                y = rho * x + np.sqrt(max(0.0, 1 - rho**2)) * rng.normal(size=n)
                found = correlated([Series(x, y, np.arange(n), kinds=(SPEARMAN,))], draws=draws, seed=sample)[0]
                shown += found[SPEARMAN].p <= 0.05 / tested
            print(f"n = {n:4}  {tested:2} tested  detectable {least:.3f}  shown {shown / samples:.3f}", flush=True)


def chosen(samples: int) -> None:
    """Alpha of F chosen by scores: the correlation on the same queries, out of fold, and on new queries."""
    print(f"\nalpha of F by the scores, {samples} samples: mean Spearman on the same queries, out of fold, on new ones")
    alphas = np.linspace(0, 1, 21)
    for world, noise in (("scores that follow F(alpha=.2)", 0.1), ("scores of chance", np.inf)):
        for n in (20, 60, 200):
            rng = np.random.default_rng(n)
            rows = []
            for sample in range(samples):
                values, scores = counts(alphas, noise, n, rng)
                fresh, fresh_scores = counts(alphas, noise, 2000, rng)
                same = rank_correlations(values, scores)
                best = int(np.argmax(same))
                ranks = out_of_fold([(values, scores, np.arange(n))], folds_of(np.arange(n), 5, sample))
                assert ranks is not None
                outside = rank_correlations(ranks[0][:, None], scores)[0]
                rows.append((same[best], outside, rank_correlations(fresh[:, [best]], fresh_scores)[0]))
            same, outside, new = np.mean(rows, axis=0)
            print(f"{world:32} n = {n:4}  same {same:+.3f}  out of fold {outside:+.3f}  new {new:+.3f}", flush=True)


def counts(alphas: np.ndarray, noise: float, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """F at each alpha for n queries, and scores that follow it at .2, or nothing."""
    relevant = rng.integers(1, 40, n)
    positive = rng.binomial(np.minimum(10, relevant), rng.uniform(0.2, 0.9, n))
    values = positive[:, None] / (alphas * 10 + (1 - alphas) * relevant[:, None])
    followed = positive / (0.2 * 10 + 0.8 * relevant)
    scores = rng.normal(size=n) if np.isinf(noise) else followed + rng.normal(0, noise, n)
    return values, scores


def main() -> None:
    """All of it, or one part."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", choices=("coverage", "differences", "power", "chosen"))
    given = parser.parse_args()
    if given.only in (None, "coverage"):
        coverage(given.samples, given.draws)
    if given.only in (None, "differences"):
        differences(given.samples, given.draws)
    if given.only in (None, "power"):
        power(given.samples, given.draws)
    if given.only in (None, "chosen"):
        chosen(given.samples)


if __name__ == "__main__":
    main()
