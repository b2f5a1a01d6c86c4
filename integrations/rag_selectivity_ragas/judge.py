"""A Ragas LLM as a judge."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.prompt_values import StringPromptValue
from pydantic import BaseModel
from ragas.llms.base import BaseRagasLLM, InstructorBaseRagasLLM

from rag_selectivity.grading.judge import (
    Answer,
    GradingError,
    JudgeFailure,
    Message,
    ask_until_valid,
    failure_of,
    with_schema,
)
from rag_selectivity.results.usage import Usage


class RagasJudge:
    """A Ragas LLM: what `llm_factory` makes (an `InstructorBaseRagasLLM`), or a legacy `BaseRagasLLM`.

    A client that blocks is asked from a thread of its own, so that it does not hold up the event loop.

    Parameters
    ----------
    llm : InstructorBaseRagasLLM or BaseRagasLLM
    name : str, optional
        Default: the model's name.
    """

    def __init__(self, llm: Any, *, name: str | None = None) -> None:
        if not isinstance(llm, (InstructorBaseRagasLLM, BaseRagasLLM)):
            raise GradingError(f"a Ragas LLM is needed, as ragas.llms.llm_factory makes it; got {type(llm).__name__}")
        self._llm = llm
        inner = getattr(llm, "langchain_llm", None) or getattr(llm, "llm", None)
        self.name = name or str(
            _first(llm, "model", "model_name") or _first(inner, "model_name", "model") or type(llm).__name__
        )
        arguments = getattr(llm, "model_args", None)
        known = arguments if isinstance(arguments, dict) else {}
        self.parameters: Mapping[str, Any] = {
            key: known[key] for key in ("temperature", "top_p", "max_tokens") if known.get(key) is not None
        }

    async def ask(self, messages: Sequence[Message], schema: type[BaseModel]) -> Answer:
        """Answer the messages with an instance of the schema, or raise a JudgeFailure."""

        async def complete(conversation: Sequence[Message]) -> tuple[Any, Usage]:
            try:
                return await self._complete(conversation, schema), Usage()
            except JudgeFailure:
                raise
            except Exception as error:
                raise failure_of(error) from None

        return await ask_until_valid(complete, messages, schema)

    async def _complete(self, conversation: Sequence[Message], schema: type[BaseModel]) -> Any:
        if isinstance(self._llm, InstructorBaseRagasLLM):
            prompt = _as_text(conversation)
            if getattr(self._llm, "is_async", True):
                return await self._llm.agenerate(prompt, schema)
            return await asyncio.to_thread(self._llm.generate, prompt, schema)
        prompt_value = StringPromptValue(text=_as_text(with_schema(conversation, schema)))
        result = await self._llm.agenerate_text(prompt_value)
        return result.generations[0][0].text


def _as_text(conversation: Sequence[Message]) -> str:
    """One prompt of several messages: Ragas' LLMs take a single text."""
    return "\n\n".join(message["content"] for message in conversation)


def _first(value: Any, *names: str) -> Any:
    return next((found for name in names if isinstance(found := getattr(value, name, None), str)), None)
