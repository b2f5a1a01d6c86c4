"""`plan` and `audit`: the random baseline before there is a run, and from a log that holds no ids."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
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
from rag_selectivity.measures.plan import COMPARED_DEPTHS, compared_measures, default_depths
from rag_selectivity.measures.rates import bits, relevant_counts
from rag_selectivity.people.designs import calibrate_draw
from rag_selectivity.results.plain import finite
from rag_selectivity.results.report import Report
from rag_selectivity.tables.cells import iterated, shown, whole_count
from rag_selectivity.tables.exact import read_records
from rag_selectivity.tables.names import find_column
from rag_selectivity.trust.people import calibration_ground, judge_labels
from rag_selectivity.trust.plan import expected_widths, halving
from rag_selectivity.wording import counted, percent

PLAN_SCHEMA = "rag-selectivity/plan/1"
AUDIT_SCHEMA = "rag-selectivity/audit/1"

#: Plans for more queries than this are refused.
_MOST_QUERIES = 10_000_000

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
    max_random_success: float = DEGRADED_FROM,
    min_ceiling: float | None = None,
    tokens_per_item: float | None = None,
    observed: float | Sequence[float] | None = None,
) -> dict[str, Any]:
    """The success of a random draw at each depth, and the ceiling that it leaves for a retriever.

    Parameters
    ----------
    corpus_size : int
        N, the number of passages in the corpus, or of tools in a catalogue.
    relevant : int or sequence of int
        R, the number of relevant passages of a typical query, or of each query.
    depths : sequence of int, optional
        Default: 1, 2, 5, 10, … up to the corpus size.
    m : int
        Hits that make a success.
    max_random_success : float
        Finds the largest K at which a random draw succeeds in less than this share of the queries. Default: 1 − 1/e,
        where the healthy regime ends.
    min_ceiling : float, optional
        Finds the largest K whose ceiling is above this many bits.
    tokens_per_item : float, optional
        Tokens of a passage, or of a tool's definition. Adds the tokens of K passages to each row.
    observed : float or sequence of float, optional
        Success rates that somebody measured, one for each of `depths`. Adds their bits to each row, as
        `rag_selectivity.bits` gives them; None for a rate of 0, whose bits are −∞.

    Returns
    -------
    dict
        {"schema", "left_out", "rows": [{"K", "lambda", "random_success", "BoR_max", "BoR_opt", "regime"[, "tokens"]
        [, "observed", "BoR", "headroom"]}, …],
        "max_K_for_random_success", "max_K_for_ceiling"}: such a K is 0 if even K = 1 is too large, and None if the
        option was not given. `left_out` counts the queries with fewer than m relevant passages, which no figure is
        about; observed rates are taken to be over the others.

    Examples
    --------
    >>> planned = plan(58, 4, [5, 20, 58], min_ceiling=1)
    >>> [round(row["BoR_max"], 3) for row in planned["rows"]], [row["regime"] for row in planned["rows"]]
    ([1.691, 0.276, 0.0], ['healthy', 'degraded', 'collapse'])
    >>> planned["max_K_for_random_success"], planned["max_K_for_ceiling"]
    (12, 8)
    >>> round(plan(8_841_823, 1, [1000], observed=0.857)["rows"][0]["BoR"], 2)
    12.89
    """
    counts = relevant_counts(relevant)
    size = whole_count(corpus_size, "corpus_size")
    if isinstance(m, bool) or not isinstance(m, (int, np.integer)):
        raise InputError(f"m must be a whole number ≥ 1, got {m!r}")
    if not counts or max(counts) < m:
        raise InputError(f"no query has enough relevant passages for a success, which needs {m}: lower m, or correct R")
    if tokens_per_item is not None and not (isinstance(tokens_per_item, Real) and 0 < tokens_per_item < math.inf):
        raise InputError(f"tokens_per_item must be more than 0, got {tokens_per_item!r}")
    if not isinstance(max_random_success, Real) or not 0 < max_random_success <= 1:
        raise InputError(f"max_random_success must be more than 0 and at most 1, got {max_random_success!r}")
    judged = replace(
        JudgedRun.from_counts([size] * len(counts), [0] * len(counts), counts, [0] * len(counts)),
        policy=Policy(),
    )
    chosen = default_depths(size).tolist() if depths is None else depths
    rows = _plan_rows(judged, chosen, m)
    for row in rows if tokens_per_item is not None else ():
        row["tokens"] = row["K"] * tokens_per_item
    for row, rate in () if observed is None else _rates_by_depth(rows, depths, observed):
        of_rate = bits(rate, size, row["K"], counts, m=m)
        row.update(observed=float(rate), BoR=finite(of_rate.bor), headroom=finite(of_rate.headroom))

    def deepest(allowed: Callable[[dict[str, Any]], bool]) -> int:
        # Both figures are monotone in K, so bisection finds the last allowed K.
        low, high = 0, size
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if allowed(_plan_rows(judged, [middle], m)[0]) else (low, middle - 1)
        return low

    return {
        "schema": PLAN_SCHEMA,
        "corpus_size": size,
        "m": m,
        "left_out": sum(count < m for count in counts),
        "rows": rows,
        "max_K_for_random_success": deepest(lambda row: row["random_success"] < max_random_success),
        "max_K_for_ceiling": None if min_ceiling is None else deepest(lambda row: row["BoR_max"] > min_ceiling),
    }


def _rates_by_depth(rows: list[dict[str, Any]], depths: Sequence[int] | None, observed: Any) -> Any:
    """Each row with the rate that was observed at its depth."""
    rates = (
        [observed]
        if isinstance(observed, (int, float, np.number))
        else list(iterated(observed, "observed must be a success rate, or a list with one for each depth"))
    )
    at = [] if depths is None else list(depths)
    if len(rates) != len(at):
        raise InputError(
            f"{counted(len(rates), 'success rate')} and {counted(len(at), 'depth')} were given: a rate is observed at "
            f"one depth, so give the depth of each (depths, --depths)"
        )
    if len(set(at)) < len(at):
        raise InputError("observed: a depth is given twice")
    rate_at = dict(zip(at, rates, strict=True))
    return [(row, rate_at[row["K"]]) for row in rows]


def _plan_rows(judged: JudgedRun, depths: Sequence[int], m: int) -> list[dict[str, Any]]:
    chance, ceiling, optimum, expected = RandomSuccess(m=m), BoR_max(m=m), BoR_opt(), Lambda()
    report = evaluate_joined(
        {"plan": judged}, measures=[chance, ceiling, optimum, expected], depths=depths, bootstrap=None
    )
    rows: list[dict[str, Any]] = []
    for depth in report.depths:
        random_success = report[chance @ depth].value
        rows.append(
            {
                "K": depth,
                "lambda": report[expected @ depth].value,
                "random_success": random_success,
                "BoR_max": report[ceiling @ depth].value,
                "BoR_opt": report[optimum @ depth].value,
                "regime": regime(random_success),
            }
        )
    return rows


def queries_needed(
    bits: float,
    success: float,
    *,
    correlation: float = 0.0,
    power: float = 0.8,
    level: float = 0.95,
    rows: int | None = None,
) -> int:
    """The number of queries needed to show a difference in BoR between two systems at the same K.

    On the same queries the random baseline is the same, so a difference in bits is log2 of the ratio of the success
    rates: the other system succeeds in p' = p · 2^−bits of the queries. The difference counts as shown if McNemar's
    exact test rejects at the level (1 − level)/rows, which is the level of Holm's correction for the smallest p-value
    of that many tests. The power is an exact sum over the number of queries in which the systems differ.

    Parameters
    ----------
    bits : float
        The smallest difference that matters, such as .2.
    success : float
        Success rate p of the better system.
    correlation : float
        The correlation of the two systems' successes over queries. 0 (independent successes) needs more queries than
        any positive correlation.
    power : float
        The probability that the difference is shown, such as .8.
    level : float
        The level of the whole comparison, such as .95.
    rows : int, optional
        Tests in the comparison's family. Default: 3, as in `compare` on the trec scale, where Success and BoR at a
        depth share one test.

    Returns
    -------
    int
        The smallest number of queries such that the power is reached there and at every larger number. (The power of
        an exact test does not rise with every query.)

    Raises
    ------
    InputError
        If a value is out of range, or two such success rates cannot have this correlation.

    References
    ----------
    McNemar 1947, Psychometrika 12; Holm 1979, Scandinavian Journal of Statistics 6.

    >>> queries_needed(0.2, 0.8), queries_needed(0.2, 0.8, correlation=0.6)
    (385, 161)
    """
    for name, value, low, high in (
        ("bits", bits, 0, math.inf),
        ("success", success, 0, 1),
        ("power", power, 0, 1),
        ("level", level, 0, 1),
    ):
        if not isinstance(value, Real) or not low < _as_float(value) < high:
            raise InputError(f"{name} must be more than {low} and less than {high:g}, got {shown(value)}")
    if not isinstance(correlation, Real):
        raise InputError(f"correlation must be a number, got {correlation!r}")
    tests = rows_of_comparison() if rows is None else rows
    if isinstance(tests, bool) or not isinstance(tests, (int, np.integer)) or not 1 <= tests < 1 << 63:
        raise InputError(f"rows must be a whole number ≥ 1, got {shown(rows)}")
    better = _as_float(success)
    gain, loss = _discordant_shares(better, better * 2 ** -_as_float(bits), _as_float(correlation))
    each = (1 - _as_float(level)) / tests
    return _smallest_lasting(lambda n: mcnemar.power(n, gain, loss, each) >= power, gain + loss)


def _as_float(value: Any) -> float:
    """A number as a float, with infinity for those beyond its range."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def plan_human(
    labels: Any,
    runs: Any,
    number: int,
    *,
    known: Any = None,
    agreement: float | None = None,
    corpus_size: Any = None,
    depth: int = 10,
    measures: Sequence[str] | None = None,
    scale: str | None = None,
    grade_map: Any = None,
    seed: int = 7,
) -> dict[str, Any]:
    """How wide calibrated intervals will be with so many labels by people, and how many labels halve them.

    People's grades of all pairs are simulated, labels are drawn as `calibrate_draw` draws them, and the figures are
    calibrated: three times for each number of labels.

    Parameters
    ----------
    labels : qrels or label store
        The judge's labels.
    runs : {name: run}, or one run
    number : int
        Labels by people.
    known : qrels, label store or {query: {passage: grade}}, optional
        Labels by people so far, from which people's grades are simulated.
    agreement : float, optional
        In place of `known`: the share of pairs in which people and judge agree. In the others people are simulated
        with the grade of a random pair.
    corpus_size, scale, grade_map
        As in `evaluate`.
    depth : int
        K.
    measures : sequence of str, optional
        Default: those of `compare`.

    Returns
    -------
    dict
        `rows` of measure, labels, half_width (for these very queries) and with_queries (as `evaluate` prints it);
        `halved_by` ({measure: labels or None}); `basis`, the assumption, in words; `notes`.

    Raises
    ------
    InputError
        If neither or both of `known` and `agreement` are given, or if people's labels are too few to plan with.
    """
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
        raise InputError(f"the number of labels by people must be a whole number ≥ 1, got {number!r}")
    judges = settled_labels(judge_labels(labels), scale, grade_map)
    named = {name: Run.of(run) for name, run in named_runs(runs).items()}
    joined = join_runs(judges, named, corpus_size=corpus_size)
    wanted = measures or compared_measures(judges.scale or "trec", sized=corpus_size is not None)
    plan = [(parse_measure(measure), np.array([depth])) for measure in wanted]
    people = None if known is None else calibration_ground(judges, known, grade_map=grade_map)[0].human

    def drawn(count: int, seed: int) -> list[tuple[str, str]]:
        return [(pair.query, pair.passage) for pair in calibrate_draw(judges, named, count, depth=depth, seed=seed)]

    widths = expected_widths(judges, drawn, joined.judged, people, agreement, number, plan, depth=depth, seed=seed)
    halved = halving(widths)
    if people is not None:
        basis = f"simulated from {int((people >= 0).sum())} labels of people so far"
    else:
        basis = f"simulated from a stated agreement of {percent(float(agreement or 0))}, with errors at random"
    most = max(each.labels for each in widths)
    notes = [
        f"{measure}: {count:,} labels halve it"
        if count
        else f"{measure}: {most:,} labels (the most tried) do not halve it"
        for measure, count in halved.items()
    ]
    return {
        "rows": [asdict(each) for each in widths],
        "halved_by": halved,
        "basis": basis,
        "notes": [
            f"{basis}; means of three simulations",
            "half_width: half the width of the interval to expect for these very queries, narrower with more labels",
            "with_queries: the same with the uncertainty from the choice of queries, as evaluate prints it",
            *notes,
        ],
    }


def rows_of_comparison(scale: str = "trec") -> int:
    """Tests in the family of `compare` with its default measures and depths; Success and BoR at a depth share one."""
    measures = 3 if scale == "utility" else 1
    return measures * len(COMPARED_DEPTHS)


def _discordant_shares(success: float, other: float, correlation: float) -> tuple[float, float]:
    """The shares of queries in which only the first system succeeds, and in which only the other does."""
    spread = math.sqrt(success * (1 - success) * other * (1 - other))
    if not spread:
        # So many bits that the other rate is 0 among floats: whatever succeeds is a gain, and nothing can correlate.
        if correlation:
            raise InputError(f"correlation {correlation!r} is impossible with a success rate of 0: give 0")
        return success, 0.0
    lowest, highest = (
        (joint - success * other) / spread for joint in (max(0.0, success + other - 1), min(success, other))
    )
    if not lowest - 1e-12 <= correlation <= highest + 1e-12:
        raise InputError(
            f"correlation {correlation!r} is impossible for success rates of {success:.3g} and {other:.3g}: "
            f"give one from {lowest:.3f} to {highest:.3f}"
        )
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
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    # A tooth is two or three differing queries wide. If their number varies by many more, the teeth average out.
    smooth = high * differing * (1 - differing) > 100
    teeth = 4 if smooth else math.ceil(3 * high / math.sqrt(high * differing)) + 20
    return next((n + 1 for n in range(high + teeth, high, -1) if not enough(n)), high)


def audit(
    path: str | Path, *, fields: Mapping[str, str] | None = None, bootstrap: Bootstrap | None = None
) -> dict[str, Any]:
    """Bits over Random of a retrieval log that holds only counts: N, K, R and whether there was a hit.

    Parameters
    ----------
    path : str or Path
        JSONL, CSV or Parquet with one row for each query. Common column names are recognised: `pool_size`,
        `top_k`, `num_relevant`, `found`, …
    fields : {"N" | "K" | "R" | "hit": column}, optional
        The names of the columns, if they are not recognised.
    bootstrap : Bootstrap, optional
        For the interval of BoR. Default: as in `evaluate`.

    Returns
    -------
    dict
        {"schema", "P_obs", "P_rand", "BoR", "low", "high", "BoR_max", "lambda", "n", "n_total"}; an
        undefined figure is None, and "reason" says why.
    """
    judged = _read_log(Path(path), dict(fields or {}))
    depth = int(max(1, judged.returned.max(initial=1)))
    report = evaluate_joined(
        {"log": judged},
        measures=[Success(), RandomSuccess(), BoR(), BoR_max(), Lambda()],
        depths=[depth],
        bootstrap=bootstrap or Bootstrap(),
    )
    return _audit_summary(report, depth)


def _audit_summary(report: Report, depth: int) -> dict[str, Any]:
    bor = report[BoR() @ depth]
    result: dict[str, Any] = {
        "schema": AUDIT_SCHEMA,
        "P_obs": finite(report[Success() @ depth].value),
        "P_rand": finite(report[RandomSuccess() @ depth].value),
        "BoR": finite(bor.value),
        "low": finite(bor.low),
        "high": finite(bor.high),
        "BoR_max": finite(report[BoR_max() @ depth].value),
        "lambda": finite(report[Lambda() @ depth].value),
        "n": bor.n,
        "n_total": bor.n_total,
    }
    if "reason" in bor.to_dict():
        result["reason"] = bor.to_dict()["reason"]
    return result


def _read_log(path: Path, given: dict[str, str]) -> JudgedRun:
    for role in given:
        if role not in _LOG_FIELDS:
            raise InputError(f"unknown log field {role!r}; the fields are {', '.join(_LOG_FIELDS)}")
    columns: dict[str, str] = {}
    counts: dict[str, list[int]] = {role: [] for role in _LOG_FIELDS}
    for line, row in read_records(path):
        if not columns:
            for role, aliases in _LOG_FIELDS.items():
                accepted = (given[role],) if role in given else aliases
                columns[role] = find_column(list(row), role, f"{path}:{line}", accepted)
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
