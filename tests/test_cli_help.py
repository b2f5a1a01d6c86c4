"""The help of every command: readable in 80 columns, without the list of measures, and with two examples."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
from typer.main import get_command

import rag_selectivity as rs
from rag_selectivity.cli.app import app
from rag_selectivity.cli.options import PANELS
from rag_selectivity.cli.output import EXIT_CODES

#: How a terminal can be: with rich's boxes, a dumb one, and without rich.
TERMINALS = {
    "rich": {"TERM": "xterm"},
    "dumb": {"TERM": "dumb"},
    "plain": {"TERM": "xterm", "TYPER_USE_RICH": "0"},
}
_PRINT_ALL = """
import json, sys
from typer.testing import CliRunner
from rag_selectivity.cli.app import app
texts = {name: CliRunner().invoke(app, [*name.split(), "--help"]).output for name in sys.argv[1:]}
print(json.dumps(texts))
"""


def commands_of(group: Any, above: tuple[str, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        words = (*above, name)
        found |= commands_of(command, words) if hasattr(command, "commands") else {" ".join(words): command}
    return found


COMMANDS = commands_of(get_command(app))


@pytest.fixture(scope="module")
def helps() -> dict[str, dict[str, str]]:
    """{terminal: {command: its help}}; the empty name is that of the program."""

    def on(terminal: dict[str, str]) -> dict[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", _PRINT_ALL, "", "store", *COMMANDS],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", **terminal},
        )
        found: dict[str, str] = json.loads(done.stdout)
        return found

    return {name: on(terminal) for name, terminal in TERMINALS.items()}


def visible(command: Any) -> list[Any]:
    return [each for each in command.params if not getattr(each, "hidden", False)]


def place_of_help(text: str, parameter: Any) -> int:
    """The column at which the meaning of a parameter begins."""
    name = max(parameter.opts, key=len) if parameter.param_type_name == "option" else parameter.metavar
    first = re.escape(" ".join(parameter.help.split()[:2]))
    found = re.search(rf"^[│*\s]*(?:-\w, )?{re.escape(name)}[\s,].*?(?P<help>{first})", text, re.M | re.S)
    assert found, (name, parameter.help)
    return found.start("help") - text.rindex("\n", 0, found.start("help")) - 1


@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize("name", COMMANDS)
def test_meanings_have_room_in_80_columns(helps, name, terminal) -> None:
    text = helps[terminal][name]
    assert max(map(len, text.splitlines())) <= 80
    edge = 80 if terminal == "plain" else 78  # the panel's border
    for parameter in visible(COMMANDS[name]):
        assert edge - place_of_help(text, parameter) >= 36, parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_meaning_and_a_panel(name) -> None:
    for parameter in visible(COMMANDS[name]):
        assert re.fullmatch(r"[A-Z(].*[.]", parameter.help, re.S), parameter.name
        if parameter.param_type_name == "option":
            assert parameter.rich_help_panel in PANELS, parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_word_means_the_same(name) -> None:
    options = {option for each in visible(COMMANDS[name]) for option in each.opts}
    assert "--depth" not in options
    assert "--labels" not in options or name == "agree"


@pytest.mark.parametrize("terminal", TERMINALS)
def test_no_help_lists_the_measures(helps, terminal) -> None:
    for text in helps[terminal].values():
        assert "BoR_opt" not in text
        assert "N-Recall" not in text
    assert "`rag-selectivity measures` lists all" in re.sub(r"[│\s]+", " ", helps[terminal]["evaluate"])


def test_panels_stand_in_their_order(helps) -> None:
    titles = re.findall(r"^╭─ (.+?) ─", helps["rich"]["evaluate"], re.M)
    assert titles == ["Input", "Measures", "Edges", "Intervals", "Gates", "Output", "Every command"]
    for name in COMMANDS:
        titles = [title for title in re.findall(r"^╭─ (.+?) ─", helps["rich"][name], re.M) if title != "Arguments"]
        assert titles == sorted(titles, key=PANELS.index)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_opens_with_its_purpose_in_one_line(helps, name) -> None:
    purpose = COMMANDS[name].help.split("\n")[0]
    assert re.fullmatch(r"[A-Z].{10,70}[.]", purpose)
    lines = [line.strip() for line in helps["plain"][name].splitlines() if line.strip()]
    assert lines[1] == purpose


def test_the_programs_help_has_the_exit_codes(helps) -> None:
    for terminal in TERMINALS:
        for code, meaning in EXIT_CODES.items():
            assert f"{code:>3}  {meaning}" in helps[terminal][""].splitlines()


def test_the_version() -> None:
    done = subprocess.run([sys.executable, "-m", "rag_selectivity", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"rag-selectivity {rs.__version__}\n", "")


# -- examples ---------------------------------------------------------------------------------------------


def examples_in(text: str) -> list[str]:
    """The shell commands at the end of a help."""
    last = re.sub(r" \\\n\s+", " ", text.split("\nExamples:\n")[1])
    return [line.strip() for line in last.splitlines() if line.strip()]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_has_the_two_examples_that_the_reference_runs(helps, name) -> None:
    examples = examples_in(helps["rich"][name])
    assert examples == examples_in(helps["plain"][name]) == COMMANDS[name].examples
    assert len(examples) == 2
    for example in examples:
        program, *words = shlex.split(example)
        assert program == "rag-selectivity"
        assert words[: len(name.split())] == name.split()
