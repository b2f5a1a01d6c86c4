"""Usage: the tokens of calls to a judge."""

from __future__ import annotations

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
