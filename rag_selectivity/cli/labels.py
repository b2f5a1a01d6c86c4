"""`rag-selectivity labels`: info, export, import, agree and draw."""

from pathlib import Path
from typing import Annotated

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.files import STANDARD_INPUT, STANDARD_OUTPUT, Writes, name_and_file
from rag_selectivity.cli.output import csv_text, note, put, put_lines, refuse_standard_output
from rag_selectivity.cli.settings import refuse_typed
from rag_selectivity.errors import InputError
from rag_selectivity.tables.grades import parse_grade_map
from rag_selectivity.wording import counted, enumeration

_STREAMED = ("qrels", "jsonl", "csv")
_Target = Annotated[Path, Writes()]


def labels_info(store: Path, *, output: Annotated[Path | None, Writes((".txt",))] = None) -> None:
    """Show who gave labels, of which pairs, at what cost, and which failed.

    The example of a failure is the latest.

    Output
    ------
    output : FILE, -o
        File to write: .txt. Default: standard output.

    Examples
    --------
    $ rag-selectivity labels info labels.db
    $ rag-selectivity labels info labels.db --output labels.txt
    """
    from rag_selectivity.grading.exchange import failure_lines, summary_lines
    from rag_selectivity.grading.store import Store

    with Store(store, read_only=True) as labels:
        lines = [*summary_lines(labels), *failure_lines(labels.failures())]
    put_lines(lines or ["the store has no labels yet"], output)


def labels_export(store: Path, target: _Target, *, judge: o.Names = None, format: str = "qrels") -> None:
    """Write the labels of a store to a file.

    Arguments
    ---------
    target : FILE
        File to write: .trec or .qrels with grades; .jsonl, .csv or .parquet with reasons and origins too.

    Output
    ------
    format : FORMAT
        Format for standard output (-): qrels, jsonl or csv.

    Examples
    --------
    $ rag-selectivity labels export labels.db labels.qrels
    $ rag-selectivity labels export labels.db - --format jsonl
    """
    from rag_selectivity.grading.exchange import export_labels, label_table, qrels_lines
    from rag_selectivity.grading.store import Store
    from rag_selectivity.tables.writing import json_line

    if format not in _STREAMED:
        raise InputError(f"--format must be {enumeration(_STREAMED, 'or')}, got {format!r}")
    with Store(store, read_only=True) as labels:
        if target != STANDARD_OUTPUT:
            refuse_typed(("format",), "the suffix of a file says its format")
            note(f"wrote {counted(export_labels(labels, target, judges=judge), 'label')} to {target}")
        elif format == "qrels":
            put("\n".join(qrels_lines(labels, judges=judge)), None, is_data=True)
        else:
            rows = label_table(labels, judges=judge)
            put("\n".join(map(json_line, rows)) if format == "jsonl" else csv_text(rows), None, is_data=True)


def labels_import(
    store: Path,
    source: Path,
    *,
    annotator: str | None = None,
    judge: str | None = None,
    grade_map: str | None = None,
    origin: str | None = None,
    replace: bool = False,
) -> None:
    """Add labels from a file to a store.

    The store is created if it does not exist; if a label is wrong, nothing is imported. Answers go into the store that
    made their task; all or some of them can be imported, and a later file of the same task adds to it.

    Arguments
    ---------
    source : FILE
        Answers to a task of `labels draw`; qrels or a table of query_id, passage_id, grade and reason; or a table that
        `labels export` wrote.

    Data
    ----
    annotator : NAME
        Person who gave the labels (default: the file's name).
    judge : NAME
        Judge that gave them, as a model; what it graded again is a further sample.
    origin : KIND
        How the pairs were chosen: pool, tail, control, person, unknown (default), or the draw, as in calibrate:200.
    replace
        Take new grades in place of other grades of the same person.

    Examples
    --------
    $ rag-selectivity labels import people.db scripted.qrels --annotator scripted --origin agree:30
    $ rag-selectivity labels import people.db formats/graded03.trec --annotator ben --grade-map 0:1,1:3,2:4,3:5
    """
    from rag_selectivity.grading.exchange import import_labels
    from rag_selectivity.grading.store import Store
    from rag_selectivity.people.answers import is_answers
    from rag_selectivity.people.importing import import_answers

    if is_answers(source):
        refuse_typed(("judge", "grade_map", "origin"), "answers to a task have grades 1 to 5 and a draw")
        with Store(store, create=False) as labels:
            put_lines(import_answers(labels, source, annotator=annotator, replace_newer=replace).lines())
        return
    taken = import_labels(
        store,
        source,
        annotator=annotator or (name_and_file("-")[0] if source == STANDARD_INPUT and judge is None else None),
        judge=judge,
        grade_map=parse_grade_map(grade_map),
        origin=origin,
        replace=replace,
    )
    by = "" if taken.annotator is None else f"; by {taken.annotator}, origin {taken.origin}"
    put_lines([f"took {counted(taken.labels, 'label')} from {source} into {store}{by}"])


def labels_agree(
    labels: Path,
    human: Path | None = None,
    *,
    judge: o.Names = None,
    grade_map: str | None = None,
    labels_grade_map: str | None = None,
    scale: str = "utility",
    run: o.Runs = None,
    list_depth: int | None = None,
    corpus: Path | None = None,
    resamples: int = 5000,
    drawing: o.Drawing = o.Drawing(),
    printer: o.Output = o.Output(),
) -> None:
    """Compare a judge's labels with people's labels.

    With `--run` twice or more, say of every two runs whether the judge ranks them as people do.
    Without PEOPLE, two `--judge` of a label store are compared with each other; its people are judges too.
    To calibrate figures by people's labels, give these to `evaluate --human`.

    Arguments
    ---------
    labels : LABELS
        Labels by the judge: a label store, or qrels.
    human : PEOPLE
        Labels by people: qrels, or a label store (default: the first of two --judge of LABELS).

    Data
    ----
    judge : NAME
        Judge or person of a label store whose labels count. Two without PEOPLE are compared. Repeat for more.
    grade_map : MAP
        New grade for each grade of PEOPLE, as in 0:1,1:3,2:4,3:5.
    labels_grade_map : MAP
        New grade for each grade of LABELS.
    scale : NAME
        Scale of the grades: trec or utility (1 to 5).
    run : FILE
        Run that the judge ranks against the others: FILE or NAME=FILE. Repeat for each.
    list_depth : K
        Ranks of each run that count as its list (default: 10, or all of fewer).

    Usual options
    -------------
    labels human judge run corpus scale output

    Examples
    --------
    $ rag-selectivity labels agree labels.db scripted.qrels
    $ rag-selectivity labels agree labels.db scripted.qrels --run bm25.trec --run dense.trec
    """
    result = rs.agree(
        human,
        labels,
        judges=judge,
        grade_map=grade_map,
        labels_grade_map=labels_grade_map,
        runs=run,
        list_depth=list_depth,
        corpus=corpus,
        scale=scale,
        bootstrap=drawing.bootstrap(resamples),
    )
    printer.show(result)


def labels_draw(
    store: Path,
    run: o.Runs = None,
    *,
    draw: str,
    output: _Target,
    queries: Path | None = None,
    corpus: Path | None = None,
    pool: o.Names = None,
    list_depth: int = 10,
    judge: o.Names = None,
    rubric: Path | None = None,
    annotator: o.Names = None,
    overlap: int = 0,
    repeats: float = 0.05,
    seed: int = 7,
) -> None:
    """Draw pairs and make a page on which people label them.

    The page is one file that works without a network. It shows neither the judge's grades nor where a passage comes
    from. `labels import` takes the file of answers that it saves; the same command then goes on with what is labelled,
    and says so when nothing is left to label.

    Arguments
    ---------
    store : STORE
        Label store with the judge's grades; it keeps the draw.

    Data
    ----
    draw : DRAW
        Pairs to label: calibrate:N (for calibrated figures), agree:N (to measure agreement), outside:N (outside all
        lists), file:FILE (a table of query_id and passage_id), disagree:N (judges differ), adjudicate:N (people
        differ), random:N or tail:LAST:N (N a query, outside of what was retrieved).
    pool : FILE
        Further lists, whose passages are candidates for outside:N. Repeat for more.
    list_depth : K
        Ranks of each run that count as its list.
    rubric : FILE
        Rubric of your own, in TOML.
    annotator : NAME
        Who labels (default: person). Repeat for more.
    overlap : COUNT
        Pairs that all annotators label; the others are shared out among them.
    repeats : SHARE
        Share of the pairs that comes twice, for agreement with oneself.

    Output
    ------
    output : FILE, -o
        Page to write (.html); with several annotators one for each, with the name added.

    Usual options
    -------------
    store run draw queries corpus annotator overlap output

    Examples
    --------
    $ rag-selectivity labels draw cheap.db --queries queries.jsonl --corpus corpus.jsonl bm25.trec \
        --draw calibrate:20 --output task.html
    $ rag-selectivity labels draw cheap.db --queries queries.jsonl --corpus corpus.jsonl --draw agree:20 \
        --annotator ada --annotator ben --overlap 5 --output shared.html
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
            runs=run or {},
            pools=pool or (),
            list_depth=list_depth,
            annotators=annotator or (),
            overlap=overlap,
            repeats=repeats,
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
        again = len(task.items) - len(task.drawn)
        note(f"wrote {target}: {len(task.drawn)} pairs for {task.annotator}, {again} of them twice (task {task.id})")
    if not targets:
        note("no task was written")
