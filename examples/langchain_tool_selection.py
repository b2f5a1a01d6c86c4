"""Select tools from Python's standard library: 58, 500 and all of its functions, found by BM25.

    pip install -e '.[langchain,demo]' && python examples/langchain_tool_selection.py [FOLDER]

Every public function of a public module that has a docstring is a tool. The first line of the docstring is the question
to which the tool is the answer; the selector sees the rest: the name, the names of the parameters, and the docstring
without its first line. Functions with the same first line answer the same question. The smaller sets are drawn from all
functions with a fixed seed. The figures differ a little between versions of Python.

Then a chat model, LangChain's fake, is given the tools of the smallest set: all of them, and the five that BM25 finds.
It calls the shown tool that shares the most words with the question. Everything runs offline. The script writes
langchain-tool-selection.png to FOLDER (default: the current folder).
"""

import contextlib
import importlib
import inspect
import io
import pkgutil
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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

import rag_selectivity as rs

SIZES = (58, 500)
DEPTHS = (1, 5)
#: Modules that open a window or a browser, print a poem, or are programs and tests.
LEFT_OUT = {"antigravity", "this", "idlelib", "turtledemo", "turtle", "tkinter", "lib2to3", "ensurepip", "venv", "test"}


@dataclass(frozen=True)
class Function:
    """A function of the standard library: the question that it answers, and what a selector may read."""

    name: str
    question: str
    parameters: str
    rest: str

    @property
    def text(self) -> str:
        return f"{re.sub('[._]', ' ', self.name)} {self.parameters} {self.rest}"


def standard_library() -> list[Function]:
    """Every public function of a public module that has a docstring, once."""
    found: dict[int, Function] = {}
    for module in public_modules():
        for name, function in sorted(vars(module).items()):
            if name.startswith("_") or not inspect.isroutine(function) or id(function) in found:
                continue
            question, _, rest = (inspect.getdoc(function) or "").strip().partition("\n")
            if question:
                path = f"{module.__name__}.{name}"
                found[id(function)] = Function(path, " ".join(question.split()), parameters_of(function), rest)
    return list(found.values())


def public_modules() -> Iterator[Any]:
    for name in sorted(sys.stdlib_module_names - LEFT_OUT):
        if name.startswith("_"):
            continue
        module = imported(name)
        if module is None:
            continue
        yield module
        for part in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}.", onerror=lambda _: None):
            parts = part.name.split(".")
            if not any(each.startswith("_") or each in ("test", "tests") for each in parts):
                inner = imported(part.name)
                if inner is not None:
                    yield inner


def imported(name: str) -> Any:
    """The module, or None if this platform lacks it."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except Exception:
            return None


def parameters_of(function: Any) -> str:
    try:
        return " ".join(inspect.signature(function).parameters)
    # Some functions that are written in C do not tell; from Python 3.14 on, annotations may name what is not imported.
    except (TypeError, ValueError, NameError):
        return ""


def drawn(functions: Sequence[Function], size: int) -> list[Function]:
    return random.Random(7).sample(functions, size) if size < len(functions) else list(functions)


def labels_of(functions: Sequence[Function]) -> dict[str, list[str]]:
    """The functions that answer each question."""
    labels: dict[str, list[str]] = {}
    for function in functions:
        labels.setdefault(function.question, []).append(function.name)
    return labels


def bm25(functions: Sequence[Function]) -> Callable[[Sequence[str], int], list[list[str]]]:
    """A selector: questions and K to the names of the K functions whose texts fit each question best."""
    index = bm25s.BM25()
    index.index(_tokens([function.text for function in functions]), show_progress=False)

    def select(questions: Sequence[str], keep: int) -> list[list[str]]:
        found, _ = index.retrieve(_tokens(questions), k=keep, show_progress=False, sorted=True)
        return [[functions[i].name for i in row] for row in found.tolist()]

    return select


def _tokens(texts: Sequence[str]) -> Any:
    return bm25s.tokenize(list(texts), stopwords="en", show_progress=False)


# -- an agent ----------------------------------------------------------------------------------------


class OverlapModel(GenericFakeChatModel):
    """Calls the shown tool that shares the most words with the question, and answers after the tool's reply."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(self, messages: list[BaseMessage], *args: Any, tools: Any = (), **kwargs: Any) -> ChatResult:
        reply = AIMessage("done")
        if not isinstance(messages[-1], ToolMessage):
            question = str(messages[-1].content)
            texts = {each["function"]["name"]: each["function"]["description"] for each in tools}
            best = max(texts, key=lambda name: len(_words(question) & _words(f"{name} {texts[name]}")))
            reply = AIMessage("", tool_calls=[ToolCall(name=best, args={"request": question}, id="1")])
        return ChatResult(generations=[ChatGeneration(message=reply)])


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def tool_of(function: Function) -> StructuredTool:
    # The real function is not called: only the selection and the choice of tools are measured here.
    def run(request: str) -> str:
        return f"done: {request}"

    return StructuredTool.from_function(run, name=function.name, description=function.text[:400])


def run_agent(tools: dict[str, StructuredTool], shown: dict[str, list[str]], callback: ToolSelectivityCallback) -> None:
    """The usual loop: ask the model, run the tools that it calls, until it calls none."""
    model = OverlapModel(messages=iter(()))
    config = {"callbacks": [callback]}
    for question, names in shown.items():
        bound = model.bind_tools([tools[name] for name in names])
        messages: list[BaseMessage] = [HumanMessage(question)]
        while True:
            reply = bound.invoke(messages, config=config)
            messages.append(reply)
            if not reply.tool_calls:
                break
            for call in reply.tool_calls:
                output = tools[call["name"]].invoke(call["args"], config=config)
                messages.append(ToolMessage(output, tool_call_id=call["id"]))


# -- what it prints ----------------------------------------------------------------------------------


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    functions = standard_library()
    version = ".".join(map(str, sys.version_info[:2]))
    print(f"{len(functions):,} functions of the standard library of Python {version}\n")
    print(f"{'N':>6} {'K':>3} {'Success':>8} {'BoR':>6} {'ceiling':>8}")
    curve = []
    for size in (*SIZES, len(functions)):
        chosen = drawn(functions, size)
        labels, select = labels_of(chosen), bm25(chosen)
        shown = dict(zip(labels, select(list(labels), max(DEPTHS)), strict=True))
        report = rs.evaluate(labels, {"BM25": shown}, corpus_size=size, depths=DEPTHS, bootstrap=None)
        for depth in DEPTHS:
            success, bits, ceiling = (report[f"{name}@{depth}"].value for name in ("Success", "BoR", "BoR_max"))
            print(f"{size:>6,} {depth:>3} {success:>8.1%} {bits:>6.2f} {ceiling:>8.2f}")
            if depth == 1:
                curve.append((size, success, bits, ceiling))

    chosen = drawn(functions, SIZES[0])
    labels, select = labels_of(chosen), bm25(chosen)
    tools = {function.name: tool_of(function) for function in chosen}
    five = dict(zip(labels, select(list(labels), 5), strict=True))
    everything = {question: list(tools) for question in labels}
    for name, shown in (("all", everything), ("five", five)):
        callback = ToolSelectivityCallback(labels, catalogue=list(tools.values()))
        run_agent(tools, shown, callback)
        result = callback.report()
        assert result.selection is not None
        assert result.choice is not None
        print(
            f"\nWith {name} of {len(tools)} tools shown ({result.tokens:,.0f} tokens a call) a right one is shown in "
            f"{result.selection['Success'].value:.0%} of the calls and called in {result.choice.right.value:.0%}: the "
            f"wrong-tool rate is {result.choice.wrong.value:.0%} "
            f"[{result.choice.wrong.low:.0%}, {result.choice.wrong.high:.0%}]"
        )
    print(f"\n{result}")
    draw(curve, folder / "langchain-tool-selection.png")


def draw(curve: Sequence[tuple[int, float, float, float]], path: Path) -> None:
    """Bits at K = 1 grow with the number of tools, while success falls."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    sizes, successes, bits, ceilings = zip(*curve, strict=True)
    _, (left, right) = pyplot.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    left.plot(sizes, ceilings, color="#666666", label="ceiling")
    left.plot(sizes, bits, "o-", color="#0072b2", label="BM25")
    left.set(ylabel="bits over random at K = 1", ylim=(0, None))
    left.legend(frameon=False)
    right.plot(sizes, successes, "o-", color="#d55e00")
    right.set(ylabel="Success@1", ylim=(0, 1))
    for axes in (left, right):
        axes.set(xscale="log", xlabel="N tools")
    left.figure.savefig(path, dpi=120)
    print(f"\n{path} shows both over N")


if __name__ == "__main__":
    main()
