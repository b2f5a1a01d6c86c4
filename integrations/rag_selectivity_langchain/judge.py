"""A LangChain chat model as a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from rag_selectivity.grading.judge import Answer, Message, ask_until_valid, failure_of, with_schema
from rag_selectivity.results.usage import Usage

_KINDS: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}


class ChatModelJudge:
    """Any `BaseChatModel`, with its own structured output where it has one, else asked for JSON in words.

    Parameters
    ----------
    model : BaseChatModel
    name : str, optional
        Default: what the model calls itself.
    """

    def __init__(self, model: BaseChatModel, *, name: str | None = None) -> None:
        said = model._get_ls_params()
        self.name = name or str(said.get("ls_model_name") or type(model).__name__)
        self.parameters: Mapping[str, Any] = {
            "provider": said.get("ls_provider"),
            **{key: said[f"ls_{key}"] for key in ("temperature", "max_tokens") if said.get(f"ls_{key}") is not None},
        }
        self._model = model
        self._structured: dict[type[BaseModel], Any] = {}

    async def ask(self, messages: Sequence[Message], schema: type[BaseModel]) -> Answer:
        """Answer the messages with an instance of the schema, or raise a JudgeFailure."""

        async def complete(conversation: Sequence[Message]) -> tuple[Any, Usage]:
            chain = self._chain(schema)
            said = list(conversation) if chain is not self._model else with_schema(conversation, schema)
            try:
                reply = await chain.ainvoke([_KINDS[message["role"]](message["content"]) for message in said])
            except Exception as error:
                raise failure_of(error) from None
            if isinstance(reply, dict):
                raw, parsed = reply["raw"], reply["parsed"]
                return (parsed if parsed is not None else _text(raw)), _usage(raw)
            return _text(reply), _usage(reply)

        return await ask_until_valid(complete, messages, schema)

    def _chain(self, schema: type[BaseModel]) -> Any:
        if schema not in self._structured:
            try:
                self._structured[schema] = self._model.with_structured_output(schema, include_raw=True)
            except (NotImplementedError, ValueError, AttributeError):
                self._structured[schema] = self._model
        return self._structured[schema]


def _text(message: Any) -> str:
    content = getattr(message, "content", message)
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else part.get("text", "") for part in content)


def _usage(message: Any) -> Usage:
    spent = getattr(message, "usage_metadata", None) or {}
    return Usage(int(spent.get("input_tokens", 0)), int(spent.get("output_tokens", 0)))
