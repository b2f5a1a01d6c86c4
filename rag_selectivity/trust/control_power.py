"""What random control passages can show at most, and how many it takes, before any of them is graded.

A control is a passage drawn at random from the passages outside a query's list, and graded by the judge that grades the
list. If the judge finds no control relevant, and every query succeeds, the controls still leave room for a random
success rate up to a limit. The bits between the two are the most that they can show.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rag_selectivity.errors import InputError

#: Level of each of the two one-sided limits.
LEVEL = 0.975
#: A corpus with so many bits over random has a million million passages.
_MOST_BITS = 40


def most_bits(queries: int, controls: int, depth: int, level: float = LEVEL) -> float:
    """The bits over random that controls show if no control is relevant and every query succeeds.

    log2(S_low / p_up). S_low is the lower Clopper-Pearson limit of a success rate with `queries` successes of
    `queries`. p_up is the upper limit of the rate of queries with a relevant control, of which there are none, times
    `depth / controls` where there are fewer controls than slots (union bound).

    Parameters
    ----------
    queries : int
        Queries with controls, from 1.
    controls : int
        Controls of each query, from 1.
    depth : int
        K, the slots of the prompt, from 1.
    level : float
        Of each limit, between 0 and 1.

    Returns
    -------
    float
        In bits; 0 if these controls can show nothing.

    Raises
    ------
    InputError
        If a value is out of range.

    Examples
    --------
    >>> round(most_bits(225, 3, 10), 1), round(most_bits(225, 10, 10), 1), round(most_bits(225, 40, 10), 1)
    (4.2, 5.9, 5.9)
    """
    for name, value in (("queries", queries), ("controls", controls), ("depth", depth)):
        _check_count(name, value)
    if not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, got {level!r}")
    # −expm1 keeps its digits where a million queries leave a tiny rate.
    log_low = math.log1p(-level) / queries
    highest_chance = min(1.0, max(1.0, depth / controls) * -math.expm1(log_low))
    return max(0.0, (log_low - math.log(highest_chance)) / math.log(2))


def controls_needed(bits: float, queries: int, depth: int, level: float = LEVEL) -> int | None:
    """The fewest controls of each query that can show so many bits; None if no number of controls can.

    More than `depth` controls show no more: then only more queries help, see `queries_to_show`.

    Parameters
    ----------
    bits : float
        More than 0.
    queries, depth, level
        As in `most_bits`.

    Raises
    ------
    InputError
        If a value is out of range.

    Examples
    --------
    >>> controls_needed(4, 225, 10), controls_needed(5.9, 225, 10), controls_needed(6, 225, 10)
    (3, 10, None)
    """
    _check_bits(bits)
    _check_count("depth", depth)
    if most_bits(queries, depth, depth, level) < bits:
        return None
    return _fewest(lambda controls: most_bits(queries, controls, depth, level) >= bits)


def queries_to_show(bits: float, controls: int, depth: int, level: float = LEVEL) -> int:
    """The fewest queries with so many controls each that can show so many bits.

    Parameters
    ----------
    bits : float
        More than 0 and at most 40.
    controls, depth, level
        As in `most_bits`.

    Raises
    ------
    InputError
        If a value is out of range.

    Examples
    --------
    >>> queries_to_show(6, 10, 10), queries_to_show(14, 10, 10)
    (238, 60441)
    """
    _check_bits(bits)
    most_bits(1, controls, depth, level)
    return _fewest(lambda queries: most_bits(queries, controls, depth, level) >= bits)


@dataclass(frozen=True, slots=True)
class ControlPower:
    """What a plan of controls can show.

    Attributes
    ----------
    queries, controls, depth : int
        Queries, controls of each query, and K.
    most_bits : float
        The most that they can show; see `most_bits`.
    show_bits : float or None
        The bits that are wanted, if any.
    controls_needed : int or None
        The fewest controls of each query that can show `show_bits`; None if no number can, or none are wanted.
    queries_needed : int or None
        Where no number of controls can show `show_bits`: the fewest queries that can, with `depth` controls each.
    """

    queries: int
    controls: int
    depth: int
    most_bits: float
    show_bits: float | None = None
    controls_needed: int | None = None
    queries_needed: int | None = None

    @classmethod
    def of(cls, queries: int, controls: int, depth: int, show_bits: float | None = None) -> ControlPower:
        """The power of a plan; an InputError if a value is out of range."""
        most = most_bits(queries, controls, depth)
        if show_bits is None:
            return cls(queries, controls, depth, most)
        needed = controls_needed(show_bits, queries, depth)
        more_queries = queries_to_show(show_bits, depth, depth) if needed is None else None
        return cls(queries, controls, depth, most, show_bits, needed, more_queries)


def _fewest(enough: Callable[[int], bool]) -> int:
    """The smallest number that is enough, where every larger number is enough too."""
    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check_bits(bits: float) -> None:
    if not 0 < bits <= _MOST_BITS:
        raise InputError(f"the bits to show (--show-bits) must be more than 0 and at most {_MOST_BITS}, got {bits!r}")


def _check_count(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} must be a whole number ≥ 1, got {value!r}")
