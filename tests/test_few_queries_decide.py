"""Paired differences that one or two further queries could turn: the verdict waits or is marked, and says why."""

import numpy as np
import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract
CODE = "few-queries-decide"


def compared(losses: list[int], gains: list[int]):
    """Precision of two runs: each query of `losses` has so many relevant passages of ten fewer under the new run."""
    labels, new, old = {}, {}, {}
    for i, change in enumerate([-loss for loss in losses] + gains):
        query, kept = f"q{i}", 1 if change < 0 else 0
        labels[query] = {f"d{j}": 1 for j in range(10)}
        have = {"old": kept + max(0, -change), "new": kept + max(0, change)}
        for run, of_run in (("old", old), ("new", new)):
            of_run[query] = [f"d{j}" for j in range(have[run])] + [f"x{j}" for j in range(10 - have[run])]
    return rs.compare(labels, {"old": old, "new": new}, baseline="old", measures=["P"], depths=[10], ids="exact")[
        "new", "P@10"
    ]


@pytest.mark.parametrize(("losses", "ties"), [(8, 0), (10, 0), (10, 60), (12, 0), (20, 0), (21, 0), (30, 300)])
def test_small_losses_are_no_verdict_where_one_gain_would_outweigh_them(losses, ties) -> None:
    row = compared([1] * losses, [0] * ties)
    shown = losses > 10
    assert row.verdict == ("worse" if shown else "no difference shown")
    assert (row.p <= 0.05) == (row.high < 0) == shown
    # Two gains would outweigh up to 20 losses of a tenth.
    assert (CODE in [caveat.code for caveat in row.caveats]) == (losses <= 20)


def test_a_gain_that_was_seen_is_counted_and_needs_no_caveat() -> None:
    row = compared([1] * 8, [8])
    assert row.verdict == "no difference shown"
    assert row.low <= 0 <= row.high
    assert CODE not in [caveat.code for caveat in row.caveats]


def test_interval_p_and_verdict_agree_on_skewed_differences() -> None:
    random = np.random.default_rng(5)
    for _ in range(25):
        losses = random.integers(1, 3, random.integers(5, 25)).tolist()
        gains = random.integers(1, 10, random.integers(0, 3)).tolist()
        row = compared(losses, gains)
        assert (row.p <= 0.05) == (not row.low <= 0 <= row.high), (losses, gains)
