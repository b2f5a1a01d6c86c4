"""`rag-selectivity demo`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from rag_selectivity.cli import options as o
from rag_selectivity.cli.output import SETTINGS, note, put, refuse_standard_output, table_text

EXAMPLES = (
    "rag-selectivity demo",
    "rag-selectivity demo --output demo --quiet",
)


def demo(
    output: Annotated[
        Path,
        o.option(o.OUTPUT, "FOLDER", "Folder for the JSON and the plot.", "--output", "-o"),
    ] = Path(),
) -> None:
    """Show the 99 % success paradox on Python's own docstrings.

    The retriever is BM25. The demo runs offline, without a key, and takes a few seconds.
    """
    from rag_selectivity.demo import run_demo, save_demo

    refuse_standard_output(output, "--output is a folder and")
    result = run_demo(progress=sys.stderr.isatty() and not SETTINGS.quiet)
    put("\n\n".join([table_text(result.sparse), table_text(result.dense), result.meaning()]), None)
    for path in save_demo(result, output):
        note(f"wrote {path}")
