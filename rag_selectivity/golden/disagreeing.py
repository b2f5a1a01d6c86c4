"""Pairs on which judges differ: the most different first, or a random sample of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.grading.annotation.drawing import stratified
from rag_selectivity.grading.designs import DrawnPair, Pair
from rag_selectivity.grading.labels_format import store_labels
from rag_selectivity.grading.store import Store, median_grade
from rag_selectivity.judged.origins import Chosen
from rag_selectivity.wording import counted


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
    controls = _controls(store, judges)
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

        def shares(sizes: Any) -> Any:
            return sizes * distances

        return stratified(n, strata, shares, seed, " apart")
    random = np.random.default_rng(seed)
    drawn: list[DrawnPair] = []
    for distance, pairs in reversed(strata.items()):
        for place in random.permutation(len(pairs)).tolist():
            query, passage = pairs[place][0]
            drawn.append(DrawnPair(query, passage, f"{distance} apart", float("nan")))
    return drawn[:n]


def _controls(store: Store, judges: Sequence[str] | None) -> set[Pair]:
    labels = store_labels(store.path, judges, humans=False)
    if labels.origins is None:
        return set()
    only = labels.origins.are(Chosen.CONTROL) & ~labels.origins.are(Chosen.POOL | Chosen.TAIL)
    rows = np.flatnonzero(only)
    return {(labels.queries[labels.query[row]], labels.passages[row]) for row in rows.tolist()}
