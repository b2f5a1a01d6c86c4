"""Random controls with judges and collections on which no formula was adjusted.

    python -m benchmarks.trust_tables.held_out_controls [--repetitions 100] [--data FOLDER]

A judge here is a rule that reads the texts or the scores, or one of people's judgments; it grades the whole collection,
so that the truth is known. Each repetition draws queries with replacement, lets the judge grade their lists and new
controls, and asks `evaluate` for BoR. The truth is that of all queries of the collection.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rag_selectivity as rs
from benchmarks.trust_tables import texts
from benchmarks.trust_tables.worlds import MS_MARCO, SHARED
from rag_selectivity.measures.hypergeometric import random_success

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
        for _ in range(times):
            verdicts = rng.random(self.accepts.shape) < self._mean_accepts
            relevant = verdicts.sum(axis=1) + rng.binomial(self.size - verdicts.shape[1], self.beyond)
            success.append(np.take_along_axis(verdicts, self.order[:, :depth], axis=1).any(axis=1).mean())
            chance.append(random_success(self.size, relevant, np.full(len(relevant), depth))[0].mean())
        return float(np.log2(np.mean(success) / np.mean(chance)))

    @property
    def _mean_accepts(self) -> FloatArray:
        """Over random places in the prompt."""
        if not self.by_position:
            return self.accepts
        places = self.by_position * (0.5 - np.linspace(0, 1, 21))
        return np.mean([np.clip(self.accepts + each, 0, 1) for each in places], axis=0)


@cache
def _collection(name: str, data: Path) -> texts.Collection:
    return texts.collection(data / name, {0: 1, 1: 5} if name == "scifact" else None)


@cache
def _lsa(data: Path) -> IntArray:
    """LSA's ranks on Cranfield, as columns."""
    cranfield = _collection("cranfield", data)
    place = {passage: column for column, passage in enumerate(cranfield.passages)}
    run = rs.read_run(data / "cranfield" / "runs" / "lsa.trec")
    return np.array([[place[passage] for passage in run[query][:50]] for query in cranfield.queries])


def _of_texts(
    name: str, run: str, judge: Callable[[texts.Collection], FloatArray], data: Path, by_position: float = 0.0
) -> Judged:
    source = _collection(name, data)
    order = _lsa(data) if run == "lsa" else texts.ranked(getattr(source, run), 50)
    accepts = judge(source).astype(np.float64)
    return Judged(accepts, order, len(source.passages), np.zeros(len(source.queries)), by_position)


def _overlaps(share: float) -> Callable[[texts.Collection], FloatArray]:
    return lambda source: source.overlap >= share


def _follows(scores: str, share: float) -> Callable[[texts.Collection], FloatArray]:
    def judge(source: texts.Collection) -> FloatArray:
        table: FloatArray = getattr(source, scores)
        return table >= share * table.max(axis=1, keepdims=True)

    return judge


def _people_and(noise: float) -> Callable[[texts.Collection], FloatArray]:
    return lambda source: np.where(source.people >= 4, 0.85, noise)


def _by_length(source: texts.Collection) -> FloatArray:
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


#: (judge and run, how the world is made, whether a repetition takes all queries or only 30)
WORLDS: dict[str, Callable[[Path], Judged]] = {
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


@dataclass(frozen=True)
class Row:
    """One line: means over repetitions, and shares of them."""

    world: str
    queries: int
    controls: int
    depth: int
    truth: float
    value: float
    low: float
    high: float
    coverage: float
    shown: float
    shown_true: float
    none_relevant: float
    warned: float


def once(
    world: Judged, queries: int, number: int, depth: int, rng: np.random.Generator
) -> tuple[float, float, float, float, bool]:
    """value, low, high, shown, and whether a caveat says that the controls are concentrated."""
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
    warned = any(caveat.code == "concentrated-controls" for caveat in figure.caveats)
    return figure.value, figure.low, figure.high, float(figure.shown or np.nan), warned


def row(cell: tuple[str, int, int, int], repetitions: int, data: Path) -> Row:
    """The line of one cell: world, queries of a repetition, controls of each, K."""
    name, queries, number, depth = cell
    world = WORLDS[name](data)
    count = min(queries, len(world.order))
    truth = world.truth(depth)
    rng = np.random.default_rng([11, number, depth, len(name), queries])
    tried = np.array([once(world, count, number, depth, rng) for _ in range(repetitions)], float)
    value, low, high, shown, warned = tried.T
    return Row(
        name,
        count,
        number,
        depth,
        truth,
        float(np.nanmean(value)) if not np.isnan(value).all() else np.nan,
        float(low.mean()),
        float(high.mean()),
        float(((low <= truth) & (truth <= high)).mean()),
        float(shown.mean()),
        float((shown <= truth).mean()),
        float(np.isnan(value).mean()),
        float(warned.mean()),
    )


def cells(worlds: tuple[str, ...] = tuple(WORLDS)) -> Iterator[tuple[str, int, int, int]]:
    """(world, queries, controls, K): all queries at K = 10 with 3 and 10 controls; 30 queries; K = 5 and 20."""
    for world in worlds:
        for queries, number, depth in (
            (300, 3, 10),
            (300, 10, 10),
            (30, 3, 10),
            (30, 10, 10),
            (300, 3, 5),
            (100, 5, 20),
        ):
            yield world, queries, number, depth


def rows(repetitions: int, data: Path = SHARED, worlds: tuple[str, ...] = tuple(WORLDS), workers: int = 2) -> list[Row]:
    """All lines of the table."""
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(partial(row, repetitions=repetitions, data=data), cells(worlds)))


def table(repetitions: int = 100, data: Path = SHARED, workers: int = 2) -> str:
    """The table as text."""
    every = rows(repetitions, data, workers=workers)
    lines = [
        f"Random controls, held-out judges, {repetitions} repetitions",
        f"{'world':42} {'Q':>4} {'n':>3} {'K':>3} {'truth':>6} {'BoR':>6} {'interval':>16} {'cover':>6} {'shown':>6} "
        f"{'true':>5} {'X = 0':>6} {'caveat':>6}",
    ]
    lines += [
        f"{r.world:42} {r.queries:4} {r.controls:3} {r.depth:3} {r.truth:6.2f} {r.value:6.2f} "
        f"[{r.low:6.2f}, {r.high:6.2f}] {r.coverage:6.3f} {r.shown:6.2f} {r.shown_true:5.3f} "
        f"{r.none_relevant:6.2f} {r.warned:6.2f}"
        for r in every
    ]
    lines.append(
        f"coverage: mean {np.mean([r.coverage for r in every]):.3f}, least {min(r.coverage for r in every):.3f}; "
        f"shown is true: mean {np.mean([r.shown_true for r in every]):.3f}, "
        f"least {min(r.shown_true for r in every):.3f}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--data", type=Path, default=SHARED)
    given = parser.parse_args()
    print(table(given.repetitions, given.data))
