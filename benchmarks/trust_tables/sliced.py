"""Do calibrated figures of slices hold? Slices in which the judge errs alike, and slices in which it errs otherwise.

    python -m benchmarks.trust_tables.sliced [--times 30]

As in `calibrated`: the truth are people's labels of all pairs of the slice.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np

import rag_selectivity as rs
from benchmarks.trust_tables import calibrated, worlds
from benchmarks.trust_tables.calibrated import (
    PLAN,
    difference_row,
    figure_row,
    ground_for_differences,
    heading,
    joined_of,
    line,
    people_of,
)
from benchmarks.trust_tables.worlds import World
from rag_selectivity.calibrated.differences import calibrated_differences
from rag_selectivity.calibrated.figures import Sampling, calibrated_figures
from rag_selectivity.calibrated.people import calibration_ground


@dataclass(frozen=True)
class Cell:
    """A world, a number of slices of equal sizes, whether the judge errs otherwise in each, and labels in all."""

    world: str
    slices: int
    otherwise: bool
    labels: int
    seeds: range


@cache
def _world(cell: Cell) -> tuple[World, tuple[dict, dict], dict[str, int]]:
    """The world, its joins, and the slice of each query."""
    world = calibrated.world_of(cell.world)
    random = np.random.default_rng(5)
    queries = list(world.human)
    shuffled = random.permutation(len(queries)) % cell.slices
    place = dict(zip(queries, shuffled.tolist(), strict=True))
    if cell.otherwise:
        judges = [worlds.noisy(world.human, noise, 3).to_dict() for noise in ("strict", "lenient", "mild")]
        if cell.world.startswith("judges"):
            judges = [world.judge.to_dict(), world.human.to_dict(), judges[1]]
        judge = {query: judges[place[query] % 3][query] for query in world.human}
        world = World(world.human, rs.Qrels.from_dict(judge), world.runs, world.corpus_size)
    return world, joined_of(world), place


def trial(cell: Cell) -> list[np.ndarray]:
    """The rows that `calibrated.line` takes, of each slice."""
    world, (judged, truth), place = _world(cell)
    rows: list[list[tuple[float, ...]]] = [[] for _ in range(cell.slices)]
    for seed in cell.seeds:
        ground, _ = calibration_ground(world.judge.on_scale("utility"), people_of(world, cell.labels, seed))
        for at in range(cell.slices):

            def over(runs: dict, at: int = at) -> dict:
                return {
                    name: run.over(np.array([place[query] == at for query in run.queries]))
                    for name, run in runs.items()
                }

            parts, true_parts = over(judged), over(truth)
            figures = calibrated_figures(ground, judged, PLAN, Sampling(seed=seed), parts)
            for run in world.runs:
                for number, (measure, depth) in enumerate(PLAN):
                    true, as_judged = (
                        float(measure.outcome(joins[run], depth).value()[0]) for joins in (true_parts, parts)
                    )
                    figure = figures[run][str(measure @ 10)]
                    rows[at].append(figure_row(number, figure, true, as_judged))
    return [np.array(each, float) for each in rows]


def table(times: int, workers: int = 2) -> str:
    """Mean errors and coverage; the worst slice."""
    worlds_of = {False: ("Cranfield:lenient", "Cranfield:strict", "judges:willia-umbrela1")}
    # The judges of the slices take the place of the world's own.
    worlds_of[True] = ("Cranfield:lenient", "judges:willia-umbrela1")
    todo = [
        Cell(world, slices, otherwise, labels, range(times))
        for otherwise, named in worlds_of.items()
        for world in named
        for slices, labels in ((2, 200), (4, 200), (8, 200), (20, 200), (4, 400))
        # The judges' pairs are of 25 queries.
        if slices < 20 or world.startswith("Cranfield")
    ]
    with ProcessPoolExecutor(workers) as pool:
        results = list(pool.map(trial, todo))
    lines = [heading()]
    for cell, parts in zip(todo, results, strict=True):
        errs = "otherwise" if cell.otherwise else "alike"
        title = f"{cell.world.partition(':')[2]}, {cell.slices} slices, {errs}, n={cell.labels}"
        lines.append(line(title, parts))
    return "\n".join(lines)


def difference_trial(name: str, seeds: range, labels: int) -> list[np.ndarray]:
    """Two runs that are equal by people, in two halves of the queries; in the first the judge favours one of them.

    float64[rows, 5] of each half, as `calibrated.difference_trial` has them.
    """
    rows: list[list[tuple[float, ...]]] = [[], []]
    for seed in seeds:
        alike, favoured = (worlds.equal_runs(calibrated.world_of(name), seed, share) for share in (0.0, 0.3))
        judges = (favoured.judge.to_dict(), alike.judge.to_dict())
        place = {query: number % 2 for number, query in enumerate(alike.human)}
        judge = {query: judges[at][query] for query, at in place.items()}
        world = World(alike.human, rs.Qrels.from_dict(judge), alike.runs, alike.corpus_size)
        judged, _ = joined_of(world)
        ground = ground_for_differences(world, labels, seed)
        one, two = world.runs
        for at in (0, 1):
            parts = {run: each.over(np.array([place[q] == at for q in each.queries])) for run, each in judged.items()}
            changes = calibrated_differences(ground, judged, one, PLAN, Sampling(seed=seed), parts)
            for number, (measure, _) in enumerate(PLAN):
                rows[at].append(difference_row(number, changes[two, str(measure @ 10)], 0.0))
    return [np.array(each, float) for each in rows]


def differences_table(times: int) -> str:
    """Equal runs in two slices: error, coverage, and how often a difference is shown."""
    lines = [f"{'200 labels':32}{'error':>19}{'coverage':>19}{'shown by labels':>19}{'as printed':>19}"]
    for name in ("judges:Olz-gpt4o", "judges:willia-umbrela1", "Cranfield:lenient"):
        for at, rows in enumerate(difference_trial(name, range(times), 200)):
            columns = [
                "/".join(f"{np.nanmean(rows[rows[:, 0] == place, column]):.3f}" for place in range(3))
                for column in (1, 2, 3, 4)
            ]
            title = f"{name.partition(':')[2]}, " + ("one favoured", "none favoured")[at]
            lines.append(f"{title:32}" + "".join(f"{each:>19}" for each in columns))
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    print(table(given.times, given.workers))
    print(differences_table(given.times))
