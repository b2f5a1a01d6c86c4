"""A task as a sheet: CSV with a row for each passage and an empty column for grades."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from rag_selectivity.data.cells import integer_of
from rag_selectivity.errors import InputError
from rag_selectivity.grading.annotation.answers import Answer, Answers, checked_grade, made_of
from rag_selectivity.grading.annotation.task import AnnotationTask
from rag_selectivity.io.opening import first_bytes, opened
from rag_selectivity.io.replacing import write_whole
from rag_selectivity.io.separated import fault_of_csv, refuse_doubled
from rag_selectivity.io.writing import harmless, without_apostrophe

COLUMNS = ("item", "question", "passage", "grade", "note", "task", "annotator", "rubric", "query_text", "passage_text")
SKIPPED = "skip"


def write_sheet(path: Path, task: AnnotationTask) -> None:
    """Write a task as a sheet, in UTF-8 with the mark by which programs for sheets know it.

    `query_text` and `passage_text` are fingerprints, by which the import knows the texts.
    """
    write_whole(path, sheet_content(task))


def sheet_content(task: AnnotationTask) -> bytes:
    """What `write_sheet` writes."""
    # UTF-8 has no bytes for half of a pair of surrogates.
    return sheet_text(task).encode("utf-8-sig", "backslashreplace")


def sheet_text(task: AnnotationTask) -> str:
    """The sheet of a task."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for number, item in enumerate(task.items):
        shown = [harmless(text) for text in (item.question, item.text)]
        named = [task.id, harmless(task.annotator), task.rubric.version]
        writer.writerow([number, *shown, "", "", *named, *item.fingerprints])
    return text.getvalue()


def is_sheet(path: Path) -> bool:
    """Whether a file is a sheet of `write_sheet`, by its first line."""
    first = _first_line(first_bytes(path).decode("utf-8-sig", "replace"))
    cells = next(csv.reader([first], delimiter=_delimiter(first)), [])
    return {"item", "grade", "task", "query_text", "passage_text"} <= set(cells)


def read_sheet(path: Path) -> Answers:
    """Read a sheet in which the grades were filled in; rows without a grade are not answered yet.

    A grade of `skip` says that the annotator cannot judge the passage.

    Raises
    ------
    InputError
        If the sheet lacks a column, mixes tasks, or has a grade off the scale; it names the line.
    """
    with opened(path) as file:
        try:
            content = file.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}: the sheet is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8"
            ) from None
    # A passage may be longer than what the reader of CSV takes for a cell.
    before = csv.field_size_limit(max(csv.field_size_limit(), len(content) + 1))
    try:
        return _answers(path, content)
    except csv.Error as error:
        raise InputError(f"{path}: this is not CSV: {fault_of_csv(error)}") from None
    finally:
        csv.field_size_limit(before)


def _answers(path: Path, content: str) -> Answers:
    reader = csv.DictReader(io.StringIO(content, newline=""), delimiter=_delimiter(_first_line(content)))
    refuse_doubled(reader.fieldnames or (), str(path))
    missing = [
        name for name in COLUMNS if name not in (reader.fieldnames or ()) and name not in ("question", "passage")
    ]
    if missing:
        raise InputError(f"{path}: the sheet has no column {missing[0]!r}; keep the columns of the sheet as they were")
    found: list[tuple[str, Answer]] = []
    of_task: tuple[str, str, str] | None = None
    for row in reader:
        where = f"{path}:{reader.line_num}"
        if not any(row.get(name) for name in COLUMNS):
            continue
        named = (row["task"] or "", without_apostrophe(row["annotator"] or ""), row["rubric"] or "")
        if of_task is None:
            of_task = named
        if named != of_task:
            raise InputError(
                f"{where}: this row is of task {named[0]} of {named[1]!r}, the first one of {of_task[0]} "
                f"of {of_task[1]!r}; import each sheet by itself"
            )
        grade = (row["grade"] or "").strip()
        if grade:
            found.append((where, _answer(row, grade, where)))
    if of_task is None:
        raise InputError(f"{path}: the sheet has no rows")
    return made_of(*of_task, found)


def _answer(row: dict[str, str], grade: str, where: str) -> Answer:
    try:
        item = integer_of(row["item"])
    except (TypeError, ValueError):
        raise InputError(f"{where}: the item must be a whole number, got {row['item']!r}") from None
    given = None if grade.casefold() == SKIPPED else checked_grade(grade, where)
    return Answer(item, row["query_text"] or "", row["passage_text"] or "", given, (row["note"] or "").strip())


def _first_line(content: str) -> str:
    # A spreadsheet program may end lines in carriage returns alone.
    return re.split(r"[\r\n]", content, maxsplit=1)[0]


def _delimiter(first_line: str) -> str:
    # A spreadsheet program writes semicolons where the comma separates decimals.
    return max(",;\t", key=first_line.count)
