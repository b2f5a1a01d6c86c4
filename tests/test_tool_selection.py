"""Tool selection: the monitor against exact fractions, and the callback with LangChain's own agent."""

from __future__ import annotations

import asyncio
import json
from fractions import Fraction
from math import comb, exp, isnan, log2
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel
from rag_selectivity_langchain import ToolSelectivityCallback

import rag_selectivity as rs
from rag_selectivity.live.retrieval import approximate_tokens
from rag_selectivity.live.tools import ToolMonitor


def miss(n: int, r: int, k: int) -> Fraction:
    return Fraction(comb(n - r, k), comb(n, k))


NAMES = [f"tool_{i:02}" for i in range(58)]


def definitions(names: list[str]) -> dict[str, int]:
    return dict.fromkeys(names, 50)


def test_the_published_case_of_58_tools_of_which_four_apply(caplog) -> None:
    heard: list[str] = []
    monitor = ToolMonitor(catalogue=58, relevant=4, on_warning=heard.append)
    for _ in range(5):
        monitor.call("q", definitions(NAMES), ["tool_00"])
    ceiling = -log2(1 - miss(58, 4, 12))
    assert heard == [
        "58 of 58 tools shown, and as many at random would serve in 100.0% of such calls: a perfect selector could "
        "show 0 bits. Up to K = 12 a random draw serves in less than 63.2%, with at most "
        f"{ceiling:.2g} bits to show at that K; for more than one bit, show no more than 8"
    ]
    assert miss(58, 4, 12) > exp(-1) > miss(58, 4, 13)
    assert -log2(1 - miss(58, 4, 9)) < 1 < -log2(1 - miss(58, 4, 8))
    assert heard[0] in caplog.text
    report = monitor.report()
    assert (report.lam, report.regime, report.BoR_max, report.healthy_K) == (4.0, "collapse", 0.0, 12)
    assert (report.calls, report.shown, report.tokens) == (5, 58, 2900)
    assert len(report.never_called) == 57
    assert "57 tools were never called; they took 98.3% of the tokens" in str(report)
    assert json.loads(report.to_json())["lambda"] == 4.0
    assert report.to_markdown().startswith("5 model calls, 58 of 58 tools shown on average")


def test_with_labels_bor_is_that_of_the_core_and_the_ceiling_exact() -> None:
    labels = {"a": ["tool_00", "tool_01"], "b": ["tool_05"], "c": ["tool_09", "tool_10", "tool_11"]}
    monitor = ToolMonitor(labels, catalogue=NAMES)
    shown = {"a": NAMES[:5], "b": NAMES[10:20], "c": NAMES[:30]}
    for query, names in shown.items():
        monitor.call(query, definitions(names), [])
    monitor.call("unlabelled", definitions(NAMES[:5]), [])
    report = monitor.report()
    chances = [1 - miss(58, len(labels[q]), len(names)) for q, names in shown.items()]
    assert pytest.approx(log2(3 / sum(chances)), rel=1e-12) == report.BoR_max
    assert report.lam == pytest.approx(sum(len(labels[q]) * len(shown[q]) for q in labels) / 58 / 3)
    assert report.basis == {"labels": 3, "assumed": 0, "used": 0}
    assert report.selection is not None
    assert report.selection["BoR"].value == pytest.approx(log2(2 / sum(chances)), rel=1e-12)
    assert report.selection["Success"].n == 3


def test_without_labels_the_tools_used_for_such_queries_stand_for_those_that_apply() -> None:
    monitor = ToolMonitor(catalogue=58)
    monitor.call("weather in Rome", definitions(NAMES), [], kind="weather")
    assert isnan(monitor.report().lam)
    assert "is not known" in str(monitor.report())
    for tool in ("tool_01", "tool_02", "tool_01"):
        monitor.call("weather", definitions(NAMES), [tool], kind="weather")
    monitor.call("mail", definitions(NAMES[:10]), ["tool_03"], kind="mail")
    report = monitor.report()
    assert report.basis == {"labels": 0, "assumed": 0, "used": 5}
    assert report.relevant == pytest.approx((4 * 2 + 1) / 5)
    assert report.lam == pytest.approx((4 * 58 * 2 + 10) / 58 / 5)
    assert pytest.approx(-log2((4 + Fraction(10, 58)) / 5)) == report.BoR_max


def test_the_catalogue_grows_with_what_is_seen_where_it_is_not_given() -> None:
    monitor = ToolMonitor(relevant=1)
    monitor.call("q", definitions(NAMES[:5]), [])
    monitor.call("q", definitions(NAMES[5:20]), [])
    assert monitor.report().catalogue == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relevant": 0}, "relevant must be a whole number ≥ 1"),
        ({"catalogue": 0}, "catalogue must be a number of tools ≥ 1"),
        ({"warn_from": 3.0}, "warn_from is a probability"),
    ],
)
def test_settings_that_cannot_be(options, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        ToolMonitor(**options)
    with pytest.raises(rs.InputError, match="no model call has been shown tools yet"):
        ToolMonitor().report()


# -- in LangChain ------------------------------------------------------------------------------------


class Model(GenericFakeChatModel):
    """LangChain's fake chat model, which cannot bind tools by itself."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)


def saying(*messages: AIMessage) -> Model:
    return Model(messages=iter(messages))


def calls(*names: str) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=name, args={"x": "1"}, id=f"c{i}") for i, name in enumerate(names)])


def tools(count: int = 58) -> list[StructuredTool]:
    def run(x: str) -> str:
        """Do it."""
        return f"did {x}"

    return [StructuredTool.from_function(run, name=name, description=f"Does {name}.") for name in NAMES[:count]]


def test_tools_bound_to_a_model_and_those_called() -> None:
    callback = ToolSelectivityCallback(relevant=4)
    model = saying(calls("tool_03", "tool_07"), AIMessage("done")).bind_tools(tools())
    config = {"callbacks": [callback]}
    model.invoke([HumanMessage("do it")], config=config)
    model.invoke([HumanMessage("do it")], config=config)
    report = callback.report()
    assert (report.calls, report.catalogue, report.shown, report.lam) == (2, 58, 58, 4.0)
    assert [(tool.name, tool.called) for tool in report.tools[:3]] == [("tool_03", 1), ("tool_07", 1), ("tool_00", 0)]
    expected = sum(approximate_tokens(json.dumps(convert_to_openai_tool(tool))) for tool in tools())
    assert report.tokens == expected


def test_calls_without_tools_and_for_structured_output_are_left_out() -> None:
    class Answer(BaseModel):
        """An answer."""

        text: str

    callback = ToolSelectivityCallback(relevant=4)
    config = {"callbacks": [callback]}
    saying(AIMessage("hi")).invoke("hello", config=config)
    plain = saying(AIMessage("", tool_calls=[ToolCall(name="Answer", args={"text": "x"}, id="1")]))
    plain.with_structured_output(Answer).invoke("hello", config=config)
    with pytest.raises(rs.InputError, match="no model call"):
        callback.report()
    assert callback.faults == 0


def test_an_agent_of_langchain_itself_by_query_and_asynchronously() -> None:
    agents = pytest.importorskip("langchain.agents")
    callback = ToolSelectivityCallback({"do three": ["tool_03"], "q2": ["tool_05"]}, catalogue=tools())
    agent = agents.create_agent(saying(calls("tool_03"), AIMessage("done")), tools=tools(20))
    agent.invoke({"messages": [("user", "do three")]}, config={"callbacks": [callback]})
    again = agents.create_agent(saying(calls("tool_03"), AIMessage("done")), tools=tools(5))
    config = {"callbacks": [callback], "metadata": {"query_id": "q2"}}
    asyncio.run(again.ainvoke({"messages": [("user", "do five")]}, config=config))
    report = callback.report()
    assert (report.calls, report.catalogue, callback.faults) == (4, 58, 0)
    assert report.selection is not None
    assert (report.selection["Success"].value, report.selection["Success"].n) == (0.5, 4)
    chance = (2 * Fraction(20, 58) + 2 * Fraction(5, 58)) / 4
    assert report.selection["BoR"].value == pytest.approx(log2(Fraction(1, 2) / chance))


def test_a_selector_in_front_of_the_model() -> None:
    middleware = pytest.importorskip("langchain.agents.middleware")
    agents = pytest.importorskip("langchain.agents")

    class Selecting(Model):
        """Answers the selector's structured question with two tools."""

        def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
            from langchain_core.runnables import RunnableLambda

            return RunnableLambda(lambda _: {"tools": ["tool_01", "tool_02"]})

    callback = ToolSelectivityCallback(catalogue=58, relevant=4)
    agent = agents.create_agent(
        saying(calls("tool_01"), AIMessage("done")),
        tools=tools(),
        middleware=[middleware.LLMToolSelectorMiddleware(model=Selecting(messages=iter(())))],
    )
    agent.invoke({"messages": [("user", "go")]}, config={"callbacks": [callback]})
    report = callback.report()
    assert (report.shown, report.catalogue) == (2, 58)
    assert report.lam == pytest.approx(2 * 4 / 58)
    assert pytest.approx(-log2(1 - miss(58, 4, 2))) == report.BoR_max


@pytest.mark.parametrize(
    "form",
    [
        {"type": "function", "function": {"name": "f", "parameters": {}}},
        {"name": "f", "input_schema": {}},
        {"toolSpec": {"name": "f"}},
        {"function_declarations": [{"name": "f"}]},
        StructuredTool.from_function(lambda x: x, name="f", description="d"),
    ],
    ids=["openai", "anthropic", "bedrock", "google", "object"],
)
def test_tools_in_the_forms_of_the_providers(form) -> None:
    callback = ToolSelectivityCallback(relevant=1)
    saying(AIMessage("x")).bind(tools=[form]).invoke("q", config={"callbacks": [callback]})
    assert [tool.name for tool in callback.report().tools] == ["f"]
    assert callback.report().tokens > 0


def test_failures_leave_nothing_behind_and_faults_are_seen(caplog) -> None:
    class Broken(Model):
        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            raise ConnectionError("away")

    callback = ToolSelectivityCallback(relevant=1)
    config = {"callbacks": [callback]}
    with pytest.raises(ConnectionError):
        Broken(messages=iter(())).bind_tools(tools(3)).invoke("q", config=config)
    assert len(callback._calls) == 0
    assert saying(AIMessage("fine")).bind(tools=[3.5, {"name": "ok"}], x=1).invoke("q", config=config).content == "fine"
    assert callback.faults == 1
    assert "were not recorded" in caplog.text


def test_a_selector_that_never_shows_the_right_tool_has_figures() -> None:
    monitor = ToolMonitor({"weather?": ["tool7"]}, catalogue=58)
    for _ in range(20):
        monitor.call("weather?", {"tool1": 90, "tool2": 90})
    assert monitor.report().selection["Success"].value == 0.0
