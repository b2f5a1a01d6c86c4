"""What small calls cost: 225 queries given as dicts, beside pytrec_eval in the same process; and one query.

    python -m benchmarks.small

Rounds of both take turns and count the processor's time, which other programs disturb less than the clock; a ratio is
the median of those of the rounds. Lists are in the order of their scores, or shuffled; queries have few labels, as in
Cranfield, or many.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from benchmarks.speed_row import Row
from rag_selectivity import evaluate
from rag_selectivity.single import QueryScorer

QUERIES, PASSAGES, CORPUS, ROUNDS = 225, 100, 10_000, 41
DEPTHS = [5, 10, 20]
MEASURES = ["Success", "P", "R", "nDCG"]
#: Of one query; the peer has six as well.
ONE_QUERY = [f"{name}@10" for name in ("RA-nWG", "BoR", "Harm", "Success", "Precision4+", "PROC")]
PEERS_OF_ONE = {"success.10", "P.10", "recall.10", "ndcg_cut.10", "map_cut.10", "recip_rank"}
PEERS = {f"{name}.5,10,20" for name in ("success", "P", "recall", "ndcg_cut")}


def dicts(labels: int, *, shuffled: bool = False) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Labels and a run; most labels are of passages near the top."""
    rng = np.random.default_rng(7)
    qrels, run = {}, {}
    for i in range(QUERIES):
        ids = [f"doc{number}" for number in rng.permutation(CORPUS)[: 3 * PASSAGES].tolist()]
        scores = np.sort(rng.random(PASSAGES))[::-1]
        order = rng.permutation(PASSAGES) if shuffled else np.arange(PASSAGES)
        run[f"q{i}"] = {ids[place]: float(scores[place]) for place in order.tolist()}
        found = labels * 6 // 10
        near_top = rng.permutation(min(PASSAGES, 2 * found))[:found].tolist()
        judged = [*near_top, *range(PASSAGES, PASSAGES + labels - found)]
        qrels[f"q{i}"] = {ids[place]: int(rng.random() < 0.4) for place in judged}
    return qrels, run


def in_turns(*calls: Callable[[], object]) -> list[list[float]]:
    """The seconds of each call in each round."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(ROUNDS):
        for call, found in zip(calls, times, strict=True):
            gc.collect()
            start = time.process_time()
            call()
            found.append(time.process_time() - start)
    return times


def row_of_dicts(labels: int, *, shuffled: bool = False) -> Row:
    qrels, run = dicts(labels, shuffled=shuffled)

    def ours() -> object:
        return evaluate(qrels, run, measures=MEASURES, depths=DEPTHS, bootstrap=None)

    order = "shuffled" if shuffled else "in order"
    work = f"dicts, {QUERIES} × {PASSAGES}, {order}, {labels} labels a query, no intervals"
    try:
        from pytrec_eval import RelevanceEvaluator
    except ImportError:
        (mine,) = in_turns(ours)
        return Row(work, "≤ pytrec_eval", f"{statistics.median(mine) * 1e3:.1f} ms", "pytrec_eval is missing", None)

    mine, theirs = in_turns(ours, lambda: RelevanceEvaluator(qrels, PEERS).evaluate(run))
    ratio = statistics.median(one / other for one, other in zip(mine, theirs, strict=True))
    return Row(
        work,
        "≤ pytrec_eval",
        f"{statistics.median(mine) * 1e3:.1f} ms, {ratio:.2f} ×",
        f"pytrec_eval {statistics.median(theirs) * 1e3:.1f} ms",
        ratio <= 1,
    )


def row_of_intervals() -> Row:
    qrels, run = dicts(8)
    with_intervals, without = in_turns(
        lambda: evaluate(qrels, run, measures=MEASURES, depths=DEPTHS),
        lambda: evaluate(qrels, run, measures=MEASURES, depths=DEPTHS, bootstrap=None),
    )
    measured = statistics.median(with_intervals) * 1e3
    rest = statistics.median(without) * 1e3
    return Row(
        f"dicts, {QUERIES} × {PASSAGES}, with the default intervals",
        "≤ 60 ms",
        f"{measured:.1f} ms, {measured - rest:.1f} of it for intervals",
        f"the same without intervals {rest:.1f} ms",
        measured <= 60,
    )


def row_of_one_query() -> Row:
    rng = np.random.default_rng(7)
    labels = {f"q{i}": {f"d{j}": int(rng.integers(1, 6)) for j in rng.permutation(500)[:30]} for i in range(QUERIES)}
    lists = {query: [f"d{j}" for j in rng.permutation(500)[:20]] for query in labels}
    scored = {query: {passage: float(-i) for i, passage in enumerate(ids)} for query, ids in lists.items()}
    scorer = QueryScorer(*ONE_QUERY, labels=labels, scale="utility", corpus_size=CORPUS)

    def each(call: Callable[[str], object]) -> object:
        return [call(query) for query in labels]

    def peer(query: str) -> object:
        return RelevanceEvaluator({query: labels[query]}, PEERS_OF_ONE).evaluate({query: scored[query]})

    calls = [partial(each, lambda query: scorer.figures(lists[query], query))]
    with contextlib.suppress(ImportError):
        from pytrec_eval import RelevanceEvaluator

        calls.append(partial(each, peer))
    micros, *theirs = (statistics.median(times) / QUERIES * 1e6 for times in in_turns(*calls))
    beside = [f"pytrec_eval, six measures of one query {other:.0f} µs: {micros / other:.1f} × it" for other in theirs]
    work = "one query, six measures at 10 with details, join included"
    return Row(work, "≤ 1 ms", f"{micros:.0f} µs", *(beside or ["pytrec_eval is missing"]), micros <= 1000)


def rows() -> Iterable[Row]:
    warnings.simplefilter("ignore")
    yield row_of_dicts(8)
    yield row_of_dicts(8, shuffled=True)
    yield row_of_dicts(30)
    yield row_of_dicts(100)
    yield row_of_intervals()
    yield row_of_one_query()


if __name__ == "__main__":
    for row in rows():
        reached = {True: "reached", False: "not reached", None: "no peer"}[row.reached]
        print(f"{row.work}\n  {row.measured}; {row.peer}; to reach: {row.reach} ({reached})")
