"""`rag-selectivity agree`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import named_files
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, show

EXAMPLES = (
    "rag-selectivity agree --human scripted.qrels --labels labels.db",
    "rag-selectivity agree --human scripted.qrels --labels labels.db --run bm25.trec --run dense.trec",
)


def agree(
    labels: Annotated[Path, o.input_file("Labels by the judge: a label store, or qrels.")],
    human: Path | None = o.input_file(
        "Labels by people: qrels, or a label store (default: the first of two --judge of --labels)."
    ),
    judge: list[str] | None = o.option(
        o.INPUT,
        "NAME",
        "Judge or person of a label store whose labels count. Two without --human are compared. Repeat for more.",
        "--judge",
    ),
    grade_map: str | None = o.option(o.INPUT, "MAP", "New grade for each grade of --human, as in 0:1,1:3,2:4,3:5."),
    labels_grade_map: str | None = o.option(o.INPUT, "MAP", "New grade for each grade of --labels."),
    scale: str = o.option(o.INPUT, "NAME", "Scale of the grades: trec or utility (1 to 5).", default="utility"),
    run: list[str] | None = o.input_file(
        "Run that the judge ranks against the others: FILE or NAME=FILE. Repeat for each."
    ),
    list_depth: int | None = o.option(
        o.INPUT, "K", "Ranks of each run that count as its list (default: 10, or all of fewer)."
    ),
    corpus: o.PassageTextsOption = None,
    intervals: o.Intervals = o.Intervals(),
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Compare a judge's labels with people's labels.

    With `--run` twice or more, say of every two runs whether the judge ranks them as people do.
    Without `--human`, two `--judge` of a label store are compared with each other; its people are judges too.
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
        bootstrap=intervals.bootstrap(),
    )
    show(result, format, output)
