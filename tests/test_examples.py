"""Every example runs offline, as its first lines say, and prints what it is there for."""

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forked_cli import run_command

pytestmark = pytest.mark.contract

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture
def run(printed_by) -> Callable[..., str]:
    return lambda name, *arguments: printed_by(EXAMPLES / name, *arguments)


@pytest.mark.parametrize(
    "name", ["ragas_existing_run.py", "llama_index_retriever_evaluation.py", "langchain_grade_unlabelled.py"]
)
def test_each_way_of_use_takes_no_more_than_25_lines(name) -> None:
    tree = ast.parse((EXAMPLES / name).read_text())
    words = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    code = [
        line
        for number, line in enumerate((EXAMPLES / name).read_text().splitlines(), 1)
        if line.strip() and not line.strip().startswith("#") and number not in words
    ]
    assert 10 < len(code) <= 25


@pytest.mark.slow
def test_ragas_existing_run(run) -> None:
    pytest.importorskip("ragas")
    pytest.importorskip("langchain_text_splitters")
    printed = run("ragas_existing_run.py")
    assert "'id_based_context_recall': 0." in printed  # Ragas' own figures of the run
    assert "the only run (Success@2 0.150 [0.076, 0.257])" in printed
    assert "ragas 4.592 of 7.329 0.150 0.075† 0.150" in " ".join(printed.split())
    assert "counted in InMemoryVectorStore; labels know its passages by doc." in " ".join(printed.split())
    assert int(printed.split("N = ")[-1].split()[0]) > 400


@pytest.mark.slow
def test_llama_index_retriever_evaluation(run) -> None:
    pytest.importorskip("llama_index.core")
    pytest.importorskip("langchain_core")
    printed = run("llama_index_retriever_evaluation.py")
    assert "Passages are known by ref_doc_id" in printed
    assert int(printed.split("N = ")[-1].split()[0]) > 400


@pytest.mark.slow
def test_langchain_grade_unlabelled(tmp_path, run) -> None:
    pytest.importorskip("langchain_core")
    pytest.importorskip("langchain_text_splitters")
    printed = run("langchain_grade_unlabelled.py", tmp_path / "labels.db")
    assert "600 from the runs' pools and 180 random controls" in " ".join(printed.split())
    assert re.search(r"with random passages .*\n.*\n +BoR@1 ", printed)
    assert "retriever 0.752‡ ≥ −1.243 0.938 1.000†" in " ".join(printed.split())  # the same in every process
    assert int(printed.split("N = ")[-1].split()[0]) > 400


@pytest.mark.slow
def test_llama_index_wider_or_reranked(data, tmp_path, run) -> None:
    pytest.importorskip("llama_index.core")
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.trec"):
        text = (data / "cranfield" / name).read_text()
        # Of 40 queries: each has a label for all 1,400 passages.
        (tmp_path / name).write_text(text.partition("\n41 ")[0] if name == "qrels.trec" else text)
    printed = run("llama_index_wider_or_reranked.py", tmp_path)
    table = printed[: printed.index("System: ")]  # of the example; what follows is the report of its last step
    rows = {line[:18].strip(): line[18:].split() for line in table.splitlines()}
    assert rows["top 5"][0] == "0.80"
    assert rows["top 5"][1] == "5.87"
    assert rows["50, reranked to 5"][4] == "0.77"  # PROC: what BM25's first 50 hold of the best five
    assert "selection-limited" in printed


@pytest.mark.slow
def test_langchain_live_monitor(tmp_path, run) -> None:
    pytest.importorskip("langchain_core")
    printed = run("langchain_live_monitor.py", tmp_path)
    assert printed.index("K = 100\n") < printed.index("ALARM tokens > 5000: ") < printed.index("ALARM lambda >= 1: ")
    assert (tmp_path / "langchain-live-monitor.png").stat().st_size > 10_000
    assert len((tmp_path / "langchain-live-monitor.jsonl").read_text().splitlines()) == 3 * 2 * 60


@pytest.mark.slow
def test_grade_live_traffic(tmp_path, run) -> None:
    printed = run("grade_live_traffic.py", tmp_path)
    assert "25 of 40 retrievals were traced" in printed
    assert "100 labels by judge" in printed
    assert re.search(r"^live +1\.000‡ +0\.750 ", printed, re.MULTILINE)


def test_langchain_tool_selection(tmp_path) -> None:
    pytest.importorskip("langchain_core")
    # In a process of its own, since it imports the standard library.
    printed = run_command("-c", (EXAMPLES / "langchain_tool_selection.py").read_text(), tmp_path).stdout
    rows = [row.split() for row in printed.splitlines() if re.fullmatch(r" *[\d,]+ +1 +[\d.]+% +[\d.]+ +[\d.]+", row)]
    sizes, successes, bits = ([float(row[i].strip("%").replace(",", "")) for row in rows] for i in (0, 2, 3))
    # The functions differ between versions of Python; that success falls while bits rise does not.
    assert sizes[:2] == [58, 500]
    assert 1500 < sizes[2] < 2500
    assert successes[0] - 10 > successes[1] > successes[2] + 5
    assert bits == pytest.approx([5.3, 7.7, 9.2], abs=0.4)
    assert "With five of 58 tools shown" in printed
    assert "Choice: of 5" in printed
    assert (tmp_path / "langchain-tool-selection.png").stat().st_size > 10_000
