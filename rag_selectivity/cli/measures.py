"""`rag-selectivity measures`."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.output import TABLE_FORMATS, Format, chosen_format, put, rows_text

EXAMPLES = (
    "rag-selectivity measures",
    "rag-selectivity measures BoR",
)


def measures(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Measure to explain.", show_default=False)] = None,
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """List the measures, or explain one with a worked example."""
    from rag_selectivity.measures import REGISTRY, explain, parse_measure, summary

    if name is not None:
        chosen_format(format, output, (Format.table,))
        put(explain(parse_measure(name)), output)
        return
    listed = [{"measure": cls.name, "definition": summary(cls)} for cls in REGISTRY.values()]
    chosen = chosen_format(format, output, TABLE_FORMATS)
    if chosen is Format.table:
        put("\n".join(f"{row['measure']:14} {row['definition']}" for row in listed), output)
    else:
        put(rows_text(listed, listed, chosen), output)
