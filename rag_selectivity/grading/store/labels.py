"""One grade for each pair, out of the labels of several judges and people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_selectivity.grading.store.records import HumanLabel
from rag_selectivity.grading.store.store import Store
from rag_selectivity.tables.cells import names_in


def label_rows(
    store: Store, *, judges: Sequence[str] | None = None, humans: bool = True
) -> Iterator[tuple[str, str, int]]:
    """(query id, passage id, grade) rows, one for each pair, as qrels need them.

    A human label takes precedence over a judge's. Several annotators and several judges are replaced by their median
    (the lower one of two); an adjudicated grade takes the place of the grades that it was about. An annotator named
    among the `judges` is a judge like the others: then no other person's label counts.

    Raises
    ------
    InputError
        If the store has no judge of a name.
    """
    return LabelReading(store, judges=judges, humans=humans).rows()


class LabelReading:
    """Reads one grade for each pair, as `label_rows` does, and notes whose grades they are.

    Attributes
    ----------
    by_people : {(query id, passage id): grade of the judge}
        The pairs that people graded; None if no judge graded the pair. Filled by `rows`.
    judges : {name: pairs that it graded}
        Filled by `rows`.
    annotators : {name: pairs that they graded} or None
        The annotators that are named among the judges; None if none is. Filled by `rows`.
    """

    def __init__(self, store: Store, *, judges: Sequence[str] | None = None, humans: bool = True) -> None:
        self._store = store
        self._chosen = None if judges is None else names_in(judges, "judges")
        people = store.annotators_among(self._chosen)
        self._humans = humans and not people
        self.by_people: dict[tuple[str, str], int | None] = {}
        self.judges: dict[str, int] = {}
        self.annotators: dict[str, int] | None = dict.fromkeys(sorted(people), 0) or None

    def rows(self) -> Iterator[tuple[str, str, int]]:
        """(query id, passage id, grade) rows, people's first."""
        by_people = people_grades(self._store.graded_by_people()) if self._humans else {}
        self.by_people = dict.fromkeys(by_people)
        for pair, grades in by_people.items():
            yield *pair, median_grade(grades)
        annotators = self.annotators or {}
        for query, passage, by_judge in self._store.grades_by_pair(self._chosen):
            for judge in by_judge:
                counts = annotators if judge in annotators else self.judges
                counts[judge] = counts.get(judge, 0) + 1
            grade = median_grade(list(by_judge.values()))
            if (query, passage) in by_people:
                self.by_people[query, passage] = grade
            else:
                if annotators and by_judge.keys() <= annotators.keys():
                    self.by_people[query, passage] = None
                yield query, passage, grade


def people_grades(labels: Sequence[HumanLabel]) -> dict[tuple[str, str], list[int]]:
    """The grades of each pair by people, in the order of the pairs.

    The grade of an adjudication takes the place of the grades that it was about, which stay in the store.
    """
    decided = {label.pair for label in labels if label.is_adjudication}
    grades: dict[tuple[str, str], list[int]] = {}
    for label in sorted(labels, key=lambda label: label.pair):
        if label.grade is not None and (label.is_adjudication or label.pair not in decided):
            grades.setdefault(label.pair, []).append(label.grade)
    return grades


def median_grade(grades: Sequence[int]) -> int:
    """The median grade; of an even number, the lower of the two in the middle.

    >>> median_grade([5, 2, 4]), median_grade([5, 2])
    (4, 2)
    """
    return sorted(grades)[(len(grades) - 1) // 2]
