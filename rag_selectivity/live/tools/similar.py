"""Pairs of tools that a model can hardly tell apart: near-identical names or descriptions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from rag_selectivity.live.tools.choice import Confusion
from rag_selectivity.live.tools.definitions import ToolDefinition
from rag_selectivity.measures.base import FloatArray

#: From here on two names, or two descriptions, are near-identical.
SIMILAR_FROM = 0.8
#: The pairs of more tools are not looked at, and of more pairs the most similar are kept.
MOST_TOOLS, MOST_PAIRS = 2000, 1000


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

    The 1,000 most similar are returned, of the first 2,000 tools.

    Examples
    --------
    >>> pairs, count = similar_tools([ToolDefinition("get_user"), ToolDefinition("getUsers"), ToolDefinition("stop")])
    >>> count, pairs[0].first, pairs[0].second, round(pairs[0].names, 3)
    (1, 'get_user', 'getUsers', 0.824)
    """
    tools = tools[:MOST_TOOLS]
    shared, both = _overlaps([_bigrams(tool.name) for tool in tools])
    names = _share(2 * shared, both)
    shared, both = _overlaps([_word_pairs(tool.description) for tool in tools])
    descriptions = _share(shared, both - shared)
    places = np.argwhere(np.triu(np.fmax(names, descriptions) >= SIMILAR_FROM, 1))
    figures = np.nan_to_num(np.stack([names[tuple(places.T)], descriptions[tuple(places.T)]])).sum(axis=0)
    best = places[np.argsort(-figures, kind="stable")[:MOST_PAIRS]]
    return [
        SimilarTools(tools[one].name, tools[two].name, float(names[one, two]), float(descriptions[one, two]))
        for one, two in best
    ], len(places)


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    """NaN where there is nothing to share."""
    share: FloatArray = np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)
    return share


def _bigrams(name: str) -> list[tuple[str, int]]:
    """The pairs of adjacent letters with the ends of the name; a second copy of one is another."""
    plain = re.sub(r"[\W_]+", "", name.lower())
    counts = Counter(map("".join, pairwise(f"^{plain}$"))) if plain else Counter[str]()
    return [(pair, copy) for pair, count in counts.items() for copy in range(count)]


def _word_pairs(description: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", description.lower())
    return set(pairwise(words)) or {(word,) for word in words}


def _overlaps(sets: Sequence[Collection[Hashable]]) -> tuple[FloatArray, FloatArray]:
    """Of each pair of sets: the elements that both have, and the sum of both sizes; 0 if one has none."""
    from scipy import sparse

    columns: dict[Hashable, int] = {}
    cells = [(row, columns.setdefault(element, len(columns))) for row, each in enumerate(sets) for element in each]
    places = np.array(cells, int).reshape(-1, 2).T
    matrix = sparse.csr_matrix((np.ones(len(cells)), (places[0], places[1])), shape=(len(sets), max(1, len(columns))))
    sizes = np.array([len(each) for each in sets], float)
    both = np.where((sizes[:, None] > 0) & (sizes > 0), sizes[:, None] + sizes, 0)
    return (matrix @ matrix.T).toarray(), both


def with_confusions(pairs: Iterable[SimilarTools], cells: Iterable[Confusion]) -> tuple[SimilarTools, ...]:
    """The pairs with how often they were confused; the most confused first."""
    confused: Counter[frozenset[str]] = Counter()
    for cell in cells:
        if cell.called is not None and not cell.right:
            for name in cell.expected:
                confused[frozenset((name, cell.called))] += cell.calls
    counted = (replace(pair, confused=confused[frozenset((pair.first, pair.second))]) for pair in pairs)
    return tuple(sorted(counted, key=lambda pair: -pair.confused))
