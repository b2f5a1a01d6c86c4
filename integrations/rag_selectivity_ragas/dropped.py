"""Rows that an experiment was asked and does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragas.experiment import Experiment

from rag_selectivity.errors import examples
from rag_selectivity_ragas.samples import Row, asked_rows


def as_asked(rows: Sequence[Row], asked: Any, id_column: str | None) -> tuple[list[Row], list[Row]]:
    """The rows in the order in which they were asked, and those of what was asked that they lack.

    An experiment has them in the order in which they ended; intervals rest on the order.
    """
    if asked is None:
        return list(rows), []
    wanted = asked_rows(asked, id_column=id_column)
    place = {row.key: i for i, row in enumerate(wanted)}
    present = {row.key for row in rows}
    ordered = sorted(rows, key=lambda row: place.get(row.key, len(place)))
    return ordered, [row for row in wanted if row.key not in present]


def notes_on_dropped(dataset: Any, dropped: Sequence[Row], asked: Any) -> list[str]:
    """What a report says of them."""
    if dropped:
        return [
            f"{len(dropped):,} samples were asked and have no row, as an experiment drops rows that fail; the first "
            f"are {examples(row.query for row in dropped)}"
        ]
    if asked is None and isinstance(dataset, Experiment):
        return ["an experiment drops rows that fail: give asked=dataset, so that they count"]
    return []
