"""A LangChain chat model as a judge."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from rag_selectivity.errors import GradingError
from rag_selectivity.grading.judge import Message, ModelJudge, Usage, first_text, known_settings, with_schema
from rag_selectivity_langchain.documents import text_of

_MESSAGES: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}


class ChatModelJudge(ModelJudge):
    """Any `BaseChatModel`, with its own structured output where it has one, else asked for JSON in words.

    Parameters
    ----------
    model : BaseChatModel
    name : str, optional
        Default: the model's name, from its attribute `model`, `model_name` or `model_id`; else its class.

    Raises
    ------
    GradingError
        If it is no chat model, such as the name of one.
    """

    def __init__(self, model: BaseChatModel, *, name: str | None = None) -> None:
        class_name = type(model).__name__
        if not hasattr(model, "ainvoke"):
            raise GradingError(f"a chat model of LangChain is needed, got {class_name}")
        super().__init__(
            name or first_text(model, "model", "model_name", "model_id") or class_name,
            # ChatOpenAI is of the provider openai.
            {
                "provider": class_name.removeprefix("Chat").removesuffix("Chat").lower(),
                **known_settings(model, ("temperature", "max_tokens")),
            },
        )
        self._model: Any = model

    async def complete(self, conversation: Sequence[Message], schema: type[BaseModel]) -> tuple[Any, Usage | None]:
        """Ask once."""
        chain, messages = self._model, list(with_schema(conversation, schema))
        # A model without structured output is asked in words, and its answer is parsed and checked.
        with suppress(NotImplementedError, ValueError, AttributeError):
            chain, messages = self._model.with_structured_output(schema, include_raw=True), list(conversation)
        reply = await chain.ainvoke([_MESSAGES[message["role"]](message["content"]) for message in messages])
        if not isinstance(reply, dict):
            return text_of(reply), _usage(reply)
        raw, parsed = reply["raw"], reply["parsed"]
        return (parsed if parsed is not None else text_of(raw)), _usage(raw)


def _usage(message: Any) -> Usage:
    tokens = getattr(message, "usage_metadata", None) or {}
    return Usage(int(tokens.get("input_tokens", 0)), int(tokens.get("output_tokens", 0)))
