"""`rag-selectivity explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import Readable
from rag_selectivity.cli.output import Format, chosen_format, put

EXAMPLES = (
    "rag-selectivity explain before.json",
    "rag-selectivity explain before.json RA-nWG@3 --run bm25 --format markdown",
)
_FORMATS = (Format.table, Format.markdown)


def explain(
    report: Annotated[
        Path,
        typer.Argument(
            metavar=Readable("REPORT"), help="Report saved as JSON, as `evaluate -o report.json` writes it."
        ),
    ],
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIGURE", help="Figures to explain, as in BoR@10 or BoR (default: all)."),
    ] = None,
    run: Annotated[str | None, o.option(o.INPUT, "NAME", "Run whose figures are explained (default: all).")] = None,
    format: Annotated[
        Format | None, o.option(o.OUTPUT, "FORMAT", "Format: table (default: text), or markdown.", "--format")
    ] = None,
    output: Annotated[Path | None, o.output_file(".txt", ".md")] = None,
) -> None:
    """Explain the figures of a stored report in words.

    Each comes with its formula and the numbers put in, its interval, its limits and its caveats. A stored report does
    not hold what the figures of single queries are made of: `evaluate --explain` shows it too.
    """
    show_in_words(report, format, output, figures or (), run)


def show_in_words(
    report: Any, format: Format | None, output: Path | None, figures: Any = (), run: str | None = None
) -> None:
    """Print the figures of a report in words, or write them to a file."""
    from rag_selectivity.explain import explain as explained

    chosen = chosen_format(format, output, _FORMATS)
    words = explained(report, figures, run)
    put(words.to_markdown() if chosen is Format.markdown else words.to_text(), output)
