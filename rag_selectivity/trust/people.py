"""People's labels beside a judge's: read from whatever holds them, checked, and put beside the judge's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.judged.origins import NO_GRADE, Chosen
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reading import read_qrels
from rag_selectivity.tables.exact import STORES, kind_of
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.ground import UNLABELLED, Ground
from rag_selectivity.wording import counted, enumeration

__all__ = ["PeoplesLabels"]

#: So many equal grades of people and judge, without a different one, are named in a note.
_MANY_ALIKE = 30


def judge_labels(source: Any, *, format: str | None = None, judges: Sequence[str] | None = None) -> Qrels:
    """The labels of judges alone: without people's grades, where the source holds both.

    Raises
    ------
    InputError
        If the source holds no label by a judge.
    """
    if not is_path(source):
        labels = Qrels.of(source)
    else:
        humans = kind_of(Path(source), format) not in ("store", "exported")
        labels = read_qrels(source, format=format, judges=judges, humans=humans)
    origins = labels.origins
    if origins is not None and origins.by_person.any():
        # The judge's grade where a person's took its place, and no label of people alone.
        rows = ~origins.by_person | (origins.judge_grade != NO_GRADE)
        grade = np.where(origins.by_person, origins.judge_grade, labels.grade)[rows]
        labels = replace(labels.take(rows), grade=grade)
        labels.origins = replace(origins.take(rows), by_person=np.zeros(len(labels.query), bool))
    if not len(labels.query):
        raise InputError(
            f"{labels.source or 'qrels'}: there is no label by a judge that people's labels could calibrate"
        )
    return labels


@dataclass(frozen=True)
class PeoplesLabels:
    """What people labelled in two ways, for the argument `human` of `evaluate` and `compare`.

    Attributes
    ----------
    drawn : qrels or path of a label store
        Labels of pairs that were drawn at random within the judge's grades, as `calibrate_draw` does.
    settling : the same
        Labels of pairs that `next_to_settle` chose. They serve Success, BoR and EF only, of the runs and
        at the K that it was given.
    """

    drawn: Any
    settling: Any


@dataclass(frozen=True)
class ReadLabels:
    """Labels by people, how their pairs were drawn ({draw: number of pairs}), and notes on those left out.

    `settling` are the labels that settle queries one by one.
    """

    labels: Qrels
    drawn: Mapping[str, int]
    notes: tuple[str, ...] = ()
    settling: Qrels | None = None

    def under(self, names: Mapping[str, str]) -> ReadLabels:
        """The labels for queries that go by other keys: {key: query}.

        Raises
        ------
        InputError
            If people labelled none of the queries.
        """
        known = {key: name for key, name in names.items() if name in self.labels}
        if not known:
            raise InputError(
                f"human: the labels by people have queries {examples(self.labels.queries)}, and those that are "
                f"measured are {examples(names.values())}: do both use the same ids?"
            )
        settling = self.settling
        if settling is not None:
            settling = settling.under({key: name for key, name in names.items() if name in settling})
        return replace(self, labels=self.labels.under(known), settling=settling)


def people_of(source: Any, grade_map: str | Mapping[int, int] | None = None) -> ReadLabels:
    """The labels of people in whatever holds them, with their grades mapped; those of a label store need no map.

    Raises
    ------
    InputError
        If the labels are a judge's.
    """
    if isinstance(source, ReadLabels):
        return source
    if isinstance(source, PeoplesLabels):
        drawn, settling = people_of(source.drawn, grade_map), people_of(source.settling, grade_map)
        return replace(drawn, notes=(*drawn.notes, *settling.notes), settling=settling.labels)
    if _is_store(source):
        rows, notes = _store().people_in(source)
        labels = Qrels.from_records(rows, source=str(source), scale="utility")
        return ReadLabels(labels, draws_of(source), tuple(notes))
    labels, notes = Qrels.of(source), []
    draws, origins = draws_of(labels), labels.origins
    if origins is not None and origins.by_person.any():
        targeted = origins.by_person & origins.are(Chosen.TARGETED)
        if targeted.any():
            notes.append(
                f"{counted(int(targeted.sum()), 'label')} by people left out, since the pairs were chosen by what was "
                f"known of their labels: they are no random sample"
            )
        return ReadLabels(labels.take(origins.by_person & ~targeted), draws, tuple(notes))
    if origins is not None and origins.judges:
        raise InputError(
            f"{labels.source or 'human'}: these are labels by the judge {enumeration(list(origins.judges))}: give "
            f"labels by people (--human)"
        )
    return ReadLabels(labels.regraded(grade_map), draws)


def draws_of(source: Any) -> Mapping[str, int]:
    """How the pairs of people's labels were drawn: {draw: number of pairs}; the empty name: not by this tool.

    Targeted draws and adjudications are left out: their labels are no sample, or belong to pairs of another draw.
    """
    if _is_store(source):
        drawn: Mapping[str, int] = _store().drawn_in(source)
        return drawn
    labels = Qrels.of(source)
    known = None if labels.origins is None else labels.origins.drawn_for_people
    return known or {"": len(labels.query)}


def _is_store(source: Any) -> bool:
    return is_path(source) and kind_of(Path(source)) == "store"


def _store() -> Any:
    """The module that reads label stores, which stands above this one."""
    return import_module(STORES["store"])


def calibration_ground(
    labels: Qrels, human: Any, *, grade_map: str | Mapping[int, int] | None = None, ids: str | IdForm | None = None
) -> tuple[Ground, list[str]]:
    """The judge's labels beside people's, and notes on what was used and what was not.

    Parameters
    ----------
    labels : Qrels
        The judge's labels on their scale, with their ids in the form `ids`.
    human : Qrels, {query: {passage: grade}}, DataFrame, rows, path, or PeoplesLabels of two of them
        Of a label store, the labels of people. None: only the tail of each query is completed.
    grade_map : {old: new} or str, optional
        Maps people's grades as it maps the judge's; the grades of a label store need none.

    Raises
    ------
    InputError
        If people's labels contradict each other, are off the scale, or share no pair with the judge's.
    """
    grades = settling = np.full(len(labels.query), UNLABELLED, np.int64)
    drawn, notes = dict[str, int](), list[str]()
    if human is not None:
        people = people_of(human, grade_map)
        drawn, notes = dict(people.drawn), list(people.notes)
        grades = _placed(people.labels, labels, IdForm.of(ids), notes)
        if people.settling is not None:
            # What was drawn at random stays so, also if it later settled a query.
            settling = np.where(grades >= 0, settling, _placed(people.settling, labels, IdForm.of(ids), notes))
    return Ground.of(labels, grades, scale_named(labels.scale or "trec"), drawn, settling), notes


def _placed(people: Qrels, labels: Qrels, form: IdForm, notes: list[str]) -> IntArray:
    """People's grades by the judge's rows; −1 where there is none."""
    where = people.source or "human"
    if not len(people.query):
        raise InputError(f"{where}: there are no labels by people")
    scale = scale_named(labels.scale or "trec")
    try:
        people = people.on_scale(scale).in_form(form if form.changes_ids else AS_THEY_ARE)
    except InputError as error:
        raise InputError(f"labels by people: {error}") from None
    position = labels.positions(people.queries)[people.query]
    judgments = labels.judgments(position, people.passages)
    rows = np.flatnonzero(judgments >= 0)
    judgments = judgments[rows]
    if not len(rows):
        raise InputError(
            f"no pair was graded by both: the labels by people have queries {examples(people.queries)}, the judge's "
            f"{examples(labels.queries)}; do both use the same ids?"
        )
    unused = len(people.query) - len(rows)
    if unused:
        row = int(np.setdiff1d(np.arange(len(people.query)), rows)[0])
        notes.append(
            f"{counted(unused, 'label')} by people not used, since no judge graded the pair, such as query "
            f"{people.queries[people.query[row]]!r}, passage {people.passages[row]!r}"
        )
    if len(rows) >= _MANY_ALIKE and (people.grade[rows] == labels.grade[judgments]).all():
        notes.append(
            f"all {len(rows):,} labels by people equal the judge's grades: check that {where} is not a file of the "
            f"judge's labels"
        )
    result = np.full(len(labels.query), UNLABELLED, np.int64)
    result[judgments] = people.grade[rows]
    return result
