"""How often `golden draw --draw decide:N` stops with another verdict than all labels give, on Cranfield.

    python benchmarks/deciding.py DATA --worlds 40 --pair far --errors .3

A world: 60 queries of Cranfield at random, two runs, people whose grades are Cranfield's (1 where there is none), and
a judge who gives another grade within two steps in a share of the pairs, and a 3, 4 or 5 to a tenth of the pairs that
people graded 1. Pairs of runs: `far` (BM25 and the mean of BM25 and LSA), `near` (two vector runs), `equal` (BM25 and
the mean, each query given to the one or the other by a coin, so that neither is better in truth). Batches of 40 labels
are drawn and given without error until the verdict is settled, or 320 labels are there. `--random` draws all pairs at
random within their strata, to show what choosing buys.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import rag_selectivity as rs
from rag_selectivity.golden.deciding import Deciding, deciding, deciding_pairs
from rag_selectivity.render.blocks import align
from tests.six_runs import six_runs

QUERIES, DEPTH, BATCH, MOST, COMPLETIONS = 60, 12, 40, 320, 100
PAIRS = {"far": ("bm25", "hybrid"), "near": ("dense-small", "dense-large"), "equal": ("bm25", "hybrid")}
Grades = dict[str, dict[str, int]]


def world(data: Path, pair: str, error: float, seed: int) -> tuple[Grades, Grades, dict[str, dict[str, list[str]]]]:
    """People's grades, the judge's, and two runs."""
    random = np.random.default_rng([seed, 3])
    lists, qrels = six_runs(data), rs.read_qrels(data / "qrels.trec").to_dict()
    names = PAIRS[pair]
    queries = sorted(lists[names[0]])
    people: Grades = {}
    judge: Grades = {}
    runs: dict[str, dict[str, list[str]]] = {"one": {}, "other": {}}
    for i in random.permutation(len(queries))[:QUERIES].tolist():
        query = queries[i]
        tops = [list(lists[name][query])[:DEPTH] for name in names]
        if pair == "equal" and random.random() < 0.5:
            tops.reverse()
        runs["one"][query], runs["other"][query] = tops
        known = qrels.get(query, {})
        people[query] = {passage: max(1, known.get(passage, 1)) for passage in dict.fromkeys(tops[0] + tops[1])}
        judge[query] = {}
        for passage, grade in people[query].items():
            given = grade
            if random.random() < error:
                given = int(np.clip(grade + random.choice([-2, -1, 1, 2]), 1, 5))
            if grade == 1 and random.random() < 0.1:
                given = int(random.choice([3, 4, 5]))
            judge[query][passage] = given
    return people, judge, runs


def stopped(data: Path, pair: str, error: float, seed: int, *, at_random: bool) -> tuple[str, str | None, int, int]:
    """The verdict of all labels, the settled one or None, the labels given, and all labels."""
    people, judge, lists = world(data, pair, error, seed)
    runs = {name: rs.Run.from_dict(rows) for name, rows in lists.items()}
    labels = rs.Qrels.from_dict(judge)
    everything = {(query, passage): grade for query, row in people.items() for passage, grade in row.items()}
    truth = deciding(rs.Qrels.from_dict(people), runs, everything, completions=1, seed=seed).verdict
    given: dict[tuple[str, str], int] = {}
    sample: set[tuple[str, str]] = set()
    while True:
        found: Deciding = deciding(labels, runs, given, sample=sample, completions=COMPLETIONS, seed=seed)
        if found.settled or len(given) >= MOST:
            return truth, found.verdict if found.settled else None, len(given), len(everything)
        asked = replace(found, missing="at random") if at_random else found
        for each in deciding_pairs(asked, BATCH, seed=seed + len(given)):
            given[each.query, each.passage] = everything[each.query, each.passage]
            if not np.isnan(each.weight):
                sample.add((each.query, each.passage))


def main() -> None:
    """Print a row for the cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of Cranfield")
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument("--pair", choices=PAIRS, default="far")
    parser.add_argument("--errors", type=float, default=0.3)
    parser.add_argument("--random", action="store_true")
    chosen = parser.parse_args()
    found = [
        stopped(chosen.data, chosen.pair, chosen.errors, seed, at_random=chosen.random) for seed in range(chosen.worlds)
    ]
    settled = [each for each in found if each[1] is not None]
    wrong = [each for each in settled if each[0] != each[1]]
    turned = sum({each[0], each[1]} == {"better", "worse"} for each in wrong)
    told = sum(each[1] in ("better", "worse") for each in settled)
    row = [
        chosen.pair,
        f"{chosen.errors:g}",
        "at random" if chosen.random else "by score",
        str(len(found)),
        str(sum(each[0] != "none" for each in found)),
        str(len(settled)),
        str(told),
        str(len(wrong)),
        str(turned),
        f"{np.mean([each[2] for each in found]):.0f} of {np.mean([each[3] for each in found]):.0f}",
    ]
    header = [
        "runs",
        "judge's errors",
        "pairs",
        "worlds",
        "differ by all labels",
        "settled",
        "as different",
        "not as by all labels",
        "the other way round",
        "labels",
    ]
    print(align(header, [row]))


if __name__ == "__main__":
    main()
