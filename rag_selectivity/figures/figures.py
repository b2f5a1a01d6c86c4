"""Figures: a run's table, a row for each query and a column for each part of each measure at each depth."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import Policy
from rag_selectivity.measures.base import FloatArray, Measure, Outcome
from rag_selectivity.measures.plan import Plan, ranks_in
from rag_selectivity.tables.ids import HashArray, IntArray, mix


@dataclass(frozen=True, slots=True)
class Rules:
    """What two tables must share to be compared.

    Attributes
    ----------
    scale : str
    policy : {name: choice}
    pool : bool
        Whether a pool was given.
    passages_of : str or None
        A hash of the numbers of passages of all documents; None if none were given.
    """

    scale: str
    policy: Mapping[str, str]
    pool: bool
    passages_of: str | None

    @classmethod
    def of(cls, judged: JudgedRun) -> Rules:
        """The rules of a join."""
        documents = judged.documents
        return cls(
            judged.scale.name,
            rules_in(judged.policy),
            judged.pool is not None,
            None if documents is None else f"{documents.fingerprint:016x}",
        )


def rules_in(policy: Policy) -> dict[str, str]:
    """The rules of a policy as texts; one that is off is left out."""
    rules = {**asdict(policy), "duplicates": policy.duplicates or "count_once"}
    return {name: str(rule) for name, rule in rules.items() if rule is not False}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the queries of a table beside their figures.

    Attributes
    ----------
    labels : uint64[queries] or None
        A hash of each query's judgments: equal if and only if passages and grades are equal (but for collisions), in
        any order; None if only counts are known.
    sizes : int64[queries] or None
        N of each query.
    weights : float64[queries] or None
        How much each query counts; None where all count alike.
    """

    labels: HashArray | None = None
    sizes: IntArray | None = None
    weights: FloatArray | None = None

    def over(self, rows: NDArray[Any]) -> Facts:
        """The facts of some of the queries, by mask or by position."""
        return Facts(*(None if each is None else each[rows] for each in (self.labels, self.sizes, self.weights)))


@dataclass(frozen=True)
class Figures:
    """The figures of one run, by query; means, intervals, differences and slices are functions of this table.

    Attributes
    ----------
    queries : tuple of str
    plan : list of (Measure, depths)
        Each measure without its depth.
    outcomes : sequence of Outcome
        For each measure of the plan its parts, float64[queries, depths] each, and how they aggregate.
    whole : (JudgedRun, bool[queries] or None) or None
        The join that was measured, and which of its queries these are (None: all); None for a table that was stored.
    stored : (Facts, Rules or None) or None
        What a stored table knows of its queries.
    """

    queries: tuple[str, ...]
    plan: Plan
    outcomes: Sequence[Outcome]
    whole: tuple[JudgedRun, NDArray[np.bool_] | None] | None = field(default=None, repr=False, compare=False)
    stored: tuple[Facts, Rules | None] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, judged: JudgedRun, plan: Plan) -> Figures:
        """Measure a join.

        Raises
        ------
        InputError
            If the join lacks what a measure needs, or a depth is beyond its corpus.
        """
        judged.check_depths(ranks_in(plan))
        outcomes = [measure.outcome(judged, at).settled() for measure, at in plan]
        judged.forget()
        return cls(judged.queries, plan, outcomes, (judged, None))

    @cached_property
    def judged(self) -> JudgedRun | None:
        """The join of these queries; None for a table that was stored."""
        if self.whole is None:
            return None
        judged, chosen = self.whole
        return judged if chosen is None else judged.over(chosen)

    @property
    def join(self) -> JudgedRun:
        """The join of these queries, where there must be one."""
        if self.judged is None:
            raise TypeError("a stored table has no join")
        return self.judged

    @cached_property
    def facts(self) -> Facts:
        """What is known of the queries."""
        if self.judged is None:
            return Facts() if self.stored is None else self.stored[0]
        weights = None if self.judged.weights is None else self.judged.weights.values
        return Facts(_label_hashes(self.judged), self.judged.corpus_size, weights)

    @property
    def rules(self) -> Rules | None:
        """What another table must share; None where that is not known."""
        if self.stored is not None:
            return self.stored[1]
        return None if self.judged is None else Rules.of(self.judged)

    def where(self, chosen: NDArray[Any]) -> Figures:
        """The rows of some of the queries, by mask, or by position in any order (then without the join)."""
        rows, every = np.flatnonzero(chosen) if chosen.dtype == bool else chosen, np.arange(len(self.queries))
        if np.array_equal(rows, every):
            return self
        whole, stored = None, None
        if self.whole is not None and self.whole[1] is None and (rows[1:] > rows[:-1]).all():
            whole = self.whole[0], np.isin(every, rows)
        else:
            stored = self.facts.over(rows), self.rules
        outcomes = [outcome.over(rows) for outcome in self.outcomes]
        queries = tuple(map(self.queries.__getitem__, rows.tolist()))
        return Figures(queries, self.plan, outcomes, whole, stored)

    def only(self, measures: Collection[Measure]) -> Figures:
        """The columns of some measures, at all their depths."""
        asked = {measure.without_depth for measure in measures}
        rows = [i for i, (measure, _) in enumerate(self.plan) if measure in asked]
        return replace(self, plan=[self.plan[i] for i in rows], outcomes=[self.outcomes[i] for i in rows])

    def outcome(self, measure: Measure) -> Outcome | None:
        """One measure at its depth; measured now if the table lacks it, None if that cannot be."""
        base = measure.without_depth
        at = base.default_depths(np.array([1]))[0] if measure.at is None else measure.at
        for (each, depths), outcome in zip(self.plan, self.outcomes, strict=True):
            if each == base and len(column := np.flatnonzero(depths == at)):
                return outcome.at(slice(column[0], column[0] + 1))
        return None if self.judged is None else base.outcome(self.judged, np.array([at])).settled()

    @property
    def columns(self) -> dict[str, tuple[FloatArray, ...]]:
        """The parts of each measure by its canonical name: float64[queries] each, NaN where it is undefined."""
        return {key: parts for _, key, parts in self._each()}

    @property
    def per_query(self) -> dict[str, FloatArray]:
        """The measures that have a figure for a single query: float64[queries] by canonical name."""
        return {key: parts[0] for measure, key, parts in self._each() if measure.per_query}

    def _each(self) -> Iterable[tuple[Measure, str, tuple[FloatArray, ...]]]:
        for (measure, at), outcome in zip(self.plan, self.outcomes, strict=True):
            for i, depth in enumerate(at.tolist()):
                yield measure, str(measure @ depth), tuple(part[:, i] for part in outcome.parts)


def _label_hashes(judged: JudgedRun) -> HashArray | None:
    """A hash of each query's judgments, including the controls: uint64[queries]; None if only counts are known."""
    if judged.qrels is None:
        return None
    drawn, hashes = judged.qrels.controls, judged.qrels.without_controls().label_hashes()
    if drawn.any():
        of_controls = judged.qrels.take(drawn).label_hashes()
        hashes = mix(hashes, mix(of_controls, np.ones_like(of_controls)))
    return hashes[judged.qrels.positions(judged.queries)]
