"""LangSmith: `examples.jsonl`, an example of a dataset on each line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from rag_selectivity.golden.forms.form import Form, View
from rag_selectivity.tables.writing import json_line

EXAMPLES = "examples.jsonl"
#: Where the question and the relevant passages stand, as `rag_selectivity_langchain` expects it by default.
QUESTION, RELEVANT = "question", "relevant"
#: Apart, since whoever reads what is called relevant would take a passage of grade 1 for relevant.
GRADES, REFERENCE = "grades", "reference"


class LangSmith(Form):
    """Examples as `Client.create_examples(examples=…)` takes them."""

    name = "langsmith"
    lacks = "texts of passages, no names of judges, and no second label of a pair"
    holds_grades = True
    holds_corpus = False

    def files(self, view: View) -> dict[str, str]:
        """The examples in the order of the queries; the same query has the same id in every version."""
        return {EXAMPLES: "".join(f"{json_line(_example(row, view))}\n" for row in view.queries)}


def _example(row: Mapping[str, Any], view: View) -> dict[str, Any]:
    query = row["query_id"]
    outputs: dict[str, Any] = {
        RELEVANT: view.relevant(query),
        GRADES: dict(sorted(view.grades.get(query, {}).items())),
    }
    if isinstance(row.get("reference"), str):
        outputs[REFERENCE] = row["reference"]
    columns = {name: row[name] for name in ("weight", "stratum") if row.get(name) not in (None, "")}
    return {
        "id": str(uuid5(NAMESPACE_URL, f"rag-selectivity/golden-set/{view.name}/{query}")),
        "inputs": {QUESTION: row["text"]},
        "outputs": outputs,
        "metadata": {"query_id": query, "golden_set": view.name, **columns},
    }
