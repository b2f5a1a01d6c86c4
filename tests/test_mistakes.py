"""A missing extra is named, and a shell is told how to complete."""

import os
import subprocess
import sys

import pytest

from tests.forked_cli import run_command

pytestmark = pytest.mark.contract


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


def test_completion_for_the_shell() -> None:
    for shell in ("bash", "zsh", "fish"):
        env = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
        done = run_command("--show-completion", shell, env=env)
        assert done.returncode == 0, done.stderr
        assert "COMP" in done.stdout.upper()
