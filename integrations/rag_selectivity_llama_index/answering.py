"""A LlamaIndex response synthesizer as the model that answers from chosen sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.schema import NodeWithScore, TextNode

from rag_selectivity.answers.pipeline import PassagePrompt, PipelineModel
from rag_selectivity.grading.judge import GradingError


class SynthesizerModel(PipelineModel):
    """A response synthesizer (`get_response_synthesizer`, or one of your own) for `measure_answers`.

    It answers each question from exactly the passages of a set, as nodes in their order. Synthesizers give a fixed
    answer without nodes and ask no LLM, so that there is no control `closed-book`.

    Parameters
    ----------
    synthesizer : BaseSynthesizer
    name : str
        Answers are kept under it: change it when the prompt, the mode or the LLM changes.
    parameters : {name: value}, optional
        All else that can change an answer.

    Raises
    ------
    GradingError
        If it is no response synthesizer.
    """

    answers_without_passages = False

    def __init__(self, synthesizer: Any, name: str, parameters: Mapping[str, Any] | None = None) -> None:
        if not hasattr(synthesizer, "asynthesize"):
            raise GradingError(f"a response synthesizer of LlamaIndex is needed, got {type(synthesizer).__name__}")
        super().__init__(name, parameters or {})
        self._synthesizer = synthesizer

    async def answer(self, shown: PassagePrompt) -> str:
        """Synthesize an answer from the passages as nodes."""
        nodes = [
            NodeWithScore(node=TextNode(id_=id_, text=text), score=1 / rank)
            for rank, (id_, text) in enumerate(shown.passages, 1)
        ]
        return str(await self._synthesizer.asynthesize(shown.question, nodes=nodes))
