"""What users give as `weights`: a table or a mapping of queries and numbers, put on the joins of the runs."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.query_weights import QueryWeights, effective_size
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.small import per
from rag_selectivity.wording import counted, percent


def weighted(judged: Mapping[str, JudgedRun], weights: Any, *, ids: str | None = None) -> dict[str, JudgedRun]:
    """The joins with the weights of their queries; without the queries whose weight is 0.

    Parameters
    ----------
    judged : {run: join}
    weights : path, frame, records, {query: weight} or None
        As in `evaluate`. None leaves the joins as they are.
    ids : str, optional
        The form of ids, as in `evaluate`.

    Raises
    ------
    InputError
        If there is no such file or column; if a weight is negative or not a finite number, or a query has two; if a
        measured query has none; if no query has a weight above 0.
    """
    if weights is None:
        return dict(judged)
    source = str(weights) if is_path(weights) else "weights"
    given: dict[str, float] = per("query", weights, "weight", float, name="weights", form=IdForm.of(ids))
    measured = dict.fromkeys(query for run in judged.values() for query in run.queries)
    without = [query for query in measured if query not in given]
    if without:
        raise InputError(
            f"{source}: {len(without):,} of the {counted(len(measured), 'measured query', 'measured queries')} have no "
            f"weight ({examples(without)}; there are weights of {examples(list(given)) or 'no query'}): give each a "
            f"weight under the id that the labels have, or 0 to leave it out"
        )
    if not any(given[query] > 0 for query in measured):
        raise InputError(f"{source}: all measured queries have the weight 0: give some of them a weight above 0")
    others = [weight for query, weight in given.items() if query not in measured and weight > 0]
    result = {}
    for name, run in judged.items():
        values = np.array([given[query] for query in run.queries], np.float64)
        counts = values > 0
        some = run if counts.all() else run.over(counts)
        known = QueryWeights(source, values[counts], int((~counts).sum()), len(others), math.fsum(others))
        result[name] = replace(some, weights=known)
    return result


# -- what a report says of its weights --------------------------------------------------------------------


def weights_settings(judged: Mapping[str, JudgedRun]) -> dict[str, Any]:
    """{"weights": …} of the first run, for the settings of a report; empty without weights."""
    known = next((run.weights for run in judged.values() if run.weights is not None), None)
    return {} if known is None else {"weights": known.to_dict()}


def weights_notes(run: JudgedRun) -> list[str]:
    """What is to be said of the weights of a run; nothing without weights."""
    known = run.weights
    if known is None:
        return []
    total, effective = float(known.values.sum()), effective_size(known.values)
    notes = [
        f"all figures over queries are weighted by {known.source}: {counted(len(run), 'query', 'queries')} with a "
        f"weight of {total:,.6g} in all, effectively {effective:.1f} queries of equal weight; the heaviest has "
        f"{percent(float(known.values.max()) / total)} of the weight"
    ]
    if known.left_out:
        notes.append(f"{counted(known.left_out, 'query', 'queries')} with the weight 0 left out")
    if known.unmeasured:
        notes.append(
            f"{counted(known.unmeasured, 'weighted query', 'weighted queries')} of {known.source} not measured: "
            f"{percent(known.unmeasured_sum / (known.unmeasured_sum + total))} of the weight"
        )
    return notes
