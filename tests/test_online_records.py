"""Records of credit: joined in any order, and refused or counted where something is wrong with them."""

from random import Random

import pytest

from rag_selectivity import InputError
from rag_selectivity.online import RecordLog, interleave, join_records, preference

pytestmark = pytest.mark.contract


def draft(id_: str, **more) -> dict:
    return {"impression": id_, "query": "q", "team": {"d1": "a", "d2": "b"}, "passages": ["d1", "d2"], **more}


def late(id_: str, passage: str = "d2", number: float = 1.0, **more) -> dict:
    return {"credit_of": id_, "credit": {passage: number}, **more}


def test_credit_joins_in_any_order() -> None:
    rows = [r for i in range(200) for r in (draft(f"i{i}"), late(f"i{i}", f"d{1 + i % 2}"), late(f"i{i}", "d1", 0.5))]
    expected = {f"i{i}": {"d1": 0.5, "d2": 1.0} if i % 2 else {"d1": 0.5} for i in range(200)}
    assert {row["impression"]: row["credit"] for row in join_records(rows)} == expected
    timed = [{**row, "time": place} for place, row in enumerate(rows)]
    for seed in range(3):
        mixed = Random(seed).sample(timed, len(timed))
        assert {row["impression"]: row["credit"] for row in join_records(mixed)} == expected


def test_the_same_credit_twice_counts_once_and_is_counted() -> None:
    joined = join_records([draft("i1"), late("i1"), late("i1"), late("i1", number=0.5), draft("i1")])
    (row,) = joined
    assert row["credit"] == {"d2": 0.5}
    assert joined.faults.counts == {"repeated": 1, "changed": 1}
    assert joined.faults.credits == 3


def test_credit_of_no_draft_is_refused_unless_it_is_rare() -> None:
    rows = [each for i in range(200) for each in (draft(f"i{i}"), late(f"i{i}"))]
    with pytest.raises(InputError, match=r"1 of 1 credits of an impression that was never drafted .*'x', passage 'd2'"):
        list(join_records([draft("i1"), late("x")]))
    joined = join_records([*rows, late("x")])
    assert len(list(joined)) == 200
    assert joined.faults.counts == {"never_drafted": 1}
    assert preference(join_records([*rows[:400], late("x")])).notes[0].startswith("1 of 201 credits of an impression")


def test_credit_for_a_passage_that_was_not_shown() -> None:
    with pytest.raises(InputError, match=r"1 of 1 credits for a passage that was not shown .*passage 'd9'"):
        preference([{**draft("i1"), "credit": {"d9": 1}}])
    good = [{**draft(f"i{i}"), "credit": {"d2": 1}} for i in range(150)]
    found = preference([*good, {**draft("x"), "credit": {"d9": 1}}])
    assert (found.wins, found.ties) == (150, 1)
    assert "1 of 151 credits for a passage that was not shown (record 151" in found.notes[0]


def test_two_drafts_of_one_impression() -> None:
    other = {**draft("i1"), "team": {"d1": "b", "d2": "a"}}
    with pytest.raises(InputError, match="'i1' was drafted at record 1 already, with another list"):
        list(join_records([draft("i1"), other]))


def test_a_log_in_a_file(tmp_path) -> None:
    log = RecordLog(tmp_path / "log.jsonl")
    for i in range(30):
        one = interleave({"a": ["d1", "d2"], "b": ["d2", "d3"]}, k=3, seed=f"i{i}")
        log.draft(one, "q", user=f"u{i}")
        log.credit(one.id, {"d3": 1})
    log.close()
    assert log.lost == 0
    found = preference(join_records(tmp_path / "log.jsonl"))
    assert (found.candidate, found.wins, found.losses, found.unit) == ("b", 30, 0, "user")
    assert (tmp_path / "log.jsonl").stat().st_mode & 0o77 == 0
    assert preference(tmp_path / "log.jsonl") == found
