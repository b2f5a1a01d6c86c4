"""A LlamaIndex LLM as a judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM
from pydantic import BaseModel

from rag_selectivity.grading.judge import GradingError, Message, ModelJudge, Usage, known_settings, with_schema

_ROLES = {"system": MessageRole.SYSTEM, "user": MessageRole.USER, "assistant": MessageRole.ASSISTANT}


class LLMJudge(ModelJudge):
    """Any LlamaIndex `LLM`, by function calling where the model has it, else asked for JSON in words.

    Parameters
    ----------
    llm : LLM
    name : str, optional
        Default: the model's name from its metadata.

    Raises
    ------
    GradingError
        If it is no LLM, such as the name of one.
    """

    def __init__(self, llm: LLM, *, name: str | None = None) -> None:
        if not hasattr(llm, "achat"):
            raise GradingError(f"an LLM of LlamaIndex is needed, got {type(llm).__name__}")
        super().__init__(name or llm.metadata.model_name, known_settings(llm, ("temperature", "max_tokens")))
        self._llm = llm
        self._structured: dict[type[BaseModel], Any] = {}

    async def complete(self, conversation: Sequence[Message], schema: type[BaseModel]) -> tuple[Any, Usage | None]:
        """Ask once."""
        calls_functions = self._llm.metadata.is_function_calling_model
        messages = conversation if calls_functions else with_schema(conversation, schema)
        chat = [ChatMessage(role=_ROLES[message["role"]], content=message["content"]) for message in messages]
        model = self._structured_model(schema) if calls_functions else self._llm
        try:
            reply = await model.achat(chat)
        except ValueError as error:
            # What its own parsers raise when a model's words are not the object that was asked for.
            return f"{error}", None
        return (reply.raw if isinstance(reply.raw, BaseModel) else reply.message.content or ""), _usage(reply)

    def _structured_model(self, schema: type[BaseModel]) -> Any:
        if schema not in self._structured:
            self._structured[schema] = self._llm.as_structured_llm(schema)
        return self._structured[schema]


def _usage(reply: Any) -> Usage:
    by_name = reply.additional_kwargs or {}
    raw = getattr(reply.raw, "usage", None)
    if raw is None and isinstance(reply.raw, dict):
        raw = reply.raw.get("usage")

    def count(name: str) -> int:
        value = by_name.get(name)
        if value is None and raw is not None:
            value = raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)
        return int(value or 0)

    return Usage(count("prompt_tokens"), count("completion_tokens"))
