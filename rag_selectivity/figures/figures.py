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
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray, Measure, Outcome
from rag_selectivity.measures.plan import Plan, ranks_in
from rag_selectivity.tables.ids import HashArray, IntArray


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
            _rules(judged.policy),
            judged.pool is not None,
            None if documents is None else f"{documents.fingerprint:016x}",
        )


def _rules(policy: Policy) -> dict[str, str]:
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
        return Facts(self.judged.label_hashes, self.judged.corpus_size, weights)

    @property
    def rules(self) -> Rules | None:
        """What another table must share; None where that is not known."""
        if self.judged is None:
            return None if self.stored is None else self.stored[1]
        return Rules.of(self.judged)

    def where(self, chosen: NDArray[Any]) -> Figures:
        """The rows of some of the queries, by mask, or by position (then without the join)."""
        rows = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        known = self.whole is not None and self.whole[1] is None and chosen.dtype == bool
        return Figures(
            tuple(self.queries[row] for row in rows.tolist()),
            self.plan,
            [outcome.over(rows) for outcome in self.outcomes],
            (self.whole[0], chosen) if known and self.whole is not None else None,
        )

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

    # -- stored ------------------------------------------------------------------------------------------

    def to_dict(self, keys: Collection[str]) -> dict[str, Any]:
        """As plain data: what a later report is compared with, of the measures with these names.

        A part is a list with a number for each query, or None if it is undefined. It is a single number if all queries
        have the same, and a text such as `Success@10[0]` if it equals another part (here: part 0 of Success@10).
        """
        written: dict[bytes, str] = {}
        measures: dict[str, list[Any]] = {}
        for key, columns in self.columns.items():
            if key not in keys:
                continue
            measures[key] = []
            for number, column in enumerate(columns):
                plain, name = _plain(column), f"{key}[{number}]"
                if isinstance(plain, list):
                    first = written.setdefault(np.ascontiguousarray(column).tobytes(), name)
                    plain = plain if first == name else first
                measures[key].append(plain)
        facts = self.facts
        return {
            "queries": list(self.queries),
            "labels": None if facts.labels is None else [f"{each:016x}" for each in facts.labels.tolist()],
            "corpus_size": None if facts.sizes is None else _plain(facts.sizes.astype(np.float64)),
            "parts": measures,
            **({} if facts.weights is None else {"weights": _plain(facts.weights)}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], rules: Rules | None, measures: Mapping[str, Measure]) -> Figures:
        """Read the output of `to_dict`; `measures` are those that this installation knows, others are left out.

        Damaged data raise a ValueError, KeyError or TypeError.
        """
        queries = tuple(data["queries"])
        known: dict[str, FloatArray] = {}
        plan: Plan = []
        outcomes = []
        for key, columns in data["parts"].items():
            for number, plain in enumerate(columns):
                known[f"{key}[{number}]"] = known[plain] if isinstance(plain, str) else _column(plain, len(queries))
            if (measure := measures.get(key)) is not None:
                plan.append((measure.without_depth, np.array([WHOLE_LIST if measure.at is None else measure.at])))
                parts = tuple(known[f"{key}[{number}]"][:, None] for number in range(len(columns)))
                outcomes.append(Outcome(parts, "it was undefined when it was stored"))
        facts = Facts(
            None if data["labels"] is None else np.array([int(each, 16) for each in data["labels"]], np.uint64),
            None if data["corpus_size"] is None else _column(data["corpus_size"], len(queries)).astype(np.int64),
            None if data.get("weights") is None else _column(data["weights"], len(queries)),
        )
        return cls(queries, plan, outcomes, stored=(facts, rules))


def _plain(column: FloatArray) -> Any:
    """A column for JSON: whole numbers as integers, NaN as None, and a single number if all are equal."""
    if not len(column):
        return []
    known = ~np.isnan(column)
    filled = np.where(known, column, 0.0)
    # Floats above 2**53 do not represent whole numbers exactly, and infinities are no whole numbers.
    whole = bool((np.abs(filled) <= 1 << 53).all() and (filled == np.floor(filled)).all())
    values = (filled.astype(np.int64) if whole else filled).astype(object)
    values[~known] = None
    infinite = np.isinf(filled)
    if infinite.any():
        values[infinite] = np.where(filled[infinite] > 0, "inf", "-inf")
    elif not known.any() or (column == column[0]).all():
        return values[0]
    return values.tolist()


def _column(plain: Any, count: int) -> FloatArray:
    """Read the output of `_plain`; None becomes NaN."""
    column = np.array(plain, np.float64)
    if column.ndim == 0:
        return np.full(count, column)
    if column.shape != (count,):
        raise ValueError(f"{len(column)} figures for {count} queries")
    return column
