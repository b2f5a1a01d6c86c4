"""Every example runs offline, as its first lines say, and prints what it is there for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(name: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "RAGAS_DO_NOT_TRACK": "true"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_ragas_existing_run() -> None:
    pytest.importorskip("ragas")
    printed = run("ragas_existing_run.py")
    assert "before" in printed
    assert "bits over random at K = 10" in printed


def test_llama_index_retriever_evaluation(data) -> None:
    pytest.importorskip("llama_index.core")
    printed = run("llama_index_retriever_evaluation.py", data / "cranfield")
    rows = {line[:18].strip(): line[18:].split() for line in printed.splitlines()}
    assert rows["top 5"][0] == "0.78"
    assert rows["top 5"][1] == "6.07"
    assert rows["50, reranked to 5"][4] == "0.80"  # PROC: what BM25's first 50 hold of the best five
    assert "selection-limited" in printed


def test_llama_index_retriever_evaluation_without_data() -> None:
    pytest.importorskip("llama_index.core")
    assert "Reranking the 50 to 5 changes RA-nWG" in run("llama_index_retriever_evaluation.py")
