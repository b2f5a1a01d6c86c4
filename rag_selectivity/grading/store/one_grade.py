"""One grade for each pair, out of the labels of several judges, samples and people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from rag_selectivity.data.cells import names_in
from rag_selectivity.errors import InputError
from rag_selectivity.grading.store.store import Store


def label_rows(
    store: Store,
    *,
    judges: Sequence[str] | None = None,
    rule: str | None = None,
    humans: bool = True,
    as_given: bool = False,
) -> Iterator[tuple[str, str, int]]:
    """(query id, passage id, grade) rows, one for each pair, as qrels need them.

    A human label takes precedence over a judge's. Several samples of one judge, and several annotators, are replaced
    by their median (the lower one of two); an adjudicated grade takes the place of the grades that it was about. An
    annotator named among the `judges` is a judge like the others: then no other person's label counts. Where several
    judges graded a pair, choose one by `judges`, or combine their grades by a `rule`: `median`, `lowest` or `highest`.
    Where a judge escalated to a better one (`Store.escalates`), the better one's grade is used for the pairs that it
    graded, and the other one's for the others. `as_given` as in `Store.judge_grades`.

    Raises
    ------
    InputError
        If there are labels of several judges, or of one judge with several rubrics or prompts, and neither `judges`
        nor `rule` decides; the message lists them, with an example of each.
    """
    return LabelReading(store, judges=judges, rule=rule, humans=humans, as_given=as_given).rows()


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
        self,
        store: Store,
        *,
        judges: Sequence[str] | None = None,
        rule: str | None = None,
        humans: bool = True,
        as_given: bool = False,
    ) -> None:
        self._store = store
        self._chosen = None if judges is None else names_in(judges, "judges")
        self._annotators = set(store.annotators_among(self._chosen))
        self._rule = rule
        self._combine = _rule(rule)
        self._humans = humans and not self._annotators
        self._as_given = as_given
        self.by_people: dict[tuple[str, str], int | None] = {}
        self.judges: dict[str, int] = {}
        self.annotators: dict[str, int] | None = dict.fromkeys(sorted(self._annotators), 0) or None

    def rows(self) -> Iterator[tuple[str, str, int]]:
        """(query id, passage id, grade) rows, people's first."""
        if self._rule is None:
            self._store.refuse_mixed_judges(self._chosen)
        human_grades: dict[tuple[str, str], list[int]] = {}
        if self._humans:
            for query, passage, grade in self._store.human_grades():
                human_grades.setdefault((query, passage), []).append(grade)
        self.by_people = dict.fromkeys(human_grades)
        for labelled, grades in human_grades.items():
            yield *labelled, median_grade(grades)
        for query, passage, by_judge in self._store.best_judge_grades(self._chosen, as_given=self._as_given):
            if len(by_judge) == 1:
                # The common case has a path of its own: a store may hold millions of pairs.
                ((only, samples),) = by_judge.items()
                grade = samples[0] if len(samples) == 1 else median_grade(samples)
                self._count(only)
            else:
                for judge in by_judge:
                    self._count(judge)
                medians = {judge: median_grade(samples) for judge, samples in by_judge.items()}
                if (query, passage) in human_grades and self._combine is None:
                    continue
                grade = _combined((query, passage), medians, self._combine, self._store)
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


def expected_rows(
    store: Store, *, judges: Sequence[str] | None = None, rule: str | None = None
) -> Iterator[tuple[str, str, int, float | None]]:
    """(query id, passage id, grade, expected grade) rows of judges alone, one for each pair.

    The grades are those of `label_rows` with `humans=False` and `as_given=True`. The expected grade is the mean over
    the samples that have one, and of the judge whose grade is used. It is None if no sample has one, or if the grade
    combines several judges.

    Raises
    ------
    InputError
        As `label_rows`.
    """
    combine = _rule(rule)
    if rule is None:
        store.refuse_mixed_judges(judges)
    for query, passage, by_judge in store.best_judge_samples(judges):
        medians = {judge: median_grade([grade for grade, _ in samples]) for judge, samples in by_judge.items()}
        expected = None
        if len(by_judge) == 1:
            known = [value for _, value in next(iter(by_judge.values())) if value is not None]
            expected = sum(known) / len(known) if known else None
        yield query, passage, _combined((query, passage), medians, combine, store), expected


def median_grade(grades: Sequence[int]) -> int:
    """The median grade; of an even number, the lower of the two in the middle.

    >>> median_grade([5, 2, 4]), median_grade([5, 2])
    (4, 2)
    """
    return sorted(grades)[(len(grades) - 1) // 2]


def _rule(name: str | None) -> Callable[[list[int]], int] | None:
    rules: dict[str | None, Callable[[list[int]], int] | None]
    rules = {None: None, "median": median_grade, "lowest": min, "highest": max}
    if not (name is None or isinstance(name, str)) or name not in rules:
        raise InputError(f"the rule for several judges must be median, lowest or highest, got {name!r}")
    return rules[name]


def _combined(
    pair: tuple[str, str], by_judge: Mapping[str, int], rule: Callable[[list[int]], int] | None, store: Store
) -> int:
    if len(by_judge) == 1:
        return next(iter(by_judge.values()))
    if rule is None:
        raise InputError(
            f"{store.path}: query {pair[0]!r}, passage {pair[1]!r} was graded by several judges "
            f"({', '.join(by_judge)}): choose one with --judge (judge=…), or join them with "
            f"--judge-rule median (rule=…)"
        )
    return rule(list(by_judge.values()))
