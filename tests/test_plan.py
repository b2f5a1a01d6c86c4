"""What is measured where nothing was asked for: one answer for every way in."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.measures.base import WHOLE_LIST
from rag_selectivity.measures.plan import default_depths, default_measures, given_depths, plan_of, ranks_in
from tests.forked_cli import run_command

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

QRELS = {"q1": {"a": 5, "b": 1, "c": 3}, "q2": {"c": 4, "a": 2}}
RUN = {"q1": ["a", "b"], "q2": ["x", "c"]}
EXPECTED = {
    ("trec", False): ["Success"],
    ("trec", True): ["Success", "BoR", "BoR_max", "lambda"],
    ("utility", False): ["Success", "RA-nWG", "Harm", "Judged"],
    ("utility", True): ["Success", "BoR", "BoR_max", "lambda", "RA-nWG", "Harm", "Judged"],
}


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "sized"), EXPECTED)
def test_every_way_in_has_the_same_measures(tmp_path, scale, sized) -> None:
    size = 100 if sized else None
    expected = EXPECTED[scale, sized]
    assert [str(m) for m in rs.evaluate(QRELS, RUN, scale=scale, corpus_size=size).measures] == expected
    (tmp_path / "qrels.trec").write_text("".join(f"{q} 0 {d} {g}\n" for q, of in QRELS.items() for d, g in of.items()))
    lines = [f"{q} Q0 {d} {i} {-i} x\n" for q, ids in RUN.items() for i, d in enumerate(ids)]
    (tmp_path / "run.trec").write_text("".join(lines))
    words = ["evaluate", "qrels.trec", "run.trec", "--scale", scale, "--format", "json"]
    done = run_command(*words, *(["--corpus-size", "100"] if sized else []), cwd=tmp_path)
    measures = json.loads(done.stdout)["runs"]["run"]["measures"]
    assert list(dict.fromkeys(key.split("@")[0] for key in measures)) == expected
    table = run_command(*words[:-2], "--details", cwd=tmp_path)
    assert all(name in table.stdout for name in EXPECTED[scale, False])


def test_pools_bring_the_measures_of_who_lost_the_evidence() -> None:
    assert default_measures("utility", sized=False, pooled=True) == ("Success", "RA-nWG", "PROC", "%PROC", "Harm")
    assert default_measures("trec", sized=True, pooled=True) == default_measures("trec", sized=True)


def test_depths() -> None:
    assert default_depths(5000).tolist() == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    assert default_depths(5000, 0).tolist() == [1]
    assert given_depths([5, 1, 5], []).tolist() == [1, 5]
    for wrong in ([0], [True], [1.5], ["1"]):
        with pytest.raises(rs.InputError, match="is not a whole number ≥ 1"):
            given_depths(wrong, [])


def test_a_plan_has_each_measure_once_and_ranks_leave_out_levels_and_whole_lists() -> None:
    wanted = [rs.parse_measure(text) for text in ("P", "P@7", "IPrec", "AP", "AP@3", "IPrec@1")]
    plan = plan_of(wanted, np.array([1, 2]))
    assert [(str(measure), at.tolist()[:3]) for measure, at in plan[:2]] == [("P", [1, 2, 7]), ("IPrec", [0, 0.1, 0.2])]
    assert ranks_in(plan).tolist() == [1, 2, 3, 7]
    whole = {str(measure): at.tolist() for measure, at in plan_of(wanted, np.array([1, 2]), whole_lists=True)}
    assert (whole["P"], whole["AP"]) == ([1, 2, 7, WHOLE_LIST], [3, WHOLE_LIST])
    assert whole["IPrec"][-1] == 1.0
