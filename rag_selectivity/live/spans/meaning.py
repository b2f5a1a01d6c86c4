"""What a span says of retrieval: by the conventions of OpenInference, OpenTelemetry's GenAI group, and Langfuse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rag_selectivity.live.calls import Kind
from rag_selectivity.live.spans.otlp import Span
from rag_selectivity.tables.files import json_value

_T = TypeVar("_T")

# The conventions: where a span says what it is, what it was asked, what it got, and what came out.
_KINDS = {"retriever": Kind.RETRIEVE, "retrieval": Kind.RETRIEVE, "reranker": Kind.SELECT, "rerank": Kind.SELECT}
_SAYS_KIND = ("openinference.span.kind", "gen_ai.operation.name", "langfuse.observation.type", "gen_ai.span.kind")
_INPUTS = ("input.value", "langfuse.observation.input")
_OUTPUTS = ("output.value", "langfuse.observation.output")
_QUERIES = ("gen_ai.retrieval.query.text", "reranker.query", *_INPUTS)
_OUT = {
    Kind.RETRIEVE: ("gen_ai.retrieval.documents", "retrieval.documents"),
    Kind.SELECT: ("reranker.output_documents",),
}
_GIVEN = "reranker.input_documents"
_METADATA = ("metadata", "langfuse.observation.metadata", "langfuse.trace.metadata")
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
        id_, text = _first((self.id, other.id)), _first((self.text, other.text))
        return Document(id_, text, self.metadata or other.metadata, self.nan_score or other.nan_score)


#: Documents of which some were lost.
CUT: tuple[Document, ...] = (Document(),)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a span retrieved or selected.

    Attributes
    ----------
    kind : Kind
        RETRIEVE or SELECT.
    query : str
    documents : tuple of Document, or None
        What came out; None where the span does not say, and `CUT` where it lost some of it.
    given : tuple of Document
        What a selection got.
    source : str or None
        The data source that was searched.
    """

    kind: Kind
    query: str
    documents: tuple[Document, ...] | None
    given: tuple[Document, ...]
    source: str | None

    @property
    def known(self) -> tuple[Document, ...]:
        """The documents, as far as they are known."""
        return () if self.documents is None or self.documents is CUT else self.documents


def meaning_of(span: Span, rerank: str | None = None) -> Meaning | None:
    """What a span says of retrieval, None if nothing; `rerank` is the name of spans that select documents."""
    if (kind := _kind(span, rerank)) is None:
        return None
    attributes, source = span.attributes, span.attributes.get("gen_ai.data_source.id")
    found = _first(_documents_at(attributes, name) for name in _OUT[kind])
    if span.dropped and not (kind is Kind.RETRIEVE and _OUT[kind][0] in attributes):
        found = CUT
    given = None
    if kind is Kind.SELECT:
        inputs = (_documents_in(_parsed(attributes.get(name)), anywhere=True) for name in _INPUTS)
        given = _first([_documents_at(attributes, _GIVEN), *inputs])
    return Meaning(
        kind,
        query_of(attributes),
        _better(found, attributes),
        () if given is None or given is CUT else given,
        source if isinstance(source, str) else None,
    )


def query_id_of(span: Span, name: str) -> str | None:
    """The id of a query under a name: an attribute of the span, or a key of its metadata."""
    value = span.attributes.get(name)
    for holder in _METADATA:
        if value is None:
            value = span.attributes.get(f"{holder}.{name}")
        if value is None and isinstance(metadata := _parsed(span.attributes.get(holder)), Mapping):
            value = metadata.get(name)
    return _text(value)


def _kind(span: Span, rerank: str | None) -> Kind | None:
    attributes = span.attributes
    # LlamaIndex' own hooks: `_retrieve` stands inside `retrieve`, and no attribute tells a postprocessor.
    method = span.name.rpartition(".")[2]
    if method in ("_retrieve", "_aretrieve") and not any(key.startswith("retrieval.documents") for key in attributes):
        return None
    if (rerank is not None and span.name == rerank) or method.endswith("postprocess_nodes"):
        return Kind.SELECT
    said = (_KINDS.get(str(attributes.get(name)).lower()) for name in _SAYS_KIND)
    by_documents = (kind for kind, names in _OUT.items() if any(key.startswith(names) for key in attributes))
    return next((kind for kind in (*said, *by_documents) if kind is not None), None)


def query_of(attributes: Mapping[str, Any]) -> str:
    """What an operation was asked; empty where its span does not say."""
    text = next((each for name in _QUERIES if isinstance(each := attributes.get(name), str) and each), "")
    return _query_in(_parsed(text), _DEEPEST) or text


def _query_in(value: Any, depth: int) -> str:
    if isinstance(value, Mapping) and depth:
        inner = (_query_in(value[name], depth - 1) for name in _QUERY_NAMES if name in value)
        return next((text for text in inner if text), "")
    return value if isinstance(value, str) else ""


# -- documents: None where there are none ----------------------------------------------------------------


def _documents_at(attributes: Mapping[str, Any], name: str) -> tuple[Document, ...] | None:
    """The documents under `name`: flattened (`name.0.document.id`), or as a list or JSON text in one attribute."""
    given = attributes.get(name)
    whole = _parsed(given)
    if isinstance(whole, list):
        return tuple(map(_document, whole))
    if given not in (None, ""):
        return CUT  # text that is no JSON was cut by the limit of an attribute's length
    rows: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        index, _, part = key.removeprefix(f"{name}.").partition(".")
        if key.startswith(f"{name}.") and index.isdecimal() and len(index) < 10:
            rows.setdefault(int(index), {})[part] = value
    last = max(rows, default=-1)
    if last >= 10 * len(rows) + 1000:  # so many gaps would fill the memory
        return CUT
    return tuple(_document(rows.get(index, {})) for index in range(last + 1)) if rows else None


def _documents_in(content: Any, *, anywhere: bool = False) -> tuple[Document, ...] | None:
    """The documents of an operation's output: a list, or one under `documents`; if `anywhere`, the first list."""
    if isinstance(content, Mapping):
        lists = content.values() if anywhere else [content.get("documents")]
        content = next((value for value in lists if isinstance(value, list)), None)
    if not isinstance(content, list):
        return None
    documents = tuple(map(_document, content))
    return documents if not documents or any(each.id or each.text for each in documents) else None


def _better(own: tuple[Document, ...] | None, attributes: Mapping[str, Any]) -> tuple[Document, ...] | None:
    """The documents of the attributes; or of the output, if it has all of them and their ids are not in the attributes.

    Where the output was cut, the texts in the attributes may have been cut too: their hashes are no ids then.
    """
    known = () if own is None or own is CUT else own
    if own is not None and own is not CUT and all(document.id is not None for document in known):
        return own
    outputs = [attributes.get(name) for name in _OUTPUTS]
    output = _first(_documents_in(_parsed(each)) for each in outputs)
    if own is None:
        return output
    if output is None or len(output) < len(known):
        is_json = (isinstance(each, str) and each[:1] in ("[", "{") for each in outputs)
        was_cut = any(is_text and _parsed(each) is None for is_text, each in zip(is_json, outputs, strict=True))
        return CUT if was_cut else own
    others = (*known, *(Document(),) * len(output))
    return tuple(document.completed(other) for document, other in zip(output, others, strict=False))


def _document(row: Any) -> Document:
    if isinstance(row, str) and (match := _NODE.fullmatch(row)):
        return Document(match["id"], nan_score=match["score"] == "nan")
    if not isinstance(row, dict):
        return Document()
    inner = row.get("document") or row.get("node")
    if isinstance(inner, dict):
        return _document({**row, "document": None, "node": None, **inner})
    metadata, score = row.get("document.metadata", row.get("metadata")), row.get("document.score", row.get("score"))
    known = _parsed(metadata)
    return Document(
        _first(_text(row.get(name)) for name in _IDS),
        _first(text if isinstance(text := row.get(name), str) and text else None for name in _TEXTS),
        known if isinstance(known, dict) else {},
        str(score).lower() == "nan",
    )


def _first(values: Iterable[_T | None]) -> _T | None:
    """The first value that is there."""
    return next((value for value in values if value is not None), None)


def _text(value: Any) -> str | None:
    """A text or whole number as text; None for anything else, and for an empty text."""
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" else None


def _parsed(value: Any) -> Any:
    """A value that may be JSON as text; text that is not JSON is None."""
    if not isinstance(value, str):
        return value
    with suppress(ValueError):
        return json_value(value) if value.lstrip()[:1] in ("[", "{") else None
    return None
