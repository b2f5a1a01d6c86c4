"""`rag-selectivity evaluate`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.deciding import decided
from rag_selectivity.cli.explain import show_in_words
from rag_selectivity.cli.inputs import labels_of, tokens_of, whole_numbers
from rag_selectivity.cli.output import put_rows, show
from rag_selectivity.cli.retrieved import Retrieved, Spans
from rag_selectivity.cli.slices import ByOption, WeightsOption
from rag_selectivity.cli.writable import OF_TABLE
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity evaluate --qrels qrels.trec --run bm25.trec --corpus-size 1000",
    "rag-selectivity evaluate --qrels grades.trec --run bm25.trec --pool candidates.trec --scale utility "
    "--depths 1,3 --measure RA-nWG --measure PROC --measure Harm --fail-if 'RA-nWG@3 < .1'",
)


def evaluate(
    qrels: o.QrelsOption,
    run: o.OptionalRunOption = None,
    trace: Path | None = o.input_file(
        "Trace of live retrievals, in place of --run: a monitor's, or spans (OTLP JSON)."
    ),
    spans: Spans = Spans(),
    pool: o.PoolOption = None,
    pool_depth: o.PoolDepthOption = None,
    corpus: o.CorpusGiven = o.CorpusGiven(),
    tokens: o.TokensOption = None,
    tokenizer: o.TokenizerOption = None,
    groups: o.GroupsOption = None,
    human: o.HumanOption = None,
    form: o.LabelForm = o.LabelForm(),
    controls: o.ControlsOption = None,
    measure: o.MeasureOption = None,
    depths: str | None = o.option(o.MEASURES, "K,K", "Depths, as in 1,5,10 (default: 1,2,5,10,… 1000)."),
    k: o.KOption = None,
    by: ByOption = None,
    weights: WeightsOption = None,
    scale: o.ScaleOption = None,
    rules: o.RulesAndSelf = o.RulesAndSelf(),
    intervals: o.Intervals = o.Intervals(),
    gating: o.Gating = o.Gating(),
    explain: bool = o.flag(
        o.OUTPUT, "--explain", "Print each figure in words, with its formula and the numbers put in."
    ),
    details: o.DetailsOption = False,
    format: o.FormatOption = None,
    output: o.LatexOutputOption = None,
    per_query: Path | None = o.option(
        o.OUTPUT, OF_TABLE, "File for the figures of each query: .csv, .jsonl or .parquet."
    ),
) -> None:
    """Measure runs against labels.

    The first command to try: labels and a run in, figures with intervals out. `--resamples 0` leaves the intervals out.
    """
    from rag_selectivity.cli.gates import Gates

    shown = show_in_words if explain else partial(show, details=details)
    gates = Gates.parse(**vars(gating))
    chosen = rules.chosen()
    labels = labels_of(qrels, form.qrels_format, form.judge, human)
    if trace is None:
        spans.refuse()
        retrieved = Retrieved.of_files(labels, run, pool)
    elif run or pool:
        raise InputError("--trace holds its own lists and candidates: leave --run and --pool out")
    else:
        retrieved = Retrieved.of_trace(labels, trace, spans)
        # A list ends where the prompt did: there is nothing further down that could have been read.
        chosen = {"short_lists": "returned", **chosen}
    size = corpus.given()
    if corpus.corpus_size is None and corpus.corpus is None:
        size["corpus_size"] = retrieved.corpus_size
    bootstrap = intervals.bootstrap(retrieved.clusters) if intervals.resamples else None
    report = rs.evaluate(
        retrieved.qrels,
        retrieved.runs,
        pool=retrieved.pool,
        pool_depth=pool_depth,
        **size,
        measures=gates.with_given(measure),
        depths=whole_numbers(depths, "--depths") or retrieved.depths,
        scale=scale,
        grade_map=form.grade_map,
        controls=rs.read_qrels(controls) if controls is not None else None,
        bootstrap=bootstrap,
        ids=form.ids,
        human=human,
        tokens=tokens_of(tokens, tokenizer),
        groups=groups,
        by=by or None,
        weights=weights,
        **chosen,
    )
    report = decided(retrieved.noted_in(report), k, whole_numbers(depths, "--depths"))
    if per_query is not None:
        put_rows(report.per_query(), per_query)
    shown(report, format, output)
    gates.check(report)
