"""What the examples of warnings have in common."""

from __future__ import annotations


def heard(setup: str, call: str, code: str) -> str:
    """An example that hears the warnings of a call."""
    lines = "\n".join(f"    {line}".rstrip() for line in call.strip().splitlines())
    return f"""import warnings

{setup.strip()}

with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
{lines}
assert any(str(each.message).endswith("[{code}]") for each in heard)
"""


def evaluated(labels: str, run: str, code: str, options: str = "") -> str:
    call = f'rs.evaluate(labels, {{"mine": run}}, measures=["Success"], depths=[1], bootstrap=None{options})'
    return heard(f"import rag_selectivity as rs\n\nlabels = {labels}\nrun = {run}", call, code)


def noted(files: str, code: str) -> str:
    """An example with a note in the report; `files` defines labels and run."""
    return f"""import rag_selectivity as rs

{files.strip()}

report = rs.evaluate(labels, {{"mine": run}}, depths=[1], bootstrap=None)
assert any(note.endswith("[{code}]") for note in report.runs["mine"].notes)
"""


JUDGE = """
async def judge(messages, schema):
    return {"reason": "by a rule", "grade": 5}
"""
GRADED = f"""
import rag_selectivity as rs

queries, texts, run = {{"q1": "How long?"}}, {{"a": "Two years."}}, {{"q1": ["a"]}}

{JUDGE}
rs.grade(queries, texts, [run], store="graded.db", judge=judge)
"""
TASK = """
from rag_selectivity.grading.annotation.answers import Answer, write_answers
from rag_selectivity.grading.annotation.importing import import_answers
from rag_selectivity.grading.annotation.making import make_tasks
from rag_selectivity.grading.store import Store

with Store("graded.db") as store:
    (task,) = make_tasks(store, "agree:1", queries=queries, corpus=texts, annotators=["anna"])
write_answers("answers.json", task, {0: Answer(0, *task.items[0].fingerprints, 4, "", 1.7e9, 20.0)})
"""
LLAMA = """
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from rag_selectivity_llama_index import SelectivityEvaluator
"""
