"""The pages of the warnings, and of notes about what was read."""

from __future__ import annotations

from rag_selectivity.explain.code import REMARK, Code

_IDS = "ids-do-not-match"


def _heard(setup: str, call: str, code: str) -> str:
    """An example that hears the warnings of a call."""
    lines = "\n".join(f"    {line}".rstrip() for line in call.strip().splitlines())
    return f"""import warnings

{setup.strip()}

with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
{lines}
assert any(str(each.message).endswith("[{code}]") for each in heard)
"""


def _evaluated(labels: str, run: str, code: str, options: str = "") -> str:
    call = f'rs.evaluate(labels, {{"mine": run}}, measures=["Success"], depths=[1], bootstrap=None{options})'
    return _heard(f"import rag_selectivity as rs\n\nlabels = {labels}\nrun = {run}", call, code)


def _noted(files: str, code: str) -> str:
    """An example with a note in the report; `files` defines labels and run."""
    return f"""import rag_selectivity as rs

{files.strip()}

report = rs.evaluate(labels, {{"mine": run}}, depths=[1], bootstrap=None)
assert any(note.endswith("[{code}]") for note in report.runs["mine"].notes)
"""


_JUDGE = """
async def judge(messages, schema):
    return {"reason": "by a rule", "grade": 5}
"""
_GRADED = f"""
import rag_selectivity as rs

queries, texts, run = {{"q1": "How long?"}}, {{"a": "Two years."}}, {{"q1": ["a"]}}

{_JUDGE}
rs.grade(queries, texts, [run], store="labels.db", judge=judge)
"""
_TASK = """
from rag_selectivity.grading.annotation.answers import Answer, write_answers
from rag_selectivity.grading.annotation.importing import import_answers
from rag_selectivity.grading.annotation.making import make_tasks
from rag_selectivity.grading.store import Store

with Store("labels.db") as store:
    (task,) = make_tasks(store, "agree:1", queries=queries, corpus=texts, annotators=["anna"])
write_answers("answers.json", task, {0: Answer(0, *task.items[0].fingerprints, 4, "", 1.7e9, 20.0)})
"""
_LLAMA = """
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from rag_selectivity_llama_index import SelectivityEvaluator
"""

WARNING_PAGES = (
    Code(
        "ids-do-not-match",
        "No retrieved passage, or no query, has a label under its id.",
        "Labels and lists name different things, or name them differently. A figure would be 0 or NaN whatever the "
        "retriever does. Where it is certain, it is an error; this warning stands where an empty result is possible.",
        "No retrieved passage is judged and `ids='exact'` accepts that; the labels of a monitor are found for no "
        "passage or no query so far, or by different ids equally well; no row of a framework retrieved a judged "
        "passage; no labelled passage is in the index.",
        "Look at the examples of both sides in the message. Give the form or the identity under which they match "
        "(`ids=`, `identity=`), or labels by the ids that the index keeps.",
        _evaluated('{"q1": {"a": 1}}', '{"q1": ["doc-a"]}', "ids-do-not-match", ', ids="exact"'),
        how_to=_IDS,
    ),
    Code(
        "ids-partly-match",
        "Ids of labels and of lists match in part only, so that figures are probably too low.",
        "What does not match counts as unjudged or as a missing query.",
        "In another form (case, blanks, leading zeros …) clearly more ids match; fewer than a tenth of the queries of "
        "the smaller side are in both; or the lists hold far fewer judged passages than they could.",
        "Give the form that the message names (`ids='casefold'`). If the ids are right as they are, `ids='exact'` says "
        "so.",
        _evaluated(
            '{f"q{i}": {f"d{i}": 1} for i in range(10)}',
            '{f"q{i}": [f"d{i}" if i < 2 else f"D{i}"] for i in range(10)}',
            "ids-partly-match",
        ),
        how_to=_IDS,
    ),
    Code(
        "rank-against-score",
        "Rank and score of a run contradict each other; its lists are ordered by score.",
        "If a smaller score is better, the lists are upside down.",
        "A file or table of a run has both, and neighbouring rows are in another order by the one than by the other.",
        "Negate the scores if smaller is better, or give `order='rank'` (`--order rank`) if the ranks are right.",
        _evaluated('{"q1": {"a": 1}}', '"run.trec"', "rank-against-score").replace(
            "labels = ",
            'with open("run.trec", "w") as file:\n'
            '    file.write("q1 Q0 a 1 0.2 mine\\nq1 Q0 b 2 0.9 mine\\n")\nlabels = ',
        ),
    ),
    Code(
        "ranking-columns-in-labels",
        "The labels have a column for a score or a rank too: they may be a run.",
        "A run that is read as labels gives grades that nobody gave.",
        "A table of labels with a column that a run would have.",
        "Give the labels first and the runs after them, or leave the column out of the labels.",
        _evaluated('"labels.csv"', '{"q1": ["a"]}', "ranking-columns-in-labels").replace(
            "labels = ",
            'with open("labels.csv", "w") as file:\n'
            '    file.write("query_id,passage_id,grade,score\\nq1,a,1,0.7\\n")\nlabels = ',
        ),
    ),
    Code(
        "labels-and-run-swapped",
        "The labels are lists, and the scores of the run are few whole numbers, as grades are.",
        "Labels and run are probably swapped, and the figures then mean nothing.",
        "Labels given as lists of expected ids, and a run whose scores are whole numbers from 0 to 5 with many ties.",
        "Give the labels first and the runs after them.",
        _evaluated('{"q1": ["a"]}', '{"q1": {"a": 1, "b": 0, "c": 0}}', "labels-and-run-swapped"),
    ),
    Code(
        "all-scores-tied",
        "The scores within each list are all equal, so that the order follows from the ids alone.",
        "Ties are broken by descending passage id, as trec_eval does. The order says nothing about the retriever.",
        "Every list of a run with scores has one score only.",
        "Give scores that differ, or lists in rank order instead of {id: score}.",
        _evaluated('{"q1": {"a": 1}}', '{"q1": {"a": 1.0, "b": 1.0}}', "all-scores-tied"),
    ),
    Code(
        "scores-for-grades",
        "The grades are so high that they are probably the scores of a run.",
        "Every positive number counts as a grade on the `trec` scale, so every passage would be relevant.",
        "The highest grade is higher than grades usually are.",
        "Give the labels first and the runs after them. If these are grades, map them to a scale with a grade map.",
        _evaluated('{"q1": {"a": 90, "b": 70}}', '{"q1": ["a"]}', "scores-for-grades", ', scale="trec"'),
        how_to="labels-on-the-wrong-scale",
    ),
    Code(
        "list-longer-than-corpus",
        "A list has more passages than its corpus.",
        "N is too small, so a random draw looks better than it is, and BoR is too low.",
        "The distinct passages of a list are more than the N of its query.",
        "Give the number of passages that can be retrieved, not that of documents.",
        _evaluated('{"q1": {"a": 1}}', '{"q1": ["a", "b", "c"]}', "list-longer-than-corpus", ", corpus_size=2"),
        how_to="corpus-size",
    ),
    Code(
        "passages-of-another-index",
        "`passages_of` does not fit the lists: it is probably of another index.",
        "The random baseline counts chunks by `passages_of`; with other numbers it is another baseline.",
        "A list names a document more often than it has passages there, or names one that is not in it where N is the "
        "sum of all its passages.",
        "Count the passages of each document in the index that was searched.",
        _evaluated(
            '{"q1": {"D": 1}}', '{"q1": ["D", "D", "D"]}', "passages-of-another-index", ', passages_of={"D": 2, "E": 5}'
        ),
        how_to="chunks-and-documents",
    ),
    Code(
        "outside-corpus",
        "Some labelled or retrieved passages are not in the corpus that was given.",
        "A labelled passage that no retriever can find lowers recall; controls from a corpus that lacks retrieved "
        "passages are not from what was searched.",
        "`corpus=` lacks some of the labelled passages, or, when controls are drawn, some of the retrieved ones.",
        "Give the corpus that was indexed, and labels of that version.",
        _evaluated('{"q1": {"a": 1, "gone": 1}}', '{"q1": ["a"]}', "outside-corpus", ', corpus=["a", "b", "c"]'),
        how_to=_IDS,
    ),
    Code(
        "controls-left-out",
        "The labels hold random controls, which are left out here: figures against a random draw are as judged.",
        "Figures of single queries cannot use controls, since the judge's rate is estimated over all queries.",
        "Labels with controls are given to a `Monitor` or to metrics of single queries.",
        "Read BoR from `evaluate`, which estimates it with the controls.",
        _heard(
            _GRADED.replace('"a": "Two years."}', '"a": "Two years.", "b": "No.", "c": "Yes."}').replace(
                "judge=judge)", "judge=judge, controls=1)"
            ),
            'rs.Monitor("labels.db", corpus_size=3)',
            "controls-left-out",
        ),
        how_to="a-judge-that-nobody-checked",
    ),
    Code(
        "expected-ids-without-grade",
        "Some labels are expected ids without a grade: they count as relevant.",
        "For their queries everything else is unjudged, so Harm and Precision say less than for queries with grades.",
        "Labels of which some are {passage: grade} and others lists of ids.",
        "Give grades for all queries, or lists for all.",
        _heard(
            "import rag_selectivity as rs",
            'rs.Monitor({"q1": {"a": 5, "b": 1}, "q2": ["c"]}, scale="utility")',
            "expected-ids-without-grade",
        ),
    ),
    Code(
        "plugin-unusable",
        "A measure, reader or judge of another installed package cannot be used.",
        "Everything else works; the name that the package would add is missing.",
        "An entry point of a `rag_selectivity.…` group that cannot be imported or is of another kind.",
        "Mend or remove the package that the message names.",
        _heard(
            """
import sys
from pathlib import Path

from rag_selectivity.data.registry import Registry

folder = Path("broken-1.0.dist-info")
folder.mkdir()
(folder / "METADATA").write_text("Name: broken\\nVersion: 1.0\\n")
(folder / "entry_points.txt").write_text("[example.measures]\\nMine = nowhere:Mine\\n")
sys.path.insert(0, str(Path.cwd()))
""",
            'list(Registry("measure", "example.measures", object))',
            "plugin-unusable",
        ),
    ),
    Code(
        "other-rubric",
        "People read another rubric than the judge graded by.",
        "Their grades mean different things unless the wordings agree, so agreement and calibration may mislead.",
        "`annotate` draws pairs of a store whose judge graded by another rubric than the page will show.",
        "Give the judge's rubric with `--rubric FILE`.",
        _heard(
            _GRADED
            + """
from dataclasses import replace

from rag_selectivity.grading.annotation.making import make_tasks
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
from rag_selectivity.grading.store import Store

ours = replace(DEFAULT_RUBRIC, name="ours", instructions="Grade as you like.")
""",
            """
with Store("labels.db") as store:
    make_tasks(store, "agree:1", queries=queries, corpus=texts, annotators=["anna"], rubric=ours)
""",
            "other-rubric",
        ),
    ),
    Code(
        "answers-of-older-texts",
        "Some answers of an annotator are left out, since their texts have changed since.",
        "The grades are of texts that nobody retrieves any more.",
        "`store import` of answers to a task whose pairs have other texts in the store now.",
        "Have people grade the new texts: draw again with `annotate`.",
        _heard(
            _GRADED + _TASK + 'texts["a"] = "Two years, for lamps three."\n'
            'rs.grade(queries, texts, [run], store="labels.db", judge=judge)\n'
            "from pathlib import Path\n",
            """
with Store("labels.db") as store:
    import_answers(store, Path("answers.json"))
""",
            "answers-of-older-texts",
        ),
    ),
    Code(
        "grades-contradict",
        "Some grades contradict what the same annotator said before outside this task; the new ones count.",
        "One of the two was a slip, or the annotator's notion of relevance has changed.",
        "`store import` of answers for pairs that have another grade by the same annotator.",
        "Ask the annotator which grade is meant.",
        _heard(
            _GRADED + _TASK + "from pathlib import Path\n",
            """
with Store("labels.db") as store:
    store.put_human([("q1", "a", 1, None)], "anna")
    import_answers(store, Path("answers.json"))
""",
            "grades-contradict",
        ),
    ),
    Code(
        "pairs-not-graded",
        "The judge did not grade all pairs: some failed, or were left when it stopped.",
        "These pairs are unjudged in the figures, and Judged@K says how many there are.",
        "`grade_retriever` and its kin, after a run with failed or left-over pairs.",
        "Run it again: what is graded already is not asked again. The message names what failed.",
        _heard(
            """
import asyncio

from rag_selectivity.grading.single import label_lists

async def judge(messages, schema):
    if "Two years" in messages[1]["content"]:
        return "no grade"
    return {"reason": "by a rule", "grade": 1}

texts = {"a": "Two years.", "b": "No."}
""",
            'asyncio.run(label_lists({"q1": "How long?"}, texts, {"q1": ["a", "b"]}, store="labels.db", judge=judge))',
            "pairs-not-graded",
        ),
        how_to="stopped-grading",
    ),
    Code(
        "store-migrated",
        "A label store of an older format was brought to the present one; a copy of the old file is kept.",
        "Nothing is lost. Older releases cannot read the new file; they can read the copy.",
        "The first opening of a store that an older release wrote.",
        "Nothing, or delete the copy when you no longer need it.",
        _heard(
            """
import sqlite3

from rag_selectivity.grading.store import Store

Store("labels.db").close()
with sqlite3.connect("labels.db") as file:
    for (table,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if table != "leases":
            file.execute(f"DROP TABLE {table}")
    file.execute("PRAGMA user_version = 1")
file.close()
""",
            'Store("labels.db").close()',
            "store-migrated",
        ),
    ),
    Code(
        "trace-incomplete",
        "A trace lacks something that grading needs, such as the text of some passages.",
        "What is missing cannot be graded; the rest can.",
        "`grade --trace` (and `Trace.to_grade`) where passages have no text, or where spans were left out.",
        "Trace with texts: `Monitor(trace=…, trace_texts=True)`, and retrievals with the texts of all passages.",
        _heard(
            """
import rag_selectivity as rs
from rag_selectivity.live.trace import Trace

monitor = rs.Monitor(trace="trace.jsonl", trace_texts=True)
monitor.record(rs.Retrieval("How long?", ["a", "b"], texts={"a": "Two years."}))
monitor.close()
""",
            'Trace.read("trace.jsonl").to_grade()',
            "trace-incomplete",
        ),
    ),
    Code(
        "index-did-not-say",
        "An index did not say how many passages it holds, or which.",
        "N, or the passages of each document, are then unknown, and chance-corrected measures are left out.",
        "An index or vector store is given as `corpus_size=` or found behind a retriever, and its client raises.",
        "Give the number, or the documents' numbers of passages, as the message says.",
        _heard(
            """
from rag_selectivity.io.indexes import corpus_size_of_index


class Collection:
    \"\"\"A collection whose server does not answer.\"\"\"

    __module__ = "chromadb.api"

    def count(self):
        raise ConnectionError("no answer")

    def get(self):
        raise ConnectionError("no answer")
""",
            "corpus_size_of_index(Collection())",
            "index-did-not-say",
        ),
        how_to="corpus-size",
    ),
    Code(
        "too-many-tools",
        "So many tools are shown that as many drawn at random would often serve too.",
        "Whatever selects the tools, a call at this K can show little selectivity; and each tool costs tokens.",
        "A `ToolMonitor` sees a call in which a random draw of as many tools would serve in a share of the calls from "
        "`warn_from` on. It is logged, and given to `on_warning`, not raised as a Python warning.",
        "Show fewer tools: the message says how many.",
        """
        from rag_selectivity.live.tools import ToolDefinition, ToolMonitor

        heard = []
        monitor = ToolMonitor(catalogue=10, relevant=2, on_warning=heard.append)
        monitor.call("What is the weather?", [ToolDefinition(f"tool_{i}", "") for i in range(10)], ["tool_1"])
        assert heard[0].endswith("[too-many-tools]")
        """,
        how_to="tools-of-an-mcp-server",
    ),
    Code(
        "tools-not-in-catalogue",
        "The labels name tools that are not in the catalogue.",
        "No selection can show them, so their queries can never succeed.",
        "A `ToolMonitor` with labels and with the definitions of its catalogue.",
        "Correct the names in the labels, or add the tools to the catalogue.",
        _heard(
            "from rag_selectivity.live.tools import ToolDefinition, ToolMonitor",
            'ToolMonitor({"q1": ["get_wether"]}, catalogue=[ToolDefinition("get_weather", "")])',
            "tools-not-in-catalogue",
        ),
        how_to="tools-of-an-mcp-server",
    ),
    Code(
        "tools-with-one-name",
        "The catalogue has tools with the same name.",
        "A model cannot tell them apart, and neither can the figures.",
        "A `ToolMonitor` is given two definitions of one name.",
        "Rename one, for example by its server.",
        _heard(
            "from rag_selectivity.live.tools import ToolDefinition, ToolMonitor",
            'ToolMonitor(catalogue=[ToolDefinition("send", "a mail"), ToolDefinition("send", "a letter")])',
            "tools-with-one-name",
        ),
        how_to="tools-of-an-mcp-server",
    ),
    Code(
        "retrievals-failed",
        "Some retrievals failed and count as queries that found nothing.",
        "The figures are lower than those of a retriever that answers; leaving the queries out would hide failures.",
        "A retriever raises, times out or returns something else than passages for some queries. If all fail, it is an "
        "error.",
        "The message has the first failure. Correct the retriever and evaluate again.",
        _heard(
            """
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from rag_selectivity_langchain import selectivity


def search(question):
    if question == "broken":
        raise ConnectionError("refused")
    return [Document(id="a", page_content="Two years.")]


labels = {"q1": {"a": 1}, "q2": {"a": 1}}
""",
            """
selectivity(
    RunnableLambda(search), {"q1": "How long?", "q2": "broken"}, labels, identity="id", depths=[1], bootstrap=None
)
""",
            "retrievals-failed",
        ),
        how_to="empty-retrievals",
        needs="langchain_core",
    ),
    Code(
        "rows-left-out",
        "A framework's metric raised for some rows, and these have no figure.",
        "The figure is over the other rows. The rows that raise are often empty retrievals, so it is too high.",
        "LlamaIndex's own metrics raise for an empty retrieval; Ragas turns exceptions of a metric into NaN.",
        "Look at the rows: the message has their number or the first error.",
        _heard(
            _LLAMA
            + """
from llama_index.core.evaluation.retrieval.metrics import HitRate


class Empty(BaseRetriever):
    def _retrieve(self, query_bundle):
        if query_bundle.query_str == "nothing":
            return []
        return [NodeWithScore(node=TextNode(id_="a", text="Two years."), score=1.0)]


labels = {"q1": {"a": 1}, "q2": {"a": 1}}
evaluator = SelectivityEvaluator(Empty(), labels=labels, depths=[1], metrics=[HitRate()])
""",
            'evaluator.evaluate_dataset({"q1": "How long?", "q2": "nothing"})',
            "rows-left-out",
        ),
        how_to="empty-retrievals",
        needs="llama_index.core",
    ),
    Code(
        "scores-not-numbers",
        "Some retrieved passages have the score NaN.",
        "Their places in the lists mean nothing, since NaN cannot be compared.",
        "A retriever of LlamaIndex returns nodes with the score NaN, as vector stores do for empty documents.",
        "Check the embeddings, and leave empty documents out of the index.",
        _heard(
            _LLAMA
            + """

class Odd(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=TextNode(id_="a", text="Two years."), score=float("nan"))]


evaluator = SelectivityEvaluator(Odd(), labels={"q1": {"a": 1}}, depths=[1])
""",
            'evaluator.evaluate_dataset({"q1": "How long?"})',
            "scores-not-numbers",
        ),
        needs="llama_index.core",
    ),
    Code(
        "empty-passages",
        "Some retrieved passages have no text.",
        "Each takes a place in its list and helps nobody.",
        "A retriever of LlamaIndex returns nodes without text.",
        "Leave empty documents out of the index.",
        _heard(
            _LLAMA
            + """

class Odd(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=TextNode(id_=name, text=text), score=1.0) for name, text in TEXTS.items()]


TEXTS = {"a": "Two years.", "b": ""}
evaluator = SelectivityEvaluator(Odd(), labels={"q1": {"a": 1}}, depths=[1])
""",
            'evaluator.evaluate_dataset({"q1": "How long?"})',
            "empty-passages",
        ),
        needs="llama_index.core",
    ),
    Code(
        "index-changed",
        "The index held another number of passages at the end than at the beginning.",
        "The lists are of different corpora, and N is that of the beginning.",
        "`SelectivityEvaluator` asks the index behind its retriever for its size before and after.",
        "Evaluate again while nothing is added or removed.",
        _heard(
            _LLAMA
            + """
from llama_index.core import MockEmbedding, VectorStoreIndex

index = VectorStoreIndex([TextNode(id_="a", text="Two years.")], embed_model=MockEmbedding(4))
search = index.as_retriever(similarity_top_k=1)


class Grows(BaseRetriever):
    def __init__(self):
        self.index = index
        super().__init__()

    def _retrieve(self, query_bundle):
        found = search.retrieve(query_bundle)
        index.insert_nodes([TextNode(text="new")])
        return found


evaluator = SelectivityEvaluator(Grows(), labels={"q1": {"a": 1}}, depths=[1])
""",
            'evaluator.evaluate_dataset({"q1": "How long?"})',
            "index-changed",
        ),
        how_to="corpus-size",
        needs="llama_index.core",
    ),
    Code(
        "repeated-passages",
        "Lists repeat passages, so that figures against a random draw have no meaning.",
        "A draw takes every passage once. A list that repeats an id holds chunks of one document, or copies: R, N and "
        "K then count different things, and BoR, EF, RandomSuccess and lambda have no figure.",
        "Some list repeats an id, and neither `passages_of` nor `duplicates='drop'` says what that means.",
        "For chunks of documents give `passages_of` (`--passages-of FILE`); copies are taken out by "
        "`duplicates='drop'` (`--duplicates drop`).",
        """
        import rag_selectivity as rs

        report = rs.evaluate({"q1": {"D": 1}}, {"mine": {"q1": ["D", "D"]}}, corpus_size=9, depths=[2], bootstrap=None)
        assert any(note.endswith("[repeated-passages]") for note in report.runs["mine"].notes)
        """,
        how_to="chunks-and-documents",
        levels=(REMARK,),
    ),
    Code(
        "nothing-retrieved",
        "All lists of a run are empty.",
        "Success is 0, and Harm is NaN: a failure must not look like a list without junk.",
        "A run has queries of the labels, and no passage for any of them.",
        "Check the index, its filter, and the export of the run.",
        _noted('labels, run = {"q1": {"a": 1}}, {"q1": []}', "nothing-retrieved"),
        how_to="empty-retrievals",
        levels=(REMARK,),
    ),
    Code(
        "further-fields",
        "Lines of a TREC file have more fields than the format; the rest was left out.",
        "Nothing, if the fields are a comment or a name with blanks.",
        "Lines of a run with more than six fields, or of labels with five.",
        "Look at the lines if you did not expect this.",
        _noted(
            'labels, run = {"q1": {"a": 1}}, "run.trec"\n'
            'with open("run.trec", "w") as file:\n    file.write("q1 Q0 a 1 0.9 my run\\n")',
            "further-fields",
        ),
        levels=(REMARK,),
    ),
    Code(
        "comment-lines",
        "Lines of a TREC file begin with # and were left out.",
        "Nothing, if they are comments. A row whose first id begins with # is left out too.",
        "A line of a TREC file begins with #.",
        "Rename ids that begin with #.",
        _noted(
            'labels, run = {"q1": {"a": 1}}, "run.trec"\n'
            'with open("run.trec", "w") as file:\n    file.write("# BM25, k1 = 1.2\\nq1 Q0 a 1 0.9 mine\\n")',
            "comment-lines",
        ),
        levels=(REMARK,),
    ),
)
