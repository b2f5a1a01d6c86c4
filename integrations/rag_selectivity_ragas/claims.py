"""Context precision, recall, entity recall and relevance as Ragas metrics, from one shared set of claim checks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from rag_selectivity import Limits
from rag_selectivity.grading.single import SingleQuery, claim_measure_name
from rag_selectivity_ragas.hybrid import HybridMetric
from rag_selectivity_ragas.judge import judge_from


class _ClaimMetric(HybridMetric):
    """One of the four checks at a depth. All four ask the same questions, so that together they cost as much as one.

    Parameters
    ----------
    llm : Ragas LLM, or any judge of rag_selectivity
    store : str or Path
        Where answers are kept: nothing is asked twice.
    k : int
    limits : Limits
    """

    _check: ClassVar[str]

    def __init__(self, llm: Any, store: str | Path, *, k: int = 10, limits: Limits = Limits()) -> None:
        reference = {"reference"}
        needs_reference = self._check != "relevance"
        super().__init__(
            claim_measure_name(self._check, k),
            required={"user_input", "retrieved_contexts"} | (reference if needs_reference else set()),
            optional=reference,
        )
        self.k = k
        self._single = SingleQuery(judge_from(llm), store, limits=limits)

    async def measure_sample(self, fields: Mapping[str, Any]) -> tuple[float, str | None]:
        """The figure of one sample, and why it is NaN."""
        sample: dict[str, Any] = {name: fields.get(name) for name in ("user_input", "retrieved_contexts", "reference")}
        figure = await self._single.claim_figure(
            self._check, sample["user_input"], sample["retrieved_contexts"], sample["reference"], k=self.k
        )
        return figure.value, figure.reason


class ContextPrecision(_ClaimMetric):
    """Average precision over the top K of the passages that help to arrive at the reference; 0 without one."""

    _check = "precision"


class ContextRecall(_ClaimMetric):
    """Claims of the reference that some passage of the top K supports by itself / all of them."""

    _check = "recall"


class ContextEntityRecall(_ClaimMetric):
    """Entities of the reference that the top K mention, case, accents and aliases aside / all of them."""

    _check = "entities"


class ContextRelevance(_ClaimMetric):
    """Statements of the top K that bear on the question / all statements. Needs no reference."""

    _check = "relevance"
