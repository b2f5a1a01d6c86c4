"""A server's tools are listed and a call is recorded."""

import asyncio

from mcp import Client
from mcp.server import MCPServer
from rag_selectivity_mcp import ToolSelectivity

server = MCPServer("weather")


@server.tool()
def forecast(city: str) -> str:
    """The weather forecast of a city."""
    return "sun"


async def conversation() -> ToolSelectivity:
    tools = ToolSelectivity({"weather?": ["forecast"]}, catalogue=8)
    async with Client(server) as client:
        session = await tools.watch(client)
        with tools.model_call("weather?"):
            await session.call_tool("forecast", {"city": "Rome"})
    return tools


report = asyncio.run(conversation()).report()
assert report.selection["BoR"].value == 3
assert report.choice.right.value == 1
