"""The figures of single queries: the join of one query, or of several at once, and the measures on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.judged.joining import join
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import resolve_policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.measures import Measure, Outcome, parse_measure
from rag_selectivity.measures.plan import LARGEST_DEPTH
from rag_selectivity.measures.refusal import Refusal
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.ids import check_ids

NO_LABELS = "nobody judged this query"
_QUERY = "query"


def measure_with_depth(measure: str | Measure) -> Measure:
    """A measure that is one figure: at a depth, or of the whole list.

    >>> measure_with_depth("bor@10"), measure_with_depth("RR")
    (BoR@10, RR)

    Raises
    ------
    InputError
        If the depth is missing, or there is no such measure.
    """
    parsed = parse_measure(measure)
    if parsed.at is None and not parsed.takes_whole_lists:
        raise InputError(f"{parsed}: name the depth, as in {parsed}@10")
    if type(parsed.at) is int and parsed.at > LARGEST_DEPTH:
        raise InputError(f"depth {shown(parsed.at)} is larger than any list: give one up to {LARGEST_DEPTH:,}")
    return parsed


def per_query_measure(measure: str | Measure, *, needs_depth: bool = True) -> Measure:
    """A measure that has a figure for one query; a ratio of means has none.

    `needs_depth=False` admits a measure without its depth, for a host that measures lists as long as they are.

    Raises
    ------
    InputError
        If the measure is a ratio of means, or its depth is missing.
    """
    parsed = measure_with_depth(measure) if needs_depth else parse_measure(measure)
    if not parsed.per_query:
        raise InputError(f"{parsed} is a ratio of means and has no figure for one query; it stands in a report")
    return parsed


def at_depths(measures: Iterable[str | Measure], depths: Iterable[int]) -> list[Measure]:
    """Measures of one query, those that name no depth at each depth.

    >>> at_depths(["Harm", "RR", "P@5"], [2, 4])
    [Harm@2, Harm@4, RR, P@5]
    """
    chosen = []
    for measure in map(parse_measure, measures):
        is_fixed = measure.at is not None or measure.takes_whole_lists
        chosen += [measure] if is_fixed else [measure @ depth for depth in depths]
    return list(dict.fromkeys(map(per_query_measure, chosen)))


@dataclass(frozen=True, slots=True)
class QueryFigure:
    """A measure's figure for one query.

    Attributes
    ----------
    measure : Measure
        With its depth.
    value : float
        In the range of the measure; NaN if it is undefined for this query, as a ratio of means always is.
    reason : str or None
        Why the value is NaN.
    outcome : Outcome or None
        What `aggregate` makes the estimate of; None if nobody judged the query.
    details : {name: number}
        What the figure was made of: `judged` and `returned` passages in the top K, `relevant` ones that are known,
        and the measure's own quantities.
    """

    measure: Measure
    value: float
    reason: str | None = None
    outcome: Outcome | None = None
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def score(self) -> float | None:
        """The value, or None where it is NaN."""
        return None if math.isnan(self.value) else self.value

    @property
    def counts(self) -> dict[str, str]:
        """How many passages were `returned`, `judged` and `relevant`, as text; of `details`."""
        return {key: f"{self.details[key]:g}" for key in ("returned", "judged", "relevant") if key in self.details}


def evaluate_query(
    measure: str | Measure, grades: Mapping[str, int] | None, passages: Sequence[str], **options: Any
) -> QueryFigure:
    """The figure of a measure for one query, and the reason if it is NaN.

    Parameters
    ----------
    measure : str or Measure
        With its depth, `"RA-nWG@10"`. A ratio of means (`"BoR@10"`) is NaN for one query and defined in `aggregate`.
    grades : {passage: grade} or None
        None, as `Labels.of_query` has it, if nobody judged the query: the figure is NaN.
    passages : sequence of str
        Ids in rank order.
    options
        As in `evaluate_queries`; `pool` is the list of this query.

    Raises
    ------
    InputError
        As `evaluate_queries`.

    Examples
    --------
    >>> figure = evaluate_query("Harm@2", {"d1": 5, "d2": 1}, ["d1", "d2"], scale="utility")
    >>> figure.value, evaluate_query("Harm@2", None, ["d1"]).reason
    (0.5, 'nobody judged this query')
    """
    return figures_of_query([measure], grades, passages, **options)[0]


def figures_of_query(
    measures: Sequence[str | Measure],
    grades: Mapping[str, int] | None,
    passages: Sequence[str],
    *,
    pool: Sequence[str] | None = None,
    **options: Any,
) -> tuple[QueryFigure, ...]:
    """The figures of several measures for one query, as `evaluate_query` gives each.

    >>> [figure.value for figure in figures_of_query(["Success@1", "RR"], {"d1": 1}, ["d9", "d1"])]
    [0.0, 0.5]

    Raises
    ------
    InputError
        As `evaluate_queries`.
    """
    pools = None if pool is None else {_QUERY: pool}
    return evaluate_queries(measures, {_QUERY: grades}, {_QUERY: passages}, pool=pools, **options)[_QUERY]


def evaluate_queries(
    measures: Sequence[str | Measure],
    grades: Mapping[str, Mapping[str, int] | None],
    lists: Mapping[str, Sequence[str]],
    *,
    pool: Mapping[str, Sequence[str]] | None = None,
    corpus_size: Any = None,
    passages_of: Any = None,
    scale: str | None = None,
    levels: Iterable[int] = (),
    details: bool = False,
    **policies: Any,
) -> dict[str, tuple[QueryFigure, ...]]:
    """The figures of several measures for each of some queries, from one join of them all.

    Parameters
    ----------
    measures : sequence of str or Measure
        With their depths.
    grades : {query: {passage: grade} or None}
        None if nobody judged the query: its figures are NaN.
    lists : {query: sequence of str}
        Ids in rank order; a query without a list retrieved nothing.
    pool : {query: sequence of str}, optional
        The candidates before reranking or selection, for PROC and %PROC.
    corpus_size : int or {query: int}, optional
        N, for the chance-corrected measures.
    passages_of : {document: number of its passages} or PassageCounts, optional
        As in `rag_selectivity.evaluate`, if grades and lists name documents. `PassageCounts.of` reads a large mapping
        once for many queries.
    scale : {"trec", "utility"}, optional
        As in `rag_selectivity.evaluate`.
    levels : iterable of int
        The grades that the labels hold for other queries too (`Labels.levels`). These and the grades given here decide
        whether there is junk to be found, which Harm needs to know.
    details : bool
        Whether to add what each figure was made of.
    policies
        As in `rag_selectivity.evaluate`: `unjudged="worst"`.

    Returns
    -------
    {query: tuple of QueryFigure}
        For each query of `grades` the figures of the measures.

    Raises
    ------
    InputError
        If a depth is missing or larger than the corpus, a measure needs N and there is none, a grade is off the scale,
        there are more judged passages than the corpus has, or a policy is unknown.

    Examples
    --------
    >>> labels = {"q1": {"d1": 5, "d2": 1}, "q2": None}
    >>> found = evaluate_queries(["RA-nWG@1"], labels, {"q1": ["d1", "d2"], "q2": ["d9"]}, scale="utility")
    >>> [figure.value for figure, in found.values()]
    [1.0, nan]
    """
    chosen = [measure_with_depth(measure) for measure in measures]
    judged = {query: labels for query, labels in grades.items() if labels is not None}
    figures = {query: tuple(QueryFigure(each, math.nan, NO_LABELS) for each in chosen) for query in grades}
    if not judged:
        return figures
    ranked = {query: lists.get(query, ()) for query in judged}
    candidates = None if pool is None else {query: pool[query] for query in judged if query in pool}
    for given, what in ((ranked, "the retrieved passages"), (candidates or {}, "pool")):
        for passages in given.values():
            check_ids(passages, what)
    for labels in judged.values():
        if not isinstance(labels, Mapping):
            raise InputError(f"the grades of a query must be {{passage: grade}}, got {shown(labels)}")
    qrels = Qrels.of(judged)
    qrels.levels = tuple(levels)
    joined = join(
        qrels,
        Run.of(ranked),
        pool=None if candidates is None else Run.of(candidates),
        corpus_size=corpus_size,
        passages_of=passages_of,
        scale=scale,
        policy=resolve_policy(None, **policies),
        ids="exact",
        # That no judged passage was retrieved is a warning for a dataset, not for one query.
        part_of_whole=True,
    )
    columns = [query_figures(measure, joined, details=details) for measure in chosen]
    of_queries = zip(judged, qrels.queries, strict=True)
    return figures | {query: tuple([column[name] for column in columns]) for query, name in of_queries}


def query_figures(measure: str | Measure, joined: JudgedRun, *, details: bool = False) -> dict[str, QueryFigure]:
    """The figure of a measure for each query of a join.

    Raises
    ------
    InputError
        If the depth is missing or larger than the corpus of a query, or the measure needs N and there is none.
    """
    measure = measure_with_depth(measure)
    depths = _depths_of(measure)
    if isinstance(measure.at, int):
        joined.check_depths(depths, one_by_one=True)
    outcome = measure.outcome(joined, depths)
    repeats = None if outcome.refused is None else joined.repeats_at(depths)
    made_of = _details(measure, joined, depths) if details else {}
    figures = {}
    for i, query in enumerate(joined.queries):
        part = outcome if len(joined) == 1 else outcome.over(slice(i, i + 1))
        if repeats is not None:
            part = replace(part, refused=Refusal(tuple(repeats[i].astype(int).tolist()), 1))
        value, reason = float(part.settled().parts[0][0, 0]), None
        if not measure.per_query:
            value = math.nan
            reason = (
                f"{measure} is a ratio of means and has no figure for one query: aggregate the figures of all queries"
            )
        elif math.isnan(value):
            reason = part.undefined
        figures[query] = QueryFigure(
            measure, value, reason, part, {name: column[i] for name, column in made_of.items()}
        )
    return figures


@cache
def _depths_of(measure: Measure) -> NDArray[Any]:
    return np.array([measure.at]) if measure.at is not None else measure.default_depths(np.array([1]))


def _details(measure: Measure, joined: JudgedRun, depths: NDArray[Any]) -> dict[str, list[float]]:
    """What the figure of each query was made of."""
    own = measure.details(joined, depths)
    numbers: dict[str, list[float]] = {
        name: column.reshape(len(joined), -1)[:, 0].tolist() for name, column in own.items()
    }
    if isinstance(measure.at, int):
        numbers["judged"] = joined.judged_at(depths)[:, 0].tolist()
        numbers["returned"] = joined.returned_at(depths)[:, 0].tolist()
    numbers["relevant"] = joined.relevant().tolist()
    return numbers
