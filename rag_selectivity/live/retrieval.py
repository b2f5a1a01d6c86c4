"""One retrieval as it happened: what adapters hand in, and a monitor, a trace and a grader take; and many, counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Retrieval", "Traffic", "approximate_tokens"]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One retrieval as it happened.

    Attributes
    ----------
    query : str
        Its text, or whatever the labels know it by.
    shown : sequence of str
        The ids of the passages that the LLM was given, in rank order.
    pool : sequence of str, optional
        The candidates before reranking or selection.
    query_id : str, optional
        Comes before the text when labels are looked up.
    corpus_size : int, optional
        N of this retrieval, where it differs from the monitor's.
    tokens : int, optional
        Of the passages shown.
    seconds : float, optional
    failed : bool
        Whether the retriever raised an error, was cancelled, or returned None. Nothing was shown then.
    empty_passages, nan_scores : int, optional
        Passages among those shown that have no text, and those whose score is NaN.
    grades : {passage: grade}, optional
        Labels of this query that the monitor's own lack.
    texts : {passage: text}, optional
        For a trace or a grader that needs them.
    """

    query: str
    shown: Sequence[str]
    pool: Sequence[str] | None = None
    query_id: str | None = None
    corpus_size: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    failed: bool = False
    empty_passages: int | None = None
    nan_scores: int | None = None
    grades: Mapping[str, int] | None = None
    texts: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """What was seen, labelled or not.

    Attributes
    ----------
    retrievals, labelled : int
        All, and those whose query has labels.
    failed, empty : int
        Retrievals that raised an error, were cancelled, or returned None; and those that returned no passage.
    shown, tokens, seconds : float
        Means over the retrievals that did not fail; NaN where nobody said.
    longest : int
        The most passages shown at once.
    empty_passages, nan_scores : int
        Passages among those shown that have no text, and those whose score is NaN.
    """

    retrievals: int
    labelled: int
    empty: int
    failed: int
    shown: float
    tokens: float
    seconds: float
    longest: int
    empty_passages: int = 0
    nan_scores: int = 0


def approximate_tokens(text: str) -> int:
    """A rough length in tokens: one for four characters.

    >>> approximate_tokens("as short as that")
    4
    """
    return (len(text) + 3) // 4
