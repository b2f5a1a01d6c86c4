"""Pairs of tools that a model can hardly tell apart: near-identical names or descriptions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from rag_selectivity.live.tools.definitions import ToolDefinition

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
        1 − edit distance / length of the longer name, from 0 to 1. Case and separators do not count.
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
    >>> count, pairs[0].first, pairs[0].second, pairs[0].names
    (1, 'get_user', 'getUsers', 0.875)
    """
    tools = tools[:MOST_TOOLS]
    names = [_plain(tool.name) for tool in tools]
    shingles = [_shingles(tool.description) for tool in tools]
    by_name = _pairs_by_name(names)
    by_description = dict(_overlaps(shingles, lambda shared, a, b: shared >= SIMILAR_FROM * (a + b - shared)))
    found = []
    for one, other in {**by_name, **by_description}:
        shared = by_description.get((one, other))
        if shared is None:
            shared = len(shingles[one] & shingles[other])
        union = len(shingles[one]) + len(shingles[other]) - shared
        known = bool(shingles[one] and shingles[other])
        found.append(
            SimilarTools(
                tools[one].name,
                tools[other].name,
                by_name.get((one, other)) or _name_similarity(names[one], names[other]),
                shared / union if known else float("nan"),
            )
        )
    found.sort(key=lambda pair: (-np.nan_to_num(pair.descriptions) - pair.names, pair.first, pair.second))
    return found[:MOST_PAIRS], len(found)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower())


def _shingles(description: str) -> frozenset[Any]:
    words = re.findall(r"\w+", description.lower())
    return frozenset(pairwise(words)) or frozenset(words)


def _pairs_by_name(names: Sequence[str]) -> dict[tuple[int, int], float]:
    # Names at edit distance d share at least (longer length) + 1 − 2d of their bigrams, ends included (Ukkonen 1992):
    # the distance itself is computed for few pairs.
    bigrams = [_bigrams(name) for name in names]
    lengths = np.array([len(name) for name in names])

    def near(shared: Any, a: Any, b: Any) -> Any:
        longer = np.maximum(a, b) - 1
        return shared >= longer + 1 - 2 * np.floor((1 - SIMILAR_FROM) * longer + 1e-9)

    pairs = {}
    for (one, other), _ in _overlaps(bigrams, near):
        if lengths[one] and lengths[other]:
            similarity = _name_similarity(names[one], names[other])
            if similarity >= SIMILAR_FROM:
                pairs[one, other] = similarity
    return pairs


def _bigrams(name: str) -> frozenset[Any]:
    """The bigrams with their ends; a second copy of one is another."""
    seen: Counter[str] = Counter()
    bigrams = set()
    for pair in zip(f"^{name}", f"{name}$", strict=True):
        bigram = "".join(pair)
        seen[bigram] += 1
        bigrams.add((bigram, seen[bigram]))
    return frozenset(bigrams)


def _overlaps(sets: Sequence[frozenset[Any]], wanted: Any) -> Iterable[tuple[tuple[int, int], int]]:
    """The pairs (i < j) of sets whose overlap is as wanted, with its size."""
    from scipy import sparse

    columns: dict[Any, int] = {}
    indices = [columns.setdefault(element, len(columns)) for each in sets for element in each]
    if not indices:
        return
    sizes = np.array([len(each) for each in sets])
    ends = np.concatenate([[0], np.cumsum(sizes)])
    ones = np.ones(len(indices), np.int32)
    matrix = sparse.csr_matrix((ones, np.array(indices), ends), shape=(len(sets), len(columns)))
    transposed = matrix.T.tocsr()
    for start in range(0, len(sets), _ROWS):
        part = (matrix[start : start + _ROWS] @ transposed).tocoo()
        rows, others, shared = part.row + start, part.col, part.data
        chosen = (rows < others) & wanted(shared, sizes[rows], sizes[others])
        for row, other, count in zip(rows[chosen], others[chosen], shared[chosen], strict=True):
            yield (int(row), int(other)), int(count)


def _name_similarity(one: str, other: str) -> float:
    longer = max(len(one), len(other))
    return 1 - _distance(one, other) / longer if longer else 0.0


def _distance(one: str, other: str) -> int:
    """The edit distance (Levenshtein)."""
    above = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, opposite in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != opposite)))
        above = row
    return above[-1]


def with_confusions(pairs: Iterable[SimilarTools], confused: Mapping[tuple[str, str], int]) -> tuple[SimilarTools, ...]:
    """The pairs with how often they were confused; the most confused first."""
    counted = []
    for pair in pairs:
        both = confused.get((pair.first, pair.second), 0) + confused.get((pair.second, pair.first), 0)
        counted.append(SimilarTools(pair.first, pair.second, pair.names, pair.descriptions, both))
    return tuple(sorted(counted, key=lambda pair: -pair.confused))
