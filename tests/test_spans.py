"""Retrievals from spans: what real instrumentations export gives the figures of `evaluate` on the real lists."""

import base64
import gzip
import json
import random
from collections import namedtuple
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.live.trace import Trace

pytest.importorskip("opentelemetry.sdk.trace")
encoder = pytest.importorskip("opentelemetry.exporter.otlp.proto.common.trace_encoder")
json_format = pytest.importorskip("google.protobuf.json_format")

from opentelemetry.sdk.trace import SpanLimits, TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

pytestmark = pytest.mark.contract

N = 64
DEPTHS = (1, 2, 3)


class Exported:
    """A provider that keeps what it would export, and writes it as OTLP JSON."""

    def __init__(self, **options: Any) -> None:
        self.memory = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False, **options)
        self.provider.add_span_processor(SimpleSpanProcessor(self.memory))
        self.tracer = self.provider.get_tracer("test")

    def document(self, **options: Any) -> dict[str, Any]:
        message = encoder.encode_spans(self.memory.get_finished_spans())
        return json_format.MessageToDict(message, **options)

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps(self.document()))
        return path


@pytest.fixture
def exported() -> Exported:
    return Exported()


def openinference(query: str, ids: list[str], name: str = "retrieval.documents", **more: Any) -> dict[str, Any]:
    documents = {f"{name}.{i}.document.id": id_ for i, id_ in enumerate(ids)}
    return {"openinference.span.kind": "RETRIEVER", "input.value": query, **documents, **more}


def lists_and_labels(queries: int = 30) -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    draw = random.Random(7)
    corpus = [f"d{i}" for i in range(N)]
    lists = {f"question {q}": draw.sample(corpus, 5) for q in range(queries)}
    return lists, {query: dict.fromkeys(draw.sample(corpus, 6) + ids[3:4], 1) for query, ids in lists.items()}


def same_figures(report: rs.Report, run: str, labels: Any, lists: Any, pool: Any = None, **options: Any) -> bool:
    """Whether a report has the figures of `evaluate` on lists that no span has seen."""
    expected = rs.evaluate(labels, {run: lists}, pool=pool, corpus_size=N, short_lists="returned", **options)
    keys = [f"{measure}@{depth}" for measure in ("BoR", "Success", "BoR_max") for depth in DEPTHS]
    keys += [key for key in report.runs[run].estimates if key.startswith(("PROC", "RA-nWG")) and "@" in key]
    return all(report[run, key].value == pytest.approx(expected[run, key].value, abs=1e-12) for key in keys)


def evaluated(path: Path, qrels: Mapping[str, Any], **options: Any) -> rs.Report:
    labels = rs.Qrels.of(dict(qrels))
    trace = Trace.read(path, labels, **options)
    return rs.evaluate(
        trace.labels_from(labels),
        {"t": trace.shown},
        pool=trace.pool,
        corpus_size=N,
        short_lists="returned",
        depths=DEPTHS,
        bootstrap=None,
    )


# -- real producers --------------------------------------------------------------------------------


@pytest.fixture
def langchain(exported) -> Iterator[Exported]:
    instrumentation = pytest.importorskip("openinference.instrumentation.langchain")
    instrumentor = instrumentation.LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=exported.provider)
    yield exported
    instrumentor.uninstrument()


def langchain_retriever(lists: Mapping[str, list[str]], *, ids: bool = True) -> Any:
    """A retriever of the first three of what another one finds; documents are named in `doc` and by an id."""
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Search(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            if query not in lists:
                raise ValueError("no such query")
            return [
                Document(id=f"uuid {id_}" if ids else None, page_content=f"text of {id_}", metadata={"doc": id_})
                for id_ in lists[query]
            ]

    class TopThree(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            return Search().invoke(query, config={"callbacks": run_manager.get_child()})[:3]

    return TopThree()


def test_langchain_gives_the_lists_and_pools_that_were_there(langchain, tmp_path) -> None:
    from langchain_core.runnables import RunnableLambda

    lists, labels = lists_and_labels()
    chain = langchain_retriever(lists) | RunnableLambda(len)
    for i, query in enumerate(lists):
        chain.invoke(query, config={"metadata": {"query_id": f"q{i}"}})
    named = {f"q{i}": labels[query] for i, query in enumerate(lists)}
    trace = Trace.read(langchain.write(tmp_path / "spans.json"), rs.Qrels.of(named))
    shown = {f"q{i}": ids[:3] for i, ids in enumerate(lists.values())}
    pool = {f"q{i}": ids for i, ids in enumerate(lists.values())}
    assert {key: list(trace.shown[key]) for key in trace.retrievals} == shown
    assert {key: list(trace.pool[key]) for key in trace.retrievals} == pool
    assert trace.facts["identity"]["taken"] == "doc"
    assert trace.notes[0].startswith("Passages are known by doc")
    report = evaluated(tmp_path / "spans.json", named)
    assert same_figures(report, "t", named, shown, pool, depths=DEPTHS, bootstrap=None)


@pytest.fixture
def llama_index(exported) -> Iterator[Exported]:
    instrumentation = pytest.importorskip("openinference.instrumentation.llama_index")
    instrumentor = instrumentation.LlamaIndexInstrumentor()
    instrumentor.instrument(tracer_provider=exported.provider)
    yield exported
    instrumentor.uninstrument()


def llama_engine(lists: Mapping[str, list[str]], *, tells: bool) -> Any:
    """A query engine whose postprocessor keeps the last three; it tells of that by an event, or not at all."""
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
    from llama_index.core.llms import MockLLM
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.schema import NodeWithScore, TextNode

    class Search(BaseRetriever):
        def _retrieve(self, bundle: Any) -> list[Any]:
            ids = lists[bundle.query_str]
            nodes = [TextNode(id_=f"node {id_}", text=f"text of {id_}", metadata={"doc": id_}) for id_ in ids]
            return [NodeWithScore(node=node, score=1 / (i + 1)) for i, node in enumerate(nodes)]

    class LastThree(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
            left = nodes[:1:-1]
            if tells:
                dispatcher = get_dispatcher("test")
                start = ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=3, model_name="m")
                dispatcher.event(start)
                dispatcher.event(ReRankEndEvent(nodes=left))
            return left

    return RetrieverQueryEngine.from_args(Search(), llm=MockLLM(), node_postprocessors=[LastThree()])


@pytest.mark.parametrize("tells", [True, False], ids=["reranker events", "postprocessor alone"])
def test_llama_index_gives_what_the_postprocessor_left(llama_index, tmp_path, tells) -> None:
    lists, labels = lists_and_labels(10)
    engine = llama_engine(lists, tells=tells)
    for query in lists:
        engine.query(query)
    path = llama_index.write(tmp_path / "spans.json")
    shown = {query: ids[:1:-1] for query, ids in lists.items()}
    trace = Trace.read(path, rs.Qrels.of(labels))
    assert {key: list(trace.shown[key]) for key in trace.retrievals} == shown
    assert {key: list(trace.pool[key]) for key in trace.retrievals} == lists
    assert same_figures(evaluated(path, labels), "t", labels, shown, lists, depths=DEPTHS, bootstrap=None)


# -- conventions and files -------------------------------------------------------------------------


def test_the_conventions_for_generative_ai(exported, tmp_path) -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names

    lists, labels = lists_and_labels()
    for query, ids in lists.items():
        attributes = {
            names.GEN_AI_OPERATION_NAME: "retrieval",
            names.GEN_AI_RETRIEVAL_QUERY_TEXT: query,
            names.GEN_AI_DATA_SOURCE_ID: "books",
            names.GEN_AI_RETRIEVAL_DOCUMENTS: json.dumps([{"id": id_, "score": 0.5} for id_ in ids]),
        }
        with exported.tracer.start_as_current_span("retrieval books", attributes=attributes):
            pass
    path = exported.write(tmp_path / "spans.json")
    assert same_figures(evaluated(path, labels), "t", labels, lists, depths=DEPTHS, bootstrap=None)


def test_langfuse_observations(exported, tmp_path) -> None:
    output = json.dumps([{"page_content": "A", "metadata": {"doc": "d1"}, "type": "Document"}])
    attributes = {"langfuse.observation.type": "retriever", "langfuse.observation.output": output}
    attributes |= {"langfuse.observation.input": json.dumps({"query": "who?"}), "session.id": "s7"}
    with exported.tracer.start_as_current_span("search", attributes=attributes):
        pass
    path = exported.write(tmp_path / "spans.json")
    trace = Trace.read(path, identity="doc", query_id_key="session.id")
    assert (trace.retrievals["s7"].query, trace.shown.to_dict()) == ("who?", {"s7": ["d1"]})


def some_spans(exported: Exported) -> dict[str, Any]:
    for query in ("one?", "two?"):
        with (
            exported.tracer.start_as_current_span("chain"),
            exported.tracer.start_as_current_span("search", attributes=openinference(query, ["a", "b"])),
        ):
            pass
    return exported.document()


def spans_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    return document["resourceSpans"][0]["scopeSpans"][0]["spans"]


def as_the_collector_writes(document: dict[str, Any]) -> dict[str, Any]:
    """With ids in hexadecimal digits."""
    copy = json.loads(json.dumps(document))
    for span in spans_of(copy):
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64decode(span[name]).hex()
    return copy


def test_every_form_of_the_file_holds_the_same(exported, tmp_path) -> None:
    document = some_spans(exported)
    lines = [{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]} for span in spans_of(document)]
    text = json.dumps(document)
    forms = {
        "document": text,
        "pretty": json.dumps(document, indent=2),
        "pretty, twice": json.dumps(document, indent=2) + "\n" + json.dumps(lines[0], indent=2),
        "lines": "\n".join(map(json.dumps, lines)),
        "array": json.dumps(lines),
        "spans": json.dumps(spans_of(document)),
        "page": json.dumps({"data": spans_of(document), "next_cursor": None}),
        "hexadecimal": json.dumps(as_the_collector_writes(document)),
        "underscores": json.dumps(exported.document(preserving_proto_field_name=True)),
        "both encodings of ids": f"{text}\n{json.dumps(as_the_collector_writes(document))}",
    }
    for name, content in forms.items():
        path = tmp_path / f"{name}.json"
        path.write_text(content)
        assert Trace.read(path, identity="id").shown.to_dict() == {"one?": ["a", "b"], "two?": ["a", "b"]}, name
    (tmp_path / "spans.json.gz").write_bytes(gzip.compress(text.encode()))
    assert len(Trace.read(tmp_path / "spans.json.gz").retrievals) == 2


# -- bad input -------------------------------------------------------------------------------------


Span = namedtuple("Span", "trace id parent name start end attributes failed dropped", defaults=({}, False, 0))
Found = namedtuple("Found", "query shown pool")


def span_json(span: Span) -> dict[str, Any]:
    def hexadecimal(name: str, size: int) -> str:
        return name.encode().hex().rjust(2 * size, "0")

    times = {"startTimeUnixNano": span.start, "endTimeUnixNano": span.end}
    return {
        "traceId": hexadecimal(span.trace, 16),
        "spanId": hexadecimal(span.id, 8),
        "name": span.name,
        "attributes": [{"key": key, "value": any_value(value)} for key, value in span.attributes.items()],
        "status": {"code": 2 if span.failed else 0},
        "droppedAttributesCount": span.dropped,
        **({} if span.parent is None else {"parentSpanId": hexadecimal(span.parent, 8)}),
        **{key: str(time) for key, time in times.items() if time is not None},
    }


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": list(map(any_value, value))}}
    return {{str: "stringValue", int: "intValue", float: "doubleValue"}[type(value)]: value}


def read(spans: list[Span], folder: Path, **options: Any) -> tuple[list[Found], dict[str, int]]:
    """The retrievals of spans, and what was wrong with them; a file without any retrieval would be an error."""
    attributes = openinference("another trace", ["z"], **{"retrieval.documents.0.document.content": "z"})
    other = Span("z", "z", None, "another search", 1, 2, attributes)
    path = folder / "read.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(map(span_json, [*spans, other]))}]}]}))
    trace = Trace.read(path, **options)
    pools = {} if trace.pool is None else trace.pool.to_dict()
    return [
        Found(each.query, tuple(trace.shown[key]), tuple(pools[key]) if key in pools else None)
        for key, each in trace.retrievals.items()
        if each.query != "another trace"
    ], trace.facts.get("spans", {})


def place(rank: int, span: str) -> str:
    """The name of a passage without an id."""
    return f"passage {rank} of span {span.encode().hex().rjust(16, '0')}"


def search(ids: list[str], query: str = "who?", span: str = "s1", parent: str | None = None, **more: Any) -> Span:
    fields = {name: more.pop(name) for name in ("start", "end", "failed", "dropped") if name in more}
    fields = {"start": 10, "end": 20, **fields}
    return Span("t1", span, parent, "search", attributes={**openinference(query, ids), **more}, **fields)


def reranked(left: list[str], given: list[str] = (), span: str = "s2", parent: str | None = None, **more: Any) -> Span:
    attributes = {
        "openinference.span.kind": "RERANKER",
        "reranker.query": "who?",
        **{f"reranker.input_documents.{i}.document.id": id_ for i, id_ in enumerate(given)},
        **{f"reranker.output_documents.{i}.document.id": id_ for i, id_ in enumerate(left)},
    }
    return Span("t1", span, parent, "rerank", 30, 40, attributes=attributes, **more)


ROOT, STEP = Span("t1", "root", None, "chain", 1, 100), Span("t1", "step", "root", "chain", 25, 60)


@pytest.mark.parametrize(
    ("spans", "identity", "shown", "problems"),
    [
        ([search(["a"]), search(["a"])], "id", [("a",)], {"repeated": 1}),
        (
            [search(["a", "b"], parent="gone"), reranked(["b"], ["a", "b"], parent="gone")],
            "id",
            [("b",)],
            {"no_parent": 1},
        ),
        ([search(["a"], parent="s1")], "id", [("a",)], {"circle": 1}),
        ([search(["a"], parent="x"), Span("t1", "x", "s1", "y", 5, 50)], "id", [("a",)], {"circle": 1}),
        ([search(["a"], end=None)], "id", [("a",)], {}),
        ([search([])], "id", [], {"no_documents": 1}),
        ([search(["a"]), search([], query="where?", span="s2", start=21, end=22)], "id", [("a",), ()], {}),
        ([search(["a"], parent="s2"), search([], span="s2", start=1, end=30)], "id", [("a",)], {}),
        (
            [ROOT, search([], parent="root"), search(["a"], span="s0"), reranked([], parent="root")],
            "id",
            [("a",)],
            {"unknown_selection": 1},
        ),
        ([ROOT, search(["c"], parent="root"), STEP, reranked(["d"], parent="step")], "id", [("c",), ("d",)], {}),
        ([search(["a"], dropped=3)], "id", [], {"cut_list": 1}),
        (
            [ROOT, search(["a", "b"], parent="root"), reranked(["b"], ["a", "b"], parent="root", dropped=1)],
            "id",
            [],
            {"cut_list": 1},
        ),
        ([ROOT, search(["a"], parent="root"), reranked([], parent="root")], "id", [], {"unknown_selection": 1}),
        (
            [ROOT, search(["a", "b"], parent="root", dropped=9), reranked(["b"], ["a", "b"], parent="root")],
            "id",
            [("b",)],
            {"cut_pool": 1},
        ),
        ([search(["a"], query="")], "id", [], {"no_query": 1}),
        (
            [search(["a"], **{"retrieval.documents.2.document.id": "c"})],
            "id",
            [("a", place(2, "s1"), "c")],
            {"unidentified": 1},
        ),
        (
            [search(["a"], **{"retrieval.documents.1.document.score": 0.5})],
            None,
            [("a", place(2, "s1"))],
            {"unidentified": 1},
        ),
        ([search(["a"])], "text", [(place(1, "s1"),)], {"unidentified": 1}),
        (
            [search(["a"], **{"retrieval.documents.1.document.id": ["x"]})],
            "id",
            [("a", place(2, "s1"))],
            {"unidentified": 1},
        ),
        ([search(["a"], **{"retrieval.documents.1.document.id": 7})], "id", [("a", "7")], {}),
        ([search(["a"], failed=True)], "id", [()], {}),
        (
            [ROOT, search([], parent="root", failed=True), search(["a"], "who?", "s0", "root", start=20)],
            "id",
            [("a",)],
            {},
        ),
    ],
)
def test_what_is_wrong_is_named_and_counted(spans, identity, shown, problems, tmp_path) -> None:
    for order in (spans, spans[::-1]):
        retrievals, found = read(order, tmp_path, identity=identity)
        assert [tuple(each.shown) for each in retrievals] == shown
        assert found == problems


def test_a_text_that_was_cut_is_no_id(tmp_path) -> None:
    exported = Exported(span_limits=SpanLimits(max_attribute_length=12))
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "who?",
        "retrieval.documents.0.document.content": "a text longer than the limit",
        "output.value": json.dumps({"documents": [{"id": "d1", "page_content": "a text longer than the limit"}]}),
    }
    with exported.tracer.start_as_current_span("search", attributes=attributes):
        pass
    with pytest.raises(rs.InputError, match="1 retrieval lost documents to the limits of span attributes"):
        Trace.read(exported.write(tmp_path / "s.json"))


def test_attributes_beyond_the_limit_leave_no_shorter_list(tmp_path) -> None:
    exported = Exported(span_limits=SpanLimits(max_span_attributes=10))
    for ids in (["a", "b"], [f"d{i}" for i in range(20)]):
        with exported.tracer.start_as_current_span("search", attributes=openinference(f"{len(ids)}?", ids)):
            pass
    trace = Trace.read(exported.write(tmp_path / "s.json"))
    assert (list(trace.retrievals), trace.facts) == (["2?"], {"spans": {"cut_list": 1}})
    with pytest.raises(rs.InputError, match=r"without texts of passages.* or give the corpus"):
        trace.to_grade()
    queries, corpus, pool = trace.to_grade({"a": "A", "b": "B", "c": "C"})
    assert (queries, list(corpus), pool.to_dict()) == ({"2?": "2?"}, ["a", "b", "c"], {"2?": ["a", "b"]})


def test_a_file_that_breaks_off_and_one_that_is_damaged(exported, tmp_path) -> None:
    line = json.dumps(some_spans(exported))
    path = tmp_path / "spans.jsonl"
    path.write_text(f"{line}\n{line[:200]}")
    assert Trace.read(path, identity="id").facts == {"spans": {"broken_line": 1}}
    path.write_text(f"{line}\n{line[:200]}\n{line}\n")
    with pytest.raises(rs.InputError, match=r"spans\.jsonl:2: is not JSON"):
        Trace.read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"a": 1}]', "neither `resourceSpans` nor a span: it holds `a`"),
        (b'[{"user_input": "?"}]', "Rows of Ragas are measured by rag_selectivity_ragas.selectivity"),
        (b'{"resourceSpans": 3}', "`resourceSpans` must be a list, got 3"),
        (b"[3]", "an OTLP document is a JSON object, got 3"),
        (b'{"resourceMetrics": []}', "neither `resourceSpans` nor a span"),
        (b'{"resourceSpans": [', "is not JSON"),
        (b"\x28\xb5\x2f\xfd....", "the zstd data is damaged"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": []}]}]}', "no retrieval in these spans"),
        (b'{"spanId": "1", "startTimeUnixNano": 1, "attributes": 3}', "the attributes of a span must be a list"),
    ],
)
def test_what_is_no_otlp(tmp_path, content, message) -> None:
    if "zstd" in message:
        pytest.importorskip("zstandard")
    path = tmp_path / "spans.json"
    path.write_bytes(content)
    with pytest.raises(rs.InputError, match=r"spans\.json.*" + message.replace("(", r"\(")):
        Trace.read(path)


def test_ids_of_another_tenant_are_an_error(exported, tmp_path) -> None:
    some_spans(exported)
    with pytest.raises(rs.InputError, match="no label was found among the 4 passages"):
        Trace.read(exported.write(tmp_path / "s.json"), rs.Qrels.of({"one?": {"x": 1}, "two?": {"y": 1}}))


def test_a_reranker_without_a_retriever_span_has_its_input_as_pool(tmp_path) -> None:
    for others in ([], [ROOT], [ROOT, search(["x", "y"], query="else?", span="s0", parent="tool"), TOOL]):
        spans = [*others, reranked(["b"], ["a", "b", "c"], parent="root" if others else None)]
        retrievals, problems = read(spans, tmp_path)
        assert (retrievals[0].query, retrievals[0].shown, retrievals[0].pool) == ("who?", ("b",), ("a", "b", "c")) or (
            retrievals[1].shown,
            retrievals[1].pool,
        ) == (("b",), ("a", "b", "c"))
        assert (len(retrievals), problems) == (len(others) // 2 + 1, {})


TOOL = Span("t1", "tool", "root", "tool", 2, 25)


def test_json_that_was_cut_is_no_empty_list(tmp_path) -> None:
    attributes = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "who?"}
    whole = json.dumps([{"id": "a"}, {"id": "b"}])
    for text, problems in ((whole, {}), (whole[:-1], {"cut_list": 1}), ("[]", {})):
        spans = [Span("t1", "s1", None, "", 1, 2, {**attributes, "gen_ai.retrieval.documents": text})]
        retrievals, found = read(spans, tmp_path)
        assert ([list(each.shown) for each in retrievals], found) == (
            [[row["id"] for row in json.loads(text)]] if not problems else [],
            problems,
        )


IDS = st.lists(st.sampled_from("abcdef"), max_size=4, unique=True)


@st.composite
def traces(draw: st.DrawFn) -> list[Span]:
    """Spans with parents before or after them, missing, or in circles."""
    names = [f"s{i}" for i in range(draw(st.integers(1, 7)))]
    spans = []
    for name in names:
        parent = draw(st.sampled_from([None, "gone", *names]))
        start = draw(st.none() | st.integers(1, 9))
        kind = draw(st.sampled_from(["chain", "search", "rerank"]))
        if kind == "chain":
            spans.append(Span(draw(st.sampled_from("tu")), name, parent, kind, start, 10))
        elif kind == "search":
            spans.append(search(draw(IDS), span=name, parent=parent, start=start, failed=draw(st.booleans())))
        else:
            spans.append(reranked(draw(IDS), draw(IDS), span=name, parent=parent))
    return spans


@settings(deadline=None, max_examples=150)
@given(traces(), st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(tmp_path_factory, spans, shuffled) -> None:
    folder = tmp_path_factory.getbasetemp()
    expected, problems = read(spans, folder)
    again = [*spans, *shuffled.sample(spans, len(spans) // 2)]
    shuffled.shuffle(again)
    found, others = read(again, folder)
    assert found == expected
    assert {**others, "repeated": 0} == {**problems, "repeated": 0}


# -- a running process -----------------------------------------------------------------------------


def test_figures_as_metrics() -> None:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from rag_selectivity_otel import observe_figures

    lists, labels = lists_and_labels()
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader], shutdown_on_exit=False).get_meter("test")
    report = rs.evaluate(labels, {"a": lists}, corpus_size=N, depths=DEPTHS)
    monitor = rs.Monitor(labels, corpus_size=N, name="now")
    observe_figures(report, meter=meter)
    observe_figures(monitor, meter=meter)

    def points() -> dict[tuple[Any, ...], float]:
        (metric,) = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
        assert metric.name == "rag_selectivity.figure"
        return {
            tuple(point.attributes.get(name) for name in ("run", "measure", "depth", "statistic")): point.value
            for point in metric.data.data_points
        }

    first = points()
    estimate = report["BoR@3"]
    for statistic in ("value", "low", "high"):
        assert first["a", "BoR", 3, statistic] == getattr(estimate, statistic)
    assert not [key for key in first if key[0] == "now"]
    for query, ids in lists.items():
        monitor.record(rs.Retrieval(query, ids))
    assert points()["now", "BoR", None, "value"] == monitor.report()["BoR"].value
    with pytest.raises(rs.InputError, match="must be a Report or a Monitor, got dict"):
        observe_figures({}, meter=meter)
