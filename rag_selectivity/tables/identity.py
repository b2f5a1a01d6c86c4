"""By which id the labels know a framework's passage, and by which key a query that is asked again."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from numbers import Integral
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.tables.cells import shown, text_or_number
from rag_selectivity.tables.ids import TEXT_PREFIX, text_id
from rag_selectivity.tables.matching import labels_found

#: The value of `identity` that asks for `choose_identity`.
AUTO = "auto"
#: The name of the hash of a passage's text.
TEXT = "text"
_METADATA = "metadata."
# Metadata may hold whole documents, and objects that hold themselves.
_LONGEST_ID, _MOST_KEYS, _DEEPEST = 1000, 200, 8


def as_text_id(passage: str) -> str:
    """The `text_id` of a text; an id that `text_id` has made stays as it is.

    >>> as_text_id("Paris") == as_text_id(text_id("Paris")) == text_id("Paris")
    True
    """
    return passage if passage.startswith(TEXT_PREFIX) else text_id(passage)


# -- the id of a passage ---------------------------------------------------------------------------


def passage_identity(
    identity: str | None,
    *,
    ids: Mapping[str, Any],
    text: Callable[[], str],
    metadata: Mapping[str, Any],
    name: str = "passage",
) -> str:
    """The id by which the labels know a framework's passage.

    Parameters
    ----------
    identity : str or None
        One of `ids`, `text` (a hash of the text), or a key of the metadata: `source`, or `source.id` for the key `id`
        inside `source`, with a text or a whole number as value. `metadata.id` is the key `id` of the metadata where the
        framework has an `id` of its own. None takes the first of `ids` if it has a value, else the hash of the text.
    ids : {name: value or None}
        The framework's own ids.
    text : callable
        Gives the text; called only if its hash is the id.
    metadata : mapping
    name : str
        What an error calls the passage.

    Raises
    ------
    InputError
        If the passage has no such id.

    Examples
    --------
    >>> passage_identity("url", ids={"id": 7}, text=lambda: "Paris", metadata={"url": "a.example"})
    'a.example'
    >>> passage_identity("source.id", ids={"id": 7}, text=lambda: "Paris", metadata={"source": {"id": "d1"}})
    'd1'
    >>> passage_identity(None, ids={"id": 7}, text=lambda: "Paris", metadata={})
    '7'
    """
    if identity is None:
        value = next(iter(ids.values()), None)
        return text_id(text()) if value is None else str(value)
    if not isinstance(identity, str) or identity == AUTO:
        raise InputError(f"identity must be the name of an id here, such as 'text', got {shown(identity)}")
    value = named_id(identity, ids, text, metadata)
    if value is None:
        place = identity if identity in ids else f"metadata[{identity.removeprefix(_METADATA)!r}]"
        raise InputError(f"{name} has no {place}: choose another identity (identity='text' takes a hash of the text)")
    return value


def named_id(
    identity: str, ids: Mapping[str, Any], text: Callable[[], str] | str, metadata: Mapping[str, Any]
) -> str | None:
    """The id of this name, as in `passage_identity`; None if the passage has none."""
    known = candidates(ids, text if identity == TEXT else "", metadata)
    key = identity.removeprefix(_METADATA)
    return known.get(identity) or (None if key in ids else known.get(key))


def candidates(ids: Mapping[str, Any], text: Callable[[], str] | str, metadata: Mapping[str, Any]) -> dict[str, str]:
    """Every id by which labels may know a passage, by the name that `identity=` takes.

    Parameters
    ----------
    ids : {name: value or None}
        The framework's own ids, the likeliest first.
    text : str or callable
    metadata : mapping
        Strings and whole numbers count, at any depth. A key that is called like one of `ids` or `text` is named
        `metadata.KEY`.

    Examples
    --------
    >>> found = candidates({"id": None, "node_id": "n7"}, "Paris", {"id": "a", "page": 3, "source": {"id": "d1"}})
    >>> text = found.pop("text")
    >>> found
    {'node_id': 'n7', 'metadata.id': 'a', 'page': '3', 'source.id': 'd1'}
    """
    found = {name: str(value) for name, value in ids.items() if value is not None and str(value)}
    taken = {*ids, TEXT, AUTO}
    for key, value in islice(_ids_in(metadata), _MOST_KEYS):
        # `setdefault`: of a key "a.b" and a key "b" inside "a", `passage_identity` takes the first.
        found.setdefault(f"{_METADATA}{key}" if key in taken or key.startswith(_METADATA) else key, value)
    found[TEXT] = text_id(text if isinstance(text, str) else text())
    return found


def _ids_in(metadata: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    inner: list[tuple[str, Mapping[str, Any]]] = []
    for key, value in metadata.items():
        name = f"{prefix}{key}"
        if isinstance(value, str) and 0 < len(value) <= _LONGEST_ID:
            yield name, value
        elif isinstance(value, Integral) and not isinstance(value, bool):
            yield name, str(value)
        elif isinstance(value, Mapping) and depth < _DEEPEST:
            inner.append((f"{name}.", value))
    for name, mapping in inner:
        yield from _ids_in(mapping, name, depth + 1)


# -- what a framework retrieved --------------------------------------------------------------------


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
    documents, ids = list[dict[str, Any]](), list[str]()
    for rank, each in enumerate(passages, 1):
        if _is_document(each):
            documents.append(_parts(each))
            ids.append(passage_identity(identity, name="document", **documents[-1]))
        else:
            ids.append(text_or_number(each, f"{place}, passage {rank},"))
    if identity is not None or not labels:
        return ids
    if documents and not set(ids) & set(labels):
        found = labels_found([(labels, [candidates(**document) for document in documents])])
        other = max(found, key=lambda name: len(found[name]))
        if found[other]:
            raise InputError(f'the labels know the documents by {other}, not by id or text: say identity="{other}"')
    if any(each.startswith(TEXT_PREFIX) for each in ids) and not any(each.startswith(TEXT_PREFIX) for each in labels):
        raise InputError(
            f"the labels name passages by id ({examples(labels)}), and what was retrieved holds texts without ids: "
            f"give the ids in {place}, or label by rag_selectivity.single.text_id(text)"
        )
    return ids


def document_candidates(passage: Any, place: str = "the list of passages") -> dict[str, str]:
    """Every id by which labels may know a passage that is given as an id or a document, as `document_ids` takes it.

    >>> list(document_candidates({"id": "a uuid", "page_content": "Paris", "metadata": {"source": "d1"}}))
    ['id', 'source', 'text']
    """
    return candidates(**_parts(passage)) if _is_document(passage) else {"id": text_or_number(passage, place)}


def _is_document(passage: Any) -> bool:
    return isinstance(passage, Mapping) or bool(getattr(passage, "__dict__", None))


def _parts(document: Any) -> dict[str, Any]:
    """What `passage_identity` and `candidates` take of a document."""
    fields = document if isinstance(document, Mapping) else getattr(document, "__dict__", {})
    # LangChain's own serialisation has them one level down.
    fields = fields["kwargs"] if isinstance(fields.get("kwargs"), Mapping) else fields
    texts = (fields.get("page_content"), fields.get("content"), fields.get("text"))
    text = next((each for each in texts if each is not None and str(each)), "")
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise InputError(f"the metadata of a retrieved document must be a dict, got {shown(metadata)}")
    if fields.get("id") is None and not text and not metadata:
        raise InputError("a retrieved document has no id, no text and no metadata")
    return {"ids": {"id": fields.get("id")}, "text": lambda: str(text), "metadata": metadata}


# -- the key of a query ----------------------------------------------------------------------------


def numbered_queries(queries: Iterable[str]) -> list[str]:
    """A key for each query in order; a query that is asked again is numbered, so that it is measured again.

    >>> numbered_queries(["who?", "when?", "who?"])
    ['who?', 'when?', 'who? (2)']

    One that is called like that already gets another number.

    >>> numbered_queries(["who?", "who?", "who? (2)"])
    ['who?', 'who? (2)', 'who? (2) (2)']
    """
    times, keys = Counter[str](), dict[str, None]()
    for query in queries:
        key = query
        while key in keys:
            times[query] += 1
            key = f"{query} ({times[query] + 1})"
        keys[key] = None
    return list(keys)
