"""What labels by people will buy: the widths of calibrated intervals to expect, by simulation on one's own labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.measures.plan import Plan
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.completions import Sampling, completed_figures
from rag_selectivity.trust.ground import UNLABELLED, Ground
from rag_selectivity.trust.strata import Places, Strata

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
    random = np.random.default_rng(seed)
    result = []
    pairs = zip(labels.query.tolist(), labels.passages, strict=True)
    position = {(labels.queries[query], passage): row for row, (query, passage) in enumerate(pairs)}
    counts = [number * factor for factor in _FACTORS if number * factor <= len(labels.query)] or [len(labels.query)]
    worlds = [_people(labels, judged, known, agreement, depth, random) for _ in range(_TIMES)]
    for count in counts:
        widths: dict[str, list[tuple[float, float]]] = {}
        for time, people in enumerate(worlds):
            human = np.full(len(labels.query), UNLABELLED, np.int64)
            rows = [position[pair] for pair in draw(count, seed + time)]
            human[rows] = people[rows]
            ground = Ground.of(labels, human, scale_named(labels.scale or "trec"))
            found = completed_figures(
                ground, judged, [(name,) for name in judged], plan, Sampling(seed=seed, draws=_DRAWS)
            )
            for figures in found.values():
                for key, figure in figures.items():
                    ends = (figure.fixed_high - figure.fixed_low) / 2, (figure.high - figure.low) / 2
                    widths.setdefault(key, []).append(ends)
        result += [ExpectedWidth(key, count, *np.mean(ends, axis=0).tolist()) for key, ends in widths.items()]
    return result


def halving(widths: Sequence[ExpectedWidth]) -> dict[str, int | None]:
    """{measure: the smallest tried number of labels that halves the width of the first}; None if none does."""
    result: dict[str, int | None] = {}
    for measure in dict.fromkeys(each.measure for each in widths):
        of_measure = [each for each in widths if each.measure == measure]
        enough = [each.labels for each in of_measure if each.half_width <= of_measure[0].half_width / 2]
        result[measure] = min(enough, default=None)
    return result


def _people(
    labels: Qrels,
    judged: Mapping[str, JudgedRun],
    known: IntArray | None,
    agreement: float | None,
    depth: int,
    random: np.random.Generator,
) -> IntArray:
    """Grades that people could give to every pair."""
    if known is not None:
        ground = Ground.of(labels, known, scale_named(labels.scale or "trec"))
        first, *others = ground.tops(judged, depth).items()
        top = f"top {depth}"
        strata = Strata.of(ground, Places.of(dict([first]), [each for _, each in others], top, ground.in_tail))
        if strata.missing is not None:
            raise InputError(f"the labels by people so far are too few to plan with: {strata.missing}")
        grades, _ = next(strata.draws(1, (int(random.integers(1 << 30)),)))
        return grades
    other = labels.grade[random.integers(0, len(labels.grade), len(labels.grade))]
    result: IntArray = np.where(random.random(len(labels.grade)) < float(agreement or 0.0), labels.grade, other)
    return result
