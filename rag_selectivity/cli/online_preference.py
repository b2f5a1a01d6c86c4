"""`rag-selectivity online preference`."""

from __future__ import annotations

from pathlib import Path

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import Readable
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, show

#: What `--help` shows.
USUAL = "records baseline unit any_time margin detect output"
EXAMPLES = (
    "rag-selectivity online preference impressions.jsonl",
    "rag-selectivity online preference impressions.jsonl --unit impression --any-time --format json",
)


def online_preference(
    records: Path = o.argument(Readable("FILE"), "Log of drafts and credits (JSONL), as `RecordLog` writes it."),
    baseline: str | None = o.option(o.TESTS, "NAME", "System that the other is compared with (default: the first)."),
    unit: str = o.option(
        o.TESTS,
        "NAME",
        "What has one vote: user, session, impression, or auto (the first of these in the records).",
        default="auto",
    ),
    any_time: bool = o.flag(
        o.TESTS, "--any-time", "Make p and the interval valid at any number of looks (default: for one look)."
    ),
    margin: float | None = o.option(
        o.TESTS, "SHARE", "Largest distance of the share of wins from 1/2 that does not matter, as in .05."
    ),
    detect: float | None = o.option(
        o.TESTS, "SHARE", "Share of wins to detect, as in .55: prints how many more units it needs."
    ),
    power: float = o.option(o.TESTS, "SHARE", "Probability with which --detect shows the share.", default=0.8),
    max_faults: float = o.option(
        o.INPUT, "SHARE", "Largest share of credits without a draft, or for passages that were not shown.", default=0.01
    ),
    level: o.LevelOption = 0.95,
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Say which of two interleaved systems got more credit."""
    from rag_selectivity.online import preference

    chosen_format(format, output, TABLE_FORMATS)
    found = preference(
        records,
        baseline=baseline,
        unit=unit,
        sequential=any_time,
        level=level,
        margin=margin,
        detect=detect,
        power=power,
        max_faults=max_faults,
    )
    show(found, format, output)
