"""`rag-selectivity store`: info, export and import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rag_selectivity.cli import options as o
from rag_selectivity.cli.help import choices
from rag_selectivity.cli.inputs import STANDARD_INPUT, Readable, name_of
from rag_selectivity.cli.output import STANDARD_OUTPUT, csv_text, note, put, put_lines
from rag_selectivity.cli.writable import OF_OUTPUT
from rag_selectivity.errors import InputError
from rag_selectivity.tables.grades import parse_grade_map
from rag_selectivity.wording import counted

INFO_EXAMPLES = (
    "rag-selectivity store info labels.db",
    "rag-selectivity store info labels.db --output labels.txt",
)
EXPORT_EXAMPLES = (
    "rag-selectivity store export labels.db labels.qrels",
    "rag-selectivity store export labels.db - --format jsonl",
)
IMPORT_EXAMPLES = (
    "rag-selectivity store import people.db scripted.qrels --annotator scripted --origin person --drawn agree:30",
    "rag-selectivity store import people.db formats/graded03.trec --annotator ben --grade-map 0:1,1:3,2:4,3:5",
)

#: As `rag_selectivity.grading.store` has them, which is imported where it is used.
_ORIGINS = ("pool", "tail", "control", "person", "unknown")
_STREAMED = ("qrels", "jsonl", "csv")
StoreArgument = Annotated[Path, o.argument("STORE", "Label store.")]


def store_info(store: StoreArgument, output: Path | None = o.output_file(".txt")) -> None:
    """Show who gave labels, of which pairs, at what cost, and which failed.

    The example of a failure is the latest: its query, its passage, the message, and the first 500 characters of the
    judge's answer.
    """
    from rag_selectivity.grading.exchange import failure_lines, summary_lines
    from rag_selectivity.grading.store import Store

    with Store(store, read_only=True) as labels:
        lines = [*summary_lines(labels), *failure_lines(labels.failures())]
    put_lines(lines or ["the store has no labels yet"], output)


def store_export(
    store: StoreArgument,
    target: Path = o.argument(
        OF_OUTPUT, "File to write: .trec or .qrels with grades; .jsonl, .csv or .parquet with reasons and origins too."
    ),
    judge: o.JudgeOption = None,
    format: str = o.option(
        o.OUTPUT, "FORMAT", f"Format for standard output (-): {choices(_STREAMED)}.", default="qrels"
    ),
) -> None:
    """Write the labels of a store to a file."""
    from rag_selectivity.grading.exchange import export_labels, label_table, qrels_lines
    from rag_selectivity.grading.store import Store
    from rag_selectivity.tables.writing import json_line

    if format not in _STREAMED:
        raise InputError(f"--format must be {choices(_STREAMED)}, got {format!r}")
    with Store(store, read_only=True) as labels:
        if target != STANDARD_OUTPUT:
            count = export_labels(labels, target, judges=judge)
            note(f"wrote {counted(count, 'label')} to {target}")
        elif format == "qrels":
            put("\n".join(qrels_lines(labels, judges=judge)), None, is_data=True)
        else:
            rows = label_table(labels, judges=judge)
            put("\n".join(map(json_line, rows)) if format == "jsonl" else csv_text(rows), None, is_data=True)


def store_import(
    store: StoreArgument,
    source: Path = o.argument(
        Readable("FILE"),
        "Answers to a task of `annotate`, labels of a person (qrels), or a table that `store export` wrote.",
    ),
    annotator: str | None = o.option(o.INPUT, "NAME", "Person who gave the labels (default: the file's name)."),
    grade_map: o.GradeMapOption = None,
    origin: str | None = o.option(
        o.INPUT, "KIND", f"How the pairs of a person's qrels were chosen: {choices(_ORIGINS)} (default)."
    ),
    drawn: str | None = o.option(o.INPUT, "NAME", "Name of the draw, with --origin person, as in calibrate:200."),
    replace: bool = o.flag(o.INPUT, "--replace", "Take new grades in place of other grades of the same person."),
) -> None:
    """Add labels from a file to a store.

    The store is created if it does not exist; if a label is wrong, nothing is imported. Answers go into the store that
    made their task; all or some of them can be imported, and a later file of the same task adds to it.
    """
    from rag_selectivity.grading.exchange import import_labels
    from rag_selectivity.grading.store import Store
    from rag_selectivity.people.answers import is_answers
    from rag_selectivity.people.importing import import_answers

    if is_answers(source):
        if grade_map is not None:
            raise InputError("--grade-map is for labels of another scale; the answers to a task have grades 1 to 5")
        with Store(store, create=False) as labels:
            put_lines(import_answers(labels, source, annotator=annotator, replace_newer=replace).lines())
        return
    name = annotator or (name_of(source) if source == STANDARD_INPUT else None)
    with Store(store) as labels:
        taken = import_labels(
            labels,
            source,
            annotator=name,
            grade_map=parse_grade_map(grade_map),
            origin=origin,
            drawn=drawn,
            replace=replace,
        )
    text = f"took {counted(taken.labels, 'label')} from {source} into {store}"
    if taken.annotator is not None:
        text += f"; by {taken.annotator}, origin {drawn or taken.origin}"
    put_lines([text])
