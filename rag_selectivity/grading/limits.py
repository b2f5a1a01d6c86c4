"""How fast and how often a judge is asked, and what may be spent."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.results.usage import Usage

#: Names that differ from those of the command line.
_OPTIONS = {
    "answer_tokens": "answer_tokens (--max-answer-tokens)",
    "calls": "calls (--max-calls)",
    "tokens": "tokens (--max-tokens)",
    "cost": "cost (--max-cost)",
}


def _is_number(value: Any) -> bool:
    return isinstance(value, Real)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many requests to send at the same time, how fast, and how often to try again.

    Attributes
    ----------
    concurrency : int
        The most requests at the same time. A run begins with one request, goes on with 4 at the same time, adds one
        after each answer, and halves their number when the endpoint is overloaded.
    rpm, tpm : float or None
        The most requests and tokens in any 60 seconds; None: no limit.
    timeout : float
        The longest time for a request, in seconds.
    attempts : int
        The most requests for a call whose failure may be temporary; after rate limits four times as many.
    backoff : float
        Seconds before the second attempt. They double with each attempt, up to a minute.
    max_wait : float
        The longest wait, in seconds, that an endpoint may ask for (Retry-After), and the longest time without any
        answer while requests fail. After it the run stops.
    answer_tokens : int
        The most tokens of an answer, reasoning included. If an answer is cut, the judge is asked once more, with a
        limit of four times as many tokens.
    give_up_after : int
        The run stops when so many requests in a row fail for the same reason.
    """

    concurrency: int = 16
    rpm: float | None = None
    tpm: float | None = None
    timeout: float = 60.0
    attempts: int = 6
    backoff: float = 1.0
    max_wait: float = 120.0
    answer_tokens: int = 1000
    give_up_after: int = 20

    def __post_init__(self) -> None:
        for name in ("concurrency", "attempts", "answer_tokens", "give_up_after"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{_OPTIONS.get(name, name)} must be a whole number ≥ 1, got {value!r}")
        for name in ("rpm", "tpm", "timeout", "max_wait"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value > 0):
                raise InputError(f"{name} must be more than 0, got {value!r}")
        if not (_is_number(self.backoff) and self.backoff >= 0):
            raise InputError(f"backoff must be a number ≥ 0, got {self.backoff!r}")


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a million prompt tokens and of a million answer tokens."""

    prompt: float
    answer: float

    def of(self, usage: Usage) -> float:
        """What the tokens cost."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.answer) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most requests, tokens or money to spend. Prices are for a million tokens, in the currency of `cost`.

    A budget in money needs `price_in` and `price_out`, or an endpoint that says what a request costs.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    price_in: float | None = None
    price_out: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "cost", "price_in", "price_out"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not (_is_number(value) and value >= 0)):
                raise InputError(f"{_OPTIONS.get(name, name)} must be a number ≥ 0, got {value!r}")
        if (self.price_in is None) != (self.price_out is None):
            given, other = ("in", "out") if self.price_out is None else ("out", "in")
            raise InputError(f"price_{given} is given without price_{other}: give both (--price-in, --price-out)")

    @property
    def prices(self) -> Prices | None:
        """The prices; None if they are unknown."""
        return None if self.price_in is None or self.price_out is None else Prices(self.price_in, self.price_out)
