"""The help of every command: readable in 80 columns, without the list of measures, and with two examples.

What a start imports is here too: no help and no completion needs numpy.
"""

import io
import os
import re
import subprocess
import sys
import time
from typing import Any

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import all_commands, app
from rag_selectivity.cli.command import PANELS
from rag_selectivity.cli.waiting import waiting

pytestmark = pytest.mark.inside

COMMANDS: dict[str, Any] = all_commands()


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """{command: its help}; the empty name is that of the program."""
    runner = CliRunner(env={"COLUMNS": "80"})
    return {
        name: runner.invoke(app, [*name.split(), "--help-all" if name in COMMANDS else "--help"]).output
        for name in ("", "golden", "online", "labels", *COMMANDS)
    }


def visible(command: Any) -> list[Any]:
    return [each for each in command.params if not getattr(each, "hidden", False)]


def place_of_help(text: str, parameter: Any) -> int:
    """The column at which the meaning of a parameter begins."""
    name = max(parameter.opts, key=len) if parameter.param_type_name == "option" else parameter.metavar
    first = re.escape(" ".join(parameter.help.split()[:2]))
    found = re.search(rf"^\s*(?:-\w, )?{re.escape(name)}[\s,].*?(?P<help>{first})", text, re.M | re.S)
    assert found, (name, parameter.help)
    return found.start("help") - text.rindex("\n", 0, found.start("help")) - 1


@pytest.mark.parametrize("name", COMMANDS)
def test_meanings_have_room_in_80_columns(helps, name) -> None:
    text = helps[name]
    assert max(map(len, text.splitlines())) <= 80
    for parameter in visible(COMMANDS[name]):
        assert 80 - place_of_help(text, parameter) >= 36, parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_meaning_and_a_panel(name) -> None:
    for parameter in visible(COMMANDS[name]):
        assert re.fullmatch(r"[A-Z(].*[.]", parameter.help, re.S), parameter.name
        if parameter.param_type_name == "option":
            assert parameter.rich_help_panel in PANELS, parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_opens_with_its_purpose_in_one_line(helps, name) -> None:
    purpose = COMMANDS[name].help.split("\n")[0]
    assert re.fullmatch(r"[A-Z].{10,70}[.]", purpose)
    assert [line.strip() for line in helps[name].splitlines() if line.strip()][1] == purpose


def test_the_whole_help_names_every_key_of_the_settings(helps) -> None:
    for name, command in COMMANDS.items():
        for each in command.settings:
            assert f"{each.meaning.section}.{each.name}" in helps[name], name


def test_long_work_shows_its_time_and_leaves_no_line_behind(monkeypatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, shown in ((Terminal(), "\revaluate: 0 s"), (io.StringIO(), "evaluate: 0 s\n")):
        monkeypatch.setattr(sys, "stderr", stream)
        with waiting("evaluate", first=0.01, each=0.01, of_a_file=0.01):
            time.sleep(0.2)
        assert stream.getvalue().startswith(shown)
        assert stream.getvalue().endswith("\r\033[K" if stream.isatty() else "s\n")


# -- what a start imports ---------------------------------------------------------------------------------

_IMPORTED = """
import sys
from rag_selectivity.cli import main
sys.argv = ["rag-selectivity", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
heavy = ("typer", "rich", "numpy", "scipy", "sqlite3")
print("imported:", *[name for name in heavy if name in sys.modules])
"""


def printed_by(*words: str, **variables: str) -> list[str]:
    """The lines of a command; the last one names what it imported, of what takes long."""
    command, environment = [sys.executable, "-c", _IMPORTED, *words], {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines()


def test_the_version() -> None:
    done = subprocess.run([sys.executable, "-m", "rag_selectivity", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"rag-selectivity {rs.__version__}\n", "")
    assert CliRunner().invoke(app, ["--version"]).output == done.stdout


@pytest.fixture(scope="module")
def imported_by_the_parser() -> str:
    """What `imported:` says if only typer is imported; its older versions import a library that draws boxes."""
    code = "import typer, sys; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return "imported: typer rich" if done.stdout.strip() == "True" else "imported: typer"


@pytest.mark.parametrize("words", [(), ("--help",), ("labels",), ("demo", "--help"), ("grade", "--help")])
def test_a_help_needs_no_numpy(words, imported_by_the_parser) -> None:
    assert printed_by(*words)[-1] == imported_by_the_parser


# -- examples ---------------------------------------------------------------------------------------------


def examples_in(text: str) -> list[str]:
    """The shell commands at the end of a help."""
    last = re.sub(r" \\\n\s+", " ", text.split("\nExamples:\n")[1])
    return [line.strip() for line in last.splitlines() if line.strip()]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_has_the_two_examples_that_the_tests_of_the_pages_run(helps, name) -> None:
    examples = examples_in(helps[name])
    assert examples == list(COMMANDS[name].examples)
    assert len(examples) == 2
    assert all(example.startswith(f"rag-selectivity {name}") for example in examples)


def test_python_without_docstrings_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "rag_selectivity", "evaluate", "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: the command line needs its docstrings: run Python without -OO\n"
