"""`plan` and `audit`: what chance alone would do, before there is a run, and from a log without ids."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.evaluation import report_of
from rag_selectivity.frames import find_column
from rag_selectivity.judged import JudgedRun, whole_count
from rag_selectivity.measures.chance import regime
from rag_selectivity.measures.plan import DEFAULT_DEPTHS
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


def plan(
    corpus_size: int,
    relevant: int | Sequence[int],
    depths: Sequence[int] | None = None,
    *,
    m: int = 1,
    max_lambda: float = 1.0,
    min_ceiling: float | None = None,
    tokens_per_item: float | None = None,
) -> dict[str, Any]:
    """What a random draw would achieve at each depth, and so the most that a retriever can show.

    Parameters
    ----------
    corpus_size : int
        N: passages, or tools in a catalogue.
    relevant : int or sequence of int
        R, for a typical query or for each one.
    depths : sequence of int, optional
        Default: 1, 2, 5, 10, … as far as the corpus reaches.
    m : int
        Relevant ones that make a success.
    max_lambda : float
        The largest K with lambda below this is found.
    min_ceiling : float, optional
        The largest K whose ceiling is above so many bits is found.
    tokens_per_item : float, optional
        Tokens of a passage, or of a tool's definition: what K of them cost.

    Returns
    -------
    dict
        {"schema", "rows": [{"K", "lambda", "random_success", "BoR_max", "BoR_opt", "regime"[, "tokens"]}, …],
        "max_K_for_lambda", "max_K_for_ceiling"}: K is 0 where even one is too many, None where not asked for.

    Examples
    --------
    >>> found = plan(58, 4, [5, 20, 58], min_ceiling=1)
    >>> [round(row["BoR_max"], 3) for row in found["rows"]], found["max_K_for_lambda"], found["max_K_for_ceiling"]
    ([1.691, 0.276, 0.0], 14, 8)
    """
    values = [relevant] if isinstance(relevant, (int, np.integer)) else list(relevant)
    counts = [whole_count(value, "the number of relevant passages") for value in values]
    size = whole_count(corpus_size, "corpus_size")
    if not counts or max(counts) < m:
        raise InputError(f"a success needs {m} relevant passages, and no query has that many")
    if tokens_per_item is not None and not 0 < tokens_per_item < math.inf:
        raise InputError(f"tokens_per_item must be more than 0, got {tokens_per_item!r}")
    if not 0 < max_lambda < math.inf:
        raise InputError(f"max_lambda must be more than 0, got {max_lambda!r}")
    judged = replace(
        JudgedRun.from_counts([size] * len(counts), [0] * len(counts), counts, [0] * len(counts)),
        policy=Policy(),
    )
    chosen = [depth for depth in DEFAULT_DEPTHS if depth <= size] if depths is None else depths
    rows = _plan_rows(judged, chosen, m)
    for row in rows if tokens_per_item is not None else ():
        row["tokens"] = row["K"] * tokens_per_item

    def deepest(allowed: Callable[[dict[str, Any]], bool]) -> int:
        # Both grow or fall with K alone: the last allowed K by halving.
        low, high = 0, size
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if allowed(_plan_rows(judged, [middle], m)[0]) else (low, middle - 1)
        return low

    return {
        "schema": PLAN_SCHEMA,
        "corpus_size": size,
        "m": m,
        "rows": rows,
        "max_K_for_lambda": deepest(lambda row: row["lambda"] < max_lambda),
        "max_K_for_ceiling": None if min_ceiling is None else deepest(lambda row: row["BoR_max"] > min_ceiling),
    }


def _plan_rows(judged: JudgedRun, depths: Sequence[int], m: int) -> list[dict[str, Any]]:
    chance, ceiling = f"RandomSuccess(m={m})", f"BoR_max(m={m})"
    report = report_of({"plan": judged}, measures=[chance, ceiling, "BoR_opt", "lambda"], depths=depths, bootstrap=None)
    rows: list[dict[str, Any]] = []
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
    return rows


def queries_needed(
    bits: float, success: float, *, correlation: float = 0.0, power: float = 0.8, level: float = 0.05
) -> int:
    """How many queries tell two systems apart whose BoR differs by so many bits at the same K.

    On the same queries the random baseline is the same, so that bits are log2 of the ratio of success
    rates: n = (z_{1−level/2} + z_power)² · V / bits², where V = ((1−p)/p + (1−p')/p' − 2ρ√((1−p)(1−p')/(p p'))) / ln²2,
    p' = p · 2^−bits (delta method).

    Parameters
    ----------
    bits : float
        The difference that matters, as .2.
    success : float
        Success rate of the better system.
    correlation : float
        Of the two systems' successes over queries; 0 assumes independent ones and is on the safe side,
        real systems on the same queries often reach .5 and more.
    power, level : float

    Returns
    -------
    int

    >>> queries_needed(0.2, 0.8), queries_needed(0.2, 0.8, correlation=0.6)
    (281, 119)
    """
    from scipy.special import ndtri

    for name, value, low, high in (
        ("bits", bits, 0, math.inf),
        ("success", success, 0, 1),
        ("power", power, 0, 1),
        ("level", level, 0, 1),
    ):
        if not low < value < high:
            raise InputError(f"{name} must be more than {low} and less than {high:g}, got {value!r}")
    if not -1 <= correlation < 1:
        raise InputError(f"correlation must be from -1 to less than 1, got {correlation!r}")
    odds = [(1 - rate) / rate for rate in (success, success * 2**-bits)]
    variance = (odds[0] + odds[1] - 2 * correlation * math.sqrt(odds[0] * odds[1])) / math.log(2) ** 2
    reach = float(ndtri(1 - level / 2) + ndtri(power))
    return math.ceil(variance * (reach / bits) ** 2)


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
