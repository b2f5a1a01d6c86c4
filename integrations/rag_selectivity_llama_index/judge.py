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
        self._llm: Any = llm

    async def complete(self, conversation: Sequence[Message], schema: type[BaseModel]) -> tuple[Any, Usage | None]:
        """Ask once."""
        calls_functions = self._llm.metadata.is_function_calling_model
        messages = conversation if calls_functions else with_schema(conversation, schema)
        chat = [ChatMessage(role=_ROLES[message["role"]], content=message["content"]) for message in messages]
        model = self._llm.as_structured_llm(schema) if calls_functions else self._llm
        try:
            reply = await model.achat(chat)
        except ValueError as error:
            # What its own parsers raise when a model's words are not the object that was asked for.
            return f"{error}", None
        return (reply.raw if isinstance(reply.raw, BaseModel) else reply.message.content or ""), _usage(reply)


def _usage(reply: Any) -> Usage:
    raw = getattr(reply.raw, "usage", None) or (reply.raw.get("usage") if isinstance(reply.raw, dict) else None)
    counts = [_count(name, reply.additional_kwargs, raw) for name in ("prompt_tokens", "completion_tokens")]
    return Usage(*counts)


def _count(name: str, *places: Any) -> int:
    """A number of tokens, where the first of some places has it."""
    found = (each.get(name) if isinstance(each, dict) else getattr(each, name, None) for each in places)
    return int(next((each for each in found if each is not None), 0))
