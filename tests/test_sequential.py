"""The test behind alarms, with known truth: it is rarely wrong, and finds a change soon. And quantiles."""

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_selectivity.errors import InputError
from rag_selectivity.inference.sequential import RiseDetector
from rag_selectivity.live.traffic import LogHistogram

pytestmark = pytest.mark.inside

Draw = Callable[[random.Random], float]


def alarm_at(draw: Draw, least: float, run_length: float, seed: int, most: int) -> int:
    """After how many values a rise is shown; `most` if it is not."""
    rng, detector = random.Random(seed), RiseDetector[int](run_length)
    return next((i for i in range(1, most) if detector.add(draw(rng), least, i)), most)


def rate(true: float, limit: float) -> Draw:
    return lambda rng: (rng.random() < true) - limit


#: Values whose mean is exactly 0, and the lowest of them.
AT_THE_LIMIT: dict[str, tuple[Draw, float]] = {
    "a rate of one half": (rate(0.5, 0.5), 0.5),
    "a rate near 0": (rate(0.01, 0.01), 0.01),
    "a rate near 1": (rate(0.99, 0.99), 0.99),
    # Pareto with an infinite variance and the mean 3.
    "a heavy tail": (lambda rng: rng.paretovariate(1.5) - 3, 3.0),
    "success beside chance": (lambda rng: (rng.random() < 4 * (p := rng.choice([0.01, 0.2]))) - 4 * p, 0.8),
}


@pytest.mark.parametrize("name", AT_THE_LIMIT)
def test_false_alarms_are_as_rare_as_promised(name: str) -> None:
    draw, least = AT_THE_LIMIT[name]
    assert np.mean([alarm_at(draw, least, 200, seed, 2000) for seed in range(60)]) >= 200


@pytest.mark.parametrize(("true", "limit", "soon"), [(0.6, 0.4, 300), (0.8, 0.4, 70), (0.2, 0.05, 180)])
def test_a_change_after_long_good_traffic_is_found(true: float, limit: float, soon: int) -> None:
    delays = []
    for seed in range(11):
        rng, detector = random.Random(seed), RiseDetector[int](100_000)
        good, bad = rate(limit / 2, limit), rate(true, limit)
        assert not any(detector.add(good(rng), limit, i) for i in range(3000))
        delays.append(next(i for i in range(20_000) if detector.add(bad(rng), limit, 3000 + i)))
        assert detector.mark is not None
        assert 2900 <= detector.mark <= 3000 + delays[-1]
    assert np.median(delays) <= soon


def test_what_a_detector_cannot_be() -> None:
    for run_length in (1, 0, math.nan, math.inf, True):
        with pytest.raises(InputError, match="must be a number above 1"):
            RiseDetector(run_length)


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e9)), min_size=1, max_size=200), st.floats(0.01, 0.99))
def test_quantiles_are_within_one_percent(values: list[float], share: float) -> None:
    histogram = LogHistogram()
    for value in values:
        histogram.add(value)
    exact = float(np.quantile(values, share, method="inverted_cdf"))
    assert histogram.quantile(share) == pytest.approx(exact, rel=0.0101)


def test_the_histogram_does_not_grow() -> None:
    histogram = LogHistogram()
    for i in range(20_000):
        histogram.add(10 ** (-20 + 40 * i / 20_000))
    assert len(histogram._counts) < 2400
    assert math.isnan(LogHistogram().quantile(0.5))
