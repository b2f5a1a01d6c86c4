"""What commands print, and what results print as."""

import rag_selectivity as rs
from tests.wall import worlds

WORLD = worlds.small()
MEASURES = {"measures": ["BoR", "RA-nWG", "Harm", "Success"], "depths": [5]}


def _given():
    runs = [worlds.trec(f"{name}.trec", run) for name, run in WORLD.runs.items()]
    return [worlds.trec("qrels.trec", WORLD.labels), *runs, "--scale", "utility", "--corpus-size", 500]


def evaluate():
    return worlds.done("evaluate", *_given()).out


def compare():
    return worlds.done("evaluate", *_given(), "--baseline", "bad").out


def evaluate_as_markdown():
    return worlds.done("evaluate", *_given(), "--depths", "5", "--format", "markdown").out


def print_of_a_report():
    return str(rs.evaluate(**WORLD.given, **MEASURES))


def print_of_a_comparison():
    return str(rs.compare(**WORLD.given, baseline="bad", **MEASURES))


def report_as_latex():
    return rs.evaluate(**WORLD.given, **MEASURES).to_latex()


def report_as_csv():
    return worlds.done("evaluate", *_given(), "--depths", "5", "--measure", "RA-nWG", "--format", "csv").out


def agree():
    labels = {query: {d: min(5, grade + 1) for d, grade in row.items()} for query, row in WORLD.labels.items()}
    return str(rs.agree(WORLD.labels, labels))


def plan():
    return worlds.done("plan", "--corpus-size", 1000, "--relevant", "1,3,4", "--depths", "5,20,100").out


def explain_a_measure():
    return worlds.done("explain", "BoR").out


def help_of_evaluate():
    return worlds.done("evaluate", "--help").out


def report_of_one_framework():
    """The page that a person with LlamaIndex, Ragas or LangChain meets first."""
    rows = [
        {
            "user_input": worlds.QUESTIONS[query],
            "retrieved_context_ids": row,
            "reference_context_ids": [row[-1], row[0]],
        }
        for query, row in worlds.LATE.items()
    ]
    from rag_selectivity_ragas import selectivity

    return str(selectivity(rows, corpus_size=1000, depths=[2]))
