"""`rag-selectivity annotate`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rag_selectivity.cli import PROGRAM
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import named_files
from rag_selectivity.cli.output import Interrupted, note, put, refuse_standard_output
from rag_selectivity.cli.tasks import BY_SUFFIX, task_format, task_targets, write_tasks
from rag_selectivity.cli.writable import OF_OUTPUT
from rag_selectivity.errors import InputError

if TYPE_CHECKING:
    from rag_selectivity.grading.annotation.task import AnnotationTask

EXAMPLES = (
    "rag-selectivity annotate --store cheap.db --queries queries.jsonl --corpus corpus.jsonl --run bm25.trec "
    "--draw calibrate:20 --output task.html",
    "rag-selectivity annotate --store cheap.db --queries queries.jsonl --corpus corpus.jsonl --draw agree:20 "
    "--annotator ada --annotator ben --overlap 5 --output sheet.csv",
)


def annotate(
    store: Annotated[Path, o.option(o.INPUT, "STORE", "Label store with the judge's grades; it keeps the draw.")],
    draw: Annotated[
        str,
        o.option(
            o.INPUT,
            "DRAW",
            "Pairs to label: calibrate:N (for calibrated figures), agree:N (to measure agreement), outside:N (outside "
            "all lists) or file:FILE (a table of query_id and passage_id).",
        ),
    ],
    output: Annotated[
        Path,
        o.option(
            o.OUTPUT,
            OF_OUTPUT,
            "File to write; with several annotators one for each, with the name added. With --terminal the file of "
            "answers.",
            "--output",
            "-o",
        ),
    ],
    queries: o.QueryTextsOption = None,
    corpus: o.PassageTextsOption = None,
    run: o.OptionalRunOption = None,
    pool: Annotated[
        list[str] | None, o.input_file("Candidates for outside:N, with or without a label. Repeat for more.")
    ] = None,
    list_depth: o.ListDepthOption = 10,
    judge: o.JudgeOption = None,
    rubric: o.RubricOption = None,
    annotator: o.AnnotatorOption = None,
    overlap: o.OverlapOption = 0,
    repeats: o.RepeatsOption = 0.05,
    seed: o.SeedOption = 7,
    terminal: Annotated[
        bool, o.flag(o.OUTPUT, "--terminal", "Ask in this terminal instead of writing a page.")
    ] = False,
    format: o.TaskFormatOption = None,
) -> None:
    """Make a page on which people label pairs.

    The page is one file that works without a network. It shows neither the judge's grades nor where a passage comes
    from. `store import` takes the file of answers that it saves.
    """
    from rag_selectivity.grading.annotation.answers import read_answers
    from rag_selectivity.grading.annotation.making import make_tasks, reopened_task
    from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
    from rag_selectivity.grading.store import Store

    refuse_standard_output(output, "--output")
    chosen = _format(format, output, terminal)
    if terminal and annotator and len(annotator) > 1:
        raise InputError("--terminal asks one person: give one --annotator, and each of them a command of their own")
    wording = DEFAULT_RUBRIC if rubric is None else rubric
    with Store(store, create=False) as labels:
        if terminal and output.exists():
            begun = read_answers(output).task
            tasks = [reopened_task(labels, begun, queries=queries, corpus=corpus, rubric=wording)]
        else:
            tasks = make_tasks(
                labels,
                draw,
                queries=queries,
                corpus=corpus,
                runs=named_files(run or ()),
                pools=pool or (),
                list_depth=list_depth,
                annotators=annotator or (),
                overlap=overlap,
                repeats=repeats,
                judges=judge,
                rubric=wording,
                seed=seed,
            )
    if terminal:
        _ask(tasks[0], output)
        if output.exists():
            note(f"add them with: {shlex.join([PROGRAM, 'store', 'import', str(store), str(output)])}")
        return
    targets = task_targets(output, tasks)
    write_tasks(targets, chosen)
    for target, task in targets.items():
        pairs = len(task.drawn)
        again = len(task.items) - pairs
        note(f"wrote {target}: {pairs} pairs for {task.annotator}, {again} of them twice (task {task.id})")


def _format(given: str | None, output: Path, terminal: bool) -> str:
    if not terminal:
        return task_format(given, output)
    by_suffix = BY_SUFFIX.get(output.suffix.lower())
    if given is not None or by_suffix is not None:
        raise InputError(
            f"--terminal writes answers as JSON, not {given or by_suffix}: leave --format out, and name a .json file"
        )
    return "json"


def _ask(task: AnnotationTask, output: Path) -> None:
    from rag_selectivity.grading.annotation.terminal import TerminalSession

    def ask(prompt: str) -> str:
        sys.stdout.write(prompt)
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line

    try:
        TerminalSession(task, output, ask, lambda text: put(text, None)).run()
    except KeyboardInterrupt:
        raise Interrupted(f"the answers up to here are in {output}; the same command goes on") from None
