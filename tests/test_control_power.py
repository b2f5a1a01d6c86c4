"""What controls can show at most, before any is graded."""

import math

import pytest
from scipy import stats

import rag_selectivity as rs
from rag_selectivity.trust.controls import ControlPower

pytestmark = pytest.mark.inside


def power(queries: int, controls: int, depth: int = 10, bits: float = 6.0) -> ControlPower:
    return ControlPower.of(queries, controls, depth, bits)


@pytest.mark.parametrize(("queries", "controls", "depth"), [(3, 3, 10), (58, 1, 1), (225, 10, 3), (100_000, 3, 10)])
def test_the_limits_are_those_of_clopper_and_pearson(queries, controls, depth) -> None:
    low = stats.binomtest(queries, queries).proportion_ci(0.95, method="exact").low
    up = stats.binomtest(0, queries).proportion_ci(0.95, method="exact").high
    most = max(0.0, math.log2(low / min(1.0, max(1, depth / controls) * up)))
    assert power(queries, controls, depth).most_bits == pytest.approx(most, rel=1e-9)


@pytest.mark.parametrize("bits", [3, 5.5, 5.91])
def test_the_fewest_controls_are_enough_and_one_less_is_not(bits) -> None:
    needed = power(225, 3, bits=bits).controls_needed
    assert power(225, needed).most_bits >= bits > power(225, needed - 1).most_bits


@pytest.mark.parametrize(("bits", "about"), [(6, 238), (14, 60_441)])
def test_where_no_number_of_controls_is_enough_more_queries_are(bits, about) -> None:
    planned = power(225, 3, bits=bits)
    assert (planned.controls_needed, planned.queries_needed) == (None, about)
    assert power(about, 10).most_bits >= bits > power(about - 1, 10).most_bits


async def silent(*_: object) -> None:
    """A judge that is never asked."""


def test_a_dry_run_says_what_its_controls_can_show(tmp_path) -> None:
    questions = {f"q{n}": f"question {n}" for n in range(225)}
    passages = {f"d{n}": f"text {n}" for n in range(9)}
    options = {"store": tmp_path / "l.db", "judge": silent, "controls": 3, "dry_run": True}
    planned = rs.grade(questions, passages, {key: ["d0"] for key in questions}, show_bits=6, **options)
    assert planned.control_power == power(225, 3)
    assert [line for line in planned.to_text().splitlines() if "bits" in line] == [
        "3 controls for each of 225 queries can show at most 4.2 bits at K = 10",
        "6 bits need more queries: 238, with 10 controls for each",
    ]
    shallow = rs.grade(questions, passages, {key: ["d0"] for key in questions}, pool_depth=3, **options)
    assert shallow.control_power.depth == 3
