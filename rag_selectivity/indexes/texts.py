"""Texts of a corpus by the ids of retrieved passages: from a mapping, a file, or the index that passages come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.indexes import StoredPassage, identity_of_stored, stored_passages
from rag_selectivity.indexes.contents import reader_of
from rag_selectivity.tables.exact import is_frame, is_path
from rag_selectivity.tables.identity import TEXT, candidates
from rag_selectivity.tables.ids import text_id
from rag_selectivity.tables.matching import labels_found
from rag_selectivity.tables.texts import read_texts
from rag_selectivity.wording import counted

__all__ = ["corpus_texts", "identity_in_index", "texts_of_index"]

_GIVE = "give the texts of all passages as corpus={id: text}"


def corpus_texts(corpus: Any, identity: str | None = None, ids: Collection[str] = ()) -> dict[str, str]:
    """{id: text} of all passages of a corpus, by the ids of the passages that were retrieved.

    Parameters
    ----------
    corpus : {id: text}, records, DataFrame, path (also of a BEIR folder), or an index, store or retriever
        An index is one that `rag_selectivity.indexes.passages_of_index` can list.
    identity : str, optional
        By which id the retrieved passages go: as in `rag_selectivity.single.passage_identity`; `"text"` also gives the
        passages of a mapping or file the hashes of their texts as ids. Default: of an index, the id that is that of
        most retrieved passages; of anything else, its own ids.
    ids : collection of str
        The ids of the retrieved passages. If the corpus knows none of them, the error names some of both.

    Raises
    ------
    InputError
        If an index cannot list its passages, has no texts, or gives passages with different texts the same id; if a
        passage has no text; or if the corpus knows none of `ids`.

    Examples
    --------
    >>> corpus_texts({"d1": "Paris", "d2": "Rome"}, ids=["d2"])
    {'d1': 'Paris', 'd2': 'Rome'}
    """
    if isinstance(corpus, (Mapping, Sequence)) or is_path(corpus) or is_frame(corpus):
        texts = dict(read_texts(corpus, "corpus"))
        if identity == TEXT:
            texts = {text_id(text): text for text in texts.values()}
    else:
        texts = texts_of_index(corpus, identity or identity_in_index(corpus, ids))
    if ids and not any(id_ in texts for id_ in ids):
        raise InputError(
            f"corpus: it has none of the {len(set(ids)):,} retrieved passages: they go by {examples(sorted(ids))}, the "
            f"corpus has {examples(texts)}; give the corpus that they were retrieved from, by the same ids"
        )
    return texts


def texts_of_index(index: Any, identity: str | None, *, filter: Any = None) -> dict[str, str]:
    """{id: text} of all passages that an index, a vector store or a retriever can return.

    Parameters
    ----------
    index, filter
        As in `rag_selectivity.indexes.corpus_size_of_index`.
    identity : str or None
        As in `rag_selectivity.single.passage_identity`.

    Raises
    ------
    InputError
        If no reader knows the index, it cannot list its passages or holds no texts, a passage has no such id, or
        passages with different texts share an id, as chunks of a document do.
    """
    kind = type(index).__name__
    texts: dict[str, str] = {}
    shared = Counter[str]()
    without_id: list[StoredPassage] = []
    total = 0
    for passage in _listed(index, filter):
        total += 1
        if passage.text is None:
            raise InputError(
                f"corpus: {kind} lists its passages without their texts: give the index or the docstore that holds "
                f"them, or {_GIVE}"
            )
        try:
            name = identity_of_stored(passage, identity)
        except InputError:
            without_id.append(passage)
            continue
        if texts.setdefault(name, passage.text) != passage.text and identity != TEXT:
            shared[name] += 1
    if without_id:
        raise InputError(
            f"corpus: {len(without_id):,} of {counted(total, 'passage')} in {kind} have no {identity}; the first has "
            f"{_shown(_ids_of(without_id[0]))}: name one of these as identity=, or {_GIVE}"
        )
    if shared:
        raise InputError(
            f"corpus: in {kind}, {counted(len(shared), 'id')} by {identity} stand for several passages with different "
            f"texts, such as {examples(shared)}: these are chunks of documents. A judge grades chunks, so name an id "
            f"of the chunk as identity=, or identity='text' for a hash of its text"
        )
    if not texts:
        raise InputError(f"corpus: {kind} holds no passages: fill it first, or {_GIVE}")
    return texts


def identity_in_index(index: Any, ids: Collection[str]) -> str:
    """By which of its ids the passages of an index are known to `ids`: the one that finds most of them.

    Raises
    ------
    InputError
        If the index cannot list its passages, or none of them has any of `ids`.
    """
    wanted = set(ids)
    found = labels_found([(wanted, map(_ids_of, _listed(index, None)))])
    best = max(found, key=lambda name: len(found[name]), default="")
    if not found.get(best):
        first = next(map(_ids_of, _listed(index, None)), {})
        raise InputError(
            f"corpus: no passage in {type(index).__name__} has one of the {len(wanted):,} retrieved ids, such as "
            f"{examples(sorted(wanted))}; the first has {_shown(first)}: give the index that they were retrieved from, "
            f"or {_GIVE}"
        )
    return best


def _ids_of(passage: StoredPassage) -> dict[str, str]:
    return candidates(passage.ids, passage.text or "", passage.metadata)


def _shown(known: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value[:40]!r}" for name, value in list(known.items())[:6]) or "no ids"


def _listed(index: Any, filter: Any) -> Iterable[StoredPassage]:
    passages = stored_passages(index, filter=filter)
    if passages is None:
        why = "is not an index that is known" if reader_of(index) is None else "cannot list its passages"
        raise InputError(f"corpus: {type(index).__name__} {why}: {_GIVE}")
    return passages
