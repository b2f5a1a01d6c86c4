"""How often alarms are false, and how soon a change is found, in simulations with known truth.

    python benchmarks/alarms.py

The test gets made-up figures of retrievals. "At the limit" is the worst case of false alarms; the detector promises a
mean run length of at least 1,000 there, so that false alarms are seen at all. Delays are those of the default, 100,000.
Beside it stands a window of 200 whose mean is compared with the limit.
"""

from __future__ import annotations

import random
import statistics
from collections import deque
from collections.abc import Callable

from rag_selectivity.statistics.sequential import RiseDetector

Draw = Callable[[random.Random], float]
_STREAMS, _LONGEST, _GOOD, _CHANGES = 100, 10_000, 5_000, 51


def share(true: float, limit: float) -> Draw:
    return lambda rng: (rng.random() < true) - limit


def heavy(mean: float, limit: float) -> Draw:
    """Pareto with an infinite variance."""
    return lambda rng: rng.paretovariate(1.5) * mean / 3 - limit


def bits(bits: float, limit: float) -> Draw:
    """limit bits as a multiple of chance minus success, for chances of .002 and .05."""

    def draw(rng: random.Random) -> float:
        chance = rng.choice([0.002, 0.05])
        return 2**limit * chance - (rng.random() < 2**bits * chance)

    return draw


def bursts(limit: float) -> Draw:
    """Failures in bursts of about 20 retrievals, with the limit as their long-run share."""
    state = [False]

    def draw(rng: random.Random) -> float:
        if rng.random() < 1 / 20:
            state[0] = rng.random() < limit
        return state[0] - limit

    return draw


def run_length(draw: Draw, least: float, needed: float, seed: int, longest: int = _LONGEST) -> int:
    rng, detector = random.Random(seed), RiseDetector[int](needed)
    return next((i for i in range(1, longest) if detector.add(draw(rng), least, i)), longest)


def window_alarms(draw: Draw, seed: int) -> int:
    """How often the mean of a window of 200 crosses the limit upwards within the longest run."""
    rng, window, total, above, crossings = random.Random(seed), deque[float](), 0.0, False, 0
    for _ in range(_LONGEST):
        window.append(draw(rng))
        total += window[-1]
        if len(window) > 200:
            total -= window.popleft()
        if len(window) == 200:
            crossings += total > 0 and not above
            above = total > 0
    return crossings


def main() -> None:
    print(f"at the limit, {_STREAMS} streams of {_LONGEST:,}   mean run length   windows: alarms a stream")
    at_limit: dict[str, tuple[Draw, float]] = {
        "Harm > .4": (share(0.4, 0.4), 0.4),
        "failed > .01": (share(0.01, 0.01), 0.01),
        "failed > .99": (share(0.99, 0.99), 0.99),
        "p95(seconds) > 2": (share(0.05, 0.05), 0.05),
        "tokens > 3000, Pareto 1.5": (heavy(3000, 3000), 3000.0),
        "BoR < 2": (bits(2, 2), 1.0),
        "failed > .05, in bursts": (bursts(0.05), 0.05),
    }
    for name, (draw, least) in at_limit.items():
        mean = statistics.mean(run_length(draw, least, 1000, seed) for seed in range(_STREAMS))
        crossings = statistics.mean(window_alarms(draw, seed) for seed in range(10))
        print(f"{name:36} {'≥ ' if mean > 0.5 * _LONGEST else '  '}{mean:13,.0f} {crossings:22.0f}")
    print(f"\nafter {_GOOD:,} good retrievals            from → to   median delay   false, of {_CHANGES}")
    changes: list[tuple[str, float, float, Draw, Draw, float]] = [
        ("Harm > .4", 0.2, 0.45, share(0.2, 0.4), share(0.45, 0.4), 0.4),
        ("Harm > .4", 0.2, 0.6, share(0.2, 0.4), share(0.6, 0.4), 0.4),
        ("Harm > .4", 0.2, 0.9, share(0.2, 0.4), share(0.9, 0.4), 0.4),
        ("failed > .01", 0.002, 0.02, share(0.002, 0.01), share(0.02, 0.01), 0.01),
        ("failed > .01", 0.002, 0.2, share(0.002, 0.01), share(0.2, 0.01), 0.01),
        ("p95(seconds) > 2", 0.02, 0.1, share(0.02, 0.05), share(0.1, 0.05), 0.05),
        ("p95(seconds) > 2", 0.02, 0.5, share(0.02, 0.05), share(0.5, 0.05), 0.05),
        ("tokens > 3000, Pareto 1.5", 1500, 6000, heavy(1500, 3000), heavy(6000, 3000), 3000.0),
        ("BoR < 2", 4, 1.5, bits(4, 2), bits(1.5, 2), 1.0),
        ("BoR < 2", 4, 0, bits(4, 2), bits(0, 2), 1.0),
    ]
    for name, before, after, good, bad, least in changes:
        delays, false = [], 0
        for seed in range(_CHANGES):
            rng, detector = random.Random(seed), RiseDetector[int](100_000)
            false += any(detector.add(good(rng), least, i) for i in range(_GOOD))
            delays.append(next((i for i in range(1, 50_000) if detector.add(bad(rng), least, i)), 50_000))
        print(f"{name:32} {before:>8g} → {after:<6g} {statistics.median(delays):10,.0f} {false:14}")


if __name__ == "__main__":
    main()
