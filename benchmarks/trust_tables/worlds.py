"""Collections with people's labels, judges and runs, on which calibrated figures are tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import rag_selectivity as rs
from rag_selectivity.judged.origins import Chosen, LabelOrigins

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
JUDGES = ("Olz-gpt4o", "RMITIR-llama38b", "TREMA-direct", "willia-umbrela1")
GRADE_MAP = "0:1,1:3,2:4,3:5"
MS_MARCO, CRANFIELD_SIZE = 8_841_823, 1400
#: The chance of each grade of a noisy judge (columns), by people's grade (rows).
NOISE = {
    "lenient": [[0.72, 0.14, 0.08, 0.04, 0.02], [0.3, 0.3, 0.2, 0.15, 0.05], [0.1, 0.2, 0.4, 0.2, 0.1]],
    "mild": [[0.9, 0.06, 0.02, 0.015, 0.005], [0.3, 0.4, 0.2, 0.08, 0.02], [0.1, 0.2, 0.5, 0.15, 0.05]],
    "strict": [[0.96, 0.03, 0.01, 0.0, 0.0], [0.6, 0.3, 0.08, 0.02, 0.0], [0.4, 0.3, 0.2, 0.08, 0.02]],
}
_OF_RELEVANT = {
    "lenient": [[0.05, 0.05, 0.2, 0.5, 0.2], [0.02, 0.03, 0.1, 0.3, 0.55]],
    "mild": [[0.05, 0.05, 0.2, 0.5, 0.2], [0.02, 0.03, 0.1, 0.3, 0.55]],
    "strict": [[0.2, 0.2, 0.3, 0.25, 0.05], [0.1, 0.1, 0.2, 0.3, 0.3]],
}


@dataclass(frozen=True)
class World:
    """People's labels of all pairs, a judge's of the same pairs, and runs."""

    human: rs.Qrels
    judge: rs.Qrels
    runs: Mapping[str, rs.Run]
    corpus_size: int


def llm_judge(judge: str) -> World:
    """LLMJudge: NIST's grades beside those of an LLM, and two runs made of people's grades and noise."""
    human = rs.read_qrels(SHARED / "judges" / "human.qrels").regraded(GRADE_MAP)
    graded = rs.read_qrels(SHARED / "judges" / f"{judge}.qrels").regraded(GRADE_MAP)
    return World(human, graded, {"one": made_run(human, 1.5, 1), "two": made_run(human, 3.0, 2)}, MS_MARCO)


def cranfield(noise: str, seed: int = 1, depth: int = 50, most_relevant: int | None = None) -> World:
    """Cranfield: the top 50 of BM25 and LSA, people's grades, and these made noisy.

    `most_relevant` leaves only so many relevant passages a query; the others get grade 2.
    """
    runs = {name: rs.read_run(SHARED / "cranfield" / "runs" / f"{name}.trec") for name in ("bm25", "lsa")}
    graded = rs.read_qrels(SHARED / "cranfield" / "qrels.trec").to_dict()
    labels = {}
    for query, grades in graded.items():
        pool = sorted({*grades, *(passage for run in runs.values() for passage in run[query][:depth])})
        labels[query] = {passage: grades.get(passage, 1) for passage in pool}
        if most_relevant is not None:
            best = sorted((p for p, g in grades.items() if g >= 4), key=lambda p: (-grades[p], p))
            labels[query] |= dict.fromkeys(best[most_relevant:], 2)
    human = rs.Qrels.from_dict(labels)
    return World(human, noisy(human, noise, seed), runs, CRANFIELD_SIZE)


def cranfield_tail(dice: bool, seed: int = 1, graded: int = 20, drawn: int = 10, last: int = 200) -> World:
    """BM25 on Cranfield, its top 20 graded and 10 of the ranks to 200; `human` are people's grades of all 200."""
    run = rs.read_run(SHARED / "cranfield" / "runs" / "bm25.trec")
    known = rs.read_qrels(SHARED / "cranfield" / "qrels.trec").to_dict()
    random = np.random.default_rng(seed)
    whole = {q: {p: known[q].get(p, 1) for p in run[q][:last]} for q in known}
    if dice:
        whole = {q: dict(zip(row, random.integers(1, 6, len(row)).tolist(), strict=True)) for q, row in whole.items()}
    records, chosen, size = [], [], []
    for query, row in whole.items():
        ranked = list(row)
        tail = random.choice(ranked[graded:], drawn, replace=False).tolist()
        for passages, how in ((ranked[:graded], Chosen.POOL), (tail, Chosen.TAIL)):
            records += [(query, passage, row[passage]) for passage in passages]
            chosen += [int(how)] * len(passages)
            size += [len(ranked) - graded if how is Chosen.TAIL else 0] * len(passages)
    labels = rs.Qrels.from_records(records, scale="utility")
    labels.origins = LabelOrigins(
        np.array(chosen, np.uint8),
        np.zeros(len(chosen), bool),
        labels.grade,
        np.array(size, np.int64),
        tail_ranks=(graded + 1, last),
    )
    return World(rs.Qrels.from_dict(whole), labels, {"bm25": run}, CRANFIELD_SIZE)


def made_run(human: rs.Qrels, noise: float, seed: int, depth: int = 50) -> rs.Run:
    """A run that orders each query's passages by people's grades and normal noise."""
    random = np.random.default_rng(seed)
    lists = {}
    for query in human:
        grades = human[query]
        scores = np.array(list(grades.values())) + random.normal(0, noise, len(grades))
        passages = list(grades)
        lists[query] = [passages[i] for i in np.argsort(-scores)[:depth].tolist()]
    return rs.Run.from_dict(lists)


def equal_runs(world: World, seed: int, favoured: float = 0.0) -> World:
    """The first run, and one with other passages of the same grades by people at every rank.

    The judge raises what only the second has by one grade, with the probability `favoured`.
    """
    random = np.random.default_rng(seed)
    first = next(iter(world.runs.values()))
    lists, only_second = {}, []
    for query in world.human:
        grades = world.human[query]
        by_grade: dict[int, list[str]] = {}
        for passage in random.permutation(list(grades)).tolist():
            by_grade.setdefault(grades[passage], []).append(passage)
        lists[query] = [by_grade[grades.get(passage, 1)].pop() for passage in first[query] if passage in grades]
        only_second += [(query, passage) for passage in set(lists[query][:10]) - set(first[query][:10])]
    raised = set(only_second)
    judge = {
        query: {
            p: min(5, g + int((query, p) in raised and random.random() < favoured))
            for p, g in world.judge[query].items()
        }
        for query in world.judge
    }
    judged_first = {query: [p for p in first[query] if p in world.human[query]] for query in world.human}
    runs = {"one": rs.Run.from_dict(judged_first), "two": rs.Run.from_dict(lists)}
    return World(world.human, rs.Qrels.from_dict(judge), runs, world.corpus_size)


def noisy(human: rs.Qrels, noise: str, seed: int) -> rs.Qrels:
    """People's grades, each replaced at random by the chances of a noisy judge."""
    chances = np.cumsum(np.array(NOISE[noise] + _OF_RELEVANT[noise]), axis=1)
    random = np.random.default_rng(seed)
    grades = (random.random(len(human.grade))[:, None] > chances[human.grade - 1, :-1]).sum(axis=1) + 1
    return rs.Qrels(human.queries, human.query, human.passages, grades.astype(np.int64))
