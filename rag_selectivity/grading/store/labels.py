"""One grade for each pair, out of the labels of several judges, samples and people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_selectivity.grading.store.records import Pair
from rag_selectivity.grading.store.store import Store
from rag_selectivity.tables.cells import names_in


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
