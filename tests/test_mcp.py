"""MCP: the tools of real local servers, and what sessions of the official SDK call of them."""

import asyncio
from typing import Any

import pytest

mcp = pytest.importorskip("mcp")
uvicorn = pytest.importorskip("uvicorn")

from mcp import Client, ClientSession, types  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402
from mcp.server import MCPServer  # noqa: E402
from mcp.server.lowlevel import Server  # noqa: E402
from rag_selectivity_mcp import ToolSelectivity  # noqa: E402

import rag_selectivity as rs  # noqa: E402

pytestmark = pytest.mark.contract

NAMES = [f"tool_{i:02}" for i in range(10)]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def paged(names: list[str], size: int = 4, *, endless: bool = False, name: str = "paged") -> Server[Any]:
    """A server that lists its tools page by page; `tool_09` fails, and `tool_08` is an error of the protocol."""

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        start = int((params and params.cursor) or 0)
        tools = [
            types.Tool(name=each, description=f"Does {each}.", input_schema=SCHEMA)
            for each in names[start : start + size]
        ]
        more = endless or start + size < len(names)
        return types.ListToolsResult(tools=tools, next_cursor=str(start + size) if more else None)

    async def call_tool(context: Any, params: Any) -> types.CallToolResult:
        if params.name == "tool_08":
            raise mcp.MCPError(code=types.INVALID_PARAMS, message="no")
        text = types.TextContent(type="text", text="done")
        return types.CallToolResult(content=[text], is_error=params.name == "tool_09" or params.name not in names)

    return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


def test_every_page_is_in_the_catalogue_and_figures_are_those_of_evaluate() -> None:
    labels = {f"q{i}": [NAMES[i]] for i in range(4)}
    called = {"q0": ["tool_00"], "q1": ["tool_05"], "q2": ["tool_02"], "q3": []}
    shown = {"q0": NAMES[:3], "q1": NAMES[1:4], "q2": NAMES[3:6], "q3": NAMES[3:6]}

    async def conversation() -> ToolSelectivity:
        tools = ToolSelectivity(labels)
        async with Client(paged(NAMES)) as client:
            session = await tools.watch(client)
            for query in labels:
                with tools.model_call(query, shown=shown[query]):
                    for name in called[query]:
                        result = await session.call_tool(name, {"city": "Rome"})
                        assert result.content[0].text == "done"
            # Everything else is the session's own.
            assert session.server_capabilities.tools is not None
        return tools

    tools = asyncio.run(conversation())
    report = tools.report()
    assert (report.catalogue, report.calls, report.shown, tools.faults) == (10, 4, 3, 0)
    expected = rs.evaluate(labels, {"shown": shown, "called": called}, corpus_size=10, depths=[1, 3], bootstrap=None)
    assert report.selection["BoR"].value == pytest.approx(expected["shown", "BoR@3"].value, rel=1e-12)
    assert report.choice.right.value == expected["called", "Success@1"].value == 0.5
    assert (report.choice.wrong.value, report.choice.none.value) == (0.25, 0.25)
    assert report.not_offered == {"tool_05": 1, "tool_02": 1}
    assert (report.failed.value, report.failed.n) == (0.0, 3)
    assert report.misfit.n == 1  # the others were not offered, so their schema is not known


def test_errors_arguments_and_tools_that_no_server_has_over_http() -> None:
    server = MCPServer("weather")

    @server.tool()
    def forecast(city: str) -> str:
        """The weather forecast of a city."""
        if city == "Atlantis":
            raise ValueError("no such city")
        return "sun"

    async def conversation() -> ToolSelectivity:
        http = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), port=0, log_level="error"))
        serving = asyncio.create_task(http.serve())
        while not http.started:
            await asyncio.sleep(0.01)
        port = http.servers[0].sockets[0].getsockname()[1]
        tools = ToolSelectivity({"weather?": ["forecast"]})
        address = f"http://127.0.0.1:{port}/mcp"
        async with streamable_http_client(address) as streams, ClientSession(*streams[:2]) as session:
            await session.initialize()
            watched = await tools.watch(session)
            for arguments in ({"city": "Rome"}, {"city": "Atlantis"}, {"town": "Rome"}):
                with tools.model_call("weather?"):
                    await watched.call_tool("forecast", arguments)
            with tools.model_call("weather?"):
                assert (await watched.call_tool("get_wether", {"city": "Rome"})).is_error
            with tools.model_call("weather?", after_results=True):
                pass
        http.should_exit = True
        await serving
        return tools

    tools = asyncio.run(conversation())
    report = tools.report()
    assert tools.faults == 0
    assert (report.choice.right.value, report.choice.wrong.value, report.choice.answers) == (0.75, 0.25, 1)
    assert (report.failed.value, report.failed.n) == (pytest.approx(2 / 3), 3)
    assert [(each.tool, each.reason, each.calls) for each in report.misfits] == [("forecast", "unknown: town", 1)]
    assert report.not_offered == {"get_wether": 1}


def test_several_servers_with_equal_names() -> None:
    async def conversation(first: str, second: str, labels: Any) -> ToolSelectivity:
        tools = ToolSelectivity(labels)
        async with Client(paged(NAMES[:3])) as one, Client(paged(NAMES[2:5], name="other")) as two:
            watched = await tools.watch(one, first), await tools.watch(two, second)

            async def ask(query: str, session: Any) -> None:
                with tools.model_call(query):
                    await asyncio.sleep(0.01)
                    await session.call_tool("tool_02", {"city": "Rome"})

            # Model calls at the same time do not mix.
            await asyncio.gather(ask("a", watched[0]), ask("b", watched[1]))
        return tools

    named = asyncio.run(conversation("one", "two", {"a": ["one/tool_02"], "b": ["two/tool_02"]})).report()
    assert (named.catalogue, named.shown, named.choice.right.value, named.duplicates) == (6, 6, 1.0, {})
    assert {(pair.first, pair.second) for pair in named.similar} >= {("one/tool_02", "two/tool_02")}
    plain = asyncio.run(conversation("", "", {"a": ["tool_02"], "b": ["tool_02"]})).report()
    assert (plain.catalogue, plain.shown, plain.duplicates) == (5, 5, {"tool_02": 2})
    assert "Several tools have the same name: tool_02 (2 definitions)" in str(plain)


def test_what_fails_reaches_the_application_and_is_counted() -> None:
    async def conversation() -> ToolSelectivity:
        tools = ToolSelectivity()
        async with Client(paged(NAMES)) as client:
            session = await tools.watch(client)
            with pytest.raises(mcp.MCPError):
                await session.call_tool("tool_08", {"city": "Rome"})
            assert (await session.call_tool("tool_09", {"city": "Rome"})).is_error
            tools.monitor.call = None  # a fault of our own
            assert (await session.call_tool("tool_00", {"city": "Rome"})).is_error is False
            del tools.monitor.call
        return tools

    tools = asyncio.run(conversation())
    report = tools.report()
    assert (tools.faults, report.calls, report.failed.value) == (1, 2, pytest.approx(2 / 3))


def test_a_list_of_tools_without_an_end() -> None:
    async def conversation() -> str:
        async with Client(paged(NAMES, endless=True)) as client:
            with pytest.raises(rs.InputError) as raised:
                await ToolSelectivity().watch(client, "mine")
        return str(raised.value)

    assert asyncio.run(conversation()) == "mine lists tools on more than 1,000 pages: mend its cursors"
