"""`rag-selectivity demo`."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from rag_selectivity.cli.output import note, put, refuse_standard_output
from rag_selectivity.errors import InputError


def demo(*, output: Path | None = None, write: Path | None = None, open_it: bool = False) -> None:
    """Show three retrievers, what their labels are worth, and a random draw.

    It runs on the sample data set, offline and without a key, in less than half a minute: 60 questions over 1,000
    documentation strings of Python, three runs, and grades by a chat model. The README.md that `--write` leaves says
    what is known about the labels.

    Output
    ------
    output : FOLDER, --output, -o
        Folder for the page, the JSON and the plot (default: selectivity-demo).
    write : FOLDER
        Only write the sample data, to try commands on, to this new or empty folder.
    open_it : --open
        Open the page in the browser.

    Examples
    --------
    $ rag-selectivity demo
    $ rag-selectivity demo --write try
    """
    if write is not None:
        from rag_selectivity.sample import write_sample

        if output is not None or open_it:
            raise InputError("--write only writes the sample data: leave --output and --open out")
        written = write_sample(write)
        note(f"wrote {len(written)} files; {write / 'README.md'} says what they are")
        return
    from rag_selectivity.demo import run_demo, save_demo
    from rag_selectivity.tables.writing import refuse_unwritable_folder

    output = output or Path("selectivity-demo")
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
        note(f"open {page} in a browser; rag-selectivity demo --write try writes the data set to try commands on")
