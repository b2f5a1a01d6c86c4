"""`rag-selectivity evaluate`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.deciding import decided
from rag_selectivity.cli.explain import show_in_words
from rag_selectivity.cli.inputs import (
    STANDARD_INPUT,
    clusters_of,
    corpus_ids,
    corpus_size_of,
    files_of,
    is_given,
    is_parquet,
    is_parquet_folder,
    labels_of,
    named_files,
    policy_choices,
    tokens_of,
    whole_numbers,
)
from rag_selectivity.cli.output import SETTINGS, Interrupted, put_rows, show
from rag_selectivity.cli.retrieved import IdentityOption, QueryIdKeyOption, Retrieved, refuse_without_trace
from rag_selectivity.cli.slices import ByOption, TextsForLengthOption, WeightsOption
from rag_selectivity.cli.writable import OF_TABLE
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity evaluate --qrels qrels.trec --run bm25.trec --corpus-size 1000",
    "rag-selectivity evaluate --qrels grades.trec --run bm25.trec --pool candidates.trec --scale utility "
    "--depths 1,3 --measure RA-nWG --measure PROC --measure Harm --fail-if 'RA-nWG@3 < .1'",
)

#: Options that cannot be combined with reading part by part, and why. All others are honoured.
NOT_OUT_OF_CORE = {
    "trace": "a trace is read into memory as a whole",
    "identity": "it is about the spans of a trace",
    "query_id_key": "it is about the spans of a trace",
    "pool": "the pool of a run is its own list there",
    "pool_depth": "the pool of a run is its own list there",
    "corpus": "the ids of the corpus would be held in memory; give its size with --corpus-size",
    "tokens": "the lists of the runs would be held in memory",
    "tokenizer": "the lists of the runs would be held in memory",
    "groups": "the lists of the runs would be held in memory",
    "controls": "an estimate with random controls needs all queries at once",
    "clusters": "the Poisson bootstrap draws queries one by one",
    "human": "the labels are completed again and again, which needs all of them in memory",
    "k": "a decision needs the lists of the runs",
    "per_query": "the figures of single queries are not kept",
    "by": "the figures of single queries are not kept",
    "queries": "they are read for --by, and the figures of single queries are not kept",
    "weights": "the figures of single queries are not kept",
}
#: Options that choose among labels in memory. Labels in a Parquet dataset are all read.
_OF_LABELS_IN_MEMORY = ("qrels_format", "judge")
_RESAMPLES_OUT_OF_CORE = 1000


def evaluate(
    context: typer.Context,
    qrels: o.QrelsOption,
    run: o.OptionalRunOption = None,
    trace: Annotated[
        Path | None, o.input_file("Trace of live retrievals, in place of --run: a monitor's, or spans (OTLP JSON).")
    ] = None,
    identity: IdentityOption = None,
    query_id_key: QueryIdKeyOption = None,
    pool: o.PoolOption = None,
    pool_depth: o.PoolDepthOption = None,
    corpus_size: o.SizeOption = None,
    corpus: o.CorpusOption = None,
    passages_of: o.PassagesOfOption = None,
    tokens: o.TokensOption = None,
    tokenizer: o.TokenizerOption = None,
    groups: o.GroupsOption = None,
    human: o.HumanOption = None,
    qrels_format: o.QrelsFormatOption = None,
    grade_map: o.GradeMapOption = None,
    judge: o.JudgeOption = None,
    ids: o.IdsOption = None,
    controls: o.ControlsOption = None,
    out_of_core: Annotated[
        bool,
        o.flag(o.INPUT, "--out-of-core", "Read part by part, for data larger than memory, as folders of Parquet are."),
    ] = False,
    memory: Annotated[
        int, o.option(o.INPUT, "MB", "Megabytes of memory to stay within, when reading part by part.")
    ] = 1000,
    measure: o.MeasureOption = None,
    depths: Annotated[
        str | None,
        o.option(o.MEASURES, "K,K", "Depths, as in 1,5,10 (default: 1,2,5,10,… 1000)."),
    ] = None,
    k: o.KOption = None,
    by: ByOption = None,
    queries: TextsForLengthOption = None,
    weights: WeightsOption = None,
    scale: o.ScaleOption = None,
    policy: o.PolicyOption = "default",
    order: o.OrderOption = None,
    ties: o.TiesOption = None,
    missing_query: o.MissingQueryOption = None,
    no_relevant: o.NoRelevantOption = None,
    duplicates: o.DuplicatesOption = None,
    unjudged: o.UnjudgedOption = None,
    short_lists: o.ShortListsOption = None,
    resamples: Annotated[
        int,
        o.option(o.INTERVALS, "COUNT", "Bootstrap resamples; 0 disables intervals. Out of core the default is 1000."),
    ] = 5000,
    seed: o.SeedOption = 7,
    level: o.LevelOption = 0.95,
    method: o.MethodOption = "bca",
    clusters: o.ClustersOption = None,
    fail_if: o.FailIfOption = None,
    max_drop: o.MaxDropOption = None,
    against: o.AgainstOption = None,
    on: o.OnOption = None,
    require_trust: o.RequireTrustOption = None,
    explain: Annotated[
        bool, o.flag(o.OUTPUT, "--explain", "Print each figure in words, with its formula and the numbers put in.")
    ] = False,
    details: o.DetailsOption = False,
    format: o.FormatOption = None,
    output: o.LatexOutputOption = None,
    per_query: Annotated[
        Path | None,
        o.option(o.OUTPUT, OF_TABLE, "File for the figures of each query: .csv, .jsonl or .parquet."),
    ] = None,
) -> None:
    """Measure runs against labels.

    The first command to try: labels and a run in, figures with intervals out.
    """
    from rag_selectivity.cli.gates import Gates

    shown = show_in_words if explain else partial(show, details=details)
    gates = Gates.parse(fail_if, max_drop, against, on, require_trust)
    rules = policy_choices(
        order=order,
        ties=ties,
        missing_query=missing_query,
        no_relevant=no_relevant,
        duplicates=duplicates,
        unjudged=unjudged,
        short_lists=short_lists,
    )
    if out_of_core or any(is_parquet_folder(path) for path in (qrels, *files_of(run))):
        gates.refuse_paired("out of core")
        _check_out_of_core(context, qrels, files_of(run), method)
        report = _evaluate_out_of_core(
            qrels if is_parquet(qrels) else labels_of(qrels, qrels_format, judge, human),
            named_files(run or []),
            corpus_size=corpus_size_of(corpus_size),
            passages_of=passages_of,
            measures=gates.measures(measure),
            depths=whole_numbers(depths, "--depths"),
            scale=scale,
            grade_map=grade_map,
            policy=policy,
            memory=memory,
            resamples=resamples if is_given(context, "resamples") else _RESAMPLES_OUT_OF_CORE,
            seed=seed,
            level=level if resamples else None,
            ids=ids,
            **rules,
        )
        shown(report, format, output)
        gates.check(report, None)
        return
    if is_given(context, "memory"):
        raise InputError("--memory bounds what is held when reading part by part: give --out-of-core too")
    labels = labels_of(qrels, qrels_format, judge, human)
    if trace is None:
        refuse_without_trace(identity, query_id_key)
        retrieved = Retrieved.of_files(labels, run, pool)
    elif run or pool:
        raise InputError("--trace holds its own lists and candidates: leave --run and --pool out")
    else:
        retrieved = Retrieved.of_trace(labels, trace, identity, query_id_key)
        # A list ends where the prompt did: there is nothing further down that could have been read.
        rules = {**policy_choices(short_lists="returned"), **rules}
    size = corpus_size_of(corpus_size) if corpus_size is not None or corpus is not None else retrieved.corpus_size
    bootstrap = rs.Bootstrap(resamples, seed, level, method, clusters_of(clusters)) if resamples else None
    report = rs.evaluate(
        retrieved.qrels,
        retrieved.runs,
        pool=retrieved.pool,
        pool_depth=pool_depth,
        corpus_size=size,
        corpus=corpus_ids(corpus),
        passages_of=passages_of,
        measures=gates.measures(measure),
        depths=whole_numbers(depths, "--depths") or retrieved.depths,
        scale=scale,
        grade_map=grade_map,
        policy=policy,
        controls=rs.read_qrels(controls) if controls is not None else None,
        bootstrap=bootstrap,
        ids=ids,
        human=human,
        tokens=tokens_of(tokens, tokenizer),
        groups=groups,
        by=by or None,
        queries=queries,
        weights=weights,
        **rules,
    )
    report = decided(retrieved.noted_in(report), k, whole_numbers(depths, "--depths"))
    if per_query is not None:
        put_rows(report.per_query(), per_query)
    shown(report, format, output)
    gates.check(report, bootstrap)


def _check_out_of_core(context: typer.Context, qrels: Path, runs: list[Path], method: str) -> None:
    """Refuse the options that would have no effect when reading part by part."""
    for name, why in NOT_OUT_OF_CORE.items():
        if is_given(context, name):
            raise InputError(f"{_option(name)} cannot be combined with reading out of core: {why}")
    if STANDARD_INPUT in (qrels, *runs):
        raise InputError("standard input (-) cannot be read out of core: it is held in memory; name a file")
    if is_given(context, "method") and method != "poisson":
        raise InputError(
            f"--method {method} cannot be combined with reading out of core, whose intervals are those of the Poisson "
            f"bootstrap: leave --method out, or give --method poisson"
        )
    for name in _OF_LABELS_IN_MEMORY if is_parquet(qrels) else ():
        if is_given(context, name):
            raise InputError(f"{_option(name)} cannot be combined with the Parquet dataset {qrels}: leave it out")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _evaluate_out_of_core(qrels: Any, runs: Any, **options: Any) -> rs.Report:
    from rag_selectivity.scale.out_of_core import evaluate_out_of_core

    try:
        return evaluate_out_of_core(qrels, runs, progress=not SETTINGS.quiet, **options)
    except KeyboardInterrupt:
        raise Interrupted("nothing was written, and temporary files were removed") from None
