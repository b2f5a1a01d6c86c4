"""`rag-selectivity golden check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.golden_build import SetArgument
from rag_selectivity.cli.inputs import named_files, whole_numbers
from rag_selectivity.cli.output import NOT_PASSED, Format, chosen_format, json_rows, note, put, put_rows, tell
from rag_selectivity.cli.writable import OF_TABLE
from rag_selectivity.wording import counted

CHECK_EXAMPLES = (
    "rag-selectivity golden check faq --corpus corpus.jsonl --run bm25.trec --run dense.trec",
    "rag-selectivity golden check faq --run bm25.trec --run dense.trec --measure AP --min-judged .9 --max-shift .1 "
    "--format json",
)


def golden_check(
    golden: SetArgument,
    queries: Annotated[Path | None, o.input_file("Texts of the queries as they are now.")] = None,
    corpus: Annotated[Path | None, o.input_file("Corpus as it is now: JSONL, TSV, CSV or Parquet.")] = None,
    run: o.OptionalRunOption = None,
    measure: Annotated[
        list[str] | None,
        o.option(
            o.MEASURES, "NAME", "Measure for the check of reusability (default: RA-nWG, Success, AP). Repeat for more."
        ),
    ] = None,
    depths: Annotated[str | None, o.option(o.MEASURES, "LIST", "Depths K of runs, as in 5,10 (default: 10).")] = None,
    pool_depth: Annotated[
        int | None,
        o.option(
            o.MEASURES,
            "K",
            "Ranks of a run that count as labelled for it, if origins name no run (default: largest K).",
        ),
    ] = None,
    threshold: Annotated[
        float | None, o.option(o.INPUT, "SHARE", "Least similarity of near-duplicate queries (default: .6).")
    ] = None,
    judge: o.JudgeOption = None,
    min_judged: Annotated[
        float | None, o.option(o.GATES, "SHARE", "Least judged share of a run's top K; below it, exit with 1.")
    ] = None,
    max_shift: Annotated[
        float | None,
        o.option(
            o.GATES,
            "AMOUNT",
            "Largest shift of a run's figure without the labels it alone brought; above it, exit with 1.",
        ),
    ] = None,
    min_tau: Annotated[
        float | None,
        o.option(
            o.GATES, "TAU", "Least Kendall's tau of the order of the runs without these labels; below it, exit with 1."
        ),
    ] = None,
    strict: Annotated[bool, o.flag(o.GATES, "--strict", "Exit with 1 for warnings too.")] = False,
    relabel: Annotated[
        Path | None,
        o.option(o.OUTPUT, OF_TABLE, "Table of the pairs to label again, for `annotate --draw file:FILE`."),
    ] = None,
    format: o.TextOrJsonOption = None,
    output: o.TextOrJsonOutputOption = None,
) -> None:
    """Check a golden set: texts, duplicates, judged shares, reusability.

    Exits with 1 if there is a problem: ids without a text, or labels of texts that have changed since.
    """
    from rag_selectivity.golden import check
    from rag_selectivity.golden.render import check_blocks
    from rag_selectivity.render.blocks import text_of

    chosen = chosen_format(format, output, (Format.table, Format.json))
    found = check(
        golden,
        queries=queries,
        corpus=corpus,
        runs=named_files(run) if run else None,
        measures=measure,
        depths=whole_numbers(depths, "--depths"),
        pool_depth=pool_depth,
        threshold=threshold,
        judges=judge,
        min_judged=min_judged,
        max_shift=max_shift,
        min_tau=min_tau,
    )
    if relabel is not None:
        if found.relabel:
            put_rows([each.to_row() for each in found.relabel], relabel)
            note(f"wrote {counted(len(found.relabel), 'pair')} to label again to {relabel}")
        else:
            note("no pair is to be labelled again by people: nothing was written")
    put(json_rows(found.to_dict()) if chosen is Format.json else text_of(check_blocks(found), ruled=False), output)
    if not found.passed(strict=strict):
        tell("the set did not pass: " + ", ".join(dict.fromkeys(each.code for each in found.failing(strict=strict))))
        raise typer.Exit(NOT_PASSED)
