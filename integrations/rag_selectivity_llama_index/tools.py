"""`LiveToolSelectivity`: watches which tools agents of LlamaIndex are shown, which they call, and how that ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_selectivity.live.tools import ToolCall, ToolDefinition, ToolWatcher
from rag_selectivity.live.watching import Latest
from rag_selectivity_llama_index.watching import SpanWatcher


@dataclass
class _Run:
    """A run of an agent, or of a workflow of several: the object, and whether a tool was called in it already."""

    workflow: Any
    has_results: bool = False


@dataclass
class _Step:
    """A step in which an agent asks its model, and the tools that the model was given."""

    run: str | None
    event: Any
    query_id: str | None
    shown: Sequence[Any] | None = None


class LiveToolSelectivity(SpanWatcher, ToolWatcher):
    """Watches the tools of every agent (`FunctionAgent`, `ReActAgent`, `AgentWorkflow`) of the application.

    Recorded are the tools that a model was given, those that it called with their arguments, and the runs of tools with
    whether they failed. Of an agent without function calling (`ReActAgent`) its own tools are taken: those of a
    `tool_retriever` are not seen.

    Parameters
    ----------
    labels, catalogue, relevant, **options
        As in `rag_selectivity.ToolMonitor`. The query is the last message of the user.
    query_id_tag : str
        `with instrument_tags({"query_id": …})` around a run tells under which id the labels know the query.
    count_tokens : callable, optional
        Text → tokens of a definition as JSON; default: four characters a token.

    Use it as a context manager, or call `attach()` and `detach()`. A fault in here never reaches the application: it is
    logged, and counted in `faults`.
    """

    def __init__(self, labels: Any = None, *, query_id_tag: str = "query_id", **options: Any) -> None:
        super().__init__(labels, query_id_key=query_id_tag, **options)
        self._runs, self._steps = Latest[_Run](), Latest[_Step]()

    # -- what LlamaIndex calls ---------------------------------------------------------------------

    def span_enter(
        self, id_: str, bound_args: Any, instance: Any = None, parent_id: str | None = None, tags: Any = None, **_: Any
    ) -> None:
        """A call has begun."""
        with self.guard:
            method = _method(id_)
            if method == "run" and _agents_of(instance):
                self._runs.keep(id_, _Run(instance))
            elif method == "run_agent_step":
                tag = (tags or {}).get(self.query_id_key)
                step = _Step(parent_id, bound_args.arguments.get("ev"), None if tag is None else str(tag))
                self._steps.keep(id_, step)
            # The span is that of the hook by which every function calling model gets its tools.
            elif method.endswith("prepare_chat_with_tools") and (around := self._steps.get(parent_id)) is not None:
                around.shown = list(bound_args.arguments.get("tools") or ())

    def span_exit(self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **_: Any) -> None:
        """A call is over."""
        with self.guard:
            if _method(id_) == "call_tool" and result is not None:
                self.monitor.ran(str(result.tool_name), failed=bool(result.tool_output.is_error))
            step = self._steps.take(id_)
            if step is not None and result is not None:
                self._record(step, result)
            self._runs.take(id_)

    def span_drop(self, id_: str, bound_args: Any, instance: Any = None, err: Any = None, **_: Any) -> None:
        """A call has failed."""
        self._runs.take(id_)
        self._steps.take(id_)

    def _record(self, step: _Step, output: Any) -> None:
        run = self._runs.get(step.run)
        shown = step.shown
        if shown is None:
            agents = {} if run is None else _agents_of(run.workflow)
            agent = agents.get(getattr(step.event, "current_agent_name", None)) or next(iter(agents.values()), None)
            shown = getattr(agent, "tools", None)
        calls = [ToolCall(each.tool_name, each.tool_kwargs) for each in output.tool_calls]
        after_results = run is not None and run.has_results
        if run is not None and calls:
            run.has_results = True
        query = _last_question(getattr(step.event, "input", ()))
        if not shown:
            self.monitor.called_without("FunctionAgent(tools=[…])", step.query_id, query)
            return
        definitions = [each for tool in shown for each in self.definitions_of(tool)]
        self.monitor.call(query, definitions, calls, query_id=step.query_id, after_results=after_results)

    def definitions_of(self, tool: Any) -> list[ToolDefinition]:
        if isinstance(tool, str):
            return super().definitions_of(tool)
        metadata = tool.metadata
        named = {"name": str(metadata.name or ""), "description": str(metadata.description or "")}
        return [ToolDefinition.of({**named, "parameters": metadata.get_parameters_dict()}, self.count_tokens)]


def _method(id_: str) -> str:
    """The method of a span, by its name `Class.method-uuid`."""
    return id_.partition("-")[0].rpartition(".")[2]


def _agents_of(workflow: Any) -> Mapping[str | None, Any]:
    """The agents of a workflow by name; an agent is a workflow of one."""
    agents = getattr(workflow, "agents", None)
    if isinstance(agents, Mapping):
        return agents
    return {getattr(workflow, "name", None): workflow} if hasattr(workflow, "tools") else {}


def _last_question(messages: Sequence[Any]) -> str:
    for message in reversed(messages):
        if str(getattr(message.role, "value", message.role)) == "user":
            return str(message.content or "")
    return ""
