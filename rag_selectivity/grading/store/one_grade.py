"""One grade for each pair, out of the labels of several judges, samples and people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    annotators : {name: pairs that they graded} or None
        The annotators that are named among the judges; None if none is. Filled by `rows`.
    """

    def __init__(
        self, store: Store, *, judges: Sequence[str] | None = None, humans: bool = True, as_given: bool = False
    ) -> None:
        self._store = store
        self._chosen = None if judges is None else names_in(judges, "judges")
        self._annotators = set(store.annotators_among(self._chosen))
        self._humans = humans and not self._annotators
        self._as_given = as_given
        self.by_people: dict[tuple[str, str], int | None] = {}
        self.judges: dict[str, int] = {}
        self.annotators: dict[str, int] | None = dict.fromkeys(sorted(self._annotators), 0) or None

    def rows(self) -> Iterator[tuple[str, str, int]]:
        """(query id, passage id, grade) rows, people's first."""
        human_grades: dict[tuple[str, str], list[int]] = {}
        if self._humans:
            for query, passage, grade in self._store.human_grades():
                human_grades.setdefault((query, passage), []).append(grade)
        self.by_people = dict.fromkeys(human_grades)
        for labelled, grades in human_grades.items():
            yield *labelled, median_grade(grades)
        for query, passage, by_judge in self._store.grades_by_pair(self._chosen, as_given=self._as_given):
            if len(by_judge) == 1:
                # The common case has a path of its own: a store may hold millions of pairs.
                ((only, samples),) = by_judge.items()
                grade = samples[0] if len(samples) == 1 else median_grade(samples)
                self._count(only)
            else:
                for judge in by_judge:
                    self._count(judge)
                grade = median_grade([median_grade(samples) for samples in by_judge.values()])
            if human_grades and (query, passage) in human_grades:
                self.by_people[query, passage] = grade
            else:
                if self._annotators and self._annotators.issuperset(by_judge):
                    self.by_people[query, passage] = None
                yield query, passage, grade

    def _count(self, judge: str) -> None:
        counts = self.judges
        if judge in self._annotators and self.annotators is not None:
            counts = self.annotators
        counts[judge] = counts.get(judge, 0) + 1


def median_grade(grades: Sequence[int]) -> int:
    """The median grade; of an even number, the lower of the two in the middle.

    >>> median_grade([5, 2, 4]), median_grade([5, 2])
    (4, 2)
    """
    return sorted(grades)[(len(grades) - 1) // 2]
