"""Context precision, recall, entity recall and relevance as Ragas metrics, from one shared set of claim checks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

from ragas.metrics.base import MetricType, SingleTurnMetric
from ragas.metrics.collections.base import BaseMetric
from ragas.metrics.result import MetricResult

from rag_selectivity import InputError
from rag_selectivity.grading.judge import Judge
from rag_selectivity.grading.runner import Limits
from rag_selectivity.grading.single import SingleQuery
from rag_selectivity.results.claims import MEASURES
from rag_selectivity_ragas.judge import RagasJudge


class _ClaimMetric(BaseMetric, SingleTurnMetric):  # type: ignore[misc]
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
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise InputError(f"k must be a whole number ≥ 1, got {k!r}")
        BaseMetric.__init__(self, name=f"{MEASURES[self._check]}@{k}", allowed_values=(-math.inf, math.inf))
        needed = {"user_input", "retrieved_contexts"}
        needed.add("reference:optional" if self._check == "relevance" else "reference")
        self._required_columns = {MetricType.SINGLE_TURN: needed}
        self.k = k
        self._single = SingleQuery(llm if isinstance(llm, Judge) else RagasJudge(llm), store, limits=limits)

    def init(self, run_config: Any) -> None:
        """Nothing to prepare: the judge came with the constructor."""

    async def ascore(self, **fields: Any) -> MetricResult:
        """Score by the fields `user_input`, `retrieved_contexts` and `reference`."""
        return MetricResult(value=await self._value(fields), reason=None)

    async def _single_turn_ascore(self, sample: Any, callbacks: Any) -> float:
        return await self._value(sample.model_dump())

    async def _value(self, fields: dict[str, Any]) -> float:
        if self._check != "relevance" and not fields.get("reference"):
            return math.nan
        case = {name: fields.get(name) for name in ("user_input", "retrieved_contexts", "reference")}
        return (await self._single.claims(case, self.k)).figure(self._check, self.k)


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
