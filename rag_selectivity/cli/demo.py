"""`rag-selectivity demo`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

from rag_selectivity.cli import options as o
from rag_selectivity.cli.output import note, put, refuse_standard_output
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity demo",
    "rag-selectivity demo --output shown --quiet",
)


def demo(
    output: Annotated[
        Path,
        o.option(o.OUTPUT, "FOLDER", "Folder for the page, the JSON and the plot.", "--output", "-o"),
    ] = Path("selectivity-demo"),
    open_it: Annotated[bool, o.option(o.OUTPUT, "", "Open the page in the browser.", "--open")] = False,
) -> None:
    """Show three retrievers, what their labels are worth, and a random draw.

    It runs on the sample data set, offline and without a key, in less than half a minute.
    """
    from rag_selectivity.demo import run_demo, save_demo
    from rag_selectivity.tables.writing import refuse_unwritable_folder

    refuse_standard_output(output, "--output is a folder and")
    if output.exists() and not output.is_dir():
        raise InputError(f"--output {output} is a file: give a folder for the page, the figures and the plot")
    refuse_unwritable_folder(output)
    result = run_demo()
    put(result.text(), None)
    page, *others = save_demo(result, output)
    for path in (page, *others):
        note(f"wrote {path}")
    if not (open_it and webbrowser.open(page.resolve().as_uri())):
        note(f"open {page} in a browser; rag-selectivity sample try writes the data set to try commands on")
