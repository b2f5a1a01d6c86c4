"""LlamaIndex: `dataset.json` with `queries`, `corpus`, `relevant_docs` and `mode`, as `EmbeddingQAFinetuneDataset`."""

from __future__ import annotations

from rag_selectivity.golden.forms.form import Form, View
from rag_selectivity.tables.writing import json_text

DATASET = "dataset.json"
_PARTS = ("queries", "corpus", "relevant_docs")


class LlamaIndex(Form):
    """A dataset for the evaluation of retrievers."""

    name = "llama-index"
    lacks = "grades, no passages that are labelled and not relevant, no weights, and no names of judges"
    holds_grades = False
    holds_corpus = True

    def files(self, view: View) -> dict[str, str]:
        """The dataset; a query without a relevant passage has an empty list."""
        data = {
            "queries": {row["query_id"]: row["text"] for row in view.queries},
            "corpus": dict(view.passages),
            "relevant_docs": {row["query_id"]: view.relevant(row["query_id"]) for row in view.queries},
            "mode": "text",
        }
        return {DATASET: f"{json_text(data)}\n"}
