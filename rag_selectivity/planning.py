"""`plan` and `audit`: what chance alone would do, before there is a run, and from a log without ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.evaluation import report_of
from rag_selectivity.frames import find_column
from rag_selectivity.judged import JudgedRun, whole_count
from rag_selectivity.measures.chance import regime
from rag_selectivity.policy import Policy
from rag_selectivity.report.report import Report, finite
from rag_selectivity.statistics.bootstrap import Bootstrap

PLAN_SCHEMA = "rag-selectivity/plan/1"
AUDIT_SCHEMA = "rag-selectivity/audit/1"

_LOG_FIELDS = {
    "N": ("N", "corpus_size", "pool_size", "corpus", "n_passages", "catalogue_size"),
    "K": ("K", "top_k", "shown", "depth", "n_retrieved"),
    "R": ("R", "num_relevant", "n_relevant", "relevant", "applicable"),
    "hit": ("hit", "found", "success", "ok", "hits", "is_hit"),
}
_TRUTH = {"true": 1, "yes": 1, "false": 0, "no": 0}


def plan(corpus_size: int, relevant: int | Sequence[int], depths: Sequence[int], *, m: int = 1) -> dict[str, Any]:
    """What a random draw would achieve at each depth, and so the most that a retriever can show.

    Parameters
    ----------
    corpus_size : int
        N: passages, or tools in a catalogue.
    relevant : int or sequence of int
        R, for a typical query or for each one.
    depths : sequence of int
    m : int
        Relevant ones that make a success.

    Returns
    -------
    dict
        {"schema", "rows": [{"K", "lambda", "random_success", "BoR_max", "BoR_opt", "regime"}, …]}

    >>> [round(row["BoR_max"], 3) for row in plan(58, 4, [5, 20, 58])["rows"]]
    [1.691, 0.276, 0.0]
    """
    values = [relevant] if isinstance(relevant, (int, np.integer)) else list(relevant)
    counts = [whole_count(value, "the number of relevant passages") for value in values]
    size = whole_count(corpus_size, "corpus_size")
    if not counts or max(counts) < m:
        raise InputError(f"a success needs {m} relevant passages, and no query has that many")
    judged = replace(
        JudgedRun.from_counts([size] * len(counts), [0] * len(counts), counts, [0] * len(counts)),
        policy=Policy(),
    )
    chance, ceiling = f"RandomSuccess(m={m})", f"BoR_max(m={m})"
    report = report_of({"plan": judged}, measures=[chance, ceiling, "BoR_opt", "lambda"], depths=depths, bootstrap=None)
    rows = []
    for depth in report.depths:
        lam = report[f"lambda@{depth}"].value
        rows.append(
            {
                "K": depth,
                "lambda": lam,
                "random_success": report[f"{chance}@{depth}"].value,
                "BoR_max": report[f"{ceiling}@{depth}"].value,
                "BoR_opt": report[f"BoR_opt@{depth}"].value,
                "regime": regime(lam),
            }
        )
    return {"schema": PLAN_SCHEMA, "corpus_size": size, "m": m, "rows": rows}


def audit(
    path: str | Path, *, fields: Mapping[str, str] | None = None, bootstrap: Bootstrap | None = None
) -> dict[str, Any]:
    """Bits over Random of a retrieval log that has only counts: N, K, R and whether there was a hit.

    Parameters
    ----------
    path : str or Path
        JSONL, CSV or Parquet, a row a query. The usual names are known: `pool_size`, `top_k`,
        `num_relevant`, `found`, …
    fields : {"N" | "K" | "R" | "hit": column}, optional
        Where the log's names are others.

    Returns
    -------
    dict
        {"schema", "P_obs", "P_rand", "BoR", "low", "high", "BoR_max", "lambda", "n", "n_total"}; what
        is undefined is None, with a "reason".
    """
    judged = _read_log(Path(path), dict(fields or {}))
    depth = int(max(1, judged.returned.max(initial=1)))
    report = report_of(
        {"log": judged},
        measures=["Success", "RandomSuccess", "BoR", "BoR_max", "lambda"],
        depths=[depth],
        bootstrap=bootstrap or Bootstrap(),
    )
    return _audit_summary(report, depth)


def _audit_summary(report: Report, depth: int) -> dict[str, Any]:
    bor = report[f"BoR@{depth}"]
    result: dict[str, Any] = {
        "schema": AUDIT_SCHEMA,
        "P_obs": finite(report[f"Success@{depth}"].value),
        "P_rand": finite(report[f"RandomSuccess@{depth}"].value),
        "BoR": finite(bor.value),
        "low": finite(bor.low),
        "high": finite(bor.high),
        "BoR_max": finite(report[f"BoR_max@{depth}"].value),
        "lambda": finite(report[f"lambda@{depth}"].value),
        "n": bor.n,
        "n_total": bor.n_total,
    }
    if "reason" in bor.to_dict():
        result["reason"] = bor.to_dict()["reason"]
    return result


def _read_log(path: Path, given: dict[str, str]) -> JudgedRun:
    from rag_selectivity.files import read_records

    for role in given:
        if role not in _LOG_FIELDS:
            raise InputError(f"unknown log field {role!r}; the fields are {', '.join(_LOG_FIELDS)}")
    columns: dict[str, str] = {}
    counts: dict[str, list[int]] = {role: [] for role in _LOG_FIELDS}
    for line, row in read_records(path):
        if not columns:
            for role, aliases in _LOG_FIELDS.items():
                accepted = (given[role],) if role in given else aliases
                columns[role] = find_column(list(row), accepted, role, f"{path}:{line}")
        for role, column in columns.items():
            value = row.get(column)
            text = str(value).strip().casefold()
            counts[role].append(
                _TRUTH[text] if role == "hit" and text in _TRUTH else whole_count(value, f"{path}:{line}: {column}")
            )
        _check_log_row({role: values[-1] for role, values in counts.items()}, columns, f"{path}:{line}")
    return JudgedRun.from_counts(*(counts[role] for role in ("N", "K", "R", "hit")))


def _check_log_row(row: dict[str, int], columns: dict[str, str], where: str) -> None:
    for role, bounds in (("K", ("N",)), ("R", ("N",)), ("hit", ("K", "R"))):
        for bound in bounds:
            if row[role] > row[bound]:
                raise InputError(f"{where}: {columns[role]} = {row[role]} is more than {columns[bound]} = {row[bound]}")
