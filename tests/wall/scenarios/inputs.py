"""What else is given beside labels and runs: pools, N, chunks, token budgets, groups, weights, clusters, slices."""

import random

import rag_selectivity as rs
from tests.wall import keys, worlds

WORLD = worlds.small()
QUERIES = list(WORLD.labels)
EVIDENCE = {"measures": ["RA-nWG", "PROC", "%PROC", "Harm"], "depths": [5, 10]}


def _measured(world="small", **options):
    return keys.report(rs.evaluate(**{**WORLD.given, **options}), world)


def pool_of_all_runs():
    return _measured(pool=WORLD.pool, **EVIDENCE)


def pool_to_a_depth():
    return _measured(pool=WORLD.pool, pool_depth=15, **EVIDENCE)


def pool_of_each_run():
    return _measured(pool={"good": WORLD.pool, "bad": WORLD.runs["bad"]}, **EVIDENCE)


def pool_of_two_retrievers():
    """Several pools are fused, to 15 ranks of each."""
    return _measured(pool=[WORLD.runs["bad"], WORLD.pool], pool_depth=15, **EVIDENCE)


def pool_that_lacks_passages():
    pool = {query: row[::2] for query, row in WORLD.pool.items()}
    return _measured(pool=pool, **EVIDENCE)


def diagnosis():
    found = rs.evaluate(**WORLD.given, pool=WORLD.pool, **EVIDENCE)
    given = {(run, depth): found.diagnosis(run, depth) for run in WORLD.runs for depth in (5, 10)}
    return {k: v for (run, depth), each in given.items() for k, v in keys.diagnosis(each, f"{run}/{depth}").items()}


def diagnosis_of_cranfield():
    world = worlds.cranfield()
    pool = world["runs"]["bm25"]
    world["runs"] = {"lsa": world["runs"]["lsa"]}
    found = rs.evaluate(**world, pool=pool, pool_depth=50, **EVIDENCE)
    return keys.report(found, "cranfield") | keys.diagnosis(found.diagnosis("lsa", 10), "cranfield/lsa/10")


def size_of_each_query():
    draw = random.Random(3)
    sizes = {query: draw.choice([60, 200, 500, 5000]) for query in QUERIES}
    return _measured(
        corpus_size=sizes, measures=["BoR", "BoR_max", "BoR_opt", "lambda", "RandomSuccess"], depths=[5, 20]
    )


def size_of_each_query_below_depth():
    sizes = {query: 8 if place % 3 == 0 else 300 for place, query in enumerate(QUERIES)}
    labels = {query: dict(list(row.items())[:6]) for query, row in WORLD.labels.items()}
    runs = {name: {query: row[: sizes[query]] for query, row in run.items()} for name, run in WORLD.runs.items()}
    return _measured(qrels=labels, runs=runs, corpus_size=sizes, measures=["BoR", "RandomSuccess"], depths=[5, 10])


def corpus_that_checks_ids():
    return _measured(corpus_size=None, corpus=[f"d{each:03}" for each in range(490)], measures=["BoR"], depths=[5])


def without_corpus_size():
    return _measured(corpus_size=None, depths=[5])


def several_hits():
    names = [f"{name}(m={m})" for m in (1, 2, 3) for name in ("BoR", "Success", "BoR_max")]
    return _measured(measures=names, depths=[5, 20])


def chunks_of_documents():
    """Lists name a document once for each of its chunks."""
    draw = random.Random(5)
    chunks = {f"d{each:03}": draw.randint(1, 6) for each in range(500)}
    runs = {
        name: {q: [d for d in row for _ in range(min(2, chunks[d]))] for q, row in run.items()}
        for name, run in WORLD.runs.items()
    }
    measures = ["BoR", "BoR_recall", "RA-nWG", "Harm", "R"]
    return _measured(runs=runs, corpus_size=None, passages_of=chunks, measures=measures, depths=[5, 10])


def chunks_without_counts():
    runs = {"good": {query: [d for d in row for _ in range(2)] for query, row in WORLD.runs["good"].items()}}
    return _measured(runs=runs, measures=["BoR", "RA-nWG", "Harm", "Success"], depths=[5])


def token_budgets():
    draw = random.Random(5)
    tokens = {f"d{each:03}": draw.randint(40, 400) for each in range(500)}
    names = ["RA-nWG@800tok", "BoR@800tok", "Harm@800tok", "Success@2000tok", "BoR@2000tok", "Harm@50tok"]
    return _measured(tokens=tokens, measures=names)


def groups_of_copies():
    groups = {f"d{each:03}": f"g{each // 4}" for each in range(500)}
    names = ["RA-nWG(distinct=true)", "N-Recall4+(distinct=true)", "Precision4+(distinct=true)", "Redundancy"]
    return _measured(groups=groups, measures=names, depths=[5, 10])


def weights():
    given = {query: 1 + place % 5 for place, query in enumerate(QUERIES)}
    return _measured(weights=given, measures=["BoR", "RA-nWG", "Harm", "Success"], depths=[5])


def clusters():
    given = {query: place // 4 for place, query in enumerate(QUERIES)}
    return _measured(bootstrap=rs.Bootstrap(clusters=given), measures=["BoR", "RA-nWG", "Harm", "Success"], depths=[5])


def slices():
    by = {"language": {query: "de" if place % 3 else "en" for place, query in enumerate(QUERIES)}}
    return _measured(by=by, measures=["BoR", "RA-nWG", "Harm"], depths=[5])


def slices_by_relevant_passages():
    return _measured(by="R", measures=["BoR", "RA-nWG"], depths=[5])


def slices_with_weights():
    by = {"language": {query: "de" if place % 3 else "en" for place, query in enumerate(QUERIES)}}
    weights = {query: 1 + place % 5 for place, query in enumerate(QUERIES)}
    return _measured(by=by, weights=weights, measures=["BoR", "RA-nWG"], depths=[5])


def intervals_of_another_level():
    bootstrap = rs.Bootstrap(resamples=1000, seed=11, level=0.9)
    return _measured(bootstrap=bootstrap, measures=["BoR", "EF", "RA-nWG", "nDCG", "Precision4+"], depths=[1, 5])


def intervals_of_few_queries():
    found = {}
    for count in (2, 5, 12):
        labels = {query: WORLD.labels[query] for query in QUERIES[:count]}
        result = rs.evaluate(
            labels, WORLD.runs, corpus_size=500, scale="utility", measures=["BoR", "RA-nWG", "Success"], depths=[5]
        )
        found |= keys.report(result, f"{count} queries")
    return found


def intervals_of_cranfield():
    measures = ["BoR", "EF", "BoR_recall", "RA-nWG", "nDCG", "AP", "Harm", "Precision4+", "N-Recall5"]
    return keys.report(rs.evaluate(**worlds.cranfield(), measures=measures, depths=[3, 10]), "cranfield")
