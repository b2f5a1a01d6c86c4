"""Pairs on which judges differ: the most different first, or a random sample of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.grading.annotation.drawing import Choice, numbers_of, stratified
from rag_selectivity.grading.designs import DrawnPair, Pair, only_controls, pairs_at
from rag_selectivity.grading.labels_format import store_labels
from rag_selectivity.grading.store import Store, median_grade
from rag_selectivity.wording import counted

#: Stored beside the weights of `disagree-sampled`.
MEANING_OF_WEIGHTS = "pairs on which these judges differ, and that no person had labelled when they were drawn"


def disagreements(store: Store, draw: str, judges: Sequence[str] | None, seed: int) -> Choice:
    """The pairs of `disagree:N` and `disagree-sampled:N`."""
    (n,) = numbers_of(draw)
    sampled = draw.startswith("disagree-sampled")
    graded = grades_of_judges(store, judges)
    known = frozenset((each.query, each.passage) for each in store.human_labels() if each.grade is not None)
    pairs = disagreement_draw(n, graded, known, sampled=sampled, seed=seed)
    differing = [pair for pair, grades in graded.items() if len(set(grades.values())) > 1]
    left = sum(pair not in known for pair in differing)
    note = (
        f"judges differ on {len(differing):,} of the {counted(len(graded), 'pair')} that two or more graded; people "
        f"have labelled {len(differing) - left:,} of these"
    )
    if not pairs:
        return Choice((), (note, "nothing is left to label"))
    how: dict[str, Any] = {"judges": sorted({judge for grades in graded.values() for judge in grades})}
    if not sampled:
        return Choice(pairs, (note,), how=how)
    if len(pairs) < n:
        raise InputError(f"--draw {draw}: there are only {counted(len(pairs), 'pair')} to draw from; ask for fewer")
    stand_for = round(sum(pair.weight for pair in pairs))
    few = (
        f"{n:,} pairs are too few for every distance between two grades: they stand for {stand_for:,} of the "
        f"{left:,} pairs that nobody has labelled"
    )
    notes = (note, few) if stand_for < left else (note,)
    return Choice(pairs, notes, how={**how, "weight": MEANING_OF_WEIGHTS})


def grades_of_judges(store: Store, judges: Sequence[str] | None = None) -> dict[Pair, dict[str, int]]:
    """{(query, passage): {judge: grade}} of the pairs that two or more judges graded, without random controls.

    People named among the judges are judges too. Of several samples of a judge, the median counts.

    Raises
    ------
    InputError
        If fewer than two judges graded pairs of the store.
    """
    graded: dict[Pair, dict[str, int]] = {}
    seen: set[str] = set()
    for query, passage, by_judge in store.grades_by_pair(judges, as_given=True):
        seen |= by_judge.keys()
        if len(by_judge) > 1:
            graded[query, passage] = {judge: median_grade(samples) for judge, samples in by_judge.items()}
    if len(seen) < 2:
        raise InputError(
            f"{store.path}: judges can differ only where two of them graded the same pairs, and there is "
            f"{counted(len(seen), 'judge')} ({', '.join(sorted(seen)) or 'none'}): have another model grade the pairs "
            f"into this store, or name people with --judge"
        )
    labels = store_labels(store.path, judges, humans=False)
    controls = set(pairs_at(labels, np.flatnonzero(only_controls(labels))))
    return {pair: grades for pair, grades in graded.items() if pair not in controls}


def disagreement_draw(
    n: int, graded: Mapping[Pair, Mapping[str, int]], known: frozenset[Pair], *, sampled: bool, seed: int
) -> list[DrawnPair]:
    """n pairs on which judges differ, or as many as there are.

    Parameters
    ----------
    n : int
    graded : {(query, passage): {judge: grade}}
    known : frozenset of (query, passage)
        Pairs that people labelled; they are not drawn again.
    sampled : bool
        Draw at random: every distance between two grades in proportion to the distance and to the number of its pairs,
        but at least five pairs; within a distance all pairs have the same chance, spread over the queries. Each pair
        then has a weight: how many of the pairs on which judges differ it stands for. Otherwise the largest distances
        come first, and among equal distances the order is random.
    seed : int
    """
    strata: dict[int, list[tuple[Pair, float]]] = {}
    for pair, grades in sorted(graded.items()):
        distance = max(grades.values()) - min(grades.values())
        if distance and pair not in known:
            strata.setdefault(distance, []).append((pair, 1.0))
    strata = dict(sorted(strata.items()))
    if sampled:
        distances = np.array(list(strata), np.float64)
        return stratified(n, strata, lambda sizes: sizes * distances, seed, " apart")
    random = np.random.default_rng(seed)
    drawn: list[DrawnPair] = []
    for distance, pairs in reversed(strata.items()):
        for place in random.permutation(len(pairs)).tolist():
            query, passage = pairs[place][0]
            drawn.append(DrawnPair(query, passage, f"{distance} apart", float("nan")))
    return drawn[:n]
