"""`rag-selectivity online join`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import Readable
from rag_selectivity.cli.output import note, put
from rag_selectivity.cli.writable import Writable
from rag_selectivity.wording import counted

EXAMPLES = (
    "rag-selectivity online join impressions.jsonl --output joined.jsonl",
    "rag-selectivity online join impressions.jsonl --max-faults 0 --output strict.jsonl",
)

RecordsOption = Annotated[
    Path | None,
    o.option(
        o.OUTPUT,
        Writable.by_suffix(".jsonl", ".json", ".ndjson", ".txt"),
        "File of JSON lines to write. Default: standard output.",
        "--output",
        "-o",
    ),
]
MaxFaultsOption = Annotated[
    float, o.option(o.INPUT, "SHARE", "Largest share of credits without a draft, or for passages that were not shown.")
]


def online_join(
    logs: Annotated[list[Path], typer.Argument(metavar=Readable("FILE"), help="Logs of drafts and credits (JSONL).")],
    max_faults: MaxFaultsOption = 0.01,
    remember: Annotated[
        int, o.option(o.INPUT, "COUNT", "Largest number of impressions kept in memory to wait for late credit.")
    ] = 200_000,
    output: RecordsOption = None,
) -> None:
    """Join drafts and late credit into one record for each impression."""
    from rag_selectivity.online import join_records
    from rag_selectivity.tables.writing import json_line, write_whole

    joined = join_records(logs, remember=remember, max_faults=max_faults)
    written = 0
    if output is None or str(output) == "-":
        lines = [json_line(row) for row in joined]
        written = len(lines)
        put("\n".join(lines), None, is_data=True)
    else:

        def write(file: object) -> None:
            nonlocal written
            for row in joined:
                file.write(f"{json_line(row)}\n".encode())  # type: ignore[attr-defined]
                written += 1

        write_whole(output, write)
    note(f"{counted(written, 'record')} with {counted(joined.faults.credits, 'credit')}")
    for line in joined.faults.notes():
        note(line)
