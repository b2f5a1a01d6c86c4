"""The costs of a query of each run, and the cheapest run whose evidence keeps up with the best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rag_selectivity.advice.which_k import Advice
from rag_selectivity.errors import InputError, did_you_mean, examples
from rag_selectivity.evaluation.list_tokens import ListTokens
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.run import Run
from rag_selectivity.measures.base import Outcome
from rag_selectivity.results.decision import Cheapest
from rag_selectivity.tables.cells import cost_or_length, is_missing
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.names import COLUMNS, find_column, optional_column
from rag_selectivity.tables.small import per, rows_by_id, run_of

#: The kinds of cost, in the order of every view.
KINDS = ("tokens", "milliseconds", "price")


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
        """The mean cost of a query by its kind; tokens are those of the top K where the lengths are known.

        These are the K passages as they are shown: one without a label costs too, also where a policy leaves it out.
        """
        known = dict(self.measured.get(run, {}))
        if run in self.lists:
            known["tokens"] = float(self.lists[run].means()[:K][-1])
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
    lengths = None if tokens is None else per("passage", tokens, "number of tokens", float, name="tokens", form=form)
    lists, means, notes = dict[str, ListTokens](), dict[str, dict[str, float]](), list[str]()
    measured = {} if costs is None else measured_costs(costs, list(judged), form)
    for name, run in judged.items():
        if (listed := ListTokens.of(Run.of(runs[name], run.policy).in_form(form), run, lengths, name)) is not None:
            lists[name] = listed
        of_run = measured.get(name, {})
        evaluated = [query for query, lacks in zip(run.queries, run.missing.tolist(), strict=True) if not lacks]
        if measured and not of_run:
            notes.append(f"{name}: there are no measured costs of this run")
        elif measured and not any(query in of_run for query in evaluated):
            sides = f"{examples(of_run)} have costs, and {examples(evaluated)} are evaluated"
            raise InputError(f"{name}: no query with costs is evaluated ({sides}): compare the query ids")
        for kind in KINDS:
            if known := [of_run[query][kind] for query in evaluated if kind in of_run.get(query, {})]:
                means.setdefault(name, {})[kind] = float(np.mean(known))
            if 0 < len(known) < len(evaluated):
                notes.append(f"{name}: the mean of {kind} is over {len(known)} of {len(evaluated):,} queries")
    return Costs(lists, means, tuple(notes))


def measured_costs(costs: Any, runs: Sequence[str], form: IdForm = AS_THEY_ARE) -> dict[str, dict[str, Any]]:
    """{run: {query: {kind: cost}}} of a table, or of {run: table}, as `read_costs` takes them."""
    by_run = isinstance(costs, Mapping) and bool(costs) and all(str(key) in runs for key in costs)
    result = dict[str, dict[str, dict[str, float]]]()
    for names, part in [([str(name)], part) for name, part in costs.items()] if by_run else [(runs, costs)]:
        for where, query, row, _ in rows_by_id(part, "costs", form=form):
            if (run := run_of(row, names, where, "costs")) not in runs:
                meant = did_you_mean(run, runs)
                raise InputError(f"{where}: there is no run {run!r}{meant} (the runs are {', '.join(runs)})")
            if query in result.setdefault(run, {}):
                raise InputError(f"{where}: query {query!r} has costs already; give their mean in one row")
            find_column([*row], "costs", where, [name for kind in KINDS for name in COLUMNS[kind]])
            cells = {kind: row[name] for kind in KINDS if (name := optional_column([*row], COLUMNS[kind])) is not None}
            known = {kind: cell for kind, cell in cells.items() if not is_missing(cell)}
            result[run][query] = {kind: cost_or_length(cell, f"{where}: {kind}") for kind, cell in known.items()}
    if not result:
        raise InputError("costs: there are no rows; give one row for each query")
    return result


def cheapest_run(costs: Costs, advice: Advice, bootstrap: Bootstrap | None) -> Cheapest | None:
    """The run of least cost whose evidence at its K is lower than that of the leader by at most `worth`.

    The upper end of the paired interval of what it loses must be at most `worth`. The cost is the price where it is
    known of every run, else the milliseconds, else the tokens. None where no cost is known of the leader.
    """
    depths = {name: each.value for name, each in advice.by_run.items() if each.value is not None}
    at = {name: costs.at(name, depth) for name, depth in depths.items()}
    kind = next((kind for kind in reversed(KINDS) if all(kind in known for known in at.values())), None)
    if bootstrap is None or kind is None or advice.leader not in at or len(at) < 2:
        return None
    best = advice.curves[advice.leader]
    alike = [name for name in at if advice.curves[name].queries == best.queries]
    for name in sorted(alike, key=lambda name: at[name][kind]):
        loss, curve = 0.0, advice.curves[name]
        if curve is not best:
            gaps = (best.at(depths[advice.leader]) - curve.at(depths[name]))[:, None]
            most = max(1.0, float(np.abs(gaps).max()))
            ((_, high),) = bootstrap.intervals([Outcome((gaps,), "", bounds=(-most, most))], best.queries)
            loss = float(high[0])
        if loss <= best.worth:
            return Cheapest(name, depths[name], kind, at[name][kind], loss)
    return None
