"""Labels of a store, read: the names of its judges, grades pair by pair, and one grade for each pair."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_selectivity.grading.store.connection import Connection, damaged
from rag_selectivity.grading.store.records import Draw
from rag_selectivity.tables.cells import names_in

if TYPE_CHECKING:
    from rag_selectivity.grading.store.store import Store

#: From the labels to the pairs that have these texts, by an index.
PAIRS_OF_LABELS = "CROSS JOIN pairs p ON p.query_hash = l.query_hash AND p.passage_hash = l.passage_hash"
#: A query and a passage, by their ids.
Pair = tuple[str, str]


class _Names(dict[int, str]):
    """Names of judges by the numbers of their settings; labels that name others belong to a damaged store."""

    def __init__(self, path: Path, names: dict[int, str]) -> None:
        super().__init__(names)
        self._path = path

    def __missing__(self, number: object) -> str:
        raise damaged(self._path, f"labels name the judge {number!r}, whose settings are missing")


def models_of(connection: Connection, kind: str | None = None) -> dict[int, str]:
    """{number of the settings: model}."""
    rows = connection.execute("SELECT id, model FROM settings WHERE ? IS NULL OR kind = ? ORDER BY id", (kind, kind))
    models = dict(rows.fetchall())
    for number, model in models.items():
        if not isinstance(model, str):
            raise damaged(connection.path, f"the name of the judge {number!r} is no text")
    return models


def names_of(connection: Connection, kind: str | None = "grade") -> _Names:
    """{number of the settings: name of the judge}; where a model has several settings, the number is added."""
    models = models_of(connection, kind)
    often = Counter(models.values())
    names = {number: model if often[model] == 1 else f"{model}#{number}" for number, model in models.items()}
    return _Names(connection.path, names)


def draws_of(connection: Connection) -> dict[int, Draw]:
    """The draws of a store."""
    rows = connection.execute("SELECT id, kind, source, depth, how FROM draws").fetchall()
    return {number: Draw(kind, source, depth, json.loads(how)) for number, kind, source, depth, how in rows}


def grades_of_judges(
    connection: Connection, names: dict[int, str], as_given: bool
) -> Iterator[tuple[str, str, dict[str, list[int]]]]:
    """The grades of some settings for each pair, in the order of the ids; see `Store.grades_by_pair`."""
    junk = "CASE WHEN l.misleading IS NULL OR l.grade > 2 THEN l.grade WHEN l.misleading THEN 1 ELSE 2 END"
    total = connection.execute("SELECT count(*) FROM settings").fetchone()[0]
    # A store's only judge is read in the order of the file; one of several by the index on the settings.
    of_chosen = "" if len(names) == total else f"AND l.settings IN ({', '.join('?' * len(names))})"
    rows = connection.execute(
        f"SELECT p.query_id, p.passage_id, l.settings, {'l.grade' if as_given else junk} FROM labels l"
        f" {PAIRS_OF_LABELS} WHERE l.grade IS NOT NULL {of_chosen}"
        " ORDER BY p.query_id, p.passage_id, l.settings, l.sample",
        tuple(names) if of_chosen else (),
    )
    pair: Pair | None = None
    grades: dict[str, list[int]] = {}
    # Not by groupby: a store may hold millions of pairs.
    for query, passage, number, grade in rows:
        if pair is None or passage != pair[1] or query != pair[0]:
            if pair is not None:
                yield *pair, grades
            pair, grades = (query, passage), {}
        grades.setdefault(names[number], []).append(grade)
    if pair is not None:
        yield *pair, grades


# -- one grade for each pair ------------------------------------------------------------------------------


def label_rows(
    store: Store, *, judges: Sequence[str] | None = None, humans: bool = True, as_given: bool = False
) -> Iterator[tuple[str, str, int]]:
    """(query id, passage id, grade) rows, one for each pair, as qrels need them.

    A human label takes precedence over a judge's. Several samples of one judge, several annotators, and several judges
    are replaced by their median (the lower one of two); an adjudicated grade takes the place of the grades that it was
    about. An annotator named among the `judges` is a judge like the others: then no other person's label counts.
    `as_given` as in `Store.judge_grades`.

    Raises
    ------
    InputError
        If the store has no judge of a name.
    """
    return LabelReading(store, judges=judges, humans=humans, as_given=as_given).rows()


class LabelReading:
    """Reads one grade for each pair, as `label_rows` does, and notes whose grades they are.

    Attributes
    ----------
    by_people : {(query id, passage id): grade of the judge}
        The pairs that people graded; None if no judge graded the pair. Filled by `rows`.
    judges : {name: pairs that it graded}
        Filled by `rows`.
    annotators : {name: pairs that they graded}
        The annotators that are named among the judges. Filled by `rows`.
    """

    def __init__(
        self, store: Store, *, judges: Sequence[str] | None = None, humans: bool = True, as_given: bool = False
    ) -> None:
        self._store, self._as_given = store, as_given
        self._chosen = None if judges is None else names_in(judges, "judges")
        self.annotators = dict.fromkeys(sorted(store.annotators_among(self._chosen)), 0)
        self._humans = humans and not self.annotators
        self.by_people: dict[Pair, int | None] = {}
        self.judges: dict[str, int] = {}

    def rows(self) -> Iterator[tuple[str, str, int]]:
        """(query id, passage id, grade) rows, people's first."""
        of_people = self._store.grades_of_people() if self._humans else {}
        self.by_people = dict.fromkeys(of_people)
        for pair, grades in of_people.items():
            yield *pair, median_grade(grades)
        annotators = self.annotators
        for query, passage, by_judge in self._store.grades_by_pair(self._chosen, as_given=self._as_given):
            for judge in by_judge:
                counts = annotators if judge in annotators else self.judges
                counts[judge] = counts.get(judge, 0) + 1
            # Of one judge, the median of its samples is that of the pair.
            medians = [median_grade(samples) for samples in by_judge.values()]
            grade = medians[0] if len(medians) == 1 else median_grade(medians)
            if (query, passage) in of_people:
                self.by_people[query, passage] = grade
            else:
                if annotators and by_judge.keys() <= annotators.keys():
                    self.by_people[query, passage] = None
                yield query, passage, grade


def median_grade(grades: Sequence[int]) -> int:
    """The median grade; of an even number, the lower of the two in the middle.

    >>> median_grade([5, 2, 4]), median_grade([5, 2])
    (4, 2)
    """
    return grades[0] if len(grades) == 1 else sorted(grades)[(len(grades) - 1) // 2]
