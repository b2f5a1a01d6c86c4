"""A question with what was retrieved for it, as answers are checked against."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """A question with what was retrieved for it and a reference answer, by Ragas' field names.

    `retrieved_contexts` are in rank order; `response` and the rest of Ragas' fields are not needed.
    """

    user_input: str
    retrieved_contexts: tuple[str, ...]
    reference: str | None = None
    id: str = ""
