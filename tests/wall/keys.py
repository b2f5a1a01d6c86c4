"""Results as keys of the wall: the one place to change when the classes of results change."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import rag_selectivity as rs

Keys = dict[str, Any]
#: Entries of plain data that are sentences, or names that results give themselves.
WORDS = {"schema", "notes", "note", "text", "reason", "trust", "test", "settings", "summary", "made_by", "fingerprint"}


def report(result: Any, world: str) -> Keys:
    """A report: each run's figures, figures of slices, counts of queries, and which measures are absent."""
    keys: Keys = {f"{world}/N": result.corpus_size, f"{world}/scale": result.scale}
    if result.absent:
        keys[f"{world}/absent"] = sorted(result.absent)
    for name, run in result.runs.items():
        covered = run.coverage
        keys[f"{world}/{name}/queries"] = run.evaluated
        keys[f"{world}/{name}/missing"] = covered.missing_from_run
        keys[f"{world}/{name}/unlabelled"] = covered.not_in_qrels
        if codes := {each.code for each in run.caveats}:
            keys[f"{world}/{name}/caveats"] = sorted(codes)
        for measure, figure in run.estimates.items():
            keys |= estimate(figure, f"{world}/{name}/{measure}")
        for column, values in run.slices.items():
            for value, part in values.items():
                keys[f"{world}/{name}/{column}={value}/queries"] = part.queries
                for measure, figure in part.estimates.items():
                    keys |= estimate(figure, f"{world}/{name}/{column}={value}/{measure}")
    return keys


def estimate(figure: Any, name: str) -> Keys:
    """A figure: value, ends, counts, what stands beside it, and the codes of its caveats."""
    parts = {name: getattr(figure, name) for name in ("value", "low", "high", "n", "n_total")}
    parts |= {name: getattr(figure, name) for name in ("placebo", "shown", "as_judged")}
    parts |= _ends("possible", figure.possible) | _ends("above_placebo", figure.above_placebo)
    if figure.basis != "as judged":
        parts["basis"] = figure.basis
    return _named(parts, name) | _codes(figure, name)


def comparison(result: Any, world: str) -> Keys:
    """A comparison: each difference with its interval, p, verdict and counts, those of slices too."""
    keys: Keys = {}
    for row in result.rows:
        keys |= difference(row, f"{world}/{row.run}−{row.baseline}/{row.measure}")
    for column, values in result.slices.items():
        for value, part in values.items():
            for row in part.rows:
                keys |= difference(row, f"{world}/{column}={value}/{row.run}−{row.baseline}/{row.measure}")
    return keys


def difference(row: Any, name: str) -> Keys:
    """One difference."""
    numbers = ("value", "baseline_value", "difference", "low", "high", "p", "detectable", "n", "n_baseline", "n_total")
    parts = {part: getattr(row, part) for part in (*numbers, "wins", "ties", "losses", "verdict")}
    parts["p_holm"] = row.p_adjusted
    return _named(parts | _ends("possible", row.possible), name) | _codes(row, name)


def diagnosis(result: Any, name: str) -> Keys:
    """Which step lost evidence."""
    return {f"{name}/overall": result.overall, **{f"{name}/{word}": n for word, n in result.counts.items()}}


def per_query(result: Any, run: str, measure: str, world: str) -> Keys:
    """The figures of each query."""
    found = result.runs[run]
    return {
        f"{world}/{run}/{measure}/{query}": value
        for query, value in zip(found.queries, found.per_query[measure], strict=True)
    }


def agreement(result: Any, world: str) -> Keys:
    """A judge beside people: figures with their intervals, counts, verdict."""
    keys: Keys = {}
    for name, value in result.to_dict().items():
        if isinstance(value, Mapping) and {"value", "low", "high"} <= value.keys():
            keys |= _named({part: value[part] for part in ("value", "low", "high")}, f"{world}/{name}")
        elif name in ("n", "pairs", "queries", "verdict") and value is not None:
            keys[f"{world}/{name}"] = value
    return keys


def claims(result: Any, world: str) -> Keys:
    """Claim checks: figures of each run, differences, what was asked."""
    keys: Keys = {f"{world}/calls": result.calls, f"{world}/failed": result.failed}
    for name, run in result.runs.items():
        for measure, figure in run.estimates.items():
            keys |= estimate(figure, f"{world}/{name}/{measure}")
        keys[f"{world}/{name}/caveats"] = sorted({each.code for each in run.caveats})
    for row in result.differences:
        keys |= difference(row, f"{world}/{row.run}−{row.baseline}/{row.measure}")
    return keys


def answers(result: Any, world: str) -> Keys:
    """Scores of answers, and their contrasts."""
    keys: Keys = {f"{world}/queries": len(result.queries)}
    for (shown, score), figure in result.figures.items():
        keys |= estimate(figure, f"{world}/{_prompt(shown)}/{score}")
    for each in result.contrasts:
        parts = {part: getattr(each, part) for part in ("value", "low", "high", "p", "n")} | {"p_holm": each.p_adjusted}
        keys |= _named(parts, f"{world}/{each.kind}/{_prompt(each.shown)}−{_prompt(each.against)}/{each.score}")
    return keys


def validation(result: Any, world: str) -> Keys:
    """Correlations with the scores of answers, and which of two measures follows better."""
    keys: Keys = {}
    for row in result.rows:
        name = f"{world}/{row.run or 'all'}/{row.over}/{row.measure}"
        keys |= _named({"n": row.n, "p": row.p, "p_holm": row.p_holm, "verdict": row.verdict}, name)
        for kind in ("spearman", "pearson", "kendall"):
            keys |= _interval(getattr(row, kind), f"{name}/{kind}")
    for row in result.differences:
        name = f"{world}/{row.measure}−{row.other}"
        keys |= _interval(row.difference, name) | _named({"p_holm": row.p_holm, "verdict": row.verdict}, name)
    return keys


def labels(qrels: Any, name: str) -> Keys:
    """How many labels there are of each grade."""
    counts = Counter(grade for row in qrels.to_dict().values() for grade in row.values())
    return {f"{name}/grade {grade}": count for grade, count in sorted(counts.items())}


def read(reader: Callable[[], Any]) -> Any:
    """What was read: [passage, score, tokens] of a run by rank, {passage: grade} of labels, or the kind of the error.

    The kind is the class of the error, and the file and line that it names.
    """
    try:
        found = reader()
    except rs.InputError as error:
        place = re.search(r"table\.\w+(:\d+)?", str(error))
        return type(error).__name__ + (f" {place[0]}" if place else "")
    if isinstance(found, rs.Run):
        found = _lists(found)
    return found if isinstance(found, dict) else found.to_dict()


def _lists(run: Any) -> dict[str, Any]:
    """The lists of a run, with scores (equal ones by passage) and tokens if it has them."""
    columns = [list(column) for column in (run.scores, run.tokens) if column is not None]
    rows = zip((passage for passages in run.to_dict().values() for passage in passages), *columns, strict=True)
    lists = {query: [next(rows) for _ in passages] for query, passages in run.to_dict().items()}
    if run.scores is not None:
        lists = {query: sorted(row, key=lambda each: (-each[1], each[0])) for query, row in lists.items()}
    return {query: [list(each) if columns else each[0] for each in row] for query, row in lists.items()}


def bits(result: Any, name: str) -> Keys:
    """Bits of a published rate."""
    return {f"{name}/{part}": getattr(result, part) for part in ("bor", "ceiling", "headroom")}


def preference(result: Mapping[str, Any], name: str) -> Keys:
    """Which of two interleaved systems got more credit (as JSON)."""
    counts = ("wins", "losses", "ties", "impressions", "credits", "needed")
    return _named({part: result[part] for part in (*counts, "share", "low", "high", "p", "unit", "verdict")}, name)


def arms(result: Mapping[str, Any], name: str) -> Keys:
    """The arms of an A/B test (as JSON)."""
    parts = ("n_a", "n_b", "mean_a", "mean_b", "difference", "low", "high", "p", "needed", "verdict")
    found = {f"{name}/verdict": result["verdict"], f"{name}/p_holm": result["p_adjusted"]}
    for each in result["metrics"] + result["guardrails"]:
        found |= _named({part: each[part] for part in parts}, f"{name}/{each['metric']}")
    return found


def plain(result: Mapping[str, Any], world: str, *wanted: str) -> Keys:
    """The wanted entries of plain data, all the way down: lists by place, dicts by key."""
    keys: Keys = {}
    for name, value in result.items():
        if name in WORDS or (wanted and name not in wanted):
            continue
        if isinstance(value, Mapping):
            keys |= plain(value, f"{world}/{name}")
        elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
            keys |= plain({str(place): each for place, each in enumerate(value, 1)}, f"{world}/{name}")
        else:
            keys[f"{world}/{name}"] = value
    return keys


def _named(parts: Mapping[str, Any], name: str) -> Keys:
    return {f"{name}/{part}": value for part, value in parts.items() if value is not None}


def _ends(name: str, pair: Iterable[float] | None) -> Keys:
    return {} if pair is None else dict(zip((f"{name}/low", f"{name}/high"), pair, strict=True))


def _interval(figure: Any, name: str) -> Keys:
    return _named({part: getattr(figure, part) for part in ("value", "low", "high")}, name)


def _codes(figure: Any, name: str) -> Keys:
    codes = sorted({each.code for each in figure.caveats})
    return {f"{name}/caveats": codes} if codes else {}


def _prompt(shown: Any) -> str:
    """What a model was shown: a run to a depth, in an order."""
    return f"{shown.run}@{shown.k}" + ("" if shown.order == "best-first" else f" {shown.order}")
