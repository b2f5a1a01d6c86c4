"""What a stranger adds in one file: known everywhere once its package is installed, on public names alone."""

import ast
import importlib
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import rag_selectivity as rs
from rag_selectivity.judged.policy import Policy, register_ties
from tests.extensions import PAGE, install, registries_as_before, titled_files
from tests.test_docs import blocks

pytestmark = pytest.mark.inside

__all__ = ["registries_as_before"]  # a fixture
TEXT = PAGE.read_text(encoding="utf-8")
FILES = {name: content for name, content in titled_files(PAGE).items() if name.endswith(".py")}
PUBLIC = re.findall(r"^\| `(rag_selectivity[\w.]*)` \|", TEXT, flags=re.M)
LABELS, BM25 = ("judgments.trec",), ("bm25.trec",)
DATA = {
    "judgments.trec": "q1 0 d1 1\nq1 0 d3 0\nq2 0 d2 1\n",
    "bm25.trec": "q1 Q0 d3 1 1.5 b\nq1 Q0 d1 2 1.5 b\nq2 Q0 d9 1 2.0 b\nq2 Q0 d2 2 1.0 b\n",
}


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
    for name, content in DATA.items():
        (site / "elsewhere" / name).write_text(content, encoding="utf-8")
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=site / "elsewhere",
        env={**os.environ, "PYTHONPATH": path},
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


def public_names(module: ModuleType) -> list[str]:
    """Those that a module lists, or all without an underscore."""
    return getattr(module, "__all__", None) or [each for each in vars(module) if not each.startswith("_")]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_exist(name) -> None:
    module = importlib.import_module(name)
    names = public_names(module)
    assert names
    assert [each for each in names if not hasattr(module, each)] == []
    assert len(set(names)) == len(names)


def test_the_page_imports_public_names_alone() -> None:
    codes = [code for _, code in blocks(PAGE, "python")] + list(FILES.values())
    imported = [
        (node.module, alias.name)
        for code in codes
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rag_selectivity")
        for alias in node.names
    ]
    assert len(imported) > 5
    private = [
        f"{module}.{name}"
        for module, name in imported
        if module not in PUBLIC or name not in public_names(importlib.import_module(module))
    ]
    assert private == []


# -- a measure ---------------------------------------------------------------------------------------------


def test_the_command_line_knows_a_measure_of_another_package(site) -> None:
    (line,) = [line for line in command(site, "explain").splitlines() if line.startswith("Early ")]
    assert line.endswith("1 if a relevant passage is among the first `few` of the top K, else 0.")
    assert "few=1: ranks that count" in command(site, "explain", "early")
    report = json.loads(command(site, "evaluate", *LABELS, *BM25, "--measure", "early(few=2)@2", "--format", "json"))
    assert report["runs"]["bm25"]["measures"]["Early(few=2)@2"]["value"] == 1.0
    gate = ("--measure", "Early@2", "--fail-if", "Early@2 < .5")
    first = command(site, "evaluate", *LABELS, *BM25, *gate, status=1)
    assert re.search(r"^ *run +Early$", first, re.MULTILINE)
    assert "Early [95%]" in command(site, "evaluate", *LABELS, *BM25, *gate, "--details", status=1)
    pair = (*LABELS, *BM25, "again=bm25.trec", "--measure", "Early@2")
    assert "Early@2" in command(site, "evaluate", *pair, "--baseline", "bm25", "--details")


def test_a_package_that_cannot_be_loaded_is_named_and_takes_nothing_else_away(tmp_path) -> None:
    install(
        tmp_path,
        {"rag_selectivity.measures": {"Lost": "nowhere:Lost", "Wrong": "careful:CAREFUL", "Early": "early:Early"}},
    )
    done = python(tmp_path, "-m", "rag_selectivity", "explain")
    assert done.returncode == 0, done.stderr
    assert "\nEarly " in done.stdout
    warnings = " ".join(done.stderr.split())
    assert "the measure 'Lost' of another package (nowhere:Lost) cannot be used: ModuleNotFoundError" in warnings
    assert "the measure 'Wrong' of another package (careful:CAREFUL) cannot be used: InputError" in warnings


# -- names and ties ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("registries_as_before")
def test_a_name_that_is_taken_is_refused_and_a_definition_can_be_repeated() -> None:
    def measure(qualname: str, name: str) -> type:
        return type(qualname, (type(rs.parse_measure("P")),), {"__qualname__": qualname, "name": name})

    rs.register_measure(measure("Round", "Round"))
    again = rs.register_measure(measure("Round", "Round"))
    assert type(rs.parse_measure("ROUND")) is again
    with pytest.raises(rs.InputError, match="there is a measure 'round' already: choose another name"):
        rs.register_measure(measure("Square", "round"))
    with pytest.raises(rs.InputError, match=r"unknown measure 'Rond'; did you mean \"Round\""):
        rs.parse_measure("Rond")


@pytest.mark.usefixtures("registries_as_before")
def test_ties_follow_the_key_and_then_the_order_given() -> None:
    register_ties("by_length")(lambda query, passage: (len(passage), query))
    chance = random.Random(5)
    passages = {f"q{i}": [f"d{chance.randrange(10 ** chance.randrange(1, 5))}" for _ in range(30)] for i in range(20)}
    scored = {q: {d: float(chance.randrange(3)) for d in row} for q, row in passages.items()}
    ordered = rs.Run.of(scored).ordered(Policy(ties="by_length"))
    expected = {q: sorted(row, key=lambda d, row=row: (-row[d], len(d))) for q, row in scored.items()}
    assert ordered.to_dict() == expected
