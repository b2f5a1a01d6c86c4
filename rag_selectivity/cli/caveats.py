"""`rag-selectivity caveats`."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.output import TABLE_FORMATS, Format, chosen_format, put, rows_text

EXAMPLES = (
    "rag-selectivity caveats",
    "rag-selectivity caveats closed-labels",
)


def caveats(
    code: Annotated[str | None, typer.Argument(metavar="CODE", help="Code to explain.", show_default=False)] = None,
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """List the codes of caveats and warnings, or explain one.

    What it means, when it appears, what to do, and an example.
    """
    from rag_selectivity.explain.codes import all_codes, code_named

    if code is not None:
        chosen_format(format, output, (Format.table,))
        put(str(code_named(code)), output)
        return
    listed = [
        {"code": each.name, "kind": each.kind, "levels": ", ".join(each.levels), "meaning": each.sentence}
        for each in all_codes().values()
    ]
    chosen = chosen_format(format, output, TABLE_FORMATS)
    if chosen is Format.table:
        put("\n".join(f"{row['code']} ({row['levels']})\n  {row['meaning']}" for row in listed), output)
    else:
        put(rows_text(listed, listed, chosen), output)
