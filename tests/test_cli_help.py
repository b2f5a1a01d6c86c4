"""The help of every command: readable in 80 columns, without the list of measures, and with two examples.

What a start imports is here too: no help and no completion needs numpy.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity import advice
from rag_selectivity.cli import inputs, options
from rag_selectivity.cli.app import all_commands, app
from rag_selectivity.cli.options import PANELS
from rag_selectivity.cli.output import EXIT_CODES
from rag_selectivity.tables import exact

pytestmark = pytest.mark.inside

COMMANDS: dict[str, Any] = all_commands()


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """{command: its help}; the empty name is that of the program."""
    runner = CliRunner(env={"COLUMNS": "80"})
    return {
        name: runner.invoke(app, [*name.split(), "--help"]).output
        for name in ("", "golden", "online", "store", *COMMANDS)
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
def test_the_same_word_means_the_same(name) -> None:
    options = {option for each in visible(COMMANDS[name]) for option in each.opts}
    assert "--depth" not in options
    assert "--labels" not in options or name == "agree"


def test_no_help_lists_the_measures(helps) -> None:
    for text in helps.values():
        assert "BoR_opt" not in text
        assert "N-Recall" not in text
    assert "`rag-selectivity measures` lists all" in re.sub(r"\s+", " ", helps["evaluate"])


def test_panels_stand_in_their_order(helps) -> None:
    titles = re.findall(r"^(\S.*):$", helps["evaluate"], re.M)
    assert titles == ["Input", "Measures", "Edges", "Intervals", "Gates", "Output", "Every command", "Examples"]
    for name in COMMANDS:
        titles = [title for title in re.findall(r"^(\S.*):$", helps[name], re.M) if title != "Arguments"]
        assert titles.pop() == "Examples"
        assert titles == sorted(titles, key=PANELS.index)


def test_helps_name_what_is_registered(helps) -> None:
    text = re.sub(r"\s+", " ", helps["evaluate"])
    assert (
        "neither its content nor its suffix shows it: trec, beir, tsv, jsonl, csv, parquet, store, exported or golden."
        in text
    )
    assert "Set of rules: default or trec_eval. Each option below" in text
    assert "Interval method: bca, percentile or poisson." in text


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_opens_with_its_purpose_in_one_line(helps, name) -> None:
    purpose = COMMANDS[name].help.split("\n")[0]
    assert re.fullmatch(r"[A-Z].{10,70}[.]", purpose)
    lines = [line.strip() for line in helps[name].splitlines() if line.strip()]
    assert lines[1] == purpose


def test_the_programs_help_has_the_exit_codes(helps) -> None:
    for code, meaning in EXIT_CODES.items():
        assert f"{code:>3}  {meaning}" in helps[""].splitlines()


def test_the_programs_help_lists_each_command_with_its_purpose(helps) -> None:
    for words, command in COMMANDS.items():
        group, _, name = words.rpartition(" ")
        assert f" {name} {command.help.splitlines()[0]} " in " ".join(helps[group].split()) + " "


def test_a_terminal_has_colours(helps) -> None:
    pty = pytest.importorskip("pty")
    parent, child = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "rag_selectivity", "sample", "--help"]
    done = subprocess.run(command, stdout=child, check=True, env=environment)
    os.close(child)
    text = os.read(parent, 65536).decode().replace("\r\n", "\n")
    os.close(parent)
    assert done.returncode == 0
    assert "\x1b[1mEvery command" in text
    plain = re.sub(r"\x1b\[\d*m", "", text)
    assert plain.split("\n", 1)[1] == helps["sample"].split("\n", 1)[1]


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
    assert printed_by("--version")[-1] == "imported:"


@pytest.fixture(scope="module")
def imported_by_the_parser() -> str:
    """What `imported:` says if only typer is imported; its older versions import a library that draws boxes."""
    code = "import typer, sys; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return "imported: typer rich" if done.stdout.strip() == "True" else "imported: typer"


@pytest.mark.parametrize("words", [(), ("--help",), ("store",), ("sample", "--help"), ("grade", "--help")])
def test_a_help_needs_no_numpy(words, imported_by_the_parser) -> None:
    assert printed_by(*words)[-1] == imported_by_the_parser


def test_a_completion_needs_no_numpy(imported_by_the_parser) -> None:
    for line, completed in (
        ("rag-selectivity ev", "evaluate"),
        ("rag-selectivity evaluate --qrels x --po", "--policy"),
    ):
        variables = {
            "_RAG_SELECTIVITY_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split()) - 1),
        }
        *completions, imported = printed_by(**variables)
        assert completed in completions
        assert imported == imported_by_the_parser


def test_what_is_written_twice_is_the_same() -> None:
    assert (options.DEFAULT_MAX_K, options.DEFAULT_MAX_LOSS) == (advice.DEFAULT_MAX_K, advice.DEFAULT_MAX_LOSS)
    assert inputs.STANDARD_INPUT == exact.STANDARD_INPUT


# -- examples ---------------------------------------------------------------------------------------------


def examples_in(text: str) -> list[str]:
    """The shell commands at the end of a help."""
    last = re.sub(r" \\\n\s+", " ", text.split("\nExamples:\n")[1])
    return [line.strip() for line in last.splitlines() if line.strip()]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_has_the_two_examples_that_the_reference_runs(helps, name) -> None:
    examples = examples_in(helps[name])
    assert examples == COMMANDS[name].examples
    assert len(examples) == 2
    for example in examples:
        program, *words = shlex.split(example)
        assert program == "rag-selectivity"
        assert words[: len(name.split())] == name.split()
