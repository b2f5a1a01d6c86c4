"""`rag-selectivity evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import (
    corpus_size_of,
    costs_of,
    file_of,
    labels_and_runs,
    labels_of,
    named_files,
    pools_of,
    whole_numbers,
)
from rag_selectivity.cli.output import note, put, put_rows, show
from rag_selectivity.cli.retrieved import Retrieved, Spans, is_live
from rag_selectivity.cli.writable import OF_TABLE
from rag_selectivity.errors import InputError
from rag_selectivity.results.steps import Commands

if TYPE_CHECKING:
    from rag_selectivity.results.changes import Changes
    from rag_selectivity.results.report import Report

EXAMPLES = (
    "rag-selectivity evaluate qrels.trec bm25.trec dense.trec --corpus-size 1000 --baseline bm25",
    "rag-selectivity evaluate grades.trec bm25.trec --pool candidates.trec --scale utility "
    "--depths 1,3 --measure RA-nWG --measure PROC --measure Harm --fail-if 'RA-nWG@3 < .1'",
)
#: What `--help` shows.
USUAL = "files corpus_size corpus pool scale measure depths k baseline fail_if details output"
_PAGES = (".html", ".htm")


@dataclass(frozen=True)
class Given:
    """What is known of the runs and passages, and asked for seldom."""

    pool_depth: Annotated[int | None, o.setting("data", "Ranks to take of each pool (default: all).")] = None
    controls: Annotated[
        Path | None, o.setting("data", "Grades of random passages of the corpus by the judge of the labels.")
    ] = None
    groups: Annotated[Path | None, o.setting("data", "Table of passage_id and group: passages that say the same.")] = (
        None
    )
    weights: Annotated[str | None, o.setting("data", "Table of query_id and weight, as `golden build` writes it.")] = (
        None
    )
    unpaired: Annotated[
        bool, o.setting("intervals", "The runs are over different queries, as the arms of an A/B test are.")
    ] = False
    draws: Annotated[int, o.setting("intervals", "Random swaps of two runs' figures where not all are tried.")] = 10_000
    power: Annotated[float, o.setting("intervals", "Chance to detect the difference in the column 'shows ≥'.")] = 0.8


def evaluate(
    files: o.FilesArgument = None,
    pool: o.PoolOption = None,
    corpus: o.CorpusGiven = o.CorpusGiven(),
    queries: o.QueryTextsOption = None,
    tokens: o.TokensOption = None,
    costs: o.CostsOption = None,
    human: o.HumanOption = None,
    form: o.LabelForm = o.LabelForm(),
    given: Given = Given(),
    spans: Spans = Spans(),
    measure: o.MeasureOption = None,
    depths: str | None = o.option(o.MEASURES, "K,K", "Depths, as in 1,5,10."),
    k: o.KOption = None,
    baseline: o.BaselineOption = None,
    by: o.ByOption = None,
    scale: o.ScaleOption = None,
    rules: o.Rules = o.Rules(),
    resamples: o.ResamplesOption = 5000,
    drawing: o.Drawing = o.Drawing(),
    gating: o.Gating = o.Gating(),
    details: o.DetailsOption = False,
    format: o.FormatOption = None,
    output: o.ReportOutputOption = None,
    per_query: Path | None = o.option(
        o.OUTPUT, OF_TABLE, "File for the figures of each query: .csv, .jsonl or .parquet."
    ),
) -> None:
    """Measure runs against labels: figures, comparison, page.

    Labels and runs in, figures with intervals out. With `--baseline`, the differences from that run are tested. A file
    that ends in .html is a page to read and send.
    """
    from rag_selectivity.cli.gates import Gates

    path, runs = labels_and_runs(files)
    gates = Gates.parse(**vars(gating))
    asked = whole_numbers(depths, "--depths")
    texts = {name: str(file) for name, file in (("queries", queries), ("corpus", corpus.corpus)) if file}
    steps = Commands(labels=str(path), runs=runs, **texts)
    deciding = {"k": production_depth(k, asked), "baseline": baseline, "paired": not given.unpaired}
    if output is not None and output.suffix.lower() in _PAGES:
        from rag_selectivity.judged.policy import resolve_policy

        _refuse_for_page(runs, form, given, spans, format)
        report = _page(
            path,
            runs,
            output,
            judges=form.judge,
            scale=scale,
            grade_map=form.grade_map,
            policy=resolve_policy(**rules.chosen()),
            human=human,
            controls=given.controls,
            corpus=corpus.corpus,
            tokens=tokens,
            ids=form.ids,
            weights=given.weights,
            by=by or None,
            queries=queries,
            costs=costs_of(costs, runs),
            measures=measure or None,
            gated=gates.measures,
            depths=asked,
            bootstrap=drawing.bootstrap(resamples),
            deciding=deciding,
            steps=steps,
            groups=given.groups,
            pool=pools_of(pool, runs),
            pool_depth=given.pool_depth,
            corpus_size=corpus_size_of(corpus.corpus_size),
            passages_of=corpus.passages_of,
        )
        if per_query is not None:
            put_rows(report.per_query(), per_query)
        gates.check(report)
        return
    labels = labels_of(path, form.qrels_format, form.judge, human)
    retrieved = Retrieved.of(labels, runs, pool, spans)
    size = corpus.given()
    if corpus.corpus_size is None and corpus.corpus is None:
        size["corpus_size"] = retrieved.corpus_size
    # A live list ends where the prompt did: there is nothing further down that could have been read.
    chosen = {**({"short_lists": "returned"} if retrieved.is_live else {}), **rules.chosen()}
    shared: dict[str, Any] = {
        **size,
        "pool": retrieved.pool,
        "pool_depth": given.pool_depth,
        "controls": None if given.controls is None else rs.read_qrels(given.controls),
        "scale": scale,
        "grade_map": form.grade_map,
        "bootstrap": drawing.bootstrap(resamples, retrieved.clusters) if resamples or baseline else None,
        "ids": form.ids,
        "human": human,
        "groups": given.groups,
        "by": by or None,
        "weights": given.weights,
        "depths": asked or retrieved.depths,
        **chosen,
    }
    at_budgets = _at_budgets(measure)
    shared["tokens"] = tokens if at_budgets or (baseline is None and costs is None) else None
    # Costs are read from the lists too; standard input can be read once.
    is_costed = bool(costs or (tokens is not None and not at_budgets and baseline is not None))
    lists = retrieved.runs
    if is_costed:
        lists = {name: rs.read_run(file, policy=rules.policy) for name, file in retrieved.runs.items()}
    result: Any
    if baseline is None:
        result = retrieved.noted_in(rs.evaluate(retrieved.qrels, lists, measures=gates.with_given(measure), **shared))
        report = result
    else:
        result = rs.compare(
            retrieved.qrels,
            lists,
            baseline=baseline,
            measures=[*measure, *gates.measures] if measure else None,
            paired=not given.unpaired,
            draws=given.draws,
            power=given.power,
            **shared,
        )
        report = result.report
    if is_costed:
        deciding["costs"] = _known_costs(report, lists, costs_of(costs, runs), tokens, form.ids)
    if retrieved.is_live:
        steps = replace(steps, runs=("RUN",))
    report = decided(report.with_steps(steps), asked_for_k=k is not None, **deciding)
    if per_query is not None:
        put_rows(report.per_query(), per_query)
    shown = report if baseline is None else replace(result, report=report)
    since = _changes(report, gating) if output is not None and output.suffix.lower() == ".md" else None
    if since is None:
        show(shown, format, output, details=details)
    else:
        put(f"{shown.to_markdown(details=True)}\n\n{since.to_markdown()}", output, is_data=True)
        if not gates.conditions:
            return
    gates.check(report)


def production_depth(k: str | None, depths: Sequence[int] | None) -> int | None:
    """The K of the decision: the one that was given, or the only depth that was asked for; None to advise one."""
    if k is None:
        return depths[0] if depths is not None and len(depths) == 1 else None
    if k == "auto":
        return None
    if not k.isdecimal():
        raise InputError(f"--k must be a whole number, got {k!r}; auto advises one")
    return int(k)


def decided(report: Report, *, asked_for_k: bool, **options: Any) -> Report:
    """The report with its decision.

    Where nobody asked for its K or for costs, what stands against a decision (such as a passage without a label where
    that is an error) does not stand against the figures: a note says so.
    """
    from rag_selectivity.advice import decide

    try:
        return report.with_decision(decide(report, **options))
    except InputError as error:
        if asked_for_k or options.get("costs"):
            raise
        note(f"note: no decision: {error}")
        return report


def _at_budgets(measures: list[str] | None) -> bool:
    from rag_selectivity.measures.plan import budgets_of

    return bool(budgets_of(measures))


def _known_costs(report: Report, runs: Any, costs: Any, tokens: Any, ids: str | None) -> Any:
    """The costs of the runs of a report, by measured costs and by lengths of passages."""
    from rag_selectivity.advice.costs import read_costs

    judged = {name: run.judged for name, run in report.runs.items() if run.judged is not None}
    return read_costs(judged, runs, costs=costs, tokens=tokens, ids=ids)


# -- the page, and what changed --------------------------------------------------------------------------------


def _refuse_for_page(runs: list[str], form: o.LabelForm, given: Given, spans: Spans, format: object) -> None:
    """An InputError for what a page does not use."""
    if len(runs) == 1 and is_live(file_of(runs[0])):
        raise InputError(f"{file_of(runs[0])}: there is no page of a trace; write .json, .md or .txt")
    unused = {
        "--format": format is not None,
        "data.qrels_format": form.qrels_format is not None,
        "data.identity": spans.identity is not None,
        "data.query_id_key": spans.query_id_key is not None,
        "intervals.draws": given.draws != Given.draws,
        "intervals.power": given.power != Given.power,
    }
    for name, is_given in unused.items():
        if is_given:
            raise InputError(f"{name} is not for a page (-o FILE.html): leave it out, or write .json, .md or .txt")


def _page(path: Path, runs: list[str], output: Path, **options: Any) -> Report:
    """Write the page; a note says how large it is."""
    from rag_selectivity.report import report_from_files

    report, text = report_from_files(path, named_files(runs), **options)
    put(text.rstrip("\n"), output, is_data=True)
    note(f"{output}: {len(text.encode()) / 1e6:.1f} MB; open it in a browser")
    return report


def _changes(report: Report, gating: o.Gating) -> Changes | None:
    """What changed in the figures of the decision since the report of `--against`."""
    if gating.against is None or report.decision is None:
        return None
    from rag_selectivity.compare.changes import changes_since
    from rag_selectivity.results.stored import read_report

    return changes_since(report, report.decision, read_report(gating.against), on=gating.on)
