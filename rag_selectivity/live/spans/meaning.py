"""What a span says of retrieval: by the conventions of OpenInference, OpenTelemetry's GenAI group, and Langfuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rag_selectivity.live.calls import Kind
from rag_selectivity.live.spans.documents import Document, Found, documents_at, documents_in_json, parsed
from rag_selectivity.live.spans.problems import Problem
from rag_selectivity.live.spans.span import Span

__all__ = ["Meaning", "meaning_of", "query_id_of"]

_KINDS = {"retriever": Kind.RETRIEVE, "retrieval": Kind.RETRIEVE, "reranker": Kind.SELECT, "rerank": Kind.SELECT}
_SAYS_KIND = ("openinference.span.kind", "gen_ai.operation.name", "langfuse.observation.type", "gen_ai.span.kind")
_OUTPUTS = ("output.value", "langfuse.observation.output")
_INPUTS = ("input.value", "langfuse.observation.input")
_QUERIES = ("gen_ai.retrieval.query.text", "reranker.query", *_INPUTS)
#: Under these names an operation's input, written as JSON, holds the query.
_QUERY_NAMES = ("query", "query_str", "question", "input", "query_bundle", "q", "str_or_query_bundle")
_DEEPEST = 4


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
    """

    kind: Kind
    query: str
    documents: tuple[Document, ...] | None
    given: tuple[Document, ...] = ()
    is_cut: bool = False
    source: str | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def told(self) -> bool:
        """Whether the span says what came out, or says that it lost some of it."""
        return self.documents is not None or self.is_cut


def meaning_of(span: Span, rerank: str | None = None) -> Meaning | None:
    """What a span says of retrieval, None if nothing; `rerank` is the name of spans that select documents."""
    kind = _kind(span, rerank)
    if kind is None:
        return None
    source = span.attributes.get("gen_ai.data_source.id")
    query, problems = _query(span.attributes)
    meaning = Meaning(kind, query, None, source=source if isinstance(source, str) else None, problems=problems)
    if kind is Kind.SELECT:
        given = documents_at(span.attributes, "reranker.input_documents") or _input_documents(span)
        if given is not None:
            meaning = replace(meaning, given=given.documents, problems=(*meaning.problems, *given.problems))
        out = documents_at(span.attributes, "reranker.output_documents", dropped=span.dropped > 0)
    else:
        out = documents_at(span.attributes, "gen_ai.retrieval.documents")
        out = out or documents_at(span.attributes, "retrieval.documents", dropped=span.dropped > 0)
    found = _better(out, _output_documents(span), span)
    if found is None:
        return meaning
    problems = (*meaning.problems, *found.problems)
    return replace(meaning, documents=None if found.is_cut else found.documents, is_cut=found.is_cut, problems=problems)


def query_id_of(span: Span, name: str) -> str | None:
    """The id of a query under a name: an attribute of the span, or a key of its metadata."""
    value = span.attributes.get(name)
    for holder in ("metadata", "langfuse.observation.metadata", "langfuse.trace.metadata"):
        if value is None:
            value = span.attributes.get(f"{holder}.{name}")
        if value is None and isinstance(metadata := parsed(span.attributes.get(holder)), Mapping):
            value = metadata.get(name)
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" else None


def _kind(span: Span, rerank: str | None) -> Kind | None:
    attributes = span.attributes
    # LlamaIndex' own hooks: `_retrieve` stands inside `retrieve`, and no attribute tells a postprocessor.
    method = span.name.rpartition(".")[2]
    if method in ("_retrieve", "_aretrieve") and not any(key.startswith("retrieval.documents") for key in attributes):
        return None
    if (rerank is not None and span.name == rerank) or method.endswith("postprocess_nodes"):
        return Kind.SELECT
    for name in _SAYS_KIND:
        value = attributes.get(name)
        if isinstance(value, str) and value.lower() in _KINDS:
            return _KINDS[value.lower()]
    for key in attributes:
        if key.startswith(("retrieval.documents", "gen_ai.retrieval.documents")):
            return Kind.RETRIEVE
        if key.startswith("reranker.output_documents"):
            return Kind.SELECT
    return None


def _query(attributes: Mapping[str, Any]) -> tuple[str, tuple[Problem, ...]]:
    problems: tuple[Problem, ...] = ()
    for name in _QUERIES:
        value = attributes.get(name)
        if isinstance(value, str) and value:
            return _query_in(parsed(value), _DEEPEST) or value, problems
        if value is not None and value != "":
            problems = (*problems, Problem.WRONG_TYPE)
    return "", problems


def _query_in(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and depth:
        for name in _QUERY_NAMES:
            if name in value and (text := _query_in(value[name], depth - 1)):
                return text
    return ""


def _output_documents(span: Span) -> Found | None:
    found = (documents_in_json(span.attributes.get(name)) for name in _OUTPUTS)
    return next((each for each in found if each is not None), None)


def _output_is_cut(span: Span) -> bool:
    values = (span.attributes.get(name) for name in _OUTPUTS)
    return any(isinstance(value, str) and value[:1] in ("[", "{") and parsed(value) is None for value in values)


def _input_documents(span: Span) -> Found | None:
    for name in _INPUTS:
        content = parsed(span.attributes.get(name))
        if isinstance(content, Mapping):
            content = next((value for value in content.values() if isinstance(value, list)), None)
        if isinstance(content, list) and (found := documents_in_json(content)) is not None:
            return found
    return None


def _better(attributes: Found | None, output: Found | None, span: Span) -> Found | None:
    """The documents of the attributes; or of the output, if it has all of them and their ids are not in the attributes.

    Where the output was cut, the texts in the attributes may have been cut too: their hashes are no ids then.
    """
    if attributes is None:
        return output
    if not attributes.is_cut and all(document.id is not None for document in attributes.documents):
        return attributes
    if output is None or len(output.documents) < len(attributes.documents):
        return replace(attributes, is_cut=attributes.is_cut or _output_is_cut(span))
    known = (*attributes.documents, *(Document(),) * len(output.documents))
    pairs = zip(output.documents, known, strict=False)
    return replace(output, documents=tuple(document.completed(other) for document, other in pairs))
