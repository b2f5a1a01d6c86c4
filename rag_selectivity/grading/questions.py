"""Questions whose answers a store keeps by the hash of all that decides them, and who asks those that it lacks."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from rag_selectivity.grading.judge import Message, Reply
from rag_selectivity.grading.prompts import JUDGED, fenced
from rag_selectivity.grading.reading import Unreadable, read_answer, read_part
from rag_selectivity.grading.runner import Outcome, Runner, Task
from rag_selectivity.grading.store import Label, Settings, Store, digest


@dataclass(frozen=True)
class Question:
    """A question about texts; `content` is the hash of everything that decides its answer.

    `in_part` says whether those fields of an answer that can be read count where others cannot.
    """

    content: bytes
    system: str
    texts: tuple[tuple[str, str], ...]
    request: str
    schema: type[BaseModel]
    about_texts: str = JUDGED
    in_part: bool = True

    def messages(self) -> list[Message]:
        """The messages, with a new marker around every text."""
        return fenced(self.system, self.texts, self.request, about_texts=self.about_texts)

    def task(self) -> Task[BaseModel]:
        """The task that asks it."""
        return Task(self, self.messages(), self.schema, self._read)

    def _read(self, reply: Reply) -> BaseModel:
        try:
            return read_answer(reply, self.schema)
        except Unreadable as error:
            error.part = read_part(reply, self.schema) if self.in_part else None
            raise


def question_of(
    kind: str, system: str, texts: Sequence[tuple[str, str]], request: str, schema: type[BaseModel]
) -> Question:
    """A question about texts; `kind` tells apart questions that would otherwise be the same."""
    content = json.dumps([kind, system, [list(pair) for pair in texts], request, sorted(schema.model_fields)])
    return Question(digest(content), system, tuple(texts), request, schema)


class Asker:
    """Asks the questions that have no answer in the store, and reads answers from it.

    With `served`, only answers of the model that the server calls so count; the others are asked for again, and kept
    beside.
    """

    def __init__(self, store: Store, settings: Settings, served: str | None = None) -> None:
        self._store = store
        self._served = served
        self._first = self._number = store.settings_id(settings)
        if served is not None:
            self._number = store.settings_id(replace(settings, parameters={**settings.parameters, "served": served}))

    def found(self, question: Question) -> tuple[Any, str | None] | None:
        """The stored answer and the model that the server named, or None."""
        found = self._store.answer_and_server(self._first, question.content)
        if self._served is not None and (found is None or found[1] != self._served):
            found = self._store.answer_and_server(self._number, question.content)
        return found

    def answer(self, question: Question) -> Any:
        """The stored answer, or None."""
        found = self.found(question)
        return None if found is None else found[0]

    def missing(self, questions: Iterable[Question]) -> list[Question]:
        """The distinct questions without an answer, in their order."""
        distinct = {question.content: question for question in questions}
        return [question for question in distinct.values() if self.found(question) is None]

    async def ask(self, runner: Runner, questions: Iterable[Question]) -> None:
        """Ask the questions that have no answer yet."""
        await runner.run((question.task() for question in self.missing(questions)), self._put)

    async def _put(self, outcome: Outcome[BaseModel]) -> int:
        value = None if outcome.answer is None else outcome.answer.model_dump()
        key = self._number, outcome.task.key.content, b"", 0
        await asyncio.wrap_future(self._store.put([Label(key, value=value, **outcome.record())]))
        return 1
