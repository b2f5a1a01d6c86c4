"""`plan` and `audit`: from counts alone."""

import json
from math import exp, log2

import pytest

import rag_selectivity as rs
from rag_selectivity import InputError
from rag_selectivity.advice.planning import audit, plan
from tests.forked_cli import run_command
from tests.reference import random_success

pytestmark = pytest.mark.inside


def test_a_log_is_summed_up_over_all_its_rows(data) -> None:
    result = audit(data / "golden" / "bor_log.jsonl")  # the published figures are in benchmarks/published.toml
    assert result["schema"] == "rag-selectivity/audit/1"
    assert result["low"] < result["BoR"] < result["high"] < result["BoR_max"]
    assert result["BoR_max"] == pytest.approx(-log2(result["P_rand"]))
    assert result["n"] == result["n_total"] == 800


def test_a_log_with_other_names_other_depths_and_words_for_truth(tmp_path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("corpus,shown,rel,ok\n100,5,2,yes\n50,10,1,FALSE\n80,1,0,0\n")
    result = audit(path, fields={"N": "corpus", "K": "shown", "R": "rel", "hit": "ok"})
    chance = (random_success(100, 2, 5) + random_success(50, 1, 10)) / 2
    assert result["BoR"] == pytest.approx(log2(0.5 / chance))
    assert (result["n"], result["n_total"]) == (2, 3)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"N": 10, "K": 11, "R": 1, "hit": True}, r"log.jsonl:2': K = 11 is more than N = 10"),
        ({"N": 10, "K": 1, "R": 0, "hit": True}, r"log.jsonl:2': hit = 1 is more than min\(K, R\) = 0"),
        ({"N": 10, "K": 1, "R": -1, "hit": True}, r"log.jsonl:2: R is -1"),
        ({"N": 10, "K": 1, "R": 1, "hit": "maybe"}, r"log.jsonl:2: hit is 'maybe'"),
        ({"N": 10, "K": 1, "R": 1}, r"log.jsonl:2: hit is None"),
    ],
)
def test_a_wrong_row_is_named_by_file_and_line(tmp_path, row, message) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"N": 10, "K": 1, "R": 1, "hit": True}) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(InputError, match=message):
        audit(path)


def test_a_log_without_any_success_has_null_and_a_reason(tmp_path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"N": 10, "K": 1, "R": 1, "hit": false}\n' * 3)
    result = audit(path)
    assert result["BoR"] is None
    assert "no query succeeded" in result["reason"]


def test_plan_has_the_posts_tool_selection() -> None:
    result = plan(58, 4, [5, 20, 58])
    assert result["schema"] == "rag-selectivity/plan/1"
    assert [row["regime"] for row in result["rows"]] == ["healthy", "degraded", "collapse"]
    assert [row["BoR_max"] for row in result["rows"]] == pytest.approx([1.69, 0.276, 0.0], abs=5e-3)
    assert result["rows"][0]["random_success"] == pytest.approx(float(random_success(58, 4, 5)))
    assert result["rows"][2]["lambda"] == 4.0
    assert result["rows"][1]["BoR_opt"] == pytest.approx(log2(58 / 20))


def test_plan_over_several_queries_and_hits_averages_the_probabilities() -> None:
    row = plan(100, [2, 3, 1], [10], m=2)["rows"][0]
    chance = (random_success(100, 2, 10, 2) + random_success(100, 3, 10, 2)) / 2
    assert row["random_success"] == pytest.approx(float(chance))
    assert (row["BoR_max"], row["lambda"]) == pytest.approx((-log2(chance), 0.25))


def test_the_largest_k_by_trying_every_one() -> None:
    found = rs.plan(58, [4, 2, 9], m=1)
    every = rs.plan(58, [4, 2, 9], range(1, 59))["rows"]
    assert found["max_K_for_random_success"] == max(row["K"] for row in every if row["random_success"] < 1 - exp(-1))
    assert rs.plan(8_841_823, 1)["max_K_for_random_success"] == int(8_841_823 * (1 - exp(-1)))
    assert rs.plan(4, 3)["max_K_for_random_success"] == 0
    assert [row["K"] for row in rs.plan(58, 4)["rows"]] == [1, 2, 5, 10, 20, 50]


def test_the_command_plans_for_the_family_of_compare() -> None:
    words = ["plan", "--corpus-size", "1000", "--relevant", "100", "--depths", "30", "-m", "3", "--detect", "0.2"]
    for scale, rows in (("trec", 3), ("utility", 9)):
        printed = run_command(*words, "--scale", scale).stdout
        needed = rs.queries_needed(0.2, 0.8, rows=rows)
        assert printed.splitlines()[-2:] == [
            "a random draw succeeds in less than 63.2% of the queries up to K = 31",
            f"{needed} queries: McNemar's exact test then finds 0.2 bits in 80.0% of samples or more "
            f"(success 80.0% and 69.6%, level 0.95, corrected for the {rows} tests of a usual comparison)",
        ]
    assert rs.queries_needed(0.2, 0.8) == rs.queries_needed(0.2, 0.8, rows=3)


def test_a_plan_for_three_hits_is_judged_by_its_own_random_draw() -> None:
    (row,) = rs.plan(1000, 100, [30], m=3)["rows"]
    assert (row["lambda"], row["regime"], round(row["BoR_max"], 2)) == (3.0, "healthy", 0.76)
