"""`rag-selectivity evaluate -o page.html`: from files to the page."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rag_selectivity.advice.costs import read_costs
from rag_selectivity.advice.decide import decide
from rag_selectivity.advice.systems import comparable
from rag_selectivity.advice.which_k import parameters_of
from rag_selectivity.compare.differences import Testing
from rag_selectivity.compare.runs import comparison_of
from rag_selectivity.errors import InputError
from rag_selectivity.evaluation.evaluate import measure_all, report_on
from rag_selectivity.evaluation.joining import Joined, join_runs, settled_labels
from rag_selectivity.figures.by import NAMES, Slicing, slicings_of
from rag_selectivity.figures.weighting import weighted
from rag_selectivity.grading.labels_format import reasons_in
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.reading import read_qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.measures import Measure, parse_measure
from rag_selectivity.measures.plan import DEFAULT_DEPTHS, budgets_of, compared_measures, page_measures
from rag_selectivity.results.comparison import Comparison
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.report import Report
from rag_selectivity.tables.exact import read_records
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.small import read_ids
from rag_selectivity.trust.people import judge_labels, people_of

#: Bytes of run files that are read once and held in memory; the passages of larger ones are read again in parts.
_HELD = 200_000_000


def report_from_files(
    qrels: str | Path,
    runs: Mapping[str, Any],
    *,
    judges: Sequence[str] | None = None,
    scale: str | None = None,
    grade_map: str | None = None,
    policy: Policy = Policy(),
    human: Any = None,
    controls: str | Path | None = None,
    corpus: str | Path | None = None,
    tokens: Any = None,
    ids: str | None = None,
    weights: Any = None,
    by: Sequence[str] | None = None,
    queries: str | Path | None = None,
    quality: str | Path | None = None,
    costs: Any = None,
    measures: Sequence[str | Measure] | None = None,
    depths: Sequence[int] | None = None,
    rel: int | None = None,
    m: int | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    deciding: Mapping[str, Any] = MappingProxyType({}),
    page: Mapping[str, Any] = MappingProxyType({}),
    **joining: Any,
) -> str:
    """The page of `Report.to_html`, with everything that the given files make possible.

    Parameters are as in `evaluate` and `rag_selectivity.advice.read_costs`; `deciding` are those of
    `rag_selectivity.advice.decide`, and `page` those of `to_html`. Default measures: those that scale and N make
    possible, with `rel` and `m`. The depths always include the K of the decision. With weights of queries there is no
    decision.
    """
    if weights is not None:
        _refuse_with_weights({**deciding, "costs": costs, "quality": quality})
    read = read_qrels if human is None else judge_labels
    labels = settled_labels(read(qrels, judges=judges), scale, grade_map, policy)
    sized = any(each is not None for each in (corpus, joining.get("corpus_size"), joining.get("passages_of")))

    def asked(usual: Callable[..., Sequence[str]]) -> list[Measure]:
        if measures is not None:
            return [parse_measure(measure) for measure in measures]
        return _with_parameters(usual(labels.scale or "trec", sized=sized), rel, m)

    parsed = asked(page_measures)
    budgets = budgets_of(parsed)
    runs = _read_once(runs, policy)
    joined = join_runs(
        labels,
        runs,
        policy=policy,
        human=None if human is None else people_of(human, grade_map),
        controls=None if controls is None else read_qrels(controls).regraded(grade_map),
        corpus=None if corpus is None else list(read_ids(corpus)),
        tokens=tokens if budgets else None,
        budgets=budgets,
        ids=ids,
        **joining,
    )
    judged, decision, completed = weighted(joined.judged, weights, ids=ids), None, None
    if weights is None:
        # `decide` measures what it needs, with its intervals.
        first = report_on(measure_all(judged, parsed, [1]), None, joined.notes, joined.ground)
        first = replace(first, bootstrap=bootstrap, settings=bootstrap.settings)
        completed = first.completed
        known = read_costs(judged, runs, costs=costs, tokens=tokens, ids=ids)
        rel, m = parameters_of(parsed) if rel is None and m is None else (rel, m)
        decision = decide(first, rel=rel, m=m, costs=known, **deciding)
    if depths is None:
        reach = max(1, max(int(run.returned.max(initial=1)) for run in judged.values()))
        depths = [depth for depth in DEFAULT_DEPTHS if depth <= reach]
    measured = measure_all(judged, parsed, sorted({*depths, *([] if decision is None else [decision.K])}))
    slicings = slicings_of(by, judged, ids=ids, needed=False)
    report = report_on(measured, bootstrap, joined.notes, joined.ground, slicings, completed)
    return report.to_html(
        decision=decision,
        comparison=_compared_in_slices(report, decision, asked(compared_measures), slicings) if slicings else None,
        quality=_quality(quality) if quality is not None else None,
        qrels=labels,
        runs=runs,
        queries=queries,
        corpus=corpus,
        reasons=reasons_in(qrels, list(judges) if judges else None),
        by=_filters(by, slicings),
        **page,
    )


def _compared_in_slices(
    report: Report, decision: Decision | None, measures: Sequence[Measure], slicings: Sequence[Slicing]
) -> Comparison | None:
    """The runs compared within slices, as in `compare`, at the depth of the page; None with nothing to compare."""
    # Only the page needs Jinja2 and matplotlib.
    from rag_selectivity.render.html import depth_of_page

    depth = depth_of_page(report, decision)
    judged = {name: run.judged for name, run in report.runs.items() if run.judged is not None}
    base = next(iter(judged)) if decision is None else decision.baseline
    others = [name for name, _ in comparable([(name, base) for name in judged if name != base], judged, paired=True)]
    compared = [measure for measure in measures if measure.higher_is_better is not None]
    if not others or not compared or depth is None or report.bootstrap is None:
        return None
    return comparison_of(
        Joined({name: judged[name] for name in (base, *others)}, {}, report.ground),
        Testing(report.bootstrap),
        baseline=base,
        measures=compared,
        depths=[depth],
        # As in the decision, which stands on the same page.
        missing_query="fail",
        slicings=slicings,
    )


def _refuse_with_weights(given: Mapping[str, Any]) -> None:
    """Refuse what is about a decision, or about means that are not weighted."""
    for name, value in given.items():
        if value:
            what = f"--{name.replace('_', '-')}"
            about = "it shows means without weights" if name == "quality" else "a decision cannot be weighted"
            raise InputError(
                f"{what} cannot be combined with weights (data.weights): {about}; leave one of the two out"
            )


def _filters(by: Sequence[str] | None, slicings: Sequence[Slicing]) -> Any:
    """What the page filters queries by: all columns of the one table that is given, or else the slices."""
    if by and len(by) == 1 and by[0] not in NAMES and (by[0] == "-" or os.path.exists(by[0])):
        return by[0]
    rows: dict[str, dict[str, str]] = {}
    for slicing in slicings:
        for query, place in slicing.slice_of.items():
            rows.setdefault(query, {"query_id": query})[slicing.column] = slicing.values[place]
    return list(rows.values()) or None


def _read_once(runs: Mapping[str, Any], policy: Policy) -> Mapping[str, Any]:
    """The runs of small files, which figures, costs and passages need; of large files the paths, as they are."""
    files = [Path(run) for run in runs.values() if is_path(run)]
    if sum(file.stat().st_size for file in files if file.is_file()) > _HELD:
        return runs
    return {name: Run.of(run, policy) for name, run in runs.items()}


def _with_parameters(measures: Iterable[str], rel: int | None, m: int | None) -> list[Measure]:
    """The measures with the given `rel` and `m`, if they have these parameters."""
    parsed = []
    for measure in map(parse_measure, measures):
        own = {item.name for item in measure.parameters()}
        asked = {name: value for name, value in (("rel", rel), ("m", m)) if value is not None and name in own}
        parsed.append(replace(measure, **asked))
    return parsed


def _quality(path: str | Path) -> dict[int, list[float]]:
    """{K: [score, …]} from a table with the columns K and score."""
    scores: dict[int, list[float]] = {}
    for line, row in read_records(path):
        try:
            depth, score = int(row["K"]), float(row["score"])
        except (KeyError, TypeError, ValueError):
            depth, score = 0, 0.0
        if depth < 1 or not math.isfinite(score):
            raise InputError(
                f"{path}:{line}: give a column K with a whole number ≥ 1 and a column score with a finite number"
            )
        scores.setdefault(depth, []).append(score)
    if not scores:
        raise InputError(f"{path}: there are no scores; give a table with the columns K and score")
    return scores
