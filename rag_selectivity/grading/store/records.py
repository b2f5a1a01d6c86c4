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
    """The grade that a judge gave to a pair, or the error that left it without one."""

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
    error: str | None = None


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
    error: str | None = None


def digest(text: str) -> bytes:
    """The hash of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
