"""What random control passages can show at most, and how many it takes, before any of them is graded.

A control is a passage drawn at random from the passages outside a query's list, and graded by the judge that grades the
list. If the judge finds no control relevant, and every query succeeds, the controls still leave room for a random
success rate up to a limit. The bits between the two are the most that they can show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag_selectivity.errors import InputError

#: log of the error of each of the two one-sided limits.
_LOG_TAIL = math.log(0.025)
#: A corpus with so many bits over random has a million million passages.
_MOST_BITS = 40


@dataclass(frozen=True, slots=True)
class ControlPower:
    """What a plan of controls can show.

    Attributes
    ----------
    queries, controls, depth : int
        Queries, controls of each query, and K.
    most_bits : float
        The most that they can show: the bits over random if no control is relevant and every query succeeds.
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
        """The power of a plan: log2(S_low / p_up).

        S_low is the lower Clopper-Pearson limit of a success rate with all queries successful, .025^(1/Q). p_up is the
        upper limit of the rate of queries with a relevant control, of which there are none, 1 − .025^(1/Q), times
        `depth / controls` where there are fewer controls than slots (union bound). More controls than slots show no
        more: then only more queries help.

        Raises
        ------
        InputError
            If a value is out of range.

        Examples
        --------
        >>> [round(ControlPower.of(225, n, 10).most_bits, 1) for n in (3, 10, 40)]
        [4.2, 5.9, 5.9]
        >>> ControlPower.of(225, 3, 10, 4).controls_needed, ControlPower.of(225, 3, 10, 6).queries_needed
        (3, 238)
        """
        for name, value in (("queries", queries), ("controls", controls), ("depth", depth)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} must be a whole number ≥ 1, got {value!r}")
        if show_bits is not None and not 0 < show_bits <= _MOST_BITS:
            raise InputError(
                f"the bits to show (--show-bits) must be more than 0 and at most {_MOST_BITS}, got {show_bits!r}"
            )
        log_low = _LOG_TAIL / queries
        # −expm1 keeps its digits where a million queries leave a tiny rate.
        rate = -math.expm1(log_low)
        highest_chance = min(1.0, max(1.0, depth / controls) * rate)
        most = max(0.0, (log_low - math.log(highest_chance)) / math.log(2))
        if show_bits is None:
            return cls(queries, controls, depth, most)
        # The largest p_up that leaves so many bits, as a multiple of the rate of a draw of K controls.
        times = math.exp(log_low) / (2**show_bits * rate)
        if times >= 1:
            return cls(queries, controls, depth, most, show_bits, math.ceil(depth / times))
        queries_needed = math.ceil(-_LOG_TAIL / math.log1p(2**-show_bits))
        return cls(queries, controls, depth, most, show_bits, None, queries_needed)


def most_bits(queries: int, controls: int, depth: int) -> float:
    """The most bits that so many controls of each query can show; see `ControlPower.of`."""
    return ControlPower.of(queries, controls, depth).most_bits
