"""Retrievals as they happen: monitors, traces, spans, tools."""

import asyncio
import json
from pathlib import Path

import rag_selectivity as rs
from tests.wall import keys, worlds

WORLD = worlds.small(queries=12)
OPTIONS = {"corpus_size": 500, "scale": "utility"}


def _retrievals(**more):
    for place, (query, row) in enumerate(WORLD.runs["good"].items()):
        timed = {"tokens": 100 + 10 * place, "seconds": 0.1 + 0.01 * place, "failed": place == 4, **more}
        yield rs.Retrieval(
            f"text of {query}", [] if place == 4 else row[:5], query_id=query, pool=WORLD.pool[query], **timed
        )


def _traffic(traffic, *names):
    return {f"traffic/{name}": getattr(traffic, name) for name in names}


def monitor():
    watched = rs.Monitor(WORLD.labels, **OPTIONS, depths=[2, 5])
    for retrieval in _retrievals():
        watched.record(retrieval)
    watched.record(rs.Retrieval("nobody labelled this", ["d001"]))
    counts = ("retrievals", "labelled", "failed", "shown", "tokens", "seconds")
    return keys.report(watched.report(), "live") | _traffic(watched.traffic, *counts)


def monitor_of_failures():
    """20 queries of which none, half or nine tenths fail: failures of K slots."""
    found = {}
    for failing in (0, 10, 18):
        watched = rs.Monitor({f"q{n}": {f"d{n}": 1} for n in range(20)}, corpus_size=100, depths=[2])
        for n in range(20):
            watched.record(rs.Retrieval(f"q{n}", [] if n < failing else [f"d{n}", "x"], failed=n < failing))
        found |= keys.report(watched.report(), f"{failing} fail")
    return found


def outcomes():
    watched = rs.Monitor(WORLD.labels, **OPTIONS, depths=[5])
    for place, query in enumerate(WORLD.labels):
        run = WORLD.runs["good" if place % 2 else "bad"]
        watched.record(rs.Retrieval(query, run[query][:5], id=f"r{place}", outcome=float(place % 3 == 1)))
    return keys.report(watched.report(), "all") | _traffic(watched.traffic, "outcome", "outcome_low", "outcome_high")


def alarms():
    """Which conditions were raised, and after how many retrievals."""
    heard, conditions = [], ["Harm > .4", "failed > .05", "tokens > 8000", "p95(seconds) > 2"]
    watched = rs.Monitor({"q": {"d1": 5, "d2": 1}}, scale="utility", alerts=conditions, on_alert=heard.append)
    for place in range(600):
        late = place > 300
        watched.record(rs.Retrieval("q", ["d2", "d1"] if late else ["d1"], tokens=500, seconds=3.0 if late else 0.2))
    watched.flush()
    return {f"{alarm.condition}/raised": alarm.raised for alarm in heard} | {f"{a.condition}/n": a.n for a in heard}


def trace():
    """What a monitor wrote, measured by the command line."""
    watched = rs.Monitor(WORLD.labels, **OPTIONS, trace="trace.jsonl")
    for retrieval in _retrievals():
        watched.record(retrieval)
    watched.close()
    return _measured_trace("trace.jsonl")


def _measured_trace(path, *words):
    given = [worlds.trec("qrels.trec", WORLD.labels), "--scale", "utility", "--corpus-size", 500]
    names = [word for name in ("BoR", "RA-nWG", "PROC", "Harm") for word in ("--measure", name)]
    found = worlds.told("evaluate", given[0], path, *given[1:], *names, "--depths", "2,5", *words)
    return {
        key: value for name, run in found["runs"].items() for key, value in keys.plain(run, name, "measures").items()
    }


def _attributes(**values):
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]


def _span(number, query, name, kind, ids, prefix, parent, start):
    attributes = {"openinference.span.kind": kind, "input.value": query, "query_id": query}
    attributes |= {f"{prefix}.{place}.document.id": each for place, each in enumerate(ids)}
    return {
        "traceId": f"{number + 1:032x}", "spanId": f"{number * 4 + start:016x}", "parentSpanId": parent, "name": name,
        "startTimeUnixNano": str(start * 10**9), "endTimeUnixNano": str(start * 10**9 + 5 * 10**8),
        "attributes": _attributes(**attributes),
    }  # fmt: skip


def spans():
    """OTLP JSON of a retriever and a reranker for each query."""
    lines = []
    for number, (query, row) in enumerate(WORLD.runs["good"].items()):
        parent = f"{number * 4 + 1:016x}"
        root = {"traceId": f"{number + 1:032x}", "spanId": parent, "name": "answer", "startTimeUnixNano": "1000000000"}
        found = _span(number, query, "search", "RETRIEVER", WORLD.pool[query][:20], "retrieval.documents", parent, 2)
        best = _span(number, query, "rerank", "RERANKER", row[:5], "reranker.output_documents", parent, 3)
        every = [{**root, "endTimeUnixNano": "9000000000"}, found, best]
        lines.append({"resourceSpans": [{"scopeSpans": [{"spans": every}]}]})
    return _measured_trace(worlds.jsonl("spans.jsonl", lines))


def span_processor():
    from opentelemetry.sdk.trace import TracerProvider
    from rag_selectivity_otel import SelectivitySpanProcessor

    watching = SelectivitySpanProcessor(WORLD.labels, **OPTIONS, depths=[5])
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(watching)
    tracer = provider.get_tracer("wall")
    for query, row in WORLD.runs["good"].items():
        attributes = {"openinference.span.kind": "RETRIEVER", "input.value": query}
        attributes |= {f"retrieval.documents.{place}.document.id": each for place, each in enumerate(row[:5])}
        with tracer.start_as_current_span("answer"), tracer.start_as_current_span("search", attributes=attributes):
            pass
    return keys.report(watching.report(), "spans") | {"faults": watching.faults}


LABELS = {f"q{n}": [f"tool_{n}"] for n in range(8)}
NEXT = {f"q{n}": f"tool_{n if n % 3 else n + 1}" for n in range(8)}


def tools():
    watched = rs.ToolMonitor(LABELS, catalogue=58)
    for n, query in enumerate(LABELS):
        shown = {f"tool_{(n + step) % 12}": 50 + step for step in range(4)} if n < 6 else {"tool_9": 50}
        watched.call(query, shown, [NEXT[query]] if n % 5 else [])
    watched.call("q1", {"tool_1": 50}, [], after_results=True)
    watched.ran("tool_1", failed=True)
    watched.ran("tool_2", failed=False)
    return _tools(watched.report())


def tools_without_labels():
    watched = rs.ToolMonitor(catalogue=58, relevant=4)
    for n in range(5):
        watched.call(f"go {n}", {f"tool_{i}": 90 for i in range(10 + n)}, [f"tool_{n}"])
    return _tools(watched.report())


def _tools(report):
    names = ("calls", "catalogue", "shown", "relevant", "tokens", "BoR_max", "healthy_K")
    found = {name: getattr(report, name) for name in names if hasattr(report, name)} | {
        "not_offered": report.not_offered
    }
    if report.choice is not None:
        for name in ("right", "wrong", "none", "right_if_shown"):
            found |= keys.estimate(getattr(report.choice, name), f"choice/{name}")
    found |= keys.estimate(report.failed, "failed")
    return found | (keys.report(report.selection, "selection") if report.selection is not None else {})


def tools_of_an_mcp_server():
    from mcp import Client
    from mcp.server import MCPServer
    from rag_selectivity_mcp import ToolSelectivity

    server = MCPServer("desk")
    for number in range(12):
        server.add_tool(lambda city: "sun", name=f"tool_{number}", description=f"Looks into archive number {number}.")

    async def ask():
        watched = ToolSelectivity({query: [f"desk/{name}" for name in row] for query, row in LABELS.items()})
        async with Client(server) as client:
            session = await watched.watch(client, "desk")
            for number, query in enumerate(LABELS):
                shown = [f"desk/tool_{(number + step) % 12}" for step in range(3)]
                with watched.model_call(query, shown=shown):
                    await session.call_tool(NEXT[query], {"city": "Rome"})
        return watched.report()

    return _tools(asyncio.run(ask()))


def trace_holds_no_texts():
    watched = rs.Monitor(WORLD.labels, **OPTIONS, trace="trace.jsonl")
    for retrieval in _retrievals():
        watched.record(retrieval)
    watched.close()
    lines = [json.loads(line) for line in Path("trace.jsonl").read_text(encoding="utf-8").splitlines()]
    return {f"{n}/shown": line["shown"] for n, line in enumerate(lines)} | {
        "texts": sum("query" in line for line in lines)
    }
