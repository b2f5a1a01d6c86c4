"""The pages of warnings about traces, indexes, tools and frameworks, and of notes about what was read."""

from __future__ import annotations

from rag_selectivity.explain.code import REMARK, Code
from rag_selectivity.explain.examples import LLAMA, heard, noted

FRAMEWORK_PAGES = (
    Code(
        "trace-incomplete",
        "A trace lacks something that grading needs, such as the text of some passages.",
        "What is missing cannot be graded; the rest can.",
        "`grade --trace` (and `Trace.to_grade`) where passages have no text, or where spans were left out.",
        "Trace with texts: `Monitor(trace=…, trace_texts=True)`, and retrievals with the texts of all passages.",
        heard(
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
        heard(
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
        heard(
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
        heard(
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
        heard(
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
        heard(
            LLAMA
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
        heard(
            LLAMA
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
        heard(
            LLAMA
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
        heard(
            LLAMA
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
        "More than a tenth of the lists repeat passages, so that figures against a random draw have no meaning.",
        "A draw takes every passage once. A list that repeats an id holds chunks of one document, or copies: R, N and "
        "K then count different things, and BoR, EF and BoR_recall have no figure at that K.",
        "More than a tenth of the lists repeat an id within their top K, and neither `passages_of` nor `duplicates` "
        "says what that means.",
        "For chunks of documents give `passages_of` (`--passages-of FILE`); copies are taken out by "
        "`duplicates='drop'` (`--duplicates drop`) and fill their slots by `duplicates='count_once'`.",
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
        noted('labels, run = {"q1": {"a": 1}}, {"q1": []}', "nothing-retrieved"),
        how_to="empty-retrievals",
        levels=(REMARK,),
    ),
    Code(
        "comment-lines",
        "Lines of a TREC file begin with # and were left out.",
        "Nothing, if they are comments. A row whose first id begins with # is left out too.",
        "A line of a TREC file begins with #.",
        "Rename ids that begin with #.",
        noted(
            'labels, run = {"q1": {"a": 1}}, "run.trec"\n'
            'with open("run.trec", "w") as file:\n    file.write("# BM25, k1 = 1.2\\nq1 Q0 a 1 0.9 mine\\n")',
            "comment-lines",
        ),
        levels=(REMARK,),
    ),
)
