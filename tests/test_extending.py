"""What a stranger adds in one file: known everywhere once its package is installed, on public names alone."""

from __future__ import annotations

import ast
import importlib
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rag_selectivity as rs
from rag_selectivity.data.policy import Policy, register_policy, register_ties
from rag_selectivity.data.registry import Registry
from rag_selectivity.measures import REGISTRY, Outcome
from rag_selectivity.statistics import INTERVAL_METHODS, IntervalMethod, register_interval_method
from tests.extensions import PAGE, install, registries_as_before, titled_files
from tests.test_docs import blocks

pytestmark = pytest.mark.inside

__all__ = ["registries_as_before"]  # a fixture
TEXT = PAGE.read_text(encoding="utf-8")
FILES = {name: content for name, content in titled_files(PAGE).items() if name.endswith(".py")}
PUBLIC = re.findall(r"^\| `(rag_selectivity[\w.]*)` \|", TEXT, flags=re.M)
LABELS, BM25 = ("--qrels", "judgments.json"), ("--run", "bm25.json")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder with the installed package of the page, and its data."""
    folder = tmp_path_factory.mktemp("site")
    install(folder)
    return folder


def python(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with the folder among the installed packages, in another folder of its own."""
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    (site / "elsewhere").mkdir(exist_ok=True)
    for name in ("judgments.json", "bm25.json"):
        (site / "elsewhere" / name).write_text(titled_files(PAGE)[name], encoding="utf-8")
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=site / "elsewhere",
        env={**os.environ, "PYTHONPATH": path, "RAGAS_DO_NOT_TRACK": "true"},
        capture_output=True,
        text=True,
        check=False,
    )


def command(site: Path, *arguments: str, status: int = 0) -> str:
    """The standard output of a command, which must end with the status."""
    done = python(site, "-m", "rag_selectivity", *arguments)
    assert done.returncode == status, done.stderr
    return done.stdout


# -- public names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_exist(name) -> None:
    module = importlib.import_module(name)
    assert module.__all__
    assert [each for each in module.__all__ if not hasattr(module, each)] == []
    assert len(set(module.__all__)) == len(module.__all__)


def test_the_top_level_stays_small() -> None:
    assert len(rs.__all__) <= 48
    assert set(rs.__all__) <= set(dir(rs))


def test_the_page_imports_public_names_alone() -> None:
    codes = [code for _, code in blocks(PAGE, "python")] + list(FILES.values())
    imported = [
        (node.module, alias.name)
        for code in codes
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rag_selectivity")
        for alias in node.names
    ]
    assert len(imported) > 20
    private = [
        f"{module}.{name}"
        for module, name in imported
        if module not in PUBLIC or name not in importlib.import_module(module).__all__
    ]
    assert private == []


def test_each_file_has_the_lines_that_the_page_counts() -> None:
    counted = {name: int(lines) for name, lines in re.findall(r"\| `(\w+\.py)` \| (\d+) \|", TEXT)}
    assert counted == {name: len(FILES[name].splitlines()) for name in counted}
    assert set(counted) == {"early.py", "ranx_json.py", "basic_interval.py", "careful.py", "rule_judge.py"}
    assert max(counted.values()) <= 40


# -- a measure ---------------------------------------------------------------------------------------------


def test_the_command_line_knows_a_measure_of_another_package(site) -> None:
    listed = command(site, "measures").splitlines()
    (line,) = [line for line in listed if line.startswith("Early ")]
    assert line.endswith("1 if a relevant passage is among the first `few` of the top K, else 0.")
    assert "few=1: ranks that count" in command(site, "measures", "early")
    report = json.loads(command(site, "evaluate", *LABELS, *BM25, "--measure", "early(few=2)@2", "--format", "json"))
    assert report["runs"]["bm25"]["measures"]["Early(few=2)@2"]["value"] == 1.0
    gate = ("--measure", "Early@2", "--fail-if", "Early@2 < .5")
    first = command(site, "evaluate", *LABELS, *BM25, *gate, status=1)
    assert re.search(r"^ *run +Early$", first, re.MULTILINE)
    assert "Early [95%]" in command(site, "evaluate", *LABELS, *BM25, *gate, "--details", status=1)
    pair = (*LABELS, *BM25, "--run", "again=bm25.json", "--measure", "Early@2")
    compared = command(site, "compare", *pair, "--details")
    assert "Early@2" in compared


def test_the_html_report_shows_a_measure_of_another_package(site) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    command(site, "report", *LABELS, *BM25, "--measure", "Early", "--depths", "1,2", "-o", "page.html")
    assert "Early [95%]" in (site / "elsewhere" / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("framework", "code"),
    [
        (
            "ragas",
            "from rag_selectivity_ragas import SelectivityMetric as M; print(M('Early@2', {'q': {'d': 1}}).name)",
        ),
        (
            "llama_index.core",
            "from rag_selectivity_llama_index import SelectivityMetric as M, register\n"
            "assert 'early' in register()\n"
            "metric = M('Early(few=2)@2', {'q': {'d': 1}})\n"
            "assert metric.compute(query='q', retrieved_ids=['x', 'd']).score == 1.0\n"
            "print(M('Early@2').metric_name)",
        ),
        (
            "langchain_core",
            "from rag_selectivity_langchain import run_evaluator\n"
            "run_evaluator('early@2')\n"
            "print(__import__('rag_selectivity').parse_measure('early@2'))",
        ),
    ],
)
def test_adapters_know_a_measure_of_another_package(site, framework, code) -> None:
    pytest.importorskip(framework)
    done = python(site, "-W", "ignore", "-c", code)
    assert done.stdout.strip() == "Early@2", done.stderr


# -- a reader, an interval method, a policy ----------------------------------------------------------------


def test_a_format_of_another_package_is_recognised_and_can_be_named(site) -> None:
    for given in ((), ("--qrels-format", "ranx")):
        options = (*LABELS, *BM25, *given, "--measure", "Success@1", "--format", "json", "--resamples", "0")
        report = json.loads(command(site, "evaluate", *options))
        assert report["runs"]["bm25"]["measures"]["Success@1"]["n"] == 2
    read = "import rag_selectivity as rs; print(rs.read_qrels('judgments.json', format='ranx').to_dict())"
    assert python(site, "-c", read).stdout.strip() == "{'q1': {'d1': 1, 'd3': 0}, 'q2': {'d2': 1}}"


def test_a_faulty_file_of_such_a_format_is_named(site) -> None:
    (site / "elsewhere" / "bad.json").write_text('{"q1": {"d1": 1}', encoding="utf-8")
    done = python(site, "-m", "rag_selectivity", "evaluate", "--qrels", "bad.json", *BM25)
    assert done.returncode == 2
    assert "error: bad.json: not a JSON file of ranx" in done.stderr


def test_an_interval_method_of_another_package_is_used_and_named(site) -> None:
    options = (*LABELS, *BM25, "--measure", "RR", "--method", "basic", "--format", "json")
    report = json.loads(command(site, "evaluate", *options))
    assert report["settings"]["method"] == "basic"
    assert report["runs"]["bm25"]["measures"]["RR"]["low"] is not None
    assert "RR" in command(
        site, "compare", *LABELS, *BM25, "--run", "b=bm25.json", "--measure", "RR", "--method", "basic"
    )
    done = python(site, "-m", "rag_selectivity", "evaluate", *LABELS, *BM25, "--method", "basik")
    assert done.returncode == 2
    assert "bca, percentile, poisson, basic" in done.stderr


def test_a_policy_of_another_package_is_used_and_stored(site) -> None:
    options = (*LABELS, *BM25, "--measure", "Success@1", "--policy", "careful", "--format", "json")
    part = json.loads(command(site, "evaluate", *options))["runs"]["bm25"]
    assert part["measures"]["Success@1"]["value"] == 0.5
    assert part["fingerprint"]["policy"]["ties"] == "docid_ascending"
    options = (*LABELS, *BM25, "--measure", "Success@1", "--ties", "docid_ascending", "--format", "json")
    assert json.loads(command(site, "evaluate", *options))["runs"]["bm25"]["measures"]["Success@1"]["value"] == 0.5


def test_a_package_that_cannot_be_loaded_is_named_and_takes_nothing_else_away(tmp_path) -> None:
    install(
        tmp_path,
        {"rag_selectivity.measures": {"Lost": "nowhere:Lost", "Wrong": "careful:CAREFUL", "Early": "early:Early"}},
    )
    done = python(tmp_path, "-m", "rag_selectivity", "measures")
    assert done.returncode == 0, done.stderr
    assert "\nEarly " in done.stdout
    warnings = " ".join(done.stderr.split())
    assert "the measure 'Lost' of another package (nowhere:Lost) cannot be used: ModuleNotFoundError" in warnings
    assert "the measure 'Wrong' of another package (careful:CAREFUL) cannot be used: InputError" in warnings


def test_known_names_need_no_entry_points(site) -> None:
    code = (
        "import sys, rag_selectivity as rs; rs.parse_measure('BoR@10'); rs.Bootstrap(); print('early' in sys.modules)"
    )
    assert python(site, "-c", code).stdout.strip() == "False"
    assert python(site, "-c", code.replace("BoR@10", "Early@10")).stdout.strip() == "True"


# -- registries --------------------------------------------------------------------------------------------


def test_a_name_that_is_taken_is_refused_and_a_definition_can_be_repeated() -> None:
    registry: Registry[type] = Registry("shape", "rag_selectivity.none", object, any_case=True)

    def shape(qualname: str) -> type:
        return type(qualname, (), {"__qualname__": qualname})

    registry.add("Round", shape("Round"))
    again = shape("Round")
    registry.add("Round", again)
    assert registry["ROUND"] is again
    with pytest.raises(rs.InputError, match="there is a shape 'Round' already: choose another name"):
        registry.add("round", shape("Square"))
    with pytest.raises(rs.InputError, match=r"unknown shape 'Rond'; did you mean \"Round\"\? \(known: Round\)"):
        registry.find("Rond")


@pytest.mark.usefixtures("registries_as_before")
def test_names_of_this_package_cannot_be_taken() -> None:
    taken = type("Taken", (rs.Measure,), {"name": "bor", "outcome": lambda self, judged, depths: Outcome((), "")})
    with pytest.raises(rs.InputError, match="there is a measure 'BoR' already"):
        rs.register_measure(taken)
    with pytest.raises(rs.InputError, match="there is a policy 'default' already"):
        register_policy("default", Policy(ties="as_given"))
    with pytest.raises(rs.InputError, match="there is a way to order ties 'as_given' already"):
        register_ties("as_given")
    assert "bor" in REGISTRY
    assert REGISTRY["bor"].name == "BoR"


@pytest.mark.usefixtures("registries_as_before")
def test_ties_follow_the_key_and_then_the_order_given() -> None:
    register_ties("by_length")(lambda query, passage: (len(passage), query))
    chance = random.Random(5)
    passages = {f"q{i}": [f"d{chance.randrange(10 ** chance.randrange(1, 5))}" for _ in range(30)] for i in range(20)}
    scored = {q: {d: float(chance.randrange(3)) for d in row} for q, row in passages.items()}
    ordered = rs.Run.from_dict(scored).ordered(Policy(ties="by_length"))
    expected = {q: sorted(row, key=lambda d, row=row: (-row[d], len(d))) for q, row in scored.items()}
    assert ordered.to_dict() == expected


@pytest.mark.usefixtures("registries_as_before")
def test_a_method_gets_the_figures_of_the_resamples_and_of_all_queries() -> None:
    seen = []

    @register_interval_method
    class Range(IntervalMethod):
        """From the least to the largest."""

        name = "range"

        def ends(self, estimand, resampled, tail):
            seen.append((resampled.shape, estimand.value.tolist(), tail))
            return [resampled.min(axis=1), resampled.max(axis=1)]

    labels = {f"q{i}": {"a": 1, "b": 1, "c": 1} for i in range(12)}
    run = {query: ["a", "b", "c"][: 1 + int(query[1:]) % 3] for query in labels}
    bootstrap = rs.Bootstrap(200, method="range", level=0.9)
    found = rs.evaluate(labels, run, measures=["R"], depths=[1, 3], bootstrap=bootstrap)["R@3"]
    assert seen == [((2, 200), pytest.approx([1 / 3, 2 / 3]), pytest.approx(0.05))]
    assert 0 < found.low < 2 / 3 < found.high < 1
    assert INTERVAL_METHODS["range"] is Range
