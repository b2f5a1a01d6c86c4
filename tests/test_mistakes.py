"""What is likely to be meant otherwise is said, and a missing extra is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked_cli import run_command
from tests.wall.mistakes import write

pytestmark = pytest.mark.contract


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("mistakes")
    write(place)
    return place


def command(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    return run_command(*words, cwd=folder, env={**inherited, "COLUMNS": "200", **environment})


def test_what_can_be_but_is_rarely_meant_is_said(folder) -> None:
    done = command(folder, "evaluate", "qrels.trec", "other_passages.trec", "--ids", "exact")
    assert done.returncode == 0
    for said in (done.stderr, done.stdout):
        assert "ids come from the same corpus?" in " ".join(said.split())


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
