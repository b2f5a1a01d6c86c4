"""One retrieval as it happened: what adapters hand in, and a monitor and a trace take; and many, counted."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.tables.ids import check_ids

__all__ = ["Retrieval", "Traffic", "approximate_tokens"]

_TEXT = {str}


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
    text_weight : int
        How many retrievals its `tokens` and `empty_passages` stand for, if an adapter reads the texts of a random
        sample only; 0 if it did not read them here.
    grades : {passage: grade}, optional
        Labels of this query that the monitor's own lack.
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
        `seconds` is negative or no number, `grades` or `texts` is no dict, or `query`, `query_id`, `id` or `arm` is no
        text.
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
    id: str | None = None
    arm: str | None = None
    outcome: float | None = None
    text_weight: int = 1

    def __post_init__(self) -> None:
        if self.shown.__class__ is not list and self.shown.__class__ is not tuple:
            check_ids(self.shown, "Retrieval: shown")
            object.__setattr__(self, "shown", list(self.shown))
        if self.pool is not None and self.pool.__class__ is not list and self.pool.__class__ is not tuple:
            check_ids(self.pool, "Retrieval: pool")
            object.__setattr__(self, "pool", list(self.pool))
        _check_each(self.shown, "shown")
        if self.pool is not None:
            _check_each(self.pool, "pool")
        if self.failed.__class__ is not bool and not isinstance(self.failed, np.bool_):
            raise InputError(f"Retrieval: failed must be True or False, got {self.failed!r}")
        if self.tokens is not None:
            _check_amount(self.tokens, "tokens")
        if self.seconds is not None:
            _check_amount(self.seconds, "seconds")
        if self.grades is not None and not isinstance(self.grades, Mapping):
            raise InputError(f"Retrieval: grades must be {{passage: grade}}, got {self.grades!r}")
        if self.texts is not None and not isinstance(self.texts, Mapping):
            raise InputError(f"Retrieval: texts must be {{passage: text}}, got {self.texts!r}")
        if not isinstance(self.query, str):
            raise InputError(f"Retrieval: query must be a text, got {self.query!r}")
        for name, value in (("id", self.id), ("query_id", self.query_id), ("arm", self.arm)):
            if value is not None and not isinstance(value, str):
                raise InputError(f"Retrieval: {name} must be a text, got {value!r}")

    def name_in(self, labels: Container[str]) -> str | None:
        """The name of the query in the labels, which may be its id or its text; None if they do not have it."""
        if self.query_id is not None and self.query_id in labels:
            return self.query_id
        return self.query if self.query in labels else None


def _check_each(ids: Sequence[str], name: str) -> None:
    if _TEXT.issuperset(map(type, ids)):
        return
    for each in ids:
        if not isinstance(each, (str, Integral)):
            raise InputError(f"Retrieval: {name} must be a list of ids, which are texts; it holds {each!r:.80}")


def _check_amount(value: float, name: str) -> None:
    if not isinstance(value, Real) or value < 0 or (isinstance(value, int) and value >= 1 << 63):
        raise InputError(f"Retrieval: {name} must be a number ≥ 0, got {value!r}")


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
        Means over the retrievals that did not fail; NaN where nobody said. An adapter may read texts in a random sample
        of the retrievals without labels, each of which then counts for those that it stands for; this concerns
        `tokens`, its quantiles and `empty_passages`.
    tokens_known : int
        Retrievals whose tokens were counted.
    tokens_p50, tokens_p95, seconds_p50, seconds_p95 : float
        Quantiles over the same retrievals, each at most 1 % off: half of the retrievals have at most the p50, 95 % at
        most the p95.
    sampled : int
        Retrievals that were drawn by the `sample_rate`, so that they could be measured, traced and graded.
    longest : int
        The most passages shown at once.
    empty_passages, nan_scores : int
        Passages among those shown that have no text, and those whose score is NaN. The first is an estimate if texts
        were read in a sample only.
    outcomes : int
        Outcomes of the application.
    outcome : float
        Their mean; NaN without one.
    outcome_low, outcome_high : float
        The 95 % interval of the mean, for independent outcomes; NaN with fewer than two.
    lost_outcomes : int
        Outcomes whose retrieval was not known, or no longer.
    arms : {arm: Traffic}
        The same for each arm; empty unless retrievals name arms.
    not_traced : int
        Retrievals and late outcomes that the trace lacks, since it could not be written.
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
    tokens_p50: float = math.nan
    tokens_p95: float = math.nan
    seconds_p50: float = math.nan
    seconds_p95: float = math.nan
    sampled: int = 0
    outcomes: int = 0
    outcome: float = math.nan
    outcome_low: float = math.nan
    outcome_high: float = math.nan
    lost_outcomes: int = 0
    arms: Mapping[str, Traffic] = field(default_factory=dict)
    tokens_known: int = 0
    not_traced: int = 0


def approximate_tokens(text: str) -> int:
    """A rough length in tokens: one for four characters.

    >>> approximate_tokens("as short as that")
    4
    """
    return (len(text) + 3) // 4
