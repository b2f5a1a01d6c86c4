"""By which id the labels know a framework's passage, and by which key a query that is asked again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rag_selectivity.data.ids import TEXT_PREFIX, text_id
from rag_selectivity.errors import InputError


def as_text_id(passage: str) -> str:
    """The `text_id` of a text; an id that `text_id` has made stays as it is.

    >>> as_text_id("Paris") == as_text_id(text_id("Paris")) == text_id("Paris")
    True
    """
    return passage if passage.startswith(TEXT_PREFIX) else text_id(passage)


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
        One of `ids`, `text` (a hash of the text), or a key of the metadata. None takes the first of `ids` if it
        has a value, else the hash of the text.
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
    >>> passage_identity(None, ids={"id": 7}, text=lambda: "Paris", metadata={})
    '7'
    """
    if identity is None:
        value = next(iter(ids.values()), None)
        return text_id(text()) if value is None else str(value)
    if identity == "text":
        return text_id(text())
    value = ids[identity] if identity in ids else metadata.get(identity)
    if value is None:
        place = identity if identity in ids else f"metadata[{identity!r}]"
        raise InputError(f"{name} has no {place}: choose another identity (identity='text' takes a hash of the text)")
    return str(value)


def numbered_queries(queries: Iterable[str]) -> list[str]:
    """A key for each query in order; a query that is asked again is numbered, so that it is measured again.

    >>> numbered_queries(["who?", "when?", "who?"])
    ['who?', 'when?', 'who? (2)']
    """
    times: dict[str, int] = {}
    keys = []
    for query in queries:
        times[query] = times.get(query, 0) + 1
        keys.append(query if times[query] == 1 else f"{query} ({times[query]})")
    return keys
