"""A seeded search over random worlds: interval, p-value and value of `answers` never contradict."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.answers.figures import Scored, contrasts, estimates
from rag_selectivity.results.answers import CLOSED_BOOK, IDEAL, JUNK, RANDOM, SCORES, WORST_FIRST, Shown

pytestmark = pytest.mark.inside

#: A p-value this near to 1 − level may fall to either side by rounding.
_NEAR = 1e-9


def agrees(p: float, low: float, high: float, value: float, level: float) -> bool:
    """Whether an interval contains its value, and excludes 0 where, and only where, the p-value is small enough."""
    if any(map(math.isnan, (low, high, value))):
        return math.isnan(low) == math.isnan(high)
    if not low <= value <= high:
        return False
    if math.isnan(p) or abs(p - (1 - level)) < _NEAR:
        return True
    return (low > 0 or high < 0) == (p <= 1 - level)


def column(random: np.random.Generator, n: int, low: float, high: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Scores of an ugly kind: rates near 0 and 1, ties, heavy tails, constants; some are missing."""
    rate = random.choice([0.0, 0.03, 0.3, 0.5, 0.9, 1.0])
    values = [
        (random.random(n) < rate).astype(np.float64),
        random.integers(0, 4, n) / 3,
        random.random(n) ** random.choice([0.1, 1.0, 20.0]),
        np.full(n, rate),
    ][random.integers(4)]
    values = low + (high - low) * values
    values[random.random(n) < random.choice([0.0, 0.0, 0.2])] = np.nan
    return values


def test_intervals_of_answers_agree_with_their_p_values() -> None:
    """Every contrast of 25 random tables of scores, with and without clusters."""
    random = np.random.default_rng(20)
    shown = [
        Shown("a", 1),
        Shown("a", 4),
        Shown("b", 1),
        Shown("b", 4),
        Shown("a", 4, WORST_FIRST),
        Shown(CLOSED_BOOK, 0),
    ]
    shown += [Shown(IDEAL, None), Shown(RANDOM, 1), Shown(RANDOM, 4), Shown(JUNK, 0), Shown(JUNK, 2), Shown(JUNK, 5)]
    seen: Counter[str] = Counter()
    decided = 0
    for _ in range(25):
        n = int(random.choice([1, 2, 4, 7, 20, 60]))
        kind = SCORES[str(random.choice(sorted(SCORES)))]
        low, high = (kind.low, kind.high) if math.isfinite(kind.high) else (0.0, 1.0)
        values = {each: column(random, n, low, high) for each in shown}
        if kind.is_correct:
            values = {key: np.where(np.isnan(row), row, (row > (low + high) / 2) * 1.0) for key, row in values.items()}
        queries = tuple(f"q{i}" for i in range(n))
        level = float(random.choice([0.8, 0.95, 0.99]))
        clusters = {query: f"c{i // 3}" for i, query in enumerate(queries)} if random.random() < 0.3 else None
        bootstrap = rs.Bootstrap(200, int(random.integers(99)), level, clusters=clusters)
        scored = Scored(kind, queries, values)
        for each in contrasts(scored, bootstrap):
            seen[each.kind] += 1
            assert agrees(each.p, each.low, each.high, each.value, level), (each, level)
            assert math.isnan(each.p) or each.p_adjusted >= each.p - 1e-12, each
            decided += each.p <= 1 - level
        for estimate in estimates(scored, bootstrap).values():
            assert math.isnan(estimate.low) or estimate.low <= estimate.value <= estimate.high, estimate
    assert len(seen) == 6
    assert decided > 20
