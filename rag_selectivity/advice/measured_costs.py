"""Measured costs of queries (`--costs`): tokens, milliseconds and price, from files, frames and mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.tables.cells import LARGEST, is_missing, number_or_nan, shown
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.names import COLUMNS, optional_column
from rag_selectivity.tables.small import rows_by_id, run_of

#: The kinds of cost, in the order of every view.
TOKENS, MILLISECONDS, PRICE = "tokens", "milliseconds", "price"
KINDS = (TOKENS, MILLISECONDS, PRICE)

#: {query: {kind of cost: value}} of one run.
QueryCosts = dict[str, dict[str, float]]


def measured_costs(costs: Any, runs: Sequence[str], form: IdForm = AS_THEY_ARE) -> dict[str, QueryCosts]:
    """{run: {query: {"tokens" or "milliseconds" or "price": value}}} of measured costs.

    Parameters
    ----------
    costs : path, DataFrame, mapping or rows
        One row for each query, with its `query_id` and at least one of `tokens`, `milliseconds` and `price`: a path, a
        frame, an iterable of dicts, or {query: {column: value}}. With several runs it has a column `run`, or it is
        {run: one of these}. An empty cell is an unknown cost.
    runs : sequence of str
        The names of the runs.
    form : IdForm
        The form that the ids of the queries are brought into.

    Raises
    ------
    InputError
        If a run is not known or not named, if a query has two rows, if a cost is no finite number ≥ 0, or if there is
        no column with costs.
    """
    result: dict[str, QueryCosts] = {}
    if isinstance(costs, Mapping) and costs and not _is_by_query(costs, runs):
        for name, part in costs.items():
            _check_run(str(name), runs, "costs")
            _add(result, part, [str(name)], form)
    else:
        _add(result, costs, runs, form)
    return result


def _is_by_query(costs: Mapping[Any, Any], runs: Sequence[str]) -> bool:
    """Whether the keys of a mapping are queries: their values are then single rows, and not all keys are runs."""
    rows = all(isinstance(value, Mapping) and not _holds_rows(value) for value in costs.values())
    return rows and not all(str(key) in runs for key in costs)


def _holds_rows(value: Mapping[Any, Any]) -> bool:
    return any(isinstance(each, Mapping) for each in value.values())


def _add(result: dict[str, QueryCosts], costs: Any, runs: Sequence[str], form: IdForm) -> None:
    """Add the rows of a table, whose run is given by its column or is the only one of `runs`."""
    first_row: dict[tuple[str, str], str] = {}
    empty = True
    for where, query, row, _ in rows_by_id(costs, "costs", form=form):
        empty = False
        names = [str(name) for name in row]
        run = run_of(row, runs, where, "costs")
        _check_run(run, runs, where)
        columns = {kind: optional_column(names, COLUMNS[kind]) for kind in KINDS}
        if not any(columns.values()):
            raise InputError(
                f"{where}: no column with costs; it has {', '.join(names)}, but needs at least one of "
                f"{', '.join(KINDS)}"
            )
        before = first_row.setdefault((run, query), where)
        if query in result.setdefault(run, {}):
            raise InputError(
                f"{where}: query {query!r} has costs already{f' ({before})' if before != where else ''}; give one row "
                f"for each query of a run, such as the mean of its requests"
            )
        found = {kind: _cost(row[name], kind, where) for kind, name in columns.items() if name is not None}
        result[run][query] = {kind: cost for kind, cost in found.items() if cost is not None}
    if empty:
        raise InputError("costs: there are no rows; give one row for each query")


def _check_run(name: str, runs: Sequence[str], where: str) -> None:
    if name not in runs:
        raise InputError(
            f"{where}: there is no run {name!r}{did_you_mean(name, runs)} (the runs are {', '.join(map(str, runs))})"
        )


def _cost(value: Any, kind: str, where: str) -> float | None:
    """A cost as a float; None for an empty cell."""
    if is_missing(value):
        return None
    number = number_or_nan(value)
    if not 0 <= number <= LARGEST:
        raise InputError(
            f"{where}: {kind} is {shown(value)}; give a number ≥ 0, at most {LARGEST:g}, or leave the cell empty"
        )
    return number
