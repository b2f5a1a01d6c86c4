"""What asks a chat model: a judge, grades for what retrievers return, and a chain that answers from chosen sets."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from rag_selectivity import Qrels
from rag_selectivity.answers.given import AnswerReport
from rag_selectivity.answers.pipeline import PassagePrompt, PipelineModel
from rag_selectivity.errors import GradingError
from rag_selectivity.grading.judge import Message, ModelJudge, Usage, first_text, known_settings, with_schema
from rag_selectivity.grading.single import blocking, label_lists
from rag_selectivity.hosted import check_retrieved, queries_of, to_grade
from rag_selectivity_langchain.batch import retrieved, retrievers_of
from rag_selectivity_langchain.documents import text_of

_MESSAGES: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}


class ChatModelJudge(ModelJudge):
    """Any `BaseChatModel`, with its own structured output where it has one, else asked for JSON in words.

    Parameters
    ----------
    model : BaseChatModel
    name : str, optional
        Default: the model's name, from its attribute `model`, `model_name` or `model_id`; else its class.

    Raises
    ------
    GradingError
        If it is no chat model, such as the name of one.
    """

    def __init__(self, model: BaseChatModel, *, name: str | None = None) -> None:
        class_name = type(model).__name__
        if not hasattr(model, "ainvoke"):
            raise GradingError(f"a chat model of LangChain is needed, got {class_name}")
        # ChatOpenAI is of the provider openai.
        settings = {"provider": class_name.removeprefix("Chat").removesuffix("Chat").lower()}
        settings |= known_settings(model, ("temperature", "max_tokens"))
        super().__init__(name or first_text(model, "model", "model_name", "model_id") or class_name, settings)
        self._model: Any = model

    async def complete(self, conversation: Sequence[Message], schema: type[BaseModel]) -> tuple[Any, Usage | None]:
        """Ask once."""
        chain, messages = self._model, list(with_schema(conversation, schema))
        # A model without structured output is asked in words, and its answer is parsed and checked.
        with suppress(NotImplementedError, ValueError, AttributeError):
            chain, messages = self._model.with_structured_output(schema, include_raw=True), list(conversation)
        reply = await chain.ainvoke([_MESSAGES[message["role"]](message["content"]) for message in messages])
        if not isinstance(reply, dict):
            return text_of(reply), _usage(reply)
        raw, parsed = reply["raw"], reply["parsed"]
        return (parsed if parsed is not None else text_of(raw)), _usage(raw)


def _usage(message: Any) -> Usage:
    tokens = getattr(message, "usage_metadata", None) or {}
    return Usage(int(tokens.get("input_tokens", 0)), int(tokens.get("output_tokens", 0)))


async def agrade_retriever(
    retriever: Any,
    questions: Any,
    model: Any,
    store: str | Path,
    *,
    identity: str | None = None,
    workers: int = 8,
    **options: Any,
) -> Qrels:
    """Have a chat model grade every document that retrievers return from 1 to 5; the labels for `selectivity`.

    Parameters
    ----------
    retriever : BaseRetriever, or {name: retriever}
        Of several, all that they return is graded; what more than one returns is graded once.
    questions : {query id: text} or texts
    model : BaseChatModel, or any judge of rag_selectivity
    store : str or Path
        The label store: what it holds is not asked again, also if documents got new ids.
    identity : str, optional
        By which id the labels name a document: `id`, `text` (a hash), or a metadata key that each document has for
        itself. Default: `id` if all documents have one, else `text`.
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
        If all retrievals fail, controls are asked for without a corpus, the corpus has none of the documents, or an id
        stands for documents with different texts.
    """
    asked = queries_of(questions)
    found = {}
    for name, each in retrievers_of(retriever, workers).items():
        outcomes = await each.abatch(list(asked.values()), {"max_concurrency": workers}, return_exceptions=True)
        found[name] = retrieved(name, asked, outcomes)
        check_retrieved(name, found[name])
    return await label_lists(asked, **to_grade(found.values(), identity), store=store, judge=model, **options)


grade_retriever = blocking(agrade_retriever)


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
