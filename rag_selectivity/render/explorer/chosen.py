"""The queries whose passages can be read where a page has no room for the texts of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.advice.query_facts import QueryFacts, Terms
from rag_selectivity.advice.stand_outs import HardNegative
from rag_selectivity.measures import Measure
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.plan import at_depth
from rag_selectivity.measures.utility import Harm, PercentPROC
from rag_selectivity.results.plain import finite
from rag_selectivity.results.report import Report
from rag_selectivity.wording import counted, enumeration

_SEED = 7


@dataclass(frozen=True, slots=True)
class Group:
    """Queries with something in common; `queries` are positions in the table, those that matter most first.

    `words` follow their number in a sentence, as in "50 with the largest difference".
    """

    words: str
    queries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some queries by their positions, and a sentence that says which ones they are."""

    queries: frozenset[int]
    sentence: str


def groups_of(
    report: Report,
    facts: Sequence[QueryFacts],
    shown: Measure,
    depth: int,
    best: str,
    terms: Terms,
    hard: Iterable[HardNegative],
) -> list[Group]:
    """The queries that matter: the worst ones by each figure, those whose runs differ, those with doubtful labels."""
    place = list(report.runs).index(best)
    figures = {str(shown): {each.id: each.figures[place] for each in facts}}
    lower_is_better = {str(shown): shown.higher_is_better is False}
    run = report.runs[best]
    for measure in (Success(rel=terms.rel, m=terms.m), PercentPROC(), Harm()):
        values = at_depth(run.per_query, measure, depth)
        if values is not None:
            name = str(measure @ depth)
            figures.setdefault(name, dict(zip(run.queries, map(finite, values.tolist()), strict=True)))
            lower_is_better[name] = measure.higher_is_better is False
    groups = [
        Group(f"worst of {best} by {name}", _worst(facts, of_queries, lower_is_better=lower_is_better[name]))
        for name, of_queries in figures.items()
    ]
    if len(report.runs) > 1:
        groups.append(Group(f"with the largest difference in {shown} between two runs", _most_different(facts)))
    places = {each.id: i for i, each in enumerate(facts)}
    doubtful = dict.fromkeys(places[each.query] for each in hard if each.query in places)
    groups.append(Group("with the first hard negatives", tuple(doubtful)))
    return [group for group in groups if group.queries]


def chosen_of(groups: Sequence[Group], total: int, most: int) -> Chosen:
    """So many queries of each group, and as many of the rest, drawn with a fixed seed."""
    held: set[int] = set()
    words = []
    for group in groups:
        first = group.queries[:most]
        held.update(first)
        words.append(f"the {len(first):,} {group.words}")
    rest = [i for i in np.random.default_rng(_SEED).permutation(total).tolist() if i not in held][:most]
    if rest:
        words.append(f"{counted(len(rest), 'other')} drawn at random")
    return Chosen(frozenset(held.union(rest)), f"They are {enumeration(words)}.")


def _worst(
    facts: Sequence[QueryFacts], figures: Mapping[str, float | None], *, lower_is_better: bool
) -> tuple[int, ...]:
    sign = -1.0 if lower_is_better else 1.0
    known = [(sign * value, i) for i, each in enumerate(facts) if (value := figures.get(each.id)) is not None]
    return tuple(i for _, i in sorted(known))


def _most_different(facts: Sequence[QueryFacts]) -> tuple[int, ...]:
    spreads = []
    for i, each in enumerate(facts):
        known = [value for value in each.figures if value is not None]
        if known and (spread := max(known) - min(known)) > 0:
            spreads.append((-spread, i))
    return tuple(i for _, i in sorted(spreads))
