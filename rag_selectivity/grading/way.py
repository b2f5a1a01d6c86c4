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
_WORDS = {
    "answer": r"response_?format|json_?schema|json_?object|structured|guided|grammar|tool|function",
    "limit": r"max_(?:completion_)?tokens",
    "temperature": r"temperature",
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
    refused : tuple of str
        Fields that the user gave and the endpoint refused.
    """

    answer: str = ANSWERS[0]
    limit: str | None = _LIMITS[0]
    refused: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As JSON, as labels keep it."""
        shown: dict[str, Any] = {"answer": self.answer, "limit": self.limit}
        if "temperature" in self.refused:
            shown["temperature"] = False
        others = [name for name in self.refused if name != "temperature"]
        return json.dumps({**shown, **({"refused": others} if others else {})})

    def fields(
        self,
        messages: Sequence[Message],
        schema: type[BaseModel],
        answer_tokens: int,
        parameters: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The body of a request, without its model."""
        body: dict[str, Any] = {"messages": list(messages)}
        body |= {name: value for name, value in parameters.items() if name not in self.refused}
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
        if what == "answer":
            lower = ANSWERS[ANSWERS.index(self.answer) + 1 :]
            return replace(self, answer=lower[0]) if lower else None
        if what == "limit":
            return None if self.limit is None else replace(self, limit=_LIMITS[_LIMITS.index(self.limit) + 1])
        return None if what in self.refused else replace(self, refused=(*self.refused, what))

    def without_refused(self, refusal: str, parameters: Mapping[str, Any]) -> Way | None:
        """The way without what an endpoint names as refused, in whatever words; None if it names nothing sent."""
        return self._without_named(refusal, parameters, _WORDS)

    def without_field(self, error: str, parameters: Mapping[str, Any], *, limit: bool) -> Way | None:
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
        patterns = {what: rf"\b(?:{'|'.join(fields)})\b" for what, fields in names.items() if fields}
        return self._without_named(error, parameters, patterns)

    def without_any(self, parameters: Mapping[str, Any], fields: Iterable[str] = _WORDS) -> Way | None:
        """The way without the first of the fields that is sent; None if none is."""
        sent = (what for what in fields if what != "temperature" or what in parameters)
        return next((lower for what in sent if (lower := self.without(what)) is not None), None)

    def _without_named(self, text: str, parameters: Mapping[str, Any], words: Mapping[str, str]) -> Way | None:
        for name in parameters:
            if name not in ("temperature", *self.refused) and re.search(rf"\b{re.escape(name)}\b", text):
                return self.without(name)
        return self.without_any(parameters, [what for what in words if re.search(words[what], text, re.IGNORECASE)])
