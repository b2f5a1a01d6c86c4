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
    rules = {None: None, "median": median_grade, "lowest": min, "highest": max}
    if rule not in rules:
        raise InputError(f"the rule for several judges must be median, lowest or highest, got {rule!r}")
    human_grades: dict[tuple[str, str], list[int]] = {}
    if humans:
        for query, passage, grade in store.human_grades():
            human_grades.setdefault((query, passage), []).append(grade)
    for labelled, grades in human_grades.items():
        yield *labelled, median_grade(grades)
    for query, passage, by_judge in store.best_judge_grades(judges, as_given=as_given):
        if (query, passage) not in human_grades:
            medians = {judge: median_grade(samples) for judge, samples in by_judge.items()}
            yield query, passage, _combined((query, passage), medians, rules[rule], store)


def median_grade(grades: Sequence[int]) -> int:
    """The median grade; of an even number, the lower of the two in the middle.

    >>> median_grade([5, 2, 4]), median_grade([5, 2])
    (4, 2)
    """
    return sorted(grades)[(len(grades) - 1) // 2]


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
