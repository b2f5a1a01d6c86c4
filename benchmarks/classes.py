"""Labels by class at the size of 20 Newsgroups: 11,314 queries among 11,314 passages of 20 classes, 6.4 million pairs.

    python -m benchmarks.classes [--rounds 3]

The lists are made by the script: 100 passages for each query, .7 of them or more of its class. Each way runs in a
process of its own: with one label a query (what the run itself costs), with `Qrels.from_classes`, with a dict of all
pairs, and pytrec_eval with the same dict. The first is subtracted from the second and the third.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.speed_row import Row

SIZE, CLASSES, DEPTH, SAME, SEED = 11_314, 20, 100, 0.7, 3
MEASURES = ["Success", "BoR", "BoR_max", "P", "R", "AP", "nDCG"]
MOST_SECONDS, MOST_MEGABYTES = 2.0, 200.0
WAYS = ("one label", "classes", "pairs", "pytrec_eval")


def made() -> tuple[dict[str, int], dict[str, list[str]]]:
    """{id: class} and {query: list}."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    # Sizes as uneven as the data set's, whose mean class of a document has 571 documents.
    of = rng.choice(CLASSES, SIZE, p=(weights := np.linspace(0.9, 1.1, CLASSES)) / weights.sum())
    members = [np.flatnonzero(of == each) for each in range(CLASSES)]
    lists = {}
    for query, class_ in enumerate(of.tolist()):
        same = rng.choice(members[class_], int(SAME * DEPTH), replace=False)
        listed = rng.permutation(np.concatenate([same, rng.integers(0, SIZE, DEPTH)]))
        lists[f"doc{query:05d}"] = [f"doc{i:05d}" for i in dict.fromkeys(listed.tolist())][:DEPTH]
    return {f"doc{i:05d}": class_ for i, class_ in enumerate(of.tolist())}, lists


def child(way: str) -> dict[str, float]:
    """What a process of its own does, and what it used."""
    classes, lists = made()
    figures: dict[str, float]
    if way == "pytrec_eval":
        import pytrec_eval

        run = {query: {p: float(DEPTH - i) for i, p in enumerate(ids)} for query, ids in lists.items()}
        found = pytrec_eval.RelevanceEvaluator(all_pairs(classes), {"map", "P.10", "ndcg_cut.10"}).evaluate(run)
        figures = {"AP": statistics.fmean(cell["map"] for cell in found.values())}
    else:
        import rag_selectivity as rs

        labels: Any = {query: {query: 1} for query in lists}
        if way == "classes":
            labels = rs.Qrels.from_classes(classes, classes)
        elif way == "pairs":
            labels = all_pairs(classes)
        report = rs.evaluate(
            labels, {"run": lists}, corpus_size=SIZE, measures=MEASURES, depths=[10, 100], ids="exact", bootstrap=None
        )
        figures = {"AP": report["AP"].value}
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {**figures, "cpu": used.ru_utime + used.ru_stime, "megabytes": used.ru_maxrss / 1000}


def all_pairs(classes: dict[str, int]) -> dict[str, dict[str, int]]:
    """The same labels written out."""
    members: dict[int, list[str]] = {}
    for id_, class_ in classes.items():
        members.setdefault(class_, []).append(id_)
    return {query: dict.fromkeys(members[class_], 1) for query, class_ in classes.items()}


def measured(rounds: int) -> dict[str, dict[str, float]]:
    """The least that each way used, and its figure; the ways take turns."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            words = [sys.executable, "-m", "benchmarks.classes", "--child", way]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{way} failed: {done.stderr.strip()}")
            found[way].append(json.loads(done.stdout.splitlines()[-1]))
    return {way: {key: min(each[key] for each in results) for key in results[0]} for way, results in found.items()}


def rows(rounds: int = 3) -> Iterator[Row]:
    found = measured(rounds)
    one, ours, pairs, peer = (found[way] for way in WAYS)
    if not max(abs(ours["AP"] - pairs["AP"]), abs(ours["AP"] - peer["AP"])) < 1e-9:
        raise RuntimeError(f"AP differs: {ours['AP']}, {pairs['AP']}, {peer['AP']}")
    seconds, megabytes = (ours[key] - one[key] for key in ("cpu", "megabytes"))
    yield Row(
        "labels by class: 11,314 queries, 6.4 million pairs, beyond the run itself",
        f"≤ {MOST_SECONDS:g} s of CPU, ≤ {MOST_MEGABYTES:g} MB",
        f"{seconds:.2f} s, {megabytes:.0f} MB",
        f"a dict of pairs {pairs['cpu'] - one['cpu']:.1f} s, {pairs['megabytes'] - one['megabytes']:,.0f} MB; "
        f"whole processes: {ours['cpu']:.1f} s and {ours['megabytes']:,.0f} MB, "
        f"pytrec_eval {peer['cpu']:.1f} s and {peer['megabytes']:,.0f} MB",
        seconds <= MOST_SECONDS and megabytes <= MOST_MEGABYTES,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", choices=WAYS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.child)))
    else:
        for row in rows(given.rounds):
            print(f"{row.work}: {row.measured} ({row.reach}); {row.peer}")
