"""`rag-selectivity report`."""

from __future__ import annotations

import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.deciding import production_depth
from rag_selectivity.cli.inputs import (
    corpus_size_of,
    costs_of,
    is_given,
    named_files,
    pools_of,
    tokens_of,
    whole_numbers,
)
from rag_selectivity.cli.output import STANDARD_OUTPUT, note, put
from rag_selectivity.cli.slices import ByOption, WeightsOption
from rag_selectivity.cli.writable import Writable
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity report --qrels grades.trec --run bm25.trec --run dense.trec --scale utility "
    "--corpus corpus.jsonl --queries queries.jsonl --output report.html",
    "rag-selectivity report --qrels grades.trec --run bm25.trec --scale utility --k 3 --against before.json "
    "--output comment.md",
)


class PageFormat(StrEnum):
    """How to write the report."""

    html = "html"
    markdown = "markdown"


#: Options that only the page shows something of.
ONLY_OF_THE_PAGE = ("queries", "by", "title", "open_it")


def report(
    context: typer.Context,
    qrels: o.QrelsOption,
    run: o.RunOption,
    output: Annotated[
        Path,
        o.option(
            o.OUTPUT,
            Writable.by_suffix(".html", ".htm", ".md"),
            "File to write: .html, or .md as Markdown.",
            "--output",
            "-o",
        ),
    ],
    pool: o.PoolOption = None,
    pool_depth: o.PoolDepthOption = None,
    corpus_size: o.SizeOption = None,
    corpus: Path | None = o.input_file("Texts of the passages: JSONL, TSV, CSV or Parquet. Gives the corpus size too."),
    passages_of: o.PassagesOfOption = None,
    controls: o.ControlsOption = None,
    queries: o.QueryTextsOption = None,
    tokens: o.TokensOption = None,
    tokenizer: o.TokenizerOption = None,
    costs: o.CostsOption = None,
    human: o.HumanOption = None,
    grade_map: o.GradeMapOption = None,
    judge: o.JudgeOption = None,
    ids: o.IdsOption = None,
    baseline: o.BaselineOption = None,
    measure: o.MeasureOption = None,
    depths: str | None = o.option(
        o.MEASURES, "K,K", "Depths of the plots, as in 1,5,10 (default: 1,2,5,10,…). The K of the decision is added."
    ),
    k: o.KOption = None,
    scale: o.ScaleOption = None,
    rel: o.RelOption = None,
    m: o.HitsOption = None,
    rules: o.MainRules = o.MainRules(),
    level: o.LevelOption = 0.95,
    by: ByOption = None,
    weights: WeightsOption = None,
    title: str = o.option(o.PAGE, "TEXT", "Title of the page.", default="What retrieval is worth"),
    open_it: bool = o.flag(o.PAGE, "--open", "Open the page in the browser."),
    format: PageFormat | None = o.option(
        o.OUTPUT, "FORMAT", "Format: html (default), or markdown, for a comment of a pull request.", "--format"
    ),
    against: Path | None = o.input_file(
        "Report saved as JSON, as that of the main branch: the Markdown says what changed.", o.OUTPUT
    ),
    on: str | None = o.option(
        o.OUTPUT,
        "NAME",
        "Queries to compare with --against: all (default), or shared (in both reports with the same labels).",
    ),
) -> None:
    """Write an HTML page: what to decide about the runs, and why.

    The page is one file without links to others: to look at, to send and to print. As Markdown, its first screen is a
    comment of at most 40 lines for a pull request.
    """
    from rag_selectivity.judged.policy import resolve_policy
    from rag_selectivity.report import report_from_files

    as_comment = (format or _by_suffix(output)) is PageFormat.markdown
    _check_format(context, as_comment=as_comment)
    if open_it and output == STANDARD_OUTPUT:
        raise InputError("--open needs a file that a browser can read: give --output report.html")
    asked = whole_numbers(depths, "--depths")
    named = named_files(run)
    text = report_from_files(
        qrels,
        named,
        judges=judge,
        scale=scale,
        grade_map=grade_map,
        policy=resolve_policy(**rules.chosen()),
        human=human,
        controls=controls,
        corpus=corpus,
        tokens=tokens_of(tokens, tokenizer),
        ids=ids,
        weights=weights,
        by=by or None,
        queries=queries,
        costs=costs_of(costs, list(named)),
        measures=measure or None,
        depths=asked,
        rel=rel,
        m=m,
        bootstrap=rs.Bootstrap(level=level),
        as_comment=as_comment,
        against=against,
        on=on or "all",
        deciding={
            "k": production_depth(k, asked),
            "baseline": baseline,
        },
        page={"title": title},
        pool=pools_of(pool, run),
        pool_depth=pool_depth,
        corpus_size=corpus_size_of(corpus_size),
        passages_of=passages_of,
    )
    put(text.rstrip("\n"), output, is_data=True)
    if output == STANDARD_OUTPUT:
        return
    if as_comment:
        note(f"{output}: {len(text.splitlines())} lines")
        return
    opened = open_it and webbrowser.open(output.resolve().as_uri())
    note(f"{output}: {len(text.encode()) / 1e6:.1f} MB{'' if opened else '; open it in a browser'}")


def _by_suffix(output: Path) -> PageFormat:
    return PageFormat.markdown if output.suffix.lower() == ".md" else PageFormat.html


def _check_format(context: typer.Context, *, as_comment: bool) -> None:
    """Refuse the options that would have no effect."""
    if as_comment:
        given = [name for name in ONLY_OF_THE_PAGE if is_given(context, name)]
        if given:
            option = "--open" if given[0] == "open_it" else f"--{given[0].replace('_', '-')}"
            raise InputError(f"{option} is about the HTML page, and has no effect on Markdown: leave it out")
        if is_given(context, "on") and not is_given(context, "against"):
            raise InputError("--on needs a stored report: add --against FILE, a report saved as JSON")
        return
    for name in ("against", "on"):
        if is_given(context, name):
            raise InputError(f"--{name} is for Markdown alone: add --format markdown, or --output comment.md")
