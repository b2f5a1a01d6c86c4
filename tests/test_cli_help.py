"""The help of every command: readable in 80 columns, without the list of measures, and its examples run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import rag_selectivity as rs
from rag_selectivity.cli.app import app
from rag_selectivity.cli.options import PANELS
from rag_selectivity.cli.output import EXIT_CODES
from rag_selectivity.grading.store import Store
from rag_selectivity.io.texts import read_texts
from tests.forked_cli import run_command
from tests.judge_server import KEY, JudgeServer, Reply
from tests.test_claims import respond
from tests.test_store import put, put_texts

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
from tests.forked_cli import run_command
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


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory) -> Path:
    """The files that the examples name: thirty queries of Cranfield, and pairs that people and LLMs labelled."""
    place = tmp_path_factory.mktemp("examples")
    cranfield, judges = data / "cranfield", data / "judges"

    def write(name: str, lines: list[str]) -> None:
        (place / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    graded = [line.split() for line in (cranfield / "qrels.trec").read_text().splitlines()]
    queries = sorted({fields[0] for fields in graded}, key=int)[:30]
    graded = [fields for fields in graded if fields[0] in queries]
    write("grades.trec", [" ".join(fields) for fields in graded])
    write("qrels.trec", [f"{query} 0 {passage} {int(int(grade) >= 4)}" for query, _, passage, grade in graded])
    for run, depth, name in (("bm25", 20, "bm25"), ("lsa", 20, "dense"), ("bm25", 100, "candidates")):
        rows = (line.split() for line in (cranfield / "runs" / f"{run}.trec").read_text().splitlines())
        write(f"{name}.trec", [" ".join(row) for row in rows if row[0] in queries and int(row[3]) <= depth])
    for name in ("queries.jsonl", "corpus.jsonl"):
        (place / name).write_bytes((cranfield / name).read_bytes())
    texts = {row["_id"]: row["text"] for row in map(json.loads, (place / "corpus.jsonl").read_text().splitlines())}
    write("tokens.csv", ["passage_id,tokens", *(f"{id_},{len(text.split())}" for id_, text in texts.items())])
    samples = [
        {"user_input": f"question {i}", "retrieved_contexts": ["c1 useful", "n1 noise", "c2"], "reference": "c1. c2."}
        for i in range(2)
    ]
    write("samples.jsonl", [json.dumps(sample) for sample in samples])
    rows = [json.loads(line) for line in (data / "golden" / "bor_log.jsonl").read_text().splitlines()]
    names = {"N": "pool_size", "K": "top_k", "R": "num_relevant", "hit": "found"}
    write("log.csv", [",".join(names), *(",".join(str(row[name]) for name in names.values()) for row in rows)])
    by_people = rs.read_qrels(judges / "human.qrels").regraded("0:1,1:3,2:4,3:5").to_dict()
    by_judge = rs.read_qrels(judges / "willia-umbrela1.qrels").regraded("0:1,1:3,2:4,3:5").to_dict()
    labelled = sorted(by_judge)[:4]
    write("human.qrels", [f"{query} 0 {id_} {grade}" for query in labelled for id_, grade in by_people[query].items()])
    (place / "graded03.trec").write_bytes((judges / "human.qrels").read_bytes())
    with Store(place / "labels.db") as store:
        put(store, "umbrela", {(query, id_): grade for query, row in by_judge.items() for id_, grade in row.items()})
    questions, passages = (dict(read_texts(place / f"{what}.jsonl", what)) for what in ("queries", "corpus"))
    with Store(place / "graded.db") as store:
        known = {(query, id_): (questions[query], passages[id_], int(grade)) for query, _, id_, grade in graded}
        put_texts(store, known)
    options: dict[str, Any] = {"scale": "utility", "measures": ["RA-nWG"], "depths": [3], "bootstrap": None}
    rs.evaluate(place / "grades.trec", {"bm25": place / "bm25.trec"}, **options).save(place / "before.json")
    return place


def answer(request: Any, n: int) -> Reply:
    """Grades for `grade`, claim checks for `claims`."""
    fields = request["response_format"]["json_schema"]["schema"]["properties"]
    return Reply(json.dumps({"reason": "r", "grade": 4})) if "grade" in fields else respond(request, n)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_run(helps, folder, name) -> None:
    examples = examples_in(helps["rich"][name])
    assert examples == examples_in(helps["plain"][name]) == COMMANDS[name].examples
    assert len(examples) == 2
    with JudgeServer(answer) as server:
        for example in examples:
            program, *words = shlex.split(example)
            assert program == "rag-selectivity"
            assert words[: len(name.split())] == name.split()
            done = run_command(
                *words, cwd=folder, env={**os.environ, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
            )
            assert done.returncode in ((0, 1) if "--fail-if" in words else (0,)), (example, done.stderr)
            assert "error:" not in done.stderr
            to_a_file = ("--output" in words and name != "demo") or words[-1] == "labels.qrels"
            assert bool(done.stdout) != to_a_file
