"""Judgments with origins, split into the labels and the random controls, which are never mixed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.grades import scale_named
from rag_selectivity.data.ids import IntArray
from rag_selectivity.data.origins import NO_GRADE, Chosen
from rag_selectivity.data.qrels import Qrels, pair_keys
from rag_selectivity.data.run import Run


@dataclass(frozen=True, slots=True)
class SplitLabels:
    """The labels without the controls, and the controls.

    Attributes
    ----------
    labels : Qrels
        All judgments but the controls. Its queries are those of all judgments.
    controls : Qrels or None
        The judge's grades of the passages drawn from the corpus, with the same queries; None if there are none.
    in_lists : int
        Controls that are in a list, so that they are labels like others.
    relevant_to_people : int
        Controls that a person judged relevant. They stay controls, with the judge's grade.
    without_judge : int
        Controls that no judge graded. They are in neither part.
    remarks : tuple of str
        What was noticed, in words, each with an example.
    """

    labels: Qrels
    controls: Qrels | None
    in_lists: int = 0
    relevant_to_people: int = 0
    without_judge: int = 0
    remarks: tuple[str, ...] = ()


def split_controls(qrels: Qrels, runs: Iterable[Run] = (), *, rel: int | None = None) -> SplitLabels:
    """Split judgments with origins into the labels and the controls.

    A control was drawn from the passages outside all lists of its query. One that is in the top ranks or the tail of a
    run that was graded, or in a list of `runs`, is no control any more: it is a label, and counted.

    Parameters
    ----------
    qrels : Qrels
        Without `origins`, all judgments are labels.
    runs : iterable of Run
        The runs to evaluate, with ids in the form of the judgments.
    rel : int, optional
        The lowest relevant grade; default: that of the scale of the judgments.

    Examples
    --------
    >>> split = split_controls(Qrels.from_dict({"q": {"d": 5}}))
    >>> split.labels.to_dict(), split.controls
    ({'q': {'d': 5}}, None)
    """
    origins = qrels.origins
    if origins is None or not origins.are(Chosen.CONTROL).any():
        return SplitLabels(qrels, None)
    drawn = origins.are(Chosen.CONTROL)
    listed = drawn & (origins.are(Chosen.POOL) | origins.are(Chosen.TAIL))
    for run in runs:
        listed[_rows_in(qrels, run)] = True
    listed &= drawn
    controls = drawn & ~listed
    relevant_from = scale_named(qrels.scale or "trec").relevant_from if rel is None else rel
    relevant = controls & origins.by_person & (qrels.grade >= relevant_from)
    without_judge = controls & (origins.judge_grade == NO_GRADE)
    graded = controls & ~without_judge
    remarks = (
        *_remark(
            qrels,
            listed,
            "drawn as {controls} {are} in a list of {their} query now, and {count} as {labels}: controls must come "
            "from outside all lists. Draw controls again, with all runs as pools",
        ),
        *_remark(
            qrels,
            relevant,
            "drawn as {controls} {were} judged relevant by people: so the corpus holds relevant passages outside the "
            "lists. The judge's grade counts for the controls",
        ),
        *_remark(qrels, without_judge, "drawn as {controls} {have} no grade of a judge, and {are} left out"),
    )
    return SplitLabels(
        qrels.subset(~controls),
        qrels.subset(graded, origins.judge_grade[graded]) if graded.any() else None,
        in_lists=int(listed.sum()),
        relevant_to_people=int(relevant.sum()),
        without_judge=int(without_judge.sum()),
        remarks=remarks,
    )


def _rows_in(qrels: Qrels, run: Run) -> IntArray:
    """The judgments of passages that are in the list of their query."""
    lengths = np.diff(run.offsets)
    query = np.repeat(qrels.positions(list(run.queries)), lengths)
    _, judgments = qrels.lookup(pair_keys(query, run.passages), query, run.passages)
    return judgments


def _remark(qrels: Qrels, rows: NDArray[np.bool_], text: str) -> tuple[str, ...]:
    """What concerns some rows, with their number and an example; nothing if there are none."""
    count = int(rows.sum())
    if not count:
        return ()
    row = int(np.flatnonzero(rows)[0])
    one = count == 1
    words = {
        "controls": "a control" if one else "controls",
        "labels": "a label" if one else "labels",
        "are": "is" if one else "are",
        "were": "was" if one else "were",
        "have": "has" if one else "have",
        "their": "its" if one else "their",
        "count": "counts" if one else "count",
    }
    passages = "1 passage" if one else f"{count:,} passages"
    example = f"query {qrels.queries[qrels.query[row]]!r}, passage {qrels.passages[row]!r}"
    return (f"{passages} {text.format(**words)} (for example {example})",)
