"""The costs of a query of each run, and the cheapest run whose evidence keeps up with the best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rag_selectivity.advice.measured_costs import KINDS, TOKENS, QueryCosts, measured_costs
from rag_selectivity.advice.which_k import EvidenceCurve
from rag_selectivity.errors import InputError, examples
from rag_selectivity.evaluation.list_tokens import ListTokens
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.run import Run
from rag_selectivity.measures.base import Outcome
from rag_selectivity.results.decision import AdvisedK, Cheapest
from rag_selectivity.tables.exact import is_table
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.small import per_passage
from rag_selectivity.wording import counted


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

    def __bool__(self) -> bool:
        return bool(self.lists or self.measured)

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
        As `rag_selectivity.advice.measured_costs.measured_costs` reads them.
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
    means = {name: _means(measured[name], judged[name], name, notes) for name in judged if name in measured}
    return Costs(lists, means, tuple(notes))


def _means(costs: QueryCosts, judged: JudgedRun, name: str, notes: list[str]) -> dict[str, float]:
    """The mean of each kind of cost over the queries that are evaluated; adds notes on those without costs."""
    inside = judged.in_run.tolist()
    evaluated = [query for query, present in zip(judged.queries, inside, strict=True) if present]
    if not any(query in costs for query in evaluated):
        raise InputError(
            f"{name}: none of the {counted(len(costs), 'query', 'queries')} with costs ({examples(costs)}) is one of "
            f"the {len(evaluated)} that are evaluated ({examples(evaluated)}): compare the query ids"
        )
    means = {}
    for kind in KINDS:
        known = [costs[query][kind] for query in evaluated if kind in costs.get(query, {})]
        if known:
            means[kind] = float(np.mean(known))
        if known and len(known) < len(evaluated):
            notes.append(
                f"{name}: {kind} is known of {len(known)} of {counted(len(evaluated), 'query', 'queries')}: the mean "
                f"is over these"
            )
    return means


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
        depth = advised[name].value or 1
        loss = 0.0
        if name != best:
            if curves[name].queries != curves[best].queries:
                continue
            gaps = (of_best - curves[name].at(depth))[:, None]
            most = max(1.0, float(np.abs(gaps).max()))
            ((_, high),) = bootstrap.intervals([Outcome((gaps,), "", bounds=(-most, most))], curves[best].queries)
            loss = float(high[0])
        if loss <= curves[best].worth:
            return Cheapest(name, depth, kind, at[name][kind], loss)
    return None
