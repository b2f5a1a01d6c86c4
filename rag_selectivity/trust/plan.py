"""What labels by people will buy: the widths of calibrated intervals to expect, by simulation on one's own labels."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.plan import Plan
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.completions import completed_figures
from rag_selectivity.trust.people import UNLABELLED, Ground
from rag_selectivity.trust.strata import Strata

#: Simulated draws of labels for each number; completions of each; what both are drawn by.
_TIMES, _DRAWS, _SEED = 6, 50, 7
#: How much more than asked for is tried, to find the number that halves the width.
_FACTORS = (1, 2, 4, 8)


def expected_widths(
    labels: Qrels,
    draw: Callable[[int, int], Iterable[tuple[str, str]]],
    judged: Mapping[str, JudgedRun],
    known: IntArray | None,
    agreement: float | None,
    number: int,
    plan: Plan,
    bootstrap: Bootstrap,
    *,
    depth: int,
) -> list[dict[str, Any]]:
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

    Returns
    -------
    list of dict
        For each `measure` and number of `labels`, over the runs' figures: `half_width`, half the width of the interval
        for these very queries, at most that of fewer labels (NaN if so few leave figures undefined);
        `with_queries`, with the uncertainty from the queries, as `evaluate` prints it.
    """
    if (known is None) == (agreement is None):
        raise InputError("give people's labels so far (--known FILE) or how often a judge is right (--agreement SHARE)")
    if agreement is not None and not 0 <= agreement <= 1:
        raise InputError(f"`agreement` must be a share from 0 to 1, got {agreement!r}")
    worlds = list(_worlds(labels, judged, known, agreement or 0.0, depth))
    rows, every, targets = [], len(labels.query), [(name,) for name in judged]
    least, most = dict[str, FloatArray](), int((~labels.controls).sum())
    for count in [number * factor for factor in _FACTORS if number * factor <= most] or [most]:
        widths: dict[str, list[tuple[float, float]]] = {}
        for time, people in enumerate(worlds):
            pairs = list(draw(count, _SEED + time))
            chosen = labels.judgments(labels.positions([query for query, _ in pairs]), [each for _, each in pairs])
            human = np.full(every, UNLABELLED, np.int64)
            human[chosen], options = people[chosen], (judged, targets, plan, bootstrap)
            for found in completed_figures(Ground.of(labels, human), *options, draws=_DRAWS).values():
                for key, each in found.items():
                    both = (each.fixed[1] - each.fixed[0]) / 2, (each.high - each.low) / 2
                    widths.setdefault(key, []).append(both)
        for key, of_key in widths.items():
            least[key] = np.fmin(np.mean(of_key, axis=0), least.get(key, math.nan))
            half_width, with_queries = least[key].tolist()
            rows.append({"measure": key, "labels": count, "half_width": half_width, "with_queries": with_queries})
    return rows


def _worlds(
    labels: Qrels, judged: Mapping[str, JudgedRun], known: IntArray | None, agreement: float, depth: int
) -> Iterator[IntArray]:
    """Grades that people could give to every pair, once for each simulation."""
    if known is not None:
        ground = Ground.of(labels, known)
        (name, first), *others = ground.tops(judged, depth).items()
        strata = Strata.of(ground, {name: first}, [each for _, each in others], f"top {depth}")
        if strata.missing is not None:
            raise InputError(f"the labels by people so far are too few to plan with: {strata.missing[0]}")
        yield from (grades for grades, *_ in strata.draws(_TIMES, (_SEED,)))
        return
    random, every = np.random.default_rng(_SEED), len(labels.grade)
    other = labels.grade[random.integers(0, every, (_TIMES, every))]
    yield from np.where(random.random(other.shape) < agreement, labels.grade, other)
