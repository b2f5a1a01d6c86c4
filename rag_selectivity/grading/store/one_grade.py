"""One grade for each pair, out of the labels of several judges, samples and people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

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
    by their median (the lower one of two). Where several judges graded a pair, choose one by `judges`, or combine
    their grades by a `rule`: `median`, `lowest` or `highest`. Where a judge escalated to a better one
    (`Store.escalates`), the better one's grade is used for the pairs that it graded, and the other one's for the
    others. `as_given` as in `Store.judge_grades`.

    Raises
    ------
    InputError
        If several judges graded a pair, and neither `judges` nor `rule` decides; the message lists the judges.
    """
    combine = _rule(rule)
    human_grades: dict[tuple[str, str], list[int]] = {}
    if humans:
        for query, passage, grade in store.human_grades():
            human_grades.setdefault((query, passage), []).append(grade)
    for labelled, grades in human_grades.items():
        yield *labelled, median_grade(grades)
    for query, passage, by_judge in store.best_judge_grades(judges, as_given=as_given):
        if (query, passage) not in human_grades:
            medians = {judge: median_grade(samples) for judge, samples in by_judge.items()}
            yield query, passage, _combined((query, passage), medians, combine, store)


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
    if name not in rules:
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
