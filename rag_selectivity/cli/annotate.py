"""`rag-selectivity annotate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import named_files
from rag_selectivity.cli.output import note, put_lines, refuse_standard_output
from rag_selectivity.cli.writable import OF_OUTPUT
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity annotate --store cheap.db --queries queries.jsonl --corpus corpus.jsonl --run bm25.trec "
    "--draw calibrate:20 --output task.html",
    "rag-selectivity annotate --store cheap.db --queries queries.jsonl --corpus corpus.jsonl --draw agree:20 "
    "--annotator ada --annotator ben --overlap 5 --output shared.html",
)


def annotate(
    store: Annotated[Path, o.option(o.INPUT, "STORE", "Label store with the judge's grades; it keeps the draw.")],
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
    run: o.OptionalRunOption = None,
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
    repeats: float = o.option(
        o.INPUT, "SHARE", "Share of the pairs that comes twice, for agreement with oneself.", default=0.05
    ),
    seed: o.SeedOption = 7,
) -> None:
    """Make a page on which people label pairs.

    The page is one file that works without a network. It shows neither the judge's grades nor where a passage comes
    from. `store import` takes the file of answers that it saves; the same command then goes on with what is labelled,
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
        pairs = len(task.drawn)
        again = len(task.items) - pairs
        note(f"wrote {target}: {pairs} pairs for {task.annotator}, {again} of them twice (task {task.id})")
    if not targets:
        note("no task was written")
