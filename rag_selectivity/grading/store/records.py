"""What the label store holds, as values: the settings of a judge, its labels and its other answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

#: Number of the settings, hash of the query, hash of the passage, number of the sample.
Key = tuple[int, bytes, bytes, int]


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can change an answer except the texts."""

    kind: str
    model: str
    parameters: Mapping[str, Any]
    rubric: str = ""
    rubric_version: str = ""
    prompt_version: str = ""

    @property
    def parameters_text(self) -> str:
        return json.dumps(dict(self.parameters), sort_keys=True, ensure_ascii=False, default=str)

    @property
    def fingerprint(self) -> bytes:
        identity = [self.kind, self.model, self.parameters_text, self.rubric_version, self.prompt_version]
        return digest(json.dumps(identity, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Label:
    """The grade that a judge gave to a pair, or the failure that left it without one.

    Attributes
    ----------
    key : Key
    grade : int or None
        None if the pair failed.
    reason, relevant_span, misleading
        What the judge said besides the grade.
    flagged : bool
        Whether the passage looks like instructions to the judge.
    prompt_tokens, completion_tokens, cost, seconds, attempts
        What all requests for this label took.
    expected : float or None
        The mean grade under the probabilities that the server gave for the grade's token.
    failure : str or None
        The kind of the failure, as `JudgeFailure.kind`.
    error, last_answer : str or None
        Its message, and the first 500 characters of the judge's last answer.
    served_model : str or None
        The model that the server named.
    way : str or None
        How the server was asked, as JSON: what it could do.
    """

    key: Key
    grade: int | None
    reason: str | None = None
    relevant_span: str | None = None
    misleading: bool | None = None
    flagged: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    attempts: int = 1
    expected: float | None = None
    failure: str | None = None
    error: str | None = None
    last_answer: str | None = None
    served_model: str | None = None
    way: str | None = None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A judge's answer that is not a grade. `content` is the hash of the question."""

    settings: int
    content: bytes
    value: Any
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    attempts: int = 1
    failure: str | None = None
    error: str | None = None
    last_answer: str | None = None
    served_model: str | None = None
    way: str | None = None


def digest(text: str) -> bytes:
    """The hash of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
