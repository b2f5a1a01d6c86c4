"""A LangChain chain as the model that answers from chosen sets, and its scores for the runs that LangSmith holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from langchain_core.documents import Document

from rag_selectivity.answers.given import AnswerReport
from rag_selectivity.answers.pipeline import PassagePrompt, PipelineModel
from rag_selectivity.grading.judge import GradingError
from rag_selectivity_langchain.documents import text_of


class ChainModel(PipelineModel):
    """A chain (any Runnable) that is given documents and a question, for `measure_answers`.

    Each call has the run id `run_id_of(prompt)`, so that traces and answers can be joined.

    Parameters
    ----------
    chain : Runnable
        Its input is {question: str, documents: list of Document}, its output a text or a message.
    name : str
        Answers are kept under it: change it when the prompt or the model of the chain changes.
    parameters : {name: value}, optional
        All else that can change an answer.
    question, documents : str
        The keys of its input.

    Raises
    ------
    GradingError
        If it is no Runnable.
    """

    def __init__(
        self,
        chain: Any,
        name: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        question: str = "input",
        documents: str = "context",
    ) -> None:
        if not hasattr(chain, "ainvoke"):
            raise GradingError(f"a Runnable of LangChain is needed, got {type(chain).__name__}")
        super().__init__(name, parameters or {})
        self._chain, self._keys = chain, (question, documents)

    async def answer(self, shown: PassagePrompt) -> str:
        """Invoke the chain with the passages as documents."""
        question, documents = self._keys
        given = [Document(id=id_, page_content=text, metadata={"id": id_}) for id_, text in shown.passages]
        config = {"run_id": run_id_of(shown.prompt), "metadata": {"passages": [id_ for id_, _ in shown.passages]}}
        said = await self._chain.ainvoke({question: shown.question, documents: given}, config=config)
        return said if isinstance(said, str) else text_of(said)


def run_id_of(prompt: str) -> UUID:
    """The run id of the call that answered a prompt (`AnswerRow.prompt`)."""
    return uuid5(NAMESPACE_OID, f"rag-selectivity answer {prompt}")


def feedback_of(report: AnswerReport) -> list[dict[str, Any]]:
    """The scores as arguments of `langsmith.Client.create_feedback`: `run_id`, `key` and `score`.

    A prompt that two sets share was sent once, and has its scores once.
    """
    found = {
        (run_id_of(row.prompt), name): value
        for row in report.answers
        for name, value in row.scores.items()
        if not math.isnan(value)
    }
    return [{"run_id": run_id, "key": name, "score": value} for (run_id, name), value in found.items()]
