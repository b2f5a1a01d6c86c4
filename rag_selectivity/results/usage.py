"""What asking a model took: the tokens of its calls, and the calls that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from rag_selectivity.results.plain import Plain

#: No request takes more tokens, and no store overflows by so many: the largest contexts hold a tenth of it.
_MOST_TOKENS = 10**8


class Usage(Plain):
    """The number of tokens of a call, in the prompt and in the completion."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens)

    @property
    def total(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def is_possible(self) -> bool:
        """Whether one request can have taken so many tokens.

        >>> Usage(500, 20).is_possible, Usage(10**30, 20).is_possible, Usage(-1, 20).is_possible
        (True, False, False)
        """
        return 0 <= self.prompt_tokens <= _MOST_TOKENS and 0 <= self.completion_tokens <= _MOST_TOKENS


class Asked(Plain, kw_only=True):
    """What asking a model took, and how it ended.

    Attributes
    ----------
    usage : Usage
    cost : float or None
        In the currency of the prices; None without prices, unless the endpoint says what a request costs.
    failed : int
        What failed: labels, or calls.
    errors : {kind: count}
    last_error : str or None
        The message of the last failure.
    stopped : str or None
        Why it ended before the end.
    stopped_by : {"budget", "endpoint", "interrupted"} or None
        The kind of that reason.
    """

    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    failed: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    last_error: str | None = None
    stopped: str | None = None
    stopped_by: str | None = None
