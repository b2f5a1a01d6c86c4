"""How often tests of figures err and their intervals hold the truth.

Every world is drawn anew: n queries with the successes (or graded figures) of two systems, correlated by a common
difficulty, and the random baseline of their relevant passages. Each world is one column of an outcome, so that the
library's own functions make every interval and p-value.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from benchmarks.simulated import Floats, Line, tested
from rag_selectivity.evaluation.caveats import of_concentration
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.detectable import sensitivity
from rag_selectivity.inference.paired import TURNED_BY_FEW, Difference, paired_difference
from rag_selectivity.inference.unpaired import unpaired_difference
from rag_selectivity.measures.base import Outcome
from rag_selectivity.measures.chance import BoR
from rag_selectivity.measures.hypergeometric import random_success

CORPUS, DEPTH = 100_000, 10
QUERIES = (8, 20, 50, 200)
RATES = (0.02, 0.1, 0.5, 0.9, 0.98)
CORRELATIONS = (0.0, 0.5, 0.8)
#: Comparisons of equal runs, each of which says what it would have shown.
PILOTS = 40
RELEVANT = ("constant", "geometric", "Pareto(1)", "lognormal", "2 % of 5,000")


# -- worlds ----------------------------------------------------------------------------------------------


def successes(rng: np.random.Generator, n: int, worlds: int, rates: tuple[float, float], rho: float) -> list[Floats]:
    """Successes of two systems, 0 or 1, float64[n, worlds] each: a query's difficulty is in both."""
    shared = rng.normal(size=(n, worlds))
    return [
        (np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.normal(size=(n, worlds)) < ndtri(rate)).astype(np.float64)
        for rate in rates
    ]


def relevant(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> NDArray[np.int64]:
    """How many relevant passages each query has."""
    match kind:
        case "constant":
            found = np.full(shape, 3.0)
        case "geometric":
            found = 1.0 + rng.geometric(0.45, shape)
        case "Pareto(1)":
            found = np.ceil(1 / rng.random(shape))
        case "lognormal":
            found = np.ceil(np.exp(rng.normal(0, 2, shape)))
        case _:
            found = np.where(rng.random(shape) < 0.02, 5000.0, 2.0)
    return np.clip(found, 1, CORPUS // 2).astype(np.int64)


def chances(counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """RandomSuccess and its complement, each distinct count once."""
    distinct, place = np.unique(counts, return_inverse=True)
    chance, miss = random_success(CORPUS, distinct, DEPTH)
    return chance[place].reshape(counts.shape), miss[place].reshape(counts.shape)


def true_chance(kind: str) -> float:
    """The mean of RandomSuccess over all queries that there could be."""
    if kind == "2 % of 5,000":
        (two, many), _ = random_success(CORPUS, np.array([2, 5000]), DEPTH)
        return float(0.98 * two + 0.02 * many)
    if kind == "Pareto(1)":
        counts = np.arange(2, CORPUS // 2 + 1)
        share = 1 / (counts - 1) - 1 / counts
        share[-1] += 1 - share.sum()
        return float(random_success(CORPUS, counts, DEPTH)[0] @ share)
    return float(chances(relevant(np.random.default_rng(9), kind, (4_000_000, 1)))[0].mean())


def bits(success: Floats, chance: Floats, miss: Floats) -> Outcome:
    return Outcome((success, chance, miss), "", BoR.aggregate, baseline=1)


def graded(rng: np.random.Generator, kind: str, n: int, worlds: int) -> tuple[Floats, Floats]:
    """Figures of two systems between 0 and 1; the first is the changed one."""
    shape = (n, worlds)
    match kind:
        case "Harm, equal":
            junk = rng.beta(0.5, 4, shape)
            return rng.binomial(10, junk) / 10, rng.binomial(10, junk) / 10
        case "Harm, halved":
            junk = rng.beta(0.5, 4, shape)
            return rng.binomial(10, junk / 2) / 10, rng.binomial(10, junk) / 10
        case "RA-nWG, equal":
            base = rng.beta(1, 1, shape)
            return tuple(np.clip(base + rng.normal(0, 0.15, shape), 0, 1) for _ in range(2))  # type: ignore[return-value]
        case "RA-nWG, most queries tied":
            base = rng.beta(1, 1, shape)
            moved = np.clip(base + rng.normal(0.05, 0.2, shape), 0, 1)
            return np.where(rng.random(shape) < 0.7, base, moved), base
        case "ties, equal":
            return rng.integers(0, 4, shape) / 3, rng.integers(0, 4, shape) / 3
        case "heavy tails, equal":
            return np.minimum(0.02 / rng.random(shape), 1.0), np.minimum(0.02 / rng.random(shape), 1.0)
        case "small losses, one large gain expected, equal" | "small losses, two large gains expected, equal":
            # All the losses together are as large as the gains that are expected in n queries.
            gains = 2 if "two" in kind else 1
            usual = 0.2 * gains
            loss = (1 - usual) * gains / (n - gains) * rng.uniform(0.5, 1.5, shape)
            return np.where(rng.random(shape) < gains / n, 1.0, usual - loss), np.full(shape, usual)
        case "rare losses":
            size = rng.choice([0.2, 0.4, 1.0], p=[0.6, 0.3, 0.1], size=shape)
            return np.where(rng.random(shape) < 0.1, 0.0, size), size
        case _:
            return rng.beta(0.3, 0.6, shape), rng.beta(0.35, 0.6, shape)


GRADED = (
    *("Harm, equal", "Harm, halved", "RA-nWG, equal", "RA-nWG, most queries tied", "ties, equal", "heavy tails, equal"),
    *("small losses, one large gain expected, equal", "small losses, two large gains expected, equal"),
    *("rare losses", "two U shapes"),
)


# -- what is counted -------------------------------------------------------------------------------------


def distinct(one: Floats, two: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Successes of worlds that differ in more than the order of their queries, and which of them each world is."""
    tables, place = np.unique(np.sort(2 * one + two, axis=0), axis=1, return_inverse=True)
    return tables // 2, tables % 2, place.ravel()


def held(difference: Difference, truth: float, place: slice | NDArray[np.int64] = slice(None)) -> tuple[float, float]:
    """Shares of the worlds with a defined difference whose interval holds the truth, and whose p is at most .05.

    A difference that few further queries could turn is marked where it is shown: it keeps its promise. `place` says
    which column of the difference is that of each world.
    """
    known, marked = ~np.isnan(difference.value), difference.turned_by <= TURNED_BY_FEW
    shown = (difference.p <= 0.05) & ~marked
    inside = ((difference.low <= truth) & (truth <= difference.high)) | ((difference.p <= 0.05) & marked)
    return float(inside[place][known[place]].mean()), float(shown[place].mean())


def of_rates(
    worlds: int, seed: int = 1, queries: tuple[int, ...] = QUERIES, rates: tuple[float, ...] = RATES
) -> Iterator[Line]:
    """Success and BoR of two systems over the same queries with the same baseline."""
    rng = np.random.default_rng(seed)
    for n in queries:
        for rate in rates:
            for other in rates:
                for rho in CORRELATIONS:
                    one, two, place = distinct(*successes(rng, n, worlds, (rate, other), rho))
                    constant = np.full(one.shape, 3e-4)
                    of_success = paired_difference(Outcome((one,), ""), Outcome((two,), ""))
                    of_bits = paired_difference(bits(one, constant, 1 - constant), bits(two, constant, 1 - constant))
                    covered, rejected = held(of_success, rate - other, place)
                    covered_bits, _ = held(of_bits, float(np.log2(rate / other)), place)
                    figures = {"holds: Success": covered, "holds: BoR": covered_bits}
                    figures |= tested(rejected, equal=rate == other)
                    yield Line(f"n = {n}, {rate} and {other}, correlation {rho}", figures)


def of_baselines(worlds: int, seed: int = 2, queries: tuple[int, ...] = QUERIES) -> Iterator[Line]:
    """BoR of two systems that return lists of their own lengths, so that their baselines differ."""
    rng = np.random.default_rng(seed)
    for kind in RELEVANT:
        for n in queries:
            for rate in (0.1, 0.5, 0.9):
                one, two = successes(rng, n, worlds, (rate, rate), 0.5)
                counts = relevant(rng, kind, (n, worlds))
                lengths = [rng.integers(5, 16, (n, worlds)) for _ in range(2)]
                # Next to 0 the chance of K draws is K times that of one, near enough for a made world.
                sides = [np.minimum(counts * length / CORPUS, 0.99) for length in lengths]
                difference = paired_difference(
                    *(bits(s, chance, 1 - chance) for s, chance in zip((one, two), sides, strict=True)), draws=2000
                )
                covered, rejected = held(difference, 0.0)
                yield Line(f"R {kind}, n = {n}, {rate}", {"holds: BoR": covered, "errs: p ≤ .05": rejected})


def of_means(
    worlds: int, seed: int = 3, queries: tuple[int, ...] = QUERIES, kinds: tuple[str, ...] = GRADED
) -> Iterator[Line]:
    """Means of many values."""
    for kind in kinds:
        far = np.random.default_rng(99)
        truth = 0.0 if kind.endswith("equal") else float(np.subtract(*graded(far, kind, 2000, 2000)).mean())
        rng = np.random.default_rng(seed)
        for n in queries:
            one, two = graded(rng, kind, n, worlds)
            covered, rejected = held(paired_difference(Outcome((one,), ""), Outcome((two,), ""), draws=2000), truth)
            yield Line(f"{kind}, n = {n}", {"holds: mean": covered, **tested(rejected, equal=kind.endswith("equal"))})


def of_arms(worlds: int, seed: int = 4) -> Iterator[Line]:
    """Two systems over different queries, of arms as large and as unequal as they come."""
    rng = np.random.default_rng(seed)
    for n, m in ((20, 20), (20, 200), (200, 50)):
        for rate in RATES:
            one, _ = successes(rng, n, worlds, (rate, rate), 0.0)
            two, _ = successes(rng, m, worlds, (rate, rate), 0.0)
            covered, rejected = held(unpaired_difference(Outcome((one,), ""), Outcome((two,), "")), 0.0)
            figures = {"holds": covered, "errs: p ≤ .05": rejected}
            sides = [bits(s, *chances(relevant(rng, "geometric", s.shape))) for s in (one, two)]
            covered, rejected = held(unpaired_difference(*sides), 0.0)
            figures |= {"holds: BoR": covered, "errs: p ≤ .05 of BoR": rejected}
            yield Line(f"{n} and {m} queries, {rate}", figures)
        one, two = rng.beta(1, 3, (n, worlds)), np.clip(rng.normal(0.25, 0.02, (m, worlds)), 0, 1)
        covered, rejected = held(unpaired_difference(Outcome((one,), ""), Outcome((two,), "")), 0.0)
        yield Line(
            f"{n} and {m} queries, means, spreads 1 : 10",
            {"holds": covered, "errs: p ≤ .05": rejected, "holds: BoR": np.nan, "errs: p ≤ .05 of BoR": np.nan},
        )


def of_single_figures(
    worlds: int, seed: int = 5, queries: tuple[int, ...] = (*QUERIES, 500), rates: tuple[float, ...] = RATES
) -> Iterator[Line]:
    """BoR of one run: the share of the worlds whose interval holds the truth, and of those that are called rough."""
    bootstrap = Bootstrap(resamples=1000)
    for kind in RELEVANT:
        truth = true_chance(kind)
        rng = np.random.default_rng(seed)
        for n in queries:
            for rate in rates:
                success, _ = successes(rng, n, worlds, (rate, rate), 0.0)
                outcome = bits(success, *chances(relevant(rng, kind, (n, worlds))))
                ((low, high),) = bootstrap.intervals([outcome])
                target = np.log2(rate / truth)
                inside = (low <= target) & (target <= high)
                effective = outcome.effective_queries()
                assert effective is not None
                rough = np.array([bool(of_concentration(e, n)) for e in effective.tolist()])
                figures = {"covered": float(inside.mean()), "rough": float(rough.mean())}
                figures["holds, or is called rough"] = float((inside | rough).mean())
                yield Line(f"R {kind}, n = {n}, {rate}", figures)


def of_single_means(worlds: int, seed: int = 6, queries: tuple[int, ...] = QUERIES) -> Iterator[Line]:
    """A success rate, and means of values of which few are not 0."""
    bootstrap = Bootstrap(resamples=1000)
    rng = np.random.default_rng(seed)
    sizes = np.array([0.1, 0.2, 0.5])
    for n in queries:
        for rate in RATES:
            success, _ = successes(rng, n, worlds, (rate, rate), 0.0)
            values = success * rng.choice(sizes, size=success.shape)
            figures = {}
            for name, part, truth in (("holds: Success", success, rate), ("holds: mean", values, rate * sizes.mean())):
                ((low, high),) = bootstrap.intervals([Outcome((part,), "")])
                figures[name] = float(((low <= truth) & (truth <= high)).mean())
            yield Line(f"n = {n}, share of values off 0: {rate}", figures)


def of_clusters(worlds: int, seed: int = 8) -> Iterator[Line]:
    """Clusters of 1 to 7 queries that are alike: a rate and a mean, the rate of a slice, and a difference of equals."""
    for n, rate in product((20, 50, 200), (0.2, 0.8)):
        rng, found = np.random.default_rng([seed, n, round(10 * rate)]), list[dict[str, bool]]()
        for _ in range(worlds):
            units = np.repeat(np.arange(n), rng.choice([1, 2, 3, 7], n))
            names = [f"q{i}" for i in range(len(units))]
            of_unit = rng.normal(size=(n, 1))[units]
            # Half of the spread of each system's luck is the cluster's own.
            luck = np.sqrt(0.5) * of_unit + np.sqrt(0.5) * rng.normal(size=(len(units), 2))
            one, two = (luck[:, [i]] < ndtri(rate) for i in (0, 1))
            sides = [Outcome((side * 1.0,), "") for side in (one, two)]
            graded = Outcome((ndtr(luck[:, [0]]),), "")
            drawn = Bootstrap(500, clusters=dict(zip(names, units.tolist(), strict=True)))
            slices = rng.integers(0, 2, len(units))
            (of_rate, of_mean), _, (in_slice, _) = drawn.of_slices([sides[0], graded], names, [slices])
            gap = paired_difference(*sides, draws=500, units=units)
            truths = {"Success": (of_rate, rate), "mean": (of_mean, 0.5), "Success in a slice": (in_slice, rate)}
            shown = {f"holds: {name}": bool(e[0][0] <= truth <= e[1][0]) for name, (e, truth) in truths.items()}
            found.append(shown | {"errs: p ≤ .05": bool(gap.p[0] <= 0.05)})
        yield Line(f"{n} clusters, {rate}", {name: float(np.mean([each[name] for each in found])) for name in found[0]})


def of_power(worlds: int, seed: int = 7, queries: tuple[int, ...] = (50, 200, 500)) -> Iterator[Line]:
    """How often a true difference is found that equal runs were said to show, in two sizes of family."""
    rng = np.random.default_rng(seed)
    for n in queries:
        for family in (1, 12):
            level = 0.05 / family
            for rate, rho in ((0.5, 0.5), (0.8, 0.8), (0.9, 0.5)):
                found = []
                for _ in range(PILOTS):
                    pilot = [Outcome((side,), "") for side in successes(rng, n, 1, (rate, rate), rho)]
                    gain, _ = sensitivity(*pilot, level, 0.8)
                    # The first system wins so many of the queries that the second alone would have lost.
                    discordant = float((pilot[0].parts[0] != pilot[1].parts[0]).mean())
                    spread = max(discordant, gain)
                    draw = rng.random((n, max(1, worlds // 4)))
                    won, lost = draw < (spread + gain) / 2, draw >= 1 - (spread - gain) / 2
                    sides = [Outcome((side.astype(np.float64),), "") for side in (won, lost)]
                    difference = paired_difference(*sides)
                    found.append(float((difference.p <= level).mean()))
                yield Line(f"Success {rate}, correlation {rho}, n = {n}, family of {family}", {"found": np.mean(found)})
            found = []
            for _ in range(PILOTS):
                one, two = graded(rng, "RA-nWG, equal", n, 1)
                shift, _ = sensitivity(Outcome((one,), ""), Outcome((two,), ""), level, 0.8)
                one, two = graded(rng, "RA-nWG, equal", n, max(1, worlds // 16))
                difference = paired_difference(Outcome((one + shift,), ""), Outcome((two,), ""), draws=10_000)
                found.append(float((difference.p <= level).mean()))
            yield Line(f"RA-nWG, n = {n}, family of {family}", {"found": np.mean(found)})
