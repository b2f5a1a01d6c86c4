"""A framework's model as a judge: what the wrappers of all frameworks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_selectivity.grading.judge import Answer, JudgeFailure, Message, ask_until_valid, failure_of, with_schema
from rag_selectivity.results.usage import Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Answer", "JudgeFailure", "Message", "ModelJudge", "Usage", "first_text", "known_settings", "with_schema"]


class ModelJudge(ABC):
    """A judge that asks a framework's model. A subclass gives it a name and says how the model is called.

    Parameters
    ----------
    name : str
        The model's name; labels are kept under it.
    parameters : {name: value}
        All that can change an answer besides the messages, such as the temperature: other parameters grade anew.

    Examples
    --------
    >>> class Constant(ModelJudge):
    ...     async def complete(self, conversation, schema):
    ...         return {"reason": "always", "grade": 3}, Usage(prompt_tokens=12, completion_tokens=4)
    >>> Constant("constant", {"temperature": 0}).name
    'constant'
    """

    def __init__(self, name: str, parameters: Mapping[str, Any]) -> None:
        self.name = name
        self.parameters: Mapping[str, Any] = dict(parameters)

    @abstractmethod
    async def complete(self, conversation: Sequence[Message], schema: type[BaseModel]) -> tuple[Any, Usage]:
        """Call the model once.

        Returns
        -------
        (answer, usage)
            The answer is an instance of the schema, a dict, or JSON text. One that does not fit the schema is sent
            back to the model with the error.

        Any exception may be raised: a JudgeFailure stays as it is, any other becomes one by the HTTP status that
        it carries.
        """

    async def ask(self, messages: Sequence[Message], schema: type[BaseModel]) -> Answer:
        """Answer the messages with an instance of the schema, or raise a JudgeFailure."""

        async def complete(conversation: Sequence[Message]) -> tuple[Any, Usage]:
            try:
                return await self.complete(conversation, schema)
            except JudgeFailure:
                raise
            except Exception as error:
                raise failure_of(error) from None

        return await ask_until_valid(complete, messages, schema)


def first_text(value: Any, *names: str) -> str | None:
    """The first of the attributes that is a non-empty string, or None.

    >>> class Model:
    ...     model_name = "gpt-5-mini"
    >>> first_text(Model(), "model", "model_name")
    'gpt-5-mini'
    """
    for name in names:
        text = getattr(value, name, None)
        if isinstance(text, str) and text:
            return text
    return None


def known_settings(source: Any, names: Sequence[str]) -> dict[str, Any]:
    """Those settings of a model that have a value, from its attributes or from a dict.

    >>> known_settings({"temperature": 0.2, "max_tokens": None}, ["temperature", "max_tokens"])
    {'temperature': 0.2}
    """
    values = source if isinstance(source, Mapping) else {name: getattr(source, name, None) for name in names}
    return {name: values[name] for name in names if values.get(name) is not None}
