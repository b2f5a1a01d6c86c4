"""`rag-selectivity validate`."""

from pathlib import Path
from typing import Any

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import labels_of, pools_of


def validate(
    files: o.LabelsAndRuns = None,
    *,
    scores: Path,
    score_column: str | None = None,
    score_range: o.ScoreRange = None,
    closed_book: Path | None = None,
    pool: o.Names = None,
    pool_depth: int | None = None,
    corpus: o.CorpusGiven = o.CorpusGiven(),
    form: o.LabelForm = o.LabelForm(),
    measure: o.Names = None,
    depths: o.Depths = None,
    scale: str | None = None,
    rules: o.Rules = o.Rules(),
    resamples: int = 2000,
    borders: list[float] | None = None,
    drawing: o.Drawing = o.Drawing(),
    printer: o.Output = o.Output(),
) -> None:
    """Show which measure at which K follows the scores of the answers.

    Prints correlations with intervals, and paired differences between measures.

    Data
    ----
    closed_book : FILE
        Scores of answers without passages: table of query_id and score (or rows of k = 0 in --scores).

    Measures
    --------
    depths : K,K
        Depths, as in 5,10 (default: each k of --scores, else 5,10,20).

    Tests
    -----
    resamples : COUNT
        Bootstrap resamples: random weights of the queries.

    [data]
    ------
    pool_depth
        Ranks to take of each pool (default: all).

    [intervals]
    -----------
    borders
        Borders of K/N_p (relevant passages of the query) between segments (default: 1).

    Usual options
    -------------
    files scores score_column closed_book corpus_size scale measure depths output

    Examples
    --------
    $ rag-selectivity validate grades.trec bm25.trec reranked.trec --scale utility --scores scores.csv \
        --measure RA-nWG --measure nDCG --measure Harm
    $ rag-selectivity validate qrels.trec reranked.trec --scores scores.csv --measure P --format json
    """
    from rag_selectivity.evaluation.joining import settled_labels
    from rag_selectivity.measures.plan import COMPARED_DEPTHS
    from rag_selectivity.tables.scores import score_depths
    from rag_selectivity.validate import compared_with_answers
    from rag_selectivity.validate.validating import PUBLISHED_BORDERS

    path, runs = files
    labels = settled_labels(labels_of(path, form.qrels_format, form.judge), scale, form.grade_map)
    report = rs.evaluate(
        labels,
        runs,
        pool=pools_of(pool, runs),
        pool_depth=pool_depth,
        **corpus.given(),
        measures=measure or compared_with_answers(labels.scale or "trec"),
        depths=depths or score_depths(scores) or list(COMPARED_DEPTHS),
        bootstrap=None,
        ids=form.ids,
        **rules.chosen(),
    )
    read: dict[str, Any] = {"column": score_column, "score_range": score_range, "closed_book": closed_book}
    read |= {"borders": borders or PUBLISHED_BORDERS, "bootstrap": drawing.bootstrap(resamples), "ids": form.ids}
    printer.show(rs.validate(report, scores, **read))
