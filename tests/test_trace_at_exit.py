"""A trace has every retrieval of a short process, although the id of the passages is chosen after 50 of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.contract

LANGCHAIN = """
    import os, sys
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from rag_selectivity_langchain import SelectivityCallback

    class Retriever(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            name = query.removeprefix("question ")
            return [Document(id=f"uuid-{name}", page_content="a text", metadata={"source": f"d{name}"})]

    def main():
        labels = {f"question {i}": {f"d{i}": 1} for i in range(LABELLED)}
        callback = SelectivityCallback(labels, corpus_size=100, trace="trace.jsonl")
        retriever = Retriever()
        for i in range(49):
            retriever.invoke(f"question {i}", config={"callbacks": [callback]})
        return callback
"""
LLAMA_INDEX = """
    import sys
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode
    from rag_selectivity_llama_index import LiveSelectivity

    class Retriever(BaseRetriever):
        def _retrieve(self, query_bundle):
            name = query_bundle.query_str.removeprefix("question ")
            return [NodeWithScore(node=TextNode(text="a text", metadata={"source": f"d{name}"}), score=1.0)]

    labels = {f"question {i}": {f"d{i}": 1} for i in range(49)}
    retriever = Retriever()
    with LiveSelectivity(labels, corpus_size=100, trace="trace.jsonl"):
        for i in range(49):
            retriever.retrieve(f"question {i}")
"""


def run(folder: Path, code: str, end: str, exit_code: int = 0) -> list[dict]:
    """The lines of the trace that a process leaves."""
    done = subprocess.run(
        [sys.executable, "-c", dedent(code) + end], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == exit_code, done.stderr
    return [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("end", "exit_code"),
    [
        ("callback = main()", 0),
        ("callback = main(); sys.exit(3)", 3),
        ("main()", 0),  # nothing holds the callback any more
        # A forked child does not write what its parent wrote or will write.
        ("callback = main(); pid = os.fork(); pid and os.waitpid(pid, 0); sys.exit(0)", 0),
    ],
    ids=["end", "sys.exit", "callback gone", "fork"],
)
def test_langchain(end, exit_code, tmp_path) -> None:
    pytest.importorskip("langchain_core")
    rows = run(tmp_path, LANGCHAIN.replace("LABELLED", "49"), end, exit_code)
    assert [row["shown"] for row in rows] == [[f"d{i}"] for i in range(49)]


def test_ids_that_no_label_knows_are_written_too(tmp_path) -> None:
    pytest.importorskip("langchain_core")
    code = LANGCHAIN.replace("LABELLED", "20").replace('{f"d{i}": 1}', '{f"other-{i}": 1}')
    rows = run(tmp_path, code, "callback = main()")
    assert [row["shown"] for row in rows] == [[f"uuid-{i}"] for i in range(49)]


def test_llama_index_with_block(tmp_path) -> None:
    pytest.importorskip("llama_index.core")
    rows = run(tmp_path, LLAMA_INDEX, "    sys.exit(3)", 3)
    assert [row["shown"] for row in rows] == [[f"d{i}"] for i in range(49)]


def test_the_lines_are_there_when_the_with_block_ends(tmp_path) -> None:
    pytest.importorskip("llama_index.core")
    end = 'print(len(open("trace.jsonl").readlines()), flush=True); import os; os._exit(0)'
    done = subprocess.run(
        [sys.executable, "-c", dedent(LLAMA_INDEX) + end], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "49\n", done.stderr
