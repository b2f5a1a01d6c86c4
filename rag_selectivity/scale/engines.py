"""For engines that work on Arrow batches, such as Spark, DuckDB and Polars: make the bytes of a tally from rows.

Join the run with its judgments in the engine (a full outer join by query and passage), put all rows of a query into the
same part, call `tally_rows` on each part, and make a report from all the states. Any number of parts gives the same
figures to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rag_selectivity.data.columns import (
    GRADE_NAMES,
    PASSAGE_NAMES,
    QUERY_NAMES,
    RANK_NAMES,
    SCORE_NAMES,
    find_column,
    optional_column,
)
from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.grades import Scale, implied_scale, parse_grade_map, scale_named
from rag_selectivity.data.policy import Policy, resolve_policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.remarks import counted
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.io.blocks import Block, rows_ordered_differently
from rag_selectivity.io.datasets import block_of_arrow, whole_numbers
from rag_selectivity.join.corpus import size_with_counts
from rag_selectivity.measures import Measure
from rag_selectivity.results.report import Report
from rag_selectivity.scale.tally import Tally, report_of_tallies
from rag_selectivity.tables.small import passage_counts_of


def tally_rows(
    rows: Any,
    *,
    corpus_size: Any = None,
    passages_of: Any = None,
    measures: Sequence[str | Measure] | str | None = None,
    depths: Sequence[int] | None = None,
    scale: str | Scale | None = None,
    grade_map: str | Mapping[int, int] | None = None,
    policy: str | Policy | None = None,
    resamples: int = 1000,
    seed: int = 7,
    ids: str | None = None,
    **choices: Any,
) -> bytes:
    """The sums over some queries; the rows must include all rows of each of these queries.

    Parameters
    ----------
    rows : Arrow table, record batch or batches; or any object with Arrow's C stream (a Polars or pandas frame)
        With a query and a passage column; `score` (or `rank`), null for a passage that was judged and not retrieved;
        and `grade`, null for a passage that was retrieved and not judged.
    corpus_size, passages_of, measures, depths, scale, grade_map, policy, choices
        As in `evaluate`, the same for all parts.
    resamples, seed
        Resamples and seed of the Poisson bootstrap.
    ids : str, optional
        As in `evaluate`, the same for all parts. All rows of queries that this makes alike must be in one part.

    Returns
    -------
    bytes
        The state, for `report_of_states`.
    """
    table = _table(rows)
    form = IdForm.of(ids)
    counts = passage_counts_of(passages_of, form)
    sizes = size_with_counts(corpus_size, counts, form)
    mapped = parse_grade_map(grade_map)
    rules = resolve_policy(policy, **choices)
    tally = tally_for(sizes, measures, depths, scale or implied_scale(mapped) or rules.scale, resamples, seed)
    qrels, run = _halves(table)
    tally.add_part(
        None if qrels is None else qrels.regraded(mapped),
        run,
        corpus_size=sizes,
        passages_of=counts,
        policy=rules,
        ids=form,
    )
    return tally.to_bytes()


def tally_for(
    corpus_size: int | Mapping[str, Any] | None,
    measures: Sequence[str | Measure] | str | None,
    depths: Sequence[int] | None,
    scale: str | Scale | None,
    resamples: int,
    seed: int,
) -> Tally:
    """An empty tally for the arguments of `evaluate`; wrong arguments are refused before any query is read."""
    tally = Tally(
        measures,
        depths,
        scale=None if scale is None else scale_named(scale).name,
        sized=corpus_size is not None,
        resamples=resamples,
        seed=seed,
    )
    if isinstance(corpus_size, int):
        tally.check_corpus_size(corpus_size)
    return tally


def map_in_arrow(**settings: Any) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """`tally_rows` for Spark: `joined.repartition("query_id").mapInArrow(map_in_arrow(…), "state binary")`.

    Takes the batches of a partition, which must hold all rows of each of its queries, and gives one batch with one
    state.
    """

    def of_partition(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            state = tally_rows(pyarrow.Table.from_batches(filled), **settings)
            yield pyarrow.record_batch({"state": pyarrow.array([state], pyarrow.binary())})

    return of_partition


def report_of_states(states: Iterable[bytes], *, name: str = "run", level: float | None = 0.95) -> Report:
    """The report of all parts together.

    Parameters
    ----------
    states : bytes of `tally_rows`, in any order
    name : str
        The name of the run.
    level : float or None
        The level of the intervals; None leaves them out.

    Returns
    -------
    Report
        Without the figures of each query.

    Raises
    ------
    InputError
        If there are no states, or if `evaluate` would refuse all queries together, for example since K > N.
    """
    merged: Tally | None = None
    for state in states:
        part = Tally.from_bytes(state)
        if merged is None:
            merged = part
        else:
            merged.merge(part)
    if merged is None:
        raise InputError("there are no states to make a report from: give the bytes of tally_rows")
    return report_of_tallies({name: merged}, level=level)


def _table(rows: Any) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError("pyarrow", "files", "tallying Arrow rows") from None
    if isinstance(rows, pyarrow.RecordBatch):
        table = pyarrow.Table.from_batches([rows])
    elif isinstance(rows, pyarrow.Table) or hasattr(rows, "__arrow_c_stream__"):
        table = pyarrow.table(rows)
    else:
        table = pyarrow.Table.from_batches(list(rows))
    # Arrow has no kernels for some of the steps below on string views, which Polars uses.
    views = {pyarrow.string_view(): pyarrow.large_string()}
    fields = [field.with_type(views.get(field.type, field.type)) for field in table.schema]
    return table.cast(pyarrow.schema(fields))


def _halves(table: Any) -> tuple[Qrels | None, Run | None]:
    """The qrels and the run in joined rows; None if there are none."""
    names = table.column_names
    query = find_column(names, QUERY_NAMES, "query", "joined rows")
    passage = find_column(names, PASSAGE_NAMES, "passage", "joined rows")
    score = optional_column(names, SCORE_NAMES)
    grade = find_column(names, GRADE_NAMES, "grade", "joined rows")
    figure = score or find_column(names, RANK_NAMES, "score or rank", "joined rows")
    judged, listed = _valid(table, query, passage, grade), _valid(table, query, passage, figure)
    qrels = run = None
    if judged is not None:
        if (judged.scores != np.floor(judged.scores)).any():
            raise InputError(f"joined rows: column {grade}: a grade is not a whole number")
        qrels = Qrels(judged.names, judged.codes, judged.passages, judged.scores.astype(np.int64))
    if listed is not None:
        rank = optional_column(names, RANK_NAMES) if score else None
        ranks = None if rank is None else whole_numbers(table.filter(table[figure].is_valid())[rank].combine_chunks())
        against = 0
        if ranks is not None:
            order = np.argsort(listed.codes, kind="stable")
            against = rows_ordered_differently(listed.codes[order], ranks[order], listed.scores[order])
        scores = listed.scores * (1.0 if score else -1.0)
        remarks = counted(rank_against_score=against)
        run = Run.of_rows(listed.names, listed.codes, listed.passages, scores, remarks)
    return qrels, run


def _valid(table: Any, query: str, passage: str, figure: str) -> Block | None:
    """The rows that have a value in the given column."""
    import pyarrow

    batches = table.filter(table[figure].is_valid()).combine_chunks().to_batches()
    if not batches or not batches[0].num_rows:
        return None
    try:
        figures = batches[0].column(figure).cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    except pyarrow.ArrowException:
        raise InputError(f"joined rows: column {figure} contains a value that is not a number") from None
    if np.isnan(figures).any():
        raise InputError(f"joined rows: column {figure} contains NaN; use null for rows without a value")
    return block_of_arrow(batches[0], query, passage, figures, "joined rows")
