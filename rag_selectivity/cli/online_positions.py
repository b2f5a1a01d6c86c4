"""`rag-selectivity online positions`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import Readable
from rag_selectivity.cli.online_join import MaxFaultsOption
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, show

EXAMPLES = (
    "rag-selectivity online positions shuffled.jsonl",
    "rag-selectivity online positions shuffled.jsonl --format csv",
)


def online_positions(
    records: Annotated[Path, typer.Argument(metavar=Readable("FILE"), help="Records of prompts, with the credit.")],
    max_faults: MaxFaultsOption = 0.01,
    level: o.LevelOption = 0.95,
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Show how often the passage at each position of the prompt is cited."""
    from rag_selectivity.online import citation_rates

    chosen_format(format, output, TABLE_FORMATS)
    show(citation_rates(records, level=level, max_faults=max_faults), format, output)
