"""The size of the corpus, as an application gives it."""

from __future__ import annotations

from numbers import Real
from typing import Any

from rag_selectivity.data.cells import shown
from rag_selectivity.data.columns import whole_count
from rag_selectivity.errors import InputError


def size_of(corpus_size: Any) -> int | None:
    """N as a number, counted if an index was given.

    Raises
    ------
    InputError
        If it is no whole number from 1 on, or something that does not tell how many passages it can return.
    """
    if corpus_size is None:
        return None
    if isinstance(corpus_size, (str, Real)):
        number: Any = corpus_size
        if isinstance(number, (bool, str)) or not number >= 1:
            raise InputError(f"corpus_size must be a whole number ≥ 1, got {shown(corpus_size)}")
        return whole_count(corpus_size, "corpus_size")
    from rag_selectivity.io.indexes import corpus_size_of_index

    size = corpus_size_of_index(corpus_size)
    if not size:
        kind = type(corpus_size).__name__
        raise InputError(f"corpus_size: {kind} does not tell how many passages it can return; give the number")
    return size
