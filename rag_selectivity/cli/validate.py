"""`rag-selectivity validate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import (
    labels_and_runs,
    labels_of,
    named_files,
    pools_of,
    score_range_of,
    whole_numbers,
)
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, show

EXAMPLES = (
    "rag-selectivity validate grades.trec bm25.trec reranked.trec --scale utility "
    "--scores scores.csv --measure RA-nWG --measure nDCG --measure Harm",
    "rag-selectivity validate qrels.trec reranked.trec --scores scores.csv --measure P --format json",
)
#: What `--help` shows.
USUAL = "files scores score_column closed_book corpus_size scale measure depths output"


@dataclass(frozen=True)
class Given:
    """What is asked for seldom."""

    pool_depth: Annotated[int | None, o.setting("data", "Ranks to take of each pool (default: all).")] = None


def validate(
    scores: o.ScoresOption,
    files: o.FilesArgument = None,
    score_column: o.ScoreColumnOption = None,
    score_range: o.ScoreRangeOption = None,
    closed_book: Annotated[
        Path | None,
        o.input_file("Scores of answers without passages: table of query_id and score (or rows of k = 0 in --scores)."),
    ] = None,
    pool: o.PoolOption = None,
    corpus: o.CorpusGiven = o.CorpusGiven(),
    form: o.LabelForm = o.LabelForm(),
    measure: o.MeasureOption = None,
    depths: Annotated[
        str | None, o.option(o.MEASURES, "K,K", "Depths, as in 5,10 (default: each k of --scores, else 5,10,20).")
    ] = None,
    given: Given = Given(),
    scale: o.ScaleOption = None,
    rules: o.Rules = o.Rules(),
    resamples: Annotated[int, o.option(o.TESTS, "COUNT", "Bootstrap resamples: random weights of the queries.")] = 2000,
    drawing: o.Drawing = o.Drawing(),
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Show which measure at which K follows the scores of the answers.

    Prints correlations with intervals, and paired differences between measures.
    """
    from rag_selectivity.evaluation.joining import settled_labels
    from rag_selectivity.measures.plan import COMPARED_DEPTHS
    from rag_selectivity.tables.scores import score_depths
    from rag_selectivity.validate import compared_with_answers

    chosen_format(format, output, TABLE_FORMATS)
    path, run = labels_and_runs(files)
    labels = settled_labels(labels_of(path, form.qrels_format, form.judge), scale, form.grade_map)
    at = whole_numbers(depths, "--depths") or score_depths(scores) or list(COMPARED_DEPTHS)
    report = rs.evaluate(
        labels,
        named_files(run),
        pool=pools_of(pool, run),
        pool_depth=given.pool_depth,
        **corpus.given(),
        measures=measure or compared_with_answers(labels.scale or "trec"),
        depths=at,
        bootstrap=None,
        ids=form.ids,
        **rules.chosen(),
    )
    result = rs.validate(
        report,
        scores,
        column=score_column,
        closed_book=closed_book,
        score_range=score_range_of(score_range),
        ids=form.ids,
        bootstrap=drawing.bootstrap(resamples),
    )
    show(result, format, output)
