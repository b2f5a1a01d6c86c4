"""Calibrated figures of a plan, and what a report says of the labels that they rest on."""

from __future__ import annotations

from collections.abc import Mapping

from rag_selectivity.trust.calibrated import (
    DRAWS,
    Calibrated,
)
from rag_selectivity.trust.ground import Ground
from rag_selectivity.wording import counted


def calibrated_by(ground: Ground) -> str:
    """How many labels by people figures are calibrated by, in words."""
    number, queries = ground.people
    return f"calibrated by {counted(number, 'label')} of people on {counted(queries, 'query', 'queries')}"


def controls_left_out(ground: Ground) -> str:
    """That calibrated figures do not use the random controls; empty if there are none."""
    controls = len(ground.labels.query) - len(ground.counted)
    if not controls:
        return ""
    which = counted(controls, "random control is", "random controls are")
    if ground.labelled_controls:
        return f"{which} not used, nor are people's labels of {ground.labelled_controls:,} of them"
    return f"{which} not used, since only the judge graded them"


def notes_on_people(ground: Ground, figures: Mapping[str, Calibrated]) -> list[str]:
    """What a report says of the labels by people."""
    notes = [
        f"{calibrated_by(ground)}, by the judge's grade and the place in the lists, over {DRAWS} completions; figures "
        f"of single queries are as judged"
    ]
    settling = int((ground.settling >= 0).sum())
    if settling:
        notes.append(f"{counted(settling, 'further label')} of people settle queries one by one")
    rough = [key for key, figure in figures.items() if figure.rough]
    if rough:
        notes.append(
            f"rough: {', '.join(rough)}: most queries have fewer than two relevant passages, and the interval can be "
            f"too narrow"
        )
    undefined: dict[str, list[str]] = {}
    for key, figure in figures.items():
        if figure.reason is not None:
            undefined.setdefault(figure.reason, []).append(key)
    return notes + [f"no calibrated figure for {', '.join(keys)}: {reason}" for reason, keys in undefined.items()]
