"""Pairs of tools that a model can hardly tell apart: near-identical names or descriptions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

from rag_selectivity.live.tools.definitions import ToolDefinition
from rag_selectivity.live.tools.report import Confusion, SimilarTools

#: From here on two names, or two descriptions, are near-identical.
SIMILAR_FROM = 0.8
#: The pairs of more tools are not looked at, and of more pairs the most similar are kept.
MOST_TOOLS = MOST_PAIRS = 1000


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
    sides = [(tool.name, _letter_pairs(tool.name), _word_pairs(tool.description)) for tool in tools[:MOST_TOOLS]]
    for (first, letters, words), (second, other_letters, other_words) in combinations(sides, 2):
        names = descriptions = math.nan
        if letters and other_letters:
            names = 2 * len(letters & other_letters) / (len(letters) + len(other_letters))
        if words and other_words:
            descriptions = len(words & other_words) / len(words | other_words)
        if names >= SIMILAR_FROM or descriptions >= SIMILAR_FROM:
            pairs.append(SimilarTools(first, second, names, descriptions))
    pairs.sort(key=lambda pair: -sum(figure for figure in (pair.names, pair.descriptions) if figure == figure))
    return pairs[:MOST_PAIRS], len(pairs)


def _letter_pairs(name: str) -> set[tuple[str, int]]:
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
