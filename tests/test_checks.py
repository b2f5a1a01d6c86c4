"""The checks are one thing: what the workflows, `.ci/run` and CONTRIBUTING.md call is a session of the noxfile."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.contract

yaml = pytest.importorskip("yaml")
pytest.importorskip("nox")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def listed() -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "nox", "--noxfile", ROOT / "noxfile.py", "--list", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.fixture
def sessions(listed) -> set[str]:
    return {each["name"] for each in listed}


def test_the_workflows_call_every_session_and_nothing_else(sessions) -> None:
    called = set()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            by_matrix = job["strategy"]["matrix"].get("session", [])
            commands = [step["run"] for step in job["steps"] if "run" in step]
            named = re.findall(r"nox --session (\S+)", "\n".join(commands))
            assert len(named) == len(commands)
            called |= set(by_matrix if named == ['"$SESSION"'] else named)
    assert called == sessions


def test_the_ci_run_calls_sessions(sessions) -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    alone = re.findall(r"^nox --session (\w+)", script, flags=re.M)
    legs = re.findall(r"nox --list-sessions --json --session (.*) \|$", script, flags=re.M)
    assert 'side_by_side "${legs[@]}"' in script
    called = {*" ".join(legs).split(), *alone}
    # `tests` has all that `docs` runs.
    assert called == sessions - {"docs"}


def test_contributing_explains_every_session(sessions) -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.M)
    assert set(rows) == sessions


def test_every_extra_is_used_by_itself(listed) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    alone = {each["call_spec"]["extra"] for each in listed if each["name"] == "lowest"}
    assert alone == {"core", *extras} - {"all", "dev", "site", "hosts"}


def test_the_files_that_bear_on_an_extra_are_there() -> None:
    text = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    listed = text[text.index("BEARING = {") : text.index("@nox.session(python=LOWEST_PYTHON)")]
    for call in ast.walk(ast.parse(listed)):
        if isinstance(call, ast.Call) and isinstance(call.args[0], ast.Constant):
            for file in str(call.args[0].value).split():
                assert (ROOT / "tests" / f"test_{file}.py").is_file(), file
