"""What a span says of retrieval: by the conventions of OpenInference, OpenTelemetry's GenAI group, and Langfuse."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag_selectivity.live.calls import Kind
from rag_selectivity.live.spans.span import Problem, Problems, Span
from rag_selectivity.tables.files import json_value

__all__ = ["Document", "Meaning", "meaning_of", "query_id_of"]

_KINDS = {"retriever": Kind.RETRIEVE, "retrieval": Kind.RETRIEVE, "reranker": Kind.SELECT, "rerank": Kind.SELECT}
_SAYS_KIND = ("openinference.span.kind", "gen_ai.operation.name", "langfuse.observation.type", "gen_ai.span.kind")
_RETRIEVED = ("retrieval.documents", "gen_ai.retrieval.documents")
_OUTPUTS = ("output.value", "langfuse.observation.output")
_INPUTS = ("input.value", "langfuse.observation.input")
_QUERIES = ("gen_ai.retrieval.query.text", "reranker.query", *_INPUTS)
#: Under these names an operation's input, written as JSON, holds the query.
_QUERY_NAMES = ("query", "query_str", "question", "input", "query_bundle", "q", "str_or_query_bundle")
_DEEPEST = 4
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
        return Document(
            self.id if self.id is not None else other.id,
            self.text if self.text is not None else other.text,
            self.metadata or other.metadata,
            self.nan_score or other.nan_score,
        )


@dataclass(frozen=True, slots=True)
class _Found:
    """Documents in order; `is_cut` where some of them may be missing."""

    documents: tuple[Document, ...] = ()
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a span retrieved or selected.

    Attributes
    ----------
    kind : Kind
        RETRIEVE or SELECT.
    query : str
    documents : tuple of Document, or None
        What came out; None where the span does not say, or lost some of it (`is_cut`).
    given : tuple of Document
        What a selection got.
    source : str or None
        The data source that was searched.
    problems : Problems
    """

    kind: Kind
    query: str
    documents: tuple[Document, ...] | None
    given: tuple[Document, ...]
    is_cut: bool
    source: str | None
    problems: Problems

    @property
    def told(self) -> bool:
        """Whether the span says what came out, or says that it lost some of it."""
        return self.documents is not None or self.is_cut


def meaning_of(span: Span, rerank: str | None = None) -> Meaning | None:
    """What a span says of retrieval, None if nothing; `rerank` is the name of spans that select documents."""
    kind = _kind(span, rerank)
    if kind is None:
        return None
    attributes, is_short, problems = span.attributes, span.dropped > 0, Problems()
    given = None
    if kind is Kind.SELECT:
        given = _documents_at(attributes, "reranker.input_documents", problems) or _input_documents(
            attributes, problems
        )
        out = _documents_at(attributes, "reranker.output_documents", problems, is_short)
    else:
        out = _documents_at(attributes, "gen_ai.retrieval.documents", problems)
        out = out or _documents_at(attributes, "retrieval.documents", problems, is_short)
    found = _better(out, attributes, problems)
    source = attributes.get("gen_ai.data_source.id")
    return Meaning(
        kind,
        _query(attributes, problems),
        None if found is None or found.is_cut else found.documents,
        () if given is None else given.documents,
        found is not None and found.is_cut,
        source if isinstance(source, str) else None,
        problems,
    )


def query_id_of(span: Span, name: str) -> str | None:
    """The id of a query under a name: an attribute of the span, or a key of its metadata."""
    value = span.attributes.get(name)
    for holder in ("metadata", "langfuse.observation.metadata", "langfuse.trace.metadata"):
        if value is None:
            value = span.attributes.get(f"{holder}.{name}")
        if value is None and isinstance(metadata := _parsed(span.attributes.get(holder)), Mapping):
            value = metadata.get(name)
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" else None


def _kind(span: Span, rerank: str | None) -> Kind | None:
    attributes = span.attributes
    # LlamaIndex' own hooks: `_retrieve` stands inside `retrieve`, and no attribute tells a postprocessor.
    method = span.name.rpartition(".")[2]
    if method in ("_retrieve", "_aretrieve") and not any(key.startswith(_RETRIEVED[0]) for key in attributes):
        return None
    if (rerank is not None and span.name == rerank) or method.endswith("postprocess_nodes"):
        return Kind.SELECT
    said = (str(attributes.get(name)).lower() for name in _SAYS_KIND)
    kind = next((_KINDS[each] for each in said if each in _KINDS), None)
    if kind is None and any(key.startswith(_RETRIEVED) for key in attributes):
        return Kind.RETRIEVE
    if kind is None and any(key.startswith("reranker.output_documents") for key in attributes):
        return Kind.SELECT
    return kind


def _query(attributes: Mapping[str, Any], problems: Problems) -> str:
    for name in _QUERIES:
        value = attributes.get(name)
        if isinstance(value, str) and value:
            return _query_in(_parsed(value), _DEEPEST) or value
        problems[Problem.WRONG_TYPE] += value is not None and value != ""
    return ""


def _query_in(value: Any, depth: int) -> str:
    if isinstance(value, Mapping) and depth:
        inner = (_query_in(value[name], depth - 1) for name in _QUERY_NAMES if name in value)
        return next((text for text in inner if text), "")
    return value if isinstance(value, str) else ""


# -- documents -------------------------------------------------------------------------------------------


def _documents_at(
    attributes: Mapping[str, Any], name: str, problems: Problems, is_short: bool = False
) -> _Found | None:
    """The documents under `name`: flattened (`name.0.document.id`), or as a list or JSON text in one attribute.

    None where there are none. `is_short` says that the span lost attributes.
    """
    given = attributes.get(name)
    whole = _parsed(given)
    if isinstance(whole, list):
        return _Found(_documents(whole, problems))
    if given not in (None, ""):
        # Text that is no JSON was cut by the limit of an attribute's length.
        problems[Problem.WRONG_TYPE] += whole is not None
        return _Found(is_cut=True)
    rows: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(f"{name}."):
            index, _, part = key[len(name) + 1 :].partition(".")
            if index.isdecimal() and len(index) < 10:
                rows.setdefault(int(index), {})[part] = value
    if is_short or not rows:
        return _Found(is_cut=True) if is_short else None
    last = max(rows)
    if last >= 10 * len(rows) + 1000:  # so many gaps would fill the memory
        problems[Problem.WRONG_TYPE] += 1
        return _Found(is_cut=True)
    problems[Problem.GAP] += last + 1 - len(rows)
    return _Found(_documents([rows.get(index, {}) for index in range(last + 1)], problems))


def _documents_in(value: Any, problems: Problems) -> _Found | None:
    """The documents of an operation's output: a list, or one under `documents`; None where that is something else."""
    content = _parsed(value)
    if isinstance(content, dict):
        content = content.get("documents")
    if not isinstance(content, list):
        return None
    own = Problems()
    documents = _documents(content, own)
    if documents and all(each.id is None and each.text is None for each in documents):
        return None
    problems.update(own)
    return _Found(documents)


def _input_documents(attributes: Mapping[str, Any], problems: Problems) -> _Found | None:
    for name in _INPUTS:
        content = _parsed(attributes.get(name))
        if isinstance(content, Mapping):
            content = next((value for value in content.values() if isinstance(value, list)), None)
        if isinstance(content, list) and (found := _documents_in(content, problems)) is not None:
            return found
    return None


def _better(own: _Found | None, attributes: Mapping[str, Any], problems: Problems) -> _Found | None:
    """The documents of the attributes; or of the output, if it has all of them and their ids are not in the attributes.

    Where the output was cut, the texts in the attributes may have been cut too: their hashes are no ids then.
    """
    if own is not None and not own.is_cut and all(document.id is not None for document in own.documents):
        return own
    outputs = [attributes.get(name) for name in _OUTPUTS]
    output = next((found for each in outputs if (found := _documents_in(each, problems)) is not None), None)
    if own is None:
        return output
    if output is None or len(output.documents) < len(own.documents):
        texts = [each for each in outputs if isinstance(each, str) and each[:1] in ("[", "{")]
        return replace(own, is_cut=own.is_cut or any(_parsed(each) is None for each in texts))
    known = (*own.documents, *(Document(),) * len(output.documents))
    pairs = zip(output.documents, known, strict=False)
    return _Found(tuple(document.completed(other) for document, other in pairs))


def _documents(rows: Sequence[Any], problems: Problems) -> tuple[Document, ...]:
    return tuple(_document(row, problems) for row in rows)


def _document(row: Any, problems: Problems) -> Document:
    if isinstance(row, str) and (match := _NODE.fullmatch(row)):
        return Document(match["id"], nan_score=match["score"] == "nan")
    if not isinstance(row, dict):
        problems[Problem.WRONG_TYPE] += 1
        return Document()
    inner = row.get("document") or row.get("node")
    if isinstance(inner, dict):
        return _document({**row, "document": None, "node": None, **inner}, problems)
    metadata, score = row.get("document.metadata", row.get("metadata")), row.get("document.score", row.get("score"))
    known = _parsed(metadata)
    problems[Problem.WRONG_TYPE] += metadata not in (None, "") and not isinstance(known, dict)
    return Document(
        _first(row, _IDS, (str, int), problems),
        _first(row, _TEXTS, (str,), problems),
        known if isinstance(known, dict) else {},
        (isinstance(score, float) and math.isnan(score)) or (isinstance(score, str) and score.lower() == "nan"),
    )


def _first(row: Mapping[str, Any], names: Sequence[str], types: tuple[type, ...], problems: Problems) -> str | None:
    for name in names:
        value = row.get(name)
        if value is not None and value != "":
            if isinstance(value, types) and not isinstance(value, bool):
                return str(value)
            problems[Problem.WRONG_TYPE] += 1
    return None


def _parsed(value: Any) -> Any:
    """A value that may be JSON as text; text that is not JSON is None."""
    if not isinstance(value, str):
        return value
    if value.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return json_value(value)
    except ValueError:
        return None
