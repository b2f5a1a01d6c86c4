"""What labels are worth: figures and verdicts of `agree` in made worlds.

Judges guess, err by a grade, grade too high, or are wrong in whole queries; or they favour one of two runs.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np

import rag_selectivity as rs
from benchmarks.simulated import Line
from rag_selectivity.people.designs import calibrate_draw
from rag_selectivity.trust.agreement import agreement

GRADES = np.arange(1, 6)
#: How often people give each grade.
COMMON = {
    "even": np.full(5, 0.2),
    "very skewed": np.array([0.8, 0.1, 0.05, 0.03, 0.02]),
    "two grades": np.array([0.7, 0, 0, 0, 0.3]),
}
#: In which share of the pairs a judge says what people say; otherwise it guesses.
SKILL = {"very good": 0.98, "good": 0.93, "half guessed": 0.5, "mostly guessed": 0.2}
LOST = {"lost in 1 of 20": 0.05, "lost in 1 of 7": 0.15}
JUDGES = (*SKILL, "near misses", "a grade too kind", *LOST)
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
        if self.judge in LOST:
            return np.where(rng.random(queries) < LOST[self.judge], 0.0, 0.97)
        mean = SKILL.get(self.judge, 0.6)
        if not self.alike:
            return np.full(queries, mean)
        strength = 2 * (1 - self.alike) / self.alike
        return rng.beta(mean * strength, (1 - mean) * strength, queries)

    def truth(self) -> dict[str, float]:
        """The figures of very many queries."""
        query, human, judge = self.sample(np.random.default_rng(1), 100_000)
        found = agreement((human, judge, (query // 10_000).astype(str), 1), bootstrap=rs.Bootstrap(resamples=1))
        return {name: getattr(found, name).value for name in FIGURES}


def drawn(rng: np.random.Generator, shares: np.ndarray) -> np.ndarray:
    """A grade for each row of shares."""
    return 1 + (rng.random((len(shares), 1)) > shares.cumsum(axis=1)).sum(axis=1).clip(0, 4)


def worlds() -> Iterator[World]:
    """All worlds in which the judge can err."""
    for judge, common, (alike, pairs) in product(JUDGES, COMMON, ((0.0, 3), (0.5, None))):
        if common != "two grades" or judge not in ("near misses", "a grade too kind"):
            yield World(judge, common, alike, pairs)


def coverage(task: tuple[World, int, int]) -> dict[str, float]:
    """For each figure how many of a world's intervals hold the truth, among the samples that have an interval."""
    world, queries, samples = task
    truth, rng = world.truth(), np.random.default_rng(queries)
    held: dict[str, list[bool]] = {name: [] for name in FIGURES}
    for _ in range(samples):
        query, human, judge = world.sample(rng, queries)
        found = agreement((human, judge, query.astype(str), 1), grades=(1, 5), bootstrap=rs.Bootstrap(resamples=400))
        for name in FIGURES:
            interval = getattr(found, name)
            if not np.isnan(interval.low):
                held[name].append(interval.low <= truth[name] <= interval.high)
    return {name: float(np.mean(inside)) for name, inside in held.items() if len(inside) >= samples / 2}


def of_agreement(samples: int) -> Iterator[Line]:
    """The lowest coverage over the worlds, of each figure."""
    with ProcessPoolExecutor(2) as pool:
        for queries in (10, 20, 50):
            found = list(pool.map(coverage, [(world, queries, samples) for world in worlds()]))
            lowest = {f"holds: {name}": min(of[name] for of in found if name in of) for name in FIGURES}
            yield Line(f"{queries} queries", lowest)


def of_verdicts(samples: int) -> Iterator[Line]:
    """How often each verdict is given; grades are evenly common, with three pairs a query."""
    for judge, queries in product((*SKILL, "a grade too kind"), (10, 50, 100, 400)):
        rng, world = np.random.default_rng(queries), World(judge, "even", 0.0, 3)
        said = dict.fromkeys(("good", "moderate", "poor", "undetermined"), 0.0)
        for _ in range(samples):
            query, *both = world.sample(rng, queries)
            found = agreement((*both, query.astype(str), 1), grades=(1, 5), bootstrap=rs.Bootstrap(resamples=400))
            said[found.verdict] += 1 / samples
        yield Line(f"{judge}, {queries} queries", said)


# -- does a judge rank two runs as people do? ------------------------------------------------------------------

QUERIES, DEPTH, RIGHT = 80, 5, 0.85
Labels = dict[str, dict[str, int]]


def two_runs(
    random: np.random.Generator, difference: float, lifted: float, shared: int
) -> tuple[Labels, Labels, dict[str, dict[str, list[str]]]]:
    """People's grades, the judge's, and two runs of lists of 5, of which `shared` passages are in both.

    The second run's Precision4+@5 by people is lower by exactly the true difference. The judge gives people's grade in
    85 % of the pairs, else one beside it, and lifts a share of what only the second run has by one grade.
    """
    effect = random.normal(0, 1, QUERIES)
    people: Labels = {f"q{i}": {} for i in range(QUERIES)}
    judge: Labels = {f"q{i}": {} for i in range(QUERIES)}
    runs: dict[str, dict[str, list[str]]] = {name: {query: [] for query in people} for name in ("one", "two")}
    move = round(difference * QUERIES * DEPTH / 2)
    for part, names, each, more in (
        ("both", ("one", "two"), shared, 0),
        ("one", ("one",), DEPTH - shared, move),
        ("two", ("two",), DEPTH - shared, -move),
    ):
        query = np.repeat(np.arange(QUERIES), each)
        # So many are relevant, more of them in queries that are easy.
        relevant = np.zeros(len(query), bool)
        luck = effect[query] + random.gumbel(size=len(query))
        relevant[np.argsort(-luck)[: len(query) // 2 + more]] = True
        grade = np.where(relevant, random.choice([4, 5], len(query)), random.choice([1, 2, 3], len(query)))
        beside = np.clip(grade + random.choice([-1, 1], len(query)), 1, 5)
        given = np.where(random.random(len(query)) < RIGHT, grade, beside)
        if part == "two":
            given = np.minimum(5, given + (random.random(len(query)) < lifted))
        for i, (q, g, j) in enumerate(zip(query.tolist(), grade.tolist(), given.tolist(), strict=True)):
            people[f"q{q}"][f"{part}{i}"], judge[f"q{q}"][f"{part}{i}"] = g, j
            for name in names:
                runs[name][f"q{q}"].append(f"{part}{i}")
    return people, judge, runs


def verdict(seed: int, difference: float, lifted: float, shared: int, labels: int) -> tuple[str, bool]:
    """The verdict on a judge by labels of a calibrating draw, and whether it inverts the order of the runs."""
    random = np.random.default_rng([seed, labels, shared, round(100 * difference), round(100 * lifted)])
    people, judge, runs = two_runs(random, difference, lifted, shared)
    named = {name: rs.Run.of(run) for name, run in runs.items()}
    drawn: Labels = {}
    for pair in calibrate_draw(rs.Qrels.of(judge), named, labels, depth=DEPTH, seed=seed):
        drawn.setdefault(pair.query, {})[pair.passage] = people[pair.query][pair.passage]
    (found,) = rs.agree(drawn, judge, runs=runs, bootstrap=rs.Bootstrap(50, seed)).ranks
    return found.verdict, found.as_judged < 0


def of_ranking(samples: int) -> Iterator[Line]:
    """How often a judge is said to rank as people do, or to invert the order; what it truly does is in `inverting`."""
    for difference, lifted, shared, labels in product(
        (0.05, 0.1, 0.15), (0.0, 0.25, 0.5, 1.0), (0, 2), (100, 200, 400)
    ):
        found = [verdict(seed, difference, lifted, shared, labels) for seed in range(samples)]
        figures = {"inverting": np.mean([inverts for _, inverts in found])}
        for inverts, of_those in ((False, "good"), (True, "inverting")):
            said = [v for v, truly in found if truly == inverts]
            for word in ("as_people", "inverts"):
                wrong = "errs: " if inverts == (word == "as_people") else ""
                figures[f"{wrong}{of_those}, called {word}"] = np.mean([v == word for v in said]) if said else np.nan
        yield Line(f"difference {difference}, lifted {lifted}, {shared} in both, {labels} labels", figures)
