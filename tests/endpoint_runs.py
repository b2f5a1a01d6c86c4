"""Runs of `rag-selectivity grade` as a process against a server of the tests."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.grading.store import Store
from tests.forked_cli import FORKS, ForkedProcess
from tests.hostile_server import KEY, MODEL

#: Passages of a question in the files of `write_pairs`.
DEPTH = 5


def write_pairs(folder: Path, pairs: int, texts: Mapping[int, str] | None = None) -> Path:
    """Files for so many pairs: passage k, by its number, belongs to question k // 5 alone."""
    questions = range((pairs + DEPTH - 1) // DEPTH)
    (folder / "queries.tsv").write_text("".join(f"q{i}\tquestion {i}?\n" for i in questions))
    bodies = {n: f"passage number {n} " + (texts or {}).get(n, "and its text") for n in range(pairs)}
    records = ({"_id": f"d{number}", "text": text} for number, text in bodies.items())
    (folder / "corpus.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    lines = (f"q{n // DEPTH} Q0 d{n} {n % DEPTH + 1} {DEPTH - n % DEPTH} t\n" for n in range(pairs))
    (folder / "pool.trec").write_text("".join(lines))
    return folder


@dataclass(frozen=True)
class Finished:
    """A run that has ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The JSON that it printed."""
        try:
            data: dict[str, Any] = json.loads(self.out)
        except ValueError:
            raise AssertionError(f"no JSON (exit code {self.code}): {self.out!r}\n{self.err}") from None
        return data

    @property
    def said(self) -> str:
        """All that it printed."""
        return self.out + self.err


class Run:
    """A run of `grade` in a folder with the files of `write_pairs`."""

    def __init__(
        self,
        folder: Path,
        url: str,
        *arguments: str,
        store: str = "labels.db",
        model: str = MODEL,
        json_format: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> None:
        files = ["--queries", "queries.tsv", "--corpus", "corpus.jsonl", "--pool", "pool.trec", "--store", store]
        json_options = ("--format", "json") if json_format else ()
        self.process = _start(
            folder, "grade", *files, "--model", model, "--base-url", url, *json_options, *arguments, env=env
        )

    def finish(self, timeout: float = 60) -> Finished:
        """Wait for its end. A run that does not end is killed, and fails the test."""
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"the run did not end within {timeout} s: {out}\n{err}") from None
        return Finished(self.process.returncode, out, err)

    def interrupt(self, timeout: float = 30) -> Finished:
        """Press Ctrl-C. A run that waits for an answer that does not come, or for a pause, is killed."""
        self.process.send_signal(signal.SIGINT)
        return self.finish(timeout)


def _start(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> ForkedProcess | subprocess.Popen[str]:
    """The command line in a process of its own, with its own environment; an empty value removes a variable."""
    root = Path(__file__).resolve().parents[1]
    base = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{root}:{root / 'integrations'}", "OPENAI_API_KEY": KEY}
    variables = {name: value for name, value in {**base, **(env or {})}.items() if value}
    if FORKS:
        return ForkedProcess(list(arguments), folder, variables)
    command = [sys.executable, "-m", "rag_selectivity", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, env=variables)


def cli(folder: Path, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 60) -> Finished:
    """Run any command to its end."""
    process = _start(folder, *arguments, env=env)
    out, err = process.communicate(timeout=timeout)
    return Finished(process.returncode, out, err)


def run(folder: Path, url: str, *arguments: str, **options: Any) -> Finished:
    """Run the command to its end."""
    return Run(folder, url, *arguments, **options).finish()


def rows(folder: Path, store: str = "labels.db") -> dict[int, dict[str, Any]]:
    """The labels in the store: {number of the passage: row}."""
    with Store(folder / store) as opened:
        return {int(row["passage_id"][1:]): row for row in opened.rows()}


def grades(folder: Path, store: str = "labels.db") -> dict[int, int]:
    """The grades in the store: {number of the passage: grade}; failed pairs are left out."""
    return {number: row["grade"] for number, row in rows(folder, store).items() if row["grade"] is not None}
