"""The file for a fourth framework of docs/how-to/extending.md: small, public names only, the figures of `evaluate`."""

import ast
import runpy
from pathlib import Path

import pytest

import rag_selectivity as rs
from tests.extensions import PAGE, titled_files
from tests.test_adapter_names import names_taken, private_reads

pytestmark = pytest.mark.inside

MODULE = titled_files(PAGE)["selectivity_sklearn.py"]
LABELS = {"q1": {"d1": 5, "d2": 1}, "q2": {"d3": 4, "d4": 1}, "q3": {"d5": 5}}
LISTS = {"q1": ["d1", "d2"], "q2": ["x", "d4"], "q3": ["y"]}


@pytest.fixture
def selectivity_scorer(tmp_path: Path):
    path = tmp_path / "selectivity_sklearn.py"
    path.write_text(MODULE, encoding="utf-8")
    return runpy.run_path(str(path))["selectivity_scorer"]


class Retriever:
    def predict(self, queries):
        return [LISTS[query] for query in queries]


@pytest.mark.parametrize(("measure", "sign"), [("BoR@2", 1), ("RA-nWG@2", 1), ("Harm@2", -1)])
def test_the_score_is_the_figure_of_evaluate_and_higher_is_better(selectivity_scorer, measure, sign) -> None:
    options = {"scale": "utility", "corpus_size": 1000}
    report = rs.evaluate(LABELS, LISTS, measures=[measure], **options)
    assert selectivity_scorer(measure, LABELS, **options)(Retriever(), list(LISTS)) == sign * report[measure].value


def test_the_file_is_small_and_on_public_names() -> None:
    assert len(MODULE.splitlines()) <= 30
    tree = ast.parse(MODULE)
    assert names_taken(tree)
    assert private_reads(tree) == []
