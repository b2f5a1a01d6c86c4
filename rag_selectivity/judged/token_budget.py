"""A budget of tokens in place of K: `RA-nWG@2000tok`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rag_selectivity.errors import InputError

#: A budget is this number plus its tokens where depths stand as numbers: above every rank, below the whole list.
_FIRST = 1 << 61
_LARGEST = 1 << 53
_FORM = re.compile(r"\s*(\d{1,16})\s*tok(?:ens?)?\s*", re.IGNORECASE)


class TokenBudget(int):
    """What stands after the @ of a measure that is taken at a budget of tokens.

    The cutoff of each query is then the last passage that fits. As a number, it is above every rank.

    Attributes
    ----------
    tokens : int

    Raises
    ------
    InputError
        If the number of tokens is not from 1 to 2^53.

    >>> TokenBudget.parse("2000tok"), TokenBudget.parse("2000 tokens").tokens, TokenBudget.parse("10")
    (2000tok, 2000, None)
    """

    def __new__(cls, tokens: int) -> TokenBudget:
        """A budget of so many tokens."""
        if not 1 <= tokens <= _LARGEST:
            raise InputError(f"a budget of {tokens} tokens is not from 1 to {_LARGEST:,}: give another one")
        return super().__new__(cls, _FIRST + tokens)

    @classmethod
    def parse(cls, text: str) -> TokenBudget | None:
        """The budget of a text such as 2000tok; None if it is none."""
        found = _FORM.fullmatch(text)
        return None if found is None else cls(int(found[1]))

    @classmethod
    def of(cls, depth: Any) -> TokenBudget | None:
        """The budget that a depth is; None if it is a rank, a recall level or the whole list."""
        return cls(int(depth) - _FIRST) if is_budget(depth) else None

    @property
    def tokens(self) -> int:
        """How many tokens."""
        return int(self) - _FIRST

    def __str__(self) -> str:
        return f"{self.tokens}tok"

    __repr__ = __str__


def named_top(depth: Any) -> str:
    """What is shown at a depth, for a sentence.

    >>> named_top(5), named_top(TokenBudget(2000))
    ('the top 5', 'what fits in 2,000 tokens')
    """
    budget = TokenBudget.of(depth)
    return f"the top {depth}" if budget is None else f"what fits in {budget.tokens:,} tokens"


def is_budget(depth: Any) -> Any:
    """Whether a depth is a budget of tokens; of an array, whether each is: bool[depths]."""
    return (depth > _FIRST) & (depth <= _FIRST + _LARGEST)


def budgets_among(depths: Iterable[Any]) -> list[TokenBudget]:
    """The budgets of tokens among some depths, each once, in order."""
    return sorted({budget for depth in depths if (budget := TokenBudget.of(depth)) is not None})
