"""Calibrated figures with judges, runs and collections on which the method was not adjusted.

    python -m benchmarks.trust_tables.held_out [--times 8] [--sizes 100,200,400]

The judges are rules: they count a query's words in the passage, follow BM25's score, prefer the first ranks, know two
grades only, or are lenient on half of the queries. A run may be ranked by the judge itself, as a reranker by an LLM is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

import rag_selectivity as rs
from benchmarks.trust_tables import calibrated, texts, worlds
from benchmarks.trust_tables.worlds import GRADE_MAP, MS_MARCO, World

Grades = Mapping[str, Mapping[str, int]]
Lists = Mapping[str, list[str]]
#: A judge takes query, passage and the person's grade, and returns a grade.
Judge = Callable[[str, str, int], int]
_SCIFACT = {0: 1, 1: 5}


@cache
def source_of(name: str) -> texts.Collection:
    """Cranfield or SciFact with its texts."""
    return texts.collection(worlds.SHARED / name, _SCIFACT if name == "scifact" else None)


@cache
def _places(name: str) -> tuple[dict[str, int], dict[str, int]]:
    source = source_of(name)
    return {q: row for row, q in enumerate(source.queries)}, {p: column for column, p in enumerate(source.passages)}


@cache
def _ranked(name: str, scores: str, depth: int = 200) -> Lists:
    source = source_of(name)
    columns = texts.ranked(getattr(source, scores), depth).tolist()
    return {
        query: [source.passages[column] for column in row] for query, row in zip(source.queries, columns, strict=True)
    }


def lists_of(name: str, run: str) -> Lists:
    """A run, 200 deep: LSA or BM25 as given with Cranfield, or one by the texts."""
    if run in ("lsa", "given bm25"):
        given = rs.read_run(worlds.SHARED / "cranfield" / "runs" / f"{run.removeprefix('given ')}.trec")
        return {query: list(given[query]) for query in source_of("cranfield").queries}
    return _ranked(name, run)


# -- judges --------------------------------------------------------------------------------------------


def _by_table(name: str, table: NDArray[np.float64], edges: list[float]) -> Judge:
    """Grade 1 below the first edge, 5 from the last."""
    rows, columns = _places(name)
    grades = np.searchsorted(edges, table, side="right") + 1
    return lambda query, passage, _: int(grades[rows[query], columns[passage]])


def overlap(name: str) -> Judge:
    """The share of the query's words that the passage has, from a fifth to half."""
    return _by_table(name, source_of(name).overlap, [0.2, 0.3, 0.4, 0.5])


def follows_score(name: str) -> Judge:
    """BM25's score over the best of the query."""
    scores = source_of(name).bm25
    return _by_table(name, scores / scores.max(axis=1, keepdims=True), [0.3, 0.45, 0.6, 0.8])


def two_grades(seed: int = 3) -> Judge:
    """5 or 1: misses a tenth of what is relevant, and accepts .15 of the rest, .3 of what people graded 3."""
    random = np.random.default_rng(seed)
    accepts = {1: 0.1, 2: 0.15, 3: 0.3, 4: 0.85, 5: 0.95}
    return lambda query, passage, grade: 5 if random.random() < accepts[grade] else 1


def first_ranks(lists: Lists, seed: int = 3) -> Judge:
    """A grade more for the first five ranks of a run, often one less beyond rank 20."""
    random = np.random.default_rng(seed)
    rank = {(query, passage): place for query, row in lists.items() for place, passage in enumerate(row, 1)}

    def judge(query: str, passage: str, grade: int) -> int:
        place = rank.get((query, passage), 1000)
        change = int(random.random() < 0.7) if place <= 5 else -int(place > 20 and random.random() < 0.5)
        return int(np.clip(grade + change + (random.random() < 0.1), 1, 5))

    return judge


def lenient_on_half(seed: int = 3) -> Judge:
    """A grade or two more on half of the queries, people's grade on the others."""
    random = np.random.default_rng(seed)
    lenient: dict[str, bool] = {}

    def judge(query: str, passage: str, grade: int) -> int:
        if query not in lenient:
            lenient[query] = bool(random.random() < 0.5)
        return min(5, grade + int(random.integers(0, 3))) if lenient[query] else grade

    return judge


def graded(people: Grades, judge: Judge) -> rs.Qrels:
    """A judge's grades of what people graded."""
    return rs.Qrels.from_dict({q: {p: judge(q, p, g) for p, g in row.items()} for q, row in people.items()})


# -- worlds --------------------------------------------------------------------------------------------


def of_texts(name: str, runs: tuple[str, ...], make: Callable[[], Judge], queries: int = 1000) -> World:
    """Cranfield or SciFact: the top 50 of the runs, and all that people found relevant."""
    source = source_of(name)
    lists = {run: lists_of(name, run) for run in runs}
    chosen = source.queries[:: max(1, -(-len(source.queries) // queries))]
    people = {}
    for query in chosen:
        pool = sorted({*source.grades[query], *(p for each in lists.values() for p in each[query][:50])})
        people[query] = {passage: source.grades[query].get(passage, 1) for passage in pool}
    whole = {run: rs.Run.from_dict({q: each[q] for q in chosen}) for run, each in lists.items()}
    return World(rs.Qrels.from_dict(people), graded(people, make()), whole, len(source.passages))


@cache
def _dl19() -> tuple[rs.Qrels, Lists]:
    labels = rs.read_qrels(worlds.SHARED / "trec" / "qrels.dl19-passage.txt").regraded(GRADE_MAP)
    run = rs.read_run(worlds.SHARED / "trec" / "run.msmarco-v1-passage.bm25-default.dl19.txt")
    return labels, {query: list(run[query]) for query in labels.queries}


def dl19(make: Callable[[Lists], Judge]) -> World:
    """TREC DL 2019: BM25 as it is, and its judged passages in another order that knows nothing of the grades."""
    labels, bm25 = _dl19()
    random = np.random.default_rng(4)
    other = {}
    for query, row in bm25.items():
        judged = [passage for passage in row if passage in labels[query]]
        keys = np.arange(len(judged)) + random.normal(0, 10, len(judged))
        other[query] = [judged[i] for i in np.argsort(keys).tolist()]
    runs = {"bm25": rs.Run.from_dict(bm25), "judged only": rs.Run.from_dict(other)}
    return World(labels, graded(labels.to_dict(), make(bm25)), runs, MS_MARCO)


def _score_alone(lists: Lists) -> Judge:
    """Grades by BM25's rank, whatever the passage says."""
    rank = {(query, passage): place for query, row in lists.items() for place, passage in enumerate(row, 1)}
    edges = [4, 12, 50, 300]
    return lambda query, passage, _: 5 - int(np.searchsorted(edges, rank.get((query, passage), 1000)))


def reranked_by_judges(judge: str, other: str) -> World:
    """LLMJudge: one run ranked by the judge's own grades, one by another judge's; equal grades in random order."""
    base = worlds.llm_judge(judge)
    random = np.random.default_rng(6)
    runs = {}
    for name, ranking in (("by the judge", base.judge), ("by another judge", worlds.llm_judge(other).judge)):
        lists = {}
        for query in base.human:
            passages = random.permutation(list(base.human[query])).tolist()
            lists[query] = sorted(passages, key=lambda passage, row=ranking[query]: -row.get(passage, 0))
        runs[name] = rs.Run.from_dict(lists)
    return World(base.human, base.judge, runs, MS_MARCO)


BOTH = ("bm25", "lsa")
WORLDS: dict[str, Callable[[], World]] = {
    "Cranfield, overlap": lambda: of_texts("cranfield", BOTH, partial(overlap, "cranfield")),
    "Cranfield, follows BM25's score": lambda: of_texts("cranfield", BOTH, partial(follows_score, "cranfield")),
    "Cranfield, two grades": lambda: of_texts("cranfield", ("lsa", "tfidf"), two_grades),
    "Cranfield, overlap, 30 queries": lambda: of_texts("cranfield", BOTH, partial(overlap, "cranfield"), 30),
    "Cranfield, half lenient, 30 queries": lambda: of_texts("cranfield", ("lsa",), lenient_on_half, 30),
    "DL19, first ranks": lambda: dl19(first_ranks),
    "DL19, BM25's rank alone": lambda: dl19(_score_alone),
    "DL19, two grades": lambda: dl19(lambda _: two_grades()),
    "DL19, half lenient": lambda: dl19(lambda _: lenient_on_half()),
    "LLMJudge, runs by judges, Olz": lambda: reranked_by_judges("Olz-gpt4o", "RMITIR-llama38b"),
    "LLMJudge, runs by judges, TREMA": lambda: reranked_by_judges("TREMA-direct", "willia-umbrela1"),
    "SciFact (R = 1), overlap": lambda: of_texts("scifact", ("bm25", "tfidf"), partial(overlap, "scifact")),
    "SciFact (R = 1), two grades": lambda: of_texts("scifact", ("bm25", "tfidf"), two_grades),
}
#: Worlds that are tried at other K too.
OTHER_DEPTHS = {
    "Cranfield, overlap": (5, 20),
    "DL19, first ranks": (5, 20),
    "LLMJudge, runs by judges, Olz": (5, 20),
}
_FEW_RELEVANT = "SciFact"


@cache
def world_of(name: str) -> World:
    """A world by its name."""
    return WORLDS[name]()


@cache
def _joined(name: str) -> tuple[dict, dict]:
    return calibrated.joined_of(world_of(name))


def trial(cell: tuple[str, int, int, bool, int]) -> np.ndarray:
    """The rows of a cell: world, labels, K, whether half of the list labels settle queries, repetitions."""
    name, labels, depth, settling, times = cell
    world, joined = world_of(name), _joined(name)
    rows = [calibrated.figure_rows(world, joined, labels, seed, depth, settling) for seed in range(100, 100 + times)]
    return np.concatenate(rows)


def cells(times: int, sizes: Iterable[int]) -> list[tuple[str, int, int, bool, int]]:
    """Every cell of the table."""
    result = [(name, n, 10, False, times) for n in sizes for name in WORLDS]
    result += [(name, 200, depth, False, times) for name, depths in OTHER_DEPTHS.items() for depth in depths]
    return result + [(name, 200, 10, True, times) for name in WORLDS if name.startswith(_FEW_RELEVANT)]


def table(times: int = 8, sizes: Iterable[int] = (100, 200, 400), workers: int = 2) -> str:
    """A line for each cell, and the means over the worlds with more relevant passages, by the number of labels."""
    todo = cells(times, sizes)
    with ProcessPoolExecutor(workers) as pool:
        results = list(pool.map(trial, todo))
    lines, groups = [calibrated.heading()], {}
    for (name, n, depth, settling, _), rows in zip(todo, results, strict=True):
        title = f"{name}, n={n}" + (f", K={depth}" if depth != 10 else "") + (", settled" if settling else "")
        lines.append(calibrated.line(title, [rows]))
        kind = "R = 1" if name.startswith(_FEW_RELEVANT) else "other worlds"
        groups.setdefault(f"{kind}{', settled' if settling else ''}, n={n}", []).append(rows)
    lines += [calibrated.line(title, parts) for title, parts in groups.items()]
    return "\n".join(lines)


DIFFERENCES: tuple[tuple[str, Callable[[], World]], ...] = tuple(
    (name, partial(world_of, name))
    for name in ("Cranfield, overlap", "DL19, first ranks", "DL19, two grades", "LLMJudge, runs by judges, Olz")
)


def differences_table(times: int = 10) -> str:
    """Differences between the runs, and between equal runs."""
    return calibrated.differences_table(times, DIFFERENCES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=[100, 200, 400])
    given = parser.parse_args()
    print(table(given.times, given.sizes))
    print(differences_table(given.times))
