"""The options by which queries are sliced and weighted."""

from __future__ import annotations

from typing import Annotated

from rag_selectivity.cli.options import MEASURES, input_file

ByOption = Annotated[
    list[str] | None,
    input_file(
        "Figures for groups of queries: table of query_id and columns (FILE, or FILE:COLUMN for one of them), n5 "
        "(decisive passages, grade 5) or R (relevant passages). Repeat for more.",
        MEASURES,
    ),
]
WeightsOption = Annotated[
    str | None,
    input_file(
        "Weight of each query in every figure: table of query_id and weight, as `golden queries` writes it (FILE, or "
        "FILE:COLUMN).",
        MEASURES,
    ),
]
