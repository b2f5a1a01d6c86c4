"""A pipeline of one's own as the model that answers: it is given the question and the passages, not a prompt."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_selectivity.answers.prompt import PassagePrompt
from rag_selectivity.grading.judge import JudgeFailure, Message, ModelJudge, Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["PassagePrompt", "PipelineModel"]


class PipelineModel(ModelJudge):
    """What answers a question from passages with a prompt of its own, such as a chain or a response synthesizer.

    It gives free answers alone: `measure_answers` is to be called with `cite=False, abstain=False`.

    Parameters
    ----------
    name : str
        Answers are kept under it: change it when the pipeline, its prompt or its model changes.
    parameters : {name: value}
        All else that can change an answer.

    Attributes
    ----------
    answers_without_passages : bool
        Whether it can be asked without passages; if not, there is no control `closed-book`.
    """

    answers_without_passages = True

    @abstractmethod
    async def answer(self, shown: PassagePrompt) -> str:
        """The answer to `shown.question` from `shown.passages`, the (id, text) pairs in their order."""

    async def complete(self, conversation: Sequence[Message], schema: type[BaseModel]) -> tuple[Any, Usage | None]:
        """Have the pipeline answer once."""
        if not isinstance(conversation, PassagePrompt):
            raise JudgeFailure(f"{self.name} answers questions from passages, and cannot judge", "fatal")
        if list(schema.model_fields) != ["answer"]:
            raise JudgeFailure(
                f"{self.name} answers in words of its own: ask it free questions, with cite=False and abstain=False",
                "fatal",
            )
        if not conversation.passages and not self.answers_without_passages:
            return {"answer": ""}, None
        return {"answer": await self.answer(conversation)}, None
