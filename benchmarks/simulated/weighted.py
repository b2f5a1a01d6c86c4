"""Weighted figures: queries drawn with their weights from a million, or as `golden queries` draws them from traffic.

Heavier queries succeed as often as others, more often, or less often. Each figure is the worst of four rates.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.simulated import Floats, Line
from rag_selectivity import Bootstrap
from rag_selectivity.golden.query_set import sampled
from rag_selectivity.inference.paired import paired_difference
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.measures.base import Outcome
from rag_selectivity.measures.chance import BoR

POPULATION, QUESTIONS, RESAMPLES, DRAWS = 1_000_000, 2000, 1000, 2000
RATES = np.array([0.03, 0.3, 0.7, 0.97])
#: How far the rate of a heavy query is from that of a light one, towards 1 (or 0).
PULL = 0.5
GOLDEN = "golden queries"
KINDS = ("lognormal", "Pareto(1.5)", GOLDEN)
RELATIONS = {"unrelated": None, "heavier better": 1.0, "heavier worse": 0.0}
#: The mean of a query's value where it succeeds, Beta(2, 1).
MEAN_VALUE = 2 / 3
Sample = Callable[[int, int], tuple[np.ndarray, Floats]]


def population(kind: str, relation: str, rng: np.random.Generator) -> tuple[Sample, Floats, Floats, Floats]:
    """How to draw (size, seed), and each query's weight, rates and chance."""
    rates: Floats = np.tile(RATES, (QUESTIONS if kind == GOLDEN else POPULATION, 1))
    if kind == GOLDEN:
        weights = np.maximum(1.0, (20_000 / np.arange(1, QUESTIONS + 1) ** 1.1).astype(np.int64))
        strata = rng.choice(["a", "b", "c"], QUESTIONS, p=[0.6, 0.3, 0.1])
        shift = {"a": 0.0, "b": 0.25, "c": 0.5}
        rates += np.array([shift[name] for name in strata])[:, None] * (0.5 - RATES)
        heavy = weights >= 20
        keys = [f"question {i}" for i in range(QUESTIONS)]

        def sample(size: int, seed: int) -> tuple[np.ndarray, Floats]:
            return sampled(keys, weights.astype(np.int64), strata.tolist(), size, seed)
    else:
        weights = np.exp(rng.normal(0, 1, POPULATION)) if kind == "lognormal" else rng.pareto(1.5, POPULATION) + 1
        heavy = weights > np.quantile(weights, 0.75)

        def sample(size: int, seed: int) -> tuple[np.ndarray, Floats]:
            rows = np.random.default_rng([2, seed]).integers(0, POPULATION, size)
            return rows, weights[rows]

    towards = RELATIONS[relation]
    if towards is not None:
        rates[heavy] += PULL * (towards - RATES)
    return sample, weights, rates, rng.beta(1, 30, len(weights))


def outcomes(rates: Floats, chance: Floats, weights: Floats, rng: np.random.Generator) -> dict[str, Outcome]:
    """Weighted outcomes of rates, of means of values between 0 and 1, and of bits over random."""
    success = (rng.random(rates.shape) < rates).astype(np.float64)
    columns = np.repeat(chance[:, None], success.shape[1], axis=1)
    made = {
        "Success": Outcome((success,), ""),
        "mean": Outcome((success * rng.beta(2, 1, rates.shape),), ""),
        "BoR": Outcome((success, columns, 1 - columns), "", BoR.aggregate, baseline=1),
    }
    return {name: replace(each, weights=weights) for name, each in made.items()}


def of_weights(
    samples: int,
    kinds: Sequence[str] = KINDS,
    sizes: Sequence[int] = (20, 100),
    relations: Sequence[str] = tuple(RELATIONS),
) -> Iterator[Line]:
    """Coverage of figures and of differences between equal runs, and how often p is .05 or less."""
    for kind in kinds:
        for relation in relations:
            sample, mass, rates, chance = population(kind, relation, np.random.default_rng(1))
            success = mass @ rates / mass.sum()
            true = {"Success": success, "mean": success * MEAN_VALUE}
            true["BoR"] = np.log2(success / (mass @ chance / mass.sum()))
            for size in sizes:
                figures = _shares(samples, size, sample, rates, chance, true)
                yield Line(f"{kind}, {relation}, n = {size}", figures)


def _shares(
    samples: int, size: int, sample: Sample, rates: Floats, chance: Floats, true: dict[str, Floats]
) -> dict[str, float]:
    rng, effective, counts = np.random.default_rng(3), 0.0, dict[str, Floats]()
    for seed in range(samples):
        rows, weights = sample(size, seed)
        one, other = (outcomes(rates[rows], chance[rows], weights, rng) for _ in range(2))
        found: dict[str, Floats] = {}
        ends = Bootstrap(RESAMPLES, seed).intervals([one[name] for name in true])
        for (name, truth), (low, high) in zip(true.items(), ends, strict=True):
            found[f"holds: {name}"] = (low - 1e-12 <= truth) & (truth <= high + 1e-12)
        for name in ("Success", "mean"):  # with one baseline, the test of BoR is that of Success
            difference = paired_difference(one[name], other[name], draws=DRAWS, seed=seed)
            found[f"holds: difference, {name}"] = (difference.low <= 0) & (difference.high >= 0)
            found[f"errs: p ≤ .05, {name}"] = difference.p <= 0.05
        counts = {name: counts.get(name, 0) + each / samples for name, each in found.items()}
        effective += effective_size(weights) / samples
    worst = {name: float(each.max() if name.startswith("errs") else each.min()) for name, each in counts.items()}
    return {"n eff": effective, **worst}
