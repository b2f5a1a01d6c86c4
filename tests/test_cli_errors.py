"""Every error is one line, and the exit codes are the same for all commands."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import app
from tests.forked_cli import run_command
from tests.judge_server import KEY
from tests.test_cli_help import COMMANDS

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("qrels.trec").write_text("q1 0 a 5\nq1 0 b 1\nq2 0 c 4\n")
    Path("run.trec").write_text("q1 Q0 a 1 9.5 t\nq1 Q0 x 2 8.5 t\nq2 Q0 x 1 7 t\nq2 Q0 c 2 6 t\n")
    Path("queries.jsonl").write_text('{"_id": "q1", "text": "who?"}\n{"_id": "q2", "text": "what?"}\n')
    Path("corpus.jsonl").write_text("".join(json.dumps({"_id": i, "text": f"text {i}"}) + "\n" for i in "abcx"))
    sample = {"user_input": "who?", "retrieved_contexts": ["c1 useful", "n1", "c2"], "reference": "c1. c2."}
    Path("samples.jsonl").write_text(json.dumps(sample) + "\n")
    Path("latin.trec").write_bytes("q1 0 é 5\n".encode("latin-1"))
    Path("broken.json").write_text("{")
    Path("folder").mkdir()
    return tmp_path


def process(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return run_command(*words, env={**inherited, **environment})


EVALUATE = ("evaluate", "qrels.trec", "--scale", "utility", "run.trec")
GRADE = ("grade", "--queries", "queries.jsonl", "--corpus", "corpus.jsonl", "--pool", "run.trec", "--model", "m")
CLAIMS = ("claims", "--samples", "samples.jsonl", "--store", "claims.db", "--model", "m")

# -- one line ---------------------------------------------------------------------------------------------


def test_an_environment_variable_shows_the_traceback(monkeypatch) -> None:
    words = [*EVALUATE, "--depths", "x"]
    plain = process(*words)
    monkeypatch.setenv("RAG_SELECTIVITY_DEBUG", "1")
    debugged = process(*words)
    assert (debugged.returncode, debugged.stdout) == (2, "")
    assert debugged.stderr.startswith("Traceback (most recent call last):")
    assert debugged.stderr.endswith(plain.stderr)
    assert "Traceback" not in plain.stderr


def test_a_file_in_the_place_of_another_is_named() -> None:
    assert "its columns are those of --corpus" in process("evaluate", "corpus.jsonl", "run.trec").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("plan qrels.trec run.trec --scale utility --corpus-size 9 --human 2", "labels so far (--known FILE) or how"),
        ("grade --store s.db --pool-depth 2 --show-bits -1 --controls 2 --dry-run", "error: --show-bits must be"),
    ],
)
def test_an_option_takes_the_place_of_its_parameter_alone(words, said) -> None:
    words = [*GRADE, *words.split()[1:]] if words.startswith("grade") else words.split()
    assert said in process(*words).stderr


RUN_OF_CLAIMS = "claims run.trec --corpus corpus.jsonl --queries queries.jsonl --store s.db --model m"
TEXTS_OF_ANSWERS = "--corpus corpus.jsonl --queries queries.jsonl --references refs.jsonl --store s.db --model m"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"{RUN_OF_CLAIMS} --check recal", "--check must be one of"),
        (f"{RUN_OF_CLAIMS} --check recall", "the check recall needs reference answers: --references FILE"),
        (f"{' '.join(GRADE)} --store s.db -c judge.order=ranks", "order"),
        (f"answers run.trec {TEXTS_OF_ANSWERS} -c judge.controls=idea", "did you mean"),
        (f"{RUN_OF_CLAIMS} --references refs.jsonl", "no API key: the environment variable OPENAI_API_KEY is not set"),
    ],
)
def test_a_wrong_option_is_named_before_a_key_is_asked_for(words, said, monkeypatch) -> None:
    Path("refs.jsonl").write_text('{"query_id": "q1", "reference": "a"}\n')
    done = process(*words.split())
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not Path("s.db").exists()


#: An error that nobody expects, raised by a command that is added to the app.
UNEXPECTED = """
import sys
from rag_selectivity.cli import app as cli
from rag_selectivity.cli.command import Command

@cli.app.command(cls=Command)
def fail() -> None:
    raise {error}

cli.run_command_line()
"""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            'KeyError("x")',
            "error: this is a bug in rag-selectivity (KeyError: 'x'); RAG_SELECTIVITY_DEBUG=1 shows the "
            "traceback, which a report of the bug needs\n",
        ),
        ('PermissionError(13, "Permission denied", "a.trec")', "error: a.trec: Permission denied\n"),
        ('OSError("the disk is full")', "error: the disk is full\n"),
        ('__import__("sqlite3").OperationalError("locked")', "error: the label store cannot be used (locked)\n"),
        ("MemoryError", "error: there is not enough memory: give one run at a time, or fewer measures and depths\n"),
        ('"Δ".encode("ascii")', "error: standard output cannot show 'Δ' in ascii: set PYTHONUTF8=1, or write to a "),
    ],
)
def test_an_unexpected_error_is_one_line(error, line, monkeypatch) -> None:
    script = UNEXPECTED.format(error=error)
    for options in ("", "1"):
        monkeypatch.setenv("RAG_SELECTIVITY_DEBUG", options)
        done = run_command("-c", script, "fail")
        assert (done.returncode, done.stdout) == (2, "")
        before, *_ = done.stderr.partition("error: ")
        assert bool(before) == bool(options)
        assert done.stderr.removeprefix(before).startswith(line)
        assert done.stderr.removeprefix(before).count("\n") == 1


ONCE = [
    (name, max(parameter.opts, key=len))
    for name, command in COMMANDS.items()
    for parameter in command.params
    if parameter.param_type_name == "option" and not parameter.multiple and not parameter.is_flag
]


@pytest.mark.parametrize("name", sorted({command for command, _ in ONCE}))
def test_an_option_that_takes_one_value_is_given_once(name) -> None:
    options = [option for command, option in ONCE if command == name]
    assert options
    for option in options:
        done = CliRunner().invoke(app, [*name.split(), option, "1", option, "2"])
        assert isinstance(done.exception, rs.InputError), option
        assert str(done.exception) == f"{option} is given 2 times, and takes one value; leave the others out"


# -- exit codes -------------------------------------------------------------------------------------------


#: Every command that reads a file, so that it can be interrupted while it waits for standard input.
WAITING = {
    "evaluate": ("evaluate", "-", "run.trec"),
    "grade": (*GRADE[:2], "-", *GRADE[3:], "--store", "s.db", "--dry-run"),
    "claims": ("claims", "--samples", "-", *CLAIMS[3:]),
    "labels import": ("labels", "import", "s.db", "-"),
}


@contextmanager
def started(*words: str, stdin: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[str]]:
    """A command that runs, and is gone at the end whatever happens."""
    running = subprocess.Popen(
        [sys.executable, "-m", "rag_selectivity", *words],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENAI_API_KEY": KEY},
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def wait_for(condition: Callable[[], bool], running: subprocess.Popen[str]) -> None:
    while not condition():
        assert running.poll() is None
        time.sleep(0.01)


def sleeps(running: subprocess.Popen[str]) -> bool:
    """Whether the main thread waits for something; a signal that was sent before is handled then."""
    return Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="what it waits for is read from /proc")


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("name", WAITING)
def test_ctrl_c_is_told_shortly_with_exit_code_130(name) -> None:
    fcntl, termios = (pytest.importorskip(module) for module in ("fcntl", "termios"))
    reading, writing = os.pipe()
    with started(*WAITING[name], stdin=reading) as running:
        os.close(reading)
        os.write(writing, b"\n")

        def took_all() -> bool:
            (left,) = struct.unpack("i", fcntl.ioctl(writing, termios.FIONREAD, b"\0" * 4))
            return left == 0 and sleeps(running)

        wait_for(took_all, running)
        running.send_signal(signal.SIGINT)
        printed, told = running.communicate(timeout=60)
        os.close(writing)
    assert (running.returncode, printed) == (130, "")
    # What asks a judge keeps what it has, and says how to go on.
    goes_on = f"go on with: rag-selectivity {name} .*\n" if name in ("grade", "claims") else ""
    assert re.fullmatch(f"interrupted\n{goes_on}", told)


def test_ctrl_c_while_the_command_line_is_imported_is_no_traceback(tmp_path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", "from rag_selectivity.cli import main; main()"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_a_reader_that_stops_early_is_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [sys.executable, "-m", "rag_selectivity", *EVALUATE], stdout=writing, stderr=subprocess.PIPE, text=True
    ) as running:
        os.close(writing)
        _, told = running.communicate(timeout=60)
    assert (running.returncode, told) == (1, "")
