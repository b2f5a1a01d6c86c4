"""Rows that an experiment was asked and does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragas.experiment import Experiment

from rag_selectivity.errors import examples
from rag_selectivity_ragas.samples import Row, asked_rows


def dropped_rows(rows: Sequence[Row], asked: Any, id_column: str | None) -> list[Row]:
    """The rows of what was asked that the rows lack, by their keys."""
    if asked is None:
        return []
    present = {row.key for row in rows}
    return [row for row in asked_rows(asked, id_column=id_column) if row.key not in present]


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
