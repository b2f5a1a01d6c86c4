"""Texts of a corpus by the ids of retrieved passages: from a mapping, a file, or the index that passages come from."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.indexes import stored_passages
from rag_selectivity.tables.exact import is_frame
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.identity import TEXT
from rag_selectivity.tables.ids import text_id
from rag_selectivity.tables.matching import labels_found
from rag_selectivity.tables.small import read_texts
from rag_selectivity.wording import counted, enumeration

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
        texts = _texts_of_index(corpus, identity, set(ids))
    if ids and not any(id_ in texts for id_ in ids):
        sides = f"they go by {examples(sorted(ids))}, the corpus has {examples(texts)}"
        none = f"corpus: it has none of the {len(set(ids)):,} retrieved passages: {sides}"
        raise InputError(f"{none}; give the corpus that they were retrieved from, by the same ids")
    return texts


def _texts_of_index(index: Any, identity: str | None, wanted: Collection[str]) -> dict[str, str]:
    """{id: text} of all passages that an index, a vector store or a retriever can return."""
    kind = type(index).__name__
    passages = list(stored_passages(index) or ())
    if not passages or any(passage.text is None for passage in passages):
        raise InputError(f"corpus: {kind} does not list passages with their texts: fill it first, or {_GIVE}")
    if identity is None:
        found = labels_found([(wanted, [passage.candidates for passage in passages])])
        identity = max(found, key=lambda name: len(found[name]))
    texts, shared = dict[str, str](), dict[str, None]()
    for passage in passages:
        name = passage.by(identity)
        if name is not None and texts.setdefault(name, str(passage.text)) != passage.text and identity != TEXT:
            shared[name] = None
    if not texts:
        known = enumeration(list(passages[0].candidates))
        raise InputError(f"corpus: no passage in {kind} has an id called {identity!r}; the first has {known}")
    if shared:
        several = f"{counted(len(shared), 'id')} by {identity} stand for several passages with different texts"
        chunks = "these are chunks of documents. A judge grades chunks, so name an id of the chunk as identity="
        some = f"corpus: in {kind}, {several}, such as {examples(shared)}"
        raise InputError(f"{some}: {chunks}, or identity='text' for a hash of its text")
    return texts
