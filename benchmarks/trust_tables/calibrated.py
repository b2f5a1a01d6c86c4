"""Do calibrated figures hold? Judges of real collections beside people, labels drawn again and again.

    python -m benchmarks.trust_tables.calibrated [--times 30]

The error is that of the calibrated figure against the one of people's labels of all pairs; coverage is the share of
the intervals for these very queries (completions alone) that hold it. In 60 intervals .95 varies by ±.06.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

import rag_selectivity as rs
from benchmarks.trust_tables import worlds
from rag_selectivity.calibrated.differences import CalibratedDifference, calibrated_differences
from rag_selectivity.calibrated.figures import Calibrated, Sampling, calibrated_figures
from rag_selectivity.calibrated.ground import Ground
from rag_selectivity.calibrated.people import PeoplesLabels, calibration_ground
from rag_selectivity.grading.designs import Settling, calibrate_draw
from rag_selectivity.measures.names import parse_measure

MEASURES = ("Harm", "RA-nWG", "BoR")
PLAN = [(parse_measure(name), np.array([10])) for name in MEASURES]
#: What the definitions' own trials reached, to be held beside: mean errors and coverage.
REFERENCE = {
    "judges n=100": ((0.038, 0.066, 0.222), (0.95, 0.95, 0.95)),
    "judges n=200": ((0.028, 0.047, 0.158), (0.99, 0.99, 0.98)),
    "judges n=400": ((0.017, 0.041, 0.107), (0.95, 0.95, 0.95)),
    "Cranfield n=100": ((0.048, 0.102, 0.358), (0.95, 0.95, 0.95)),
    "Cranfield n=200": ((0.036, 0.078, 0.287), (0.94, 0.96, 0.95)),
    "Cranfield n=400": ((0.020, 0.050, 0.216), (0.95, 0.95, 0.95)),
    "R = 1 n=200": ((0.025, 0.116, 0.710), (0.92, 0.96, 0.61)),
    "R = 1, settled n=200": ((0.038, 0.134, 0.660), (0.92, 0.98, 0.97)),
}


@dataclass(frozen=True)
class Cell:
    """A world, a number of labels, and how often to draw them."""

    group: str
    world: str
    labels: int
    seeds: range
    settling: bool = False


@cache
def world_of(name: str) -> worlds.World:
    """A world by its name."""
    kind, _, rest = name.partition(":")
    if kind == "judges":
        return worlds.llm_judge(rest)
    if kind == "R = 1":
        return worlds.cranfield(rest, most_relevant=1)
    return worlds.cranfield(rest)


@cache
def _joined(name: str) -> tuple[dict, dict]:
    return joined_of(world_of(name))


def joined_of(world: worlds.World) -> tuple[dict, dict]:
    """The runs joined with the judge's labels, and with people's."""
    by_judge, by_people = (
        {
            run: rs.join(labels, lists, corpus_size=world.corpus_size, scale="utility", ids="exact")
            for run, lists in world.runs.items()
        }
        for labels in (world.judge, world.human)
    )
    return by_judge, by_people


def people_of(world: worlds.World, labels: int, seed: int, settling: bool = False, depth: int = 10) -> PeoplesLabels:
    """The labels that people would give to a draw."""
    listed = labels // 4 if settling else 0
    drawn: dict[str, dict[str, int]] = {}
    for pair in calibrate_draw(world.judge, world.runs, labels - listed, depth=depth, seed=seed):
        drawn.setdefault(pair.query, {})[pair.passage] = world.human[pair.query][pair.passage]
    if not settling:
        return PeoplesLabels(drawn)
    order = Settling.of(world.judge, world.runs, 4, depth, seed)
    known = {(query, passage): grade for query, row in drawn.items() for passage, grade in row.items()}
    settled: dict[str, dict[str, int]] = {}
    for _ in range(listed):
        waiting = order.waiting(known)
        if not waiting:
            break
        pair = waiting[0]
        grade = world.human[pair.query][pair.passage]
        known[pair.query, pair.passage] = settled.setdefault(pair.query, {})[pair.passage] = grade
    return PeoplesLabels(drawn, settled or None)


def trial(cell: Cell) -> np.ndarray:
    """The rows of `figure_rows` for every seed."""
    world, joined = world_of(cell.world), _joined(cell.world)
    rows = [figure_rows(world, joined, cell.labels, seed, settling=cell.settling) for seed in cell.seeds]
    return np.concatenate(rows)


def figure_rows(
    world: worlds.World, joined: tuple[dict, dict], labels: int, seed: int, depth: int = 10, settling: bool = False
) -> np.ndarray:
    """float64[rows, 6]: the rows of `figure_row`, of every run and measure."""
    judged, truth = joined
    human = people_of(world, labels, seed, settling, depth)
    ground, _ = calibration_ground(world.judge.on_scale("utility"), human)
    plan = [(measure, np.array([depth])) for measure, _ in PLAN]
    figures = calibrated_figures(ground, judged, plan, Sampling(seed=seed))
    rows = []
    for run in world.runs:
        for place, (measure, at) in enumerate(plan):
            true, as_judged = (float(measure.outcome(joins[run], at).value()[0]) for joins in (truth, judged))
            rows.append(figure_row(place, figures[run][str(measure @ depth)], true, as_judged))
    return np.array(rows, float)


def figure_row(place: int, figure: Calibrated, true: float, as_judged: float) -> tuple[float, ...]:
    """Measure, error, error as judged, covered, covered with queries, half-width."""
    return (
        place,
        abs(figure.value - true),
        abs(as_judged - true),
        np.nan if figure.reason else figure.fixed_low <= true <= figure.fixed_high,
        np.nan if figure.reason else figure.low <= true <= figure.high,
        (figure.fixed_high - figure.fixed_low) / 2,
    )


def cells(times: int, sizes: Iterable[int] = (100, 200, 400)) -> list[Cell]:
    """Every cell of the table."""
    seeds = range(times)
    result = [Cell("judges", f"judges:{judge}", n, seeds) for n in sizes for judge in worlds.JUDGES]
    result += [Cell("Cranfield", f"Cranfield:{noise}", n, seeds) for n in sizes for noise in worlds.NOISE]
    result += [Cell("R = 1", f"R = 1:{noise}", 200, seeds) for noise in ("lenient", "mild")]
    result += [Cell("R = 1, settled", f"R = 1:{noise}", 200, seeds, settling=True) for noise in ("lenient", "mild")]
    return result


def calibrated_table(times: int = 30, sizes: Iterable[int] = (100, 200, 400), workers: int = 2) -> str:
    """Mean errors and coverage by group, the worst cell, and the definitions' own figures beside them."""
    todo = cells(times, sizes)
    with ProcessPoolExecutor(workers) as pool:
        results = list(pool.map(trial, todo))
    parts: dict[str, list[np.ndarray]] = {}
    for cell, result in zip(todo, results, strict=True):
        parts.setdefault(f"{cell.group} n={cell.labels}", []).append(result)
    return "\n".join(
        [heading() + "   reference", *(line(title, each, REFERENCE.get(title)) for title, each in parts.items())]
    )


def heading() -> str:
    """What stands above the lines of `line`."""
    return f"{'':42}{'error':>18}{'as judged':>16}{'coverage':>17}{'worst':>17}{'with queries':>17}"


def line(title: str, parts: list[np.ndarray], known: tuple[Iterable[float], Iterable[float]] | None = None) -> str:
    """One line: means over the parts, the lowest coverage of a part, and the coverage of the printed interval."""
    whole = np.concatenate(parts)

    def means(column: int, rows: np.ndarray = whole) -> list[float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return [float(np.nanmean(rows[rows[:, 0] == place, column])) for place in range(3)]

    worst = np.min([means(3, part) for part in parts], axis=0)
    undefined = int(np.isnan(whole[:, 3]).sum())
    return (
        f"{title:42}{_text(means(1), 3):>18}{_text(means(2), 2):>16}{_text(means(3), 2):>17}{_text(worst, 2):>17}"
        f"{_text(means(4), 2):>17}"
        + ("" if known is None else f"   {_text(known[0], 3)} · {_text(known[1], 2)}")
        + (f"   undefined: {undefined} of {len(whole)}" if undefined else "")
    )


def _text(values: Iterable[float], digits: int) -> str:
    return "/".join(f"{value:.{digits}f}".lstrip("0") or "0" for value in values)


def difference_trial(base: worlds.World, favoured: float | None, seeds: range, labels: int = 200) -> np.ndarray:
    """float64[rows, 5]: the rows of `difference_row`, of every seed and measure."""
    rows = []
    for seed in seeds:
        world = base if favoured is None else worlds.equal_runs(base, seed, favoured)
        judged, truth = joined_of(world)
        ground = ground_for_differences(world, labels, seed)
        one, two = world.runs
        changes = calibrated_differences(ground, judged, one, PLAN, Sampling(seed=seed))
        for place, (measure, at) in enumerate(PLAN):
            true = float(np.subtract(*(measure.outcome(truth[run], at).value()[0] for run in (two, one))))
            rows.append(difference_row(place, changes[two, str(measure @ 10)], true))
    return np.array(rows, float)


def ground_for_differences(world: worlds.World, labels: int, seed: int) -> Ground:
    """What a draw that is made for differences lets people label."""
    drawn: dict[str, dict[str, int]] = {}
    for pair in calibrate_draw(world.judge, world.runs, labels, seed=seed, differences=True):
        drawn.setdefault(pair.query, {})[pair.passage] = world.human[pair.query][pair.passage]
    return calibration_ground(world.judge.on_scale("utility"), drawn)[0]


def difference_row(place: int, change: CalibratedDifference, true: float) -> tuple[float, ...]:
    """Measure, error, covered by completions alone, called different by these, and as printed."""
    covered = change.fixed_low <= true + 1e-9 and true - 1e-9 <= change.fixed_high
    different = change.fixed_low > 1e-9 or change.fixed_high < -1e-9
    printed = change.low > 1e-9 or change.high < -1e-9
    said = (covered, different, printed) if change.reason is None else (np.nan,) * 3
    return (place, abs(change.difference - true), *said)


def differences_table(times: int = 20, kinds: Iterable[tuple[str, Callable[[], worlds.World]]] | None = None) -> str:
    """Differences between two runs: error, coverage, and how often equal runs are called different.

    "by labels" takes the interval over completions alone, "as printed" the one that `compare` prints.
    """
    chosen = _OF_DIFFERENCES if kinds is None else kinds
    lines = [f"{'200 labels':50}{'error':>18}{'coverage':>17}{'different by labels':>22}{'as printed':>17}"]
    cases = [(f"{kind}, {text}", world, favoured) for kind, world in chosen for text, favoured in _FAVOURED]
    for title, world, favoured in cases:
        rows = difference_trial(world(), favoured, range(times))
        columns = [
            [float(np.nanmean(rows[rows[:, 0] == place, column])) for place in range(3)] for column in (1, 2, 3, 4)
        ]
        lines.append(
            f"{title:50}{_text(columns[0], 3):>18}{_text(columns[1], 2):>17}{_text(columns[2], 2):>22}"
            f"{_text(columns[3], 2):>17}"
            + (f"   undefined: {int(np.isnan(rows[:, 2]).sum())} of {len(rows)}" if np.isnan(rows[:, 2]).any() else "")
        )
    return "\n".join(lines)


_OF_DIFFERENCES = (
    ("LLMJudge, Olz-gpt4o", partial(world_of, "judges:Olz-gpt4o")),
    ("LLMJudge, willia-umbrela1", partial(world_of, "judges:willia-umbrela1")),
    ("Cranfield, lenient", partial(world_of, "Cranfield:lenient")),
)
_FAVOURED = (("two runs", None), ("equal runs", 0.0), ("equal runs, one favoured", 0.3))


def cost() -> str:
    """Seconds for 225 queries, two runs, three measures and 150 draws in one process."""
    world = world_of("Cranfield:lenient")
    judged, _ = _joined("Cranfield:lenient")
    ground, _ = calibration_ground(world.judge.on_scale("utility"), people_of(world, 200, 1))
    start = time.perf_counter()
    calibrated_figures(ground, judged, PLAN, Sampling())
    return f"225 queries, two runs, three measures, 150 draws: {time.perf_counter() - start:.2f} s"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=[100, 200, 400])
    given = parser.parse_args()
    print(calibrated_table(given.times, given.sizes))
    print(differences_table(max(4, given.times * 2 // 3)))
    print(cost())
