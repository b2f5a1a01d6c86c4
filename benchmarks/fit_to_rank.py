"""How often a judge is said to rank two runs as people do, where it does and where it inverts their order.

    python benchmarks/fit_to_rank.py [SAMPLES]

80 queries, lists of 5, of which 0 or 2 passages are in both. The second one's figure (Precision4+@5 by people) is lower
by exactly the true difference. The judge gives people's grade in 85 % of the pairs, else one beside it, and lifts a
share of what only the second run has by one grade. Labels are drawn as `annotate --draw calibrate:N` does.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np

import rag_selectivity as rs
from rag_selectivity.grading.designs import calibrate_draw

QUERIES, DEPTH, RIGHT = 80, 5, 0.85
DIFFERENCES, LIFTS, SHARED, LABELS = (0.05, 0.10, 0.15), (0.0, 0.25, 0.5, 1.0), (0, 2), (100, 200, 400)
Labels = dict[str, dict[str, int]]


def world(
    random: np.random.Generator, difference: float, lifted: float, shared: int
) -> tuple[Labels, Labels, dict[str, dict[str, list[str]]]]:
    """People's grades, the judge's, and two runs."""
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
    """The verdict on a judge, and whether it inverts the order of the runs."""
    random = np.random.default_rng([seed, labels, shared, round(100 * difference), round(100 * lifted)])
    people, judge, runs = world(random, difference, lifted, shared)
    named = {name: rs.Run.from_dict(run) for name, run in runs.items()}
    drawn: Labels = {}
    for pair in calibrate_draw(rs.Qrels.from_dict(judge), named, labels, depth=DEPTH, seed=seed):
        drawn.setdefault(pair.query, {})[pair.passage] = people[pair.query][pair.passage]
    (found,) = rs.agree(drawn, judge, runs=runs, bootstrap=rs.Bootstrap(50, seed)).ranks
    return found.verdict, found.as_judged < 0


def cell(task: tuple[float, float, int, int, int]) -> list[tuple[str, bool]]:
    """The verdicts of a cell."""
    difference, lifted, shared, labels, samples = task
    return [verdict(seed, difference, lifted, shared, labels) for seed in range(samples)]


def main() -> None:
    """Print the table."""
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    cells = list(product(DIFFERENCES, LIFTS, SHARED, LABELS))
    print(f"{samples} samples a cell: share said to rank as people do, of the judges that do, and of those that invert")
    print("difference  lifted  in both  inverting" + "".join(f"{n:>10} labels" for n in LABELS))
    with ProcessPoolExecutor(2) as pool:
        found = dict(zip(cells, pool.map(cell, [(*each, samples) for each in cells]), strict=True))
    worst = 0.0
    for difference, lifted, shared in product(DIFFERENCES, LIFTS, SHARED):
        columns = []
        for labels in LABELS:
            verdicts = found[difference, lifted, shared, labels]
            shares = []
            for inverts in (False, True):
                said = [v == "as_people" for v, inverted in verdicts if inverted == inverts]
                shares.append(f"{np.mean(said):.2f}" if len(said) >= samples / 10 else "–")
                if inverts and len(said) >= samples / 10:
                    worst = max(worst, float(np.mean(said)))
            columns.append(" / ".join(shares))
        share = np.mean([i for n in LABELS for _, i in found[difference, lifted, shared, n]])
        row = "".join(f"{column:>17}" for column in columns)
        print(f"{difference:>10.2f}  {lifted:>6.2f}  {shared:>7}  {share:>9.2f}{row}", flush=True)
    print(f"of inverting judges at most {worst:.2f} in a cell")


if __name__ == "__main__":
    main()
