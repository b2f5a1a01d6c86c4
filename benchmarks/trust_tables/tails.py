"""A tail of the pool: are figures down to its last rank covered, without and with people's labels?

    python -m benchmarks.trust_tables.tails [--times 10]

A judge grades the top 20 of a run and 10 random passages of the ranks 21 to 200. Without people, the truth is the
figure of the judge's grades of all 200 ranks. With 200 labels by people, it is that of people's grades of all 200.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

import rag_selectivity as rs
from benchmarks.trust_tables import held_out, worlds
from rag_selectivity.calibrated.figures import Sampling, calibrated_figures
from rag_selectivity.calibrated.people import calibration_ground
from rag_selectivity.grading.designs import calibrate_draw
from rag_selectivity.judged.origins import Chosen, LabelOrigins
from rag_selectivity.measures.names import parse_measure

GRADED, DRAWN, LAST = 20, 10, 200
PLAN = [(parse_measure(name), np.array([10])) for name in ("RA-nWG", "BoR")]
Labels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class TailWorld:
    """A run's first 200 ranks, graded by people and by a judge."""

    people: Labels
    judge: Labels
    run: rs.Run
    corpus_size: int

    def labels(self, seed: int) -> rs.Qrels:
        """What the judge graded: the first ranks, and a new draw of the tail."""
        random = np.random.default_rng(seed)
        records, chosen, size = [], [], []
        for query, row in self.judge.items():
            ranked = list(row)
            below = len(ranked) - GRADED
            tail = random.choice(ranked[GRADED:], min(DRAWN, below), replace=False).tolist()
            for passages, how in ((ranked[:GRADED], Chosen.POOL), (tail, Chosen.TAIL)):
                records += [(query, passage, row[passage]) for passage in passages]
                chosen += [int(how)] * len(passages)
                size += [below if how is Chosen.TAIL else 0] * len(passages)
        labels = rs.Qrels.from_records(records, scale="utility")
        labels.origins = LabelOrigins(
            np.array(chosen, np.uint8),
            np.zeros(len(chosen), bool),
            labels.grade,
            np.array(size, np.int64),
            tail_ranks=(GRADED + 1, LAST),
        )
        return labels

    def joined(self, labels: rs.Qrels) -> rs.JudgedRun:
        """The run with labels."""
        return rs.join(labels, self.run, corpus_size=self.corpus_size, scale="utility", ids="exact")


def _world(
    lists: Mapping[str, list[str]], grades: Labels, judge: Callable[[Labels], Labels], corpus_size: int
) -> TailWorld:
    people = {q: {p: grades[q].get(p, 1) for p in lists[q][:LAST]} for q in grades}
    run = rs.Run.from_dict({q: lists[q][:LAST] for q in people})
    return TailWorld(people, judge(people), run, corpus_size)


def _of_texts(name: str, run: str, judge: Callable[[Labels], Labels]) -> TailWorld:
    source = held_out.source_of(name)
    return _world(held_out.lists_of(name, run), source.grades, judge, len(source.passages))


def _made(noise: str) -> Callable[[Labels], Labels]:
    return lambda people: worlds.noisy(rs.Qrels.from_dict(people), noise, 1).to_dict()


def _rule(make: Callable[[], held_out.Judge]) -> Callable[[Labels], Labels]:
    return lambda people: held_out.graded(people, make()).to_dict()


def _dice(people: Labels) -> Labels:
    random = np.random.default_rng(1)
    return {q: dict(zip(row, random.integers(1, 6, len(row)).tolist(), strict=True)) for q, row in people.items()}


def _honest(people: Labels) -> Labels:
    return people


#: The first six were at hand when the method was made; the others were not.
WORLDS: dict[str, Callable[[], TailWorld]] = {
    "Cranfield, BM25, people": lambda: _of_texts("cranfield", "given bm25", _honest),
    "Cranfield, BM25, dice": lambda: _of_texts("cranfield", "given bm25", _dice),
    "Cranfield, BM25, lenient": lambda: _of_texts("cranfield", "given bm25", _made("lenient")),
    "Cranfield, BM25, mild": lambda: _of_texts("cranfield", "given bm25", _made("mild")),
    "Cranfield, BM25, strict": lambda: _of_texts("cranfield", "given bm25", _made("strict")),
    "Cranfield, LSA, overlap": lambda: _of_texts("cranfield", "lsa", _rule(partial(held_out.overlap, "cranfield"))),
    "Cranfield, LSA, follows BM25": lambda: _of_texts(
        "cranfield", "lsa", _rule(partial(held_out.follows_score, "cranfield"))
    ),
    "Cranfield, LSA, two grades": lambda: _of_texts("cranfield", "lsa", _rule(held_out.two_grades)),
    "Cranfield, tf-idf, half lenient": lambda: _of_texts("cranfield", "tfidf", _rule(held_out.lenient_on_half)),
    "SciFact, BM25, overlap": lambda: _of_texts("scifact", "bm25", _rule(partial(held_out.overlap, "scifact"))),
    "SciFact, tf-idf, two grades": lambda: _of_texts("scifact", "tfidf", _rule(held_out.two_grades)),
}


@cache
def world_of(name: str) -> TailWorld:
    """A world by its name."""
    return WORLDS[name]()


def trial(cell: tuple[str, int, int]) -> np.ndarray:
    """float64[rows, 6]: measure, truth, as labelled, calibrated, covered by completions, covered as printed."""
    name, people, times = cell
    world = world_of(name)
    whole = world.joined(rs.Qrels.from_dict(world.people if people else world.judge))
    rows = []
    for seed in range(times):
        labels = world.labels(seed)
        drawn: dict[str, dict[str, int]] = {}
        if people:
            for pair in calibrate_draw(labels, {"run": world.run}, people, seed=seed):
                drawn.setdefault(pair.query, {})[pair.passage] = world.people[pair.query][pair.passage]
        judged = world.joined(labels)
        ground, _ = calibration_ground(labels, drawn or None)
        figures = calibrated_figures(ground, {"run": judged}, PLAN, Sampling(seed=seed))["run"]
        for place, (measure, at) in enumerate(PLAN):
            figure = figures[str(measure @ 10)]
            true, as_judged = (float(measure.outcome(join, at).value()[0]) for join in (whole, judged))
            covered = np.nan if figure.reason else figure.fixed_low <= true <= figure.fixed_high
            printed = np.nan if figure.reason else figure.low <= true <= figure.high
            rows.append((place, true, as_judged, figure.value, covered, printed))
    return np.array(rows, float)


def table(times: int = 10, people: int = 200, workers: int = 2, names: tuple[str, ...] = tuple(WORLDS)) -> str:
    """RA-nWG and BoR at K = 10: truth, as labelled, completed, error, coverage; without and with labels by people."""
    todo = [(name, n, times) for n in (0, people) for name in names]
    with ProcessPoolExecutor(workers) as pool:
        results = list(pool.map(trial, todo))
    lines = [
        f"{'RA-nWG/BoR':48}{'truth':>12}{'as labelled':>12}{'completed':>12}{'error':>12}{'cover':>12}{'printed':>12}"
    ]
    for (name, n, _), rows in zip(todo, results, strict=True):
        parts = [rows[rows[:, 0] == place] for place in (0, 1)]
        figures = [(part[:, 1], part[:, 2], part[:, 3], np.abs(part[:, 3] - part[:, 1])) for part in parts]
        cells = [f"{np.nanmean(one):.3f}/{np.nanmean(two):.2f}" for one, two in zip(*figures, strict=True)]
        cells += [f"{np.nanmean(parts[0][:, i]):.2f}/{np.nanmean(parts[1][:, i]):.2f}" for i in (4, 5)]
        title = f"{name}, {f'{n} by people' if n else 'the judge alone'}"
        undefined = int(np.isnan(rows[:, 4]).sum())
        lines.append(
            f"{title:48}"
            + "".join(f"{cell:>12}" for cell in cells)
            + (f"   undefined: {undefined}" if undefined else "")
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--people", type=int, default=200)
    given = parser.parse_args()
    print(table(given.times, given.people))
