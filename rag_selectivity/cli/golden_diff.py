"""`rag-selectivity golden diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.output import Format, chosen_format, json_rows, put

DIFF_EXAMPLES = (
    "rag-selectivity golden diff faq",
    "rag-selectivity golden diff faq/v1 faq/v2 --format json",
)


def golden_diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Set, or version of one.")],
    new: Annotated[
        Path | None,
        typer.Argument(
            metavar="NEW",
            help="Set or version to compare with. Default: compare the newest version of OLD with the one before.",
        ),
    ] = None,
    judge: o.JudgeOption = None,
    format: o.TextOrJsonOption = None,
    output: o.TextOrJsonOutputOption = None,
) -> None:
    """Show what changed between two versions of a golden set."""
    from rag_selectivity.golden import diff
    from rag_selectivity.golden.render import difference_blocks
    from rag_selectivity.render.blocks import text_of

    chosen = chosen_format(format, output, (Format.table, Format.json))
    found = diff(old, new, judges=judge)
    put(json_rows(found.to_dict()) if chosen is Format.json else text_of(difference_blocks(found), ruled=False), output)
