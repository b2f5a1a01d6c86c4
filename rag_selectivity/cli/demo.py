"""`rag-selectivity demo`."""

import webbrowser
from pathlib import Path
from typing import Annotated

from rag_selectivity.cli.files import Writes
from rag_selectivity.cli.output import note, put, refuse_standard_output
from rag_selectivity.cli.settings import refuse_typed

_Page = Annotated[Path, Writes((".html",))]


def demo(*, output: _Page = Path("selectivity-demo.html"), write: Path | None = None, open_it: bool = False) -> None:
    """Show three retrievers, what their labels are worth, and a random draw.

    It runs offline and without a key, in less than half a minute, on 60 questions over 1,000 documentation strings of
    Python with grades by a chat model. The README.md that `--write` leaves describes these.

    Output
    ------
    output : FILE, --output, -o
        Page to write (.html).
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

        refuse_typed(("output", "open_it"), "--write only writes the sample data")
        note(f"wrote {len(write_sample(write))} files; {write / 'README.md'} says what they are")
        return
    from rag_selectivity.demo import run_demo
    from rag_selectivity.tables.writing import write_whole

    refuse_standard_output(output, "--output")
    result = run_demo()
    put(result.text(), None)
    write_whole(output, result.page)
    note(f"wrote {output}")
    if not (open_it and webbrowser.open(output.resolve().as_uri())):
        note(f"open {output} in a browser; rag-selectivity demo --write try writes the data set to try commands on")
