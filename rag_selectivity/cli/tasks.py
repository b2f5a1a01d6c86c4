"""Files of annotation tasks, for the commands that write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_selectivity.cli.help import choices
from rag_selectivity.errors import InputError

if TYPE_CHECKING:
    from rag_selectivity.grading.annotation.task import AnnotationTask

FORMATS = ("html", "csv")
BY_SUFFIX = {".html": "html", ".htm": "html", ".csv": "csv"}
OF_TASK = "Write a task about the disagreements that have no adjudicated grade: .html (a page) or .csv (a sheet)."


def task_format(given: str | None, output: Path, option: str = "--format") -> str:
    """The format that was given, else that of the file's suffix.

    Raises
    ------
    InputError
        If the format is unknown, or the suffix does not show it.
    """
    chosen = given or BY_SUFFIX.get(output.suffix.lower())
    if chosen not in FORMATS:
        raise InputError(
            f"{option} must be {choices(FORMATS)}, got {given!r}"
            if given
            else f"{output}: the suffix names neither a page (.html) nor a sheet (.csv); give {option}"
        )
    return chosen


def task_targets(output: Path, tasks: Sequence[AnnotationTask]) -> dict[Path, AnnotationTask]:
    """{file: task}: one file, or one for each annotator with the name added.

    Raises
    ------
    InputError
        If two annotators would have one file, or a sheet is there already, which may hold grades.
    """
    from rag_selectivity.grading.annotation.task import in_file_name

    def file_of(task: AnnotationTask) -> Path:
        return output.with_name(f"{output.stem}-{in_file_name(task.annotator)}{output.suffix}")

    targets = {output if len(tasks) == 1 else file_of(task): task for task in tasks}
    if len(targets) < len(tasks):
        raise InputError("two annotators' names give one file name; make them differ in letters or digits")
    for target in targets:
        refuse_sheet(target)
    return targets


def refuse_sheet(target: Path) -> None:
    """Refuse to replace a sheet that may hold grades."""
    if target.suffix.lower() == ".csv" and target.exists():
        raise InputError(f"{target}: there is a sheet already, which may hold grades; name another file")


def write_tasks(targets: Mapping[Path, AnnotationTask], format: str) -> None:
    """Write each task to its file, all or none."""
    from rag_selectivity.grading.annotation.sheet import sheet_content
    from rag_selectivity.io.replacing import write_files
    from rag_selectivity.render.annotation_page import annotation_page

    made = sheet_content if format == "csv" else annotation_page
    write_files({target: made(task) for target, task in targets.items()})
