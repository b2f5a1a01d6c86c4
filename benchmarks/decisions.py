"""How often a decision says that something is shown which is not true, in made worlds whose truth is known.

    python benchmarks/decisions.py --worlds 400

Two kinds of world. Equal runs: how often any two of them are told apart (at most the level, 5 %, over all pairs of a
world). Equal losses: retriever and selection lose the same on average; how often one of them is said to lose more, and
how often the interval of the most that a better selection can gain holds the true mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.decision.losses import tested_gains
from rag_selectivity.decision.systems import all_pairs, pair_of
from rag_selectivity.evaluate import measure_all, report_on
from rag_selectivity.joined import join_runs
from rag_selectivity.measures import RANWG, Measure, Success
from rag_selectivity.render.blocks import align
from rag_selectivity.statistics.bootstrap import Bootstrap

Floats = NDArray[np.float64]
QUERIES = (10, 25, 100)
RUNS = (2, 6)
#: The share of relevant passages; with few, nearly every list fails, with many, nearly every list succeeds.
RATES = (0.02, 0.2, 0.7)


def told_apart(measure: Measure, queries: int, runs: int, rate: float, seed: int) -> bool:
    """Whether any pair of runs that are all drawn at random is told apart."""
    random = np.random.default_rng([seed, queries, runs, int(1000 * rate)])
    low = 1 if isinstance(measure, RANWG) else 0
    grades = {
        f"q{i}": {f"d{j}": int(g) for j, g in enumerate(np.where(random.random(20) < rate, 5 if low else 1, low))}
        for i in range(queries)
    }
    # Labels without any relevant passage have no figure to compare.
    grades["q0"]["d0"] = 5 if low else 1
    lists = {f"r{n}": {q: [f"d{j}" for j in random.permutation(20)[:5]] for q in grades} for n in range(runs)}
    judged = join_runs(grades, lists, scale="utility" if low else "trec", ids="exact").judged
    measured = measure_all(judged, [measure], [])
    bootstrap = Bootstrap(resamples=20, seed=seed)
    rows = all_pairs(judged, list(lists), measured, report_on(judged, measured, bootstrap), bootstrap, paired=True)
    return any(pair_of(row).apart for row in rows)


def _beta(random: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    return random.beta(2, 6, n), random.beta(2, 6, n)


def _seldom_and_much(random: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """The selection loses everything in 5 % of the queries, the retriever a little in all of them."""
    return (random.random(n) < 0.05).astype(float), random.uniform(0.0, 0.1, n)


def _mostly_none(random: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    one, other = (random.random((2, n)) < 0.1) * random.random((2, n))
    return one, other


def _successes(random: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """A query fails by the one or by the other step, never by both."""
    lost = random.random(n)
    return (lost < 0.1).astype(float), (lost > 0.9).astype(float)


#: Gains of a better selection and of a wider pool, and their common mean.
LOSSES: dict[str, tuple[Callable[[np.random.Generator, int], tuple[Floats, Floats]], float]] = {
    "alike": (_beta, 0.25),
    "seldom and much beside often and little": (_seldom_and_much, 0.05),
    "mostly none": (_mostly_none, 0.05),
    "successes": (_successes, 0.1),
}


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=400)
    worlds = parser.parse_args().worlds
    _equal_runs(worlds)
    _equal_losses(worlds)


def _equal_runs(worlds: int) -> None:
    rows = []
    for measure in (Success(at=5), RANWG(at=5)):
        for queries in QUERIES:
            for runs in RUNS:
                for rate in RATES:
                    wrong = sum(told_apart(measure, queries, runs, rate, seed) for seed in range(worlds))
                    rows.append([str(measure), str(queries), str(runs), f"{rate:g}", f"{wrong / worlds:.1%}"])
    print("Equal runs: worlds in which two are told apart (level 5 %)\n")
    print(align(["measure", "queries", "runs", "relevant", "told apart"], rows))


def _equal_losses(worlds: int) -> None:
    rows = []
    for name, (draw, mean) in LOSSES.items():
        for queries in QUERIES:
            said, held = 0, 0
            for seed in range(worlds):
                rerank, widen = draw(np.random.default_rng([seed, queries]), queries)
                names = [f"q{i}" for i in range(queries)]
                used = np.ones(queries, bool)
                (ends, _), more = tested_gains(names, used, rerank, widen, Bootstrap(resamples=1000, seed=seed))
                said += bool(more)
                held += ends[0] <= mean <= ends[1]
            rows.append([name, str(queries), f"{said / worlds:.1%}", f"{held / worlds:.1%}"])
    print("\nEqual losses: worlds in which one step is said to lose more (level 5 %), and in which the interval of the")
    print("gain holds the true mean (95 %)\n")
    print(align(["losses", "queries", "said to lose more", "interval holds"], rows))


if __name__ == "__main__":
    main()
