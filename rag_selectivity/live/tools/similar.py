"""Pairs of tools that a model can hardly tell apart: near-identical names or descriptions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from rag_selectivity.live.tools.choice import Confusion
from rag_selectivity.live.tools.definitions import ToolDefinition

#: From here on two names, or two descriptions, are near-identical.
SIMILAR_FROM = 0.8
#: The pairs of more tools are not looked at, and of more pairs the most similar are kept.
MOST_TOOLS = MOST_PAIRS = 1000


@dataclass(frozen=True, slots=True)
class SimilarTools:
    """Two tools whose names or descriptions are near-identical.

    Attributes
    ----------
    first, second : str
    names : float
        The share of their pairs of adjacent letters that both names have (Dice), from 0 to 1. Case and separators do
        not count, the ends of the names do.
    descriptions : float
        The share of their pairs of adjacent words that both descriptions have (Jaccard), from 0 to 1; NaN without one.
    confused : int
        Labelled calls in which one of them applied, and the model called the other, which did not.
    """

    first: str
    second: str
    names: float
    descriptions: float
    confused: int = 0


def similar_tools(tools: Sequence[ToolDefinition]) -> tuple[list[SimilarTools], int]:
    """The near-identical pairs (either figure is 0.8 or more), the most similar first; and how many there are.

    The 1,000 most similar are returned, of the first 1,000 tools.

    Examples
    --------
    >>> pairs, count = similar_tools([ToolDefinition("get_user"), ToolDefinition("getUsers"), ToolDefinition("stop")])
    >>> count, pairs[0].first, pairs[0].second, round(pairs[0].names, 3)
    (1, 'get_user', 'getUsers', 0.824)
    """
    pairs = []
    sides = [(tool.name, _bigrams(tool.name), _word_pairs(tool.description)) for tool in tools[:MOST_TOOLS]]
    for (first, letters, words), (second, other_letters, other_words) in combinations(sides, 2):
        sizes = len(letters) + len(other_letters), len(words | other_words)
        names = 2 * len(letters & other_letters) / sizes[0] if letters and other_letters else math.nan
        descriptions = len(words & other_words) / sizes[1] if words and other_words else math.nan
        if names >= SIMILAR_FROM or descriptions >= SIMILAR_FROM:
            pairs.append(SimilarTools(first, second, names, descriptions))
    pairs.sort(key=lambda pair: -sum(figure for figure in (pair.names, pair.descriptions) if figure == figure))
    return pairs[:MOST_PAIRS], len(pairs)


def _bigrams(name: str) -> set[tuple[str, int]]:
    """The pairs of adjacent letters with the ends of the name; a second copy of one is another."""
    plain = re.sub(r"[\W_]+", "", name.lower())
    counts = Counter(map("".join, pairwise(f"^{plain}$"))) if plain else Counter[str]()
    return {(pair, copy) for pair, count in counts.items() for copy in range(count)}


def _word_pairs(description: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", description.lower())
    return set(pairwise(words)) or {(word,) for word in words}


def with_confusions(pairs: Iterable[SimilarTools], cells: Iterable[Confusion]) -> tuple[SimilarTools, ...]:
    """The pairs with how often they were confused; the most confused first."""
    confused: Counter[frozenset[str]] = Counter()
    for cell in cells:
        if cell.called is not None and not cell.right:
            for name in cell.expected:
                confused[frozenset((name, cell.called))] += cell.calls
    counted = (replace(pair, confused=confused[frozenset((pair.first, pair.second))]) for pair in pairs)
    return tuple(sorted(counted, key=lambda pair: -pair.confused))
