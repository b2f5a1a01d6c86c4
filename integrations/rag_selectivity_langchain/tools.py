"""`ToolSelectivityCallback`: watches which tools chat models are shown, which they call, and how that ends."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.utils.function_calling import convert_to_openai_tool

from rag_selectivity.live.tools import ToolCall, ToolDefinition, ToolWatcher
from rag_selectivity.live.watching import Latest
from rag_selectivity_langchain.documents import text_of

_HOW = "model.bind_tools(tools) or create_agent(model, tools)"


class ToolSelectivityCallback(ToolWatcher, BaseCallbackHandler):  # type: ignore[misc,unused-ignore]
    """Watches the tools bound to every chat model call: `agent.invoke(…, config={"callbacks": [callback]})`.

    Recorded are the tools that were bound, those that the model called with the arguments that it gave, and the runs of
    tools with whether they failed (raised an error, or returned a message with the status `error`).

    Parameters
    ----------
    labels, catalogue, relevant, **options
        As in `rag_selectivity.ToolMonitor`. With a tool selector in front of the model only the selected tools
        are seen: give `catalogue=`, the number or names of all.
    query_id_key : str
        `config={"metadata": {"query_id": …}}` tells under which id the labels know the query; else the last human
        message is the query.
    count_tokens : callable, optional
        Text → tokens of a definition as JSON; default: four characters a token.
    ignored : sequence of str
        Names that only look like tools, such as the schema of an agent's structured answer (`ToolStrategy`).

    Calls for structured output are left out: their schema only looks like a tool. A fault in here never
    reaches the chain: it is logged, and counted in `faults`.
    """

    run_inline = True

    def __init__(self, labels: Any = None, *, ignored: Sequence[str] = (), **options: Any) -> None:
        super().__init__(labels, **options)
        # A call that is no JSON may come without a name.
        self._ignored = frozenset([*ignored, None])
        self._calls, self._runs = Latest[dict[str, Any]](), Latest[str]()

    def on_chat_model_start(
        self, serialized: Any, messages: Sequence[Sequence[Any]], *, run_id: UUID, metadata: Any = None, **told: Any
    ) -> None:
        """A chat model is asked."""
        with self.guard:
            offered = (told.get("invocation_params") or {}).get("tools") or ()
            shown = [each for tool in offered for each in self.definitions_of(tool) if each.name not in self._ignored]
            query_id = (metadata or {}).get(self.query_id_key)
            query_id = None if query_id is None else str(query_id)
            query, after_results = _asked(messages[0] if messages else ())
            if (told.get("options") or {}).get("ls_structured_output_format"):
                self.monitor.called_without(_HOW)
                return
            if not shown:
                self.monitor.called_without(_HOW, query_id, query)
                return
            under_way = {"query": query, "shown": shown, "query_id": query_id, "after_results": after_results}
            self._calls.keep(run_id, under_way)

    def on_llm_end(self, response: Any, *, run_id: UUID, **told: Any) -> None:
        """A chat model has answered."""
        if (call := self._calls.take(run_id)) is None:
            return
        with self.guard:
            called = [
                ToolCall(str(request["name"]), request.get("args"))
                for generations in response.generations
                for generation in generations
                for listed in ("tool_calls", "invalid_tool_calls")
                for request in getattr(getattr(generation, "message", None), listed, None) or ()
                if request["name"] not in self._ignored
            ]
            self.monitor.call(**call, called=called)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **told: Any) -> None:
        """A chat model has failed."""
        self._calls.take(run_id)

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **told: Any) -> None:
        """A tool begins to run."""
        with self.guard:
            name = (serialized or {}).get("name") or told.get("name")
            if name is not None:
                self._runs.keep(run_id, str(name))

    def on_tool_end(self, output: Any, *, run_id: UUID, **told: Any) -> None:
        """A tool has returned something, which may be a message about an error."""
        with self.guard:
            self._ran(run_id, failed=getattr(output, "status", None) == "error")

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **told: Any) -> None:
        """A tool has raised an error."""
        with self.guard:
            # A graph waits for a person, or goes on elsewhere, by an exception: the tool has not failed.
            is_detour = any(each.__name__ == "GraphBubbleUp" for each in type(error).__mro__)
            self._ran(run_id, failed=None if is_detour else True)

    def _ran(self, run_id: UUID, *, failed: bool | None) -> None:
        if (name := self._runs.take(run_id)) is not None and failed is not None:
            self.monitor.ran(name, failed=failed)

    def definitions_of(self, tool: Any) -> list[ToolDefinition]:
        """A tool as the model is given it, by name, by a provider's form or as an object; some hold several."""
        if isinstance(tool, str):
            return super().definitions_of(tool)
        if isinstance(tool, Mapping) and isinstance(tool.get("function_declarations"), Sequence):
            return [each for inner in tool["function_declarations"] for each in self.definitions_of(inner)]
        described = tool if isinstance(tool, Mapping) else convert_to_openai_tool(tool)
        return [ToolDefinition.of(described, self.count_tokens)]


def _asked(messages: Sequence[Any]) -> tuple[str, bool]:
    """The last question of a person, and whether the result of a tool came after it."""
    after_results = False
    for message in reversed(messages):
        kind = getattr(message, "type", None)
        if kind == "human":
            return text_of(message), after_results
        after_results |= kind == "tool"
    return "", after_results
