"""`ToolSelectivityCallback`: watches which tools chat models are shown, and which they call."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.utils.function_calling import convert_to_openai_tool

from rag_selectivity.live.calls import Faults, approximate_tokens
from rag_selectivity.live.tools import ToolMonitor, ToolReport
from rag_selectivity_langchain.documents import text_of

#: Model calls that never end must not fill the memory.
_MOST_CALLS = 10_000


@dataclass(frozen=True, slots=True)
class _UnderWay:
    query: str
    query_id: str | None
    kind: str
    shown: Mapping[str, int]


class ToolSelectivityCallback(BaseCallbackHandler):  # type: ignore[misc,unused-ignore]
    """Watches the tools bound to every chat model call: `agent.invoke(…, config={"callbacks": [callback]})`.

    Parameters
    ----------
    labels, catalogue, relevant, warn_from, on_warning, **options
        As in `rag_selectivity.ToolMonitor`. With a tool selector in front of the model only the selected tools
        are seen: give `catalogue=`, the number or names of all.
    query_id_key, kind_key : str
        `config={"metadata": {"query_id": …, "query_kind": …}}` tells under which id the labels know the query, and
        of what kind it is; else the last human message is the query.
    count_tokens : callable, optional
        Text → tokens of a definition as JSON; default: four characters a token.

    Calls for structured output are left out: their schema only looks like a tool. A fault in here never
    reaches the chain: it is logged, and counted in `faults`.
    """

    run_inline = True

    def __init__(
        self,
        labels: Any = None,
        *,
        catalogue: int | Sequence[Any] | None = None,
        query_id_key: str = "query_id",
        kind_key: str = "query_kind",
        count_tokens: Callable[[str], int] = approximate_tokens,
        **options: Any,
    ) -> None:
        super().__init__()
        named = catalogue if catalogue is None or isinstance(catalogue, int) else [_name(tool) for tool in catalogue]
        self.monitor = ToolMonitor(labels, catalogue=named, **options)
        self._faults = Faults("the tools of a model call were not recorded")
        self._query_id_key, self._kind_key, self._count = query_id_key, kind_key, count_tokens
        self._lock = threading.Lock()
        self._calls: OrderedDict[UUID, _UnderWay] = OrderedDict()
        self._tokens: dict[str, int] = {}

    @property
    def faults(self) -> int:
        """How often something went wrong in here; each time is in the log `rag_selectivity`."""
        return self._faults.count

    def report(self) -> ToolReport:
        """What has been seen so far."""
        return self.monitor.report()

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: Sequence[Sequence[Any]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A chat model is asked."""
        with self._faults:
            if (kwargs.get("options") or {}).get("ls_structured_output_format"):
                return
            offered = (kwargs.get("invocation_params") or {}).get("tools")
            if not offered:
                return
            shown = {name: tokens for tool in offered for name, tokens in self._definitions(tool)}
            metadata = metadata or {}
            query_id = metadata.get(self._query_id_key)
            under_way = _UnderWay(
                _last_question(messages),
                None if query_id is None else str(query_id),
                str(metadata.get(self._kind_key, "")),
                shown,
            )
            with self._lock:
                self._calls[run_id] = under_way
                if len(self._calls) > _MOST_CALLS:
                    self._calls.popitem(last=False)

    def on_llm_end(self, response: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        """A chat model has answered."""
        with self._lock:
            call = self._calls.pop(run_id, None)
        if call is None:
            return
        with self._faults:
            called = [
                request["name"]
                for generations in response.generations
                for generation in generations
                for request in getattr(getattr(generation, "message", None), "tool_calls", None) or ()
            ]
            self.monitor.call(call.query, call.shown, called, query_id=call.query_id, kind=call.kind)

    def on_llm_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A chat model has failed."""
        with self._lock:
            self._calls.pop(run_id, None)

    def _definitions(self, tool: Any) -> list[tuple[str, int]]:
        """(name, tokens) of a tool as the model is given it; some providers put several into one."""
        if isinstance(tool, Mapping) and isinstance(tool.get("function_declarations"), Sequence):
            return [each for inner in tool["function_declarations"] for each in self._definitions(inner)]
        name = _name(tool)
        if name not in self._tokens:
            definition = tool if isinstance(tool, Mapping) else convert_to_openai_tool(tool)
            self._tokens[name] = self._count(json.dumps(definition, ensure_ascii=False, default=str))
        return [(name, self._tokens[name])]


def _name(tool: Any) -> str:
    """A tool's name, in whatever form a model is given it: OpenAI's, Anthropic's, Bedrock's, an object or a name."""
    if isinstance(tool, str):
        return tool
    if isinstance(tool, Mapping):
        for inner in (tool.get("function"), tool.get("toolSpec"), tool):
            if isinstance(inner, Mapping) and isinstance(inner.get("name"), str):
                return str(inner["name"])
        return str(tool.get("title") or tool.get("type") or "unnamed")
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    return str(name) if name else type(tool).__name__


def _last_question(messages: Sequence[Sequence[Any]]) -> str:
    for message in reversed(messages[0] if messages else ()):
        if getattr(message, "type", None) == "human":
            return text_of(message)
    return ""
