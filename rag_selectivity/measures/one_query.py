"""A measure's figure for one query, as adapters show it, and for several that were given together."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.cells import shown
from rag_selectivity.data.ids import check_ids, refuse_set
from rag_selectivity.data.passage_counts import PassageCounts
from rag_selectivity.data.policy import resolve_policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.join.direct import QueryLists, join_directly
from rag_selectivity.join.joining import join
from rag_selectivity.join.judged_run import JudgedRun
from rag_selectivity.measures import Measure, Outcome, parse_measure
from rag_selectivity.measures.plain import PlainList, plain_details, plain_list, plain_outcome, plain_parts
from rag_selectivity.measures.plan import LARGEST_DEPTH
from rag_selectivity.measures.refusal import Refusal
from rag_selectivity.tables.small import passage_counts_of

NO_LABELS = "nobody judged this query"


# -- measures --------------------------------------------------------------------------------------


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


def join_query(
    grades: Mapping[str, int],
    passages: Sequence[str],
    *,
    pool: Sequence[str] | None = None,
    corpus_size: int | None = None,
    passages_of: Any = None,
    scale: str | None = None,
    levels: Iterable[int] = (),
    **policies: Any,
) -> JudgedRun:
    """The join of one query's list with its labels.

    Parameters
    ----------
    grades : {passage: grade}
    passages : sequence of str
        Ids in rank order.
    pool : sequence of str, optional
        The candidates before reranking or selection, for PROC and %PROC.
    corpus_size : int, optional
        N, for the chance-corrected measures.
    passages_of : {document: number of its passages} or PassageCounts, optional
        As in `rag_selectivity.evaluate`, if grades and passages name documents. `passage_counts_of` reads a large
        mapping once for many queries.
    scale : {"trec", "utility"}, optional
        As in `rag_selectivity.evaluate`.
    levels : iterable of int
        The grades that the labels hold for any query (`Labels.levels`). They decide whether there is junk to be found,
        which Harm needs to know.
    policies
        As in `rag_selectivity.evaluate`: `unjudged="worst"`.

    Raises
    ------
    InputError
        If a grade is off the scale, there are more relevant passages than the corpus has, or a policy is unknown.
    """
    check_ids(passages, "the retrieved passages")
    if pool is not None:
        check_ids(pool, "pool")
    with warnings.catch_warnings():
        # That no judged passage was retrieved is a warning for a dataset, not for one query.
        warnings.simplefilter("ignore", SelectivityWarning)
        return join(
            Qrels.from_records((("query", *row) for row in grades.items()), queries=["query"], levels=levels),
            Run.from_dict({"query": list(passages)}),
            pool=None if pool is None else Run.from_dict({"query": list(pool)}),
            corpus_size=corpus_size,
            passages_of=passages_of,
            scale=scale,
            policy=resolve_policy(None, **policies),
            ids="exact",
        )


def query_figure(measure: str | Measure, joined: JudgedRun, *, details: bool = False) -> QueryFigure:
    """The figure of a measure for the one query of `join_query`; several measures may share the join.

    `details=True` adds what the figure was made of.

    Raises
    ------
    InputError
        If the depth is missing or larger than the corpus, or the measure needs N and there is none.
    """
    measure = measure_with_depth(measure)
    depths = _depths_of(measure)
    if isinstance(measure.at, int):
        joined.check_depths(depths)
    outcome = measure.outcome(joined, depths)
    return _figure(measure, outcome, _details(measure, joined, depths) if details else {})


def query_figures(measure: str | Measure, joined: JudgedRun) -> dict[str, QueryFigure]:
    """The figure of a measure for each query of a join.

    Raises
    ------
    InputError
        As `query_figure`.
    """
    measure = measure_with_depth(measure)
    depths = _depths_of(measure)
    if isinstance(measure.at, int):
        joined.check_depths(depths)
    outcome = measure.outcome(joined, depths)
    repeats = joined.repeats_at(depths)
    figures = (_figure(measure, _part(outcome, row, repeats), {}) for row in range(len(joined.queries)))
    return dict(zip(joined.queries, figures, strict=True))


@cache
def _depths_of(measure: Measure) -> NDArray[Any]:
    return np.array([measure.at]) if measure.at is not None else measure.default_depths(np.array([1]))


def _figure(measure: Measure, outcome: Outcome, made_of: Mapping[str, float]) -> QueryFigure:
    if not measure.per_query:
        return QueryFigure(measure, math.nan, _of_all(measure), outcome, made_of)
    settled = outcome.settled()
    value = float(settled.parts[0][0, 0])
    return QueryFigure(measure, value, settled.undefined if math.isnan(value) else None, outcome, made_of)


def _of_all(measure: Measure) -> str:
    return f"{measure} is a ratio of means and has no figure for one query: aggregate the figures of all queries"


def _details(measure: Measure, joined: JudgedRun, depths: Any) -> dict[str, float]:
    numbers: dict[str, float] = {
        name: float(values.ravel()[0]) for name, values in measure.details(joined, depths).items()
    }
    if isinstance(measure.at, int):
        numbers["judged"] = int(joined.judged_at(depths)[0, 0])
        numbers["returned"] = int(joined.returned_at(depths)[0, 0])
    numbers["relevant"] = int(joined.relevant()[0])
    return numbers


def evaluate_query(
    measure: str | Measure,
    grades: Mapping[str, int] | None,
    passages: Sequence[str],
    *,
    details: bool = False,
    **options: Any,
) -> QueryFigure:
    """The figure of a measure for one query, and the reason if it is NaN.

    Parameters
    ----------
    measure : str or Measure
        With its depth, `"RA-nWG@10"`. A ratio of means (`"BoR@10"`) is NaN for one query and defined in `aggregate`.
    grades : {passage: grade} or None
        None, as `Labels.of_query` has it, if nobody judged the query: the figure is NaN.
    passages, details, options
        As in `join_query` and `query_figure`.

    Raises
    ------
    InputError
        As `join_query` and `query_figure`.

    Examples
    --------
    >>> figure = evaluate_query("Harm@2", {"d1": 5, "d2": 1}, ["d1", "d2"], scale="utility")
    >>> figure.value, evaluate_query("Harm@2", None, ["d1"]).reason
    (0.5, 'nobody judged this query')
    """
    return measure_query([measure], grades, passages, details=details, **options)[0]


def measure_query(
    measures: Sequence[str | Measure],
    grades: Mapping[str, int] | None,
    passages: Sequence[str],
    *,
    details: bool = False,
    **options: Any,
) -> tuple[QueryFigure, ...]:
    """The figures that `evaluate_query` gives, of several measures that share what is the same for all.

    >>> [figure.value for figure in measure_query(["Success@1", "RR"], {"d1": 1}, ["d9", "d1"])]
    [0.0, 0.5]

    Raises
    ------
    InputError
        As `evaluate_query`, for the first measure that has the fault.
    """
    chosen = [measure_with_depth(measure) for measure in measures]
    if grades is None:
        return tuple([QueryFigure(measure, math.nan, NO_LABELS) for measure in chosen])
    if not isinstance(grades, Mapping):
        raise InputError(f"the grades of a query must be {{passage: grade}}, got {shown(grades)}")
    check_ids(passages, "the retrieved passages")
    refuse_set(options.get("pool"), "pool")
    options["levels"] = tuple(options.get("levels", ()))
    listed = _listed(grades, passages, **options)
    figures, joined = [], None
    for measure in chosen:
        figure = None if listed is None else _plain_figure(measure, listed, details=details)
        if figure is None:
            joined = joined or _joined_directly(grades, passages, **options) or join_query(grades, passages, **options)
            figure = query_figure(measure, joined, details=details)
        figures.append(figure)
    return tuple(figures)


def _listed(
    grades: Mapping[str, int],
    passages: Sequence[str],
    *,
    levels: tuple[int, ...],
    pool: Sequence[str] | None = None,
    corpus_size: int | None = None,
    passages_of: Any = None,
    scale: str | None = None,
    **policies: Any,
) -> PlainList | None:
    if policies or passages_of is not None:
        return None
    return plain_list(QueryLists(grades, passages, pool, corpus_size), scale, levels)


def _plain_figure(measure: Measure, listed: PlainList, *, details: bool = False) -> QueryFigure | None:
    parts = plain_parts(measure, listed)
    if parts is None:
        return None
    made_of = plain_details(measure, listed) if details else {}
    outcome = plain_outcome(measure, parts, listed.scale)
    if not measure.per_query:
        return QueryFigure(measure, math.nan, _of_all(measure), outcome, made_of)
    return QueryFigure(measure, parts[0], None, outcome, made_of)


def _joined_directly(
    grades: Mapping[str, int],
    passages: Sequence[str],
    *,
    pool: Sequence[str] | None = None,
    corpus_size: int | None = None,
    passages_of: Any = None,
    scale: str | None = None,
    levels: Iterable[int] = (),
    **policies: Any,
) -> JudgedRun | None:
    if policies:
        return None
    query = QueryLists(grades, passages, pool, corpus_size)
    return join_directly([query], passages_of=passage_counts_of(passages_of), scale=scale, levels=levels)


def plain_figures(
    measures: Sequence[Measure], query: QueryLists, *, scale: str | None = None, levels: Sequence[int] = ()
) -> tuple[QueryFigure, ...] | None:
    """The figures that `evaluate_query` gives, at a small part of its cost, where plain arithmetic is enough.

    Parameters
    ----------
    measures : sequence of Measure
        With their depths.
    query : QueryLists
    scale, levels
        As in `join_query`.

    Returns
    -------
    tuple of QueryFigure or None
        None if a query is undefined, or the input has to be refused, or a measure has no plain form: Harm, RA-nWG,
        PROC, Success, nDCG, lambda and those of the random baseline have one, for a list without copies and a pool.

    Examples
    --------
    >>> lists = QueryLists({"d1": 5, "d2": 1}, ["d1", "d2"])
    >>> [figure.value for figure in plain_figures([parse_measure("Harm@2")], lists, scale="utility")]
    [0.5]
    """
    listed = plain_list(query, scale, levels)
    if listed is None:
        return None
    figures = []
    for measure in measures:
        figure = _plain_figure(measure, listed)
        if figure is None:
            return None
        figures.append(figure)
    return tuple(figures)


# -- several queries -------------------------------------------------------------------------------


def evaluate_queries(
    measures: Sequence[str | Measure],
    queries: Sequence[QueryLists],
    *,
    passages_of: Any = None,
    scale: str | None = None,
    levels: Iterable[int] = (),
) -> list[tuple[QueryFigure, ...]]:
    """The figures that `evaluate_query` gives for each of some queries, at a part of its cost.

    Parameters
    ----------
    measures : sequence of str or Measure
        With their depths.
    queries : sequence of QueryLists
    passages_of, scale, levels
        As in `join_query`.

    Returns
    -------
    list of tuple of QueryFigure
        For each query the figures of the measures. What one query brings does not change another's figures.

    Raises
    ------
    InputError
        As `evaluate_query`, for the first query that has the fault.

    Examples
    --------
    >>> lists = [QueryLists({"d1": 5, "d2": 1}, ["d1", "d2"]), QueryLists({"d1": 5, "d2": 1}, ["d2", "d9"])]
    >>> [row[0].value for row in evaluate_queries(["RA-nWG@1"], lists, scale="utility")]
    [1.0, 0.0]
    """
    chosen = [measure_with_depth(measure) for measure in measures]
    levels = tuple(levels)
    for each in queries:
        if not each.checked:
            check_ids(each.passages, "the retrieved passages")
    counts = passage_counts_of(passages_of)
    plain = [plain_figures(chosen, each, scale=scale, levels=levels) if counts is None else None for each in queries]
    rest = [each for each, figures in zip(queries, plain, strict=True) if figures is None]
    others = iter(_joined_figures(chosen, rest, counts, scale, levels))
    return [next(others) if figures is None else figures for figures in plain]


def _joined_figures(
    chosen: Sequence[Measure],
    queries: Sequence[QueryLists],
    counts: PassageCounts | None,
    scale: str | None,
    levels: tuple[int, ...],
) -> list[tuple[QueryFigure, ...]]:
    joined = join_directly(queries, passages_of=counts, scale=scale, levels=levels)
    # A grade that only one query brings could tell another that there is junk.
    if joined is None or not set(levels).issuperset(joined.grades.tolist()):
        columns: list[list[QueryFigure] | None] = [None] * len(chosen)
    else:
        columns = [_figures_of_all(measure, joined, queries) for measure in chosen]
    options = {"passages_of": counts, "scale": scale, "levels": levels}
    return [
        tuple(
            _figure_alone(measure, query, options) if column is None else column[i]
            for measure, column in zip(chosen, columns, strict=True)
        )
        for i, query in enumerate(queries)
    ]


def _figure_alone(measure: Measure, query: QueryLists, options: Mapping[str, Any]) -> QueryFigure:
    return evaluate_query(
        measure, query.grades, query.passages, pool=query.pool, corpus_size=query.corpus_size, **options
    )


def _figures_of_all(measure: Measure, joined: JudgedRun, queries: Sequence[QueryLists]) -> list[QueryFigure] | None:
    """A figure for each query; None if something may make one query's figure depend on the others."""
    if joined.corpus_size is not None and isinstance(measure.at, int) and (joined.corpus_size < measure.at).any():
        return None
    outcome = measure.outcome(joined, _depths_of(measure))
    repeats = joined.repeats_at(_depths_of(measure))
    parts = [_part(outcome, i, repeats) for i in range(len(queries))]
    if not outcome.premise or not measure.per_query:
        return [_figure(measure, part, {}) for part in parts]
    reasons = [outcome.undefined if undefined else None for undefined in np.isnan(outcome.parts[0][:, 0]).tolist()]
    rows = zip(outcome.parts[0][:, 0].tolist(), reasons, parts, strict=True)
    return [QueryFigure(measure, value, reason, part) for value, reason, part in rows]


def _part(outcome: Outcome, query: int, repeats: NDArray[np.bool_] | None) -> Outcome:
    refused = None
    if outcome.refused is not None and repeats is not None:
        refused = Refusal(tuple(repeats[query].astype(int).tolist()), 1)
    return Outcome(
        tuple([part[query : query + 1] for part in outcome.parts]),
        outcome.undefined,
        outcome.aggregate,
        outcome.bounds,
        outcome.premise,
        outcome.baseline,
        refused,
    )
