"""Ragas: `ragas.jsonl`, a sample of `EvaluationDataset` on each line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_selectivity.data.cells import shown
from rag_selectivity.data.ids import text_id
from rag_selectivity.errors import InputError
from rag_selectivity.golden.forms.form import Form, Held, View
from rag_selectivity.golden.forms.reading import add_grade, add_passage, add_query, content_of, id_of, rows_of, text_of
from rag_selectivity.grading.store import digest
from rag_selectivity.io.writing import json_line

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

    def read(self, folder: Path, ids: Mapping[str, str | None]) -> Held:
        """The samples; a query is known by its text, or by its place where several have that text."""
        held = Held()
        by_text: dict[str, list[str]] = {}
        for id_, known in ids.items():
            by_text.setdefault(known or "", []).append(id_)
        for where, row in rows_of(folder / SAMPLES):
            text = text_of(row, "user_input", where)
            waiting = by_text.get(digest(text).hex())
            if ids and not waiting:
                raise InputError(
                    f"{where}: the set has no further query with the text {shown(text)}: put the text back, or remove "
                    f"the side file to import the form as it is"
                )
            query = waiting.pop(0) if waiting else text_id(text)
            add_query(held, query, text, where)
            if isinstance(row.get("reference"), str):
                held.columns[query] = {"reference": row["reference"]}
            passages = _list(row, "reference_context_ids", where)
            texts = _list(row, "reference_contexts", where)
            if passages is None:
                passages = [text_id(str(each)) for each in texts or ()]
            if texts is not None and len(texts) != len(passages):
                raise InputError(
                    f"{where}: {len(texts)} reference_contexts for {len(passages)} reference_context_ids; give a text "
                    f"for each id"
                )
            for place, passage in enumerate(passages):
                name = id_of({"id": passage}, "id", f"{where}: reference_context_ids", "passage")
                add_grade(held, query, name, None, where)
                if texts is not None:
                    add_passage(held, name, content_of(texts[place], f"{where}: reference_contexts"), where)
        return held


def _sample(row: Mapping[str, Any], view: View) -> dict[str, Any]:
    relevant = view.relevant(row["query_id"])
    sample: dict[str, Any] = {"user_input": row["text"], "reference_context_ids": relevant}
    if all(passage in view.passages for passage in relevant):
        sample["reference_contexts"] = [view.passages[passage] for passage in relevant]
    if isinstance(row.get("reference"), str):
        sample["reference"] = row["reference"]
    return sample


def _list(row: Mapping[str, Any], name: str, where: str) -> list[Any] | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, list):
        raise InputError(f"{where}: {name} must be a list, got {shown(value)}")
    return value
