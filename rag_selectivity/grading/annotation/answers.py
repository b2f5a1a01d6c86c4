"""The answers of an annotator, as values and as the JSON file that the page writes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.grading.annotation.task import FORMAT, VERSION, AnnotationTask
from rag_selectivity.results.estimate import plain_fields
from rag_selectivity.tables.cells import number_of
from rag_selectivity.tables.files import json_document, opened
from rag_selectivity.tables.grades import SCALES
from rag_selectivity.tables.writing import json_text, write_whole

_LOWEST, _HIGHEST = SCALES["utility"].lowest, SCALES["utility"].highest or 5
GRADES = tuple(range(_LOWEST, _HIGHEST + 1))


@dataclass(frozen=True, slots=True)
class Answer:
    """What an annotator said of an item.

    Attributes
    ----------
    item : int
        Its number in the task, from 0.
    query, passage : str
        Fingerprints of the texts that the annotator read.
    grade : int or None
        None if the item was skipped.
    note : str
    answered : float or None
        When, in seconds since 1970 (UTC); None if nobody wrote it down.
    seconds : float or None
        How long the item was on the screen.
    """

    item: int
    query: str
    passage: str
    grade: int | None
    note: str = ""
    answered: float | None = None
    seconds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As the file has it."""
        return {**plain_fields(self), "skipped": self.grade is None}


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to a task, all or some.

    Attributes
    ----------
    task, annotator, rubric : str
        Id of the task, name of the annotator, version of the rubric.
    answers : sequence of Answer
    places : sequence of str
        Where each answer stands: the file, and the line or the answer.
    """

    task: str
    annotator: str
    rubric: str
    answers: tuple[Answer, ...]
    places: tuple[str, ...]


def write_answers(path: Path, task: AnnotationTask, answers: Mapping[int, Answer]) -> None:
    """Write answers as the page writes them, whole or not at all."""
    rows = [answers[item].to_dict() for item in sorted(answers)]
    whose = {"task": task.id, "annotator": task.annotator, "rubric": task.rubric.version}
    counts = {"saved": time.time(), "items": len(task.items), "answers": rows}
    write_whole(path, json_text({"format": FORMAT, "version": VERSION, **whose, **counts}, 1) + "\n")


def is_answers(path: Path) -> bool:
    """Whether a file is one of answers: JSON that says so at its beginning."""
    with opened(path) as file:
        head = file.read(4096)
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and f'"{FORMAT}"'.encode() in head


def read_answers(path: Path) -> Answers:
    """Read a file of answers.

    Raises
    ------
    InputError
        If it is damaged, of another version, or an answer has a grade off the scale.
    """
    try:
        data = json_document(path)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a whole file of answers ({error}); save it again from the page") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{path}: not a file of answers, as the page of `annotate` saves it")
    version = data.get("version")
    if isinstance(version, int) and version > VERSION:
        raise InputError(
            f"{path}: made by a newer rag-selectivity (answers of version {version}, and this one reads {VERSION}): "
            f"update rag-selectivity"
        )
    if version != VERSION:
        raise InputError(
            f"{path}: answers of version {data.get('version')!r}, and this release reads version {VERSION}; import "
            f"them with the release that made the task"
        )
    for name in ("task", "annotator", "rubric"):
        if not isinstance(data.get(name), str) or not data[name]:
            raise InputError(f"{path}: the answers do not name their {name}; save them again from the page")
    if not isinstance(data.get("answers"), list):
        raise InputError(f"{path}: there is no list of answers; save them again from the page")
    found = [(f"{path}: answer {number}", row) for number, row in enumerate(data["answers"], 1)]
    # A passage with a note alone is not answered yet.
    is_empty = [
        isinstance(row, dict) and row.get("grade") is None and row.get("skipped") is not True for _, row in found
    ]
    answers = [(where, _answer(row, where)) for (where, row), empty in zip(found, is_empty, strict=True) if not empty]
    first: dict[int, str] = {}
    for where, answer in answers:
        if first.setdefault(answer.item, where) != where:
            raise InputError(f"{where}: item {answer.item} is answered at {first[answer.item]} already; remove one")
    places, given = tuple(where for where, _ in answers), tuple(answer for _, answer in answers)
    return Answers(data["task"], data["annotator"], data["rubric"], given, places)


def checked_grade(value: Any, where: str) -> int:
    """A grade of the scale; `4`, `4.0` and `" 4 "` are one."""
    text = value.strip() if isinstance(value, str) else value
    try:
        number = number_of(text)
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(value, bool) or number not in GRADES:
        raise InputError(f"{where}: the grade must be a whole number from {_LOWEST} to {_HIGHEST}, got {value!r}")
    return int(number)


def _answer(row: Any, where: str) -> Answer:
    if not isinstance(row, dict):
        raise InputError(f"{where}: not an answer but {row!r}")
    item = row.get("item")
    if not isinstance(item, int) or isinstance(item, bool) or item < 0:
        raise InputError(f"{where}: the item must be a whole number ≥ 0, got {item!r}")
    for name in ("query", "passage"):
        if not isinstance(row.get(name), str):
            raise InputError(f"{where}: item {item} has no fingerprint of its {name}")
    for name in ("answered", "seconds"):
        number = row.get(name)
        if number is not None and (isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= 0):
            raise InputError(f"{where}: `{name}` must be a number ≥ 0, got {number!r}")
    note = row.get("note") or ""
    if not isinstance(note, str):
        raise InputError(f"{where}: the note must be a text, got {note!r}")
    grade = None if row.get("skipped") is True else checked_grade(row.get("grade"), where)
    return Answer(item, row["query"], row["passage"], grade, note, row.get("answered"), row.get("seconds"))
