"""`rag-selectivity golden draw`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import named_files
from rag_selectivity.cli.output import note, put_lines, refuse_standard_output
from rag_selectivity.cli.tasks import refuse_no_page, task_targets, write_tasks
from rag_selectivity.cli.writable import OF_OUTPUT

DRAW_EXAMPLES = (
    "rag-selectivity golden draw --store cheap.db --queries queries.jsonl --corpus corpus.jsonl --run bm25.trec "
    "--run dense.trec --draw calibrate:60 --output people.html",
    "rag-selectivity golden draw --store cheap.db --queries queries.jsonl --corpus corpus.jsonl --draw random:2 "
    "--annotator ada --output outside.html",
)


def golden_draw(
    store: Annotated[Path, o.option(o.INPUT, "STORE", "Label store; it keeps the draw.")],
    draw: Annotated[
        str,
        o.option(
            o.INPUT,
            "DRAW",
            "Pairs to label: disagree:N or disagree-sampled:N (judges differ), random:N "
            "or tail:LAST:N (N a query, outside of what was retrieved), or a draw of `annotate`.",
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
    run: o.OptionalRunOption = None,
    pool: Annotated[list[str] | None, o.input_file("Further lists that were retrieved. Repeat for more.")] = None,
    list_depth: o.ListDepthOption = 10,
    judge: o.JudgeOption = None,
    rubric: o.RubricOption = None,
    annotator: o.AnnotatorOption = None,
    overlap: o.OverlapOption = 0,
    repeats: o.RepeatsOption = 0.05,
    seed: o.SeedOption = 7,
) -> None:
    """Draw the pairs that people should label, and make a page for them.

    The same command after `store import` goes on with what is labelled. It says so, and writes no task, when nothing is
    left to label.
    """
    from rag_selectivity.golden.drawing import draw_tasks
    from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
    from rag_selectivity.grading.store import Store

    refuse_standard_output(output, "--output")
    refuse_no_page(output)
    with Store(store, create=False) as labels:
        drawn = draw_tasks(
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
            rubric=DEFAULT_RUBRIC if rubric is None else rubric,
            seed=seed,
        )
    targets = task_targets(output, drawn.tasks) if drawn.tasks else {}
    write_tasks(targets)
    sentences = [each.sentence for each in (drawn.outside,) if each is not None]
    for line in (*sentences, *drawn.notes):
        put_lines([line])
    for target, task in targets.items():
        pairs = len(task.drawn)
        note(f"wrote {target}: {pairs} pairs for {task.annotator}, {len(task.items) - pairs} of them twice")
    if not targets:
        note("no task was written")
