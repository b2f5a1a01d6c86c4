"""The JSON Schemas of docs/reference/schemas, and what of a document does not fit them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_selectivity.io.writing import json_text

SCHEMAS = Path(__file__).resolve().parents[1] / "docs" / "reference" / "schemas"


def validator(name: str) -> Any:
    """The validator of a schema; a test that needs it is skipped where the package is missing."""
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")
    draft = pytest.importorskip("referencing.jsonschema").DRAFT202012

    def read(uri: str) -> Any:
        return referencing.Resource(json.loads((SCHEMAS / uri).read_text(encoding="utf-8")), draft)

    schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema, registry=referencing.Registry(retrieve=read))


def written(result: Any) -> Any:
    """A result as its JSON is read again."""
    return json.loads(json_text(result if isinstance(result, dict) else result.to_dict()))


def problems(name: str, document: Any) -> list[str]:
    """Where a document does not fit a schema, and why."""
    return [
        f"{name}: {list(error.absolute_path)}: {error.message[:300]}" for error in validator(name).iter_errors(document)
    ]
