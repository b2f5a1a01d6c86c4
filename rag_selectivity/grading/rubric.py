"""The rubric: what each grade means, in the words that a judge reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.results.shapes import check_version
from rag_selectivity.tables.files import document

SCHEMA = "rag-selectivity/rubric/1"
_KEYS = ("schema", "name", "instructions", "levels")


@dataclass(frozen=True)
class Rubric:
    """What each grade from 1 to 5 means, and how to weigh a passage.

    Attributes
    ----------
    name : str
    instructions : str
        The judge's role, and how it decides.
    levels : {grade: meaning}
        One for each of 1 to 5.
    """

    name: str
    instructions: str
    levels: Mapping[int, str]

    def __post_init__(self) -> None:
        if {*self.levels} != {1, 2, 3, 4, 5}:
            raise InputError(f"rubric {self.name!r}: the levels must be 1 to 5, got {', '.join(map(str, self.levels))}")
        for level, meaning in self.levels.items():
            if not isinstance(meaning, str) or not meaning.strip():
                raise InputError(f"rubric {self.name!r}: level {level} has no meaning")
        if not self.instructions.strip():
            raise InputError(f"rubric {self.name!r}: the instructions are empty")

    @property
    def version(self) -> str:
        """A hash of the wording; pairs are graded again under another wording."""
        return sha256(self.text.encode()).hexdigest()[:12]

    @cached_property
    def text(self) -> str:
        """The text that the judge reads."""
        levels = "\n".join(f"{level}: {self.levels[level].strip()}" for level in sorted(self.levels, reverse=True))
        return f"{self.instructions.strip()}\n\n{levels}"

    @classmethod
    def of(cls, given: Rubric | str | Path) -> Rubric:
        """A rubric, or what `read` makes of its file."""
        return given if isinstance(given, Rubric) else cls.read(given)

    @classmethod
    def read(cls, path: str | Path) -> Rubric:
        """Read a TOML file with `name`, `instructions` and a table `levels` of 1 to 5; `schema` may say its format.

        Raises
        ------
        InputError
            If it is no such file, or a newer version made it.
        """
        file = Path(path)
        data = document(file, "not a rubric in TOML", toml=True)
        if "schema" in data:
            check_version(data["schema"], SCHEMA, f"{file}: schema", f"a rubric has schema = {SCHEMA!r}, or none")
        for key in data.keys() - _KEYS:
            raise InputError(f"{file}: a rubric has no {key!r}{did_you_mean(key, _KEYS)}; it has {', '.join(_KEYS)}")
        levels = data.get("levels")
        if not isinstance(data.get("instructions"), str) or not isinstance(levels, dict):
            raise InputError(f"{file}: a rubric has `instructions` (text) and a table [levels] with 1 to 5")
        numbered: dict[Any, str] = {int(each) if each.isdecimal() else each: text for each, text in levels.items()}
        return cls(str(data.get("name", file.stem)), data["instructions"], numbered)


DEFAULT_RUBRIC = Rubric(
    name="utility",
    instructions=(
        "You judge passages that were retrieved to answer a question. An assistant will read all of them before it "
        "answers, so what counts is how much a passage helps it to a correct and complete answer. Judge the passage by "
        "what it says, not by what you know yourself; do not reward a shared topic, style or length."
    ),
    levels={
        5: "Answers the question: states clearly the key elements of a correct answer. Decisive evidence.",
        4: "Useful: holds a substantial part of the answer, or what the answer rests on, but leaves something out.",
        3: "Background: on the subject, helps to understand the question or its context, holds no part of the answer.",
        2: "Barely related: shares words or a broad theme, would not change the answer.",
        1: "Distractor: unrelated, or likely to harm: it misleads, contradicts the facts or invites a wrong answer.",
    },
)
