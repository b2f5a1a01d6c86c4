"""What asks an LLM: a judge, grades for what retrievers return, evaluators, a synthesizer that answers from sets."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from llama_index.core import Settings
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import BaseModel, Field

from rag_selectivity import InputError, Measure, Qrels, SelectivityError, parse_measure
from rag_selectivity.answers.pipeline import PassagePrompt, PipelineModel
from rag_selectivity.grading.judge import GradingError, Message, ModelJudge, Usage, known_settings, with_schema
from rag_selectivity.grading.single import SingleQuery, blocking, claim_measure_name, label_lists
from rag_selectivity.hosted import check_retrieved, check_retriever, queries_of, to_grade
from rag_selectivity.log import LOG
from rag_selectivity.single import figures_of_query, per_query_measure
from rag_selectivity_llama_index.nodes import Pipeline

_ROLES = {"system": MessageRole.SYSTEM, "user": MessageRole.USER, "assistant": MessageRole.ASSISTANT}


class LLMJudge(ModelJudge):
    """Any LlamaIndex `LLM`, by function calling where the model has it, else asked for JSON in words.

    Parameters
    ----------
    llm : LLM
    name : str, optional
        Default: the model's name from its metadata.

    Raises
    ------
    GradingError
        If it is no LLM, such as the name of one.
    """

    def __init__(self, llm: LLM, *, name: str | None = None) -> None:
        if not hasattr(llm, "achat"):
            raise GradingError(f"an LLM of LlamaIndex is needed, got {type(llm).__name__}")
        super().__init__(name or llm.metadata.model_name, known_settings(llm, ("temperature", "max_tokens")))
        self._llm: Any = llm

    async def complete(self, conversation: Sequence[Message], schema: type[BaseModel]) -> tuple[Any, Usage | None]:
        """Ask once."""
        calls_functions = self._llm.metadata.is_function_calling_model
        messages = conversation if calls_functions else with_schema(conversation, schema)
        chat = [ChatMessage(role=_ROLES[message["role"]], content=message["content"]) for message in messages]
        model = self._llm.as_structured_llm(schema) if calls_functions else self._llm
        try:
            reply = await model.achat(chat)
        except ValueError as error:
            # What its own parsers raise when a model's words are not the object that was asked for.
            return f"{error}", None
        return (reply.raw if isinstance(reply.raw, BaseModel) else reply.message.content or ""), _usage(reply)


def _usage(reply: Any) -> Usage:
    raw = getattr(reply.raw, "usage", None) or (reply.raw.get("usage") if isinstance(reply.raw, dict) else None)
    return Usage(*(_count(name, reply.additional_kwargs, raw) for name in ("prompt_tokens", "completion_tokens")))


def _count(name: str, *places: Any) -> int:
    """A number of tokens, where the first of some places has it."""
    found = (each.get(name) if isinstance(each, dict) else getattr(each, name, None) for each in places)
    return int(next((each for each in found if each is not None), 0))


async def agrade_retriever(
    retriever: Any,
    queries: Any,
    llm: Any = None,
    store: str | Path = "",
    *,
    identity: str = "node_id",
    workers: int = 8,
    **options: Any,
) -> Qrels:
    """Have an LLM grade every node that a retriever returns from 1 to 5; the labels for `SelectivityEvaluator`.

    Parameters
    ----------
    retriever : BaseRetriever, or list of them
        Of several, all that they return is graded; what more than one returns is graded once.
    queries : {query id: text}, texts, or anything with `.queries`
    llm : LLM, or any judge of rag_selectivity; default: Settings.llm
    store : str or Path
        The label store: what it holds is not asked again, also if nodes got new ids.
    identity : str
        By which id the labels name a node: `node_id` (default), `text` (a hash, which lasts if the index is made anew),
        or a key of the metadata that each node has for itself.
    workers : int
        Retrievals at the same time. Default: 8.
    options
        `corpus` and `controls` (passages of the corpus to draw at random for each query), `tail`, `pool_depth`, and
        all others, as in `rag_selectivity.grading.single.label_lists`.

    Returns
    -------
    Qrels
        All that this judge has graded of these queries, in earlier calls too, with the origin of each label. Pairs
        that failed for good are left out, with a warning.

    Raises
    ------
    InputError
        If all retrievals fail, controls are asked for without a corpus, the corpus has none of the nodes, or an id
        stands for nodes with different texts.
    """
    if not store:
        raise InputError('a label store is needed, the file that keeps the grades: store="labels.db"')
    asked = queries_of(queries)
    found = []
    for each in retriever if isinstance(retriever, (list, tuple)) else [retriever]:
        check_retriever("retriever", each, "retrieve", "index.as_retriever()")
        found.append(await Pipeline(each).retrieve_all(asked, workers))
        check_retrieved("retriever", found[-1])
    judge = Settings.llm if llm is None else llm
    return await label_lists(asked, **to_grade(found, identity), store=store, judge=judge, **options)


grade_retriever = blocking(agrade_retriever)


class UtilityResult(EvaluationResult):  # type: ignore[misc,unused-ignore]
    """An EvaluationResult with the grades of the contexts, in their order, and their harm."""

    grades: list[int | None] = Field(default_factory=list, description="Grade of each context, 1 to 5")
    harm: float | None = Field(default=None, description="Share of the contexts with a grade of 1 or 2")


class _JudgingEvaluator(BaseEvaluator):  # type: ignore[misc,unused-ignore]
    """A failure is an invalid result, since a batch of LlamaIndex dies of the first exception."""

    _result: ClassVar[type[EvaluationResult]] = EvaluationResult

    def __init__(self, llm: Any = None, *, store: str | Path, passing_score: float = 0.5, **options: Any) -> None:
        self._single = SingleQuery(Settings.llm if llm is None else llm, store, **options)
        self._passing = passing_score

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None:
        """The prompts are versioned with what the store keeps; a rubric of one's own changes the words."""

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
            if query is None or contexts is None:
                raise InputError("a query and its contexts are needed")
            found: dict[str, Any] = {"score": 0.0, "feedback": "nothing was retrieved"}
            if contexts:
                found = await self._evaluated(query, list(contexts), kwargs.get("reference"))
        except Exception as error:
            reason = str(error)
            if not isinstance(error, SelectivityError):
                LOG.warning("evaluating %r failed", query, exc_info=True)
                reason = f"{type(error).__name__}: {error}"
            return self._result(**given, invalid_result=True, invalid_reason=reason, feedback=reason)
        return self._result(**given, **found, passing=found["score"] >= self._passing)

    @abstractmethod
    async def _evaluated(self, query: str, contexts: list[str], reference: str | None) -> dict[str, Any]:
        """Fields of the result, the score among them."""


class UtilityEvaluator(_JudgingEvaluator):
    """Has a judge grade the contexts of a query from 1 to 5, and scores the set.

    Parameters
    ----------
    llm : LLM, or any judge of rag_selectivity; default: Settings.llm
    store : str or Path
        The label store: what it holds is not asked again. Its queries go by their texts, passages by a hash of
        theirs (`identity="text"`).
    measure : str, optional
        What the score is: by default `Precision4+`, the share of the contexts that are useful or decisive;
        with a pool `RA-nWG`, the share of the best evidence in the pool that they hold. `@K` takes the first K.
    pool : {query: [text, …]}, optional
        Candidates to grade beside the contexts.
    passing_score : float
        From where on a result passes.
    rubric, limits
        As in `rag_selectivity.grade`.

    The result is an `EvaluationResult` with the score, `grades`, `harm` and the judge's reasons as feedback. What
    could not be graded makes it invalid.
    """

    _result = UtilityResult

    def __init__(
        self,
        llm: Any = None,
        *,
        store: str | Path,
        measure: str | Measure | None = None,
        pool: Mapping[str, Sequence[str]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(llm, store=store, **options)
        self._measure = per_query_measure(measure or ("Precision4+" if pool is None else "RA-nWG"), needs_depth=False)
        self._pool = dict(pool or {})

    async def _evaluated(self, query: str, contexts: list[str], reference: str | None) -> dict[str, Any]:
        candidates = list(self._pool.get(query, ()))
        graded = await self._single.grades(query, [*contexts, *candidates])
        if missing := [each for each in graded if each.grade is None]:
            raise InputError(f"{len(missing)} of {len(graded)} passages could not be graded ({missing[0].error})")
        of_contexts = graded[: len(contexts)]
        depth = self._measure.at or len(contexts)
        score, harm = figures_of_query(
            [self._measure @ depth, parse_measure("Harm") @ depth],
            {each.id: each.grade for each in graded if each.grade is not None},
            [each.id for each in of_contexts],
            pool=[each.id for each in graded] if candidates else None,
            scale="utility",
            # Every passage has a grade: where none is junk, there is none.
            unjudged="worst",
        )
        if score.reason is not None:
            raise InputError(score.reason)
        lines = [f"{score.measure} = {score.value:.4g}, {harm.measure} = {harm.value:.4g}"]
        lines += [f"{i}. grade {each.grade}: {each.reason}" for i, each in enumerate(of_contexts, 1)]
        grades = [each.grade for each in of_contexts]
        return {"score": score.value, "grades": grades, "harm": harm.value, "feedback": "\n".join(lines)}


class _ClaimEvaluator(_JudgingEvaluator):
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
    them with `BatchEvalRunner`.
    """

    _check: ClassVar[str]

    def __init__(self, llm: Any = None, *, store: str | Path, k: int | None = None, **options: Any) -> None:
        if k is not None:
            claim_measure_name(self._check, k)  # refuses what is no depth
        super().__init__(llm, store=store, **options)
        self._k = k

    async def _evaluated(self, query: str, contexts: list[str], reference: str | None) -> dict[str, Any]:
        figure = await self._single.claim_figure(self._check, query, contexts, reference, k=self._k)
        if figure.check is None or figure.reason is not None:
            raise InputError(figure.reason or "nothing was checked")
        lines = [f"{figure.name} = {figure.value:.4g}"]
        for claim, supports in zip(figure.check.claims, figure.check.support.tolist(), strict=True):
            where = ", ".join(str(i) for i, supported in enumerate(supports, 1) if supported)
            lines.append(f"{'supported by ' + where if where else 'not supported'}: {claim}")
        return {"score": figure.value, "feedback": "\n".join(lines)}


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
        ranked = [TextNode(id_=id_, text=text) for id_, text in shown.passages]
        nodes = [NodeWithScore(node=node, score=1 / rank) for rank, node in enumerate(ranked, 1)]
        return str(await self._synthesizer.asynthesize(shown.question, nodes=nodes))
