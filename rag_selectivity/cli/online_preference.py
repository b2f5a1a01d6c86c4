"""`rag-selectivity online preference`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import Readable
from rag_selectivity.cli.online_join import MaxFaultsOption
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, show

EXAMPLES = (
    "rag-selectivity online preference records.jsonl",
    "rag-selectivity online preference records.jsonl --unit impression --any-time --format json",
)


def online_preference(
    records: Annotated[
        Path,
        typer.Argument(metavar=Readable("FILE"), help="Records of interleaved lists, as `online join` writes them."),
    ],
    baseline: Annotated[
        str | None, o.option(o.TESTS, "NAME", "System that the other is compared with (default: the first).")
    ] = None,
    unit: Annotated[
        str, o.option(o.TESTS, "NAME", "What casts a vote: user, session, impression, or auto (the widest named).")
    ] = "auto",
    any_time: Annotated[
        bool, o.flag(o.TESTS, "--any-time", "Valid however often one looks; otherwise for one look.")
    ] = False,
    margin: Annotated[
        float | None, o.option(o.TESTS, "SHARE", "Shares of wins within 1/2 ± this do not matter.")
    ] = None,
    detect: Annotated[
        float | None,
        o.option(o.TESTS, "SHARE", "Share of wins to find, as in .55: says how many units it still needs."),
    ] = None,
    power: Annotated[float, o.option(o.TESTS, "SHARE", "Power of --detect.")] = 0.8,
    weigh_positions: Annotated[
        Path | None,
        o.input_file("Records of shuffled orders: credit is weighted by the inverse of its position's rate."),
    ] = None,
    clip: Annotated[float, o.option(o.TESTS, "WEIGHT", "Largest weight of a position.")] = 10.0,
    max_faults: MaxFaultsOption = 0.01,
    level: o.LevelOption = 0.95,
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Say which of two interleaved systems got more credit."""
    from rag_selectivity.online import citation_rates, preference

    chosen_format(format, output, TABLE_FORMATS)
    rates = None if weigh_positions is None else citation_rates(weigh_positions, max_faults=max_faults)
    found = preference(
        records,
        baseline=baseline,
        unit=unit,
        sequential=any_time,
        level=level,
        margin=margin,
        detect=detect,
        power=power,
        positions=rates,
        clip=clip,
        max_faults=max_faults,
    )
    show(found, format, output)
