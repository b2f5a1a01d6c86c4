"""By which id the labels know the passages of rows, and what is doubtful about it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from rag_selectivity import InputError
from rag_selectivity.errors import SelectivityWarning, examples
from rag_selectivity.single import ChosenIdentity, Labels, as_text_id, choose_identity, text_id
from rag_selectivity.tables.matching import labels_found
from rag_selectivity_ragas.samples import IDS, TEXT, Row

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class IdentifiedRows:
    """Rows whose passages go by the ids of the labels; `chosen` if other ids than the given ones were taken."""

    rows: Sequence[Row]
    chosen: ChosenIdentity | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """How passages are known, as plain data for a report."""
        taken = {"taken": IDS} if self.chosen is None else self.chosen.facts
        return {"identity": {**taken, "rows": len(self.rows), "rows_by_text": sum(row.by_text for row in self.rows)}}

    def notes(self) -> list[str]:
        """What a reader of the figures should know of it."""
        if self.chosen is not None:
            return [self.chosen.line]
        by_text = sum(row.by_text for row in self.rows)
        if not by_text:
            return []
        return [f"{by_text:,} of {len(self.rows):,} samples have no retrieved_context_ids: their passages go by texts"]

    def doubts(self, grades: Mapping[str, Mapping[str, int]], name: str) -> list[str]:
        """Rows by text of which no text has a label, while those of others have; a warning if they are most.

        Raises
        ------
        InputError
            If not one text of any row has a label.
        """
        labelled = [row for row in self.rows if row.by_text and grades.get(row.key)]
        lost = [row for row in labelled if row.passages and not set(row.passages) & set(grades[row.key])]
        if not lost:
            return []
        shown = examples(text[:60] for row in lost for text in row.texts or ())
        if not any(set(row.passages) & set(grades[row.key]) for row in labelled):
            raise InputError(
                f"the samples have no retrieved_context_ids, and not one retrieved text has a label; retrieved were "
                f"{shown}: give the ids, or labels whose passages are the very texts"
            )
        doubt = (
            f"{len(lost):,} of {len(labelled):,} samples without retrieved_context_ids hold no text that has a label "
            f"(the first is sample {lost[0].number}, {lost[0].user_input!r}; retrieved were {shown}): they count as "
            f"lists without evidence; if their texts were cut anew, give ids"
        )
        if 2 * len(lost) > len(labelled):
            warnings.warn(SelectivityWarning(f"{name}: {doubt}", "ids-partly-match"), stacklevel=3)
        return [doubt]


def identified(rows: Sequence[Row], labels: Labels | None, identity: str = AUTO) -> IdentifiedRows:
    """The rows with their passages known by the ids of the labels.

    Ids stay where they find as many labels as the texts and the columns with an id for each passage. Else the labels
    choose, as `rag_selectivity.single.choose_identity` says.

    Raises
    ------
    InputError
        If the labels cannot tell, or a row does not have the identity that was asked for.
    """
    if identity != AUTO:
        return IdentifiedRows([row.by(identity) for row in rows])
    rows = [_by_own_references(row) if labels is None else row for row in rows]
    with_ids = [(row, wanted) for row in rows if row.identity == IDS and (wanted := _wanted(row, labels))]
    observed = [(wanted, row_candidates(row, wanted)) for row, wanted in with_ids[:50]]
    found = {name: len(labels) for name, labels in labels_found(observed).items()}
    if found.get(IDS, 0) >= max(found.values(), default=0):
        return IdentifiedRows(rows)
    chosen = choose_identity(observed)
    moved = {row.key for row, _ in with_ids}
    return IdentifiedRows([row.by(chosen.name) if row.key in moved else row for row in rows], chosen)


def identified_row(row: Row, labels: Labels | None) -> Row:
    """A single row in the same way: the ids that find most of its labels."""
    row = _by_own_references(row) if labels is None else row
    wanted = _wanted(row, labels)
    if row.by_text or not wanted or not wanted.isdisjoint(row.passages):
        return row
    found = labels_found([(wanted, row_candidates(row, wanted))])
    best = max(found, key=lambda name: len(found[name]), default=IDS)
    return row.by(best) if found.get(best) else row


def row_candidates(row: Row, wanted: Set[str]) -> list[dict[str, str]]:
    """For each passage every id by which labels may know it; a labelled text by the label's own spelling."""
    ids: dict[str, Sequence[str]] = {IDS: row.passages, **row.columns()}
    if row.texts is not None:
        spelled = {as_text_id(passage): passage for passage in wanted}
        ids[TEXT] = [spelled.get(hashed, hashed) for hashed in map(text_id, row.texts)]
    return [dict(zip(ids, of_passage, strict=True)) for of_passage in zip(*ids.values(), strict=True)]


def _wanted(row: Row, labels: Labels | None) -> Set[str]:
    """What the labels call the passages of a row's query."""
    if row.own_grades is not None:
        return row.own_grades.keys()
    if labels is None:
        return frozenset(row.references or ())
    return (labels.by_query.get(row.query) or labels.by_query.get(row.user_input) or {}).keys()


def _by_own_references(row: Row) -> Row:
    """By texts if the row's references are texts alone."""
    if row.by_text or row.texts is None or row.own_grades is not None or row.references is not None:
        return row
    return row if row.fields.get("reference_contexts") is None else row.by(TEXT)
