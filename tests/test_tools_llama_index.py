"""The tools of LlamaIndex' own agents, driven by its mock models."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.objects import ObjectRetriever
from llama_index.core.tools import FunctionTool
from rag_selectivity_llama_index import LiveToolSelectivity

import rag_selectivity as rs

pytestmark = pytest.mark.contract


def forecast(city: str) -> str:
    """The weather forecast of a city."""
    return "sun"


def send(to: str) -> str:
    """Sends a mail."""
    raise ConnectionError("away")


TOOLS = [FunctionTool.from_defaults(each) for each in (forecast, send)]


class Choosing(ObjectRetriever):
    """A tool retriever that needs no index."""

    def __init__(self) -> None:
        """There is nothing to keep."""

    async def aretrieve(self, query: str) -> list[Any]:
        return TOOLS[:1] if query in ("weather?", "forecast") else TOOLS[1:]


def model(*calls: tuple[str, Any] | None) -> MockFunctionCallingLLM:
    """A model that calls these tools one after another; None is an answer."""
    left = iter(calls)

    def respond(messages: Any, **options: Any) -> ChatMessage:
        call = next(left)
        if call is None:
            return ChatMessage(role="assistant", content="done")
        return ChatMessage(
            role="assistant", blocks=[ToolCallBlock(tool_call_id="1", tool_name=call[0], tool_kwargs=call[1])]
        )

    return MockFunctionCallingLLM(response_generator=respond, is_chat_model=True)


def ask(agent: Any, question: str, **tags: str) -> None:
    async def run() -> None:
        with instrument_tags(tags):
            await agent.run(user_msg=question)

    asyncio.run(run())


def test_a_function_agent_that_calls_wrong_tools_badly(caplog) -> None:
    labels = {"weather?": ["forecast"], "q2": ["send"]}
    right, wrong = ("forecast", {"city": "Rome"}), ("send", {"to": 3})
    with LiveToolSelectivity(labels, catalogue=TOOLS) as live:
        ask(FunctionAgent(tools=TOOLS, llm=model(wrong, ("add", {"a": 1}), right, None)), "weather?")
        ask(FunctionAgent(tools=TOOLS[:1], llm=model(None), streaming=False), "a mail", query_id="q2")
    report = live.report()
    assert live.faults == 0
    assert "propagation context" not in caplog.text  # of a workflow, LlamaIndex asks every handler
    assert (report.calls, report.catalogue, report.choice.calls, report.choice.answers) == (5, 2, 4, 1)
    choice = report.choice
    assert (choice.right.value, choice.wrong.value, choice.none.value) == (0.25, 0.5, 0.25)
    shown = {f"{i}": ["forecast", "send"] for i in range(4)} | {"4": ["forecast"]}
    expected = {f"{i}": ["forecast"] for i in range(4)} | {"4": ["send"]}
    same = rs.evaluate(expected, {"shown": shown}, corpus_size=2, depths=[2], bootstrap=None)
    assert report.selection["Success"].value == same["Success@2"].value == 0.8
    assert report.not_offered == {"add": 1}
    assert [(each.tool, each.reason) for each in report.misfits] == [("send", "type: to")]
    assert {tool.name: (tool.ran, tool.failed) for tool in report.tools} == {"forecast": (1, 0), "send": (1, 1)}


def test_an_agent_without_tools() -> None:
    with LiveToolSelectivity() as live:
        ask(FunctionAgent(llm=model(None)), "weather?")
    with pytest.raises(rs.InputError, match=r"^1 model call seen, none of them with tools: .*FunctionAgent\(tools="):
        live.report()


def test_a_workflow_of_agents_and_the_tools_of_a_retriever() -> None:
    with LiveToolSelectivity({"weather?": ["forecast"]}, catalogue=TOOLS) as live:
        chosen = FunctionAgent(tool_retriever=Choosing(), llm=model(("forecast", {"city": "Rome"}), None))
        ask(AgentWorkflow(agents=[chosen]), "weather?")
    report = live.report()
    assert (live.faults, report.calls, report.shown, report.choice.right.value) == (0, 2, 1, 1.0)
    assert (report.failed.value, report.failed.n) == (0.0, 1)


def test_an_agent_without_function_calling() -> None:
    steps = iter(
        [
            'Thought: I need a tool.\nAction: forecast\nAction Input: {"city": "Rome"}',
            "Thought: I can answer without using any more tools.\nAnswer: sun",
        ]
    )
    llm = MockFunctionCallingLLM(
        response_generator=lambda messages, **options: ChatMessage(role="assistant", content=next(steps)),
        is_chat_model=True,
    )
    with LiveToolSelectivity({"weather?": ["forecast"]}) as live:
        ask(ReActAgent(tools=TOOLS, llm=llm), "weather?")
    report = live.report()
    assert (live.faults, report.calls, report.shown) == (0, 2, 2)
    assert (report.choice.right.value, report.choice.calls, report.choice.answers) == (1.0, 1, 1)
