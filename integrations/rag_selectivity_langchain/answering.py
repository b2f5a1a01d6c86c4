"""A LangChain chain as the model that answers from chosen sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document

from rag_selectivity.answers.pipeline import PassagePrompt, PipelineModel
from rag_selectivity.grading.judge import GradingError
from rag_selectivity_langchain.documents import text_of


class ChainModel(PipelineModel):
    """A chain (any Runnable) that is given documents and a question, for `measure_answers`.

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
        config = {"metadata": {"passages": [id_ for id_, _ in shown.passages]}}
        said = await self._chain.ainvoke({question: shown.question, documents: given}, config=config)
        return said if isinstance(said, str) else text_of(said)
