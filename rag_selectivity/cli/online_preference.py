"""`rag-selectivity online preference`."""

from __future__ import annotations

from pathlib import Path

from rag_selectivity.cli import options as o


def online_preference(
    records: Path,
    *,
    baseline: str | None = None,
    unit: str = "auto",
    any_time: bool = False,
    margin: float | None = None,
    detect: float | None = None,
    power: float = 0.8,
    max_faults: float = 0.01,
    level: float = 0.95,
    printer: o.Output = o.Output(),
) -> None:
    """Say which of two interleaved systems got more credit.

    Arguments
    ---------
    records : FILE
        Log of drafts and credits (JSONL), as `RecordLog` writes it.

    Data
    ----
    max_faults : SHARE
        Share of the credits that may have no draft, or be for passages that were not shown; more are an error.

    Tests
    -----
    baseline : NAME
        System that the other is compared with (default: the first).
    unit : NAME
        What has one vote: user, session, impression, or auto (the first of these in the records).
    any_time
        Make p and the interval valid at any number of looks (default: for one look).
    margin : SHARE
        Largest distance of the share of wins from 1/2 that does not matter, as in .05.
    detect : SHARE
        Share of wins to detect, as in .55: prints how many more units it needs.
    power : SHARE
        Probability with which --detect shows the share.

    Usual options
    -------------
    records baseline unit any_time margin detect output

    Examples
    --------
    $ rag-selectivity online preference impressions.jsonl
    $ rag-selectivity online preference impressions.jsonl --unit impression --any-time --format json
    """
    from rag_selectivity.online import preference

    printer.show(
        preference(
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
    )
