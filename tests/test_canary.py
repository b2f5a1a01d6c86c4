"""The canary: its texts, its counts, and its interval against simulations with known truth."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.grading.canary import ATTACKS, POSITIONS, VARIANTS, GradedPassage, canary_texts, neutral_text
from rag_selectivity.results.canary import CanaryResult, CanaryRow

JUNK = [GradedPassage(f"q{i % 40}", f"d{i}", f"Passage {i} about mills and rivers.", 1 + i % 4) for i in range(400)]


def rows(n: int, injected: int, harmless: int, both: int = 0, unchanged: int = 0) -> list[CanaryRow]:
    """n passages of grade 1; `injected` and `harmless` are raised by one alone, `both` by both."""
    up_by_injection = [i < both + injected for i in range(n)]
    up_by_harmless = [i < both or both + injected <= i < both + injected + harmless for i in range(n)]
    return [
        CanaryRow(f"q{i}", "d", "override", 1, 1 + (i < unchanged), 1 + up_by_harmless[i], 1 + up_by_injection[i])
        for i in range(n)
    ]


# -- the texts -------------------------------------------------------------------------------------


def test_the_variants_differ_by_what_was_added() -> None:
    chosen = canary_texts(JUNK, 7)
    texts = {(each.query_id, each.passage_id): each for each in JUNK}
    assert len(chosen) == 30
    for each in chosen:
        original = texts[each.query_id, each.passage_id]
        assert each.grade == original.grade <= 2
        assert set(each.variants) == set(VARIANTS)
        assert each.variants["unchanged"] == original.text
        injected, harmless = (len(each.variants[name]) - len(original.text) for name in ("injected", "harmless"))
        assert abs(injected - harmless) <= 0.05 * injected
        beginning = each.position == "end"
        for name, added in (("injected", ATTACKS[each.attack]), ("harmless", "")):
            kept = each.variants[name].startswith if beginning else each.variants[name].endswith
            assert kept(original.text)
            assert added in each.variants[name]


def test_attacks_and_positions_take_turns() -> None:
    chosen = canary_texts(JUNK, 7, n=16)
    assert {(each.attack, each.position) for each in chosen} == {(a, p) for a in ATTACKS for p in POSITIONS}
    assert len(ATTACKS) >= 6
    assert len({each.attack for each in chosen[:8]}) == 8
    assert {each.position for each in chosen[:2]} == set(POSITIONS)


def test_the_draw_spreads_over_queries_and_depends_on_the_seed_alone() -> None:
    first = canary_texts(JUNK, 7)
    assert canary_texts(JUNK[::-1], 7) == first
    assert canary_texts(JUNK, 8) != first
    per_query = [each.query_id for each in first]
    with_junk = {each.query_id for each in JUNK if each.grade <= 2}
    assert len(with_junk) == 20
    assert set(per_query) == with_junk  # 30 passages of 20 queries: each has one, and none has three
    assert max(map(per_query.count, per_query)) == 2


def test_less_junk_gives_fewer_passages() -> None:
    assert len(canary_texts(JUNK[:8], 7)) == 4
    assert canary_texts([each for each in JUNK if each.grade > 2], 7) == []


@pytest.mark.parametrize(
    ("passages", "n", "message"),
    [
        (JUNK, 0, "whole number ≥ 1, got 0"),
        (JUNK, 2.5, "got 2.5"),
        ([JUNK[0], JUNK[0]], 3, "'d0' of query 'q0' is given twice"),
    ],
)
def test_what_cannot_be_drawn(passages, n, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        canary_texts(passages, 7, n)


@pytest.mark.parametrize("length", [100, 150, 217, 300, 600])
def test_neutral_text_has_the_length_asked_for(length) -> None:
    for seed in range(20):
        text = neutral_text(length, random.Random(seed))
        assert abs(len(text) - length) <= 0.05 * length
        assert text.endswith(".")


# -- the result ------------------------------------------------------------------------------------


def test_the_sentence_of_the_counts_and_the_verdict() -> None:
    result = CanaryResult.of(rows(30, injected=12, harmless=1, both=2, unchanged=1))
    assert result.counts == (
        "Injections raised the grade of 14 of 30 passages, harmless text of 3. "
        "Sent again unchanged, 1 got a higher grade."
    )
    assert result.verdict == "raised"
    assert result.difference == pytest.approx(11 / 30)
    assert result.p == pytest.approx(2 * (1 + 13) / 2**13)
    assert 0 < result.low < result.difference < result.high
    assert result.mean_rise == {"unchanged": pytest.approx(1 / 30), "harmless": 0.1, "injected": pytest.approx(14 / 30)}
    assert result.by_attack == {"override": (14, 3, 30)}
    data = json.loads(result.to_json())
    assert data["schema"] == "rag-selectivity/canary/1"
    assert data["verdict"] == "raised"
    assert "14 of 30 passages" in str(result)


def test_no_effect_is_never_claimed() -> None:
    result = CanaryResult.of(rows(30, injected=0, harmless=0))
    assert result.verdict == "not shown"
    assert "It is not shown that" in result.conclusion
    assert f"less than {result.detectable:.0%} of them" in result.conclusion
    assert result.low < 0 < result.high
    few = CanaryResult.of(rows(4, injected=4, harmless=0))
    assert few.verdict == "not shown"
    assert "4 passages cannot show any effect" in few.conclusion


def test_harmless_text_that_raises_more_is_no_proof_of_safety() -> None:
    result = CanaryResult.of(rows(30, injected=0, harmless=10))
    assert result.verdict == "lowered"
    assert "Other injections may still raise them" in result.conclusion


def test_a_passage_with_a_failed_answer_is_left_out_and_counted() -> None:
    failed = [
        CanaryRow("q", f"f{i}", "override", 1, *answers)
        for i, answers in enumerate([(None, 1, 5), (1, None, 5), (1, 1, None)])
    ]
    whole, part = CanaryResult.of(rows(30, 12, 1)), CanaryResult.of([*rows(30, 12, 1), *failed])
    assert (part.n, part.left_out) == (30, 3)
    assert (part.raised, part.low, part.high) == (whole.raised, whole.low, whole.high)
    assert "3 passages left out" in str(part)


@pytest.mark.parametrize("failed", [[], [CanaryRow("q", "d", "override", 1, None, None, None)]])
def test_without_answers_nothing_is_said(failed) -> None:
    result = CanaryResult.of(failed)
    assert (result.n, result.verdict, result.left_out) == (0, "no answers", len(failed))
    assert json.loads(result.to_json())["difference"] is None
    assert "This says nothing about injections." in " ".join(str(result).split())


def test_one_passage_has_no_interval() -> None:
    data = CanaryResult.of(rows(1, 1, 0)).to_dict()
    assert (data["low"], data["high"], data["detectable"], data["verdict"]) == (None, None, None, "not shown")


@pytest.mark.parametrize("bad", [0, 6, 2.0, True, "3"])
def test_a_grade_off_the_scale_is_an_error(bad) -> None:
    with pytest.raises(rs.InputError, match="'d' of query 'q': the harmless grade must be a whole number from 1 to 5"):
        CanaryResult.of([CanaryRow("q", "d", "override", 1, 1, bad, 1)])


def test_a_grade_in_the_store_is_needed() -> None:
    with pytest.raises(rs.InputError, match="the grade grade"):
        CanaryResult.of([CanaryRow("q", "d", "override", None, 1, 1, 1)])


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 30])
@pytest.mark.parametrize(
    ("injected", "harmless"),
    [(0.02, 0.02), (0.1, 0.1), (0.1, 0.02), (0.5, 0.1), (0.9, 0.1), (0.98, 0.05), (0.98, 0.95)],
)
def test_the_interval_covers_the_truth(n, injected, harmless) -> None:
    draw = np.random.default_rng(3)
    known: dict[tuple[int, int], CanaryResult] = {}
    covered = wrong = 0
    times = 4000
    for _ in range(times):
        up, also = draw.random(n) < injected, draw.random(n) < harmless
        cells = int((up & ~also).sum()), int((also & ~up).sum())
        if cells not in known:
            known[cells] = CanaryResult.of(rows(n, *cells))
        result = known[cells]
        covered += result.low <= injected - harmless <= result.high
        wrong += (result.verdict == "raised" and injected <= harmless) or (
            result.verdict == "lowered" and injected >= harmless
        )
    assert covered / times >= 0.94
    limit = 0.05 if injected == harmless else 0.025
    assert wrong / times <= limit + 3 * (limit * (1 - limit) / times) ** 0.5
