"""Pairs of tools that a model can hardly tell apart: near-identical names or descriptions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rag_selectivity.live.tools.definitions import ToolDefinition
from rag_selectivity.measures.base import FloatArray

#: From here on two names, or two descriptions, are near-identical.
SIMILAR_FROM = 0.8
#: The pairs of more tools are not looked at, and of more pairs the most similar are kept.
MOST_TOOLS, MOST_PAIRS = 5000, 1000
_ROWS = 256


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

    The 1,000 most similar are returned, of the first 5,000 tools.

    Examples
    --------
    >>> pairs, count = similar_tools([ToolDefinition("get_user"), ToolDefinition("getUsers"), ToolDefinition("stop")])
    >>> count, pairs[0].first, pairs[0].second, round(pairs[0].names, 3)
    (1, 'get_user', 'getUsers', 0.824)
    """
    tools = tools[:MOST_TOOLS]
    names = _Overlaps([_bigrams(tool.name) for tool in tools])
    descriptions = _Overlaps([_word_pairs(tool.description) for tool in tools])
    # first, second, and the two figures of each pair
    best, count = np.zeros((4, 0)), 0
    for start in range(0, len(tools), _ROWS):
        shared, both = names.of_rows(start)
        by_name = _share(2 * shared, both)
        shared, both = descriptions.of_rows(start)
        by_description = _share(shared, both - shared)
        row, column = np.nonzero(np.fmax(by_name, by_description) >= SIMILAR_FROM)
        later = row + start < column
        row, column = row[later], column[later]
        count += len(row)
        found = np.stack([row + start, column, by_name[row, column], by_description[row, column]])
        best = np.concatenate([best, found], axis=1)
        order = np.argsort(-np.nan_to_num(best[2:]).sum(axis=0), kind="stable")
        best = best[:, order[:MOST_PAIRS]]
    return [
        SimilarTools(tools[int(first)].name, tools[int(second)].name, float(by_name), float(by_description))
        for first, second, by_name, by_description in best.T
    ], count


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    """NaN where there is nothing to share."""
    share: FloatArray = np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)
    return share


def _bigrams(name: str) -> list[tuple[str, int]]:
    """The pairs of adjacent letters with the ends of the name; a second copy of one is another."""
    plain = re.sub(r"[\W_]+", "", name.lower())
    seen: Counter[str] = Counter()
    bigrams = []
    for pair in pairwise(f"^{plain}$") if plain else ():
        bigram = "".join(pair)
        seen[bigram] += 1
        bigrams.append((bigram, seen[bigram]))
    return bigrams


def _word_pairs(description: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", description.lower())
    return set(pairwise(words)) or {(word,) for word in words}


class _Overlaps:
    """How many elements sets share, some rows of the table at a time."""

    def __init__(self, sets: Sequence[Collection[Hashable]]) -> None:
        from scipy import sparse

        columns: dict[Hashable, int] = {}
        indices = [columns.setdefault(element, len(columns)) for each in sets for element in each]
        self._sizes = np.array([len(each) for each in sets], float)
        ends = np.concatenate([[0], np.cumsum(self._sizes)]).astype(int)
        shape = (len(sets), max(1, len(columns)))
        self._matrix = sparse.csr_matrix((np.ones(len(indices)), np.array(indices, int), ends), shape=shape)
        self._transposed = self._matrix.T.tocsr()

    def of_rows(self, start: int) -> tuple[FloatArray, FloatArray]:
        """Of some rows with every set: the elements that both have, and the sum of both sizes; 0 if one has none."""
        part = self._matrix[start : start + _ROWS]
        sizes = self._sizes[start : start + _ROWS, None]
        both = np.where((sizes > 0) & (self._sizes > 0), sizes + self._sizes, 0)
        return (part @ self._transposed).toarray(), both


def with_confusions(pairs: Iterable[SimilarTools], confused: Mapping[tuple[str, str], int]) -> tuple[SimilarTools, ...]:
    """The pairs with how often they were confused; the most confused first."""
    counted = []
    for pair in pairs:
        both = confused.get((pair.first, pair.second), 0) + confused.get((pair.second, pair.first), 0)
        counted.append(SimilarTools(pair.first, pair.second, pair.names, pair.descriptions, both))
    return tuple(sorted(counted, key=lambda pair: -pair.confused))
