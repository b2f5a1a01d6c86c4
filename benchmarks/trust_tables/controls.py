"""Random controls: how near BoR comes to the truth, how often its interval covers it, and how often *shown* is true.

    python -m benchmarks.trust_tables.controls [--repetitions 40] [--data FOLDER]

Every repetition is a new judge on a new draw of controls. Cranfield: BM25's own top 10 is labelled by the judge, and
n controls for each query. The judge's rate on the rest of the corpus is known, so that the truth is: the success of
the lists and of a random draw, both by this judge. Made worlds have N from 1,000 to 8.8 million.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.measures.hypergeometric import random_success
from rag_selectivity.statistics import controls as formulas
from rag_selectivity.statistics.controls import Counts, Draw

DATA = Path("../shared/data/cranfield")
K = 10
NUMBERS = (3, 10, 40)
TAIL = 0.025
RELEVANT = 4
#: What the trials of the definition gave, with 3 controls for each query: the estimate and the truth.
PUBLISHED = {"dice": "0.00 [-.03, .02]", "people": "4.97 [3.65, 6.11], truth 5.21", "lenient": "4.65, truth 4.47"}
PUBLISHED_COVERAGE = (
    "coverage .93 to 1.00 on Cranfield; .92 to 1.00 in made worlds, .79 with all hits in one query of a hundred"
)


@dataclass(frozen=True)
class World:
    """Queries whose judge is known.

    `top` draws the judge's verdicts on the lists, bool[queries, K]; `rates` the share of the rest of the corpus that it
    calls relevant, float64[queries]. The true mean success of a random draw, and of the lists, follow from `rest`.
    """

    name: str
    size: int
    queries: int
    draw: Callable[[np.random.Generator], tuple[NDArray[np.bool_], NDArray[np.int64]]]
    success: float
    chance: float

    @property
    def truth(self) -> float:
        return float(np.log2(self.success / self.chance))


@dataclass(frozen=True)
class Row:
    """One line of the table: means over repetitions, and shares of them."""

    world: str
    size: int
    controls: int
    truth: float
    value: float
    low: float
    high: float
    coverage: float
    shown: float
    shown_true: float
    none_relevant: float


def one(world: World, number: int, rng: np.random.Generator, draws: int) -> tuple[float, float, float, float, int]:
    """Value, low, high and shown bits of one repetition, and the number of relevant controls."""
    top, rest = world.draw(rng)
    known, succeeded = top.sum(axis=1), top.any(axis=1)
    counts = Counts(np.full(world.queries, number), rng.hypergeometric(rest, world.size - K - rest, number))
    found, missed = random_success(world.size, known, np.full(world.queries, K))
    outside = K * (world.size - K) / (world.size - known)
    chance, _ = formulas.chance_draws(
        Draw(found, missed, outside, np.zeros(world.queries)), counts, formulas.rate_draws(counts, draws, rng), rng
    )
    bits = np.log2(formulas.success_draws(succeeded, None, draws, rng) / chance)
    most = min(1.0, formulas.most_found_outside(counts, K, TAIL) + float(found.mean()))
    shown = formulas.bits_between(formulas.lower_rate(float(succeeded.sum()), world.queries, TAIL), most)
    low, value, high = np.quantile(bits, [TAIL, 0.5, 1 - TAIL]).tolist()
    if not counts.hits:
        low, value, high = shown, np.nan, float(np.log2(succeeded.mean() / found.mean()))
    return value, low, high, shown, counts.hits


def row(world: World, number: int, repetitions: int, draws: int = 1500) -> Row:
    """The line of one world with one number of controls."""
    rng = np.random.default_rng([7, number, world.size])
    tried = np.array([one(world, number, rng, draws) for _ in range(repetitions)])
    value, low, high, shown, hits = tried.T
    return Row(
        world.name,
        world.size,
        number,
        world.truth,
        float(np.nanmean(value)) if not np.isnan(value).all() else np.nan,
        float(low.mean()),
        float(high.mean()),
        float(((low <= world.truth) & (world.truth <= high)).mean()),
        float(shown.mean()),
        float((shown <= world.truth).mean()),
        float((hits == 0).mean()),
    )


# -- Cranfield -----------------------------------------------------------------------------------------


def cranfield(folder: Path) -> list[World]:
    """BM25 on Cranfield with judges made of people's labels; empty if the collection is not there."""
    if not (folder / "runs" / "bm25.trec").is_file():
        return []
    labels: dict[str, set[str]] = {}
    for line in (folder / "qrels.trec").read_text().splitlines():
        query, _, passage, grade = line.split()
        labels.setdefault(query, set()).update([passage] if int(grade) >= RELEVANT else [])
    lists: dict[str, list[str]] = {query: [] for query in labels}
    for line in (folder / "runs" / "bm25.trec").read_text().splitlines():
        query, _, passage, rank, *_ = line.split()
        if query in lists and int(rank) <= K:
            lists[query].append(passage)
    with (folder / "corpus.jsonl").open() as lines:
        size = sum(1 for _ in lines)
    top = np.array([[passage in labels[query] for passage in lists[query]] for query in labels])
    rest = np.array([len(labels[query] - set(lists[query])) for query in labels])
    tenth = np.arange(len(top)) % 10 == 0
    judges = {
        "people": np.zeros(len(top)),
        "dice": np.full(len(top), 0.4),
        "lenient": np.full(len(top), 0.005),
        "lenient on a tenth": np.where(tenth, 0.05, 0.0),
        "accepts all of a tenth": np.where(tenth, 0.9, 0.0),
    }
    return [_judged(f"Cranfield, {name}", size, top, rest, accepts) for name, accepts in judges.items()]


def _judged(
    name: str, size: int, top: NDArray[np.bool_], rest: NDArray[np.int64], accepts: NDArray[np.float64]
) -> World:
    """A world in which the judge has people's view, and accepts a share of what is not relevant."""
    queries = len(top)
    beyond = size - K - rest

    def draw(rng: np.random.Generator) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        listed = top | (rng.random(top.shape) < accepts[:, None])
        return listed, rest + rng.binomial(beyond, accepts)

    rng = np.random.default_rng(1)
    worlds = [draw(rng) for _ in range(40)]
    chance = np.mean([random_success(size, each[0].sum(axis=1) + each[1], K)[0].mean() for each in worlds])
    success = np.mean([each[0].any(axis=1).mean() for each in worlds])
    return World(name, size, queries, draw, float(success), float(chance))


# -- made worlds ---------------------------------------------------------------------------------------


def made() -> Iterator[World]:
    """Worlds with rates outside the lists that are the same, spread, or in few queries."""
    kinds = {
        "even rate .001": lambda rng, q: np.full(q, 0.001),
        "even rate .02": lambda rng, q: np.full(q, 0.02),
        "rates spread (Beta .1)": lambda rng, q: rng.beta(0.1, 4.9, q),
        "a fifth at .2": lambda rng, q: np.where(rng.random(q) < 0.2, 0.2, 0.0),
        "a twentieth accepts all": lambda rng, q: np.where(rng.random(q) < 0.05, 1.0, 0.0),
        "one in a hundred accepts all": lambda rng, q: np.where(rng.random(q) < 0.01, 1.0, 0.0),
    }
    for name, rates in kinds.items():
        for size in (1_400, 100_000, 8_800_000):
            yield _made(f"made, {name}", size, rates)


def _made(
    name: str, size: int, rates: Callable[[np.random.Generator, int], NDArray[np.float64]], queries: int = 200
) -> World:
    def draw_of(rng: np.random.Generator, count: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        top = rng.random((count, K)) < rng.beta(1.0, 3.0, count)[:, None]
        return top, rng.binomial(size - K, np.minimum(rates(rng, count), 1.0))

    top, rest = draw_of(np.random.default_rng(1), 60_000)
    chance = (
        float(random_success(size, top.sum(axis=1) + rest, K)[0].mean())
        if size < 10_000
        else _chance(size, top.sum(axis=1), rest)
    )
    return World(name, size, queries, lambda rng: draw_of(rng, queries), float(top.any(axis=1).mean()), chance)


def _chance(size: int, known: NDArray[np.int64], rest: NDArray[np.int64]) -> float:
    """Mean success of a random draw, with replacement: in a large corpus the same to five digits."""
    return float(-np.expm1(K * np.log1p(-np.minimum((known + rest) / size, 1 - 1e-16))).mean())


# -- the table -----------------------------------------------------------------------------------------


def controls_rows(
    repetitions: int = 40, data: Path = DATA, numbers: tuple[int, ...] = NUMBERS, worlds: list[World] | None = None
) -> list[Row]:
    """All lines of the table."""
    chosen = [*cranfield(data), *made()] if worlds is None else worlds
    return [row(world, number, repetitions) for world in chosen for number in numbers]


def controls_table(repetitions: int = 40, data: Path = DATA) -> str:
    """The table as text, with the published figures beside it."""
    rows = controls_rows(repetitions, data)
    lines = [
        f"Random controls, {repetitions} repetitions",
        f"{'world':40} {'N':>9} {'n':>3} {'truth':>6} {'BoR':>6} {'interval':>16} {'cover':>6} {'shown':>6} "
        f"{'true':>5} {'X = 0':>6}",
    ]
    lines += [
        f"{r.world:40} {r.size:9,} {r.controls:3} {r.truth:6.2f} {r.value:6.2f} [{r.low:6.2f}, {r.high:6.2f}] "
        f"{r.coverage:6.2f} {r.shown:6.2f} {r.shown_true:5.2f} {r.none_relevant:6.2f}"
        for r in rows
    ]
    if not any(r.world.startswith("Cranfield") for r in rows):
        lines.append(f"Cranfield was skipped: {data} has no runs/bm25.trec")
    mean = np.mean([r.coverage for r in rows])
    lines.append(
        f"coverage: mean {mean:.3f}, least {min(r.coverage for r in rows):.2f}; "
        f"shown is true: least {min(r.shown_true for r in rows):.3f}, mean {np.mean([r.shown_true for r in rows]):.3f}"
    )
    lines.append(f"published: {PUBLISHED_COVERAGE}; shown true in .983 or more")
    lines += [f"published, 3 controls, {name}: {text}" for name, text in PUBLISHED.items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Random controls: coverage and what is shown.")
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    print(controls_table(options.repetitions, options.data))


if __name__ == "__main__":
    main()
