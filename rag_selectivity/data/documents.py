"""The ids of what a framework retrieved: plain ids, dicts or the framework's own documents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rag_selectivity.data.cells import shown, text_or_number
from rag_selectivity.data.identity import candidates, choose_identity, passage_identity
from rag_selectivity.data.ids import TEXT_PREFIX
from rag_selectivity.errors import InputError, examples


def document_ids(
    passages: Sequence[Any],
    labels: Collection[str] | None = None,
    identity: str | None = None,
    *,
    place: str = "the list of passages",
) -> list[str]:
    """The id of each passage that was retrieved for one query.

    Parameters
    ----------
    passages : sequence
        A text or whole number is an id. A document is a mapping, or an object with attributes, that has an `id`, a text
        as `page_content`, `content` or `text`, and `metadata`; each may be absent.
    labels : collection of str, optional
        The passages that the labels of this query name. With them and without an `identity`, ids are checked.
    identity : str, optional
        As in `passage_identity`. None takes `id`, or the hash of the text where there is none.
    place : str
        Where the user of the host gives ids, for errors.

    Raises
    ------
    InputError
        If a passage is neither; if a document has no such id; or if the labels name the documents by another id than
        the one taken, or have no hash of a text where passages go by theirs.

    Examples
    --------
    >>> document_ids(["d1", {"id": 7, "page_content": "Paris"}])
    ['d1', '7']
    >>> document_ids([{"id": "a uuid", "metadata": {"source": "d1"}}], identity="source")
    ['d1']
    """
    documents = {rank: _parts(each) for rank, each in enumerate(passages) if _is_document(each)}
    ids = [
        passage_identity(identity, name="document", **documents[rank])
        if rank in documents
        else text_or_number(each, f"{place}, passage {rank + 1},")
        for rank, each in enumerate(passages)
    ]
    if identity is None and labels:
        _check(ids, list(documents.values()), labels, place)
    return ids


def _check(ids: Sequence[str], documents: Sequence[Mapping[str, Any]], labels: Collection[str], place: str) -> None:
    if documents and not set(ids) & set(labels) and (other := _other_identity(documents, labels)) is not None:
        raise InputError(
            f'the labels know the documents by {other}, and not by their id or text: say identity="{other}"'
        )
    if _by_text(ids) and not _by_text(labels):
        raise InputError(
            f"the labels name passages by id ({examples(labels)}), and what was retrieved holds texts without ids: "
            f"give the ids in {place}, or label by rag_selectivity.single.text_id(text)"
        )


def _by_text(ids: Collection[str]) -> bool:
    return any(each.startswith(TEXT_PREFIX) for each in ids)


def _other_identity(documents: Sequence[Mapping[str, Any]], labels: Collection[str]) -> str | None:
    try:
        return choose_identity([(labels, [candidates(**document) for document in documents])]).name
    except InputError:
        return None  # no id finds a label: nothing relevant was retrieved


def _is_document(passage: Any) -> bool:
    return isinstance(passage, Mapping) or bool(getattr(passage, "__dict__", None))


def _parts(document: Any) -> dict[str, Any]:
    """What `passage_identity` and `candidates` take of a document."""
    fields = document if isinstance(document, Mapping) else getattr(document, "__dict__", {})
    texts = (fields.get("page_content"), fields.get("content"), fields.get("text"))
    text = next((each for each in texts if each is not None and str(each)), "")
    metadata = fields.get("metadata")
    if metadata is None or (isinstance(metadata, (str, list, tuple)) and not metadata):
        metadata = {}
    if not isinstance(metadata, Mapping):
        raise InputError(f"the metadata of a retrieved document must be a dict, got {shown(metadata)}")
    if fields.get("id") is None and not text and not metadata:
        raise InputError("a retrieved document has no id, no text and no metadata")
    return {"ids": {"id": fields.get("id")}, "text": lambda: str(text), "metadata": metadata}
