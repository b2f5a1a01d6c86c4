"""Do calibrated figures hold? Judges of collections beside people, labels drawn again and again.

The error is that of the calibrated figure against the one of people's labels of all pairs (of the slice); coverage is
the share of the intervals for these very queries (completions alone) that hold it; "holds" counts the wider ones, as
they are printed, and those that are called rough.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np

import rag_selectivity as rs
from benchmarks.simulated import Line
from benchmarks.trust_tables import worlds
from benchmarks.trust_tables.worlds import World, world_of
from rag_selectivity.measures.base import parse_measure
from rag_selectivity.people.designs import calibrate_draw, next_to_settle
from rag_selectivity.trust.completions import Completed, completed_figures
from rag_selectivity.trust.people import Ground, PeoplesLabels, calibration_ground

MEASURES = [parse_measure(name) for name in ("Harm", "RA-nWG", "BoR")]
#: Worlds that are tried at other K too.
OTHER_DEPTHS = ("Cranfield, overlap", "DL19, first ranks", "LLMJudge, runs by judges, Olz")


@dataclass(frozen=True)
class Cell:
    """A world, the labels in all, and how often to draw them.

    `settling` gives half of the list labels to queries that they settle. With `slices` the queries are cut into so many
    parts, in which the judge errs alike or `otherwise`; `people` is no label at all where a tail is completed.
    """

    group: str
    world: str
    labels: int
    seeds: range
    depth: int = 10
    slices: int = 1
    otherwise: bool = False
    tail: bool = False
    settling: bool = False


@cache
def prepared(name: str, slices: int = 1, otherwise: bool = False) -> tuple[World, tuple[dict, dict], dict[str, int]]:
    """The world, its joins with the judge's labels and with people's, and the slice of each query."""
    world = world_of(name)
    queries = list(world.human)
    shuffled = np.random.default_rng(5).permutation(len(queries)) % slices
    place = dict(zip(queries, shuffled.tolist(), strict=True))
    if otherwise:
        judges = [worlds.noisy(world.human, noise, 3).to_dict() for noise in ("strict", "lenient", "mild")]
        if name.startswith("judges"):
            judges = [world.judge.to_dict(), world.human.to_dict(), judges[1]]
        judge = rs.Qrels.of({query: judges[place[query] % 3][query] for query in queries})
        world = World(world.human, judge, world.runs, world.corpus_size)
    return world, (joined(world, world.judge), joined(world, world.human)), place


def joined(world: World, labels: rs.Qrels) -> dict[str, rs.JudgedRun]:
    """The runs joined with labels."""
    options = {"corpus_size": world.corpus_size, "scale": "utility", "ids": "exact"}
    return {run: rs.join(labels, lists, **options) for run, lists in world.runs.items()}


def _said(world: World, pairs: Iterable) -> dict[str, dict[str, int]]:
    drawn: dict[str, dict[str, int]] = {}
    for pair in pairs:
        drawn.setdefault(pair.query, {})[pair.passage] = world.human[pair.query][pair.passage]
    return drawn


def _settling(world: World, labels: int, seed: int) -> PeoplesLabels:
    """People's labels, half of those in the lists of pairs that settle queries."""
    drawn = _said(world, calibrate_draw(world.judge, world.runs, labels - labels // 4, seed=seed))
    known = {(query, passage): grade for query, row in drawn.items() for passage, grade in row.items()}
    settling: dict[str, dict[str, int]] = {}
    for _ in range(labels // 4):
        pair = next_to_settle(world.judge, world.runs, known, relevant_from=4, seed=seed)
        if pair is None:
            break
        grade = world.human[pair.query][pair.passage]
        known[pair.query, pair.passage] = settling.setdefault(pair.query, {})[pair.passage] = grade
    return PeoplesLabels(drawn, settling)


def _part(runs: dict[str, rs.JudgedRun], place: dict[str, int], at: int) -> dict[str, rs.JudgedRun]:
    return {name: run.over(np.array([place[query] == at for query in run.queries])) for name, run in runs.items()}


def trial(cell: Cell) -> np.ndarray:
    """float64[rows, 5]: `figure_row` of every draw, slice, run and measure."""
    world, (judged, truth), place = prepared(cell.world, cell.slices, cell.otherwise)
    plan, rows = [(measure, np.array([cell.depth])) for measure in MEASURES], []
    for seed in cell.seeds:
        if cell.tail:
            labels = worlds.with_tail(world.judge.to_dict(), seed)
            draw = calibrate_draw(labels, world.runs, cell.labels, seed=seed) if cell.labels else []
            ground, judged = calibration_ground(labels, _said(world, draw) or None)[0], joined(world, labels)
            truth = joined(world, world.human if cell.labels else world.judge)
        elif cell.settling:
            ground, _ = calibration_ground(world.judge.on_scale("utility"), _settling(world, cell.labels, seed))
        else:
            draw = calibrate_draw(world.judge, world.runs, cell.labels, depth=cell.depth, seed=seed)
            ground, _ = calibration_ground(world.judge.on_scale("utility"), _said(world, draw))
        targets = [(run,) for run in world.runs]
        for at in range(cell.slices):
            parts, true_parts = (_part(runs, place, at) if cell.slices > 1 else runs for runs in (judged, truth))
            more = (parts,) if cell.slices > 1 else ()
            figures = completed_figures(ground, judged, targets, plan, rs.Bootstrap(seed=seed), *more)
            for run in world.runs:
                for number, (measure, depth) in enumerate(plan):
                    true, as_judged = (
                        float(measure.outcome(joins[run], depth).value()[0]) for joins in (true_parts, parts)
                    )
                    if (figure := figures[run,].get(str(measure @ cell.depth))) is not None:
                        # Harm of a graded top needs no tail.
                        rows.append(figure_row(number, figure, true, as_judged))
    return np.array(rows, float)


def figure_row(place: int, figure: Completed, true: float, as_judged: float) -> tuple[float, ...]:
    """Measure, error, error as judged, covered, and covered as printed or called rough."""
    none = bool(figure.reason)
    covered = np.nan if none else figure.fixed[0] <= true <= figure.fixed[1]
    return (
        place,
        abs(figure.value - true),
        abs(as_judged - true),
        covered,
        np.nan if none else figure.rough != "" or figure.low <= true <= figure.high,
    )


def figure_cells(times: int) -> Iterator[Cell]:
    """Collections on which the method was made, and held-out ones."""
    seeds, held_out = range(times), range(100, 100 + times)
    noisy = [f"Cranfield:{noise}" for noise in worlds.NOISE]
    for n in (60, 100, 200, 400):
        yield from (Cell("four LLM judges", f"judges:{judge}", n, seeds) for judge in worlds.JUDGES)
        yield from (Cell("Cranfield, noisy judges", name, n, seeds) for name in noisy)
        yield from (Cell(name, name, n, held_out) for name in worlds.WORLDS)
    yield from (Cell(f"{name}, K = {k}", name, 200, held_out, depth=k) for name in OTHER_DEPTHS for k in (5, 20))
    few = [("R = 1", f"R = 1:{noise}") for noise in ("lenient", "mild")]
    for group, name in [*few, *((name, name) for name in worlds.WORLDS if "R = 1" in name)]:
        yield Cell(group, name, 200, seeds)


def settled_cells(times: int) -> Iterator[Cell]:
    """One relevant passage a query: half of the labels in the lists settle queries."""
    for name in ("R = 1:lenient", "R = 1:mild", *(name for name in worlds.WORLDS if "R = 1" in name)):
        yield Cell(name, name, 200, range(times), settling=True)


def slice_cells(times: int) -> Iterator[Cell]:
    """The queries are cut into slices of equal sizes."""
    for otherwise, name in (
        *((False, name) for name in ("Cranfield:lenient", "Cranfield:strict", "judges:willia-umbrela1")),
        *((True, name) for name in ("Cranfield:lenient", "judges:willia-umbrela1")),
    ):
        for slices, labels in ((2, 200), (4, 200), (8, 200), (20, 200), (4, 400)):
            if slices < 20 or name.startswith("Cranfield"):  # the judges' pairs are of 25 queries
                title = f"{name}, {slices} slices, {'otherwise' if otherwise else 'alike'}"
                yield Cell(title, name, labels, range(times), slices=slices, otherwise=otherwise)


def tail_cells(times: int) -> Iterator[Cell]:
    """The top 20 graded and 10 of the ranks 21 to 200, by the judge alone and with 200 labels by people."""
    for name in worlds.TAILS:
        yield from (Cell(f"{name}, tail", name, labels, range(times), tail=True) for labels in (0, 200))


def lines(cells: Callable[[int], Iterator[Cell]], times: int) -> Iterator[Line]:
    """A line a group and number of labels: mean errors, coverage of both intervals, and the lowest of a cell."""
    todo, parts = list(cells(times))[:: 8 if times == 1 else 1], dict[str, list[np.ndarray]]()
    with ProcessPoolExecutor(2) as pool:
        for cell, rows in zip(todo, pool.map(trial, todo), strict=True):
            parts.setdefault(f"{cell.group}, {cell.labels} labels", []).append(rows)
    for title, each in parts.items():
        whole = np.concatenate(each)
        shares = {f"holds, or is called rough: {name}": value for name, value in of_measures(4, whole).items()}
        shares |= {f"completions hold: {name}": value for name, value in of_measures(3, whole).items()}
        lowest = [of_measures(3, part) for part in each]
        shares |= {f"at least: {name}": min(part[name] for part in lowest) for name in lowest[0]}
        errors = {f"error: {name}": value for name, value in of_measures(1, whole).items()}
        yield Line(title, errors | {f"as judged: {name}": v for name, v in of_measures(2, whole).items()} | shares)


def of_measures(column: int, rows: np.ndarray) -> dict[str, float]:
    """The mean of a column over the rows of each measure, undefined ones left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        of_each = [rows[rows[:, 0] == place, column] for place in range(len(MEASURES))]
        return {str(measure): float(np.nanmean(each)) for measure, each in zip(MEASURES, of_each, strict=True)}


# -- differences ---------------------------------------------------------------------------------------

_FAVOURED = {"two runs": None, "equal runs": 0.0, "equal runs, one favoured": 0.3}
_OF_DIFFERENCES = (
    *("judges:Olz-gpt4o", "judges:willia-umbrela1", "Cranfield:lenient"),
    *("Cranfield, overlap", "DL19, first ranks", "DL19, two grades", "LLMJudge, runs by judges, Olz"),
)


def difference_trial(name: str, favoured: float | None, seeds: range, labels: int = 200) -> np.ndarray:
    """float64[rows, 5]: measure, error, covered by completions alone, called different by these, and as printed."""
    rows, plan = [], [(measure, np.array([10])) for measure in MEASURES]
    for seed in seeds:
        world = world_of(name) if favoured is None else worlds.equal_runs(world_of(name), seed, favoured)
        judged, truth = joined(world, world.judge), joined(world, world.human)
        one, two = world.runs
        ground = ground_for_differences(world, labels, seed)
        changes = completed_figures(ground, judged, [(two, one)], plan, rs.Bootstrap(seed=seed))[two, one]
        for place, (measure, at) in enumerate(plan):
            true = float(np.subtract(*(measure.outcome(truth[run], at).value()[0] for run in (two, one))))
            change = changes[str(measure @ 10)]
            covered = change.fixed[0] <= true + 1e-9 and true - 1e-9 <= change.fixed[1]
            shown = [low > 1e-9 or high < -1e-9 for low, high in (change.fixed, (change.low, change.high))]
            rows.append(
                (place, abs(change.value - true), *((covered, *shown) if change.reason is None else (np.nan,) * 3))
            )
    return np.array(rows, float)


def ground_for_differences(world: World, labels: int, seed: int) -> Ground:
    """What a draw that is made for differences lets people label."""
    drawn = _said(world, calibrate_draw(world.judge, world.runs, labels, seed=seed, differences=True))
    return calibration_ground(world.judge.on_scale("utility"), drawn)[0]


def of_differences(times: int) -> Iterator[Line]:
    """Differences between two runs: error, coverage, and how often they are called different by 200 labels."""
    for name in _OF_DIFFERENCES:
        for text, favoured in _FAVOURED.items():
            rows = difference_trial(name, favoured, range(times))
            wrong = "called different" if favoured is None else "errs: called different"
            titles = ("error", "completions hold", "different by completions", wrong)
            figures = {
                f"{title}, {measure}": value
                for column, title in enumerate(titles, 1)
                for measure, value in of_measures(column, rows).items()
            }
            yield Line(f"{name}, {text}", figures)
