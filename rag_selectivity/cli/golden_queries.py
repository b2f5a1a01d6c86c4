"""`rag-selectivity golden queries`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import Readable
from rag_selectivity.cli.output import note, put, put_rows
from rag_selectivity.cli.writable import OF_TABLE
from rag_selectivity.wording import counted

QUERIES_EXAMPLES = (
    "rag-selectivity golden queries trace.jsonl --output golden.jsonl",
    "rag-selectivity golden queries queries.jsonl --group ngrams --size 20 --by length --output golden.jsonl",
)


def golden_queries(
    source: Annotated[
        Path,
        typer.Argument(
            metavar=Readable("FILE"), help="Trace, OTLP spans, JSONL, CSV, TSV, Parquet, or a question on each line."
        ),
    ],
    group: Annotated[str, o.option(o.INPUT, "NAME", "What counts as the same question: exact or ngrams.")] = "exact",
    threshold: Annotated[
        float | None,
        o.option(o.INPUT, "SHARE", "Least similarity of a group by ngrams (default: .6)."),
    ] = None,
    size: Annotated[int | None, o.option(o.INPUT, "COUNT", "Queries to draw (default: all).")] = None,
    by: Annotated[
        str | None, o.option(o.INPUT, "NAME", "Stratify by a column of the file, by length or by frequency.")
    ] = None,
    seed: o.SeedOption = 7,
    output: Annotated[
        Path | None,
        o.option(
            o.OUTPUT, OF_TABLE, "File to write: .csv, .jsonl or .parquet. Default: standard output.", "--output", "-o"
        ),
    ] = None,
) -> None:
    """Make an evaluation set from the questions that users asked.

    Writes one query a line with its weight: how many questions of the traffic it stands for.
    """
    from rag_selectivity.golden import queries
    from rag_selectivity.tables.writing import json_text

    found = queries(source, group=group, threshold=threshold, size=size, by=by, seed=seed)
    rows = found.to_rows()
    if output is None or str(output) == "-":
        put("\n".join(json_text(row, None) for row in rows), None, is_data=True)
    else:
        put_rows(rows, output)
    left_out = f"; {counted(found.empty, 'row')} without a text left out" if found.empty else ""
    note(
        f"{counted(found.asked, 'question')}, {counted(found.forms, 'different text')}, "
        f"{counted(found.groups, 'group')}: {counted(len(found), 'query', 'queries')}{left_out}"
    )
