"""A LlamaIndex LLM as a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM
from pydantic import BaseModel

from rag_selectivity.grading.judge import Answer, Message, ask_until_valid, failure_of, with_schema
from rag_selectivity.results.usage import Usage

_ROLES = {"system": MessageRole.SYSTEM, "user": MessageRole.USER, "assistant": MessageRole.ASSISTANT}


class LLMJudge:
    """Any LlamaIndex `LLM`, by function calling where the model has it, else asked for JSON in words.

    Parameters
    ----------
    llm : LLM
    name : str, optional
        Default: the model's name from its metadata.
    """

    def __init__(self, llm: LLM, *, name: str | None = None) -> None:
        self.name = name or llm.metadata.model_name
        known = {key: getattr(llm, key, None) for key in ("temperature", "max_tokens")}
        self.parameters: Mapping[str, Any] = {key: value for key, value in known.items() if value is not None}
        self._llm = llm
        self._structured: dict[type[BaseModel], Any] = {}

    async def ask(self, messages: Sequence[Message], schema: type[BaseModel]) -> Answer:
        """Answer the messages with an instance of the schema, or raise a JudgeFailure."""
        by_function = self._llm.metadata.is_function_calling_model

        async def complete(conversation: Sequence[Message]) -> tuple[Any, Usage]:
            said = list(conversation) if by_function else with_schema(conversation, schema)
            chat = [ChatMessage(role=_ROLES[message["role"]], content=message["content"]) for message in said]
            try:
                if by_function:
                    if schema not in self._structured:
                        self._structured[schema] = self._llm.as_structured_llm(schema)
                    reply = await self._structured[schema].achat(chat)
                else:
                    reply = await self._llm.achat(chat)
            except ValueError as error:
                # What its own parsers raise when a model's words are not the object that was asked for.
                return f"{error}", Usage()
            except Exception as error:
                raise failure_of(error) from None
            return (reply.raw if isinstance(reply.raw, BaseModel) else reply.message.content or ""), _usage(reply)

        return await ask_until_valid(complete, messages, schema)


def _usage(reply: Any) -> Usage:
    spent = reply.additional_kwargs or {}
    raw = getattr(reply.raw, "usage", None)
    if raw is None and isinstance(reply.raw, dict):
        raw = reply.raw.get("usage")

    def count(name: str) -> int:
        value = spent.get(name)
        if value is None and raw is not None:
            value = raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)
        return int(value or 0)

    return Usage(count("prompt_tokens"), count("completion_tokens"))
