"""How fast and how often a judge is asked, and what may be spent."""

from __future__ import annotations

from dataclasses import dataclass

from rag_selectivity.errors import InputError
from rag_selectivity.results.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many requests to make, how fast, and how often to try again.

    Attributes
    ----------
    concurrency : int
        The most requests at the same time. A run begins with one request alone, goes on with 4, takes one more after
        every answer, and halves their number when the endpoint is overloaded.
    rpm, tpm : float or None
        The most requests and tokens in any 60 seconds.
    timeout : float
        Seconds for a request.
    attempts : int
        Requests for a call that fails with a kind that may pass.
    backoff : float
        Seconds before the second attempt. They double with every attempt, up to a minute, with jitter.
    max_wait : float
        The longest wait, in seconds, that an endpoint may ask for (Retry-After), and the longest time without any
        answer; beyond it the run stops.
    answer_tokens : int
        The most tokens of an answer, with its reasoning. An answer that is cut is asked for once more with four times
        as many.
    give_up_after : int
        The run stops when so many answers in a row are useless for the same reason.
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
                raise InputError(f"{name} must be a whole number ≥ 1, got {value!r}")
        for name in ("rpm", "tpm", "timeout", "max_wait"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} must be more than 0, got {value!r}")


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a million tokens, of the prompt and of the answer."""

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
            if value is not None and (isinstance(value, bool) or not value >= 0):
                raise InputError(f"{name} must be a number ≥ 0, got {value!r}")
        if (self.price_in is None) != (self.price_out is None):
            raise InputError("the price of a million tokens has two parts: give price_in and price_out")

    @property
    def prices(self) -> Prices | None:
        """The prices; None if they are unknown."""
        return None if self.price_in is None or self.price_out is None else Prices(self.price_in, self.price_out)
