"""What the README shows is true: its blocks run as they stand, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.judge_server import JudgeServer

pytestmark = pytest.mark.contract

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LONGEST = 138
#: What the first screen shows of the sample's list by the labels of its store; the same in each framework.
OF_THE_STORE = "RA-nWG@5 0.582 [0.445, 0.702]"
ROW_OF_THE_STORE = "0.582 4.100 of 4.650 0.690 0.788†"
#: Of each way in, without the lines of its fence.
LONGEST_BLOCK = 14


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.S | re.M)


def shell(block: str) -> str:
    """The commands of a console block as a script."""
    return "".join(f"{line.removeprefix('$ ')}\n" for line in block.splitlines())


SET_UP, SAMPLE, GRADED = blocks("console")
RAGAS, RAGAS_UNLABELLED, LLAMA_INDEX, LANGCHAIN = blocks("python")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """An empty folder in which the sample was written as the README says."""
    place = tmp_path_factory.mktemp("readme")
    done = run_script(shell(SAMPLE), place)
    assert done.returncode == 0, done.stderr
    return place


def run_script(script: str, place: Path) -> subprocess.CompletedProcess[str]:
    """Run a script with bash, with the Python and the commands of these tests; what it left running ends with it."""
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": here, "OPENAI_API_KEY": "none"}
    whole = f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\nset -e\n{script}"
    command = ["bash", "-c", whole]
    return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False, timeout=300)


def test_it_is_one_page() -> None:
    assert len(README.splitlines()) <= LONGEST


@pytest.mark.parametrize("block", [*blocks("python"), GRADED])
def test_each_way_in_is_short(block) -> None:
    assert len(block.splitlines()) <= LONGEST_BLOCK


def test_the_stand_in_has_a_model_name_and_a_store_of_its_own() -> None:
    """Its grades would pass for those of the real model, which would never be asked."""
    (names,) = re.findall(r"stands in:\s+give it the model name\s+`(\S+)`, the file `(\S+)`", README)
    assert not any(name in RAGAS_UNLABELLED for name in names)


@pytest.mark.slow
def test_llama_index_and_langchain_run_as_they_stand(folder) -> None:
    pytest.importorskip("llama_index.core")
    pytest.importorskip("langchain_core")
    code = f"{LLAMA_INDEX}\n{LANGCHAIN}"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count(f"System: retriever is the only run ({OF_THE_STORE})") == 2
    assert " ".join(done.stdout.split()).count(f"retriever {ROW_OF_THE_STORE}") == 2


@pytest.mark.slow
def test_ragas_runs_as_it_stands_and_grades_what_has_no_labels(folder, monkeypatch) -> None:
    """Both blocks in one process, as they follow each other; the first needs no server."""
    pytest.importorskip("ragas")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    code = f"{RAGAS}\nprint('-- graded --')\n{RAGAS_UNLABELLED}"
    with JudgeServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(server.bodies) == 480  # each context once, and three random passages a query
    by_the_store, by_its_own = done.stdout.split("-- graded --")
    assert f"System: ragas is the only run ({OF_THE_STORE})" in by_the_store
    assert f"ragas {ROW_OF_THE_STORE}" in " ".join(by_the_store.split())
    assert "480 labels by gpt-5-mini cover 100% of the top 5" in by_its_own


@pytest.mark.slow
def test_the_pool_is_graded_as_it_stands(folder) -> None:
    done = run_script(shell(GRADED), folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "controls: 180 pairs drawn from 1,000 passages of the corpus" in done.stdout
    assert "1,329 labels by word-overlap cover 100% of the top 10" in done.stdout
    assert "System: bm25 beats dense (+.25 of the evidence, as judged)" in done.stdout
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "bm25 0.728 2.890 of 3.517 0.657 0.907†" in rows
    assert "dense 0.486‡ − 2.599 of 3.517 0.715 − 0.744†" in rows


def test_the_set_up_commands_are_those_of_the_checks() -> None:
    demo_command, test_command = (line.removeprefix("$ ") for line in SET_UP.splitlines())
    assert demo_command == "pip install -e '.[demo]' && rag-selectivity demo"
    assert test_command == "pip install -e '.[all,dev]' && pytest"
    assert 'session.install("--editable", ".[all,dev]")' in (ROOT / "noxfile.py").read_text(encoding="utf-8")
