"""What asks a Ragas LLM: a judge, grades for a dataset without labels, and metrics of checked claims."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from langchain_core.prompt_values import StringPromptValue
from pydantic import BaseModel
from ragas.llms.base import BaseRagasLLM, InstructorBaseRagasLLM

from rag_selectivity import InputError, Limits, Qrels
from rag_selectivity.grading.judge import (
    GradingError,
    Message,
    ModelJudge,
    Usage,
    first_text,
    known_settings,
    with_schema,
)
from rag_selectivity.grading.single import SingleQuery, blocking, claim_measure_name, label_lists
from rag_selectivity.hosted import Retrieved, check_retrieved
from rag_selectivity_ragas.metrics import HybridMetric
from rag_selectivity_ragas.rows import ID, TEXT, rows_of


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
            prompt = StringPromptValue(text=_as_text(with_schema(conversation, schema)))
            return (await self._llm.agenerate_text(prompt)).generations[0][0].text, None
        text = _as_text(conversation)
        if getattr(self._llm, "is_async", True):
            return await self._llm.agenerate(text, schema), None
        return await asyncio.to_thread(self._llm.generate, text, schema), None


def _as_text(conversation: Sequence[Message]) -> str:
    """One prompt of several messages: Ragas' LLMs take a single text."""
    return "\n\n".join(message["content"] for message in conversation)


async def agrade_dataset(
    dataset: Any,
    llm: Any,
    store: str | Path,
    *,
    pool: Mapping[str, Mapping[str, str] | Sequence[str]] | None = None,
    id_column: str | None = None,
    corpus: Any = None,
    identity: str | None = None,
    **options: Any,
) -> Qrels:
    """Have a Ragas LLM grade every retrieved context from 1 to 5; the labels for `selectivity` and the metrics.

    Parameters
    ----------
    dataset
        As in `selectivity`; `retrieved_contexts` are needed, the texts to grade.
    llm : Ragas LLM, or any judge of rag_selectivity
    store : str or Path
        The label store: what it holds is not asked again.
    pool : {query: {passage: text}} or {query: [passage, …]}, optional
        Candidates that stand below the retrieved contexts, in rank order; ids alone have their texts in `corpus`.
    corpus : {id: text}, path (also of a BEIR folder), or an index, store or retriever, optional
        All passages that could have been retrieved, for controls and for the texts of `pool`.
    identity : str, optional
        By which id of an index the contexts go. Default: the id that is that of most contexts. If samples have no
        `retrieved_context_ids`, all contexts go by the hash of their texts, so that each passage has one id.
    options
        `controls` (passages of the corpus to draw at random for each question), `tail`, `pool_depth`, and all others,
        as in `rag_selectivity.grading.single.label_lists`.

    Returns
    -------
    Qrels
        All that this judge has graded of these questions, in earlier calls too, with the origin of each label. Pairs
        that failed for good are left out, with a warning.

    Raises
    ------
    InputError
        If a context has no text, controls are asked for without a corpus, or the corpus has none of the contexts.
    """
    questions: dict[str, str] = {}
    texts: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    rows = rows_of(dataset, id_column=id_column)
    by_text = any(row.ids is None for row in rows.values())
    for row in rows.values():
        if row.texts is None:
            raise InputError(f"sample {row.number} ({row.user_input!r}) has no retrieved_contexts, the texts to grade")
        questions[row.query] = row.user_input
        below = (pool or {}).get(row.query, {})
        if by_text and row.ids is not None and not isinstance(below, Mapping):
            why = "other samples have no retrieved_context_ids, so that all passages go by texts"
            raise InputError(f"sample {row.number}: {why}: give pool as {{query: {{passage: text}}}}")
        if by_text and isinstance(below, Mapping):
            row, below = replace(row, ids=None), list(below.values())
        names = [ids[ID] for ids in row.passages(())]
        candidates: dict[str, str | None] = dict(zip(names, row.texts or (), strict=True))
        for passage, name in zip(below, row.pooled(below, ()), strict=True):
            # In place of an id, a row without ids has a text.
            text = below[passage] if isinstance(below, Mapping) else passage if name != passage else None
            candidates.setdefault(name, text)
        for passage, text in candidates.items():
            # A hash of a text says which it is; texts of an id may differ in white space.
            if text is not None and texts.setdefault(passage, text).split() != text.split() and not by_text:
                blank = ", one of them without a word" * (not text.strip() or not texts[passage].strip())
                raise InputError(f"sample {row.number}: the id {passage!r} stands for two different texts{blank}")
        lists.setdefault(row.query, []).extend(candidates)
    check_retrieved("dataset", {key: Retrieved(texts=row.texts or ()) for key, row in rows.items()})
    known = {"corpus": corpus, "identity": TEXT if by_text else identity}
    return await label_lists(questions, texts, lists, store=store, judge=llm, **known, **options)


grade_dataset = blocking(agrade_dataset)


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
        required = ["user_input", "retrieved_contexts", *["reference"] * (self._check != "relevance")]
        super().__init__(claim_measure_name(self._check, k), required=required, optional=["reference"])
        self.k = k
        self._single = SingleQuery(llm, store, limits=limits)

    async def measure_sample(self, fields: Mapping[str, Any]) -> tuple[float, str | None]:
        """The figure of one sample, and why it is NaN."""
        sample: list[Any] = [fields.get(name) for name in ("user_input", "retrieved_contexts", "reference")]
        figure = await self._single.claim_figure(self._check, *sample, k=self.k)
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
