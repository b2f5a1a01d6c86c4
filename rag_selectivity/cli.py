"""The commands: evaluate, compare, sweep, report, grade, claims, agree, store, plan, audit, measures, demo."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from rag_selectivity.advice import DEFAULT_MAX_K, DEFAULT_MAX_LOSS
from rag_selectivity.against import Against, StoredReport
from rag_selectivity.compare import compare as compare_runs
from rag_selectivity.data.columns import whole_count
from rag_selectivity.data.grades import SCALES, parse_grade_map, scale_named
from rag_selectivity.data.policy import POLICIES
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.errors import InputError, SelectivityError, SelectivityWarning
from rag_selectivity.evaluate import evaluate as evaluate_runs
from rag_selectivity.gates import FailIf, MaxDrop, check_options, failures, parse_fail_if, parse_max_drop
from rag_selectivity.io.reading import read_qrels
from rag_selectivity.io.writing import write_whole
from rag_selectivity.join.facts import doubts_of_scale
from rag_selectivity.measures import REGISTRY, Measure, parse_measure
from rag_selectivity.measures.base import explain, summary
from rag_selectivity.measures.chance import DEGRADED_FROM
from rag_selectivity.measures.plan import DEFAULT_DEPTHS, default_measures
from rag_selectivity.planning import audit as audit_log
from rag_selectivity.planning import plan as plan_depths
from rag_selectivity.planning import queries_needed, rows_of_comparison
from rag_selectivity.render.blocks import align, markdown
from rag_selectivity.results.report import Report
from rag_selectivity.results.result import Result
from rag_selectivity.statistics import INTERVAL_METHODS, Bootstrap
from rag_selectivity.sweep import sweep as sweep_depths
from rag_selectivity.wording import number, percent

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="What your retrieval is really worth: how many bits better than a random draw.",
)


class Format(StrEnum):
    """How to print a result."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"


FormatOption = Annotated[Format | None, typer.Option("--format", help="Default: a table.")]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file; its suffix is the format.")]


QrelsOption = Annotated[Path, typer.Option(help="Judgments: TREC, BEIR folder, JSONL, CSV, Parquet, or a label store.")]
RunOption = Annotated[list[str], typer.Option(help="A run file, or NAME=FILE; may be repeated.")]
PoolOption = Annotated[
    list[str] | None, typer.Option(help="Candidates before selection: FILE for all runs, or NAME=FILE for one.")
]
SizeOption = Annotated[str | None, typer.Option(help="N: a number, or a table of query_id and corpus_size.")]
CorpusOption = Annotated[Path | None, typer.Option(help="The corpus (JSONL with _id, …): gives N, checks ids.")]
MeasureOption = Annotated[
    list[str] | None, typer.Option(help=f"May be repeated: NAME or NAME(rel=…)@K of {', '.join(REGISTRY)}.")
]
ScaleOption = Annotated[str, typer.Option(help=" or ".join(SCALES))]
GradeMapOption = Annotated[str | None, typer.Option(help="Carry grades over, as in 0:1,1:3,2:4,3:5.")]
PolicyOption = Annotated[str, typer.Option(help=" or ".join(POLICIES))]
OrderOption = Annotated[str | None, typer.Option(help="score (default), or rank: trust the file's order.")]
TiesOption = Annotated[str | None, typer.Option(help="docid_descending (default) or as_given.")]
MissingOption = Annotated[str | None, typer.Option(help="fail (default), skip or error.")]
NoRelevantOption = Annotated[str | None, typer.Option(help="skip (default) or error.")]
DuplicatesOption = Annotated[str | None, typer.Option(help="count_once (default), drop or error.")]
UnjudgedOption = Annotated[str | None, typer.Option(help="ignore (default), worst, condense or error.")]
DepthOption = Annotated[str | None, typer.Option(help="Lists shorter than K: requested (default) or returned.")]
QrelsFormatOption = Annotated[str | None, typer.Option(help="Where content and suffix mislead.")]
JudgeOption = Annotated[
    list[str] | None, typer.Option("--judge", help="Of a label store: whose labels count; may be repeated.")
]
JudgeRuleOption = Annotated[str | None, typer.Option(help="Of several judges: median, lowest or highest.")]
MethodOption = Annotated[str, typer.Option(help=f"Of the intervals: {', '.join(INTERVAL_METHODS)}.")]
PairedMethodOption = Annotated[str, typer.Option(help="Of the intervals: bca or percentile.")]
ClustersOption = Annotated[
    Path | None, typer.Option(help="A table of query_id and cluster: queries that belong together.")
]
RelOption = Annotated[int | None, typer.Option(help="Lowest relevant grade of a success; default: the scale's.")]
HitsOption = Annotated[int | None, typer.Option("-m", help="Relevant ones that make a success; default: 1.")]
MaxKOption = Annotated[int, typer.Option(help="The most passages to show; smaller K's are compared with it.")]
MaxLossOption = Annotated[
    float, typer.Option(help="Largest loss of the advised K against --max-k; .02 is two percentage points.")
]
FailIfOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Exit with 1 if this holds: 'BoR@10 < 4.5', or 'low(BoR@10) < 4.5' of the interval; may be repeated."
    ),
]
MaxDropOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Exit with 1 if a figure is worse than in --against by more than this: 'RA-nWG@10:0.02'; with "
        "'low(RA-nWG@10):0.02' also if the paired interval does not rule that out; may be repeated."
    ),
]
AgainstOption = Annotated[
    Path | None,
    typer.Option(help="A report saved as JSON, for --max-drop: same labels, corpus size, scale and policy."),
]
OnOption = Annotated[
    str | None,
    typer.Option(
        help="Queries to compare with --against: all (default; refused where queries or labels differ), or shared: "
        "those in both with the same labels."
    ),
]


def _unless_interrupted(work: Callable[..., Report], *arguments: Any, **options: Any) -> Report:
    try:
        return work(*arguments, **options)
    except KeyboardInterrupt:
        typer.echo("interrupted: nothing was written, and temporary files were removed", err=True)
        raise typer.Exit(130) from None


def _paths(run: list[str] | None) -> list[Path]:
    return [Path(text.partition("=")[2] or text) for text in run or ()]


def _is_parquet_folder(path: Path) -> bool:
    return path.is_dir() and _is_parquet(path)


#: Options of `evaluate` that cannot be combined with reading part by part, and why. All others are honoured.
NOT_OUT_OF_CORE = {
    "trace": "a trace is read into memory as a whole",
    "pool": "a run's own list is its pool there",
    "corpus": "the ids of a corpus are held in memory; give N with --corpus-size",
    "sample": "a sample and the qrels it was drawn beside are joined in memory",
    "sample_size": "it belongs to --sample, which is joined in memory",
    "clusters": "the Poisson bootstrap draws queries one by one",
    "per_query": "queries are summed and let go, so that nothing of a single one is left",
}
#: Options that choose among judgments which are held in memory: of a Parquet dataset there is nothing to choose.
_OF_HELD_QRELS = ("qrels_format", "judge", "judge_rule")


def _given(context: typer.Context, name: str) -> bool:
    """Whether the user gave an option; its default is no wish."""
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _check_out_of_core(context: typer.Context, qrels: Path, method: str) -> None:
    """Refuse what cannot be had part by part, rather than leave it out."""
    for name, why in NOT_OUT_OF_CORE.items():
        if _given(context, name):
            raise InputError(f"{_option(name)} cannot be combined with reading out of core: {why}")
    if _given(context, "method") and method != "poisson":
        raise InputError(
            f"--method {method} cannot be combined with reading out of core, whose intervals are those of the Poisson "
            f"bootstrap: leave --method out, or give --method poisson"
        )
    if _is_parquet(qrels):
        for name in _OF_HELD_QRELS:
            if _given(context, name):
                raise InputError(f"{_option(name)} cannot be combined with the Parquet dataset {qrels}: leave it out")


def _is_parquet(path: Path) -> bool:
    from rag_selectivity.io.datasets import is_dataset

    return is_dataset(path)


@dataclass(frozen=True)
class _Given:
    """What is to be evaluated: run files, or a trace of live retrievals."""

    qrels: Qrels
    runs: Any
    pool: Any
    corpus_size: Any = None
    depths: list[int] | None = None

    @classmethod
    def of(cls, run: list[str] | None, pool: list[str] | None, trace: Path | None, qrels: Qrels) -> _Given:
        if trace is None:
            if not run:
                raise InputError("say what to evaluate: --run FILE, or --trace FILE")
            return cls(qrels, _named_files(run), _pools(pool or [], run))
        if run or pool:
            raise InputError("--trace brings its retrievals and their candidates along; leave --run and --pool out")
        from rag_selectivity.live.trace import Trace

        read = Trace.read(trace)
        longest = max(len(read.shown[key]) for key in read.names)
        sizes = read.corpus_sizes if len(read.corpus_sizes) == len(read.names) else None
        depths = sorted({k for k in DEFAULT_DEPTHS if k <= longest} | {max(1, longest)})
        return cls(read.labels_from(qrels), {trace.stem: read.shown}, read.pool, sizes, depths)


@app.command()
def evaluate(
    context: typer.Context,
    qrels: QrelsOption,
    run: Annotated[list[str] | None, typer.Option(help="A run file, or NAME=FILE; may be repeated.")] = None,
    trace: Annotated[
        Path | None, typer.Option(help="In place of a run: live retrievals, traced as JSONL; every one counts.")
    ] = None,
    pool: PoolOption = None,
    corpus_size: SizeOption = None,
    corpus: CorpusOption = None,
    measure: MeasureOption = None,
    depths: Annotated[str | None, typer.Option(help="K's, as in 1,5,10. Default: 1,2,5,10,… 1000.")] = None,
    scale: ScaleOption = "trec",
    grade_map: GradeMapOption = None,
    policy: PolicyOption = "default",
    order: OrderOption = None,
    ties: TiesOption = None,
    missing_query: MissingOption = None,
    no_relevant: NoRelevantOption = None,
    duplicates: DuplicatesOption = None,
    unjudged: UnjudgedOption = None,
    depth: DepthOption = None,
    qrels_format: QrelsFormatOption = None,
    judge: JudgeOption = None,
    judge_rule: JudgeRuleOption = None,
    sample: Annotated[
        Path | None, typer.Option(help="Judgments of passages drawn at random outside the qrels, for R=sampled.")
    ] = None,
    sample_size: Annotated[
        int | None, typer.Option(help="Drawn for each query, where --sample lists only the relevant ones.")
    ] = None,
    resamples: Annotated[
        int, typer.Option(help="Bootstrap resamples; 0 disables intervals. Default out of core: 1000.")
    ] = 5000,
    seed: int = 7,
    level: float = 0.95,
    method: MethodOption = "bca",
    clusters: ClustersOption = None,
    fail_if: FailIfOption = None,
    max_drop: MaxDropOption = None,
    against: AgainstOption = None,
    on: OnOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    per_query: Annotated[Path | None, typer.Option(help="Figures of every query: .csv, .jsonl or .parquet.")] = None,
    out_of_core: Annotated[
        bool, typer.Option(help="For data larger than memory; without it only for folders of Parquet files.")
    ] = False,
    memory: Annotated[int, typer.Option(help="Megabytes to stay within, out of core.")] = 1000,
) -> None:
    """Measure runs against judgments."""
    gates = _Gates.parse(fail_if, max_drop, against, on)
    if out_of_core or _is_parquet_folder(qrels) or any(_is_parquet_folder(path) for path in _paths(run)):
        from rag_selectivity.scale.out_of_core import evaluate_out_of_core

        gates.refuse_paired("out of core")
        _check_out_of_core(context, qrels, method)
        dataset = _is_parquet(qrels)
        report = _unless_interrupted(
            evaluate_out_of_core,
            qrels if dataset else read_qrels(qrels, format=qrels_format, judges=judge, judge_rule=judge_rule),
            _named_files(run or []),
            corpus_size=_corpus_size(corpus_size),
            measures=gates.measures(measure, scale, sized=corpus_size is not None),
            depths=_numbers(depths, "--depths") if depths is not None else None,
            scale=scale,
            grade_map=grade_map,
            policy=policy,
            memory=memory,
            resamples=resamples if _given(context, "resamples") else 1000,
            seed=seed,
            level=level if resamples else None,
            **_choices(order, ties, missing_query, no_relevant, duplicates, unjudged, depth),
        )
        _put(_view(report, _chosen(format, output)), output)
        gates.check(report, None)
        return
    if _given(context, "memory"):
        raise InputError("--memory bounds what is held when reading part by part: give --out-of-core too")
    if sample is None and sample_size is not None:
        raise InputError("--sample-size says how many passages --sample is about: give --sample too")
    given = _Given.of(run, pool, trace, read_qrels(qrels, format=qrels_format, judges=judge, judge_rule=judge_rule))
    if trace is not None and depth is None:
        # A list ends where the prompt did: there is nothing further down that could have been read.
        depth = "returned"
    choices = _choices(order, ties, missing_query, no_relevant, duplicates, unjudged, depth)
    size = _corpus_size(corpus_size) if corpus_size is not None or corpus is not None else given.corpus_size
    bootstrap = Bootstrap(resamples, seed, level, method, _clusters(clusters)) if resamples else None
    report = evaluate_runs(
        given.qrels,
        given.runs,
        pool=given.pool,
        corpus_size=size,
        corpus=_corpus_ids(corpus),
        measures=gates.measures(measure, scale, sized=size is not None or corpus is not None),
        depths=_numbers(depths, "--depths") if depths is not None else given.depths,
        scale=scale,
        grade_map=grade_map,
        policy=policy,
        sample=read_qrels(sample) if sample is not None else None,
        sample_size=sample_size,
        bootstrap=bootstrap,
        **choices,
    )
    if per_query is not None:
        from rag_selectivity.io.writing import write_rows

        write_rows(per_query, report.per_query())
    _put(_view(report, _chosen(format, output)), output)
    gates.check(report, bootstrap)


@app.command()
def compare(
    qrels: QrelsOption,
    run: RunOption,
    baseline: Annotated[str | None, typer.Option(help="Name of the run to compare with; default: the first.")] = None,
    pool: PoolOption = None,
    corpus_size: SizeOption = None,
    corpus: CorpusOption = None,
    measure: MeasureOption = None,
    depths: Annotated[str | None, typer.Option(help="K's, as in 5,10. Default: 5,10,20.")] = None,
    scale: ScaleOption = "trec",
    grade_map: GradeMapOption = None,
    policy: PolicyOption = "default",
    order: OrderOption = None,
    ties: TiesOption = None,
    missing_query: MissingOption = None,
    no_relevant: NoRelevantOption = None,
    duplicates: DuplicatesOption = None,
    unjudged: UnjudgedOption = None,
    depth: DepthOption = None,
    qrels_format: QrelsFormatOption = None,
    judge: JudgeOption = None,
    judge_rule: JudgeRuleOption = None,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.")] = 5000,
    seed: int = 7,
    level: float = 0.95,
    method: PairedMethodOption = "bca",
    clusters: ClustersOption = None,
    unpaired: Annotated[
        bool, typer.Option("--unpaired", help="The runs are over different queries, as the arms of an A/B test.")
    ] = False,
    draws: Annotated[
        int, typer.Option(help="Random swaps of the two runs' figures, where there are too many to try all.")
    ] = 10_000,
    power: Annotated[
        float, typer.Option(help="How often a true difference of the size in the column 'shows ≥' is shown.")
    ] = 0.8,
    fail_if: FailIfOption = None,
    max_drop: MaxDropOption = None,
    against: AgainstOption = None,
    on: OnOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Compare runs with a baseline: differences, intervals, tests, and the difference that would likely be shown."""
    gates = _Gates.parse(fail_if, max_drop, against, on)
    bootstrap = Bootstrap(resamples, seed, level, method, _clusters(clusters))
    comparison = compare_runs(
        read_qrels(qrels, format=qrels_format, judges=judge, judge_rule=judge_rule),
        _named_files(run),
        baseline=baseline,
        pool=_pools(pool or [], run),
        corpus_size=_corpus_size(corpus_size),
        corpus=_corpus_ids(corpus),
        measures=measure or None,
        depths=_numbers(depths, "--depths") if depths is not None else None,
        scale=scale,
        grade_map=grade_map,
        policy=policy,
        bootstrap=bootstrap,
        paired=not unpaired,
        draws=draws,
        power=power,
        **_choices(order, ties, missing_query, no_relevant, duplicates, unjudged, depth),
    )
    _put(_view(comparison, _chosen(format, output)), output)
    gates.check(comparison.report, bootstrap)


@app.command()
def sweep(
    qrels: QrelsOption,
    run: RunOption,
    corpus_size: SizeOption = None,
    corpus: CorpusOption = None,
    max_depth: Annotated[int | None, typer.Option(help="The last K of the table; default: the longest list.")] = None,
    tokens: Annotated[Path | None, typer.Option(help="A table of passage_id and tokens.")] = None,
    max_tokens: Annotated[float | None, typer.Option(help="Budget for the passages of a prompt, on average.")] = None,
    min_success: Annotated[
        float | None, typer.Option(help="Advise the smallest K with this success rate, as .9, in place of --max-loss.")
    ] = None,
    rel: RelOption = None,
    m: HitsOption = None,
    max_k: MaxKOption = DEFAULT_MAX_K,
    max_loss: MaxLossOption = DEFAULT_MAX_LOSS,
    scale: ScaleOption = "trec",
    grade_map: GradeMapOption = None,
    policy: PolicyOption = "default",
    order: OrderOption = None,
    ties: TiesOption = None,
    missing_query: MissingOption = None,
    no_relevant: NoRelevantOption = None,
    duplicates: DuplicatesOption = None,
    unjudged: UnjudgedOption = None,
    depth: DepthOption = None,
    qrels_format: QrelsFormatOption = None,
    judge: JudgeOption = None,
    judge_rule: JudgeRuleOption = None,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.")] = 5000,
    seed: int = 7,
    level: float = 0.95,
    method: PairedMethodOption = "bca",
    clusters: ClustersOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Measure every K from 1 to the depth of the lists, and recommend one within a budget of passages."""
    result = sweep_depths(
        read_qrels(qrels, format=qrels_format, judges=judge, judge_rule=judge_rule),
        _named_files(run),
        corpus_size=_corpus_size(corpus_size),
        corpus=_corpus_ids(corpus),
        max_depth=max_depth,
        tokens=tokens,
        max_tokens=max_tokens,
        min_success=min_success,
        rel=rel,
        m=m,
        max_k=max_k,
        max_loss=max_loss,
        scale=scale,
        grade_map=grade_map,
        policy=policy,
        bootstrap=Bootstrap(resamples, seed, level, method, _clusters(clusters)),
        **_choices(order, ties, missing_query, no_relevant, duplicates, unjudged, depth),
    )
    _put(_view(result, _chosen(format, output)), output)


def _to_grade(queries: Path | None, corpus: Path | None, pool: list[str] | None, trace: Path | None) -> tuple[Any, ...]:
    """Queries, corpus and pools, from files or a trace."""
    if trace is not None:
        if queries or corpus or pool:
            raise InputError("--trace brings queries, texts and pools along; leave --queries, --corpus and --pool out")
        from rag_selectivity.live.trace import Trace

        return Trace.read(trace).to_grade()
    if queries is None or corpus is None or not pool:
        raise InputError("say what to grade: --queries FILE --corpus FILE --pool FILE, or --trace FILE")
    return queries, corpus, list(pool)


@app.command()
def report(
    qrels: QrelsOption,
    run: RunOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file.")],
    pool: PoolOption = None,
    corpus_size: SizeOption = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Texts of the passages: JSONL, TSV, CSV, Parquet. Gives N if that is not given.")
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="Texts of the queries, alike.")] = None,
    quality: Annotated[
        Path | None, typer.Option(help="Scores of your answers: a table of K, score and, if you like, query_id.")
    ] = None,
    measure: MeasureOption = None,
    depths: Annotated[
        str | None, typer.Option(help="K's, as in 1,5,10. Default: 1,2,5,10,… and the advised K.")
    ] = None,
    depth_shown: Annotated[int | None, typer.Option("--at", help="The K of the first screen.")] = None,
    baseline: Annotated[str | None, typer.Option(help="Of several runs: with which to compare the others.")] = None,
    scale: ScaleOption = "trec",
    grade_map: GradeMapOption = None,
    policy: PolicyOption = "default",
    unjudged: UnjudgedOption = None,
    depth: DepthOption = None,
    judge: JudgeOption = None,
    judge_rule: JudgeRuleOption = None,
    rel: RelOption = None,
    m: HitsOption = None,
    max_k: MaxKOption = DEFAULT_MAX_K,
    max_loss: MaxLossOption = DEFAULT_MAX_LOSS,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    title: Annotated[str, typer.Option(help="Of the page.")] = "What retrieval is worth",
    max_queries: Annotated[int, typer.Option(help="In the table, worst first.")] = 500,
    max_read: Annotated[int, typer.Option(help="Of these, how many open to their passages.")] = 100,
    top: Annotated[int, typer.Option(help="Passages of each.")] = 10,
) -> None:
    """One self-contained HTML file: the answer in words, plots, and the queries with their passages."""
    from rag_selectivity.render.from_files import html_report

    page = html_report(
        qrels,
        _named_files(run),
        pool=_pools(pool or [], run),
        corpus_size=_corpus_size(corpus_size),
        corpus=corpus,
        queries=queries,
        quality=quality,
        measures=measure or None,
        depths=_numbers(depths, "--depths") if depths is not None else None,
        baseline=baseline,
        scale=scale,
        grade_map=grade_map,
        policy=policy,
        judges=judge,
        judge_rule=judge_rule,
        bootstrap=Bootstrap(level=level),
        rel=rel,
        m=m,
        max_k=max_k,
        max_loss=max_loss,
        title=title,
        shown_depth=depth_shown,
        max_queries=max_queries,
        max_read=max_read,
        top=top,
        **_choices(None, None, None, None, None, unjudged, depth),
    )
    write_whole(output, page)
    typer.echo(f"{output}: {len(page.encode()) / 1e6:.1f} MB, open it in a browser", err=True)


PriceOption = Annotated[float | None, typer.Option(help="Of a million tokens.")]
ModelOption = Annotated[str, typer.Option(help="Name of the model, as the endpoint knows it.")]
BaseUrlOption = Annotated[str | None, typer.Option(help="Of an OpenAI-compatible server.")]


@app.command()
def grade(
    store: Annotated[Path, typer.Option(help="The label store; made if it is not there.")],
    model: ModelOption,
    queries: Annotated[Path | None, typer.Option(help="Texts of the queries: JSONL, TSV, CSV, Parquet.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="Texts of the passages, alike.")] = None,
    pool: Annotated[list[str] | None, typer.Option(help="A run whose passages to grade; may be repeated.")] = None,
    trace: Annotated[
        Path | None, typer.Option(help="In place of these: live retrievals, traced with their texts.")
    ] = None,
    base_url: BaseUrlOption = None,
    pool_depth: Annotated[int | None, typer.Option(help="How far down each pool.")] = None,
    rubric: Annotated[Path | None, typer.Option(help="Your own rubric, in TOML.")] = None,
    extra: Annotated[list[str] | None, typer.Option(help="relevant_span or misleading; may be repeated.")] = None,
    samples: Annotated[int, typer.Option(help="Grades of each pair; their median counts.")] = 1,
    batch: Annotated[int, typer.Option(help="Passages of one query in a call.")] = 1,
    order: Annotated[str, typer.Option(help="rank: top ranks of all systems first; or query.")] = "rank",
    temperature: Annotated[float | None, typer.Option(help="Default: the model's own.")] = None,
    dry_run: Annotated[bool, typer.Option(help="Ask nothing: say pairs, cached, tokens and cost.")] = False,
    retry_failed: Annotated[bool, typer.Option(help="Try again what failed in an earlier run.")] = False,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_cost: Annotated[float | None, typer.Option(help="Needs --price-in and --price-out.")] = None,
    price_in: PriceOption = None,
    price_out: PriceOption = None,
    concurrency: Annotated[int, typer.Option(help="Calls at the same time.")] = 16,
    rpm: Annotated[float | None, typer.Option(help="Requests a minute.")] = None,
    tpm: Annotated[float | None, typer.Option(help="Tokens a minute.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds for a call.")] = 60.0,
    attempts: Annotated[int, typer.Option(help="Tries of a call that fails for a passing reason.")] = 6,
    seed: int = 7,
    format: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Have an LLM grade a pool of (query, passage) pairs from 1 to 5, and keep the grades."""
    from rag_selectivity.grading.grade import grade as grade_pool
    from rag_selectivity.grading.openai_judge import OpenAIJudge
    from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
    from rag_selectivity.grading.runner import Budget, Limits

    budget = Budget(calls=max_calls, tokens=max_tokens, cost=max_cost, price_in=price_in, price_out=price_out)
    limits = Limits(concurrency=concurrency, rpm=rpm, tpm=tpm, timeout=timeout, attempts=attempts)
    needs_no_key = "none" if dry_run else None
    result = grade_pool(
        *_to_grade(queries, corpus, pool, trace),
        store=store,
        judge=OpenAIJudge(model, base_url=base_url, api_key=needs_no_key, temperature=temperature, timeout=timeout),
        rubric=rubric if rubric is not None else DEFAULT_RUBRIC,
        extras=extra or (),
        pool_depth=pool_depth,
        samples=samples,
        batch=batch,
        order=order,
        limits=limits,
        budget=budget,
        retry_failed=retry_failed,
        dry_run=dry_run,
        seed=seed,
    )
    said = json.dumps(result.to_dict(), indent=2) if _chosen(format, output) is Format.json else str(result)
    _put(said, output)
    if result.stopped == "interrupted":
        raise typer.Exit(130)
    if result.failed or result.stopped:
        raise typer.Exit(1)


@app.command()
def claims(
    samples: Annotated[Path, typer.Option(help="JSONL or Parquet: user_input, retrieved_contexts, reference.")],
    store: Annotated[Path, typer.Option(help="The label store; made if it is not there.")],
    model: ModelOption,
    base_url: BaseUrlOption = None,
    check: Annotated[
        list[str] | None, typer.Option(help="precision, recall, entities, relevance; default: all. May be repeated.")
    ] = None,
    depths: Annotated[str | None, typer.Option(help="K's, as in 1,3,5.")] = None,
    whole_context: Annotated[str | None, typer.Option(help="K's at which to read the passages together too.")] = None,
    batch: Annotated[bool, typer.Option(help="All passages of a sample in one call.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Default: the model's own.")] = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_cost: Annotated[float | None, typer.Option(help="Needs --price-in and --price-out.")] = None,
    price_in: PriceOption = None,
    price_out: PriceOption = None,
    concurrency: Annotated[int, typer.Option(help="Calls at the same time.")] = 16,
    rpm: Annotated[float | None, typer.Option(help="Requests a minute.")] = None,
    tpm: Annotated[float | None, typer.Option(help="Tokens a minute.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds for a call.")] = 60.0,
    attempts: Annotated[int, typer.Option(help="Tries of a call that fails for a passing reason.")] = 6,
    format: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Context precision, recall, entity recall and relevance at every K, against reference answers."""
    from rag_selectivity.grading.claims import check_claims
    from rag_selectivity.grading.openai_judge import OpenAIJudge
    from rag_selectivity.grading.runner import Budget, Limits
    from rag_selectivity.results.claims import CHECKS

    result = check_claims(
        samples,
        store=store,
        judge=OpenAIJudge(model, base_url=base_url, temperature=temperature, timeout=timeout),
        checks=check or CHECKS,
        depths=_numbers(depths, "--depths") if depths is not None else None,
        whole_context=_numbers(whole_context, "--whole-context") if whole_context is not None else (),
        batch=batch,
        limits=Limits(concurrency=concurrency, rpm=rpm, tpm=tpm, timeout=timeout, attempts=attempts),
        budget=Budget(calls=max_calls, tokens=max_tokens, cost=max_cost, price_in=price_in, price_out=price_out),
    )
    _put(_view(result, _chosen(format, output)), output)
    if result.stopped == "interrupted":
        raise typer.Exit(130)
    if result.failed or result.stopped:
        raise typer.Exit(1)


class _OnceCommand(typer.core.TyperCommand):
    """A command that refuses an option given twice, of which the last one alone would count."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for parameter, times in Counter(given).items():
            if times > 1 and not parameter.multiple:
                raise InputError(
                    f"{parameter.opts[0]} is given {times} times, and takes one value; leave the others out"
                )
        return super().parse_args(ctx, args)


@app.command(cls=_OnceCommand)
def agree(
    human: Annotated[Path, typer.Option(help="Human labels: qrels, or a label store.")],
    labels: Annotated[Path, typer.Option(help="The judge's labels: a label store, or qrels.")],
    judge: JudgeOption = None,
    judge_rule: JudgeRuleOption = None,
    grade_map: Annotated[str | None, typer.Option(help="Carry the human's grades over, as 0:1,1:3,2:4,3:5.")] = None,
    labels_grade_map: Annotated[str | None, typer.Option(help="Carry the judge's grades over.")] = None,
    drawn: Annotated[
        str | None,
        typer.Option(
            help="How people's pairs were drawn: random (pairs) or by-query (whole queries). For corrected means."
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(help="In place of --drawn: a table of query_id, passage_id and inclusion probability."),
    ] = None,
    run: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    corpus_size: Annotated[str | None, typer.Option(hidden=True)] = None,
    measure: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    depths: Annotated[str | None, typer.Option(hidden=True)] = None,
    scale: ScaleOption = "utility",
    resamples: Annotated[int, typer.Option(help="Random weightings of the queries.")] = 5000,
    seed: int = 7,
    level: float = 0.95,
    clusters: ClustersOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """How far to trust a judge: its agreement with human labels, and the mean of its labels corrected by them."""
    from rag_selectivity.agree import agree as agree_labels

    result = agree_labels(
        human,
        labels,
        judges=judge,
        judge_rule=judge_rule,
        grade_map=grade_map,
        labels_grade_map=labels_grade_map,
        drawn="by query" if drawn == "by-query" else drawn,
        weights=_inclusion(weights),
        runs=run or None,
        corpus_size=corpus_size,
        measures=measure or None,
        depths=depths,
        scale=scale,
        bootstrap=Bootstrap(resamples, seed, level, clusters=_clusters(clusters)),
    )
    _put(_view(result, _chosen(format, output)), output)


store_app = typer.Typer(no_args_is_help=True, help="Look into a label store, export it, import labels.")
app.add_typer(store_app, name="store")
StoreArgument = Annotated[Path, typer.Argument(help="The label store.")]


@store_app.command("info")
def store_info(store: StoreArgument) -> None:
    """Who gave labels, how many, at what cost."""
    from rag_selectivity.grading.exchange import summary_lines
    from rag_selectivity.grading.store import Store

    with Store(store, create=False) as labels:
        for line in summary_lines(labels):
            typer.echo(line)


@store_app.command("export")
def store_export(
    store: StoreArgument,
    target: Annotated[Path, typer.Argument(help=".trec or .qrels; .jsonl, .csv or .parquet with all that is known.")],
    judge: JudgeOption = None,
    judge_rule: JudgeRuleOption = None,
) -> None:
    """Write the labels to a file."""
    from rag_selectivity.grading.exchange import export_labels
    from rag_selectivity.grading.store import Store

    with Store(store, create=False) as labels:
        typer.echo(f"wrote {export_labels(labels, target, judges=judge, rule=judge_rule)} labels to {target}")


@store_app.command("import")
def store_import(
    store: StoreArgument,
    source: Annotated[Path, typer.Argument(help="Qrels (a human's), or a table that `store export` wrote.")],
    annotator: Annotated[str | None, typer.Option(help="Whose grades; default: the file's name.")] = None,
    grade_map: GradeMapOption = None,
) -> None:
    """Take labels into the store; it is made if it is not there."""
    from rag_selectivity.grading.exchange import import_labels
    from rag_selectivity.grading.store import Store

    with Store(store) as labels:
        count = import_labels(labels, source, annotator=annotator, grade_map=parse_grade_map(grade_map))
        typer.echo(f"took {count} labels from {source} into {store}")


@app.command()
def plan(
    corpus_size: Annotated[int, typer.Option(help="N: passages, or tools.")],
    relevant: Annotated[str, typer.Option(help="R: a number, several as in 1,3,4, or a qrels file.")],
    depths: Annotated[str | None, typer.Option(help="K's, as in 5,20,58. Default: 1,2,5,10,… N.")] = None,
    m: Annotated[int, typer.Option("-m", help="Relevant ones that make a success.")] = 1,
    rel: Annotated[int | None, typer.Option(help="Lowest relevant grade of a qrels file.")] = None,
    scale: Annotated[str, typer.Option(help="Scale of a qrels file: " + " or ".join(SCALES))] = "trec",
    max_random_success: Annotated[
        float | None,
        typer.Option(help="Find the largest K at which a random draw succeeds less often. Default: .632, healthy."),
    ] = None,
    min_ceiling: Annotated[
        float | None, typer.Option(help="Find the largest K with a ceiling above so many bits.")
    ] = None,
    tokens_per_item: Annotated[float | None, typer.Option(help="Of a passage, or of a tool's definition.")] = None,
    detect: Annotated[
        float | None, typer.Option(help="Print how many queries show a difference of so many bits.")
    ] = None,
    success: Annotated[float, typer.Option(help="Success rate of the better system, for --detect.")] = 0.8,
    correlation: Annotated[float, typer.Option(help="Of the systems' successes, for --detect.")] = 0.0,
    power: Annotated[float, typer.Option(help="How often the difference is to be found, for --detect.")] = 0.8,
    level: Annotated[float, typer.Option(help="Confidence of the whole comparison, for --detect.")] = 0.95,
    rows: Annotated[
        int | None,
        typer.Option(
            help="Tests in the comparison, for --detect. Default: those of compare, 3 (9 on the utility scale)."
        ),
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """What chance alone would achieve at each K, and the most that a retriever can show."""
    most = DEGRADED_FROM if max_random_success is None else max_random_success
    result = plan_depths(
        corpus_size,
        _relevant(relevant, rel, scale),
        _numbers(depths, "--depths") if depths is not None else None,
        m=m,
        max_random_success=most,
        min_ceiling=min_ceiling,
        tokens_per_item=tokens_per_item,
    )
    lines = [_deepest(percent(most), result["max_K_for_random_success"])]
    if min_ceiling is not None:
        lines.append(_above(min_ceiling, result["max_K_for_ceiling"]))
    if detect is not None:
        tests = rows_of_comparison(scale) if rows is None else rows
        needed = queries_needed(detect, success, correlation=correlation, power=power, level=level, rows=tests)
        result["queries_needed"] = needed
        lines.append(
            f"{needed:,} queries: McNemar's exact test then finds {detect:g} bits in {percent(power)} of samples or "
            f"more (success {percent(success)} and {percent(success * 2**-detect)}, correlation {correlation:g}, "
            f"level {level:g}, {tests} tests in the comparison)"
        )
    chosen = _chosen(format, output)
    text = _rows_text(result, result["rows"], chosen)
    _put("\n".join([text, *lines]) if chosen is Format.table else text, output)


@app.command()
def audit(
    log: Annotated[Path, typer.Argument(help="JSONL, CSV or Parquet: N, K, R and hit for each query.")],
    map: Annotated[str | None, typer.Option(help="The log's names, as in N=corpus,K=shown,hit=ok,R=rel.")] = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Bits over Random of a production log that has counts and no ids."""
    result = audit_log(log, fields=_field_map(map))
    row = {key: value for key, value in result.items() if key not in ("schema", "reason")}
    _put(_rows_text(result, [row], _chosen(format, output)), output)


@app.command()
def measures(
    name: Annotated[str | None, typer.Argument(help="A measure to explain.")] = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """List the measures, or explain one with a tiny worked example."""
    if name is not None:
        _put(explain(parse_measure(name)), output)
        return
    listed = [{"measure": cls.name, "definition": summary(cls)} for cls in REGISTRY.values()]
    match _chosen(format, output):
        case Format.json:
            text = json.dumps(listed, indent=2, ensure_ascii=False)
        case Format.csv:
            text = _csv(listed)
        case Format.markdown:
            text = markdown(list(listed[0]), [list(row.values()) for row in listed])
        case _:
            text = "\n".join(f"{row['measure']:14} {row['definition']}" for row in listed)
    _put(text, output)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the JSON and the plot.")] = Path(),
) -> None:
    """Show the 99 % success paradox on this machine: BM25 over Python's own docstrings."""
    from rag_selectivity.demo import run_demo, save_demo

    result = run_demo(progress=sys.stderr.isatty())
    typer.echo(_view(result.sparse, Format.table))
    typer.echo("\n" + _view(result.dense, Format.table))
    typer.echo("\n" + result.meaning())
    for path in save_demo(result, output):
        typer.echo(f"wrote {path}")


@dataclass(frozen=True)
class _Gates:
    """The conditions of --fail-if and --max-drop."""

    conditions: list[FailIf]
    drops: list[MaxDrop]
    stored: StoredReport | None
    on: str

    @classmethod
    def parse(
        cls, fail_if: list[str] | None, max_drop: list[str] | None, against: Path | None, on: str | None
    ) -> _Gates:
        drops = [parse_max_drop(text) for text in max_drop or []]
        check_options(drops, stored=against is not None, on=on)
        stored = StoredReport.read(against) if against is not None else None
        return cls([parse_fail_if(text) for text in fail_if or []], drops, stored, on or "all")

    def measures(self, wanted: list[str] | None, scale: str, *, sized: bool) -> list[str | Measure]:
        """What to measure: what is wanted or usual, and what the gates rest on."""
        usual = default_measures(scale, sized=sized)
        return [*(wanted or usual), *(gate.measure for gate in self.conditions), *(drop.measure for drop in self.drops)]

    def refuse_paired(self, where: str) -> None:
        """Refuse, before the work is done, what needs the figures of each query."""
        needing = ["--on shared"] if self.on == "shared" else []
        needing += [f"--max-drop 'low({drop.measure}):{drop.amount:g}'" for drop in self.drops if drop.bound == "low"]
        if needing:
            raise InputError(f"{needing[0]} needs the figures of each query, which are not kept {where}")

    def check(self, report: Report, bootstrap: Bootstrap | None) -> None:
        """Exit with status 1 if a gate fails; `bootstrap` makes the paired intervals."""
        against = None
        if self.stored is not None:
            against = Against.of(report, self.stored, on=self.on, bootstrap=bootstrap)
            for line in against.notes:
                typer.echo(f"note: {line}", err=True)
        found = failures(report, self.conditions, self.drops, against)
        for line in found:
            typer.echo(f"gate failed: {line}", err=True)
        if found:
            raise typer.Exit(1)


def run_command_line() -> None:
    """Run the app, with users' mistakes as one line and exit status 2."""
    warnings.showwarning = _show_warning
    try:
        app()
    except SelectivityError as error:
        typer.echo(f"error: {' '.join(str(error).split())}", err=True)
        raise SystemExit(2) from None
    except BrokenPipeError:
        # The reader of the pipe has had enough; a second complaint at shutdown would follow.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, SelectivityWarning):
        typer.echo(f"warning: {message}", err=True)


def _choices(*given: str | None) -> dict[str, str]:
    """The policies that were chosen one by one, by name."""
    names = ("order", "ties", "missing_query", "no_relevant", "duplicates", "unjudged", "short_lists")
    return {name: value for name, value in zip(names, given, strict=True) if value is not None}


def _clusters(path: Path | None) -> dict[str, str] | None:
    if path is None:
        return None
    from rag_selectivity.data.columns import CLUSTER_NAMES, QUERY_NAMES, find_column
    from rag_selectivity.io.reading import read_records

    found = {}
    for line, row in read_records(path):
        query = find_column(list(row), QUERY_NAMES, "query", f"{path}:{line}")
        cluster = find_column(list(row), CLUSTER_NAMES, "cluster", f"{path}:{line}")
        found[str(row[query])] = str(row[cluster])
    return found


def _inclusion(path: Path | None) -> dict[tuple[str, str], float] | None:
    """{(query, passage): probability} from a table."""
    if path is None:
        return None
    from rag_selectivity.data.columns import INCLUSION_NAMES, PASSAGE_NAMES, QUERY_NAMES, find_column
    from rag_selectivity.io.reading import read_records

    found: dict[tuple[str, str], float] = {}
    for line, row in read_records(path):
        where, names = f"{path}:{line}", list(row)
        query = str(row[find_column(names, QUERY_NAMES, "query", where)])
        passage = str(row[find_column(names, PASSAGE_NAMES, "passage", where)])
        text = row[find_column(names, INCLUSION_NAMES, "inclusion probability", where)]
        try:
            value = float(text)
        except (TypeError, ValueError):
            raise InputError(f"{where}: {text!r} is not a probability") from None
        if found.setdefault((query, passage), value) != value:
            raise InputError(f"{where}: query {query!r}, passage {passage!r} has two probabilities; remove one")
    return found


def _named_files(runs: list[str]) -> dict[str, Path]:
    """`NAME=FILE`, or a file whose stem is the name."""
    named: dict[str, Path] = {}
    for text in runs:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = Path(text).name.split(".")[0], text
        if not name or not path:
            raise InputError(f"--run {text!r} is neither FILE nor NAME=FILE")
        if name in named:
            raise InputError(f"two runs are called {name!r}; name them with --run NAME=FILE")
        named[name] = Path(path)
    return named


def _pools(pools: list[str], runs: list[str]) -> Path | dict[str, Path] | None:
    """One pool for all runs, or one for each that is named."""
    if len(pools) == 1 and ("=" not in pools[0] or Path(pools[0]).exists()):
        return Path(pools[0])
    named = _named_files(pools)
    for name in named.keys() - _named_files(runs).keys():
        raise InputError(f"--pool {name}={named[name]}: there is no run {name!r}")
    return named or None


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text!r} is not a list of whole numbers, as in 1,5,10") from None


def _corpus_size(text: str | None) -> int | dict[str, int] | None:
    if text is None:
        return None
    try:
        return int(text.replace("_", "").replace(",", ""))
    except ValueError:
        if not Path(text).exists():
            raise InputError(f"--corpus-size {text!r} is neither a whole number nor a file") from None
    from rag_selectivity.data.columns import QUERY_NAMES, SIZE_NAMES, find_column
    from rag_selectivity.io.reading import read_records

    sizes = {}
    for line, row in read_records(text):
        query = find_column(list(row), QUERY_NAMES, "query", f"{text}:{line}")
        size = find_column(list(row), SIZE_NAMES, "corpus size", f"{text}:{line}")
        sizes[str(row[query])] = whole_count(row[size], f"{text}:{line}: {size}")
    return sizes


def _corpus_ids(path: Path | None) -> list[str] | None:
    if path is None:
        return None
    from rag_selectivity.io.reading import read_corpus_ids

    return list(read_corpus_ids(path))


def _deepest(share: str, depth: int) -> str:
    if depth == 0:
        return f"a random draw succeeds in {share} of the queries or more even at K = 1"
    return f"a random draw succeeds in less than {share} of the queries up to K = {depth}"


def _above(bits: float, depth: int) -> str:
    ceiling = "1 bit" if bits == 1 else f"{bits:g} bits"
    if depth == 0:
        return f"the ceiling is not above {ceiling} at any K"
    return f"the ceiling stays above {ceiling} up to K = {depth}"


def _relevant(text: str, rel: int | None, scale: str) -> list[int]:
    if Path(text).exists():
        qrels = read_qrels(text)
        chosen_scale = scale_named(scale)
        qrels.check_scale(chosen_scale)
        for doubt in doubts_of_scale(chosen_scale.name, (int(qrels.grade.min()), int(qrels.grade.max()))):
            warnings.warn(doubt, SelectivityWarning, stacklevel=1)
        threshold = chosen_scale.relevant_from if rel is None else rel
        return [sum(grade >= threshold for grade in qrels[query].values()) for query in qrels]
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--relevant {text!r} is neither a number, a list of them, nor a qrels file") from None


def _field_map(text: str | None) -> dict[str, str]:
    fields = {}
    for part in text.split(",") if text else []:
        role, equals, column = part.partition("=")
        if not equals:
            raise InputError(f"--map {text!r}: {part!r} is not FIELD=COLUMN, as in N=corpus,K=shown")
        fields[role.strip()] = column.strip()
    return fields


def _chosen(format: Format | None, output: Path | None) -> Format:
    if format is not None or output is None:
        return format or Format.table
    by_suffix = {".json": Format.json, ".csv": Format.csv, ".md": Format.markdown, ".tex": Format.latex}
    return by_suffix.get(output.suffix.lower(), Format.table)


def _view(result: Result, format: Format) -> str:
    match format:
        case Format.json:
            return result.to_json()
        case Format.csv:
            return _csv(result.to_rows())
        case Format.markdown:
            return result.to_markdown()
        case Format.latex:
            return result.to_latex()
        case _:
            return result.to_text(ruled=sys.stdout.isatty())


def _rows_text(result: dict[str, Any], rows: list[dict[str, Any]], format: Format) -> str:
    if format is Format.json:
        return json.dumps(result, indent=2, allow_nan=False)
    if format is Format.csv:
        return _csv(rows)
    if format is Format.latex:
        raise InputError("there is no LaTeX view of this; there are table, json, csv and markdown")
    header = list(rows[0])
    cells = [[_cell(row[name]) for name in header] for row in rows]
    return markdown(header, cells) if format is Format.markdown else align(header, cells, ruled=sys.stdout.isatty())


def _cell(value: Any) -> str:
    return "–" if value is None else number(value) if isinstance(value, float) else str(value)


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value != value else value for key, value in row.items()} for row in rows)
    return text.getvalue().rstrip("\n")


#: Words of a verdict, in the colours that a terminal has for them.
_VERDICTS = {
    "31": r"collapse(?= [\d.]| zone)|retriever-limited|selection-limited|^worse:",
    "33": r"degraded(?= [\d.])|^warning:|^note:",
    "32": r"\bhealthy\b|^better:",
}


def _coloured(text: str) -> str:
    """The text with its verdicts in colour, where somebody looks at it and has not asked for none (NO_COLOR)."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    for code, words in _VERDICTS.items():
        text = re.sub(words, rf"\033[{code}m\g<0>\033[0m", text, flags=re.MULTILINE)
    return text


def _put(text: str, output: Path | None) -> None:
    if output is None:
        typer.echo(_coloured(text))
    else:
        write_whole(output, text + "\n")
