"""Bits from a published rate, beside exact fractions and beside the report of counts that have this rate."""

import json
import math
from fractions import Fraction
from math import comb

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from tests.forked_cli import run_command

pytestmark = pytest.mark.inside


def exact_chance(size: int, relevant: int, depth: int, m: int) -> Fraction:
    """P[X >= m] of a draw, by counting."""
    ways = sum(
        comb(relevant, k) * comb(size - relevant, depth - k)
        for k in range(m, min(relevant, depth) + 1)
        if depth - k <= size - relevant
    )
    return Fraction(ways, comb(size, depth))


def log2(value: Fraction | float) -> float:
    exact = Fraction(value)
    with mpmath.workdps(400):
        return float(mpmath.log(mpmath.mpf(exact.numerator) / exact.denominator, 2))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[float, int, int, list[int], int]:
    size = draw(st.integers(1, 400))
    m = draw(st.integers(1, 3))
    counts = draw(st.lists(st.integers(0, size), min_size=1, max_size=4))
    return draw(st.floats(1e-9, 1)), size, draw(st.integers(1, size)), counts, m


@given(worlds())
@settings(max_examples=200, deadline=None)
def test_bits_are_those_of_exact_fractions(world) -> None:
    rate, size, depth, counts, m = world
    able = [count for count in counts if count >= m]
    if not able or depth < m:
        with pytest.raises(rs.InputError, match="can succeed"):
            rs.bits(rate, size, depth, counts, m=m)
        return
    chance = sum((exact_chance(size, count, depth, m) for count in able), Fraction(0)) / len(able)
    found = rs.bits(rate, size, depth, counts, m=m)
    assert found.ceiling == pytest.approx(-log2(chance), rel=1e-12, abs=1e-300)
    assert found.headroom == pytest.approx(-log2(rate), rel=1e-12, abs=1e-300)
    assert found.bor == pytest.approx(log2(Fraction(rate) / chance), rel=1e-9, abs=1e-14)
    assert math.copysign(1, found.ceiling) == math.copysign(1, found.headroom) == 1


def test_near_certainty_keeps_its_digits() -> None:
    found = rs.bits(1.0, 1000, 900, 60)
    miss = 1 - exact_chance(1000, 60, 900, 1)
    assert found.bor == found.ceiling == pytest.approx(-log2(1 - miss), rel=1e-12)
    assert 0 < found.ceiling < 1e-58


def test_the_report_of_counts_with_this_rate_has_the_same_bits() -> None:
    counts = [1, 3, 40, 2]
    judged = rs.JudgedRun.from_counts([500] * 4, [20] * 4, counts, [True, True, True, False])
    report = rs.evaluate_joined({"r": judged}, measures=["BoR", "BoR_max"], depths=[20], bootstrap=None)
    found = rs.bits(0.75, 500, 20, counts)
    assert found.bor == pytest.approx(report["BoR@20"].value, rel=1e-13)
    assert found.ceiling == pytest.approx(report["BoR_max@20"].value, rel=1e-13)


def test_no_success_is_infinitely_far_from_the_ceiling() -> None:
    found = rs.bits(0, 100, 10, 1)
    assert (found.bor, found.headroom) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rate": 85.7}, r"from 0 to 1, got 85.7; is it a percentage\? give 0.857"),
        ({"rate": -0.1}, "from 0 to 1, got -0.1$"),
        ({"rate": math.nan}, "from 0 to 1, got nan$"),
        ({"rate": True}, "from 0 to 1, got True"),
        ({"rate": "0.8"}, "from 0 to 1, got '0.8'"),
        ({"N": 0}, "K is 10; give a depth from 1 to the corpus size N = 0"),
        ({"N": 10.5}, "N is 10.5; give a whole number"),
        ({"K": 0}, "K is 0; give a depth"),
        ({"K": 101}, "K is 101; give a depth from 1 to the corpus size N = 100"),
        ({"R": 101}, "R is 101, more than the corpus size N = 100"),
        ({"R": 1.5}, "must be a whole number, or a list with one for each query"),
        ({"R": [1, 2.5]}, "the number of relevant passages is 2.5"),
        ({"R": []}, "no draw of K = 10 can succeed"),
        ({"R": 0}, "no draw of K = 10 can succeed"),
        ({"m": 0}, "m is 0"),
        ({"m": 11, "R": 50}, "a success needs m = 11"),
    ],
)
def test_what_cannot_be_is_named(values, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        rs.bits(**{"rate": 0.5, "N": 100, "K": 10, "R": 1, **values})


def test_queries_that_cannot_succeed_are_left_out_and_counted() -> None:
    some, able = rs.bits(0.9, 8_841_823, 10, [1, 0, 1, 0, 0]), rs.bits(0.9, 8_841_823, 10, [1, 1])
    assert (some.bor, some.ceiling, some.left_out, able.left_out) == (able.bor, able.ceiling, 3, 0)
    assert "3 queries left out, with too few relevant passages for a success: the rate is taken to be" in str(some)
    assert "left out" not in str(able)
    assert rs.bits(0.5, 100, 10, [1, 2, 3], m=2).left_out == 1
    # A rate over all five, .36, is .9 over the two in which a success is possible: the mend that the text names.
    assert rs.bits(0.36 / (2 / 5), 8_841_823, 10, 1).bor == pytest.approx(able.bor)
    words = ["plan", "--corpus-size", "1000", "--relevant", "1,0", "--depths", "10"]
    assert "left out of all figures" in run_command(*words).stdout
    assert json.loads(run_command(*words, "--format", "json").stdout)["left_out"] == 1
