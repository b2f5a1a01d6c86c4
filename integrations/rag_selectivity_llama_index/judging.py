"""Evaluators for LlamaIndex that ask a judge: the four claim checks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from llama_index.core import Settings
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult

from rag_selectivity import InputError, SelectivityError
from rag_selectivity.grading.single import SingleQuery, claim_measure_name
from rag_selectivity.log import LOG
from rag_selectivity_llama_index.judge import LLMJudge


class _ClaimEvaluator(BaseEvaluator):  # type: ignore[misc,unused-ignore]
    """One of the four checks at a depth. They ask the same questions: together they cost as much as one.

    Parameters
    ----------
    llm : LLM, or any judge of rag_selectivity; default: Settings.llm
    store : str or Path
        The label store: what it holds is not asked again.
    k : int, optional
        Default: all contexts.
    passing_score : float
        From where on a result passes.
    limits
        As in `rag_selectivity.grade`.

    `reference=` goes along with each query: `evaluator.evaluate(query=…, contexts=…, reference=…)`, or a list of
    them with `BatchEvalRunner`. A failure is an invalid result, since a batch of LlamaIndex dies of
    the first exception.
    """

    _check: ClassVar[str]

    def __init__(
        self, llm: Any = None, *, store: str | Path, k: int | None = None, passing_score: float = 0.5, **options: Any
    ) -> None:
        if k is not None:
            claim_measure_name(self._check, k)  # refuses what is no depth
        self._single = SingleQuery(LLMJudge.of(Settings.llm if llm is None else llm), store, **options)
        self._k, self._passing = k, passing_score

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None:
        """The prompts are versioned with what the store keeps."""

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Evaluate the contexts of a query; never raises."""
        given = {"query": query, "response": response, "contexts": contexts}
        try:
            score, feedback = await self._evaluated(query, contexts, kwargs.get("reference"))
        except Exception as error:
            reason = str(error)
            if not isinstance(error, SelectivityError):
                LOG.warning("evaluating %r failed", query, exc_info=True)
                reason = f"{type(error).__name__}: {error}"
            return EvaluationResult(**given, invalid_result=True, invalid_reason=reason, feedback=reason)
        return EvaluationResult(**given, score=score, passing=score >= self._passing, feedback=feedback)

    async def _evaluated(
        self, query: str | None, contexts: Sequence[str] | None, reference: str | None
    ) -> tuple[float, str]:
        """The score, and which context supports which claim."""
        if query is None or contexts is None:
            raise InputError("a query and its contexts are needed")
        if not contexts:
            return 0.0, "nothing was retrieved"
        figure = await self._single.claim_figure(self._check, query, list(contexts), reference, k=self._k)
        if figure.check is None or figure.reason is not None:
            raise InputError(figure.reason or "nothing was checked")
        lines = [f"{figure.name} = {figure.value:.4g}"]
        for claim, supports in zip(figure.check.claims, figure.check.support.tolist(), strict=True):
            where = ", ".join(str(i) for i, supported in enumerate(supports, 1) if supported)
            lines.append(f"{'supported by ' + where if where else 'not supported'}: {claim}")
        return figure.value, "\n".join(lines)


class ContextPrecisionEvaluator(_ClaimEvaluator):
    """Average precision over the top K of the contexts that help to arrive at the reference; 0 without one."""

    _check = "precision"


class ContextRecallEvaluator(_ClaimEvaluator):
    """Claims of the reference that some context of the top K supports by itself / all of them."""

    _check = "recall"


class ContextEntityRecallEvaluator(_ClaimEvaluator):
    """Entities of the reference that the top K mention / all of them."""

    _check = "entities"


class ContextRelevanceEvaluator(_ClaimEvaluator):
    """Statements of the top K that bear on the question / all statements. Needs no reference."""

    _check = "relevance"
