"""People's labels beside a judge's: read from whatever holds them, checked, and put beside the judge's rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.judged.origins import NO_GRADE, Chosen, LabelOrigins
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


@dataclass(frozen=True)
class PeoplesLabels:
    """What people labelled, in two parts, for the argument `human` of `evaluate` and `compare`.

    Attributes
    ----------
    drawn : Qrels, {query: {passage: grade}}, DataFrame, rows or path
        Labels of pairs that were drawn at random within the judge's grades, as `calibrate_draw` does.
    settling : the same, optional
        Labels of pairs that `next_to_settle` chose, one query after another. They serve figures of success only.
    """

    drawn: Any
    settling: Any = None


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
    labels = _without_people(labels)
    if not len(labels.query):
        raise InputError(
            f"{labels.source or 'qrels'}: there is no label by a judge that people's labels could calibrate"
        )
    return labels


def _without_people(labels: Qrels) -> Qrels:
    """The labels with the judge's grade where a person's took its place, and without those of people alone."""
    origins = labels.origins
    if origins is None or not origins.by_person.any():
        return labels
    rows = ~origins.by_person | (origins.judge_grade != NO_GRADE)
    grade = np.where(origins.by_person, origins.judge_grade, labels.grade)[rows]
    judged = replace(labels.only(rows), grade=grade)
    judged.origins = replace(origins.take(rows), by_person=np.zeros(len(judged.query), bool))
    return judged


def calibration_ground(
    labels: Qrels, human: Any, *, grade_map: str | Mapping[int, int] | None = None, ids: str | IdForm | None = None
) -> tuple[Ground, list[str]]:
    """The judge's labels beside people's, and notes on what was used and what was not.

    Parameters
    ----------
    labels : Qrels
        The judge's labels on their scale, with their ids in the form `ids`.
    human : PeoplesLabels, Qrels, {query: {passage: grade}}, DataFrame, rows or path
        Of a label store, the labels of people. None: only the tail of each query is completed.
    grade_map : {old: new} or str, optional
        Maps people's grades as it maps the judge's; the grades of a label store need none.

    Raises
    ------
    InputError
        If people's labels contradict each other, are off the scale, or share no pair with the judge's.
    """
    scale, nobody = scale_named(labels.scale or "trec"), np.full(len(labels.query), UNLABELLED, np.int64)
    if human is None:
        return Ground.of(labels, nobody, scale), []
    given, form, notes = _parts(human), IdForm.of(ids), list[str]()
    drawn = _placed(_read(given.drawn, grade_map, notes), labels, form, notes)
    settling = nobody
    if given.settling is not None:
        settling = _placed(_read(given.settling, grade_map, notes), labels, form, notes)
        # What was drawn at random stays so, also if it later settled a query.
        settling = np.where(drawn >= 0, UNLABELLED, settling)
    return Ground.of(labels, drawn, scale, settling, draws_of(given.drawn)), notes


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


def peoples_grades(human: Any, grade_map: str | Mapping[int, int] | None = None) -> dict[str, dict[str, int]]:
    """{query: {passage: grade}} of people alone, from whatever holds their labels, with the grades mapped."""
    return _read(_parts(human).drawn, grade_map, []).to_dict()


def people_under(
    human: Any, names: Mapping[str, str], grade_map: str | Mapping[int, int] | None = None
) -> PeoplesLabels:
    """For adapters: people's labels with the grades mapped, for queries that go by other keys: {key: query}.

    How their pairs were drawn stays with them.

    Raises
    ------
    InputError
        If people labelled none of the queries.
    """
    if all(key == name for key, name in names.items()):
        return people_of(human, grade_map)

    def renamed(source: Any) -> Qrels:
        labels = copy(_read(source, grade_map, []))
        known = {key: name for key, name in names.items() if name in labels}
        if not known:
            raise InputError(
                f"human: the labels by people have queries {examples(labels.queries)}, and those that are measured are "
                f"{examples(names.values())}: do both use the same ids?"
            )
        origins = LabelOrigins.unknown(len(labels.query), int(Chosen.PERSON))
        labels.origins = replace(origins, by_person=origins.by_person | True, drawn_for_people=draws_of(source))
        return labels.under(known)

    return _each(human, renamed)


def people_of(human: Any, grade_map: str | Mapping[int, int] | None) -> PeoplesLabels:
    """People's labels with their grades mapped, where the judge's are mapped already."""
    if grade_map is None:
        return _parts(human)
    return _each(human, lambda source: source if _is_store(source) else Qrels.of(source).regraded(grade_map))


def _parts(human: Any) -> PeoplesLabels:
    return human if isinstance(human, PeoplesLabels) else PeoplesLabels(human)


def _each(human: Any, change: Callable[[Any], Any]) -> PeoplesLabels:
    given = _parts(human)
    return PeoplesLabels(*(None if part is None else change(part) for part in (given.drawn, given.settling)))


def _read(source: Any, grade_map: str | Mapping[int, int] | None, notes: list[str]) -> Qrels:
    """People's labels of a source."""
    if _is_store(source):
        rows, of_store = _store().people_in(source)
        notes += of_store
        return Qrels.from_records(rows, source=str(source), scale="utility")
    labels = Qrels.of(source)
    origins = labels.origins
    if origins is not None and origins.by_person.any():
        targeted = origins.by_person & origins.are(Chosen.TARGETED)
        if targeted.any():
            notes.append(
                f"{counted(int(targeted.sum()), 'label')} by people left out, since the pairs were chosen by what was "
                f"known of their labels: they are no random sample"
            )
        rows = np.flatnonzero(origins.by_person & ~targeted)
        triples = [(labels.queries[labels.query[row]], labels.passages[row], int(labels.grade[row])) for row in rows]
        return Qrels.from_records(triples, source=labels.source, scale=labels.scale)
    if origins is not None and origins.judges:
        raise InputError(
            f"{labels.source or 'human'}: these are labels by the judge {enumeration(list(origins.judges))}: give "
            f"labels by people (--human)"
        )
    return labels.regraded(grade_map)


def _is_store(source: Any) -> bool:
    return is_path(source) and kind_of(Path(source)) == "store"


def _store() -> Any:
    """The module that reads label stores, which stands above this one."""
    return import_module(STORES["store"])


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
    position = np.array([labels.position(query) for query in people.queries], np.int64)[people.query]
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
