"""The figures of single lists in plain Python, for the measures that hosts ask for row by row.

A figure here equals that of `Measure.outcome` to the last bit; tests/test_plain.py compares the two. For one list it
costs about a tenth, since numpy's fixed cost for each call is most of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np

from rag_selectivity.data.grades import SCALES, Scale
from rag_selectivity.join.direct import QueryLists, has_plain_ids, join_directly
from rag_selectivity.join.judged_run import JudgedRun
from rag_selectivity.measures.base import Measure, Outcome
from rag_selectivity.measures.chance import EF, BaselineMeasure, BoR, BoR_max, Lambda, RandomSuccess, Success
from rag_selectivity.measures.classic import discounts, nDCG
from rag_selectivity.measures.hypergeometric import random_success_of_one
from rag_selectivity.measures.utility import PROC, RANWG, Harm

_BINARY = frozenset([0, 1])
#: Of the grades 1 to 5.
Weights = tuple[float, float, float, float, float]


@dataclass(slots=True)
class PlainList:
    """A list of distinct passages with the labels of its query.

    `labels` are the grades of all labelled passages; `retrieved` are the grades in rank order, None for an unjudged
    passage; `lowest` is the lowest grade of any query; `corpus_size` is N.
    """

    labels: Sequence[int]
    retrieved: Sequence[int | None]
    scale: Scale
    lowest: int
    corpus_size: int | None


def plain_list(query: QueryLists, scale: str | None, levels: Sequence[int]) -> PlainList | None:
    """A query's list without its join; None if it has a pool, copies, no labels, or anything that a join refuses."""
    size, passages = query.corpus_size, query.passages
    labels = list(query.grades.values())
    if not labels or query.pool is not None or not (query.checked or has_plain_ids(query)):
        return None
    if (scale is not None and scale not in SCALES) or (scale is None and not _BINARY.issuperset(labels)):
        return None
    settled, lowest, highest = SCALES[scale or "trec"], min(labels), max(labels)
    if levels:
        lowest, highest = min(lowest, *levels), max(highest, *levels)
    if not (settled.holds(lowest) and settled.holds(highest)):
        return None
    if size is not None and (type(size) is not int or not len(labels) <= size <= 1 << 53):
        return None
    if len(set(passages)) != len(passages):
        return None
    return PlainList(labels, list(map(query.grades.get, passages)), settled, lowest, size)


#: The parts of an outcome: for one query a number each.
Parts = tuple[float, ...]


def plain_parts(measure: Measure, of: PlainList) -> Parts | None:
    """The parts of a measure's outcome for the list at its depth; the first is its figure, if a query can have one.

    None if the measure has no plain form, or a part may be NaN or refused.
    """
    form, depth = _FORMS.get(type(measure)), measure.at
    if (
        form is None
        or measure.of_groups
        or type(depth) is not int
        or (of.corpus_size is not None and of.corpus_size < depth)
    ):
        return None
    if measure.required_scale not in (None, of.scale.name):
        return None
    parts = form(measure, of, depth)
    return parts if parts is None or isinstance(parts, tuple) else (parts,)


def plain_details(measure: Measure, of: PlainList) -> dict[str, float]:
    """What `plain_parts` were made of: `Measure.details`, and how many passages count."""
    depth = int(measure.at or 0)
    top = of.retrieved[:depth]
    return {
        **(_ra_nwg_details(measure, of, depth) if isinstance(measure, RANWG) else {}),
        "judged": len(top) - top.count(None),
        "returned": len(top),
        "relevant": _at_least(of.scale.relevant_from, of.labels),
    }


def plain_outcome(measure: Measure, parts: Parts, scale: Scale) -> Outcome:
    """The outcome of one query with these parts."""
    like = _outcome_of(measure, scale.name)
    columns = tuple([np.array([[part]]) for part in parts])
    return Outcome(columns, like.undefined, like.aggregate, like.bounds, like.premise, like.baseline, like.refused)


@cache
def _outcome_of(measure: Measure, scale: str) -> Outcome:
    """An outcome of the measure: besides its figures, those with a plain form say the same of every list."""
    kind, depth = SCALES[scale], int(measure.at or 0)
    lists = QueryLists({"a": kind.relevant_from, "b": kind.lowest}, ["a"], None, depth + 2)
    return measure.outcome(cast(JudgedRun, join_directly([lists], scale=scale)), np.array([depth]))


# -- measures --------------------------------------------------------------------------------------


def _harm(measure: Harm, of: PlainList, depth: int) -> float | None:
    if not of.retrieved or of.lowest > measure.max_grade:
        return None
    top, most, unjudged = of.retrieved[:depth], measure.max_grade, measure.unjudged == "harmful"
    return len([grade for grade in top if (unjudged if grade is None else grade <= most)]) / depth


def _success(measure: Success, of: PlainList, depth: int) -> float | None:
    lowest = of.scale.relevant_from if measure.rel is None else measure.rel
    if _at_least(lowest, of.labels) < measure.m:
        return None
    return 1.0 if _at_least(lowest, of.retrieved[:depth]) >= measure.m else 0.0


def _of_baseline(measure: BaselineMeasure, of: PlainList, depth: int) -> Parts | None:
    lowest = of.scale.relevant_from if measure.rel is None else measure.rel
    relevant = _at_least(lowest, of.labels)
    if of.corpus_size is None or relevant < measure.m:
        return None
    both = random_success_of_one(of.corpus_size, relevant, depth, measure.m)
    if both is None:
        return None
    success = 1.0 if _at_least(lowest, of.retrieved[:depth]) >= measure.m else 0.0
    parts: Any = measure.parts_of(cast(Any, success), *cast(Any, both))
    return cast(Parts, parts)


def _lambda(measure: Lambda, of: PlainList, depth: int) -> float | None:
    relevant = _at_least(of.scale.relevant_from if measure.rel is None else measure.rel, of.labels)
    return depth * (relevant / of.corpus_size) if of.corpus_size and relevant else None


def _ra_nwg(measure: RANWG, of: PlainList, depth: int) -> float | None:
    labelled = _by_level(of.labels)
    weights = _weights(measure, labelled)
    ideal = _best(labelled, weights, depth)
    if measure.alpha != 1 or not ideal:
        return None
    return _observed(of, weights, depth) / ideal


def _observed(of: PlainList, weights: Weights, depth: int) -> float:
    observed = 0.0
    for grade in of.retrieved[:depth]:
        if grade is not None:
            observed += weights[grade - 1]
    return observed


def _ra_nwg_details(measure: RANWG, of: PlainList, depth: int) -> dict[str, float]:
    labelled = _by_level(of.labels)
    weights = _weights(measure, labelled)
    return {
        **{f"w{grade}": float(weights[grade - 1]) for grade in (5, 4, 3)},
        "G_obs": _observed(of, weights, depth),
        "G_pool": _best(_by_level(of.retrieved), weights, depth),
        "G_oracle": _best(labelled, weights, depth),
    }


def _proc(measure: PROC, of: PlainList, depth: int) -> float | None:
    labelled = _by_level(of.labels)
    weights = _weights(measure, labelled)
    ideal = _best(labelled, weights, depth)
    if measure.alpha != 1 or not ideal:
        return None
    return _best(_by_level(of.retrieved), weights, depth) / ideal


def _ndcg(measure: nDCG, of: PlainList, depth: int) -> float | None:
    if measure.gain != "linear":
        return None
    divisors, sums = _discounts(min(depth, max(len(of.labels), len(of.retrieved), 100)))
    gained = 0.0
    for grade, divisor in zip(of.retrieved, divisors, strict=False):
        if grade is not None:
            gained += grade / divisor
    best, start = 0.0, 0
    for grade in sorted(set(of.labels), reverse=True):
        stop = min(start + of.labels.count(grade), depth)
        best += grade * (sums[stop] - sums[start])
        start = stop
    return gained / best if best > 0 else 0.0


_FORMS: dict[type[Measure], Callable[[Any, PlainList, int], float | Parts | None]] = {
    Harm: _harm,
    Success: _success,
    **dict.fromkeys((RandomSuccess, EF, BoR, BoR_max), _of_baseline),
    Lambda: _lambda,
    RANWG: _ra_nwg,
    PROC: _proc,
    nDCG: _ndcg,
}
#: The measures that have a plain form.
PLAIN_MEASURES = tuple(_FORMS)


def _at_least(lowest: int, grades: Sequence[int | None]) -> int:
    return len([grade for grade in grades if grade is not None and grade >= lowest])


def _by_level(grades: Sequence[int | None]) -> list[int]:
    """How many passages have each of the grades 1 to 5."""
    count = grades.count
    return [count(1), count(2), count(3), count(4), count(5)]


def _weights(measure: RANWG | PROC, labelled: Sequence[int]) -> Weights:
    """`rarity_weights` of one query with alpha = 1."""
    threes, fours, fives = labelled[2:]
    total = sum(labelled)
    if not fives:
        return 0.0, 0.0, measure.fallback3, measure.fallback4, 1.0
    rarest = 1.0 / (fives / total)
    three = measure.base3 / (threes / total) / rarest if threes else 0.0
    four = measure.base4 / (fours / total) / rarest if fours else 0.0
    return 0.0, 0.0, min(three, measure.cap3), min(four, measure.cap4), 1.0


def _best(counts: Sequence[int], weights: Sequence[float], slots: int) -> float:
    """`best_of` of one query."""
    result = 0.0
    for level in sorted((2, 3, 4), key=lambda level: -weights[level]):
        taken = min(slots, counts[level])
        result += weights[level] * taken
        slots -= taken
    return result


@lru_cache(maxsize=64)
def _discounts(ranks: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The divisor of each rank, and the sums of the discounts down to each rank, from 0 on."""
    return tuple(np.log2(np.arange(2, ranks + 2)).tolist()), tuple(discounts(ranks).tolist())
