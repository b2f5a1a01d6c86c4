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
    """

    grade: IntArray
    rank: IntArray

    @classmethod
    def of(cls, qrels: Qrels, origins: LabelOrigins, rows: BoolArray, listed: Hits) -> Controls:
        """The controls among the judgments, whose `rows` are bool[judgments]; `listed` are those in the run's lists."""
        rank = np.zeros(len(rows), np.int64)
        # A list may repeat a passage: the first rank counts, so the last ranks are written first.
        last_first = np.argsort(-listed.rank, kind="stable")
        rank[listed.judgment[last_first]] = listed.rank[last_first]
        by_judge = np.where(origins.judge_grade >= 0, origins.judge_grade, qrels.grade)
        return cls(qrels.query[rows], by_judge[rows], rank[rows])

    def counts(self, queries: int, threshold: int, depth: int) -> tuple[IntArray, IntArray]:
        """Graded and relevant controls of each query that are not in its top K: int64[queries] each."""
        outside = (self.rank == 0) | (self.rank > depth)
        graded = np.bincount(self.query[outside], minlength=queries)
        relevant = np.bincount(self.query[outside & (self.grade >= threshold)], minlength=queries)
        return graded.astype(np.int64), relevant.astype(np.int64)

    def notes_at(self, depth: int) -> list[str]:
        """How many controls are in the top K of their query's list."""
        listed = int(((self.rank > 0) & (self.rank <= depth)).sum())
        are = counted(listed, "control is", "controls are")
        return [f"{are} in the top {depth} of the query's list, and left out of the controls there"] if listed else []


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


def with_controls(qrels: Qrels, controls: Qrels) -> Qrels:
    """The judgments and separate controls as one Qrels, whose origins tell them apart.

    A control that the qrels judge too is left out of the controls.

    Raises
    ------
    InputError
        If there is no control, or a control is of a query that the qrels lack.
    """
    where = controls.source or "controls"
    unknown = [query for query in controls.queries if query not in qrels]
    if unknown:
        raise InputError(
            f"{where}: the qrels lack queries of the controls ({examples(unknown)}): remove these controls"
        )
    row = qrels.positions(controls.queries)[controls.query]
    new = np.flatnonzero(qrels.judgments(row, controls.passages) < 0)
    if not len(new):
        raise InputError(
            f"{where}: there are no controls that the qrels lack; draw them from the passages that are not in the "
            f"qrels, or leave them out"
        )
    known = LabelOrigins.unknown(qrels.size) if qrels.origins is None else qrels.origins
    return replace(
        qrels,
        query=np.concatenate([qrels.query, row[new]]),
        passages=[*qrels.passages, *controls.passages_at(new)],
        grade=np.concatenate([qrels.grade, controls.grade[new]]),
        lines=None,
        expected=None if qrels.expected is None else np.append(qrels.expected, np.zeros(len(new), bool)),
        levels=(*qrels.levels, *controls.levels),
        origins=known.beside(LabelOrigins.unknown(len(new), Chosen.CONTROL)),
    )
