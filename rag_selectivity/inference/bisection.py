"""The place between two numbers where a condition ends, by halving."""

from __future__ import annotations

from collections.abc import Callable


def end_of(holds: Callable[[float], bool], inside: float, outside: float, halvings: int = 60) -> tuple[float, float]:
    """Where a condition ends between a number for which it holds and one for which it does not.

    Returns
    -------
    inside, outside : float
        Two neighbouring numbers: it holds at the first and not at the second.

    >>> tuple(round(x, 9) for x in end_of(lambda x: x * x < 2, 0.0, 2.0))
    (1.414213562, 1.414213562)
    """
    for _ in range(halvings):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside, outside
