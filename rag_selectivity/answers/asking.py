"""Asks the answering model for the answers that the store lacks, and reads answers from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag_selectivity.answers.prompt import PROMPT_VERSION, Answer, AnswerPrompt, answer_of
from rag_selectivity.errors import InputError
from rag_selectivity.grading.claim_questions import Asker
from rag_selectivity.grading.judge import Judge
from rag_selectivity.grading.runner import Runner
from rag_selectivity.grading.store import Settings, Store
from rag_selectivity.results.answers import Shown
from rag_selectivity.results.usage import Usage

#: Tokens of an answer, for the estimate of a dry run.
_ANSWER_TOKENS = 60


@dataclass(frozen=True, slots=True)
class Planned:
    """A prompt, the query it is for, and what it shows."""

    query: str
    shown: Shown
    passages: tuple[str, ...]
    prompt: AnswerPrompt


class AnswerStore:
    """The answers of one model in a store.

    Parameters
    ----------
    store : Store
    model : Judge
    served : str, optional
        Count only answers of the model that the server calls so; the others are asked for again, and kept beside.
    """

    def __init__(self, store: Store, model: Judge, served: str | None = None) -> None:
        self._served = served
        self._store = store
        settings = Settings("answer", model.name, model.parameters, prompt_version=PROMPT_VERSION)
        self._first = store.settings_id(settings)
        self._number = self._first
        if served is not None:
            again = Settings(
                "answer", model.name, {**model.parameters, "served": served}, prompt_version=PROMPT_VERSION
            )
            self._number = store.settings_id(again)

    def answer(self, prompt: AnswerPrompt) -> Answer | None:
        """The stored answer, or None."""
        found = self._store.answer_and_server(self._first, prompt.content)
        if self._served is not None and (found is None or found[1] != self._served):
            found = self._store.answer_and_server(self._number, prompt.content)
        return None if found is None else answer_of(prompt, found)

    def missing(self, planned: Iterable[Planned]) -> list[AnswerPrompt]:
        """The distinct prompts without an answer, in their order."""
        prompts = {each.prompt.content: each.prompt for each in planned}
        return [prompt for prompt in prompts.values() if self.answer(prompt) is None]

    async def ask(self, runner: Runner, prompts: Sequence[AnswerPrompt]) -> None:
        """Ask the prompts."""
        await Asker(self._store, self._number).ask(runner, prompts)


def refuse_mixed_models(answers: Sequence[tuple[Planned, Answer]]) -> None:
    """Refuse answers of several models behind one name.

    Raises
    ------
    InputError
        With the models that the server named, how many answers each gave, and an example.
    """
    named = Counter(answer.served_model for _, answer in answers if answer.served_model is not None)
    if len(named) < 2:
        return
    first = {answer.served_model: each for each, answer in reversed(answers)}
    each = "; ".join(
        f"{name} gave {count:,}, such as that of query {first[name].query!r} with {first[name].shown}"
        for name, count in named.most_common()
    )
    newest = named.most_common(1)[0][0]
    raise InputError(
        f"the model changed between the answers, and no figure mixes models: {each}. Choose one with served={newest!r} "
        f"(--served {newest}): the answers of the others are asked for again"
    )


def estimated_usage(prompts: Sequence[AnswerPrompt]) -> Usage:
    """The tokens that prompts would take, at four characters a token."""
    characters = sum(len(message["content"]) for prompt in prompts for message in prompt.messages())
    return Usage(characters // 4, _ANSWER_TOKENS * len(prompts))
