"""`rag-selectivity sample`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_selectivity.cli.output import note

EXAMPLES = (
    "rag-selectivity sample try",
    "rag-selectivity sample tried/twice --quiet",
)


def sample(
    folder: Annotated[Path, typer.Argument(help="New or empty folder.", metavar="FOLDER", show_default=False)],
) -> None:
    """Write a small data set to try every command on.

    60 questions over 1,000 documentation strings of Python, three runs, and grades by a chat model. Its README.md says
    what is known about the labels.
    """
    from rag_selectivity.sample import write_sample

    written = write_sample(folder)
    note(f"wrote {len(written)} files; {folder / 'README.md'} says what they are")
