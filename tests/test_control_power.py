"""What controls can show at most, before any is graded."""

from __future__ import annotations

import json
import math

import pytest
from scipy import stats

from rag_selectivity.trust.control_power import ControlPower, controls_needed, most_bits, queries_to_show
from tests.forked_cli import run_command

pytestmark = pytest.mark.inside


def test_fourteen_bits_want_sixty_thousand_queries() -> None:
    assert queries_to_show(14, 10, 10) == pytest.approx(60_000, rel=0.02)


@pytest.mark.parametrize("queries", [3, 58, 225, 100_000])
@pytest.mark.parametrize(("controls", "depth"), [(1, 1), (3, 10), (10, 3)])
def test_the_limits_are_those_of_clopper_and_pearson(queries, controls, depth) -> None:
    low = stats.binomtest(queries, queries).proportion_ci(0.95, method="exact").low
    up = stats.binomtest(0, queries).proportion_ci(0.95, method="exact").high
    chance = min(1.0, max(1, depth / controls) * up)
    assert most_bits(queries, controls, depth) == pytest.approx(max(0.0, math.log2(low / chance)), rel=1e-9)


@pytest.mark.parametrize("bits", [0.5, 3, 5.5, 5.91])
def test_the_fewest_controls_are_enough_and_one_less_is_not(bits) -> None:
    needed = controls_needed(bits, 225, 10)
    assert most_bits(225, needed, 10) >= bits
    assert needed == 1 or most_bits(225, needed - 1, 10) < bits


def test_where_no_number_of_controls_is_enough_more_queries_are() -> None:
    power = ControlPower.of(225, 3, 10, 6)
    assert power.controls_needed is None
    assert most_bits(power.queries_needed, 10, 10) >= 6 > most_bits(power.queries_needed - 1, 10, 10)


def test_plan_says_what_controls_can_show() -> None:
    assert run_command("plan", "--queries", "225", "--controls", "3", "--show-bits", "6").stdout.splitlines() == [
        "3 controls for each of 225 queries can show at most 4.2 bits at K = 10",
        "6 bits need more queries: 238, with 10 controls for each",
    ]
    told = run_command(
        "plan", "--corpus-size", "58", "--relevant", "4", "--queries", "225", "--controls", "3", "--format", "json"
    )
    assert json.loads(told.stdout)["controls"]["most_bits"] == pytest.approx(4.18, abs=0.01)
    refused = run_command("plan", "--queries", "225")
    assert (refused.returncode, refused.stderr.count("give both --queries and --controls")) == (2, 1)
