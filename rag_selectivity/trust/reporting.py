"""Calibrated figures of a plan, and what a report says of the labels that they rest on."""

from __future__ import annotations

from collections.abc import Mapping

from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.plan import Plan
from rag_selectivity.trust.calibrated import (
    DRAWS,
    Calibrated,
    Completed,
    Sampling,
    calibrated_figures,
    figures_with_tails,
)
from rag_selectivity.trust.ground import Ground
from rag_selectivity.wording import counted

#: What a grade cannot change.
WITHOUT_GRADES = ("Judged",)


def sampling_of(bootstrap: Bootstrap | None) -> Sampling:
    """How completions are drawn for a bootstrap's level, seed and clusters."""
    if bootstrap is None:
        return Sampling()
    return Sampling(level=bootstrap.level, seed=bootstrap.seed, units=bootstrap.units)


def calibrated_by_run(
    ground: Ground,
    judged: Mapping[str, JudgedRun],
    plan: Plan,
    bootstrap: Bootstrap | None,
    parts: Mapping[str, JudgedRun] | None = None,
    completed: Completed | None = None,
) -> dict[str, dict[str, Calibrated]]:
    """The calibrated figures of every run, or of its `parts` over the queries of a slice."""
    served = [(measure, at) for measure, at in plan if measure.name not in WITHOUT_GRADES]
    return calibrated_figures(ground, judged, served, sampling_of(bootstrap), parts, completed)


def tails_by_run(
    ground: Ground,
    judged: Mapping[str, JudgedRun],
    plan: Plan,
    first: int,
    bootstrap: Bootstrap | None,
    parts: Mapping[str, JudgedRun] | None = None,
    completed: Completed | None = None,
) -> dict[str, dict[str, Calibrated]]:
    """The figures of every run that other labels bear on, with the tails from rank `first` on completed.

    These compare a list with all labels, or leave out the queries without a relevant one (Success). Figures against a
    random draw rest on the controls instead, where there are any. `parts` are the runs over the queries of a slice.
    """
    controlled = any(run.controls is not None for run in judged.values())
    served = [
        (measure, at)
        for measure, at in plan
        if (measure.compares_with_all_labels or isinstance(measure, Success))
        and measure.higher_is_better is not None
        and not (controlled and measure.needs_corpus_size)
    ]
    return figures_with_tails(ground, judged, served, first, sampling_of(bootstrap), parts, completed)


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
