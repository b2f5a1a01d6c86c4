"""Policies and edges: what happens with ties, repeats, short lists, missing queries, unlabelled passages."""

from pathlib import Path

import rag_selectivity as rs
from tests.wall import keys, worlds

WORLD = worlds.small(queries=24, seed=11)
MEASURES = {"measures": ["Success", "P", "R", "AP", "RR", "nDCG", "Rprec"], "depths": [5, 10]}


def _edges():
    """Binary labels and two runs with ties, a repeat, a short, an empty and a missing list, a query without labels."""
    run = worlds.ranked(WORLD.runs["good"])
    for place, (query, row) in enumerate(run.items()):
        for rank, passage in enumerate(row):
            row[passage] = float(20 - rank // (1 + place % 4))  # groups of equal scores, the larger the later
        if place == 3:
            run[query] = dict(list(row.items())[:4])
    run["q04"] = {}
    del run["q05"]
    run["q99"] = {"d001": 1.0}
    return WORLD.binary, run


def _measured(world, labels=None, **options):
    known, run = _edges()
    found = rs.evaluate(known if labels is None else labels, {"run": run}, **{"bootstrap": None, **MEASURES, **options})
    return keys.report(found, world)


def default():
    return _measured("default")


def trec_eval():
    return _measured("trec_eval", policy="trec_eval")


def trec_eval_with_negative_grades():
    labels = {query: {d: grade - 3 for d, grade in row.items()} for query, row in WORLD.labels.items()}
    return _measured("negative", labels, policy="trec_eval")


def ties_as_given():
    return _measured("as_given", ties="as_given")


def order_by_rank():
    path = worlds.trec("run.trec", WORLD.runs["good"])
    lines = [line.split() for line in Path(path).read_text(encoding="utf-8").splitlines()]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{q} Q0 {d} {rank} {int(rank) % 3} run\n" for q, _, d, rank, _, _ in lines)
    found = {
        order: rs.evaluate(WORLD.binary, {"run": path}, order=order, bootstrap=None, **MEASURES)
        for order in ("rank", "score")
    }
    return {key: value for order, result in found.items() for key, value in keys.report(result, order).items()}


def float32_scores():
    """Two scores that differ as float64 and are equal as float32."""
    run = {"q": {"d1": 1.0, "d2": 1.0 + 1e-9}}
    found = {}
    for scores in ("float64", "float32"):
        result = rs.evaluate({"q": {"d1": 1}}, {"run": run}, scores=scores, measures=["RR"], bootstrap=None)
        found |= keys.report(result, scores)
    return found


def missing_query_skipped():
    return _measured("skip", missing_query="skip")


def unjudged_worst():
    return _measured("worst", WORLD.labels, scale="utility", unjudged="worst", measures=["Harm", "RA-nWG", "Judged"])


def unjudged_condensed():
    return _measured(
        "condense", WORLD.labels, scale="utility", unjudged="condense", measures=["Harm", "RA-nWG", "nDCG"]
    )


def short_lists_returned():
    measures = ["BoR", "P", "Harm", "T"]
    return _measured(
        "returned", WORLD.labels, scale="utility", corpus_size=500, short_lists="returned", measures=measures
    )


def short_lists_requested():
    measures = ["BoR", "P", "Harm", "T"]
    return _measured("requested", WORLD.labels, scale="utility", corpus_size=500, measures=measures)


def _repeats(**options):
    """A run in which each list of three repeats a passage: in all lists, or in a few."""
    found = {}
    for name, every in (("all", 1), ("few", 12)):
        run = {q: row[:2] + row[:8] if n % every == 0 else row for n, (q, row) in enumerate(WORLD.runs["good"].items())}
        measures = ["BoR", "RandomSuccess", "Success", "Harm", "RA-nWG", "nDCG", "AP"]
        options = {
            "scale": "utility",
            "corpus_size": 500,
            "measures": measures,
            "depths": [5],
            "bootstrap": None,
            **options,
        }
        found |= keys.report(rs.evaluate(WORLD.labels, {"run": run}, **options), name)
    return found


def repeats():
    return _repeats()


def repeats_counted_once():
    return _repeats(duplicates="count_once")


def repeats_dropped():
    return _repeats(duplicates="drop")


def query_without_relevant():
    labels = {**WORLD.binary, "q00": {"d001": 0}, "q01": {}}
    return _measured("skip", labels, measures=["BoR", "Success", "R", "AP"], corpus_size=500)


def one_query_one_passage():
    found = rs.evaluate(
        {"q": {"d": 1}}, {"run": {"q": ["d"]}}, corpus_size=8, measures=["BoR", "AP"], depths=[1, 2, 4, 8]
    )
    return keys.report(found, "one")


def no_success_at_all():
    run = {query: ["x1", "x2", row[0]] for query, row in WORLD.runs["good"].items()}
    found = rs.evaluate(WORLD.binary, {"none": run}, corpus_size=500, measures=["BoR", "EF", "BoR_recall"], depths=[2])
    return keys.report(found, "none")


def ids_in_another_form():
    labels = {query.upper(): {f" {d}": g for d, g in row.items()} for query, row in WORLD.binary.items()}
    return _measured("forms", labels, ids="strip,casefold", measures=["P", "AP"])


def labels_that_partly_match():
    labels = {
        q: {f"x{d}" if n % 2 else d: g for n, (d, g) in enumerate(row.items())} for q, row in WORLD.binary.items()
    }
    return _measured("partly", labels, measures=["P", "Judged"])


def grade_maps():
    labels = {q: {d: max(g - 2, 0) for d, g in row.items()} for q, row in WORLD.labels.items()}
    return _measured("mapped", labels, grade_map="0:1,1:3,2:4,3:5", measures=["RA-nWG", "Harm", "Precision4+"])
