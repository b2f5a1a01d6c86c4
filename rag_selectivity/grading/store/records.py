"""What the label store holds, as values: settings, labels of judges and people, where they come from, other answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean

#: Number of the settings, hash of the query, hash of the passage, number of the sample.
Key = tuple[int, bytes, bytes, int]

#: How a pair can come into a store. `unknown` is that of labels whose origin nobody wrote down.
ORIGIN_KINDS = ("pool", "tail", "control", "person", "unknown")
#: Draws for people that choose pairs by what is known of their labels: what people say of these pairs says nothing
#: about other pairs.
TARGETED_DRAWS = ("disagree",)
#: The draw whose grade takes the place of the grades that it is about.
ADJUDICATION = "adjudicate"
#: The kind of a failure that was stored without one.
UNKNOWN_FAILURE = "unknown"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What asking a judge took, and why there is no answer, if there is none.

    Attributes
    ----------
    prompt_tokens, completion_tokens, cost, seconds, attempts
        What all requests took.
    failure : str or None
        The kind of the failure, as `JudgeFailure.kind`.
    error, last_answer : str or None
        Its message, and the first 500 characters of the judge's last answer.
    served_model : str or None
        The model that the server named.
    way : str or None
        How the server was asked, as JSON: what it could do.
    """

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


@dataclass(frozen=True, slots=True)
class Label(_Asked):
    """The grade that a judge gave to a pair, or the failure that left it without one.

    Attributes
    ----------
    key : Key
    grade : int or None
        None if the pair failed.
    reason, relevant_span, misleading
        What the judge said besides the grade.
    """

    key: Key
    grade: int | None
    reason: str | None = None
    relevant_span: str | None = None
    misleading: bool | None = None


@dataclass(frozen=True, slots=True)
class StoredAnswer(_Asked):
    """A judge's answer that is not a grade. `content` is the hash of the question."""

    settings: int
    content: bytes
    value: Any


_OF_SERVER = ("served_model", "way")
#: The columns that labels and answers share in their tables, and all those of a label.
ASKED_COLUMNS = tuple(field.name for field in fields(_Asked) if field.name not in _OF_SERVER)
LABEL_COLUMNS = ("grade", "reason", "relevant_span", "misleading", *ASKED_COLUMNS)


@dataclass(frozen=True, slots=True)
class Draw:
    """How a set of pairs was chosen for grading. Equal draws are one draw.

    Attributes
    ----------
    kind : {"pool", "tail", "control", "person", "unknown"}
        `pool`: the top ranks of a run; `tail`: drawn from the ranks below; `control`: drawn from the rest of the
        corpus; `person`: drawn for a person.
    source : str
        Name of the run, or of the person.
    depth : int or None
        Ranks of the run that were taken; None: all, or there are no ranks.
    how : mapping
        All else that an estimate needs, as JSON: seed, first and last rank, number drawn, weights of the strata.
    """

    kind: str
    source: str = ""
    depth: int | None = None
    how: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in ORIGIN_KINDS:
            raise InputError(
                f"the origin of a label must be one of {', '.join(ORIGIN_KINDS)}, got {self.kind!r}"
                f"{did_you_mean(self.kind, ORIGIN_KINDS)}"
            )

    @property
    def how_text(self) -> str:
        return json.dumps(dict(self.how), sort_keys=True, ensure_ascii=False)

    @property
    def fingerprint(self) -> bytes:
        return digest(json.dumps([self.kind, self.source, self.depth, self.how_text], ensure_ascii=False))

    @property
    def design(self) -> str:
        """The name of a draw for people, such as `calibrate:200`; empty if it is not known."""
        return str(self.how.get("design", ""))

    @property
    def is_targeted(self) -> bool:
        """Whether it chose pairs by what was known of their labels.

        >>> Draw("person", "ada", how={"design": "disagree:40"}).is_targeted
        True
        >>> Draw("person", "ada", how={"design": "calibrate:40"}).is_targeted
        False
        """
        return self.kind == "person" and self.design.partition(":")[0] in TARGETED_DRAWS

    @property
    def is_adjudication(self) -> bool:
        """Whether it is about pairs on which annotators disagreed."""
        return self.kind == "person" and self.design.partition(":")[0] == ADJUDICATION


@dataclass(frozen=True, slots=True)
class Origin:
    """How one pair came into the store. A pair that two runs found has two origins.

    Attributes
    ----------
    draw : Draw
    rank : int or None
        The pair's rank in the run, from 1.
    detail : mapping
        What concerns this pair alone, as JSON: its stratum, or its weight.
    """

    draw: Draw
    rank: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def detail_text(self) -> str | None:
        return json.dumps(dict(self.detail), sort_keys=True, ensure_ascii=False) if self.detail else None

    def to_dict(self) -> dict[str, Any]:
        """Its values by name, without those that are empty."""
        draw = self.draw
        values: dict[str, Any] = {"kind": draw.kind, "source": draw.source, "depth": draw.depth, "rank": self.rank}
        values |= {"how": dict(draw.how), "detail": dict(self.detail)}
        return {name: value for name, value in values.items() if value not in (None, "", {})}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Origin:
        """The origin that `to_dict` described."""
        draw = Draw(values["kind"], values.get("source", ""), values.get("depth"), values.get("how", {}))
        return cls(draw, values.get("rank"), values.get("detail", {}))


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """The grade that a person gave to a pair.

    Attributes
    ----------
    query, passage, annotator : str
    grade : int or None
        None if the person skipped the pair.
    reason : str or None
        The person's note.
    query_hash, passage_hash : bytes or None
        Hashes of the texts that the person read; None if they are not known.
    sample : int
        0, or 1 and more where the person graded the pair again, to measure how far the person agrees with itself.
    draw : Draw or None
        How the pair was chosen for the person; None if that is not known.
    """

    query: str
    passage: str
    annotator: str
    grade: int | None
    reason: str | None = None
    query_hash: bytes | None = None
    passage_hash: bytes | None = None
    sample: int = 0
    draw: Draw | None = None

    @property
    def pair(self) -> tuple[str, str]:
        """The query and the passage."""
        return self.query, self.passage

    @property
    def design(self) -> str:
        """The name of its draw; empty if it is not known."""
        return "" if self.draw is None else self.draw.design

    @property
    def is_targeted(self) -> bool:
        """Whether a draw chose the pair by what was known of its labels."""
        return self.draw is not None and self.draw.is_targeted

    @property
    def is_adjudication(self) -> bool:
        """Whether it takes the place of the grades that it is about."""
        return self.draw is not None and self.draw.is_adjudication


def digest(text: str) -> bytes:
    """The hash of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
