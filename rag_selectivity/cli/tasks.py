"""Files of annotation tasks, for the commands that write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_selectivity.errors import InputError

if TYPE_CHECKING:
    from rag_selectivity.people.task import AnnotationTask

#: The suffixes of a page.
_PAGES = (".html", ".htm")
OF_TASK = "Write a page (.html) about the disagreements that have no adjudicated grade."


def refuse_no_page(output: Path) -> None:
    """An InputError if a file is not called a page."""
    if output.suffix.lower() not in _PAGES:
        raise InputError(f"{output}: a task is a page: name a file that ends in .html")


def task_targets(output: Path, tasks: Sequence[AnnotationTask]) -> dict[Path, AnnotationTask]:
    """{file: task}: one file, or one for each annotator with the name added.

    Raises
    ------
    InputError
        If two annotators would have one file.
    """
    from rag_selectivity.people.task import in_file_name

    def file_of(task: AnnotationTask) -> Path:
        return output.with_name(f"{output.stem}-{in_file_name(task.annotator)}{output.suffix}")

    targets = {output if len(tasks) == 1 else file_of(task): task for task in tasks}
    if len(targets) < len(tasks):
        raise InputError("two annotators' names give one file name; make them differ in letters or digits")
    return targets


def write_tasks(targets: Mapping[Path, AnnotationTask]) -> None:
    """Write each task to its file, all or none."""
    from rag_selectivity.render.annotation_page import annotation_page
    from rag_selectivity.tables.writing import write_files

    write_files({target: annotation_page(task) for target, task in targets.items()})
