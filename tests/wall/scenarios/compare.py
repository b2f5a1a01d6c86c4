"""Differences between runs, with their tests, and gates."""

import rag_selectivity as rs
from tests.wall import keys, worlds

WORLD = worlds.small()
QUERIES = list(WORLD.labels)


def _third():
    """A third run: the good one with its first three places in reverse."""
    return {**WORLD.runs, "reversed": {q: [*row[2::-1], *row[3:]] for q, row in WORLD.runs["good"].items()}}


def _compared(world="small", **options):
    return keys.comparison(rs.compare(**{**WORLD.given, "baseline": "bad", **options}), world)


def rates():
    return _compared(measures=["Success", "Success(m=2)", "Success(rel=5)"], depths=[1, 3, 5])


def means():
    return _compared(measures=["RA-nWG", "Harm", "nDCG", "Precision4+"], depths=[3, 10])


def bits():
    return _compared(measures=["BoR", "BoR(m=2)", "EF"], depths=[1, 5])


def three_runs_with_holm():
    return _compared(runs=_third(), measures=["BoR", "RA-nWG", "Harm", "AP"], depths=[3])


def unpaired():
    runs = {
        "good": {q: row for n, (q, row) in enumerate(WORLD.runs["good"].items()) if n % 2},
        "bad": {q: row for n, (q, row) in enumerate(WORLD.runs["bad"].items()) if n % 2 == 0},
    }
    return _compared(runs=runs, paired=False, measures=["BoR", "RA-nWG", "Harm"], depths=[3])


def cranfield():
    measures = ["BoR", "Success", "RA-nWG", "Harm", "nDCG", "AP"]
    return keys.comparison(rs.compare(**worlds.cranfield(), measures=measures, depths=[5, 10]), "cranfield")


def equal_runs():
    return _compared(runs={"bad": WORLD.runs["bad"], "same": WORLD.runs["bad"]}, measures=["BoR", "RA-nWG"], depths=[5])


def few_queries():
    labels = {query: WORLD.labels[query] for query in QUERIES[:6]}
    return _compared(qrels=labels, measures=["BoR", "RA-nWG", "Harm"], depths=[5])


def slices():
    by = {"language": {query: "de" if place % 3 else "en" for place, query in enumerate(QUERIES)}}
    return _compared(by=by, measures=["BoR", "RA-nWG"], depths=[5])


def weighted_slices_at_token_budgets():
    by = {"language": {query: "de" if place % 3 else "en" for place, query in enumerate(QUERIES)}}
    tokens = {f"d{each:03}": 50 + each % 300 for each in range(500)}
    weights = {q: 1 + n % 5 for n, q in enumerate(QUERIES)}
    return _compared(by=by, tokens=tokens, weights=weights, measures=["RA-nWG@800tok", "BoR@800tok"])


def weights():
    return _compared(weights={q: 1 + n % 5 for n, q in enumerate(QUERIES)}, measures=["BoR", "RA-nWG"], depths=[5])


def clusters():
    bootstrap = rs.Bootstrap(clusters={query: place // 4 for place, query in enumerate(QUERIES)})
    return _compared(bootstrap=bootstrap, measures=["BoR", "RA-nWG", "Success"], depths=[5])


def token_budgets():
    tokens = {f"d{each:03}": 50 + each % 300 for each in range(500)}
    return _compared(tokens=tokens, measures=["RA-nWG@800tok", "Success@800tok", "BoR@800tok"])


def _evaluate(*words, run="good", expected=0):
    """Exit code of `evaluate` of a run with gates."""
    qrels, path = worlds.trec("qrels.trec", WORLD.labels), worlds.trec("search.trec", WORLD.runs[run])
    given = [qrels, path, "--scale", "utility", "--corpus-size", 500, "--depths", 5]
    done = worlds.command("evaluate", *given, "--measure", "RA-nWG", "--measure", "BoR", "--measure", "Harm", *words)
    if done.code > 1:
        raise RuntimeError(done.err)
    return done.code


def gates():
    """Exit codes: 1 where the condition holds."""
    conditions = ["BoR@5 < 3", "BoR@5 < 4.2", "low(BoR@5) < 4", "RA-nWG@5 < .9", "high(Harm@5) > .2", "Harm@5 > .9"]
    return {condition: _evaluate("--fail-if", condition) for condition in conditions}


def gates_against_a_report():
    """Exit codes of limits on a drop from the report of the better run."""
    _evaluate("--output", "main.json")
    limits = ["RA-nWG@5:0.02", "RA-nWG@5:0.9", "low(RA-nWG@5):0.02", "BoR@5:0.1", "Harm@5:0.01", "Harm@5:0.9"]
    runs = {"worse": "bad", "equal": "good"}
    return {
        f"{name}/{limit}": _evaluate("--against", "main.json", "--fail-if", _drop(limit), run=run)
        for name, run in runs.items()
        for limit in limits
    }


def _drop(limit):
    figure, _, most = limit.partition(":")
    return f"high(drop({figure[4:-1]})) > {most}" if figure.startswith("low(") else f"drop({figure}) > {most}"


def gates_on_drops_and_caveats():
    """Exit codes of expressions on the ends of a drop, and on caveats of one figure or of all."""
    _evaluate("--output", "main.json")
    drops = ["drop(RA-nWG@5) > .02", "high(drop(RA-nWG@5)) > .9", "low(drop(RA-nWG@5)) > .02", "drop(BoR@5) < 0"]
    runs = {"worse": "bad", "equal": "good"}
    found = {
        f"{name}/{drop}": _evaluate("--against", "main.json", "--fail-if", drop, run=run)
        for name, run in runs.items()
        for drop in drops
    }
    caveats = ["caveats >= note", "caveats >= strong", "caveats(Harm@5) >= soft", "caveats(BoR@5) >= strong"]
    return found | {condition: _evaluate("--fail-if", condition) for condition in caveats}


def gates_on_trust():
    return {level: _evaluate("--fail-if", f"caveats >= {level}") for level in ("note", "soft", "strong")}
