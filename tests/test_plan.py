"""What is measured where nothing was asked for: one answer for every way in."""

import json

import pytest

import rag_selectivity as rs
from tests.forked_cli import run_command
from tests.wall.worlds import trec

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.contract]

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
    trec(tmp_path / "qrels.trec", QRELS)
    trec(tmp_path / "run.trec", RUN)
    words = ["evaluate", "qrels.trec", "run.trec", "--scale", scale, "--format", "json"]
    done = run_command(*words, *(["--corpus-size", "100"] if sized else []), cwd=tmp_path)
    measures = json.loads(done.stdout)["runs"]["run"]["measures"]
    assert list(dict.fromkeys(key.split("@")[0] for key in measures)) == expected
    table = run_command(*words[:-2], "--details", cwd=tmp_path)
    assert all(name in table.stdout for name in EXPECTED[scale, False])
