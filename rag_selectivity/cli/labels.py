"""`rag-selectivity labels`: info, export, import, agree and draw."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.help import choices
from rag_selectivity.cli.inputs import STANDARD_INPUT, Readable, name_of, named_files
from rag_selectivity.cli.output import (
    STANDARD_OUTPUT,
    TABLE_FORMATS,
    chosen_format,
    csv_text,
    note,
    put,
    put_lines,
    refuse_standard_output,
    show,
)
from rag_selectivity.cli.writable import OF_OUTPUT
from rag_selectivity.errors import InputError
from rag_selectivity.tables.grades import parse_grade_map
from rag_selectivity.wording import counted

INFO_EXAMPLES = (
    "rag-selectivity labels info labels.db",
    "rag-selectivity labels info labels.db --output labels.txt",
)
EXPORT_EXAMPLES = (
    "rag-selectivity labels export labels.db labels.qrels",
    "rag-selectivity labels export labels.db - --format jsonl",
)
IMPORT_EXAMPLES = (
    "rag-selectivity labels import people.db scripted.qrels --annotator scripted --origin person --drawn agree:30",
    "rag-selectivity labels import people.db formats/graded03.trec --annotator ben --grade-map 0:1,1:3,2:4,3:5",
)

#: As `rag_selectivity.grading.store` has them, which is imported where it is used.
_ORIGINS = ("pool", "tail", "control", "person", "unknown")
_STREAMED = ("qrels", "jsonl", "csv")
StoreArgument = Annotated[Path, o.argument("STORE", "Label store.")]


def labels_info(store: StoreArgument, output: Path | None = o.output_file(".txt")) -> None:
    """Show who gave labels, of which pairs, at what cost, and which failed.

    The example of a failure is the latest: its query, its passage, the message, and the first 500 characters of the
    judge's answer.
    """
    from rag_selectivity.grading.exchange import failure_lines, summary_lines
    from rag_selectivity.grading.store import Store

    with Store(store, read_only=True) as labels:
        lines = [*summary_lines(labels), *failure_lines(labels.failures())]
    put_lines(lines or ["the store has no labels yet"], output)


def labels_export(
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


def labels_import(
    store: StoreArgument,
    source: Path = o.argument(
        Readable("FILE"),
        "Answers to a task of `labels draw`, labels of a person (qrels), or a table that `labels export` wrote.",
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


#: What `--help` shows.
AGREE_USUAL = "labels human judge run corpus scale output"
AGREE_EXAMPLES = (
    "rag-selectivity labels agree labels.db scripted.qrels",
    "rag-selectivity labels agree labels.db scripted.qrels --run bm25.trec --run dense.trec",
)


def labels_agree(
    labels: Annotated[Path, o.argument(Readable("LABELS"), "Labels by the judge: a label store, or qrels.")],
    human: Annotated[
        Path | None,
        o.argument(
            Readable("PEOPLE"),
            "Labels by people: qrels, or a label store (default: the first of two --judge of LABELS).",
        ),
    ] = None,
    judge: list[str] | None = o.option(
        o.INPUT,
        "NAME",
        "Judge or person of a label store whose labels count. Two without PEOPLE are compared. Repeat for more.",
        "--judge",
    ),
    grade_map: str | None = o.option(o.INPUT, "MAP", "New grade for each grade of PEOPLE, as in 0:1,1:3,2:4,3:5."),
    labels_grade_map: str | None = o.option(o.INPUT, "MAP", "New grade for each grade of LABELS."),
    scale: str = o.option(o.INPUT, "NAME", "Scale of the grades: trec or utility (1 to 5).", default="utility"),
    run: list[str] | None = o.input_file(
        "Run that the judge ranks against the others: FILE or NAME=FILE. Repeat for each."
    ),
    list_depth: int | None = o.option(
        o.INPUT, "K", "Ranks of each run that count as its list (default: 10, or all of fewer)."
    ),
    corpus: o.PassageTextsOption = None,
    resamples: o.ResamplesOption = 5000,
    drawing: o.Drawing = o.Drawing(),
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Compare a judge's labels with people's labels.

    With `--run` twice or more, say of every two runs whether the judge ranks them as people do.
    Without PEOPLE, two `--judge` of a label store are compared with each other; its people are judges too.
    To calibrate figures by people's labels, give these to `evaluate --human`.
    """
    chosen_format(format, output, TABLE_FORMATS)
    result = rs.agree(
        human,
        labels,
        judges=judge,
        grade_map=grade_map,
        labels_grade_map=labels_grade_map,
        runs=named_files(run) if run else None,
        list_depth=list_depth,
        corpus=corpus,
        scale=scale,
        bootstrap=drawing.bootstrap(resamples),
    )
    show(result, format, output)


#: What `--help` shows.
DRAW_USUAL = "store run draw queries corpus annotator overlap output"
DRAW_EXAMPLES = (
    "rag-selectivity labels draw cheap.db --queries queries.jsonl --corpus corpus.jsonl bm25.trec "
    "--draw calibrate:20 --output task.html",
    "rag-selectivity labels draw cheap.db --queries queries.jsonl --corpus corpus.jsonl --draw agree:20 "
    "--annotator ada --annotator ben --overlap 5 --output shared.html",
)


def labels_draw(
    store: Annotated[Path, o.argument("STORE", "Label store with the judge's grades; it keeps the draw.")],
    draw: Annotated[
        str,
        o.option(
            o.INPUT,
            "DRAW",
            "Pairs to label: calibrate:N (for calibrated figures), agree:N (to measure agreement), outside:N (outside "
            "all lists), file:FILE (a table of query_id and passage_id), disagree:N (judges differ), adjudicate:N "
            "(people differ), random:N or tail:LAST:N (N a query, outside of what was retrieved).",
        ),
    ],
    output: Annotated[
        Path,
        o.option(
            o.OUTPUT,
            OF_OUTPUT,
            "Page to write (.html); with several annotators one for each, with the name added.",
            "--output",
            "-o",
        ),
    ],
    queries: o.QueryTextsOption = None,
    corpus: o.PassageTextsOption = None,
    run: Annotated[list[str] | None, o.argument(Readable("RUN"), "Runs: FILE or NAME=FILE.")] = None,
    pool: list[str] | None = o.input_file(
        "Further lists, whose passages are candidates for outside:N. Repeat for more."
    ),
    list_depth: int = o.option(o.INPUT, "K", "Ranks of each run that count as its list.", default=10),
    judge: o.JudgeOption = None,
    rubric: Path | None = o.input_file("Rubric of your own, in TOML."),
    annotator: list[str] | None = o.option(
        o.INPUT, "NAME", "Who labels (default: person). Repeat for more.", "--annotator"
    ),
    overlap: int = o.option(o.INPUT, "COUNT", "Pairs that all annotators label; the others are dealt out.", default=0),
    seed: o.SeedOption = 7,
) -> None:
    """Draw pairs and make a page on which people label them.

    The page is one file that works without a network. It shows neither the judge's grades nor where a passage comes
    from. `labels import` takes the file of answers that it saves; the same command then goes on with what is labelled,
    and says so when nothing is left to label.
    """
    from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
    from rag_selectivity.grading.store import Store
    from rag_selectivity.people.making import make_tasks
    from rag_selectivity.people.task import in_file_name
    from rag_selectivity.render.annotation_page import annotation_page
    from rag_selectivity.tables.writing import write_files

    refuse_standard_output(output, "--output")
    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{output}: a task is a page: name a file that ends in .html")
    with Store(store, create=False) as labels:
        drawn = make_tasks(
            labels,
            draw,
            queries=queries,
            corpus=corpus,
            runs=named_files(run or ()),
            pools=pool or (),
            list_depth=list_depth,
            annotators=annotator or (),
            overlap=overlap,
            judges=judge,
            rubric=DEFAULT_RUBRIC if rubric is None else rubric,
            seed=seed,
        )
    alone = len(drawn.tasks) == 1
    targets = {
        output if alone else output.with_name(f"{output.stem}-{in_file_name(task.annotator)}{output.suffix}"): task
        for task in drawn.tasks
    }
    if len(targets) < len(drawn.tasks):
        raise InputError("two annotators' names give one file name; make them differ in letters or digits")
    write_files({target: annotation_page(task) for target, task in targets.items()})
    if drawn.notes:
        put_lines(drawn.notes)
    for target, task in targets.items():
        pairs = len(task.drawn)
        note(f"wrote {target}: {pairs} pairs for {task.annotator} (task {task.id})")
    if not targets:
        note("no task was written")
