"""LangChain's documents and messages as ids and texts, wherever a chain or a tool holds them."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from rag_selectivity import InputError
from rag_selectivity.single import passage_identity


def document_of(passage: Any) -> Document:
    """A document, also of a pair of a document and its score, as `similarity_search_with_score` gives it.

    Raises
    ------
    InputError
        If it is neither.
    """
    first = passage[0] if isinstance(passage, tuple) and len(passage) == 2 else passage
    if not isinstance(first, Document):
        raise InputError(f"it must return Documents, or pairs of one and its score, got {type(passage).__name__}")
    return first


def texts_and_scores(passages: Sequence[Any]) -> dict[str, Any]:
    """The `texts` and `scores` of a `Retrieved`; a document that is not in a pair with a score has none."""
    scores = [each[1] if isinstance(each, tuple) else None for each in passages]
    return {"texts": [str(document_of(each).page_content) for each in passages], "scores": scores}


def parts_of(document: Any, name: str = "") -> dict[str, Any]:
    """What `passage_identity` and an `Identity` take of a document; an error calls it by a name, or by its text."""
    document = document_of(document)
    return {
        "ids": {"id": document.id},
        "text": lambda: str(document.page_content),
        "metadata": document.metadata,
        "name": name or f"document {document.page_content[:40]!r}",
    }


def identity_of(document: Document | tuple[Document, float], identity: str | None = None) -> str:
    """A document's id for the labels: `id`, `text` (a hash of the text), or a metadata key.

    None takes `Document.id` where there is one, and the hash of the text where there is none.
    """
    return passage_identity(identity, **parts_of(document))


def plain_ids(known_by: str, documents: Sequence[Document]) -> tuple[str, ...] | None:
    """What `identity_of` gives for each, read at once; None if one of them lacks a string under that name."""
    if known_by == "text":
        return None
    ids: list[Any] = [each.id if known_by == "id" else each.metadata.get(known_by) for each in documents]
    return tuple(ids) if set(map(type, ids)) <= {str} and "" not in ids else None


def text_of(message: Any) -> str:
    """The text of a message, whose content is a string or a list of parts."""
    content = getattr(message, "content", message)
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)


def document_lists(value: Any) -> dict[str, list[Document]]:
    """The lists of documents in a list, a state or an update of one, by the name of their field.

    A state is a mapping, a dataclass, a model of pydantic, or LangGraph's `Command` with an update. Pairs of a document
    and its score count as documents.
    """
    if isinstance(value, (list, tuple)):
        return {"": _only(value)}
    lists = {name: inner for name, inner in _fields(value).items() if isinstance(inner, (list, tuple))}
    documents = {name: _only(inner) for name, inner in lists.items()}
    return {name: each for name, each in documents.items() if each or not lists[name]}


def documents_selected(given: Any, taken: Mapping[str, Sequence[Document]]) -> list[Document]:
    """The documents that a selecting step leaves, if `taken` are those that it took.

    A list that the step passes on as it took it is not its selection, unless there is no other.

    Raises
    ------
    InputError
        If the step gives no list of documents, or several.
    """
    if isinstance(given, (list, tuple)):
        documents = _only(given)
        if given and not documents:
            raise InputError(f"it gives a list of {type(given[0]).__name__}, and not of Document")
        return documents
    if not (lists := document_lists(given)):
        raise InputError(f"it gives {type(given).__name__} without a list of Document")
    changed = {name: each for name, each in lists.items() if name not in taken or each != taken[name]}
    filled = {name: each for name, each in (changed or lists).items() if each}
    if len(filled) > 1:
        as_taken = "" if changed else " as it took them"
        raise InputError(f"it gives several lists of documents{as_taken} ({', '.join(filled)}): which one is shown?")
    return next(iter(filled.values()), [])


def documents_of_tool(output: Any) -> list[Document] | None:
    """The documents that a tool gives as its artifact or result; None if it gives none."""
    given = getattr(output, "artifact", output)
    if not isinstance(given, (list, tuple)):
        return None
    documents = _only(given)
    return documents if len(documents) == len(given) else None


def questions_in(inputs: Any, depth: int = 3) -> Iterator[str]:
    """The texts of what a chain or graph is given: of a message, of a list of messages the last first, of a state."""
    if isinstance(inputs, BaseMessage):
        yield text_of(inputs)
        inputs = inputs.content
    if isinstance(inputs, str):
        yield inputs
    elif depth < 2 and isinstance(inputs, list) and inputs and isinstance(inputs[0], dict):
        # The content blocks of a message.
        yield from (str(each["text"]) for each in inputs if isinstance(each, dict) and "text" in each)
    elif depth and not isinstance(inputs, Document):
        for each in reversed(inputs) if isinstance(inputs, (list, tuple)) else _fields(inputs).values():
            yield from questions_in(each, depth - 1)


def _fields(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    update = getattr(value, "update", None)
    if isinstance(update, Mapping):
        return update
    return dict(vars(value)) if dataclasses.is_dataclass(value) or hasattr(type(value), "model_fields") else {}


def _only(values: Iterable[Any]) -> list[Document]:
    firsts = (each[0] if isinstance(each, tuple) and len(each) == 2 else each for each in values)
    return [each for each in firsts if isinstance(each, Document)]
