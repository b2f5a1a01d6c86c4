"""Random controls: how near BoR comes to the truth, how often its interval covers it, and how often *shown* is true.

Every repetition is a new judge on a new draw of controls. Where the judge's rates are known (Cranfield's own top 10,
and made worlds with N up to 8.8 million) the formulas alone are tried, which were chosen on these worlds. Held-out
judges are rules that read texts or scores, or people's judgments; they grade the whole collection, each repetition
draws queries anew and asks `evaluate`, and the truth is that of all queries.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rag_selectivity as rs
from benchmarks.simulated import Line
from benchmarks.trust_tables import worlds as collections
from benchmarks.trust_tables.worlds import MS_MARCO, Collection, FloatArray
from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.measures.hypergeometric import random_success
from rag_selectivity.measures.outcome import log2_of_ratio
from rag_selectivity.trust import controls as formulas
from rag_selectivity.trust.controls import Draw

IntArray = NDArray[np.int64]
K, NUMBERS, TAIL, RELEVANT = 10, (3, 10, 40), 0.025, 4
#: Bits that no figure shows: where a judge accepts all, the truth is 1e-8 bits above 0.
_NOTHING = 1e-6


def line_of(cell: str, truth: float, tried: np.ndarray) -> Line:
    """From value, low, high and shown of each repetition; the value is NaN where no control is relevant."""
    value, low, high, shown = tried.T
    figures = {
        "truth": truth,
        "BoR": np.nanmean(value) if not np.isnan(value).all() else np.nan,
        "low": low.mean(),
        "high": high.mean(),
        "holds": ((low <= truth + _NOTHING) & (truth <= high + _NOTHING)).mean(),
        "shown": shown.mean(),
        "holds: shown bits": (shown <= truth).mean(),
        "no control relevant": np.isnan(value).mean(),
    }
    return Line(cell, {name: float(value) for name, value in figures.items()})


# -- judges with known rates ---------------------------------------------------------------------------


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


def one(world: World, number: int, rng: np.random.Generator, draws: int) -> tuple[float, float, float, float]:
    """Value, low, high and shown bits of one repetition."""
    top, rest = world.draw(rng)
    known, succeeded = top.sum(axis=1), top.any(axis=1)
    relevant, every = rng.hypergeometric(rest, world.size - K - rest, number), np.arange(world.queries)
    found, missed = random_success(world.size, known, np.full(world.queries, K))
    outside = K * (world.size - K) / (world.size - known)
    graded, tails = np.full(world.queries, number), np.zeros(world.queries)
    draw = Draw(graded, relevant, every, found, missed, outside, tails)
    chance, _ = formulas.chance_draws(draw, *formulas.rate_draws(draw, draws, rng), rng)
    bits = np.log2(formulas.success_draws(succeeded, every, draws, rng) / chance)
    most = min(1.0, formulas.most_found_outside(draw, K, TAIL) + float(found.mean()))
    shown = float(log2_of_ratio(clopper_pearson(float(succeeded.sum()), world.queries, TAIL)[0] / most))
    low, value, high = np.quantile(bits, [TAIL, 0.5, 1 - TAIL]).tolist()
    if not relevant.any():
        low, value, high = shown, np.nan, float(np.log2(succeeded.mean() / found.mean()))
    return value, low, high, shown


def row(world: World, number: int, repetitions: int, draws: int = 1500) -> Line:
    """The line of one world with one number of controls."""
    rng = np.random.default_rng([7, number, world.size])
    tried = np.array([one(world, number, rng, draws) for _ in range(repetitions)])
    return line_of(f"{world.name}, N = {world.size:,}, {number} controls", world.truth, tried)


def cranfield(folder: Path) -> list[World]:
    """BM25 on Cranfield with judges made of people's labels; empty if the collection is not there."""
    if not (folder / "runs" / "bm25.trec").is_file():
        return []
    people, run = rs.read_qrels(folder / "qrels.trec").to_dict(), rs.read_run(folder / "runs" / "bm25.trec")
    labels = {query: {p for p, grade in row.items() if grade >= RELEVANT} for query, row in people.items()}
    lists = {query: list(run[query])[:K] for query in labels}
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

    def draw(rng: np.random.Generator) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        listed = top | (rng.random(top.shape) < accepts[:, None])
        return listed, rest + rng.binomial(size - K - rest, accepts)

    rng = np.random.default_rng(1)
    worlds = [draw(rng) for _ in range(40)]
    chance = np.mean([random_success(size, each[0].sum(axis=1) + each[1], K)[0].mean() for each in worlds])
    success = np.mean([each[0].any(axis=1).mean() for each in worlds])
    return World(name, size, len(top), draw, float(success), float(chance))


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
    # A judge with the same rate in all queries, of which few are graded.
    for rate in (0.1, 0.3):
        yield _made(f"made, even rate {rate}, 60 queries", 100_000, lambda rng, q, rate=rate: np.full(q, rate), 60)


def _made(
    name: str, size: int, rates: Callable[[np.random.Generator, int], NDArray[np.float64]], queries: int = 200
) -> World:
    def draw_of(rng: np.random.Generator, count: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        top = rng.random((count, K)) < rng.beta(1.0, 3.0, count)[:, None]
        return top, rng.binomial(size - K, np.minimum(rates(rng, count), 1.0))

    top, rest = draw_of(np.random.default_rng(1), 60_000)
    chance = float(random_success(size, top.sum(axis=1) + rest, K)[0].mean())
    return World(name, size, queries, lambda rng: draw_of(rng, queries), float(top.any(axis=1).mean()), chance)


def controls_rows(
    repetitions: int, data: Path, numbers: tuple[int, ...] = NUMBERS, worlds: list[World] | None = None
) -> list[Line]:
    """All lines of the table."""
    chosen = [*cranfield(data / "cranfield"), *made()] if worlds is None else worlds
    return [row(world, number, repetitions) for world in chosen for number in numbers]


# -- held-out judges -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """A collection that a judge graded as a whole.

    Attributes
    ----------
    accepts : float64[queries, passages]
        The probability that the judge calls a passage relevant; 0 or 1 for a judge that follows a rule.
    order : int64[queries, ranks]
        The run: columns of `accepts`.
    size : int
        N; passages beyond the columns are accepted with the probability `beyond`, float64[queries].
    by_position : float
        How much likelier the first passage of a prompt is accepted than the last; the order in it is random.
    """

    accepts: FloatArray
    order: IntArray
    size: int
    beyond: FloatArray
    by_position: float = 0.0

    def verdicts(self, query: int, columns: IntArray, rng: np.random.Generator) -> NDArray[np.bool_]:
        """What the judge says of passages that it reads in random order."""
        known = columns < self.accepts.shape[1]
        chance = np.full(len(columns), self.beyond[query])
        chance[known] = self.accepts[query, columns[known]]
        if self.by_position:
            place = rng.permutation(len(columns)) / max(1, len(columns) - 1)
            chance = np.clip(chance + self.by_position * (0.5 - place), 0.0, 1.0)
        return rng.random(len(columns)) < chance

    def truth(self, depth: int, times: int = 20) -> float:
        """BoR by this judge's verdicts on everything."""
        rng = np.random.default_rng(5)
        success, chance = [], []
        # Over all places in the prompt, where they matter.
        places = self.by_position * (0.5 - np.linspace(0, 1, 21 if self.by_position else 1))
        accepts = np.mean([np.clip(self.accepts + each, 0, 1) for each in places], axis=0)
        for _ in range(times):
            verdicts = rng.random(self.accepts.shape) < accepts
            relevant = verdicts.sum(axis=1) + rng.binomial(self.size - verdicts.shape[1], self.beyond)
            success.append(np.take_along_axis(verdicts, self.order[:, :depth], axis=1).any(axis=1).mean())
            chance.append(random_success(self.size, relevant, np.full(len(relevant), depth))[0].mean())
        return float(np.log2(np.mean(success) / np.mean(chance)))


@cache
def _collection(name: str, data: Path) -> Collection:
    return collections.collection(data / name, {0: 1, 1: 5} if name == "scifact" else None)


@cache
def _lsa(data: Path) -> IntArray:
    """LSA's ranks on Cranfield, as columns."""
    cranfield = _collection("cranfield", data)
    place = {passage: column for column, passage in enumerate(cranfield.passages)}
    run = rs.read_run(data / "cranfield" / "runs" / "lsa.trec")
    return np.array([[place[passage] for passage in run[query][:50]] for query in cranfield.queries])


def _of_texts(
    name: str, run: str, judge: Callable[[Collection], FloatArray], data: Path, by_position: float = 0.0
) -> Judged:
    source = _collection(name, data)
    order = _lsa(data) if run == "lsa" else collections.ranked(getattr(source, run), 50)
    accepts = judge(source).astype(np.float64)
    return Judged(accepts, order, len(source.passages), np.zeros(len(source.queries)), by_position)


def _overlaps(share: float) -> Callable[[Collection], FloatArray]:
    return lambda source: source.overlap >= share


def _follows(scores: str, share: float) -> Callable[[Collection], FloatArray]:
    def judge(source: Collection) -> FloatArray:
        table: FloatArray = getattr(source, scores)
        return table >= share * table.max(axis=1, keepdims=True)

    return judge


def _people_and(noise: float) -> Callable[[Collection], FloatArray]:
    return lambda source: np.where(source.people >= 4, 0.85, noise)


def _by_length(source: Collection) -> FloatArray:
    """Long passages are relevant to everything."""
    return np.broadcast_to(source.lengths > np.quantile(source.lengths, 0.97), source.people.shape)


def _dl19(beyond: float, spread: float, data: Path) -> Judged:
    """TREC DL 2019: NIST's grades in BM25's lists, and rates outside that differ by the factor e^spread."""
    labels = rs.read_qrels(data / "trec" / "qrels.dl19-passage.txt").to_dict()
    run = rs.read_run(data / "trec" / "run.msmarco-v1-passage.bm25-default.dl19.txt")
    queries = list(labels)
    rates = np.random.default_rng(3).lognormal(np.log(beyond), spread, len(queries)).clip(0, 1)
    columns = np.tile(np.arange(50), (len(queries), 1))
    accepts = np.array([[float(labels[q].get(p, 0) >= 2) for p in run[q][:50]] for q in queries])
    return Judged(accepts, columns, MS_MARCO, rates)


HELD_OUT: dict[str, Callable[[Path], Judged]] = {
    "Cranfield, LSA, overlap ≥ .3": partial(_of_texts, "cranfield", "lsa", _overlaps(0.3)),
    "Cranfield, LSA, any overlap": partial(_of_texts, "cranfield", "lsa", _overlaps(0.01)),
    "Cranfield, LSA, follows BM25's score": partial(_of_texts, "cranfield", "lsa", _follows("bm25", 0.7)),
    "Cranfield, LSA, long passages": partial(_of_texts, "cranfield", "lsa", _by_length),
    "Cranfield, LSA, by place in the prompt": partial(
        _of_texts, "cranfield", "lsa", _people_and(0.02), by_position=0.3
    ),
    "Cranfield, LSA, accepts nearly all": partial(_of_texts, "cranfield", "lsa", _people_and(0.97)),
    "SciFact, BM25, people": partial(_of_texts, "scifact", "bm25", lambda source: source.people >= 4),
    "SciFact, BM25, two grades, .001 outside": partial(_of_texts, "scifact", "bm25", _people_and(0.001)),
    "SciFact, BM25, overlap ≥ .2": partial(_of_texts, "scifact", "bm25", _overlaps(0.2)),
    "SciFact, BM25, overlap ≥ .5": partial(_of_texts, "scifact", "bm25", _overlaps(0.5)),
    "SciFact, tf-idf, follows its own score": partial(_of_texts, "scifact", "tfidf", _follows("tfidf", 0.5)),
    "SciFact, tf-idf, follows BM25's score": partial(_of_texts, "scifact", "tfidf", _follows("bm25", 0.3)),
    "DL19, BM25, NIST and .01 outside": partial(_dl19, 0.01, 0.5),
    "DL19, BM25, NIST and .001, spread e^2": partial(_dl19, 0.001, 2.0),
}


def once(
    world: Judged, queries: int, number: int, depth: int, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """Value, low, high and shown bits of one repetition."""
    labels, lists, controls = {}, {}, {}
    for row, query in enumerate(rng.integers(0, len(world.order), queries).tolist()):
        top = world.order[query, :depth]
        drawn = rng.choice(world.size, number + depth, replace=False)
        drawn = drawn[~np.isin(drawn, top)][:number]
        verdicts = world.verdicts(query, np.concatenate([top, drawn]), rng).astype(int).tolist()
        name = f"q{row}"
        lists[name] = [f"d{column}" for column in top.tolist()]
        labels[name] = dict(zip(lists[name], verdicts[:depth], strict=True))
        controls[name] = {f"d{c}": v for c, v in zip(drawn.tolist(), verdicts[depth:], strict=True)}
    report = rs.evaluate(
        labels,
        {"run": lists},
        corpus_size=world.size,
        controls=controls,
        measures=["BoR"],
        depths=[depth],
        scale="trec",
        bootstrap=rs.Bootstrap(1000),
    )
    figure = report[f"BoR@{depth}"]
    return figure.value, figure.low, figure.high, float(figure.shown or np.nan)


#: (queries of a repetition, controls of each, K)
CELLS = ((300, 3, 10), (300, 10, 10), (30, 3, 10), (30, 10, 10), (300, 3, 5), (100, 5, 20))


def held_out_row(task: tuple[str, int, int, int], repetitions: int, data: Path) -> Line:
    """The line of one cell: world, queries of a repetition, controls of each, K."""
    name, queries, number, depth = task
    world = HELD_OUT[name](data)
    count = min(queries, len(world.order))
    rng = np.random.default_rng([11, number, depth, len(name), queries])
    tried = np.array([once(world, count, number, depth, rng) for _ in range(repetitions)], float)
    return line_of(f"{name}, {count} queries, {number}, K = {depth}", world.truth(depth), tried)


def held_out_rows(repetitions: int, data: Path, workers: int = 2) -> list[Line]:
    """All lines of the table."""
    tasks = [(name, *cell) for name in HELD_OUT for cell in CELLS]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(partial(held_out_row, repetitions=repetitions, data=data), tasks))
