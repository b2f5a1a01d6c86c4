"""Which runs can be told apart: all pairs of runs under one measure, and a letter for runs that cannot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from string import ascii_lowercase

from rag_selectivity.compare.differences import Testing
from rag_selectivity.compare.pairs import differences
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import Measure
from rag_selectivity.results.comparison import BETTER, RunDifference
from rag_selectivity.results.decision import Pair
from rag_selectivity.results.report import Report


def best_first(report: Report, measure: Measure) -> list[str]:
    """The runs by a measure, the best first; runs without a value last, ties in the order of the report."""
    sign = 1 if measure.higher_is_better is False else -1

    def key(name: str) -> tuple[bool, float]:
        value = report[name, measure].value
        return math.isnan(value), 0.0 if math.isnan(value) else sign * value

    return sorted(report.runs, key=key)


def all_pairs(
    order: Sequence[str],
    figures: Mapping[str, Figures],
    report: Report,
    bootstrap: Bootstrap,
    *,
    paired: bool,
) -> tuple[RunDifference, ...]:
    """The measured differences of all pairs of runs: the one that comes first in `order` minus the other.

    All pairs are one family of Holm's correction. Unless unpaired, runs over different queries make no pair.
    """
    pairs = comparable(combinations(order, 2), figures, paired=paired)
    return differences(pairs, figures, report, Testing(bootstrap, paired))


def comparable(
    pairs: Iterable[tuple[str, str]], runs: Mapping[str, Figures | JudgedRun], *, paired: bool
) -> list[tuple[str, str]]:
    """The pairs of runs that can be compared: over the same queries, or any if unpaired."""
    return [(one, other) for one, other in pairs if not paired or runs[one].queries == runs[other].queries]


def pair_of(row: RunDifference) -> Pair:
    """The pair of a difference, for the decision."""
    return Pair(
        run=row.run,
        other=row.baseline,
        difference=row.difference,
        low=row.low,
        high=row.high,
        p_adjusted=row.p_adjusted,
        detectable=row.detectable,
        verdict=row.verdict,
        # Where figures rest on completed labels and tests do not, the run that comes first can be the worse one.
        apart=row.verdict == BETTER,
        wins=row.wins,
        ties=row.ties,
        losses=row.losses,
    )


def letters(order: Sequence[str], apart: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Letters for runs, so that two runs share a letter if and only if they cannot be told apart.

    Each letter stands for a largest set of runs of which no two can be told apart; `a` holds the first run of `order`.
    After `z` come `aa`, `ab`, …, with a space between the letters of a run.

    >>> letters(["hybrid", "lsa", "bm25"], [("hybrid", "bm25")])
    {'hybrid': 'a', 'lsa': 'ab', 'bm25': 'b'}
    """
    told = {frozenset(pair) for pair in apart}
    alike = {one: {other for other in order if other != one and frozenset((one, other)) not in told} for one in order}
    place = {name: i for i, name in enumerate(order)}
    cliques: list[list[str]] = []

    def grow(chosen: list[str], candidates: set[str], excluded: set[str]) -> None:
        """Bron and Kerbosch 1973, with a pivot."""
        if not candidates and not excluded:
            cliques.append(sorted(chosen, key=place.__getitem__))
            return
        pivot = max(candidates | excluded, key=lambda name: len(alike[name] & candidates))
        for name in sorted(candidates - alike[pivot], key=place.__getitem__):
            grow([*chosen, name], candidates & alike[name], excluded & alike[name])
            candidates = candidates - {name}
            excluded = excluded | {name}

    grow([], set(order), set())
    cliques.sort(key=lambda clique: [place[name] for name in clique])
    of_run: dict[str, list[str]] = {name: [] for name in order}
    for number, clique in enumerate(cliques):
        for name in clique:
            of_run[name].append(_letter(number))
    separator = " " if len(cliques) > len(ascii_lowercase) else ""
    return {name: separator.join(given) for name, given in of_run.items()}


def _letter(number: int) -> str:
    before, last = divmod(number, len(ascii_lowercase))
    return (_letter(before - 1) if before else "") + ascii_lowercase[last]
