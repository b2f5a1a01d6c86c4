"""What a run may spend, and how fast it asks: for the library, and as parameters of the commands with a judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from rag_selectivity.errors import InputError

if TYPE_CHECKING:
    from rag_selectivity.results.usage import Usage


def _is_number(value: Any, least: float) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and bool(value >= least)


def _check(given: Any, names: Sequence[str], holds: Callable[[Any], bool], rule: str) -> None:
    for name in names:
        value = getattr(given, name)
        if not holds(value):
            raise InputError(f"{name} must be {rule}, got {value!r}")


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
    max_answer_tokens : int
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
    max_answer_tokens: int = 1000
    give_up_after: int = 20

    def __post_init__(self) -> None:
        whole = ("concurrency", "attempts", "max_answer_tokens", "give_up_after")
        _check(self, whole, lambda value: isinstance(value, int) and _is_number(value, 1), "a whole number ≥ 1")
        positive = ("rpm", "tpm", "timeout", "max_wait")
        _check(self, positive, lambda value: value is None or (_is_number(value, 0) and value > 0), "more than 0")
        _check(self, ("backoff",), lambda value: _is_number(value, 0), "a number ≥ 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most requests, tokens or money to spend. Prices are for a million tokens, in the currency of `max_cost`.

    A budget in money needs `price_in` and `price_out`, or an endpoint that says what a request costs.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    price_in: float | None = None
    price_out: float | None = None

    def __post_init__(self) -> None:
        amounts = ("max_calls", "max_tokens", "max_cost", "price_in", "price_out")
        _check(self, amounts, lambda value: value is None or _is_number(value, 0), "a number ≥ 0")
        if (self.price_in is None) != (self.price_out is None):
            raise InputError("only one of price_in and price_out is given: give both (judge.price_in, judge.price_out)")

    def price(self, usage: Usage | None) -> float | None:
        """What tokens cost; None if the prices or the tokens are unknown."""
        if usage is None or self.price_in is None or self.price_out is None:
            return None
        return (usage.prompt_tokens * self.price_in + usage.completion_tokens * self.price_out) / 1e6
