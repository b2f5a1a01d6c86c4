"""The wall: scenarios give the figures that are stored, mistakes are answered (see `tests/wall/__init__.py`)."""

import os
import re
import subprocess

import pytest

import rag_selectivity as rs
from tests.wall import mistakes
from tests.wall.commits import mixed_commits
from tests.wall.mistakes.calls import CALLS
from tests.wall.mistakes.checks import wrong_with_call, wrong_with_command
from tests.wall.mistakes.commands import COMMANDS
from tests.wall.wall import PACKAGES, QUIET, STORED, Missing, differences, run, scenarios, stored

pytestmark = pytest.mark.contract
ALL = scenarios()


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_scenario_gives_what_is_stored(name):
    before = stored(name)
    if before is None:
        pytest.skip(f"nothing is stored yet: python -m tests.wall --accept {name}")
    try:
        now = run(ALL[name])
    except Missing as missing:
        pytest.skip(str(missing))
    found = differences(before, now)
    assert not found, "\n".join(found[:20])


def test_the_wall_knows_public_names_only():
    for path in STORED.parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # Live comparisons have a public package of their own.
        assert not re.search(r"rag_selectivity\w*\.(?!online import )\w", text), f"{path} names an inner module"
        assert set(re.findall(r"\brs\.(\w+)", text)) <= set(rs.__all__), path


def test_everything_stored_has_its_scenario():
    kept = {path.relative_to(STORED).with_suffix("").as_posix() for path in STORED.rglob("*.*")}
    assert kept <= set(ALL)


def test_figures_of_every_scenario_are_stored():
    texts = {name for name, function in ALL.items() if f".{PACKAGES[1]}." in function.__module__}
    assert [name for name in ALL if name not in texts and stored(name) is None] == []


def test_no_commit_touches_scenarios_and_what_is_stored():
    found = mixed_commits()
    if found is None:
        pytest.skip("the history is not in this copy of the sources")
    assert found == []


def test_a_commit_that_touches_both_is_named(tmp_path):
    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *words], check=True, capture_output=True)

    def commit(*paths):
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(paths[0])
        git("add", ".")
        git("commit", "-m", " and ".join(paths))

    assert mixed_commits(root=tmp_path) is None
    git("init")
    commit("tests/wall/scenarios/a.py", "src.py")
    commit("tests/wall/stored/a/b.json")
    assert mixed_commits(root=tmp_path) == []
    commit("tests/wall/keys.py", "tests/wall/stored/a/c.json")
    commit("tests/wall/worlds.py")
    (found,) = mixed_commits(root=tmp_path)
    assert found.endswith(" tests/wall/keys.py and tests/wall/stored/a/c.json")
    assert mixed_commits("HEAD~1..HEAD", root=tmp_path) == []
    assert mixed_commits("absent..HEAD", root=tmp_path) is None


def test_what_may_differ_between_machines_and_what_may_not():
    before = {"a/value": 0.1, "a/low": 0.1, "a/n": 3, "a/verdict": "worse", "a/high": "inf", "a/caveats": ["x"]}
    assert differences(before, {**before, "a/value": 0.1 + 1e-14, "a/low": 0.1 + 1e-11}) == []
    assert differences({"a/p": 1e-7, "a/value": 0.0}, {"a/p": 1e-7 + 1e-13, "a/value": 1e-16}) == [
        "a/p: 1e-07 → 1.000001e-07"
    ]
    for key, value in {"a/value": 0.1 + 1e-11, "a/low": 0.1001, "a/n": 4, "a/verdict": "better"}.items():
        (line,) = differences(before, {**before, key: value})
        assert line.startswith(f"{key}: ")
    assert differences(before, {**before, "a/high": "-inf", "a/caveats": []}) != []
    assert differences(before, {"b/new": 1.0, **{key: before[key] for key in list(before)[1:]}}) == [
        "a/value: 0.1 is gone",
        "b/new: 1.0 is new",
    ]
    assert differences("one\ntwo\n", "one\nthree\n")[-2:] == ["-two", "+three"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that mistakes are made with, and an environment without keys."""
    mistakes.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in [each for each in os.environ if each.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    for name, value in {**QUIET, "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", COMMANDS)
def test_command_that_cannot_be_right_says_what_where_and_the_mend(words):
    code, *parts = COMMANDS[words]
    assert wrong_with_command(words, code, tuple(parts)) == ""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("mistake", CALLS)
def test_call_that_cannot_be_right_says_what_where_and_the_mend(mistake):
    call, error, *parts = CALLS[mistake]
    try:
        assert wrong_with_call(call, error, tuple(parts)) == ""
    except ModuleNotFoundError as missing:
        pytest.skip(f"needs the package {missing.name}")
