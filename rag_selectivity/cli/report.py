"""`rag-selectivity report`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

from rag_selectivity.advice import DEFAULT_MAX_K, DEFAULT_MAX_LOSS
from rag_selectivity.cli import options as o
from rag_selectivity.cli.deciding import production_depth
from rag_selectivity.cli.inputs import corpus_size_of, costs_of, named_files, policy_choices, pools_of, whole_numbers
from rag_selectivity.cli.output import STANDARD_OUTPUT, note, put
from rag_selectivity.errors import InputError
from rag_selectivity.statistics.bootstrap import Bootstrap

EXAMPLES = (
    "rag-selectivity report --qrels qrels.trec --run bm25.trec --corpus-size 1400 --output report.html",
    "rag-selectivity report --qrels grades.trec --run bm25.trec --run dense.trec --scale utility "
    "--corpus corpus.jsonl --queries queries.jsonl --output report.html",
)


def report(
    qrels: o.QrelsOption,
    run: o.RunOption,
    output: Annotated[Path, o.option(o.OUTPUT, "FILE", "HTML file to write.", "--output", "-o")],
    pool: o.PoolOption = None,
    corpus_size: o.SizeOption = None,
    corpus: Annotated[
        Path | None,
        o.input_file("Texts of the passages: JSONL, TSV, CSV or Parquet. Gives the corpus size too."),
    ] = None,
    passages_of: o.PassagesOfOption = None,
    controls: o.ControlsOption = None,
    queries: o.QueryTextsOption = None,
    quality: Annotated[
        Path | None, o.input_file("Scores of answers: a table of K, score and, if known, query_id.")
    ] = None,
    tokens: o.TokensOption = None,
    costs: o.CostsOption = None,
    human: o.HumanOption = None,
    grade_map: o.GradeMapOption = None,
    judge: o.JudgeOption = None,
    judge_rule: o.JudgeRuleOption = None,
    ids: o.IdsOption = None,
    baseline: Annotated[
        str | None,
        o.option(o.INPUT, "NAME", "Run that the others are compared with (default: the first)."),
    ] = None,
    measure: o.MeasureOption = None,
    depths: Annotated[
        str | None,
        o.option(
            o.MEASURES,
            "K,K",
            "Depths of the plots, as in 1,5,10 (default: 1,2,5,10,…). The K of the decision is added.",
        ),
    ] = None,
    k: o.KOption = None,
    scale: o.ScaleOption = None,
    rel: o.RelOption = None,
    m: o.HitsOption = None,
    max_k: o.MaxKOption = DEFAULT_MAX_K,
    max_loss: o.MaxLossOption = DEFAULT_MAX_LOSS,
    policy: o.PolicyOption = "default",
    unjudged: o.UnjudgedOption = None,
    short_lists: o.ShortListsOption = None,
    level: o.LevelOption = 0.95,
    title: Annotated[str, o.option(o.PAGE, "TEXT", "Title of the page.")] = "What retrieval is worth",
    open_it: Annotated[bool, o.option(o.PAGE, "", "Open the page in the browser.", "--open")] = False,
) -> None:
    """Write an HTML page: what to decide about the runs, and why.

    The page is one file without links to others: to look at, to send and to print.
    """
    from rag_selectivity.render.from_files import html_report

    if open_it and output == STANDARD_OUTPUT:
        raise InputError("--open needs a file that a browser can read: give --output report.html")
    asked = whole_numbers(depths, "--depths")
    named = named_files(run)
    page = html_report(
        qrels,
        named,
        pool=pools_of(pool, run),
        corpus_size=corpus_size_of(corpus_size),
        corpus=corpus,
        passages_of=passages_of,
        controls=controls,
        queries=queries,
        quality=quality,
        tokens=tokens,
        costs=costs_of(costs, list(named)),
        measures=measure or None,
        depths=asked,
        k=production_depth(k, asked),
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
        ids=ids,
        human=human,
        **policy_choices(unjudged=unjudged, short_lists=short_lists),
    )
    put(page.rstrip("\n"), output)
    if output != STANDARD_OUTPUT:
        opened = open_it and webbrowser.open(output.resolve().as_uri())
        note(f"{output}: {len(page.encode()) / 1e6:.1f} MB{'' if opened else '; open it in a browser'}")
