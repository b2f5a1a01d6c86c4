"""The package for a fourth framework of docs/extending.md: installed, and run by the real pytest."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.test_adapter_names import names_taken, private_reads

PAGE = Path(__file__).resolve().parents[1] / "docs" / "extending.md"
TEXT = PAGE.read_text(encoding="utf-8")
FILES = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', TEXT, flags=re.S | re.M))
MODULE, PROJECT = FILES["pytest_selectivity.py"], FILES["pyproject.toml"]


@pytest.fixture
def host(tmp_path) -> Path:
    """A folder with the installed package, as a wheel leaves it, and the tests of a user."""
    project = tomllib.loads(PROJECT)["project"]
    installed = tmp_path / "site"
    metadata = installed / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}")
    points = "".join(f"{name} = {module}\n" for name, module in project["entry-points"]["pytest11"].items())
    (metadata / "entry_points.txt").write_text(f"[pytest11]\n{points}")
    (installed / "pytest_selectivity.py").write_text(MODULE, encoding="utf-8")
    for name in ("test_search.py", "labels.csv"):
        (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(host: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Pytest as users run it; the plugin comes by its entry point alone."""
    path = os.pathsep.join([str(host / "site"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=host,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


GRADED = ("--labels", "labels.csv", "--scale", "utility")
LABELS = (*GRADED, "--corpus-size", "1024")


def test_the_gate_fails_the_session_as_the_page_shows(host) -> None:
    command, *printed = FILES["output"].splitlines()
    assert command.startswith("$ pytest ")
    gates = re.findall(r'--fail-if "([^"]+)"', command)
    done = run(host, *LABELS, *(part for gate in gates for part in ("--fail-if", gate)))
    assert done.returncode == 1, done.stdout + done.stderr
    for line in printed:
        assert line in done.stdout


def test_open_gates_and_no_gates_leave_the_session_green(host) -> None:
    for gates in ((), ("--fail-if", "BoR@2 < 7"), ("--fail-if", "Harm@2 > 0.6")):
        done = run(host, *LABELS, *gates)
        assert (done.returncode, "retrieval gate" in done.stdout) == (0, False), done.stdout + done.stderr


def test_the_figure_of_a_query_fails_its_own_test(host) -> None:
    source = FILES["test_search.py"].replace('["d1", "d7"]', '["d7", "d1"]')
    (host / "test_search.py").write_text(source, encoding="utf-8")
    done = run(host, *LABELS)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--labels", "nowhere.csv"), 4, "nowhere.csv"),
        ((*LABELS, "--fail-if", "BoR < 3"), 4, "name the depth, as in BoR@10"),
        ((*GRADED, "--fail-if", "BoR@2 < 3"), 1, "retrieval gate: BoR compares with a random draw"),
        ((*LABELS, "--fail-if", "BoR@2 < 3", "-k", "no_such_test"), 5, "retrieval gate: qrels: there are no judgments"),
    ],
    ids=["no labels file", "no depth", "no corpus size", "nothing retrieved"],
)
def test_mistakes_are_said_in_one_line(host, arguments, status, message) -> None:
    done = run(host, *arguments)
    printed = done.stdout + done.stderr
    assert done.returncode == status, printed
    assert message in printed
    assert "Traceback" not in printed


def test_the_package_is_small_and_on_public_names() -> None:
    assert len(MODULE.splitlines()) + len(PROJECT.splitlines()) <= 60
    tree = ast.parse(MODULE)
    assert names_taken(tree)
    assert private_reads(tree) == []
