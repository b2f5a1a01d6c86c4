"""How often intervals and tests of weighted figures are right, in simulations with known truth.

    python -m benchmarks.weights [SAMPLES] [KIND ...]

Queries are drawn with their weights from a million queries, or as `golden queries` draws them from traffic:
stratified, with probabilities proportional to frequency. Heavier queries succeed as often as others, more often, or
less often. Each cell counts how often the 95 % interval contains the true weighted figure, and how often p is .05 or
less for two runs of equal rates.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity import Bootstrap
from rag_selectivity.golden.sampling import sampled
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.measures.base import Outcome
from rag_selectivity.measures.chance import BoR
from rag_selectivity.statistics.paired import paired_difference

Floats = NDArray[np.float64]
POPULATION, SAMPLES, RESAMPLES, DRAWS = 1_000_000, 200, 1000, 2000
RATES = np.array([0.03, 0.3, 0.7, 0.97])
SIZES = (20, 100)
#: How far the rate of a heavy query is from that of a light one, towards 1 (or 0).
PULL = 0.5
GOLDEN = "golden queries"
KINDS = ("lognormal", "Pareto(1.5)", GOLDEN)
FIGURES = ("Success", "mean", "BoR")


@dataclass(frozen=True)
class World:
    """A population: weights, the success rate of each query at each column, and the chance of a random draw."""

    name: str
    weights: Floats
    rates: Floats
    chance: Floats

    @classmethod
    def of(cls, kind: str, relation: str, rng: np.random.Generator) -> World:
        weights = {
            "lognormal": lambda: np.exp(rng.normal(0, 1, POPULATION)),
            "Pareto(1.5)": lambda: rng.pareto(1.5, POPULATION) + 1,
        }[kind]()
        heavy = (weights > np.quantile(weights, 0.75))[:, None]
        towards = {"unrelated": RATES, "heavier better": 1.0, "heavier worse": 0.0}[relation]
        rates = np.where(heavy, RATES + PULL * (towards - RATES), RATES)
        return cls(f"{kind}, {relation}", weights, rates, rng.beta(1, 30, POPULATION))

    def true(self) -> dict[str, Floats]:
        total = self.weights.sum()
        success = self.weights @ self.rates / total
        return {
            "Success": success,
            "mean": success * MEAN_VALUE,
            "BoR": np.log2(success / (self.weights @ self.chance / total)),
        }


#: The mean of a query's value where it succeeds, Beta(2, 1).
MEAN_VALUE = 2 / 3


def outcomes(success: Floats, values: Floats, chance: Floats, weights: Floats) -> dict[str, Outcome]:
    """Weighted outcomes of rates, of means of values between 0 and 1, and of bits over random."""
    columns = np.repeat(chance[:, None], success.shape[1], axis=1)
    made = {
        "Success": Outcome((success,), ""),
        "mean": Outcome((values,), ""),
        "BoR": Outcome((success, columns, 1 - columns), "", BoR.aggregate, baseline=1),
    }
    return {name: replace(each, weights=weights) for name, each in made.items()}


def drawn(rates: Floats, chance: Floats, weights: Floats, rng: np.random.Generator) -> dict[str, Outcome]:
    success = (rng.random(rates.shape) < rates).astype(np.float64)
    return outcomes(success, success * rng.beta(2, 1, rates.shape), chance, weights)


def _zeros() -> dict[str, Floats]:
    return {name: np.zeros(len(RATES)) for name in FIGURES}


@dataclass
class Counts:
    """For each figure and column: samples whose interval contains the truth, and whose p is at most .05."""

    samples: int = 0
    effective: float = 0.0
    covered: dict[str, Floats] = field(default_factory=_zeros)
    of_difference: dict[str, Floats] = field(default_factory=_zeros)
    false: dict[str, Floats] = field(default_factory=_zeros)

    def add(
        self,
        one: dict[str, Outcome],
        other: dict[str, Outcome],
        weights: Floats,
        true: dict[str, Floats],
        seed: int,
    ) -> None:
        """Count a sample of two runs with equal rates."""
        ends = Bootstrap(RESAMPLES, seed).intervals([one[name] for name in FIGURES])
        for name, (low, high) in zip(FIGURES, ends, strict=True):
            self.covered[name] += (low - 1e-12 <= true[name]) & (true[name] <= high + 1e-12)
            if name != "BoR":  # with one baseline, its test is that of Success
                found = paired_difference(one[name], other[name], draws=DRAWS, seed=seed)
                self.of_difference[name] += (found.low <= 0) & (found.high >= 0)
                self.false[name] += found.p <= 0.05
        self.effective += effective_size(weights)
        self.samples += 1


def of_population(world: World, size: int, samples: int, rng: np.random.Generator) -> Counts:
    """Samples of queries that are drawn with their weights."""
    counts, true = Counts(), world.true()
    for seed in range(samples):
        rows = rng.integers(0, POPULATION, size)
        weights = world.weights[rows]
        one, other = (drawn(world.rates[rows], world.chance[rows], weights, rng) for _ in range(2))
        counts.add(one, other, weights, true, seed)
    return counts


def of_traffic(relation: str, size: int, samples: int, rng: np.random.Generator) -> Counts:
    """Samples as `golden queries` draws them: 2,000 questions of Zipf's frequency in three strata of other rates."""
    questions = 2000
    frequency = np.maximum(1, (20_000 / np.arange(1, questions + 1) ** 1.1).astype(np.int64))
    strata = rng.choice(["a", "b", "c"], questions, p=[0.6, 0.3, 0.1])
    shift = {"a": 0.0, "b": 0.25, "c": 0.5}
    towards = {"unrelated": RATES, "heavier better": 1.0, "heavier worse": 0.0}[relation]
    rates = RATES + np.array([shift[name] for name in strata])[:, None] * (0.5 - RATES)
    rates = np.where((frequency >= 20)[:, None], rates + PULL * (towards - rates), rates)
    chance = rng.beta(1, 30, questions)
    keys = [f"question {i}" for i in range(questions)]
    total = frequency.sum()
    counts = Counts()
    success = frequency @ rates / total
    true = {"Success": success, "mean": success * MEAN_VALUE, "BoR": np.log2(success / (frequency @ chance / total))}
    for seed in range(samples):
        rows, weights = sampled(keys, frequency, strata.tolist(), size, seed)
        one, other = (drawn(rates[rows], chance[rows], weights, rng) for _ in range(2))
        counts.add(one, other, weights, true, seed)
    return counts


def line(name: str, size: int, counts: Counts) -> str:
    """The lowest share of the four rates for each figure."""
    cells = [f"{counts.covered[figure].min() / counts.samples:7.3f}" for figure in FIGURES]
    cells += [f"{counts.of_difference[figure].min() / counts.samples:7.3f}" for figure in FIGURES[:2]]
    cells += [f"{counts.false[figure].max() / counts.samples:7.3f}" for figure in FIGURES[:2]]
    return f"{name:<28}{size:>5}{counts.effective / counts.samples:>7.1f} {' '.join(cells)}"


def lines(samples: int, kinds: Sequence[str]) -> Iterable[str]:
    yield f"{samples} samples a cell; rates {', '.join(f'{rate:g}' for rate in RATES)}: the worst of the four"
    yield (
        f"{'weights':<28}{'n':>5}{'n eff':>7} {'Success':>7} {'mean':>7} {'BoR':>7} {'dSucc':>7} {'dmean':>7} "
        f"{'p Succ':>7} {'p mean':>7}"
    )
    relations = ("unrelated", "heavier better", "heavier worse")
    for kind in kinds:
        for relation in relations:
            if kind == GOLDEN:
                for size in (30, 100):
                    found = of_traffic(relation, size, samples, np.random.default_rng(3))
                    yield line(f"{GOLDEN}, {relation}", size, found)
                continue
            world = World.of(kind, relation, np.random.default_rng(1))
            for size in SIZES:
                rng = np.random.default_rng(2)
                yield line(world.name, size, of_population(world, size, samples, rng))


def main() -> None:
    for text in lines(int(sys.argv[1]) if len(sys.argv) > 1 else SAMPLES, sys.argv[2:] or KINDS):
        print(text, flush=True)


if __name__ == "__main__":
    main()
