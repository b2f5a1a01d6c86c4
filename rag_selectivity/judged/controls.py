"""Random controls: passages drawn at random from the corpus and graded by the judge of the lists."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, examples
from rag_selectivity.judged.hits import Hits, Rows
from rag_selectivity.judged.origins import Chosen, LabelOrigins
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.wording import counted

BoolArray = NDArray[np.bool_]
OF_LISTS = Chosen.POOL | Chosen.TAIL


@dataclass(frozen=True, slots=True)
class Controls(Rows):
    """The random controls of a run's queries.

    Attributes
    ----------
    query, grade : int64[controls]
        The position of each control's query, and its grade by the judge.
    rank : int64[controls]
        Its first rank in the run's list; 0 if the list does not hold it.
    notes : tuple of str
        What is to be said of them.
    highest : (query, passage) or None
        The control that is highest in a list.
    """

    grade: IntArray
    rank: IntArray
    notes: tuple[str, ...] = ()
    highest: tuple[str, str] | None = None

    def counts(self, queries: int, threshold: int, depth: int) -> tuple[IntArray, IntArray]:
        """Graded and relevant controls of each query that are not in its top K: int64[queries] each."""
        outside = (self.rank == 0) | (self.rank > depth)
        graded = np.bincount(self.query[outside], minlength=queries)
        relevant = np.bincount(self.query[outside & (self.grade >= threshold)], minlength=queries)
        return graded.astype(np.int64), relevant.astype(np.int64)

    def notes_at(self, depth: int) -> list[str]:
        """The notes, with how many controls are in the top K of their query's list."""
        listed = int(((self.rank > 0) & (self.rank <= depth)).sum())
        if not listed or self.highest is None:
            return list(self.notes)
        query, passage = self.highest
        return [
            *self.notes,
            f"{counted(listed, 'control is', 'controls are')} in the top {depth} of the query's list, such as passage "
            f"{passage!r} of query {query!r}: a depth that reaches a control leaves it out of the controls",
        ]


def control_rows(qrels: Qrels) -> BoolArray | None:
    """The judgments that are controls and nothing else; None if there are none.

    A passage that was graded as a part of a list too is a label.
    """
    if qrels.origins is None:
        return None
    rows = qrels.origins.are(Chosen.CONTROL) & ~qrels.origins.are(OF_LISTS)
    return rows if rows.any() else None


def without_controls(qrels: Qrels) -> Qrels:
    """The judgments without the random controls; all queries stay."""
    rows = control_rows(qrels)
    return qrels if rows is None else qrels.only(~rows)


def with_controls(qrels: Qrels, controls: Qrels) -> tuple[Qrels, tuple[str, ...]]:
    """The judgments and separate controls as one Qrels, whose origins tell them apart; and notes.

    A control that the qrels judge too is left out of the controls, and a note names one.

    Raises
    ------
    InputError
        If there is no control, or a control is of a query that the qrels lack.
    """
    where = controls.source or "controls"
    if not len(controls.query):
        raise InputError(f"{where}: there are no controls; leave them out, or give graded passages")
    unknown = [query for query in controls.queries if query not in qrels]
    if unknown:
        raise InputError(
            f"{where}: {counted(len(unknown), 'query of the controls is', 'queries of the controls are')} not in the "
            f"qrels ({examples(unknown)}): remove them"
        )
    position = np.array([qrels.position(query) for query in controls.queries], np.int64)
    row = position[controls.query]
    known_already = qrels.judgments(row, controls.passages) >= 0
    twice, new = np.flatnonzero(known_already), np.flatnonzero(~known_already)
    notes: tuple[str, ...] = ()
    for i in twice[:1].tolist():
        notes = (
            f"{counted(len(twice), 'control is', 'controls are')} in the qrels too, and left out of the controls, such "
            f"as passage {controls.passages[i]!r} of query {qrels.queries[row[i]]!r}: draw controls from the passages "
            f"that are not in the qrels",
        )
    if not len(new):
        raise InputError(
            f"{where}: all {len(row)} controls are in the qrels too, such as passage {controls.passages[0]!r} of query "
            f"{qrels.queries[row[0]]!r}: draw them from the passages that are not in the qrels"
        )
    known = LabelOrigins.unknown(qrels.size) if qrels.origins is None else qrels.origins
    joined = replace(
        qrels,
        query=np.concatenate([qrels.query, row[new]]),
        passages=[*qrels.passages, *controls.passages_at(new)],
        grade=np.concatenate([qrels.grade, controls.grade[new]]),
        lines=None,
        expected=None if qrels.expected is None else np.append(qrels.expected, np.zeros(len(new), bool)),
        levels=(*qrels.levels, *controls.levels),
        origins=known.beside(LabelOrigins.unknown(len(new), Chosen.CONTROL)),
    )
    return joined, notes


def controls_of(qrels: Qrels, rows: BoolArray, listed: Hits, threshold: int, notes: tuple[str, ...]) -> Controls:
    """The controls among the judgments.

    Parameters
    ----------
    qrels : Qrels
    rows : bool[judgments]
        The controls.
    listed : Hits
        The controls that the run lists.
    threshold : int
        The lowest relevant grade.
    notes : tuple of str
    """
    origins = qrels.origins
    if origins is None:
        raise InputError("controls need the origins of the judgments: read them from a label store")
    chosen = np.flatnonzero(rows)
    by_judge = np.where(origins.judge_grade >= 0, origins.judge_grade, qrels.grade)
    rank = np.zeros(len(rows), np.int64)
    # A list may repeat a passage: the first rank counts, so the last ranks are written first.
    last_first = np.argsort(-listed.rank, kind="stable")
    rank[listed.judgment[last_first]] = listed.rank[last_first]
    by_people = chosen[origins.by_person[chosen] & (qrels.grade[chosen] >= threshold)]
    for first in by_people[:1].tolist():
        notes = (
            *notes,
            f"{counted(len(by_people), 'control')} {'was' if len(by_people) == 1 else 'were'} judged relevant by "
            f"people, such as passage {qrels.passages[first]!r} of query {qrels.queries[qrels.query[first]]!r}; it "
            f"stays a control, with the judge's grade if there is one",
        )
    highest = None
    if len(listed.rank):
        first = int(listed.judgment[np.argmin(listed.rank)])
        highest = qrels.queries[qrels.query[first]], qrels.passages[first]
    return Controls(qrels.query[chosen], by_judge[chosen], rank[chosen], notes, highest)
