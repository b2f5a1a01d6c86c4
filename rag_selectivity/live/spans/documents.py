"""The documents that a span recorded, in each form that instrumentations use."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.live.spans.problems import Problem
from rag_selectivity.tables.files import json_value

__all__ = ["Document", "Found", "documents_at", "documents_in_json", "parsed"]

#: LlamaIndex writes nodes into `output.value` in this form.
_NODE = re.compile(r"<?NodeWithScore\(node=\w+\(id_=(?P<id>.*?)\)(?:, score=(?P<score>[^)]*))?\)>?", re.DOTALL)
_IDS = ("document.id", "id", "id_", "node_id")
_TEXTS = ("document.content", "page_content", "content", "text")


@dataclass(frozen=True, slots=True)
class Document:
    """A passage as a span recorded it; `id` and `text` are None where it did not."""

    id: str | None = None
    text: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    nan_score: bool = False

    def completed(self, other: Document) -> Document:
        """The same with what another record of it knows."""
        if self is other or (self.id is not None and self.text is not None and self.metadata):
            return self
        return Document(
            self.id if self.id is not None else other.id,
            self.text if self.text is not None else other.text,
            self.metadata or other.metadata,
            self.nan_score or other.nan_score,
        )


@dataclass(frozen=True, slots=True)
class Found:
    """Documents in order, with the problems that were met; `is_cut` where some of them may be missing."""

    documents: tuple[Document, ...]
    problems: tuple[Problem, ...] = ()
    is_cut: bool = False


def documents_at(attributes: Mapping[str, Any], name: str, *, dropped: bool = False) -> Found | None:
    """The documents under `name`: flattened (`name.0.document.id`), or as a list or JSON text in one attribute.

    None where there are none. `dropped` says that the span lost attributes.
    """
    whole = parsed(attributes.get(name))
    if isinstance(whole, list):
        return _listed(whole, all_count=True)
    if attributes.get(name) not in (None, ""):
        # Text that is no JSON was cut by the limit of an attribute's length.
        return Found((), () if whole is None else (Problem.WRONG_TYPE,), is_cut=True)
    rows: dict[int, dict[str, Any]] = {}
    start = f"{name}."
    for key, value in attributes.items():
        if key.startswith(start):
            index, _, part = key[len(start) :].partition(".")
            if index.isdecimal() and len(index) < 10:
                rows.setdefault(int(index), {})[part] = value
    if dropped or not rows:
        return Found((), is_cut=True) if dropped else None
    last = max(rows)
    if last >= 10 * len(rows) + 1000:  # so many gaps would fill the memory
        return Found((), (Problem.WRONG_TYPE,), is_cut=True)
    found = _listed([rows.get(index, {}) for index in range(last + 1)], all_count=True)
    gaps = (Problem.GAP,) * (last + 1 - len(rows))
    return None if found is None else Found(found.documents, (*found.problems, *gaps))


def documents_in_json(value: Any) -> Found | None:
    """The documents of an operation's output: a list, or one under `documents`; None where that is something else."""
    content = parsed(value)
    if isinstance(content, dict):
        content = content.get("documents")
    return _listed(content, all_count=False) if isinstance(content, list) else None


def parsed(value: Any) -> Any:
    """A value that may be JSON as text; text that is not JSON is None."""
    if not isinstance(value, str):
        return value
    if value.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return json_value(value)
    except ValueError:
        return None


def _listed(rows: Iterable[Any], *, all_count: bool) -> Found | None:
    """None where rows need not be documents (`all_count`), and none of them is."""
    problems: list[Problem] = []
    documents = [_document(row, problems) for row in rows]
    if not all_count and documents and not any(each.id is not None or each.text is not None for each in documents):
        return None
    return Found(tuple(documents), tuple(problems))


def _document(row: Any, problems: list[Problem]) -> Document:
    if isinstance(row, str) and (match := _NODE.fullmatch(row)):
        return Document(match["id"], nan_score=match["score"] == "nan")
    if not isinstance(row, dict):
        problems.append(Problem.WRONG_TYPE)
        return Document()
    inner = row.get("document") or row.get("node")
    if isinstance(inner, dict):
        return _document({**row, "document": None, "node": None, **inner}, problems)
    return Document(
        _first(row, _IDS, (str, int), problems),
        _first(row, _TEXTS, (str,), problems),
        _metadata(row, problems),
        _is_nan(row.get("document.score", row.get("score"))),
    )


def _first(
    row: Mapping[str, Any], names: tuple[str, ...], types: tuple[type, ...], problems: list[Problem]
) -> str | None:
    for name in names:
        value = row.get(name)
        if value is None or value == "":
            continue
        if isinstance(value, types) and not isinstance(value, bool):
            return str(value)
        problems.append(Problem.WRONG_TYPE)
    return None


def _metadata(row: Mapping[str, Any], problems: list[Problem]) -> Mapping[str, Any]:
    given = row.get("document.metadata", row.get("metadata"))
    if given in (None, ""):
        return {}
    content = parsed(given)
    if isinstance(content, dict):
        return content
    problems.append(Problem.WRONG_TYPE)
    return {}


def _is_nan(score: Any) -> bool:
    return (isinstance(score, float) and math.isnan(score)) or (isinstance(score, str) and score.lower() == "nan")
