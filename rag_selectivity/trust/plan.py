"""What labels by people will buy: the widths of calibrated intervals to expect, by simulation on one's own labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.measures.plan import Plan
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.completions import completed_figures
from rag_selectivity.trust.people import UNLABELLED, Ground
from rag_selectivity.trust.strata import Strata

#: Simulated draws of labels for each number; completions of each.
_TIMES, _DRAWS = 3, 60
#: How much more than asked for is tried, to find the number that halves the width.
_FACTORS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class ExpectedWidth:
    """Half the width of the interval to expect, over the runs' figures of a measure.

    Attributes
    ----------
    measure : str
    labels : int
    half_width : float
        For these very queries: what more labels can make narrower. NaN if so few labels leave figures undefined.
    with_queries : float
        With the uncertainty from the queries, as `evaluate` prints it.
    """

    measure: str
    labels: int
    half_width: float
    with_queries: float


def expected_widths(
    labels: Qrels,
    draw: Callable[[int, int], Iterable[tuple[str, str]]],
    judged: Mapping[str, JudgedRun],
    known: IntArray | None,
    agreement: float | None,
    number: int,
    plan: Plan,
    *,
    depth: int,
    seed: int = 7,
) -> list[ExpectedWidth]:
    """Simulate people's labels, draw `number` of them and more, and calibrate.

    Parameters
    ----------
    labels : Qrels
        The judge's labels on their scale.
    draw : callable
        (number, seed) → the (query, passage) pairs that people are to label.
    known : int64[judgments] or None
        People's grades so far, -1 where there is none: the simulated people's grades are then one completion by them.
    agreement : float or None
        Without labels by people: in which share of the pairs people say what the judge says; otherwise they give
        the grade of a random pair.
    """
    if (known is None) == (agreement is None):
        raise InputError(
            "give either labels by people so far (--known FILE), or the share of pairs in which people and judge agree "
            "(--agreement SHARE)"
        )
    if agreement is not None and not 0 <= agreement <= 1:
        raise InputError(f"`agreement` must be a share from 0 to 1, got {agreement!r}")
    random, every = np.random.default_rng(seed), len(labels.query)
    worlds = [_people(labels, judged, known, agreement or 0.0, depth, random) for _ in range(_TIMES)]
    result = []
    for count in [number * factor for factor in _FACTORS if number * factor <= every] or [every]:
        widths: dict[str, list[tuple[float, float]]] = {}
        for time, people in enumerate(worlds):
            queries, passages = zip(*draw(count, seed + time), strict=True)
            rows = labels.judgments(labels.positions(queries), passages)
            human = np.full(every, UNLABELLED, np.int64)
            human[rows] = people[rows]
            ground, targets = Ground.of(labels, human), [(name,) for name in judged]
            found = completed_figures(ground, judged, targets, plan, Bootstrap(seed=seed), draws=_DRAWS)
            for key, figure in (each for figures in found.values() for each in figures.items()):
                half_width = (figure.fixed[1] - figure.fixed[0]) / 2
                widths.setdefault(key, []).append((half_width, (figure.high - figure.low) / 2))
        result += [ExpectedWidth(key, count, *np.mean(ends, axis=0).tolist()) for key, ends in widths.items()]
    return result


def halving(widths: Sequence[ExpectedWidth]) -> dict[str, int | None]:
    """{measure: the smallest tried number of labels that halves the width of the first}; None if none does."""
    result: dict[str, int | None] = {}
    for measure in dict.fromkeys(each.measure for each in widths):
        first, *more = (each for each in widths if each.measure == measure)
        result[measure] = min((each.labels for each in more if each.half_width <= first.half_width / 2), default=None)
    return result


def _people(
    labels: Qrels,
    judged: Mapping[str, JudgedRun],
    known: IntArray | None,
    agreement: float,
    depth: int,
    random: np.random.Generator,
) -> IntArray:
    """Grades that people could give to every pair."""
    if known is None:
        other = labels.grade[random.integers(0, len(labels.grade), len(labels.grade))]
        return np.where(random.random(len(labels.grade)) < agreement, labels.grade, other)
    ground = Ground.of(labels, known)
    (name, first), *others = ground.tops(judged, depth).items()
    strata = Strata.of(ground, {name: first}, [each for _, each in others], f"top {depth}")
    if strata.missing is not None:
        raise InputError(f"the labels by people so far are too few to plan with: {strata.missing}")
    grades, _ = next(strata.draws(1, (int(random.integers(1 << 30)),)))
    return grades
