"""By which id the labels know a framework's passage, and by which key a query that is asked again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from numbers import Integral
from typing import Any

from rag_selectivity.data.cells import shown
from rag_selectivity.data.ids import TEXT_PREFIX, text_id
from rag_selectivity.errors import InputError, examples
from rag_selectivity.wording import counted

#: The value of `identity` that asks for `choose_identity`.
AUTO = "auto"
#: The name of the hash of a passage's text.
TEXT = "text"
#: The labelled queries on which the choice rests.
QUERIES_TO_CHOOSE_BY = 50

_METADATA = "metadata."
# Metadata may hold whole documents, and objects that hold themselves.
_LONGEST_ID = 1000
_MOST_KEYS = 200
_DEEPEST = 8


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
        inside `source`. `metadata.id` is the key `id` of the metadata where the framework has an `id` of its own. None
        takes the first of `ids` if it has a value, else the hash of the text.
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
    if not isinstance(identity, str):
        raise InputError(f"identity must be the name of an id, such as 'text', got {shown(identity)}")
    if identity == TEXT:
        return text_id(text())
    if identity == AUTO:
        raise InputError(
            f"{name} has no id called 'auto': there are no labels here to choose by; give the name of an id"
        )
    value = ids[identity] if identity in ids else _in_metadata(identity, metadata)
    if value is None:
        place = identity if identity in ids else f"metadata[{identity.removeprefix(_METADATA)!r}]"
        raise InputError(f"{name} has no {place}: choose another identity (identity='text' takes a hash of the text)")
    return str(value)


def _in_metadata(identity: str, metadata: Mapping[str, Any]) -> Any:
    for path in (identity.removeprefix(_METADATA), identity):
        value = _at(path, metadata)
        if value is not None:
            return value
    return None


def _at(path: str, metadata: Mapping[str, Any]) -> Any:
    """The value of a key, or of a key inside the value of another."""
    value = metadata.get(path)
    if value is not None and not isinstance(value, Mapping) and str(value):
        return value
    start = path.find(".")
    while start > 0:
        inner = metadata.get(path[:start])
        if isinstance(inner, Mapping):
            value = _at(path[start + 1 :], inner)
            if value is not None:
                return value
        start = path.find(".", start + 1)
    return None


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
        if isinstance(value, str):
            if 0 < len(value) <= _LONGEST_ID:
                yield name, value
        elif isinstance(value, Integral) and not isinstance(value, bool):
            yield name, str(value)
        elif isinstance(value, Mapping) and depth < _DEEPEST:
            inner.append((f"{name}.", value))
    for name, mapping in inner:
        yield from _ids_in(mapping, name, depth + 1)


# -- the choice ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChosenIdentity:
    """The id by which the labels know the passages, and how many labels it finds.

    Attributes
    ----------
    name : str
        As `identity=` takes it.
    found, labels : int
        Labels among the retrieved passages, and all labels, of the queries that the choice rests on.
    queries : int
    """

    name: str
    found: int
    labels: int
    queries: int

    @property
    def line(self) -> str:
        """The choice as a sentence, for a report."""
        return f"Passages are known by {self.name}: {counted(self.found, 'label')} found in the {_first(self.queries)}."

    @property
    def facts(self) -> dict[str, str | int]:
        """The choice as plain data, for `Report.with_input`."""
        return {"taken": self.name, "labels_found": self.found, "queries": self.queries}


def too_few_found(found: int, promised: int) -> bool:
    """Whether lists hold so few labelled passages that ids or units may differ: under a fifth of 20 or more.

    `promised` is how many they could hold, of the top 10 of every list.

    >>> too_few_found(3, 20), too_few_found(4, 20), too_few_found(0, 19)
    (True, False, False)
    """
    return promised >= 20 and found < 0.2 * promised


Observed = tuple[Mapping[str, int] | Collection[str], Sequence[Mapping[str, str]]]


def choose_identity(observed: Sequence[Observed]) -> ChosenIdentity:
    """The candidate that finds most labels in the first 50 labelled queries.

    Candidates that have the same id for every passage count as one, with the name that comes first.

    Parameters
    ----------
    observed : sequence of (labels, passages)
        For each labelled query its labels, and the `candidates` of each passage that was retrieved for it.

    Raises
    ------
    InputError
        If no candidate finds a label; if two different ones find equally many; if another candidate finds many labels
        that the best one misses (ids of mixed kinds); or if the best one finds less than a fifth of the labels that the
        lists could hold.

    Examples
    --------
    >>> passages = [candidates({"id": "n7"}, "Paris", {"doc": "d1"}), candidates({"id": "n8"}, "Rome", {"doc": "d2"})]
    >>> choose_identity([({"d1": 1, "d5": 1}, passages)]).line
    'Passages are known by doc: 1 label found in the first 1 labelled query.'
    """
    return _Choice(observed[:QUERIES_TO_CHOOSE_BY]).made()


class _Choice:
    """How many labels each candidate finds."""

    def __init__(self, observed: Sequence[Observed]) -> None:
        self._observed = observed
        self._passages = [passage for _, passages in observed for passage in passages]
        self._names = list(dict.fromkeys(name for passage in self._passages for name in passage))
        self._found = {name: self._labels_found_by(name) for name in self._names}
        self._labels = sum(len(labels) for labels, _ in observed)
        self._promised = sum(min(len(labels), len(passages), 10) for labels, passages in observed)

    def made(self) -> ChosenIdentity:
        most = max((len(found) for found in self._found.values()), default=0)
        if not self._passages:
            raise InputError(
                f"no label was found, since no passage at all was retrieved in the {self._where}: is the index "
                "empty, or its filter too narrow?"
            )
        if most == 0:
            raise InputError(
                f"no label was found among the {len(self._passages):,} passages retrieved in the {self._where}, by "
                f"any of their ids: {self._labels_named}, and the passages have {self._ids_of(self._names[:6])}. Label "
                f"by an id that the index keeps at each ingestion (how-to: ids-change-with-each-ingestion)"
            )
        best = [name for name in self._names if len(self._found[name]) == most]
        taken = max(best, key=self._number_of_ids)  # the first of those that most passages have
        missed = {name: len(found - self._found[taken]) for name, found in self._found.items()}
        other = max(self._names, key=missed.__getitem__)
        if missed[other] >= max(2, 0.1 * most):
            raise InputError(
                f"the labels' ids are of mixed kinds: in the {self._where}, {taken} finds {counted(most, 'label')}, "
                f"and {other} finds {missed[other]:,} others: {self._labels_named}, and the passages have "
                f"{self._ids_of([taken, other])}. Label all passages by one kind of id, or use one kind only: "
                f"{_option(taken)}"
            )
        rival = next((name for name in best if not self._are_the_same(name, taken)), None)
        if rival is not None:
            raise InputError(
                f"{taken} and {rival} find {counted(most, 'label')} each in the {self._where}, and they are "
                f"different ids: {self._labels_named}, and the passages have {self._ids_of([taken, rival])}. Choose "
                f"one: {_option(taken)} or {_option(rival)}"
            )
        if too_few_found(most, self._promised):
            raise InputError(
                f"too few labels are found to tell the right id: {taken} finds most, {most:,} in the {self._where}, "
                f"and the lists could hold {self._promised:,}: {self._labels_named}, and the passages have "
                f"{self._ids_of([taken])}. If the labels name documents and the passages are chunks, label by an id of "
                f"the document that its chunks keep. If the id is right, give {_option(taken)}"
            )
        return ChosenIdentity(taken, most, self._labels, len(self._observed))

    @cached_property
    def _where(self) -> str:
        return _first(len(self._observed))

    @property
    def _labels_named(self) -> str:
        return f"the labels name {examples(label for labels, _ in self._observed for label in labels)}"

    def _ids_of(self, names: Iterable[str]) -> str:
        shown = (f"{name} {examples(passage[name] for passage in self._passages if name in passage)}" for name in names)
        return "; ".join(shown) or "no ids"

    def _labels_found_by(self, name: str) -> set[tuple[int, str]]:
        return {
            (query, passage[name])
            for query, (labels, passages) in enumerate(self._observed)
            for passage in passages
            if passage.get(name) in labels
        }

    def _number_of_ids(self, name: str) -> int:
        return sum(name in passage for passage in self._passages)

    def _are_the_same(self, name: str, other: str) -> bool:
        """Whether no passage has different ids under the two names."""
        return all(
            passage[name] == passage[other] for passage in self._passages if name in passage and other in passage
        )


def _first(queries: int) -> str:
    return f"first {counted(queries, 'labelled query', 'labelled queries')}"


def _option(name: str) -> str:
    return f'identity="{name}"'


# -- the key of a query ----------------------------------------------------------------------------


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
