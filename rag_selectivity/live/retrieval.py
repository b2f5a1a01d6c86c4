"""One retrieval as it happened: what adapters hand in, and a monitor and a trace take."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.tables.ids import check_ids


class Question(str):
    """The text of a question as its id, where an adapter found it in the labels; a trace without texts hides it."""


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
    texts : {passage: text}, optional
        For a trace that needs them.
    id : str, optional
        The application's own id of the request. It joins an outcome that becomes known later: `Monitor.outcome`.
    arm : str, optional
        The arm of an A/B test.
    outcome : number or bool, optional
        The application's own success, from 0 to 1: an accepted answer, a rating divided by its maximum.

    Raises
    ------
    InputError
        If `shown` or `pool` is no list of ids (a text, say, or pairs), `failed` is neither true nor false, `tokens` or
        `seconds` is negative or no number, `texts` is no dict, `query`, `query_id`, `id` or `arm` is no text, or the
        outcome is not from 0 to 1.
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
    texts: Mapping[str, str] | None = None
    id: str | None = None
    arm: str | None = None
    outcome: float | None = None

    def __post_init__(self) -> None:
        shown = _checked_ids(self.shown, "shown")
        object.__setattr__(self, "shown", () if self.failed else shown)
        if self.pool is not None:
            object.__setattr__(self, "pool", _checked_ids(self.pool, "pool"))
        if self.failed.__class__ is not bool and not isinstance(self.failed, np.bool_):
            raise InputError(f"Retrieval: failed must be True or False, got {self.failed!r}")
        for name, amount in (("tokens", self.tokens), ("seconds", self.seconds)):
            is_odd = not isinstance(amount, Real) or amount < 0 or (isinstance(amount, int) and amount >= 1 << 63)
            if amount is not None and is_odd:
                raise InputError(f"Retrieval: {name} must be a number ≥ 0, got {amount!r}")
        if self.texts is not None and not isinstance(self.texts, Mapping):
            raise InputError(f"Retrieval: texts must be {{passage: text}}, got {self.texts!r}")
        for name, text in (("query", self.query), ("id", self.id), ("query_id", self.query_id), ("arm", self.arm)):
            if not isinstance(text, str) and (text is not None or name == "query"):
                raise InputError(f"Retrieval: {name} must be a text, got {text!r}")
        if self.outcome is not None:
            object.__setattr__(self, "outcome", checked_outcome(self.outcome))

    def name_in(self, labels: Container[str]) -> str | None:
        """The name of the query in the labels, which may be its id or its text; None if they do not have it."""
        if self.query_id is not None and self.query_id in labels:
            return self.query_id
        return self.query if self.query in labels else None


def _checked_ids(ids: Sequence[str], name: str) -> Sequence[str]:
    if ids.__class__ is not tuple:
        if ids.__class__ is not list:
            check_ids(ids, f"Retrieval: {name}")
        # Measured later, when the application may have changed its list.
        ids = list(ids)
    for each in ids:
        if not isinstance(each, (str, Integral)):
            raise InputError(f"Retrieval: {name} must be a list of ids, which are texts; it holds {each!r:.80}")
    return ids


def checked_outcome(outcome: Any) -> float:
    """An outcome from 0 to 1."""
    is_number = isinstance(outcome, (Real, np.bool_))
    if not is_number or not 0 <= outcome <= 1:
        mend = "divide a rating by its range: (rating - 1) / 4 for 1 to 5"
        raise InputError(f"outcome must be True, False or a number from 0 to 1, got {outcome!r}; {mend}")
    return float(outcome)


def approximate_tokens(text: str) -> int:
    """A rough length in tokens: one for four characters.

    >>> approximate_tokens("as short as that")
    4
    """
    return (len(text) + 3) // 4


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages in order: their ids, how many tokens they take together, and their texts where those are wanted.

    `empty` of them have no text, and the scores of `nan_scores` are NaN.
    """

    ids: tuple[str, ...]
    tokens: int | None = None
    texts: tuple[str, ...] | None = None
    empty: int = 0
    nan_scores: int = 0


def union(parts: Sequence[Passages]) -> Passages:
    """The passages of several lists, each once, in their order."""
    if len(parts) == 1:
        return parts[0]
    ids = tuple(dict.fromkeys(id_ for part in parts for id_ in part.ids))
    texts = {id_: text for part in parts for id_, text in zip(part.ids, part.texts or (), strict=False)}
    has_texts = all(part.texts is not None for part in parts)
    return Passages(ids, None, tuple(texts[id_] for id_ in ids) if has_texts else None)
