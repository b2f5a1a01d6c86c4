"""What is likely to be meant otherwise is said, and a missing extra is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked_cli import run_command

pytestmark = pytest.mark.contract

FILES = {
    "qrels.trec": "q1 0 d1 1\nq2 0 d2 1\n",
    "run.trec": "q1 Q0 d1 1 2.0 r\nq1 Q0 d9 2 1.0 r\nq2 Q0 d8 1 1.0 r\n",
    "other_passages.trec": "q1 Q0 e1 1 2.0 r\nq2 Q0 e2 1 2.0 r\n",
}
EVALUATE = ["evaluate", "qrels.trec", "run.trec"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (place / name).write_text(text)
    return place


def command(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    return run_command(*words, cwd=folder, env={**inherited, "COLUMNS": "200", **environment})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["evaluate", "qrels.trec", "other_passages.trec", "--ids", "exact"],
            "ids come from the same corpus?",
        ),
    ],
    ids=["other passage ids"],
)
def test_what_can_be_but_is_rarely_meant_is_said(folder, words, expected) -> None:
    done = command(folder, *words)
    assert done.returncode == 0
    assert expected in " ".join(done.stderr.split())
    assert expected in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("module", "work", "expected"),
    [
        ("matplotlib", "rs.plots.grades(report)", "pip install 'rag-selectivity[report]'"),
        ("jinja2", "report.to_html()", "pip install 'rag-selectivity[report]'"),
        ("pandas", "report.to_pandas()", "pip install 'rag-selectivity[all]'"),
        ("openai", "rs.grade({'q': 'x'}, {'d': 'y'}, {'q': ['d']}, store='s.db', judge=openai_judge())", "[judge]"),
        ("pyarrow", "rs.read_qrels('q.parquet')", "pip install 'rag-selectivity[files]'"),
    ],
)
def test_a_missing_extra_is_named(tmp_path, module, work, expected) -> None:
    (tmp_path / "q.parquet").write_bytes(b"PAR1 PAR1")
    code = f"""
import sys
sys.modules[{module!r}] = None
import rag_selectivity as rs
from rag_selectivity.render import plots
rs.plots = plots
report = rs.evaluate({{"q": {{"d": 1}}}}, {{"r": {{"q": ["d"]}}}}, bootstrap=None)
def openai_judge():
    from rag_selectivity.grading.openai_judge import OpenAIJudge
    return OpenAIJudge("m", api_key="x")
try:
    {work}
except rs.MissingExtraError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, env=dict(os.environ)
    )
    assert expected in done.stdout, done.stderr


def test_completion_for_the_shell(folder) -> None:
    for shell in ("bash", "zsh", "fish"):
        done = command(folder, "--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
        assert done.returncode == 0, done.stderr
        assert "COMP" in done.stdout.upper()
