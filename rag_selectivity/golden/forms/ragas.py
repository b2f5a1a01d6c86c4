"""Ragas: `ragas.jsonl`, a sample of `EvaluationDataset` on each line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_selectivity.golden.forms.form import Form, View
from rag_selectivity.tables.writing import json_line

SAMPLES = "ragas.jsonl"


class Ragas(Form):
    """Samples with the relevant passages as reference contexts; `EvaluationDataset.from_jsonl` reads the file."""

    name = "ragas"
    lacks = "ids of queries, no grades, no passages that are not relevant, no weights, and no names of judges"
    holds_grades = False
    holds_corpus = False

    def files(self, view: View) -> dict[str, str]:
        """The samples in the order of the queries."""
        return {SAMPLES: "".join(f"{json_line(_sample(row, view))}\n" for row in view.queries)}

    def texts_of_passages(self, view: View) -> dict[str, str]:
        """Of the relevant passages of queries whose relevant passages all have a text."""
        found: dict[str, str] = {}
        for row in view.queries:
            relevant = view.relevant(row["query_id"])
            if all(passage in view.passages for passage in relevant):
                found |= {passage: view.passages[passage] for passage in relevant}
        return found


def _sample(row: Mapping[str, Any], view: View) -> dict[str, Any]:
    relevant = view.relevant(row["query_id"])
    sample: dict[str, Any] = {"user_input": row["text"], "reference_context_ids": relevant}
    if all(passage in view.passages for passage in relevant):
        sample["reference_contexts"] = [view.passages[passage] for passage in relevant]
    if isinstance(row.get("reference"), str):
        sample["reference"] = row["reference"]
    return sample
