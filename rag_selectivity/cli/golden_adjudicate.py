"""`rag-selectivity golden adjudicate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import clusters_of
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, note, put, refuse_standard_output, rows_text
from rag_selectivity.cli.tasks import OF_TASK, refuse_no_page, write_tasks
from rag_selectivity.cli.writable import OF_OUTPUT
from rag_selectivity.errors import InputError
from rag_selectivity.wording import counted

ADJUDICATE_EXAMPLES = (
    "rag-selectivity golden adjudicate --store people.db",
    "rag-selectivity golden adjudicate --store people.db --queries queries.jsonl --corpus corpus.jsonl "
    "--adjudicator cy --task adjudicate.html",
)


def golden_adjudicate(
    store: Annotated[Path, o.option(o.INPUT, "STORE", "Label store with the labels of two people or more.")],
    annotator: Annotated[
        list[str] | None, o.option(o.INPUT, "NAME", "People to compare (default: all). Repeat for more.")
    ] = None,
    at_least: Annotated[
        int, o.option(o.INPUT, "GRADES", "Least difference between two grades that counts as a disagreement.")
    ] = 1,
    queries: o.QueryTextsOption = None,
    corpus: o.PassageTextsOption = None,
    rubric: o.RubricOption = None,
    adjudicator: Annotated[
        str, o.option(o.INPUT, "NAME", "Who decides; a name that graded none of the pairs.")
    ] = "adjudicator",
    task: Annotated[Path | None, o.option(o.OUTPUT, OF_OUTPUT, OF_TASK)] = None,
    resamples: Annotated[
        int, o.option(o.INTERVALS, "COUNT", "Bootstrap resamples: random weights of the queries.")
    ] = 5000,
    seed: o.SeedOption = 7,
    level: o.LevelOption = 0.95,
    clusters: o.ClustersOption = None,
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Compare annotators, and have their disagreements decided.

    Prints kappa and Krippendorff's alpha with intervals. With --task, the pairs with different grades become a task of
    their own; after `store import` of its answers, the adjudicated grade is the label of the pair. The store keeps the
    others.
    """
    from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
    from rag_selectivity.grading.store import Store
    from rag_selectivity.people.annotators import adjudication_task, annotator_agreement

    chosen = chosen_format(format, output, TABLE_FORMATS)
    bootstrap = rs.Bootstrap(resamples, seed, level, clusters=clusters_of(clusters))
    if task is None and (queries is not None or corpus is not None):
        raise InputError("--queries and --corpus are for the task: name its file with --task")
    with Store(store, read_only=task is None, create=False) as labels:
        found = annotator_agreement(labels, annotator, at_least=at_least, bootstrap=bootstrap)
        made = None
        if task is not None:
            refuse_standard_output(task, "--task")
            refuse_no_page(task)
            made = adjudication_task(
                labels,
                found,
                queries=queries,
                corpus=corpus,
                adjudicator=adjudicator,
                rubric=DEFAULT_RUBRIC if rubric is None else rubric,
                seed=seed,
            )
            if made is not None:
                write_tasks({task: made})
    put(rows_text(found.to_dict(), found.to_rows(), chosen), output)
    for line in found.lines():
        note(line)
    if made is not None and task is not None:
        note(f"wrote {task}: {counted(len(made.drawn), 'pair')} for {made.annotator} (task {made.id})")
    elif task is not None:
        note("no task was written, since no disagreement is left")
