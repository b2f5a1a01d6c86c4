"""Sample: a question with its retrieved texts and a reference answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """A question with its retrieved texts and a reference answer; the field names are those of Ragas.

    `retrieved_contexts` are in rank order. `response` and the other fields of Ragas are not needed.
    """

    user_input: str
    retrieved_contexts: tuple[str, ...]
    reference: str | None = None
    id: str = ""
