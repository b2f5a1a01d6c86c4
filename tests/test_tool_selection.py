"""Tool selection: the monitor against exact fractions, and the callback with LangChain's own agent."""

import asyncio
import json
import random
from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise
from math import comb, exp, isnan, log2
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from langchain_core.tools import StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel
from rag_selectivity_langchain import ToolSelectivityCallback
from scipy.stats import binomtest

import rag_selectivity as rs
from rag_selectivity.live.tools import ToolCall as Call
from rag_selectivity.live.tools import ToolDefinition, ToolMonitor, misfit, similar_tools

pytestmark = pytest.mark.contract


def miss(n: int, r: int, k: int) -> Fraction:
    return Fraction(comb(n - r, k), comb(n, k))


NAMES = [f"tool_{i:02}" for i in range(58)]


def definitions(names: list[str]) -> dict[str, int]:
    return dict.fromkeys(names, 50)


def test_the_published_case_of_58_tools_of_which_four_apply(caplog) -> None:
    monitor = ToolMonitor(catalogue=58, relevant=4)
    for _ in range(5):
        monitor.call("q", definitions(NAMES), ["tool_00"])
    assert caplog.messages == ["All 58 tools are shown, so there is no selection to measure [too-many-tools]"]
    assert miss(58, 4, 12) > exp(-1) > miss(58, 4, 13)
    report = monitor.report()
    assert (report.lam, report.regime, report.BoR_max, report.healthy_K) == (4.0, "collapse", 0.0, 12)
    assert (report.calls, report.shown, report.tokens) == (5, 58, 2900)
    assert len(report.never_called) == 57
    assert str(report).splitlines()[1] == "All 58 tools are always shown, so there is no selection to measure"
    assert "57 tools never called took 98.3% of the tokens" in report.details()
    assert json.loads(report.to_json())["lam"] == 4.0
    assert report.to_markdown(details=True).startswith("5 model calls, 58 of 58 tools shown on average")


def test_how_many_tools_are_healthy_is_over_all_calls_and_not_of_their_mean() -> None:
    labels = {f"q{i}": NAMES[: 10 if i % 2 else 1] for i in range(100)}
    monitor = ToolMonitor(labels, catalogue=58)
    for query in labels:
        monitor.call(query, NAMES[:20])
    chance = [1 - (miss(58, 1, k) + miss(58, 10, k)) / 2 for k in range(1, 59)]
    assert monitor.report().healthy_K == sum(each < 1 - exp(-1) for each in chance) > 8


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
    assert report.basis == {"labels": 3, "assumed": 0}
    assert report.selection is not None
    assert report.selection["BoR"].value == pytest.approx(log2(2 / sum(chances)), rel=1e-12)
    assert report.selection["Success"].n == 3


# -- the choice of a tool ----------------------------------------------------------------------------


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
WEATHER = ToolDefinition("get_weather", "The weather forecast of a city.", SCHEMA, 40)
MAIL = ToolDefinition("send_mail", "Sends a mail.", None, 30)


def test_five_wrong_calls_of_ten_are_a_wrong_tool_rate_of_one_half() -> None:
    labels = {f"q{i}": [NAMES[i]] for i in range(10)}
    called = {f"q{i}": [NAMES[i] if i < 5 else NAMES[20]] for i in range(10)}
    monitor = ToolMonitor(labels, catalogue=NAMES)
    for query in labels:
        monitor.call(query, definitions(NAMES), called[query])
    report = monitor.report()
    size = {"corpus_size": 58, "bootstrap": None}
    shown = rs.evaluate(labels, {"shown": dict.fromkeys(labels, NAMES)}, depths=[58], **size)
    assert report.selection["Success"].value == shown["Success@58"].value == 1.0
    choice = report.choice
    assert choice.right.value == rs.evaluate(labels, {"called": called}, depths=[1], **size)["Success@1"].value == 0.5
    exact = binomtest(5, 10).proportion_ci(0.95, "exact")
    assert (choice.wrong.value, choice.wrong.n) == (0.5, 10)
    assert (choice.wrong.low, choice.wrong.high) == pytest.approx((exact.low, exact.high))
    assert [(cell.expected, cell.called, cell.calls, cell.right) for cell in choice.confusion][:2] == [
        (("tool_05",), "tool_20", 1, False),
        (("tool_06",), "tool_20", 1, False),
    ]
    assert next(tool for tool in report.tools if tool.name == "tool_20").wrong == 5
    assert "Choice: of 10 model calls with labels 50.0% called a right tool, 50.0% [18.7%, 81.3%] a wrong tool" in str(
        report
    )
    assert "Selection: 100.0% [69.2%, 100.0%] of 10 model calls with labels were shown a right tool" in report.details()
    assert "no run is shown to be better than luck" in report.details()
    assert "tools: 10 model calls, N = 58" in report.details()
    assert "retriev" not in report.details()
    assert json.loads(report.to_json())["choice"]["wrong"]["value"] == 0.5


def test_what_counts_as_right_wrong_none_and_answer() -> None:
    monitor = ToolMonitor({"a": ["one", "two"], "b": ["two"], "c": {"one": 0}}, catalogue=["one", "two", "three"])
    shown = ["one", "three"]
    monitor.call("a", shown, ["one"])
    monitor.call("a", shown, ["one", "three"])  # a right and a wrong one
    monitor.call("a", shown, [])
    monitor.call("a", shown, [], after_results=True)  # the answer
    monitor.call("a", shown, ["three"], after_results=True)
    monitor.call("b", shown, ["two"])  # right, although it was not offered
    monitor.call("c", shown, [])  # right: none applies
    monitor.call("c", shown, ["one"])
    monitor.call("not labelled", shown, ["three"])
    choice = monitor.report().choice
    assert (choice.calls, choice.answers) == (7, 1)
    assert [figure.value * 7 for figure in (choice.right, choice.wrong, choice.none)] == pytest.approx([3, 3, 1])
    assert (choice.right_if_shown.value, choice.right_if_shown.n) == (0.25, 4)
    assert {(cell.expected, cell.called): cell.calls for cell in choice.confusion} == {
        (("one", "two"), "one"): 2,
        (("one", "two"), "three"): 2,
        (("one", "two"), None): 1,
        (("two",), "two"): 1,
        ((), None): 1,
        ((), "one"): 1,
    }
    assert "Choice: of 7 model calls with labels that gave no answer 42.9% called" in monitor.report().details()
    # No draw could serve a query to which no tool applies.
    assert (monitor.report().not_offered, monitor.report().basis["labels"]) == ({"two": 1}, 6)


def test_runs_arguments_and_tools_that_were_not_offered_are_named_and_counted() -> None:
    monitor = ToolMonitor({"q": ["get_weather"]})
    for arguments in ({"city": "Rome"}, {"city": 3}, {}, '{"city": "Ro', {"city": "Rome", "day": 2}):
        monitor.call("q", [WEATHER, MAIL], [Call("get_weather", arguments), Call("send_mail", {"to": "x"})])
    for failed in (True, False, False, True):
        monitor.ran("get_weather", failed=failed)
    monitor.ran("nobody knows it", failed=True)
    for i in range(1500):
        monitor.call("other", [WEATHER, MAIL], [f"made_up_{i}"])
    report = monitor.report()
    assert (report.failed.value, report.failed.n) == (0.5, 4)
    assert (report.misfit.value, report.misfit.n) == (0.8, 5)
    assert {(each.tool, each.reason, each.calls) for each in report.misfits} == {
        ("get_weather", reason, 1) for reason in ("type: city", "missing: city", "no JSON object", "unknown: day")
    }
    assert (len(report.not_offered), set(report.not_offered.values())) == (1500, {1})
    assert "Failed: 50.0% [6.8%, 93.2%] of 4 runs of tools ended in an error" in report.details()
    assert "Called without being offered: made_up_0 (1 call), made_up_1 (1 call)" in report.details()


# -- near-identical tools ----------------------------------------------------------------------------


def dice(one: str, other: str) -> float:
    """The share of pairs of letters that two names have in common, by its definition."""
    first, second = (Counter(pairwise(f"^{name.replace('_', '').lower()}$")) for name in (one, other))
    return 2 * (first & second).total() / (first.total() + second.total())


def test_near_identical_names_are_all_found() -> None:
    drawn = random.Random(7)
    names = sorted({"".join(drawn.choices("ab", k=drawn.randint(1, 9))) for _ in range(400)} | {"get_user", "getUsers"})
    pairs, count = similar_tools([ToolDefinition(name) for name in names])
    expected = {(one, other): dice(one, other) for one, other in combinations(names, 2)}
    expected = {pair: value for pair, value in expected.items() if value >= 0.8}
    assert count == len(expected) > 1000
    assert {(pair.first, pair.second) for pair in pairs} <= set(expected)
    assert [pair.names for pair in pairs] == pytest.approx(sorted(expected.values(), reverse=True)[:1000])
    assert all(isnan(pair.descriptions) for pair in pairs)


def test_near_identical_descriptions_with_how_often_they_were_confused() -> None:
    same = "Searches the documents of the company for a text"
    tools = [
        ToolDefinition("search", same + "."),
        ToolDefinition("lookup", f"{same} now."),
        ToolDefinition("open", "Opens a file."),
    ]
    monitor = ToolMonitor({"q": ["search"], "p": ["lookup"], "o": ["open"]}, catalogue=tools)
    for query, called in (("q", "lookup"), ("q", "search"), ("p", "search"), ("o", "search")):
        monitor.call(query, tools, [called])
    (pair,) = monitor.report().similar
    assert (pair.first, pair.second, pair.confused) == ("search", "lookup", 2)
    assert "1 tool never called took" in monitor.report().details()
    assert pair.descriptions == pytest.approx(8 / 9)
    assert "search lookup" in " ".join(monitor.report().details().split())


def test_names_that_several_definitions_have() -> None:
    twice = [ToolDefinition("send", "a mail"), ToolDefinition("send", "a letter"), ToolDefinition("stop")]
    with pytest.warns(rs.SelectivityWarning, match="the catalogue has 1 tool with the same name as another: send"):
        monitor = ToolMonitor(catalogue=twice)
    monitor.call("q", [*twice, ToolDefinition("stop")])
    report = monitor.report()
    assert (report.catalogue, report.shown, report.duplicates) == (2, 2, {"send": 2, "stop": 2})
    assert "Several tools have the same name: send (2 definitions) and stop (2 definitions)" in report.details()


# -- arguments against a schema ----------------------------------------------------------------------

NODE = {"type": "object", "properties": {"text": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}}


@pytest.mark.parametrize(
    ("arguments", "schema", "reason"),
    [
        ({"text": "a", "next": {"text": "b"}}, {"$ref": "#/$defs/node", "$defs": {"node": NODE}}, None),
        ({"next": {"text": 3}}, {"$ref": "#/$defs/node", "$defs": {"node": NODE}}, "type: next.text"),
        ({"texts": "a"}, {"$ref": "#/$defs/node", "$defs": {"node": NODE}}, "unknown: texts"),
        ({"a": [1, "x"]}, {"properties": {"a": {"items": {"type": "integer"}}}}, "type: a[]"),
        ({"a": 5}, {"properties": {"a": {"maximum": 4}}}, "value: a"),
        ({"a": "bc"}, {"properties": {"a": {"enum": ["b", "c"]}}}, "value: a"),
        ({"a": ""}, {"properties": {"a": {"minLength": 1}}}, "length: a"),
        ({"a": {}}, {"properties": {"a": {"required": ["b"]}}}, "missing: a.b"),
        ({"a": None}, {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, None),
        ({"a": 3}, {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, "type: a"),
        ({"a": None}, {"properties": {"a": {"type": "STRING", "nullable": True}}}, None),
        ({"anything": 1}, {"type": "object"}, None),
        ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": True}, None),
        ({"a": 1}, {"properties": {"a": {"$ref": "https://example.invalid/schema"}}}, None),
        ({"a": 1}, {"properties": {"a": {"minimum": "none"}}}, None),
        ([1], {"type": "object"}, "no JSON object"),
    ],
)
def test_why_arguments_do_not_fit(arguments, schema, reason) -> None:
    assert misfit(arguments, schema) == reason


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
    lengths = [len(json.dumps(convert_to_openai_tool(tool))) for tool in tools()]
    assert report.tokens == sum((length + 3) // 4 for length in lengths)


def test_calls_without_tools_and_for_structured_output_are_left_out() -> None:
    class Answer(BaseModel):
        """An answer."""

        text: str

    callback = ToolSelectivityCallback(relevant=4)
    config = {"callbacks": [callback]}
    saying(AIMessage("hi")).invoke("hello", config=config)
    plain = saying(AIMessage("", tool_calls=[ToolCall(name="Answer", args={"text": "x"}, id="1")]))
    plain.with_structured_output(Answer).invoke("hello", config=config)
    with pytest.raises(rs.InputError, match=r"^2 model calls seen, none of them with tools: .*model\.bind_tools"):
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


def asked(name: str, args: Any, id_: str = "c") -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=name, args=args, id=id_)])


def test_an_agent_that_calls_wrong_tools_badly() -> None:
    agents = pytest.importorskip("langchain.agents")
    middleware = pytest.importorskip("langchain.agents.middleware")

    def forecast(city: str) -> str:
        """The weather forecast of a city."""
        if city == "Atlantis":
            raise ToolException("no such city")
        return "sun"

    def send(to: str) -> str:
        """Sends a mail."""
        raise ConnectionError("away")

    tools = [StructuredTool.from_function(forecast, handle_tool_error=True), StructuredTool.from_function(send)]
    labels = {"weather?": ["forecast"], "mail?": ["send"], "sum?": ["forecast"]}
    callback = ToolSelectivityCallback(labels, catalogue=tools)
    config = {"callbacks": [callback]}
    cut = {"args": '{"city": "Ro', "id": "b", "error": None, "type": "x"}
    broken = AIMessage("", invalid_tool_calls=[{"name": name, **cut} for name in ("forecast", None)])
    conversations = {
        "weather?": [asked("send", {"to": 3}), asked("forecast", {"city": "Atlantis"}), AIMessage("unknown")],
        "sum?": [asked("add", {"a": 1}), asked("forecast", {"city": "Rome"}), AIMessage("sun")],
        "mail?": [broken, AIMessage("never asked for")],
    }
    for question, messages in conversations.items():
        agent = agents.create_agent(
            saying(*messages), tools=tools, middleware=[middleware.ToolRetryMiddleware(max_retries=0)]
        )
        agent.invoke({"messages": [("user", question)]}, config=config)
    report = callback.report()
    assert callback.faults == 0
    # Selection is perfect and choice is not: send, add and the forecast for a mail are wrong.
    assert report.selection["Success"].value == 1.0
    assert (report.choice.calls, report.choice.answers) == (5, 2)
    assert (report.choice.right.value, report.choice.wrong.value) == (0.4, 0.6)
    assert {(cell.expected, cell.called): cell.calls for cell in report.choice.confusion} == {
        (("forecast",), "send"): 1,
        (("forecast",), "add"): 1,
        (("send",), "forecast"): 1,
        (("forecast",), "forecast"): 2,
    }
    assert report.not_offered == {"add": 1}
    assert {(e.tool, e.reason) for e in report.misfits} == {("send", "type: to"), ("forecast", "no JSON object")}
    by_name = {tool.name: tool for tool in report.tools}
    assert (by_name["forecast"].ran, by_name["forecast"].failed) == (2, 1)  # Atlantis, by a message
    assert (by_name["send"].ran, by_name["send"].failed) == (1, 1)  # by an exception


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
