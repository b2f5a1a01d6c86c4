"""What a new user sees in the first 30 lines: five answers in everyday words, one table, and what to do next."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forked_cli import run_command
from tests.judge_server import KEY, JudgeServer

pytestmark = pytest.mark.contract

HERE = Path(__file__).parent
#: Words of our own that no new user knows; the glossary's are allowed.
OURS = re.compile(r"\b(placebo|notion|closed labels|as judged|completed from|kappa with people|rest on)\b")


@pytest.fixture
def folder(written_sample, tmp_path, monkeypatch) -> Path:
    shutil.copytree(written_sample, tmp_path / "try")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    return tmp_path


@pytest.fixture
def first_lines(printed_by, folder) -> Callable[[str], list[str]]:
    """The first 30 lines of what a script prints in the folder of the sample."""
    return lambda script: printed_by(HERE / script).splitlines()[:30]


def answers(lines: list[str]) -> dict[str, str]:
    """The five answers, which stand first, one line each."""
    found = [line.partition(": ") for line in lines[:5]]
    assert [name for name, _, _ in found] == ["System", "K", "Loss", "Next", "Trust"], lines
    # A next step may end with a command to paste.
    assert all(text.endswith(".") for name, _, text in found if name != "Next"), lines
    return {name: text for name, _, text in found}


def header(lines: list[str]) -> list[str]:
    """The names of the columns: those of the line above the first row."""
    return re.split(r"\s{2,}", next(line.strip() for line in lines if line.strip().startswith("run ")))


def test_ragas_without_labels(first_lines, monkeypatch) -> None:
    pytest.importorskip("ragas")
    with JudgeServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        lines = first_lines("ragas_without_labels.py")
    said = answers(lines)
    assert "only" in said["System"].casefold()
    assert "person" in said["Trust"] or "people" in said["Trust"]
    assert header(lines)[:2] == ["run", "RA-nWG"]
    assert len(header(lines)) <= 5


def test_llama_index_with_expected_ids(first_lines) -> None:
    pytest.importorskip("llama_index.core")
    lines = first_lines("llama_index_expected_ids.py")
    said = answers(lines)
    assert "only" in said["System"].casefold()
    assert re.fullmatch(r"\d\d\.\d% of the top \d+ has no label; .*: grade_retriever\(…, .*", said["Next"])
    assert "have no text" not in " ".join(lines)
    assert len(header(lines)) <= 5


def test_a_langchain_agent(first_lines) -> None:
    pytest.importorskip("langchain.agents")
    lines = first_lines("langchain_agent.py")
    said = answers(lines)
    assert "2 quer" in "\n".join(lines)
    assert said["Next"]
    assert header(lines)[:2] == ["run", "RA-nWG"]


def test_a_lead_with_the_page(folder) -> None:
    """Somebody who decides, with three runs: the terminal and the page say the same."""
    files = ("try/labels.db", "try/bm25.trec", "try/dense.trec", "try/reranked.trec", "--corpus-size", "1000")
    done = run_command("evaluate", *files, cwd=folder)
    lines = done.stdout.splitlines()
    assert len(lines) <= 30
    said = answers(lines)
    assert "beats bm25 (+." in said["System"]
    assert len(header(lines)) == 5
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    assert run_command("evaluate", *files, "-o", "page.html", cwd=folder).returncode == 0
    page = " ".join(re.sub(r"<[^>]+>", "", (folder / "page.html").read_text()).split())
    assert said["System"] in page.replace("&#39;", "'")


@pytest.mark.parametrize("files", [("labels.db", "bm25.trec", "dense.trec"), ("qrels.trec", "bm25.trec")])
def test_no_word_of_our_own_stands_on_the_first_screen(folder, files) -> None:
    done = run_command("evaluate", *files, "--corpus-size", "1000", cwd=folder / "try")
    assert OURS.findall(" ".join(done.stdout.split())) == []
