"""LlamaIndex: `dataset.json` with `queries`, `corpus`, `relevant_docs` and `mode`, as `EmbeddingQAFinetuneDataset`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_selectivity.data.cells import shown
from rag_selectivity.errors import InputError
from rag_selectivity.golden.forms.form import Form, Held, View
from rag_selectivity.golden.forms.reading import add_grade, add_passage, add_query, content_of, id_of, text_of
from rag_selectivity.io.opening import json_document
from rag_selectivity.io.writing import json_text

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

    def read(self, folder: Path, ids: Mapping[str, str | None]) -> Held:
        """The dataset; a place is a path within the document."""
        file = folder / DATASET
        if not file.is_file():
            raise InputError(f"{file}: there is no such file; the form llama-index is {DATASET} in a folder")
        try:
            data = json_document(file)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{file}: not JSON ({error}); save the dataset with `save_json`") from None
        if not isinstance(data, dict):
            raise InputError(f"{file}: a dataset has {', '.join(_PARTS)}, got {shown(data)}")
        parts: dict[str, dict[str, Any]] = {}
        for name in _PARTS:
            if not isinstance(data.get(name), dict):
                raise InputError(f"{file}: {name} must be an object, got {shown(data.get(name))}")
            parts[name] = data[name]
        held = Held()
        for id_, text in parts["queries"].items():
            where = f"{file}: queries.{id_}"
            add_query(held, id_of({"id": id_}, "id", where, "query"), text_of({"text": text}, "text", where), where)
        for id_, text in parts["corpus"].items():
            where = f"{file}: corpus.{id_}"
            add_passage(held, id_of({"id": id_}, "id", where, "passage"), content_of(text, where), where)
        for query, passages in parts["relevant_docs"].items():
            where = f"{file}: relevant_docs.{query}"
            if not isinstance(passages, list):
                raise InputError(f"{where}: must be a list of passages, got {shown(passages)}")
            for place, passage in enumerate(passages):
                at = f"{where}[{place}]"
                add_grade(held, query, id_of({"id": passage}, "id", at, "passage"), None, at)
        return held
