"""The costs of a query of each run, and the cheapest run whose evidence keeps up with the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rag_selectivity.advice.which_k import EvidenceCurve
from rag_selectivity.errors import InputError, did_you_mean, examples
from rag_selectivity.evaluation.list_tokens import ListTokens
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.run import Run
from rag_selectivity.measures.base import Outcome
from rag_selectivity.results.decision import AdvisedK, Cheapest
from rag_selectivity.tables.cells import LARGEST, is_missing, number_or_nan, shown
from rag_selectivity.tables.exact import is_table
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.names import COLUMNS, optional_column
from rag_selectivity.tables.small import per_passage, rows_by_id, run_of
from rag_selectivity.wording import counted

#: The kinds of cost, in the order of every view.
TOKENS, MILLISECONDS, PRICE = "tokens", "milliseconds", "price"
KINDS = (TOKENS, MILLISECONDS, PRICE)

#: {run: {query: {kind of cost: value}}}
MeasuredCosts = dict[str, dict[str, dict[str, float]]]


@dataclass(frozen=True)
class Costs:
    """What is known of the cost of a query of each run.

    Attributes
    ----------
    lists : {run: ListTokens}
        The lengths of the passages of each list: the tokens at every K.
    measured : {run: {"tokens" or "milliseconds" or "price": mean of a query}}
        As they were measured, whatever K is.
    notes : tuple of str
        Which queries have no costs.
    """

    lists: Mapping[str, ListTokens] = field(default_factory=dict)
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def at(self, run: str, K: int) -> dict[str, float]:
        """The mean cost of a query by its kind; tokens are those of the top K where the lengths are known."""
        known = dict(self.measured.get(run, {}))
        if run in self.lists:
            means = self.lists[run].means()
            known[TOKENS] = float(means[min(K, len(means)) - 1])
        return {kind: known[kind] for kind in KINDS if kind in known}


def read_costs(
    judged: Mapping[str, JudgedRun],
    runs: Mapping[str, Any],
    *,
    costs: Any = None,
    tokens: Any = None,
    ids: str | IdForm | None = None,
) -> Costs:
    """The costs of a query of each run: by a table of measured costs, and by the lengths of its passages.

    Parameters
    ----------
    judged : {run: JudgedRun}
    runs : {run: Run, path, dict or DataFrame}
        The same runs with their lists.
    costs : path, DataFrame, mapping or rows, optional
        One row for each query, with its `query_id` and at least one of `tokens`, `milliseconds` and `price`. With
        several runs it has a column `run`, or it is {run: one of these}. An empty cell is an unknown cost.
    tokens : {passage: tokens}, DataFrame or path, optional
        Not needed for a run whose rows have a `tokens` column.
    ids : str, optional
        The form of ids, as in `evaluate`.

    Raises
    ------
    InputError
        If a value is wrong (with the file and the line), if a passage has no length in `tokens`, or if costs have no
        query in common with a run.
    """
    form = IdForm.of(ids)
    lengths = None if tokens is None else per_passage(tokens, "number of tokens", float, name="tokens", form=form)
    lists = {}
    for name, run in judged.items():
        # The file of a run without such a column need not be read again.
        if lengths is None and is_path(runs[name]) and not is_table(runs[name]):
            continue
        listed = ListTokens.of(Run.of(runs[name], run.policy).in_form(form), run, lengths, name)
        if listed is not None:
            lists[name] = listed
    measured = {} if costs is None else measured_costs(costs, list(judged), form)
    notes = [f"{name}: there are no measured costs of this run" for name in judged if measured and name not in measured]
    means: dict[str, dict[str, float]] = {}
    for name in (name for name in judged if name in measured):
        run, of_run = judged[name], measured[name]
        evaluated = [query for query, inside in zip(run.queries, run.in_run.tolist(), strict=True) if inside]
        if not any(query in of_run for query in evaluated):
            raise InputError(
                f"{name}: none of the {counted(len(of_run), 'query', 'queries')} with costs ({examples(of_run)}) is "
                f"one of the {len(evaluated)} that are evaluated ({examples(evaluated)}): compare the query ids"
            )
        for kind in KINDS:
            known = [of_run[query][kind] for query in evaluated if kind in of_run.get(query, {})]
            if known:
                means.setdefault(name, {})[kind] = float(np.mean(known))
            if known and len(known) < len(evaluated):
                of_all = counted(len(evaluated), "query", "queries")
                notes.append(f"{name}: {kind} is known of {len(known)} of {of_all}: the mean is over these")
    return Costs(lists, means, tuple(notes))


def measured_costs(costs: Any, runs: Sequence[str], form: IdForm = AS_THEY_ARE) -> MeasuredCosts:
    """The measured costs of queries, as `read_costs` takes them."""
    result: MeasuredCosts = {}
    for where, run, query, row in _rows(costs, runs, form):
        if run not in runs:
            meant = did_you_mean(run, runs)
            raise InputError(f"{where}: there is no run {run!r}{meant} (the runs are {', '.join(runs)})")
        columns = {kind: column for kind in KINDS if (column := optional_column([*row], COLUMNS[kind])) is not None}
        if not columns:
            has = ", ".join(map(str, row))
            raise InputError(
                f"{where}: no column with costs; it has {has}, but needs at least one of {', '.join(KINDS)}"
            )
        if query in result.setdefault(run, {}):
            raise InputError(
                f"{where}: query {query!r} has costs already; give one row for each query of a run, such as the mean "
                f"of its requests"
            )
        result[run][query] = {
            kind: _cost(row[column], f"{where}: {kind}")
            for kind, column in columns.items()
            if not is_missing(row[column])
        }
    if not result:
        raise InputError("costs: there are no rows; give one row for each query")
    return result


def _rows(costs: Any, runs: Sequence[str], form: IdForm) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """(place, run, query, row) of a table, or of {run: table}."""
    parts = [(costs, runs)]
    if isinstance(costs, Mapping) and costs and all(str(key) in runs for key in costs):
        parts = [(part, [str(name)]) for name, part in costs.items()]
    for part, names in parts:
        for where, query, row, _ in rows_by_id(part, "costs", form=form):
            yield where, run_of(row, names, where, "costs"), query, row


def _cost(value: Any, where: str) -> float:
    cost = number_or_nan(value)
    if not 0 <= cost <= LARGEST:
        raise InputError(f"{where} is {shown(value)}; give a number ≥ 0, at most {LARGEST:g}, or leave the cell empty")
    return cost


def cheapest_run(
    costs: Costs,
    curves: Mapping[str, EvidenceCurve],
    advised: Mapping[str, AdvisedK],
    best: str,
    bootstrap: Bootstrap | None,
) -> Cheapest | None:
    """The run of least cost whose evidence at its K is lower than that of the best run by at most `worth`.

    The upper end of the paired interval of what it loses must be at most `worth`. The cost is the price where it is
    known of every run, else the milliseconds, else the tokens. None where no cost is known of the best run.
    """
    at = {name: costs.at(name, each.value) for name, each in advised.items() if each.value is not None}
    kind = next((kind for kind in reversed(KINDS) if all(kind in known for known in at.values())), None)
    if bootstrap is None or kind is None or best not in at or len(at) < 2:
        return None
    of_best = curves[best].at(advised[best].value or 1)
    for name in sorted(at, key=lambda name: at[name][kind]):
        depth, loss = advised[name].value or 1, 0.0
        if curves[name].queries != curves[best].queries:
            continue
        if name != best:
            gaps = (of_best - curves[name].at(depth))[:, None]
            most = max(1.0, float(np.abs(gaps).max()))
            ((_, high),) = bootstrap.intervals([Outcome((gaps,), "", bounds=(-most, most))], curves[best].queries)
            loss = float(high[0])
        if loss <= curves[best].worth:
            return Cheapest(name, depth, kind, at[name][kind], loss)
    return None
