"""`plan`, `queries_needed`, `plan_human` and `audit`: what can be said before there is a run, or without ids."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.evaluation.evaluate import evaluate_joined
from rag_selectivity.evaluation.joining import join_runs, settled_labels
from rag_selectivity.inference import mcnemar
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.reading import named_runs
from rag_selectivity.judged.run import Run
from rag_selectivity.measures.base import parse_measure
from rag_selectivity.measures.chance import DEGRADED_FROM, BoR, BoR_max, BoR_opt, Lambda, RandomSuccess, Success, regime
from rag_selectivity.measures.hypergeometric import random_success
from rag_selectivity.measures.plan import COMPARED_DEPTHS, compared_measures, default_depths
from rag_selectivity.measures.rates import relevant_counts
from rag_selectivity.people.designs import calibrate_draw
from rag_selectivity.results.plain import finite
from rag_selectivity.tables.cells import check_one_of, check_whole, shown, whole_count
from rag_selectivity.tables.names import find_column
from rag_selectivity.tables.small import rows_of
from rag_selectivity.trust.people import calibration_ground, judge_labels
from rag_selectivity.trust.plan import expected_widths
from rag_selectivity.wording import percent

#: Plans for more queries than this are refused; so many tests a comparison on the trec scale has.
_MOST_QUERIES, TESTS = 10_000_000, len(COMPARED_DEPTHS)

_LOG_FIELDS = {
    "N": ("N", "corpus_size", "pool_size", "corpus", "n_passages", "catalogue_size"),
    "K": ("K", "top_k", "shown", "depth", "n_retrieved"),
    "R": ("R", "num_relevant", "n_relevant", "relevant", "applicable"),
    "hit": ("hit", "found", "success", "ok", "hits", "is_hit"),
}
_TRUTH = {"true": 1, "yes": 1, "false": 0, "no": 0}


def plan(
    corpus_size: int, relevant: int | Sequence[int], depths: Sequence[int] | None = None, *, m: int = 1
) -> dict[str, Any]:
    """The success of a random draw at each depth, and the ceiling that it leaves for a retriever.

    `relevant` is R of a typical query, or of each query; `m` the hits that make a success. `left_out` counts the
    queries with fewer relevant passages, which no figure is about. `max_K_for_random_success` is the largest K at which
    a random draw succeeds in less than 1 − 1/e of the queries, where the healthy regime ends; 0 if K = 1 is too large.

    >>> planned = plan(58, 4, [5, 20, 58])
    >>> [round(row["BoR_max"], 3) for row in planned["rows"]], [row["regime"] for row in planned["rows"]]
    ([1.691, 0.276, 0.0], ['healthy', 'degraded', 'collapse'])
    >>> planned["max_K_for_random_success"]
    12
    """
    columns = {"lambda": Lambda(), "random_success": RandomSuccess(m=m), "BoR_max": BoR_max(m=m), "BoR_opt": BoR_opt()}
    counts, size = relevant_counts(relevant), whole_count(corpus_size, "corpus_size")
    if not (able := [count for count in counts if count >= m]):
        raise InputError(f"no query has enough relevant passages for a success, which needs {m}: lower m, or correct R")
    joined = replace(JudgedRun.from_counts([size] * len(able), [0] * len(able), able, [0] * len(able)), policy=Policy())
    depths = default_depths(size).tolist() if depths is None else depths
    report = evaluate_joined({"plan": joined}, measures=list(columns.values()), depths=depths, bootstrap=None)
    figures = [{"K": k, **{name: report[each @ k].value for name, each in columns.items()}} for k in report.depths]
    rows = [{**row, "regime": regime(row["random_success"])} for row in figures]
    each_R = np.array(able, np.int64)
    healthy = bisect_left(range(1, size + 1), DEGRADED_FROM, key=lambda k: random_success(size, each_R, k, m)[0].mean())
    given = {"schema": "rag-selectivity/plan/1", "corpus_size": size, "m": m, "left_out": len(counts) - len(able)}
    return {**given, "rows": rows, "max_K_for_random_success": healthy}


def queries_needed(
    bits: float, success: float, *, correlation: float = 0.0, power: float = 0.8, level: float = 0.95, rows: int = TESTS
) -> int:
    """The number of queries needed to show a difference in BoR between two systems at the same K.

    On the same queries the random baseline is the same, so the system that is `bits` worse succeeds in
    success · 2^−bits of the queries. The difference is shown if McNemar's exact test rejects at the level
    (1 − level)/rows: Holm's for the smallest p-value of so many tests. The power, an exact sum, is reached at the
    number returned and at every larger one.

    Parameters
    ----------
    bits, success : float
        The smallest difference that matters, and the success rate of the better system.
    correlation : float
        Of the two systems' successes over queries. Without any, more queries are needed than with a positive one.
    power, level : float
        The probability that the difference is shown, and the level of the whole comparison.
    rows : int
        Tests in the comparison's family. Default: those of `compare` on the trec scale.

    References
    ----------
    McNemar 1947, Psychometrika 12; Holm 1979, Scandinavian Journal of Statistics 6.

    >>> queries_needed(0.2, 0.8), queries_needed(0.2, 0.8, correlation=0.6)
    (385, 161)
    """
    bits, better = _between("bits", bits, 0, 1000), _between("success", success, 0, 1)
    correlation = _between("correlation", correlation, -1 - 1e-9, 1 + 1e-9)
    gain, loss = _discordant_shares(better, better * 2**-bits, correlation)
    power, level = _between("power", power, 0, 1), _between("level", level, 0, 1)
    each = (1 - level) / _between("rows", rows, 0, 1 << 63)
    return _smallest_lasting(lambda n: mcnemar.power(n, gain, loss, each) >= power, gain + loss)


def _between(name: str, value: Any, low: float, high: float) -> float:
    """A number as a float, if it is between the two."""
    number = float(value) if issubclass(type(value), Real) and -(1 << 63) < value < 1 << 63 else math.nan
    if not low < number < high:
        raise InputError(f"{name} must be more than {low:g} and less than {high:g}, got {shown(value)}")
    return number


def _discordant_shares(success: float, other: float, correlation: float) -> tuple[float, float]:
    """The shares of queries in which only the first system succeeds, and in which only the other does."""
    spread = math.sqrt(success * (1 - success) * other * (1 - other))
    joints = max(0.0, success + other - 1), min(success, other)
    lowest, highest = ((joint - success * other) / spread for joint in joints)
    if not lowest - 1e-12 <= correlation <= highest + 1e-12:
        impossible = f"correlation {correlation!r} is impossible for success rates of {success:.3g} and {other:.3g}"
        raise InputError(f"{impossible}: give one from {lowest:.3f} to {highest:.3f}")
    both = success * other + correlation * spread
    return max(0.0, success - both), max(0.0, other - both)


def _smallest_lasting(enough: Callable[[int], bool], differing: float) -> int:
    """The smallest number of queries such that it and every larger number are enough.

    The power of an exact test does not rise with every query: it rises in teeth, like a saw.
    """
    high = 1
    while not enough(high):
        if high >= _MOST_QUERIES:
            raise InputError(f"more than {_MOST_QUERIES:,} queries are needed: plan for a larger difference")
        high *= 2
    high = bisect_left(range(high), True, high // 2, key=enough)
    # A tooth is two or three differing queries wide. If their number varies by many more, the teeth average out.
    teeth = 4 if high * differing * (1 - differing) > 100 else math.ceil(3 * high / math.sqrt(high * differing)) + 20
    return next((n + 1 for n in range(high + teeth, high, -1) if not enough(n)), high)


def plan_human(
    labels: Any,
    runs: Any,
    number: int,
    *,
    known: Any = None,
    agreement: float | None = None,
    corpus_size: int | None = None,
    depth: int = 10,
    scale: str | None = None,
    grade_map: Any = None,
    bootstrap: Bootstrap = Bootstrap(),
) -> dict[str, Any]:
    """How wide calibrated intervals will be with so many labels by people, and how many labels halve them.

    People's grades of all pairs are simulated (from the labels by people so far, or from the share of pairs in which
    they agree with the judge), labels are drawn as `calibrate_draw` draws them, and the figures are calibrated: six
    times for each number of labels.
    """
    check_whole("the number of labels by people", number)
    judges = settled_labels(judge_labels(labels), scale, grade_map)
    named = {name: Run.of(run) for name, run in named_runs(runs).items()}
    joined = join_runs(judges, named, corpus_size=corpus_size)
    wanted = compared_measures(judges.scale or "trec", sized=corpus_size is not None)
    measures = [(parse_measure(measure), np.array([depth])) for measure in wanted]
    people = None if known is None else calibration_ground(judges, known, grade_map=grade_map)[0].human

    def drawn(count: int, seed: int) -> list[tuple[str, str]]:
        return [(pair.query, pair.passage) for pair in calibrate_draw(judges, named, count, depth=depth, seed=seed)]

    widths = expected_widths(judges, drawn, joined.judged, people, agreement, number, measures, bootstrap, depth=depth)
    agreed = f"a stated agreement of {percent(float(agreement or 0))}, with errors at random"
    basis = f"simulated from {agreed if people is None else f'{int((people >= 0).sum())} labels of people so far'}"
    halved = dict[str, int | None]()
    for name in dict.fromkeys(each["measure"] for each in widths):
        half_width = {each["labels"]: each["half_width"] for each in widths if each["measure"] == name}
        half = next(iter(half_width.values())) / 2
        halved[name] = min((labels for labels, width in half_width.items() if width <= half), default=None)
    return {"rows": widths, "halved_by": halved, "basis": basis}


def audit(
    path: str | Path, *, fields: Mapping[str, str] | None = None, bootstrap: Bootstrap = Bootstrap()
) -> dict[str, Any]:
    """Bits over Random of a retrieval log that holds only counts: N, K, R and whether there was a hit.

    The log is JSONL, CSV or Parquet with one row for each query. Common names of columns are recognised (`pool_size`,
    `top_k`, `num_relevant`, `found`, …); `fields` names others, as in {"N": "corpus"}. An undefined figure is None,
    and "reason" says why. `bootstrap` is how the interval is made.
    """
    judged = _read_log(path, fields or {})
    depth = int(max(1, judged.returned.max(initial=1)))
    measures = {"P_obs": Success(), "P_rand": RandomSuccess(), "BoR": BoR(), "BoR_max": BoR_max(), "lambda": Lambda()}
    report = evaluate_joined({"log": judged}, measures=list(measures.values()), depths=[depth], bootstrap=bootstrap)
    figures = {name: finite(report[measure @ depth].value) for name, measure in measures.items()}
    bor = report[BoR() @ depth].to_dict()
    figures |= {name: bor[name] for name in ("low", "high", "n", "n_total", "reason") if name in bor}
    return {"schema": "rag-selectivity/audit/1", **figures}


def _read_log(path: str | Path, given: Mapping[str, str]) -> JudgedRun:
    for role in given:
        check_one_of("a field of the log", role, _LOG_FIELDS)
    accepted = {**_LOG_FIELDS, **{role: (column,) for role, column in given.items()}}
    columns, rows = dict[str, str](), dict[str, dict[str, int]]()
    for where, record in rows_of(path, "log"):
        columns = columns or {role: find_column([*record], role, where, names) for role, names in accepted.items()}
        cells = {role: record.get(column) for role, column in columns.items()}
        cells["hit"] = _TRUTH.get(str(cells["hit"]).strip().casefold(), cells["hit"])
        rows[where] = {role: whole_count(cell, f"{where}: {columns[role]}") for role, cell in cells.items()}
    counts = ([row[role] for row in rows.values()] for role in ("N", "K", "R", "hit"))
    return JudgedRun.from_counts(*counts, queries=[*rows])
