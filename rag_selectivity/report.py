"""The page of `evaluate -o report.html`, with everything that the given files make possible."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rag_selectivity.advice.costs import read_costs
from rag_selectivity.advice.decide import decide
from rag_selectivity.advice.which_k import Advice
from rag_selectivity.errors import InputError
from rag_selectivity.evaluation.evaluate import measure_all, report_on
from rag_selectivity.evaluation.joining import join_runs, settled_labels
from rag_selectivity.figures.by import NAMES, Slicing, slicings_of
from rag_selectivity.figures.weighting import weighted
from rag_selectivity.grading.labels_format import reasons_in
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.reading import read_qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.measures import Measure, parse_measure
from rag_selectivity.measures.plan import DEFAULT_DEPTHS, budgets_of, page_measures
from rag_selectivity.results.report import Report
from rag_selectivity.results.steps import Steps
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
    costs: Any = None,
    measures: Sequence[str | Measure] | None = None,
    gated: Sequence[str] = (),
    depths: Sequence[int] | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    deciding: Mapping[str, Any] = MappingProxyType({}),
    steps: Steps = Steps(),
    **joining: Any,
) -> tuple[Report, str]:
    """A report, and the page of its `to_html` with everything that the given files make possible.

    Parameters are as in `evaluate` and `rag_selectivity.advice.read_costs`; `deciding` are those of
    `rag_selectivity.advice.decide`, and `gated` are measured besides, for gates. Default measures: those that scale and
    N make possible. The depths always include the K of the decision. With weights of queries there is no decision.
    """
    if weights is not None:
        _refuse_with_weights({**deciding, "costs": costs})
    read = read_qrels if human is None else judge_labels
    labels = settled_labels(read(qrels, judges=judges), scale, grade_map, policy)
    sized = any(each is not None for each in (corpus, joining.get("corpus_size"), joining.get("passages_of")))
    usual = page_measures(labels.scale or "trec", sized=sized)
    parsed = [parse_measure(measure) for measure in (usual if measures is None else measures)]
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
    judged = weighted(joined.judged, weights, ids=ids)
    if depths is None:
        reach = max(1, max(int(run.returned.max(initial=1)) for run in judged.values()))
        depths = [depth for depth in DEFAULT_DEPTHS if depth <= reach]
    parsed += [measure for measure in map(parse_measure, gated) if measure not in parsed]
    if weights is None:
        depths = [*depths, deciding.get("k") or Advice.of(judged, parsed, bootstrap).K]
    slicings = slicings_of(by, judged, ids=ids, needed=False)
    measured = measure_all(judged, parsed, sorted(set(depths)))
    report = report_on(measured, bootstrap, joined.notes, joined.ground, slicings).with_steps(steps)
    decision = None
    if weights is None:
        known = read_costs(judged, runs, costs=costs, tokens=tokens, ids=ids)
        decision = decide(report, costs=known, **deciding)
    text = report.to_html(
        decision=decision,
        qrels=labels,
        runs=runs,
        queries=queries,
        corpus=corpus,
        reasons=reasons_in(qrels, list(judges) if judges else None),
        by=_filters(by, slicings),
    )
    return report, text


def _refuse_with_weights(given: Mapping[str, Any]) -> None:
    """Refuse what is about a decision, or about means that are not weighted."""
    for name, value in given.items():
        if value:
            what = f"--{name.replace('_', '-')}"
            raise InputError(
                f"{what} cannot be combined with weights (data.weights): a decision cannot be weighted; leave one of "
                f"the two out"
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
