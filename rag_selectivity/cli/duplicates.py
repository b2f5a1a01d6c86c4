"""`rag-selectivity duplicates`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.output import note, put_rows
from rag_selectivity.wording import counted

EXAMPLES = (
    "rag-selectivity duplicates corpus.jsonl --output groups.csv",
    "rag-selectivity duplicates corpus.jsonl --threshold .6 --words 3 --output groups.jsonl",
)


def duplicates(
    corpus: Annotated[Path, typer.Argument(metavar="FILE", help="Corpus with texts: JSONL, TSV, CSV or Parquet.")],
    output: Annotated[
        Path, o.option(o.OUTPUT, "FILE", "File for the table: .csv, .jsonl or .parquet.", "--output", "-o")
    ],
    threshold: Annotated[
        float, o.option(o.MEASURES, "SHARE", "Share of common shingles from which two texts are nearly the same.")
    ] = 0.8,
    words: Annotated[int, o.option(o.MEASURES, "COUNT", "Words of a shingle, a run of words.")] = 5,
) -> None:
    """Find passages whose texts are nearly the same.

    Writes the passages that belong to a group of two or more, with the group: the table for `--groups`.
    """
    from rag_selectivity.io.groups import near_duplicates

    found = near_duplicates(corpus, threshold=threshold, words=words)
    rows = [{"passage_id": passage, "group": group} for passage, group in found.items()]
    put_rows(rows, output, ("passage_id", "group"))
    if not found:
        note("no two passages have nearly the same text: the table has no rows")
        return
    note(f"{counted(len(found), 'passage')} in {counted(len(set(found.values())), 'group')} of nearly the same text")
