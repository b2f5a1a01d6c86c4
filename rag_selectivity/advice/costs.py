"""The costs of a query for each run: tokens at every K, and what was measured in production."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rag_selectivity.advice.measured_costs import KINDS, TOKENS, QueryCosts, measured_costs
from rag_selectivity.errors import InputError, examples
from rag_selectivity.evaluation.estimates import ends_of, estimates_of
from rag_selectivity.evaluation.list_tokens import ListTokens, tokens_of
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.run import Run
from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.measures.outcome import MEAN
from rag_selectivity.results.decision import CostPoint
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.trade_off import QueryCost
from rag_selectivity.tables.exact import is_table
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.ids import IntArray, numbered
from rag_selectivity.tables.small import CHARACTERS_A_TOKEN, per_passage, token_lengths
from rag_selectivity.wording import counted, enumeration

#: Up to this K every K is drawn; beyond it, about so many more.
_ALL_UP_TO, _FURTHER = 50, 20


@dataclass(frozen=True)
class Costs:
    """What is known of the cost of a query, for each run.

    Attributes
    ----------
    queries : {run: tuple of str}
        The queries of the judgments.
    lists : {run: ListTokens}
        The lengths of the passages of each list, for the runs where they are known: the tokens at every K.
    estimated : frozenset of str
        The runs whose lengths are estimated from texts.
    measured : {run: {"tokens" or "milliseconds" or "price": float64[queries]}}
        The measured cost of each query, NaN where it is not known. It is that of the K that production used, and of no
        other.
    notes : tuple of str
        What is estimated, and which queries have no costs.
    bootstrap : Bootstrap or None
        For the intervals of `at`; None for none.
    """

    queries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lists: Mapping[str, ListTokens] = field(default_factory=dict)
    estimated: frozenset[str] = frozenset()
    measured: Mapping[str, Mapping[str, FloatArray]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    bootstrap: Bootstrap | None = None
    _at: dict[int, dict[str, dict[str, Estimate]]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __bool__(self) -> bool:
        """Whether any cost of any run is known."""
        return bool(self.lists or self.measured)

    def at(self, run: str, K: int) -> dict[str, Estimate]:
        """The mean cost of a query by its kind, with its interval, at the K of the decision; empty if none is known.

        `n` is the number of queries whose cost is known, `n_total` that of all queries of the judgments. Tokens are the
        lengths of the top K passages; measured tokens take their place where the lengths are estimated or unknown.
        Milliseconds and price are as they were measured, whatever K is.
        """
        if K not in self._at:
            self._at[K] = self._all_at(K)
        return dict(self._at[K].get(run, {}))

    def _all_at(self, K: int) -> dict[str, dict[str, Estimate]]:
        """The mean costs of all runs; runs over the same queries are resampled in one pass."""
        by_queries: dict[tuple[str, ...], list[tuple[str, str, Outcome]]] = {}
        for run, queries in self.queries.items():
            columns = self.columns_at(run, K)
            # Without bounds: a cost can be of any size.
            by_queries.setdefault(queries, []).extend(
                (run, kind, Outcome((columns[kind][:, None],), "no cost is known", MEAN, bounds=None))
                for kind in KINDS
                if kind in columns
            )
        result: dict[str, dict[str, Estimate]] = {}
        for queries, known in by_queries.items():
            ends = ends_of([outcome for *_, outcome in known], queries, self.bootstrap)
            for (run, kind, outcome), of_outcome in zip(known, ends, strict=True):
                result.setdefault(run, {})[kind] = estimates_of(outcome, of_outcome)[0]
        return result

    def of_query(self, run: str, K: int) -> dict[str, QueryCost]:
        """What a query costs at the K of the decision, by the kind of cost: mean, median and 95th percentile.

        >>> costs = Costs({"r": ("q1", "q2", "q3")}, measured={"r": {"price": np.array([1.0, 4.0, np.nan])}})
        >>> price = costs.of_query("r", 5)["price"]
        >>> price.mean.value, price.p50, price.p95, price.of_a_thousand
        (2.5, 1.0, 4.0, 2500.0)
        """
        means, columns = self.at(run, K), self.columns_at(run, K)
        result = {}
        for kind, mean in means.items():
            known = np.sort(columns[kind][~np.isnan(columns[kind])])
            result[kind] = QueryCost(mean, _not_exceeded(known, 50), _not_exceeded(known, 95))
        return result

    def columns_at(self, run: str, K: int) -> dict[str, FloatArray]:
        """{kind of cost: float64[queries]} at the K of the decision; NaN where the cost of a query is not known."""
        columns: dict[str, FloatArray] = {}
        if run in self.lists:
            columns[TOKENS] = self.lists[run].at(K)
        for kind, values in self.measured.get(run, {}).items():
            if kind not in columns or run in self.estimated:
                columns[kind] = values
        return columns

    def mean_at(self, run: str, depths: Sequence[int] | IntArray) -> FloatArray:
        """Mean tokens of the top K of a query at each K: float64[depths]; NaN where no lengths are known.

        A list shorter than K costs what it has.
        """
        at = np.asarray(depths, np.int64)
        if run not in self.lists:
            return np.full(len(at), np.nan)
        means = self.lists[run].means()
        result: FloatArray = means[np.minimum(at, len(means)) - 1]
        return result


def read_costs(
    judged: Mapping[str, JudgedRun],
    runs: Mapping[str, Any],
    *,
    costs: Any = None,
    tokens: Any = None,
    corpus: Any = None,
    ids: str | IdForm | None = None,
    bootstrap: Bootstrap | None = Bootstrap(),
) -> Costs:
    """The costs of a query of each run.

    The lengths of passages come from `tokens`, else from a run's own `tokens` column, else from the texts of `corpus`:
    these are estimates at four characters a token, and a note says so.

    Parameters
    ----------
    judged : {run: JudgedRun}
        The joined runs, as `join_runs` gives them.
    runs : {run: Run, path, dict or DataFrame}
        The same runs with their lists.
    costs : path, DataFrame, mapping or rows, optional
        Measured costs, as `rag_selectivity.advice.measured_costs.measured_costs` reads them.
    tokens : {passage: tokens}, DataFrame or path, optional
    corpus : {passage: text}, DataFrame, path, records or pairs, optional
        Where passages have no text in it, no tokens are estimated, and a note says so. The same where lists name
        documents and each slot is one of their passages (`passages_of`).
    ids : str, optional
        The form of ids, as in `evaluate`.
    bootstrap : Bootstrap or None
        For the intervals of the means; None for none.

    Returns
    -------
    Costs
        Tokens, milliseconds, and price in the currency of the table: numbers ≥ 0 of one query, NaN where unknown, and
        means over the queries whose cost is known. A run without any known cost has no entry.

    Raises
    ------
    InputError
        If a value is wrong (with the file and the line), if a passage has no length in `tokens`, or if costs have no
        query in common with a run.
    """
    form = IdForm.of(ids)
    lengths = None if tokens is None else per_passage(tokens, "number of tokens", float, name="tokens", form=form)
    measured = {} if costs is None else measured_costs(costs, list(judged), form)
    lists: dict[str, ListTokens] = {}
    without: dict[str, Run] = {}
    for name, run in judged.items():
        if lengths is None and corpus is None and _has_no_tokens(runs[name]):
            continue
        opened = Run.of(runs[name], run.policy).in_form(form)
        listed = ListTokens.of(opened, run, lengths, name)
        if listed is not None:
            lists[name] = listed
        elif corpus is not None and run.documents is None:
            without[name] = opened
    estimated, notes = _estimated(without, judged, corpus, form) if without else ({}, [])
    lists |= estimated
    notes += [
        f"{name}: there are no measured costs of this run" for name in judged if measured and name not in measured
    ]
    columns = {name: _columns(measured[name], judged[name], name, notes) for name in judged if name in measured}
    return Costs(
        {name: run.queries for name, run in judged.items()},
        {name: lists[name] for name in judged if name in lists},
        frozenset(estimated),
        {name: kinds for name, kinds in columns.items() if kinds},
        tuple(notes),
        bootstrap,
    )


def _has_no_tokens(run: Any) -> bool:
    """Whether a run cannot have lengths of its own, so that its file need not be read."""
    return is_path(run) and not is_table(run)


def _estimated(
    runs: Mapping[str, Run], judged: Mapping[str, JudgedRun], corpus: Any, form: IdForm
) -> tuple[dict[str, ListTokens], list[str]]:
    """The tokens of runs by the texts of their passages, and notes on what is estimated and what cannot be."""
    listed = {name: ListTokens.of_run(run, judged[name]) for name, run in runs.items()}
    ids, codes = numbered(passage for lists in listed.values() for passage in lists.passages)
    tokens = tokens_of(ids, token_lengths(corpus, form=form, only=set(ids)))
    estimated: dict[str, ListTokens] = {}
    notes = []
    ends = np.cumsum([len(lists.passages) for lists in listed.values()])
    for (name, lists), of_lists in zip(listed.items(), np.split(codes, ends), strict=False):
        absent = np.unique(of_lists[np.isnan(tokens[of_lists])])
        if len(absent):
            passages = counted(len(np.unique(of_lists)), "passage")
            notes.append(
                f"{name}: no tokens are estimated, since {len(absent)} of its {passages} have no text in the corpus "
                f"({examples(sorted(ids[code] for code in absent.tolist()))})"
            )
        else:
            estimated[name] = replace(lists, tokens=tokens[of_lists])
    if estimated:
        notes.append(
            f"the tokens of {enumeration(list(estimated))} are estimated from the texts of the corpus, at "
            f"{CHARACTERS_A_TOKEN} characters a token"
        )
    return estimated, notes


def _columns(costs: QueryCosts, judged: JudgedRun, name: str, notes: list[str]) -> dict[str, FloatArray]:
    """{kind of cost: float64[queries]} of the queries that are evaluated; adds notes on those without costs."""
    inside = judged.in_run.tolist()
    evaluated = [query for query, present in zip(judged.queries, inside, strict=True) if present]
    shared = sum(query in costs for query in evaluated)
    if not shared:
        raise InputError(
            f"{name}: none of the {counted(len(costs), 'query', 'queries')} with costs ({examples(costs)}) is one of "
            f"the {len(evaluated)} that are evaluated ({examples(evaluated)}): compare the query ids"
        )
    if shared < len(costs):
        notes.append(
            f"{name}: {len(costs) - shared} of {counted(len(costs), 'query', 'queries')} with costs are not evaluated: "
            f"their costs are left out"
        )
    place = {query: i for i, query in enumerate(judged.queries)}
    columns = {}
    for kind in KINDS:
        known = {query: costs[query][kind] for query in evaluated if kind in costs.get(query, {})}
        if not known:
            continue
        columns[kind] = np.full(len(judged), np.nan)
        columns[kind][[place[query] for query in known]] = list(known.values())
        absent = [query for query in evaluated if query not in known]
        if absent:
            notes.append(
                f"{name}: {len(absent)} of {counted(len(evaluated), 'query', 'queries')} have no {kind} "
                f"({examples(absent)}): the mean is over the other {len(known)}"
            )
    return columns


def _not_exceeded(ordered: FloatArray, percent: int) -> float:
    """The smallest of the values that at least so many percent of them do not exceed; NaN without values."""
    return float(ordered[-(-len(ordered) * percent // 100) - 1]) if len(ordered) else float("nan")


# -- cost against quality --------------------------------------------------------------------------------


def drawn_depths(longest: int, *others: int) -> IntArray:
    """The K of a curve of cost against quality: all up to 50, about 20 from there to the longest list, and others.

    >>> drawn_depths(3, 2).tolist(), len(drawn_depths(1000)), drawn_depths(60, 7)[-3:].tolist()
    ([1, 2, 3], 70, [58, 59, 60])
    """
    chosen = {*range(1, min(longest, _ALL_UP_TO) + 1), *others}
    if longest > _ALL_UP_TO:
        chosen |= set(np.geomspace(_ALL_UP_TO, longest, _FURTHER + 1).round().astype(int).tolist())
    return np.array(sorted(chosen), np.int64)


def pareto(points: Iterable[CostPoint]) -> tuple[CostPoint, ...]:
    """The points with `front` set, in the order given.

    A point is on the front if no other point costs at most as much with at least the same quality, and is strictly
    better in one of the two. Of equal points all are on the front. A point without cost or quality (NaN) is not.

    >>> cheap, good, bad = (CostPoint("r", 1, c, q, False) for c, q in ((1, 0.5), (2, 0.9), (3, 0.8)))
    >>> [point.front for point in pareto([bad, cheap, good])]
    [False, True, True]
    """
    given = list(points)
    best_at: dict[float, float] = {}
    for point in given:
        if point.cost == point.cost and point.quality == point.quality:
            best_at[point.cost] = max(point.quality, best_at.get(point.cost, -np.inf))
    front: set[tuple[float, float]] = set()
    cheaper: float | None = None
    for cost, quality in sorted(best_at.items()):
        if cheaper is None or quality > cheaper:
            front.add((cost, quality))
            cheaper = quality
    return tuple(replace(point, front=(point.cost, point.quality) in front) for point in given)


def cost_points(
    costs: Costs, curves: Mapping[str, FloatArray], depths: Sequence[int] | IntArray, K: int
) -> dict[str, tuple[CostPoint, ...]]:
    """Cost against quality of all runs, with the front over all of them, for each kind of cost that is known.

    Parameters
    ----------
    costs : Costs
    curves : {run: float64[depths]}
        The quality of each run at each depth (more is better); NaN where it is undefined.
    depths : sequence of int
        As `drawn_depths` chooses them. A run has tokens at all of them up to its longest list, and at K.
    K : int
        The K of the decision, which is one of the depths. Milliseconds and price are known at this K only; so are
        tokens that were measured, of a run whose passages have no lengths.

    Returns
    -------
    {"tokens" or "milliseconds" or "price": tuple of CostPoint}
    """
    at = np.asarray(depths, np.int64)
    place = np.flatnonzero(at == K)
    if not len(place):
        raise InputError(f"the K of the decision ({K}) is not among the depths of the curves")
    points: dict[str, list[CostPoint]] = {kind: [] for kind in KINDS}
    for run, quality in curves.items():
        if run in costs.lists:
            longest = int(costs.lists[run].lengths.max(initial=0))
            for depth, cost, figure in zip(at.tolist(), costs.mean_at(run, at).tolist(), quality.tolist(), strict=True):
                if depth <= max(longest, 1) or depth == K:
                    points[TOKENS].append(CostPoint(run, depth, cost, figure, False))
        for kind, values in costs.measured.get(run, {}).items():
            if kind != TOKENS or run not in costs.lists:
                points[kind].append(CostPoint(run, K, float(np.nanmean(values)), float(quality[place[0]]), False))
    usable = {
        kind: [point for point in of_kind if np.isfinite(point.cost) and np.isfinite(point.quality)]
        for kind, of_kind in points.items()
    }
    return {kind: pareto(of_kind) for kind, of_kind in usable.items() if of_kind}
