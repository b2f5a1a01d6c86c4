"""`rag-selectivity calibrate-alpha`."""

from __future__ import annotations

from typing import Annotated

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import labels_of, named_files, pools_of, score_range_of
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, show
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity calibrate-alpha --qrels qrels.trec --run bm25.trec --scores scores.csv --measure F@10",
    "rag-selectivity calibrate-alpha --qrels qrels.trec --run dense.trec --scores scores.csv --measure Fe@5 "
    "--format json",
)


def calibrate_alpha(
    qrels: o.QrelsOption,
    run: Annotated[str, o.input_file("Run: FILE or NAME=FILE.")],
    scores: o.ScoresOption,
    score_column: o.ScoreColumnOption = None,
    score_range: o.ScoreRangeOption = None,
    pool: o.PoolOption = None,
    qrels_format: o.QrelsFormatOption = None,
    grade_map: o.GradeMapOption = None,
    judge: o.JudgeOption = None,
    ids: o.IdsOption = None,
    measure: Annotated[
        str, o.option(o.MEASURES, "NAME", "F@K, Fe@K or T(form=code)@K; answers from the same K count.")
    ] = "F@10",
    folds: o.FoldsOption = 5,
    scale: o.ScaleOption = None,
    resamples: o.ResamplesOption = 1000,
    seed: o.SeedOption = 7,
    level: o.LevelOption = 0.95,
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Choose the alpha of F, Fe or T by the scores of the answers.

    Rely on the correlation out of fold, since alpha was chosen on other queries there. `validate` does the same for all
    measures.
    """
    from rag_selectivity.tables.forms import IdForm
    from rag_selectivity.tables.scores import answer_scores

    chosen_format(format, output, TABLE_FORMATS)
    parsed = rs.parse_measure(measure)
    if parsed.at is None:
        raise InputError(f"--measure {measure!r}: name the depth, as in {parsed.name}@10")
    report = rs.evaluate(
        labels_of(qrels, qrels_format, judge),
        named_files([run]),
        pool=pools_of(pool, [run]),
        measures=[measure],
        depths=[],
        scale=scale,
        grade_map=grade_map,
        bootstrap=None,
        ids=ids,
    )
    (name,) = report.runs
    read = answer_scores(
        scores,
        [name],
        report.runs[name].queries,
        column=score_column,
        score_range=score_range_of(score_range),
        form=IdForm.of(ids),
    )
    result = rs.calibrate_alpha(
        report,
        read.of(name, int(parsed.at)),
        measure=parsed,
        folds=folds,
        bootstrap=rs.Bootstrap(resamples, seed, level),
    )
    show(result, format, output)
