"""Compare two selections of tools for an agent: all 58 tools, and the five that BM25 retrieves.

    pip install -e '.[langchain,demo]' && python examples/langchain_tool_selection.py [FOLDER]

The tools are functions of Python's standard library; their docstrings are the descriptions. The tasks, and the tools
that apply to each task, were written by hand. The chat model is LangChain's fake; it calls the shown tool whose name
and description share the most words with the task. Everything runs offline. The script writes
langchain-tool-selection.png to FOLDER (default: the current folder).
"""

from __future__ import annotations

import base64
import calendar
import difflib
import glob
import html
import inspect
import math
import random
import re
import shutil
import statistics
import sys
import textwrap
import urllib.parse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bm25s
import matplotlib
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from rag_selectivity_langchain import ToolSelectivityCallback

from rag_selectivity.render import plots

FUNCTIONS: dict[Any, str] = {
    statistics: "mean fmean geometric_mean harmonic_mean median mode stdev pstdev variance quantiles correlation "
    "linear_regression",
    math: "sqrt factorial gcd lcm comb perm log exp floor ceil isclose dist hypot prod",
    random: "choice choices sample shuffle randint uniform gauss",
    textwrap: "wrap fill shorten dedent indent",
    shutil: "copy copytree move rmtree disk_usage make_archive unpack_archive which",
    base64: "b64encode b64decode",
    html: "escape unescape",
    difflib: "get_close_matches unified_diff",
    calendar: "monthrange isleap",
    glob: "glob",
    urllib.parse: "quote unquote urlparse",
}

#: The tools that apply to each task.
TASKS = {
    "the average of these exam results": "mean fmean median",
    "a typical value that outliers do not move": "median quantiles mode",
    "how far do the measurements spread around their mean": "stdev pstdev variance",
    "do height and weight go together": "correlation linear_regression",
    "the average growth rate over ten years": "geometric_mean",
    "the average speed over equal distances": "harmonic_mean",
    "the number of ways to choose 3 of 20 people": "comb perm factorial",
    "the distance between two points": "dist hypot sqrt",
    "the greatest common divisor of two integers": "gcd",
    "round a price up to the next integer": "ceil",
    "pick one element from a list at random": "choice choices sample randint",
    "put a list into random order": "shuffle sample",
    "a random number with a normal distribution": "gauss",
    "break a long paragraph into lines of 70 characters": "wrap fill",
    "remove the common leading whitespace from every line of a text": "dedent",
    "truncate the text to fit in the given width": "shorten",
    "copy a whole directory tree": "copytree copy",
    "delete an entire directory tree": "rmtree",
    "create a zip archive file of a folder": "make_archive",
    "how much space is left on the disk": "disk_usage",
    "encode bytes as base64": "b64encode",
    "make text safe for an HTML page": "escape",
    "find the words most similar to a misspelled one": "get_close_matches",
    "is this year a leap year": "isleap",
    "all files whose names match a pattern": "glob",
    "quote special characters for use in a URL": "quote",
}


def toolbox() -> list[StructuredTool]:
    """58 tools with real names and real descriptions."""
    found = []
    for module, names in FUNCTIONS.items():
        for name in names.split():
            # The real function is not called: only the selection of tools is measured here.
            def run(request: str) -> str:
                return f"done: {request}"

            described = " ".join((inspect.getdoc(getattr(module, name)) or name).split())[:400]
            found.append(StructuredTool.from_function(run, name=name, description=described))
    return found


class OverlapModel(GenericFakeChatModel):
    """Calls the shown tool that shares the most words with the task, and answers after the tool's reply."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(self, messages: list[BaseMessage], *args: Any, tools: Any = (), **kwargs: Any) -> ChatResult:
        reply = AIMessage("done")
        if not isinstance(messages[-1], ToolMessage):
            task = str(messages[-1].content)
            offered = [each["function"] for each in tools]
            best = max(offered, key=lambda tool: len(_words(task) & _words(f"{tool['name']} {tool['description']}")))
            reply = AIMessage("", tool_calls=[ToolCall(name=best["name"], args={"request": task}, id="1")])
        return ChatResult(generations=[ChatGeneration(message=reply)])


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def run_agent(
    tasks: Sequence[str], choose: Callable[[str], list[StructuredTool]], callback: ToolSelectivityCallback
) -> None:
    """The usual loop: ask the model, run the tools that it calls, until it calls none."""
    model = OverlapModel(messages=iter(()))
    for task in tasks:
        shown = choose(task)
        by_name = {tool.name: tool for tool in shown}
        messages: list[BaseMessage] = [HumanMessage(task)]
        while True:
            reply = model.bind_tools(shown).invoke(messages, config={"callbacks": [callback]})
            messages.append(reply)
            if not reply.tool_calls:
                break
            for call in reply.tool_calls:
                messages.append(ToolMessage(by_name[call["name"]].invoke(call["args"]), tool_call_id=call["id"]))


def bm25_selector(tools: Sequence[StructuredTool], keep: int) -> Callable[[str], list[StructuredTool]]:
    """The tools whose names and descriptions fit a task best."""
    index = bm25s.BM25()
    index.index(_tokens([f"{tool.name.replace('_', ' ')} {tool.description}" for tool in tools]), show_progress=False)

    def choose(task: str) -> list[StructuredTool]:
        found, _ = index.retrieve(_tokens([task]), k=keep, show_progress=False, sorted=True)
        return [tools[i] for i in found[0].tolist()]

    return choose


def _tokens(texts: list[str]) -> Any:
    return bm25s.tokenize(texts, stopwords="en", show_progress=False)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    tools = toolbox()
    labels = {task: names.split() for task, names in TASKS.items()}
    choosers = {"all": lambda _: tools, "BM25": bm25_selector(tools, 5)}
    reports = {}
    for name, choose in choosers.items():
        callback = ToolSelectivityCallback(labels, catalogue=tools)
        run_agent(list(TASKS), choose, callback)
        reports[name] = callback.report()
        print(f"== {name} ==\n{reports[name]}\n")
    everything, few = reports.values()
    kept = few.selectivity["Success"].value if few.selectivity else math.nan
    print(
        f"Showing 5 of {len(tools)} tools keeps an applicable one in sight in {kept:.0%} of the calls, where a random "
        f"5 would in {2**-few.BoR_max:.0%}, and takes {few.tokens:,.0f} tokens a call in place of "
        f"{everything.tokens:,.0f}."
    )

    # Without labels an assumption is needed. As in the published example, four tools apply to a task.
    print("\nWithout labels, assuming that four tools apply:")
    assumed = ToolSelectivityCallback(catalogue=tools, relevant=4, on_warning=print)
    run_agent(list(TASKS)[:1], choosers["all"], assumed)

    matplotlib.use("Agg")
    axes = plots.ceiling(len(tools), 4, {"all": everything.shown, "BM25": few.shown})
    axes.set_title("58 tools, four of which apply")
    axes.figure.savefig(folder / "langchain-tool-selection.png", dpi=120)
    print(f"{folder / 'langchain-tool-selection.png'} shows what is left to be won at either K")


if __name__ == "__main__":
    main()
