"""A Ragas LLM as a judge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.prompt_values import StringPromptValue
from pydantic import BaseModel
from ragas.llms.base import BaseRagasLLM, InstructorBaseRagasLLM

from rag_selectivity.errors import GradingError
from rag_selectivity.grading.judge import Judge, Message, ModelJudge, Usage, first_text, known_settings, with_schema


class RagasJudge(ModelJudge):
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
        wrapped = getattr(llm, "langchain_llm", None) or getattr(llm, "llm", None)
        own_name = first_text(llm, "model", "model_name") or first_text(wrapped, "model_name", "model")
        arguments = getattr(llm, "model_args", None)
        super().__init__(
            name or own_name or type(llm).__name__,
            known_settings(arguments if isinstance(arguments, dict) else {}, ("temperature", "top_p", "max_tokens")),
        )
        self._llm = llm

    async def complete(self, conversation: Sequence[Message], schema: type[BaseModel]) -> tuple[Any, Usage | None]:
        """Ask once; Ragas does not say how many tokens it took."""
        if isinstance(self._llm, BaseRagasLLM):
            prompt_value = StringPromptValue(text=_as_text(with_schema(conversation, schema)))
            result = await self._llm.agenerate_text(prompt_value)
            return result.generations[0][0].text, None
        prompt = _as_text(conversation)
        if getattr(self._llm, "is_async", True):
            return await self._llm.agenerate(prompt, schema), None
        return await asyncio.to_thread(self._llm.generate, prompt, schema), None


def judge_from(llm: Any) -> Judge:
    """A judge as it is, or a Ragas LLM as a judge."""
    return llm if isinstance(llm, Judge) else RagasJudge(llm)


def _as_text(conversation: Sequence[Message]) -> str:
    """One prompt of several messages: Ragas' LLMs take a single text."""
    return "\n\n".join(message["content"] for message in conversation)
