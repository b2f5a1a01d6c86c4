"""What is noticed while reading and measuring: which warning or caveat fires, and the figures beside it."""

import rag_selectivity as rs
from tests.wall import keys, worlds

LABELS = {f"q{n:02}": {f"d{n}": 1, f"d{n + 100}": 0} for n in range(24)}
RUN = {query: [f"d{n}", f"d{n + 100}", f"d{n + 200}"] for n, query in enumerate(LABELS)}


def _measured(labels=LABELS, run=RUN, **options):
    given = {"measures": ["P", "BoR"], "depths": [2], "corpus_size": 1000, "bootstrap": None, **options}
    return keys.report(rs.evaluate(labels, {"run": run}, **given), "noticed")


def further_fields_in_a_table():
    lines = [{**row, "language": "en"} for row in worlds.rows(LABELS, "query_id", "passage_id", "grade")]
    return _measured(labels=worlds.table("labels.csv", lines))


def most_ids_do_not_match():
    return _measured(run={q: row if n < 3 else [f"x{d}" for d in row] for n, (q, row) in enumerate(RUN.items())})


def nothing_was_retrieved():
    return _measured(run={q: row if n < 3 else [] for n, (q, row) in enumerate(RUN.items())})


def labels_of_passages_outside_the_corpus():
    return _measured(corpus_size=None, corpus=[f"d{n}" for n in [*range(20), *range(100, 124), *range(200, 231)]])


def lists_that_repeat_passages():
    return _measured(run={query: [row[0], row[0], *row] for query, row in RUN.items()})


def people_disagree_with_the_judge():
    rs.grade(worlds.QUESTIONS, worlds.TEXTS, worlds.FIRST, store="l.db", judge=worlds.judge, progress=False)
    other = [
        {"query_id": query, "passage_id": passage, "grade": 5 - 2 * (place % 3)}
        for query, row in worlds.FIRST.items()
        for place, passage in enumerate(reversed(row))
    ]
    worlds.done("labels", "import", "l.db", worlds.table("people.csv", other), "--annotator", "ada")
    return keys.report(rs.evaluate("l.db", {"late": worlds.LATE}, measures=["Harm"], depths=[2]), "people")


def many_tools_shown():
    watched = rs.ToolMonitor({f"go {n}": [f"tool_{n}"] for n in range(5)}, catalogue=58)
    for n in range(5):
        watched.call(f"go {n}", {f"tool_{each}": 90 for each in range(58)}, [f"tool_{n}"])
    return keys.report(watched.report().selection, "tools")
