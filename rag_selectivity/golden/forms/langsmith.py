"""LangSmith: `examples.jsonl`, an example of a dataset on each line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from rag_selectivity.data.cells import shown, whole_grade
from rag_selectivity.data.ids import text_id
from rag_selectivity.errors import InputError, examples
from rag_selectivity.golden.forms.form import RELEVANT as LOWEST_RELEVANT
from rag_selectivity.golden.forms.form import Form, Held, View
from rag_selectivity.golden.forms.reading import add_grade, add_query, id_of, rows_of, text_of
from rag_selectivity.golden.query_rows import checked_weight
from rag_selectivity.io.writing import json_line

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

    def read(self, folder: Path, ids: Mapping[str, str | None]) -> Held:
        """The examples."""
        held = Held()
        for where, row in rows_of(folder / EXAMPLES):
            inputs, outputs, metadata = (_object(row, name, where) for name in ("inputs", "outputs", "metadata"))
            text = text_of(inputs, QUESTION, f"{where}: inputs")
            query = (
                id_of(metadata, "query_id", f"{where}: metadata", "query") if "query_id" in metadata else text_id(text)
            )
            add_query(held, query, text, where)
            columns = {name: metadata[name] for name in ("weight", "stratum") if metadata.get(name) not in (None, "")}
            if "weight" in columns:
                columns["weight"] = checked_weight(columns["weight"], f"{where}: metadata")
            if isinstance(outputs.get(REFERENCE), str):
                columns["reference"] = outputs[REFERENCE]
            held.columns[query] = columns
            relevant, grades = outputs.get(RELEVANT), outputs.get(GRADES)
            if not isinstance(relevant, (dict, list)):
                raise InputError(
                    f"{where}: outputs.{RELEVANT} must be a list of passages or {{passage: grade}}, got "
                    f"{shown(relevant)}"
                )
            if not isinstance(grades, (dict, NoneType)):
                raise InputError(f"{where}: outputs.{GRADES} must be {{passage: grade}}, got {shown(grades)}")
            name, given = (RELEVANT, relevant) if grades is None else (GRADES, grades)
            for passage in given:
                id_ = id_of({"id": passage}, "id", f"{where}: outputs.{name}", "passage")
                add_grade(held, query, id_, given[passage] if isinstance(given, dict) else None, where)
            if ids and grades is not None:
                _check_relevant(relevant, grades, where)
        return held


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


def _check_relevant(relevant: Iterable[Any], grades: Mapping[str, Any], where: str) -> None:
    """Refuse an example of an export in which one of the two was edited."""
    stated = {passage for passage, grade in grades.items() if whole_grade(grade, where) >= LOWEST_RELEVANT}
    differing = sorted(stated.symmetric_difference(map(str, relevant)))
    if differing:
        raise InputError(
            f"{where}: outputs.{RELEVANT} must list the passages of grade {LOWEST_RELEVANT} and above in "
            f"outputs.{GRADES}, and differs in {examples(differing)}; put the old content back"
        )


def _object(row: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    value = row.get(name)
    if name == "metadata" and value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{where}: {name} must be an object, got {shown(value)}")
    return value
