"""`rag-selectivity report`: from files to the page, or to the comment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.advice import DEFAULT_MAX_K, DEFAULT_MAX_LOSS, parameters_of
from rag_selectivity.compare.runs import comparison_of
from rag_selectivity.decision.costs import read_costs
from rag_selectivity.decision.decide import decide
from rag_selectivity.decision.systems import comparable
from rag_selectivity.errors import InputError
from rag_selectivity.evaluation.evaluate import measure_all, report_on
from rag_selectivity.evaluation.joining import join_runs, settled_labels
from rag_selectivity.figures.by import NAMES, slicings_of
from rag_selectivity.figures.slicing import Slicing
from rag_selectivity.grading.labels_format import reasons_in
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.policy import Policy, resolve_policy
from rag_selectivity.judged.reading import read_qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.judged.weighting import weighted
from rag_selectivity.measures import Measure, parse_measure
from rag_selectivity.measures.plan import DEFAULT_DEPTHS, budgets_of, compared_measures, page_measures
from rag_selectivity.render.comment import comment_of
from rag_selectivity.render.explorer import CANDIDATES
from rag_selectivity.results.comparison import Comparison
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.report import Report
from rag_selectivity.results.stored import StoredReport
from rag_selectivity.tables.exact import read_records
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.grades import Scale
from rag_selectivity.tables.small import read_ids
from rag_selectivity.trust.people import judge_labels, people_of

#: Bytes of run files that are read once and held in memory; the passages of larger ones are read again in parts.
_HELD = 200_000_000


def report_from_files(
    qrels: str | Path,
    runs: Mapping[str, Any],
    *,
    pool: Any = None,
    pool_depth: int | None = None,
    corpus_size: Any = None,
    corpus: str | Path | None = None,
    passages_of: Any = None,
    controls: str | Path | None = None,
    queries: str | Path | None = None,
    quality: str | Path | None = None,
    costs: Any = None,
    cost_measure: str | Measure | None = None,
    cost_depths: Sequence[int] | None = None,
    tokens: Any = None,
    measures: Sequence[str | Measure] | None = None,
    depths: Sequence[int] | None = None,
    k: int | None = None,
    baseline: str | None = None,
    scale: str | Scale | None = None,
    grade_map: str | Mapping[int, int] | None = None,
    policy: str | Policy | None = None,
    judges: Sequence[str] | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    rel: int | None = None,
    m: int | None = None,
    max_k: int = DEFAULT_MAX_K,
    max_loss: float = DEFAULT_MAX_LOSS,
    by: Sequence[str] | None = None,
    weights: Any = None,
    candidates: int = CANDIDATES,
    all_texts: bool = False,
    title: str = "What retrieval is worth",
    ids: str | None = None,
    human: Any = None,
    as_comment: bool = False,
    against: str | Path | None = None,
    on: str = "all",
    **choices: Any,
) -> str:
    """The page of `Report.to_html`, with everything that the given files make possible; or the comment of `comment_of`.

    Parameters are as in `evaluate`, `rag_selectivity.decision.decide`, `rag_selectivity.decision.costs.read_costs`,
    `to_html` and `comment_of`. Default measures: those that scale and N make possible, with `rel` and `m`. The depths
    always include the K of the decision. With weights of queries there is no decision.
    """
    if weights is not None:
        _refuse_with_weights(
            k=k,
            baseline=baseline,
            costs=costs,
            cost_measure=cost_measure,
            cost_depths=cost_depths or None,
            quality=quality,
            markdown=as_comment or None,
        )
    before = None if against is None else StoredReport.read(against)
    chosen_policy = resolve_policy(policy, **choices)
    read = read_qrels if human is None else judge_labels
    stored = read(qrels, judges=judges)
    labels = settled_labels(stored, scale, grade_map, chosen_policy)
    chosen_scale = labels.scale or "trec"
    sized = corpus_size is not None or corpus is not None or passages_of is not None
    shared: dict[str, Any] = {
        "corpus_size": corpus_size,
        "corpus": None if corpus is None else list(read_ids(corpus)),
        "passages_of": passages_of,
        "controls": None if controls is None else read_qrels(controls).regraded(grade_map),
        "ids": ids,
    }
    if measures is not None:
        parsed = [parse_measure(measure) for measure in measures]
    else:
        parsed = _with_parameters(page_measures(chosen_scale, sized=sized), rel, m)
    if rel is None and m is None:
        rel, m = parameters_of(parsed)
    people = None if human is None else people_of(human, grade_map)
    runs = _read_once(runs, chosen_policy)
    budgets = budgets_of(parsed)
    joined = join_runs(
        labels,
        runs,
        pool=pool,
        pool_depth=pool_depth,
        policy=chosen_policy,
        human=people,
        tokens=tokens if budgets else None,
        budgets=budgets,
        **shared,
    )
    judged, decision, completed = weighted(joined.judged, weights, ids=ids), None, None
    if weights is None:
        # A decision measures what it needs itself: these figures are none.
        alone = measure_all(judged, parsed, [1])
        alone = replace(alone, figures={name: figures.only([]) for name, figures in alone.figures.items()})
        # `decide` makes the intervals that it needs itself.
        evaluated = report_on(alone, None, joined.notes, joined.ground)
        evaluated = replace(evaluated, bootstrap=bootstrap, settings=bootstrap.settings)
        completed = evaluated.completed
        decision = decide(
            evaluated,
            k=k,
            baseline=baseline,
            rel=rel,
            m=m,
            max_k=max_k,
            max_loss=max_loss,
            cost_measure=cost_measure,
            cost_depths=cost_depths,
            costs=read_costs(judged, runs, costs=costs, tokens=tokens, corpus=corpus, ids=ids, bootstrap=bootstrap),
        )
        if as_comment:
            return comment_of(evaluated, decision=decision, against=before, on=on)

    # Only the page needs Jinja2 and matplotlib.
    from rag_selectivity.render.html import depth_of_page, to_html

    if depths is None:
        reach = max(1, max(int(run.returned.max(initial=1)) for run in judged.values()))
        depths = [depth for depth in DEFAULT_DEPTHS if depth <= reach]
    measured = measure_all(judged, parsed, sorted({*depths, *([] if decision is None else [decision.K])}))
    slicings = []
    if by is not None:
        texts = queries if "length" in by else None
        slicings = slicings_of(by, judged, queries=texts, ids=ids, needed=False)
    report = report_on(measured, bootstrap, joined.notes, joined.ground, slicings, completed)
    compared = None
    if slicings:
        wanted = (
            parsed if measures is not None else _with_parameters(compared_measures(chosen_scale, sized=sized), rel, m)
        )
        compared = _compared_in_slices(report, decision, wanted, depth_of_page(report, decision), slicings)
    return to_html(
        report,
        decision=decision,
        comparison=compared,
        quality=_quality(quality) if quality is not None else None,
        qrels=labels,
        runs=runs,
        queries=queries,
        corpus=corpus,
        reasons=reasons_in(qrels, list(judges) if judges else None),
        by=_filters(by, slicings),
        candidates=candidates,
        all_texts=all_texts,
        title=title,
    )


def _compared_in_slices(
    report: Report,
    decision: Decision | None,
    measures: Sequence[Measure],
    depth: int | None,
    slicings: Sequence[Slicing],
) -> Comparison | None:
    """The runs compared within slices, as in `compare`, at the depth of the page; None with nothing to compare."""
    judged = {name: run.judged for name, run in report.runs.items() if run.judged is not None}
    base = next(iter(judged)) if decision is None else decision.baseline
    others = [name for name, _ in comparable([(name, base) for name in judged if name != base], judged, paired=True)]
    compared = [measure for measure in measures if measure.higher_is_better is not None]
    if not others or not compared or depth is None or report.bootstrap is None:
        return None
    return comparison_of(
        {name: judged[name] for name in (base, *others)},
        baseline=base,
        measures=compared,
        depths=[depth],
        bootstrap=report.bootstrap,
        # As in the decision, which stands on the same page.
        missing_query="fail",
        ground=report.ground,
        slicings=slicings,
    )


def _refuse_with_weights(**given: Any) -> None:
    """Refuse what is about a decision, or about means that are not weighted."""
    for name, value in given.items():
        if value is not None:
            what = "--format markdown" if name == "markdown" else f"--{name.replace('_', '-')}"
            about = "it shows means without weights" if name == "quality" else "a decision cannot be weighted"
            raise InputError(f"{what} cannot be combined with weights (--weights): {about}; leave one of the two out")


def _filters(by: Sequence[str] | None, slicings: Sequence[Slicing]) -> Any:
    """What the page filters queries by: all columns of the one table that is given, or else the slices."""
    if not by:
        return None
    if len(by) == 1 and by[0] not in NAMES and (by[0] == "-" or os.path.exists(by[0])):
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
            raise InputError(f"{path}:{line}: give a column K with a whole number and a column score") from None
        if depth < 1 or not np.isfinite(score):
            raise InputError(
                f"{path}:{line}: K = {depth} and score = {score}: K must be at least 1, and score a finite number"
            )
        scores.setdefault(depth, []).append(score)
    if not scores:
        raise InputError(f"{path}: there are no scores; give a table with the columns K and score")
    return scores
