"""A file whose suffix names no format that a command writes is refused before any work, naming those that work."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rag_selectivity.cli.app import app

pytestmark = pytest.mark.contract

QRELS = "".join(f"q{i} 0 a 1\nq{i} 0 b 0\n" for i in range(6))
RUN = "".join(f"q{i} Q0 {p} {r} {-r} x\n" for i in range(6) for r, p in enumerate("bac", 1))
TABLE = ".txt, .json, .csv or .md"
#: The words of each command that writes a file by its suffix, and the suffixes that work.
COMMANDS = {
    "evaluate q.trec r.trec": ".html, .txt, .json, .csv, .md or .tex",
    "evaluate q.trec r.trec s.trec --baseline r": ".html, .txt, .json, .csv, .md or .tex",
    "plan --corpus-size 100 --relevant 2": TABLE,
    "labels agree q.trec q.trec": TABLE,
    "plan --log q.trec": TABLE,
    "validate q.trec r.trec --scores q.trec": TABLE,
    "explain": ".txt or .md",
    "explain q.trec": ".txt or .md",
    "grade --pool r.trec --queries q.trec --corpus q.trec --store new.db --model m": ".txt or .json",
    "claims --samples q.trec --store new.db --model m": ".html, .txt, .json, .csv or .md",
    "answers r.trec --queries q.trec --corpus q.trec --store new.db --model m -k 3": TABLE,
    "golden check q.trec": ".txt or .json",
    "golden diff q.trec": ".txt or .json",
    "labels info new.db": ".txt",
    "online compare r.trec --metric clicks": TABLE,
    "online preference r.trec": TABLE,
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    Path("q.trec").write_text(QRELS)
    for name in ("r.trec", "s.trec"):
        Path(name).write_text(RUN)
    return tmp_path


def invoke(words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, words.split())
    error = "" if result.exception is None else str(result.exception)
    return result.exit_code, f"{result.output}{error}"


@pytest.mark.parametrize("suffix", [".pdf", ".xlsx", ".jpg", ".json.gz"])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_suffix_is_refused(command, suffix, folder) -> None:
    before = sorted(folder.iterdir())
    code, said = invoke(f"{command} --output out{suffix}")
    assert code != 0
    last = suffix[suffix.rindex(".") :]
    assert f"out{suffix}: cannot write {last}; use {COMMANDS[command]}" in said, said
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "begins"),
    [("out", "r"), ("out.txt", "r"), ("out.json", "{"), ("out.CSV", "run,"), ("out.tex", "\\"), ("out.md", "")],
)
def test_the_suffixes_that_work(name, begins, folder) -> None:
    code, said = invoke(f"evaluate q.trec r.trec --output {name}")
    assert code == 0, said
    assert Path(name).stat().st_size
    assert begins == "r" or Path(name).read_text().startswith(begins)


def test_a_format_that_is_given_takes_any_name(folder) -> None:
    code, said = invoke("evaluate q.trec r.trec --format json --output out.data")
    assert code == 0, said
    assert Path("out.data").read_text().startswith("{")
