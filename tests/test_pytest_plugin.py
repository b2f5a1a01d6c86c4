"""The pytest plugin: found by its entry point, light at start-up, and readable where a figure fails a test."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from rag_selectivity_pytest import Retrievals, assert_selectivity

import rag_selectivity as rs
from tests.extensions import titled_files

pytestmark = pytest.mark.inside

ROOT = Path(__file__).resolve().parents[1]
LABELS = {"who?": {"d1": 5, "d2": 1}, "when?": {"d3": 4, "d4": 1}, "where?": {"d5": 5}}
LISTS = {"who?": ["d1", "d2"], "when?": ["x", "d4"]}
GRADED = {query: LABELS[query] for query in LISTS}
OPTIONS = {"scale": "utility", "corpus_size": 1000, "measures": ["BoR@2", "Harm@2"]}


@pytest.fixture(scope="module")
def report() -> rs.Report:
    return rs.evaluate(GRADED, {"bm25: new": LISTS, "dense": {"who?": ["d1"], "when?": ["d3"]}}, **OPTIONS)


def test_a_failure_names_the_figure_its_interval_and_its_queries(report) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_selectivity(report, "BoR@2 > 8.5", "Harm@2 < 0.5")
    lines = str(caught.value).splitlines()
    estimate = report["bm25: new", "BoR@2"]
    assert lines[0] == f"BoR@2 > 8.5 does not hold for bm25: new: BoR@2 = {estimate.value:.4g} <= 8.5"
    assert f"[{estimate.low:.4g}, {estimate.high:.4g}], 2 of 2 queries" in lines[1]
    assert [line for line in lines if "Harm@2" in line and "dense" in line] == []
    harm = "Harm@2 < 0.5 does not hold for bm25: new: Harm@2 is between 0.5 and 0.75, since lists are judged in part"
    assert any(line.startswith(harm) for line in lines)


def test_an_undefined_figure_and_a_caveat_fail(report) -> None:
    unknown = rs.evaluate({"q": {"d": 5}}, {"bm25": {"q": ["d"]}}, scale="utility", measures=["Harm@1"])
    with pytest.raises(AssertionError, match="is undefined"):
        assert_selectivity(unknown, "Harm@1 < 0.9")
    with pytest.raises(AssertionError, match=r"shown.* is undefined: it needs random controls"):
        assert_selectivity(report, "shown(BoR@2) > 0")
    assert_selectivity(report, "as_judged(BoR@2) > 0")
    closed = rs.evaluate({"q": {"d": 5, "e": 1}}, {"bm25": {"q": ["d", "e"]}}, scale="utility", measures=["RA-nWG@2"])
    with pytest.raises(AssertionError, match=closed["RA-nWG@2"].caveats[0].code):
        assert_selectivity(closed, "caveats(RA-nWG@2) < strong")


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ((), "needs a condition"),
        (("BoR@2 = 4",), r"^gate 'BoR@2 = 4' is no condition \(--fail-if\) such as"),
        (("BoR > 4",), "^gate 'BoR > 4': name the depth, as in BoR@10"),
        (("BoR@2 > much",), "'much' is not a number"),
        (("RA-nWG@2 > 0.5",), "RA-nWG@2"),
        (("drop(BoR@2) <= .1",), "needs a stored report: against=PATH"),
    ],
)
def test_a_condition_that_cannot_be_read_is_an_input_error(report, conditions, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        assert_selectivity(report, *conditions)


def test_a_drop_is_counted_from_a_stored_report(report, tmp_path) -> None:
    report.save(tmp_path / "main.json")
    assert_selectivity(report, "drop(BoR@2) <= .1", "BoR@2 > 7", against=tmp_path / "main.json")
    worse = rs.evaluate(GRADED, {"bm25: new": LISTS, "dense": {"who?": ["d2"], "when?": ["d3"]}}, **OPTIONS)
    with pytest.raises(AssertionError, match=r"<= \.1 does not hold for dense: .* = 1 > 0\.1 \(from [^\n]*\)$"):
        assert_selectivity(worse, "drop(BoR@2) <= .1", against=report)


def test_collected_retrievals_make_the_report_of_evaluate() -> None:
    collected = Retrievals()
    for query, passages in LISTS.items():
        collected.record(query, passages)
    core = rs.evaluate(GRADED, {"retriever": LISTS}, **OPTIONS)
    assert collected.report(LABELS, **OPTIONS).to_dict() == core.to_dict()
    collected.record("who?", ["x", "y"])
    collected.record("never judged", ["d1"])
    again = collected.report(LABELS, **OPTIONS)["BoR@2"]
    assert (again.n, again.n_total) == (3, 3)
    both = rs.evaluate({**GRADED, "who? (2)": LABELS["who?"]}, {"r": {**LISTS, "who? (2)": ["x", "y"]}}, **OPTIONS)
    assert again.value == both["BoR@2"].value
    with pytest.raises(rs.InputError, match="no retrieval was recorded"):
        Retrievals().report(LABELS)


PAGE = titled_files(ROOT / "docs" / "frameworks" / "pytest.md")
ANOTHER = """
def test_another(session_retrievals):
    session_retrievals.record("q", [1])

def test_and_another(session_retrievals, retrievals):
    assert (session_retrievals.recorded, retrievals.recorded) == ([("q", ["1"])], [])
"""


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Pytest as a user runs it: the plugin comes by its entry point alone, as a wheel leaves it."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]["pytest11"]
    metadata = folder / "site" / "rag_selectivity_as_installed-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: rag-selectivity-as-installed\nVersion: 1\n")
    listed = "".join(f"{name} = {module}\n" for name, module in points.items())
    (metadata / "entry_points.txt").write_text(f"[pytest11]\n{listed}")
    path = os.pathsep.join([str(folder / "site"), str(ROOT), str(ROOT / "integrations")])
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_search.py").write_text(PAGE["test_search.py"], encoding="utf-8")
    (folder / "test_another.py").write_text(ANOTHER, encoding="utf-8")
    without = [f"-pno:{name}" for name in ("cacheprovider", "deepeval", "langsmith_plugin")]
    command = [sys.executable, "-m", "pytest", "-q", *without, *arguments]
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_the_plugin_is_found_and_its_failure_is_read_in_the_summary(tmp_path) -> None:
    done = run_pytest(tmp_path)
    assert "1 failed, 4 passed" in done.stdout, done.stdout + done.stderr
    for line in PAGE["output"].splitlines():
        assert line.strip() in done.stdout
    assert "rag_selectivity_pytest/__init__.py" not in done.stdout  # no frame of the plugin in the traceback
