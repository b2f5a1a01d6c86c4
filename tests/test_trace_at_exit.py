"""A trace has every retrieval of a short process, although the id of the passages is chosen after 50 of them."""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.contract

LANGCHAIN = """
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


#: Each script in a process of its own, which ends as any process does but has imported what it needs at its start.
EACH_IN_A_FORK = """
import json, os, sys
import FRAMEWORK
from ADAPTER import WATCHER
for folder, code in json.load(sys.stdin):
    child = os.fork()
    if not child:
        os.chdir(folder)
        exec(code)
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def run(
    folder: Path, framework: str, watcher: str, scripts: dict[str, str]
) -> tuple[list[str], dict[str, list[list[str]]]]:
    """What scripts print, each with its exit code behind it; and the passages of each line of their traces."""
    pytest.importorskip(framework.partition(".")[0])
    for name in scripts:
        (folder / name).mkdir()
    given = json.dumps([[str(folder / name), dedent(script)] for name, script in scripts.items()])
    adapter = f"rag_selectivity_{framework.partition('.')[0].removesuffix('_core')}"
    program = EACH_IN_A_FORK.replace("FRAMEWORK", framework).replace("ADAPTER", adapter).replace("WATCHER", watcher)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    traces = {name: (folder / name / "trace.jsonl").read_text().splitlines() for name in scripts}
    return done.stdout.split(), {name: [json.loads(line)["shown"] for line in lines] for name, lines in traces.items()}


def test_langchain(tmp_path) -> None:
    known = dedent(LANGCHAIN.replace("LABELLED", "49"))
    unknown = dedent(LANGCHAIN.replace("LABELLED", "20").replace('{f"d{i}": 1}', '{f"other-{i}": 1}'))
    scripts = {
        "end": f"{known}callback = main()",
        "sys.exit": f"{known}callback = main(); sys.exit(3)",
        "nothing holds the callback any more": f"{known}main()",
        # A forked child does not write what its parent wrote or will write.
        "fork": f"{known}callback = main(); pid = os.fork(); pid and os.waitpid(pid, 0); sys.exit(0)",
        "no label": f"{unknown}callback = main()",
    }
    codes, shown = run(tmp_path, "langchain_core.retrievers", "SelectivityCallback", scripts)
    assert codes == ["0", "3", "0", "0", "0"]
    assert shown.pop("no label") == [[f"uuid-{i}"] for i in range(49)]
    for name, passages in shown.items():
        assert passages == [[f"d{i}"] for i in range(49)], name


def test_llama_index(tmp_path) -> None:
    behind = 'print(len(open("trace.jsonl").readlines()), flush=True); os._exit(0)'
    scripts = {"within": f"{dedent(LLAMA_INDEX)}    sys.exit(3)", "behind": f"{dedent(LLAMA_INDEX)}{behind}"}
    printed, shown = run(tmp_path, "llama_index.core", "LiveSelectivity", scripts)
    assert printed == ["3", "49", "0"]
    for name, passages in shown.items():
        assert passages == [[f"d{i}"] for i in range(49)], name
