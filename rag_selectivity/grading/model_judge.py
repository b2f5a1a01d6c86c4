"""A framework's model as a judge: what the wrappers of all frameworks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_selectivity.grading.judge import Judge, JudgeFailure, Message, Reply, Request, failure_of, with_schema
from rag_selectivity.results.usage import Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "JudgeFailure",
    "Message",
    "ModelJudge",
    "Reply",
    "Request",
    "Usage",
    "first_text",
    "known_settings",
    "with_schema",
]


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

    @classmethod
    def of(cls, model: Any) -> Judge:
        """A judge as it is, or a framework's model as the judge that a subclass makes of it."""
        make: Callable[[Any], Judge] = cls
        return model if isinstance(model, Judge) else make(model)

    @abstractmethod
    async def complete(self, conversation: Sequence[Message], schema: type[BaseModel]) -> tuple[Any, Usage | None]:
        """Call the model once.

        Returns
        -------
        (answer, usage)
            The answer is an instance of the schema, a dict, or JSON text. One that does not fit the schema is sent
            back to the model with the error. The usage is None if the framework does not say it.

        Any exception may be raised: a JudgeFailure stays as it is, any other becomes one by the HTTP status that
        it carries.
        """

    async def ask(self, request: Request) -> Reply:
        """Send one request."""
        try:
            content, usage = await self.complete(request.messages, request.schema)
        except JudgeFailure:
            raise
        except Exception as error:
            raise failure_of(error) from None
        return Reply(content, usage if usage is not None and usage.total else None)


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
