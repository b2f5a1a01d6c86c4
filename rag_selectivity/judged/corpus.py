"""The corpus size N of each query, and the check that the judgments belong to the corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import repeat
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.judged.facts import first_ids
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.tables.cells import whole_count
from rag_selectivity.tables.exact import is_frame
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.small import PassageCounts, per_query


def within_corpus(qrels: Qrels, ids: Set[str]) -> tuple[Qrels, list[SelectivityWarning]]:
    """The judgments of the corpus's passages, which alone can be retrieved or drawn, and a warning if others were left.

    Raises
    ------
    InputError
        If no judged passage is in the corpus.
    """
    if not ids:
        raise InputError("the corpus has no passages: give the ids of all passages that can be retrieved")
    passages = set(qrels.passages)
    unknown, judged = passages - ids, len(passages)
    if not unknown:
        return qrels, []
    if len(unknown) == judged:
        raise InputError(
            f"no judged passage is in the corpus: the qrels name {examples(qrels.passages)}, "
            f"the corpus has {examples(sorted(ids)[:3])}; do both use the same ids? (how-to: ids-do-not-match)"
        )
    text = (
        f"{len(unknown)} of {judged} judged passages are not in the corpus ({examples(sorted(unknown))}): their labels "
        f"are left out"
    )
    inside = np.array([passage in ids for passage in qrels.passages], bool)
    return qrels.only(inside), [SelectivityWarning(text, "outside-corpus")]


def corpus_has(ids: Set[str], retrieved: Sequence[str], name: str, exact: bool) -> bool:
    """Whether the corpus has most of the retrieved passages; an InputError if it has none, unless ids are `exact`."""
    inside = sum(passage in ids for passage in retrieved)
    if retrieved and not inside and not exact:
        raise InputError(
            f"no passage that {name} retrieved is in the corpus: {name} has {examples(retrieved)}, the corpus has "
            f"{examples(sorted(ids)[:3])}; do both use the same ids? (how-to: ids-do-not-match)"
        )
    return 2 * inside > len(retrieved)


def size_with_counts(
    corpus_size: Any, counts: PassageCounts | None, form: IdForm = AS_THEY_ARE
) -> int | dict[str, int] | None:
    """N in passages, or {query: N}: of a number, a mapping or a frame, or the passages of all documents.

    The queries are there as they were given and in the form.
    """
    given: int | dict[str, int] | None = None
    if is_frame(corpus_size) or isinstance(corpus_size, Mapping):
        sizes = per_query(corpus_size, "corpus size", int, name="corpus_size")
        given = {form(query): size for query, size in sizes.items()} | sizes
    elif corpus_size is not None:
        given = whole_count(corpus_size, "corpus_size")
    if counts is None:
        return given
    if isinstance(given, int) and given < counts.total:
        raise InputError(
            f"corpus_size is {given}, less than the {counts.total} passages of the documents in passages_of: "
            f"N counts passages, not documents; leave corpus_size out, or give the number of passages in the index"
        )
    return counts.total if given is None else given


def corpus_sizes(given: int | dict[str, int] | None, qrels: Qrels, judged: IntArray) -> IntArray | None:
    """N of each query."""
    if given is None:
        return None
    if isinstance(given, dict):
        absent = [query for query in qrels.queries if query not in given]
        if absent:
            raise InputError(
                f"corpus_size has no entry for {len(absent)} of the {len(qrels)} queries "
                f"({examples(first_ids(absent))}): add them"
            )
    sizes = map(given.__getitem__, qrels.queries) if isinstance(given, dict) else repeat(given, len(qrels))
    result = np.fromiter(sizes, np.int64)
    over = np.flatnonzero(judged > result)
    if len(over):
        i = int(over[0])
        raise InputError(
            f"query {qrels.queries[i]!r} has {judged[i]} judged passages, more than the corpus size "
            f"N = {result[i]}: correct the corpus size"
        )
    return result
