"""What controls can show at most, before any is graded."""

from __future__ import annotations

import json
import math

import pytest
from scipy import stats

from tests.forked_cli import run_command

pytestmark = pytest.mark.contract


def power(queries: int, controls: int, depth: int = 10, bits: float = 6.0) -> dict:
    sizes = ("--queries", queries, "--controls", controls, "--show-k", depth, "--show-bits", bits)
    done = run_command("plan", *map(str, sizes), "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["controls"]


@pytest.mark.parametrize(("queries", "controls", "depth"), [(3, 3, 10), (58, 1, 1), (225, 10, 3), (100_000, 3, 10)])
def test_the_limits_are_those_of_clopper_and_pearson(queries, controls, depth) -> None:
    low = stats.binomtest(queries, queries).proportion_ci(0.95, method="exact").low
    up = stats.binomtest(0, queries).proportion_ci(0.95, method="exact").high
    most = max(0.0, math.log2(low / min(1.0, max(1, depth / controls) * up)))
    assert power(queries, controls, depth)["most_bits"] == pytest.approx(most, rel=1e-9)


@pytest.mark.parametrize("bits", [3, 5.5, 5.91])
def test_the_fewest_controls_are_enough_and_one_less_is_not(bits) -> None:
    needed = power(225, 3, bits=bits)["controls_needed"]
    assert power(225, needed)["most_bits"] >= bits > power(225, needed - 1)["most_bits"]


@pytest.mark.parametrize(("bits", "about"), [(6, 238), (14, 60_441)])
def test_where_no_number_of_controls_is_enough_more_queries_are(bits, about) -> None:
    planned = power(225, 3, bits=bits)
    assert (planned["controls_needed"], planned["queries_needed"]) == (None, about)
    assert power(about, 10)["most_bits"] >= bits > power(about - 1, 10)["most_bits"]


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
