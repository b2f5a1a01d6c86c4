"""Do the intervals and verdicts of `agree` hold? Made worlds with known truth, and one real collection.

    python benchmarks/agreement_simulation.py [--quick]

Coverage is the share of samples whose interval holds the truth; printed is the lowest over all cells, and how many
cells lie below .93 (with 400 samples a cell, .95 varies by ±.02).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

import rag_selectivity as rs
from rag_selectivity.statistics.agreement import agreement
from rag_selectivity.statistics.draws import check_by_query, check_random, check_weights
from rag_selectivity.statistics.prediction_powered import prediction_powered_mean

GRADES = np.arange(1, 6)
#: How often people give each grade.
COMMON = {
    "even": np.full(5, 0.2),
    "skewed": np.array([0.5, 0.2, 0.12, 0.1, 0.08]),
    "very skewed": np.array([0.8, 0.1, 0.05, 0.03, 0.02]),
    "two grades": np.array([0.7, 0, 0, 0, 0.3]),
}
#: In which share of the pairs a judge says what people say; otherwise it guesses.
SKILL = {"very good": 0.98, "good": 0.93, "half guessed": 0.5, "mostly guessed": 0.2}
FIGURES = ("exact", "within_one", "bias", "kappa", "kappa_linear", "kappa_quadratic", "ac2", "alpha", "spearman")
CRANFIELD = Path(__file__).resolve().parents[2] / "shared" / "data" / "cranfield"


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
        query, human, judge = self.sample(np.random.default_rng(1), 200_000)
        found = agreement(human, judge, (query // 20_000).astype(str), bootstrap=rs.Bootstrap(resamples=1))
        return {name: getattr(found, name).value for name in FIGURES}


def drawn(rng: np.random.Generator, shares: np.ndarray) -> np.ndarray:
    """A grade for each row of shares."""
    return 1 + (rng.random((len(shares), 1)) > shares.cumsum(axis=1)).sum(axis=1).clip(0, 4)


JUDGES = (*SKILL, "near misses", "a grade too kind", "lost in 1 of 20", "lost in 1 of 7")


def worlds() -> Iterator[World]:
    for judge, common, (alike, pairs) in product(JUDGES, COMMON, ((0.0, 3), (0.5, 3), (0.5, None))):
        if common == "two grades" and judge in ("near misses", "a grade too kind"):
            continue
        yield World(judge, common, alike, pairs)


def coverage_of_agreement(queries: int, samples: int, chosen: list[World]) -> dict[str, list[float]]:
    """For each figure its coverage in every world, among the samples that have an interval."""
    covered: dict[str, list[float]] = {name: [] for name in FIGURES}
    for number, world in enumerate(chosen):
        rng = np.random.default_rng([queries, number])
        truth = world.truth()
        held = {name: [0, 0] for name in FIGURES}
        for _ in range(samples):
            query, human, judge = world.sample(rng, queries)
            options = {"grades": (1, 5), "bootstrap": rs.Bootstrap(resamples=800)}
            found = agreement(human, judge, query.astype(str), **options)
            for name in FIGURES:
                interval = getattr(found, name)
                if not np.isnan(interval.low):
                    held[name][0] += interval.low <= truth[name] <= interval.high
                    held[name][1] += 1
        for name, (inside, of) in held.items():
            if of >= samples / 2:
                covered[name].append(inside / of)
    return covered


def verdicts(judge: str, queries: int, pairs: int, samples: int, alike: float = 0.0) -> dict[str, float]:
    """How often each verdict is given; the grades are evenly common."""
    rng, world, said = np.random.default_rng([queries, pairs]), World(judge, "even", alike, pairs), {}
    for _ in range(samples):
        query, human, given = world.sample(rng, queries)
        found = agreement(human, given, query.astype(str), grades=(1, 5), bootstrap=rs.Bootstrap(resamples=800))
        said[found.verdict] = said.get(found.verdict, 0) + 1 / samples
    return said


def corrected(how: str, labelled: int, common: str, judge: str, share: bool, samples: int) -> tuple[float, ...]:
    """Coverage of the corrected mean and of the human's own, mean ratio of their widths, and how many are refused.

    A finite set of 200 queries × 10 pairs, all graded by the judge; `labelled` pairs are drawn in the named way.
    """
    rng = np.random.default_rng([labelled, len(how), len(common), len(judge), share])
    world, held, alone, ratio, refused = World(judge, common, 0.5, 10), 0, 0, 0.0, 0
    for _ in range(samples):
        query, human, given = world.sample(rng, 200)
        known, inclusion = draw(rng, how, query, given, labelled)
        refused += is_refused(how, query, given, known, inclusion)
        people, machine = ((x >= 4).astype(float) if share else x.astype(float) for x in (human, given))
        found = prediction_powered_mean(
            np.where(known, people, np.nan),
            machine,
            None if how == "random" else query.tolist(),
            bounds=(0, 1) if share else (1, 5),
            inclusion=inclusion,
            draws=800,
        )
        held += found.low <= people.mean() <= found.high
        alone += found.human_low <= people.mean() <= found.human_high
        ratio += (found.high - found.low) / (found.human_high - found.human_low)
    return held / samples, alone / samples, ratio / samples, refused / samples


def draw(
    rng: np.random.Generator, how: str, query: np.ndarray, given: np.ndarray, labelled: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Which pairs people label, and with which probability."""
    if how == "random":
        known = np.zeros(len(query), bool)
        known[rng.choice(len(query), labelled, replace=False)] = True
        return known, None
    if how == "by query":
        return np.isin(query, rng.choice(query.max() + 1, labelled // 10, replace=False)), None
    # What the judge likes and what stands high is labelled up to nine times as often.
    liking = 1 + 4 * (given >= given.mean()) + np.tile(np.linspace(4, 0, 10), query.max() + 1)
    inclusion = np.minimum(1, liking / liking.sum() * labelled)
    return rng.random(len(query)) < inclusion, inclusion


def is_refused(how: str, query: np.ndarray, given: np.ndarray, known: np.ndarray, inclusion: np.ndarray | None) -> bool:
    try:
        if how == "random":
            check_random(query, given, known)
        elif how == "by query":
            check_by_query(query, given, known, [str(i) for i in range(query.max() + 1)])
        elif inclusion is not None:
            check_weights(query, given, known, inclusion)
    except rs.InputError:
        return True
    return False


def refused_first_ranks(
    samples: int, queries: int, labelled_ranks: int = 5, judged_ranks: int = 20
) -> dict[str, float]:
    """Cranfield's BM25, a made judge of the first ranks, people's labels of ranks 1–5 alone: how often refused."""
    qrels, run = rs.Qrels.read(CRANFIELD / "qrels.trec").to_dict(), {}
    for line in (CRANFIELD / "runs" / "bm25.trec").read_text().splitlines():
        query, _, passage, *_ = line.split()
        run.setdefault(query, []).append(passage)
    rng, names, refused = np.random.default_rng(0), sorted(qrels), {"random": 0.0, "by query": 0.0, "weights": 0.0}
    for _ in range(samples):
        people, judged, first = {}, {}, {}
        for query in rng.choice(names, queries, replace=False).tolist():
            listed = run[query][:judged_ranks]
            grades = np.array([qrels[query].get(passage, 1) for passage in listed])
            given = np.where(rng.random(len(listed)) < 0.7, grades, rng.integers(1, 6, len(listed)))
            judged[query] = dict(zip(listed, given.tolist(), strict=True))
            people[query] = dict(zip(listed[:labelled_ranks], grades[:labelled_ranks].tolist(), strict=True))
            first |= {(query, passage): labelled_ranks / judged_ranks for passage in listed[:labelled_ranks]}
        for how in refused:
            options = {"weights": first} if how == "weights" else {"drawn": how}
            try:
                rs.agree(people, judged, bootstrap=rs.Bootstrap(resamples=50), **options)
            except rs.InputError:
                refused[how] += 1 / samples
    return refused


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="A tenth of the samples.")
    part = 10 if parser.parse_args().quick else 1
    chosen = list(worlds())

    print(f"coverage of 95 % intervals, {len(chosen)} worlds: lowest (cells below .93)")
    print("queries " + "".join(f"{name:>17}" for name in FIGURES))
    for queries in (10, 20, 50, 200):
        covered = coverage_of_agreement(queries, 400 // part, chosen)
        cells = (f"{min(of):.3f} ({sum(c < 0.93 for c in of)} of {len(of)})" for of in covered.values())
        print(f"{queries:>7} " + "".join(f"{cell:>17}" for cell in cells), flush=True)

    print("\nverdicts, three pairs a query, grades evenly common")
    print(f"{'judge':20}{'queries':>8}   share of samples")
    for judge in ("half guessed", "mostly guessed", "good", "very good", "a grade too kind"):
        for queries in (2, 5, 10, 20, 50, 100, 200, 400):
            said = verdicts(judge, queries, 3, 1000 // part)
            print(
                f"{judge:20}{queries:8}   " + ", ".join(f"{word} {said[word]:.3f}" for word in sorted(said)), flush=True
            )

    print("\ncorrected means, 2,000 pairs of 200 queries: coverage, people's own, width beside theirs, refused")
    print(
        f"{'drawn':10}{'labelled':>9}{'coverage':>10}{'people':>8}{'width':>15}{'refused':>9}   (lowest; range; most)"
    )
    for how, labelled in product(("random", "by query", "weights"), (10, 20, 50, 100, 200, 500)):
        if how == "by query" and labelled < 100:
            continue
        if how == "weights" and labelled < 20:
            continue
        cells = product(COMMON, ("very good", "near misses", "half guessed", "a grade too kind"), (False, True))
        found = np.array([corrected(how, labelled, *cell, 300 // part) for cell in cells])
        low, high = found.min(axis=0), found.max(axis=0)
        print(f"{how:10}{labelled:9}{low[0]:10.3f}{low[1]:8.3f}{low[2]:9.2f}–{high[2]:.2f}{high[3]:9.3f}", flush=True)

    print("\nlabels of ranks 1–5 of 20 alone, Cranfield's BM25, a judge that guesses in 30 %: refused")
    for queries in (10, 20, 50, 225):
        refused = refused_first_ranks(100 // part, queries)
        print(f"{queries:4} queries   " + ", ".join(f"{how} {share:.2f}" for how, share in refused.items()), flush=True)


if __name__ == "__main__":
    main()
