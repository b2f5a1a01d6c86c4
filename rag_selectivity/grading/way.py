"""How an endpoint is asked: what it can do, found by asking."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from rag_selectivity.grading.judge import Message, json_schema, with_schema

#: Ways to constrain an answer, the strictest first.
ANSWERS = ("json_schema", "json_object", "tools", "text")
_LIMITS = ("max_completion_tokens", "max_tokens", None)
#: Words by which an endpoint names what it refuses, the field first that endpoints lack most often.
NAMED = {
    "answer": re.compile(
        r"response_?format|json_?schema|json_?object|structured|guided|grammar|tool|function", re.IGNORECASE
    ),
    "limit": re.compile(r"max_(?:completion_)?tokens", re.IGNORECASE),
    "temperature": re.compile(r"temperature", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class Way:
    """The fields of a request besides the messages.

    Attributes
    ----------
    answer : {"json_schema", "json_object", "tools", "text"}
        What constrains the answer.
    limit : {"max_completion_tokens", "max_tokens"} or None
        The field that limits its length.
    temperature : bool
        Whether a temperature that the user gave is sent.
    refused : tuple of str
        Further fields that the user gave and the endpoint refused.
    """

    answer: str = ANSWERS[0]
    limit: str | None = _LIMITS[0]
    temperature: bool = True
    refused: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As JSON, as labels keep it."""
        shown: dict[str, Any] = {"answer": self.answer, "limit": self.limit}
        if not self.temperature:
            shown["temperature"] = False
        return json.dumps({**shown, **({"refused": list(self.refused)} if self.refused else {})})

    def fields(
        self,
        messages: Sequence[Message],
        schema: type[BaseModel],
        answer_tokens: int,
        parameters: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The body of a request, without its model."""
        body: dict[str, Any] = {"messages": list(messages)}
        body |= {
            name: value
            for name, value in parameters.items()
            if name not in self.refused and (name != "temperature" or self.temperature)
        }
        if self.limit is not None:
            body[self.limit] = answer_tokens
        if self.answer == "json_schema":
            described = {"name": schema.__name__, "strict": True, "schema": json_schema(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
        elif self.answer == "tools":
            function = {"name": "answer", "description": "Give the answer.", "parameters": json_schema(schema)}
            body["tools"] = [{"type": "function", "function": function}]
            body["tool_choice"] = {"type": "function", "function": {"name": "answer"}}
        else:
            body["messages"] = with_schema(messages, schema)
            if self.answer == "json_object":
                body["response_format"] = {"type": "json_object"}
        return body

    def without(self, what: str) -> Way | None:
        """The way without a thing that was refused: `answer` and `limit` step down by one; None if it is not sent."""
        if what == "answer" and self.answer != ANSWERS[-1]:
            return replace(self, answer=ANSWERS[ANSWERS.index(self.answer) + 1])
        if what == "limit" and self.limit is not None:
            return replace(self, limit=_LIMITS[_LIMITS.index(self.limit) + 1])
        if what == "temperature" and self.temperature:
            return replace(self, temperature=False)
        return None

    def stepped_down(self, refusal: str, parameters: Mapping[str, Any]) -> Way | None:
        """The way without what an endpoint names as refused; None if it names nothing that is sent."""
        return self._without_parameter(refusal, parameters) or self.first_without(
            [what for what, words in NAMED.items() if words.search(refusal)], parameters
        )

    def without_named(self, error: str, parameters: Mapping[str, Any], *, limit: bool) -> Way | None:
        """The way without a field whose exact name stands in an error; None if there is none.

        Without `limit` the limit of tokens stays, since an error about a rate may name it.
        """
        names = {
            "answer": {"tools": ("tools", "tool_choice"), "text": ()}.get(
                self.answer, ("response_format", self.answer)
            ),
            "limit": (self.limit,) if limit and self.limit is not None else (),
            "temperature": ("temperature",),
        }
        named = [what for what, fields in names.items() if any(_has_word(error, field) for field in fields)]
        return self._without_parameter(error, parameters) or self.first_without(named, parameters)

    def _without_parameter(self, refusal: str, parameters: Mapping[str, Any]) -> Way | None:
        for name in parameters:
            if name not in ("temperature", *self.refused) and _has_word(refusal, name):
                return replace(self, refused=(*self.refused, name))
        return None

    def first_without(self, fields: Iterable[str], parameters: Mapping[str, Any]) -> Way | None:
        """The way without the first of the fields that is sent; None if none is."""
        for what in fields:
            if what == "temperature" and "temperature" not in parameters:
                continue
            lower = self.without(what)
            if lower is not None:
                return lower
        return None


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text) is not None
