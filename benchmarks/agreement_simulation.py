"""Do the intervals and verdicts of `agree` hold? Made worlds with known truth, and one real collection.

    python benchmarks/agreement_simulation.py [--times 5]

Coverage is the share of samples whose interval holds the truth. In 240 samples .95 varies by ±.03.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np

import rag_selectivity as rs
from rag_selectivity.statistics.agreement import agreement

GRADES = np.arange(1, 6)
#: How often people give each grade.
COMMON = {
    "even": np.full(5, 0.2),
    "very skewed": np.array([0.8, 0.1, 0.05, 0.03, 0.02]),
    "two grades": np.array([0.7, 0, 0, 0, 0.3]),
}
#: In which share of the pairs a judge says what people say; otherwise it guesses.
SKILL = {"very good": 0.98, "good": 0.93, "half guessed": 0.5, "mostly guessed": 0.2}
FIGURES = ("exact", "within_one", "bias", "kappa", "kappa_linear", "kappa_quadratic", "ac2", "alpha", "spearman")


@dataclass(frozen=True)
class World:
    """Pairs of queries, graded by people and by a judge.

    `alike` says how much the pairs of a query hang together, in people's grades and in the judge's skill: 0 to 1.
    """

    judge: str
    common: str
    alike: float
    pairs: int | None

    def sample(self, rng: np.random.Generator, queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(query, human grade, judge's grade) of each pair; 1 to 10 pairs a query where `pairs` is None."""
        sizes = rng.integers(1, 11, queries) if self.pairs is None else np.full(queries, self.pairs)
        query = np.repeat(np.arange(queries), sizes)
        tilt = np.exp(rng.normal(0, 0.6 * self.alike, (queries, 1)) * (GRADES - 3))
        shares = COMMON[self.common] * tilt
        human = drawn(rng, (shares / shares.sum(axis=1, keepdims=True))[query])
        right = rng.random(len(query)) < self.skill(rng, queries)[query]
        if self.judge == "near misses":
            other = np.clip(human + rng.choice([-1, 1], len(query)), 1, 5)
        elif self.judge == "a grade too kind":
            other = np.minimum(human + 1, 5)
        else:
            # Who guesses half of the time guesses any grade; the others keep to what is common.
            shares = COMMON["even"] if self.judge == "half guessed" else COMMON[self.common]
            other = drawn(rng, np.broadcast_to(shares, (len(query), 5)))
        return query, human, np.where(right, human, other)

    def skill(self, rng: np.random.Generator, queries: int) -> np.ndarray:
        """The judge's skill at each query."""
        if self.judge.startswith("lost in"):
            share = {"lost in 1 of 20": 0.05, "lost in 1 of 7": 0.15}[self.judge]
            return np.where(rng.random(queries) < share, 0.0, 0.97)
        mean = SKILL.get(self.judge, 0.6)
        if not self.alike:
            return np.full(queries, mean)
        strength = 2 * (1 - self.alike) / self.alike
        return rng.beta(mean * strength, (1 - mean) * strength, queries)

    def truth(self) -> dict[str, float]:
        """The figures of very many queries."""
        query, human, judge = self.sample(np.random.default_rng(1), 100_000)
        found = agreement(human, judge, (query // 10_000).astype(str), bootstrap=rs.Bootstrap(resamples=1))
        return {name: getattr(found, name).value for name in FIGURES}


def drawn(rng: np.random.Generator, shares: np.ndarray) -> np.ndarray:
    """A grade for each row of shares."""
    return 1 + (rng.random((len(shares), 1)) > shares.cumsum(axis=1)).sum(axis=1).clip(0, 4)


JUDGES = (*SKILL, "near misses", "a grade too kind", "lost in 1 of 20", "lost in 1 of 7")


def worlds() -> Iterator[World]:
    for judge, common, (alike, pairs) in product(JUDGES, COMMON, ((0.0, 3), (0.5, None))):
        if common == "two grades" and judge in ("near misses", "a grade too kind"):
            continue
        yield World(judge, common, alike, pairs)


def coverage(task: tuple[World, int, int]) -> dict[str, float]:
    """For each figure how many of a world's intervals hold the truth, among the samples that have an interval."""
    world, queries, samples = task
    truth, rng = world.truth(), np.random.default_rng(queries)
    held = {name: [0, 0] for name in FIGURES}
    for _ in range(samples):
        query, human, judge = world.sample(rng, queries)
        found = agreement(human, judge, query.astype(str), grades=(1, 5), bootstrap=rs.Bootstrap(resamples=400))
        for name in FIGURES:
            interval = getattr(found, name)
            if not np.isnan(interval.low):
                held[name][0] += interval.low <= truth[name] <= interval.high
                held[name][1] += 1
    return {name: inside / of for name, (inside, of) in held.items() if of >= samples / 2}


def verdicts(task: tuple[str, int, int]) -> dict[str, float]:
    """How often each verdict is given; the grades are evenly common, with three pairs a query."""
    judge, queries, samples = task
    rng, world, said = np.random.default_rng(queries), World(judge, "even", 0.0, 3), {}
    for _ in range(samples):
        query, human, given = world.sample(rng, queries)
        found = agreement(human, given, query.astype(str), grades=(1, 5), bootstrap=rs.Bootstrap(resamples=400))
        said[found.verdict] = said.get(found.verdict, 0) + 1 / samples
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--times", type=int, default=1, help="how many times the samples of the table in docs/reference/simulations.md"
    )
    times = parser.parse_args().times
    with ProcessPoolExecutor() as pool:
        print_coverage(pool, 240 * times)
        print_verdicts(pool, 400 * times)


def print_coverage(pool: Executor, samples: int) -> None:
    chosen = list(worlds())
    print(f"coverage of 95 % intervals, {len(chosen)} worlds, {samples} samples each: lowest, and cells below .93")
    print("queries " + "".join(f"{name.replace('quadratic', 'quad'):>13}" for name in FIGURES))
    for queries in (10, 20, 50):
        found = list(pool.map(coverage, [(world, queries, samples) for world in chosen]))
        cells = ([of[name] for of in found if name in of] for name in FIGURES)
        print(f"{queries:>7} " + "".join(f"{min(of):9.3f} {sum(c < 0.93 for c in of):3}" for of in cells), flush=True)


def print_verdicts(pool: Executor, samples: int) -> None:
    print("\nverdicts, three pairs a query, grades evenly common: share of samples")
    tasks = list(product((*SKILL, "a grade too kind"), (2, 5, 10, 20, 50, 100, 200, 400), (samples,)))
    for (judge, queries, _), said in zip(tasks, pool.map(verdicts, tasks), strict=True):
        print(f"{judge:18}{queries:4} queries   " + ", ".join(f"{word} {said[word]:.3f}" for word in sorted(said)))


if __name__ == "__main__":
    main()
