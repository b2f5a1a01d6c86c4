"""The answers of an annotator, as values and as the JSON file that the page writes."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from rag_selectivity.errors import InputError
from rag_selectivity.people.task import FORMAT, VERSION, AnnotationTask
from rag_selectivity.results.plain import plain_fields
from rag_selectivity.results.shapes import Amount, Count, Shape, check_version, fitted, kind
from rag_selectivity.tables.cells import number_or_nan
from rag_selectivity.tables.files import document, opened
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


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to a task, all or some.

    Attributes
    ----------
    task, annotator, rubric : str
        Id of the task, name of the annotator, version of the rubric.
    answers : {place: Answer}
        By where each stands: the file, and the number of the answer.
    saved : float
        When the file was saved, in seconds since 1970; 0 if it does not say.
    """

    task: str
    annotator: str
    rubric: str
    answers: Mapping[str, Answer]
    saved: float = 0.0


def write_answers(path: Path, task: AnnotationTask, answers: Mapping[int, Answer]) -> None:
    """Write answers as the page writes them, whole or not at all."""
    rows = [{**plain_fields(answers[item]), "skipped": answers[item].grade is None} for item in sorted(answers)]
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
    again = "save it again from the page"
    data = document(path, "not a whole file of answers", f"; {again}")
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{path}: not a file of answers, as the page of `labels draw` saves it")
    made = f"{FORMAT}/{data.get('version')}"
    check_version(made, f"{FORMAT}/{VERSION}", str(path), f"answers of version {data.get('version')!r}; {again}")
    found = fitted(_File, data, str(path), again)
    answers: dict[str, Answer] = {}
    first: dict[int, str] = {}
    for number, row in enumerate(found.answers, 1):
        # A passage with a note alone is not answered yet.
        if row.grade is None and not row.skipped:
            continue
        where = f"{path}: answer {number}"
        if first.setdefault(row.item, where) != where:
            raise InputError(f"{where}: item {row.item} is answered at {first[row.item]} already; remove one")
        grade = None if row.skipped else int(number_or_nan(row.grade))
        answers[where] = Answer(row.item, row.query, row.passage, grade, row.note or "", row.answered, row.seconds)
    return Answers(found.task, found.annotator, found.rubric, answers, found.saved or 0.0)


def _is_grade(value: Any) -> bool:
    return value is None or (type(value) is not bool and number_or_nan(value) in GRADES)


class _Row(Shape):
    item: Count
    query: str
    passage: str
    grade: Annotated[Any, kind(f"a whole number from {_LOWEST} to {_HIGHEST}", _is_grade)] = None
    skipped: bool | None = False
    note: str | None = None
    answered: Amount | None = None
    seconds: Amount | None = None


_Name = Annotated[str, Field(min_length=1)]


class _File(Shape):
    task: _Name
    annotator: _Name
    rubric: _Name
    answers: list[_Row]
    saved: Amount | None = None
