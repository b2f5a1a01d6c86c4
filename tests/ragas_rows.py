"""Rows, labels and runs that the tests of the Ragas adapter share."""

import rag_selectivity as rs

LABELS = {f"q{i}?": {"a": 5, "b": 1, "c": 2, "d": 4} for i in range(8)}
ROWS = [
    {
        "user_input": f"q{i}?",
        "retrieved_context_ids": ["a", "b", "x"] if i % 2 else ["c", "b", "d"],
        "retrieved_contexts": ["text a", "text b", "text x"] if i % 2 else ["text c", "text b", "text d"],
        "response": "r",
        "reference": "the reference",
    }
    for i in range(8)
]


def dataset(rows=ROWS):
    from ragas import EvaluationDataset

    return EvaluationDataset.from_list(rows)


def run(metrics, rows=ROWS, **options):
    from ragas import evaluate

    return evaluate(dataset(rows), metrics=metrics, show_progress=False, **options)


def expected(measures, depths=(2,), **options) -> rs.Report:
    lists = {row["user_input"]: row["retrieved_context_ids"] for row in ROWS}
    return rs.evaluate(LABELS, {"r": lists}, scale="utility", measures=measures, depths=depths, **options)
