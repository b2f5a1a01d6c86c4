"""The answers of an annotator, as values and as the JSON file that the page writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.people.task import FORMAT, VERSION, AnnotationTask
from rag_selectivity.results.plain import plain_fields
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
    """

    task: str
    annotator: str
    rubric: str
    answers: Mapping[str, Answer]


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
    version = data.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        raise InputError(
            f"{path}: {'made by a newer rag-selectivity (' if newer else ''}answers of version {version!r}, and this "
            f"one reads version {VERSION}{'): update rag-selectivity' if newer else f'; {again}'}"
        )
    for name in ("task", "annotator", "rubric"):
        if not isinstance(data.get(name), str) or not data[name]:
            raise InputError(f"{path}: the answers do not name their {name}; {again}")
    if not isinstance(data.get("answers"), list):
        raise InputError(f"{path}: there is no list of answers; {again}")
    answers: dict[str, Answer] = {}
    first: dict[int, str] = {}
    for number, row in enumerate(data["answers"], 1):
        # A passage with a note alone is not answered yet.
        if isinstance(row, dict) and row.get("grade") is None and row.get("skipped") is not True:
            continue
        where = f"{path}: answer {number}"
        answer = answers[where] = _answer(row, where)
        if first.setdefault(answer.item, where) != where:
            raise InputError(f"{where}: item {answer.item} is answered at {first[answer.item]} already; remove one")
    return Answers(data["task"], data["annotator"], data["rubric"], answers)


def _is_time(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and value >= 0)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


#: What each field of an answer is, and what tells it.
_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "item": ("a whole number ≥ 0", lambda value: type(value) is int and value >= 0),
    "query": ("the fingerprint of a text", _is_text),
    "passage": ("the fingerprint of a text", _is_text),
    "grade": (
        f"a whole number from {_LOWEST} to {_HIGHEST}",
        lambda value: type(value) is not bool and number_or_nan(value) in GRADES,
    ),
    "note": ("a text", lambda value: value is None or _is_text(value)),
    "answered": ("a number ≥ 0", _is_time),
    "seconds": ("a number ≥ 0", _is_time),
}


def _answer(row: Any, where: str) -> Answer:
    if not isinstance(row, dict):
        raise InputError(f"{where}: not an answer but {row!r}")
    is_skipped = row.get("skipped") is True
    for name, (expected, fits) in _FIELDS.items():
        if not fits(row.get(name)) and not (is_skipped and name == "grade"):
            raise InputError(f"{where}: `{name}` must be {expected}, got {row.get(name)!r}")
    grade = None if is_skipped else int(number_or_nan(row["grade"]))
    texts, times = (row["query"], row["passage"]), (row.get("answered"), row.get("seconds"))
    return Answer(row["item"], *texts, grade, row.get("note") or "", *times)
