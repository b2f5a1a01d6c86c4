"""`rag-selectivity sweep`."""

from __future__ import annotations

from pathlib import Path

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import labels_of, named_files, score_range_of, tokens_of
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, show

EXAMPLES = (
    "rag-selectivity sweep --qrels qrels.trec --run bm25.trec --corpus-size 1000 --max-k 10",
    "rag-selectivity sweep --qrels qrels.trec --run bm25.trec --corpus-size 1000 --tokens tokens.csv --max-tokens 1500",
)


def sweep(
    qrels: o.QrelsOption,
    run: o.RunOption,
    corpus: o.CorpusGiven = o.CorpusGiven(),
    controls: o.ControlsOption = None,
    tokens: o.TokensOption = None,
    tokenizer: o.TokenizerOption = None,
    human: o.HumanOption = None,
    scores: Path | None = o.input_file(
        "Scores of answers, in place of success: table of query_id, run (if there are several), k, score."
    ),
    score_column: o.ScoreColumnOption = None,
    score_range: o.ScoreRangeOption = None,
    form: o.LabelForm = o.LabelForm(),
    max_depth: int | None = o.option(o.MEASURES, "K", "Last depth of the table (default: the longest list)."),
    max_tokens: float | None = o.option(
        o.MEASURES, "COUNT", "Budget for the passages of a prompt, on average; needs --tokens."
    ),
    min_success: float | None = o.option(
        o.MEASURES, "SHARE", "Advise the smallest depth with this success rate, as .9, in place of --max-loss."
    ),
    rel: o.RelOption = None,
    m: o.HitsOption = None,
    max_k: o.MaxKOption = o.DEFAULT_MAX_K,
    max_loss: o.MaxLossOption = o.DEFAULT_MAX_LOSS,
    scale: o.ScaleOption = None,
    rules: o.Rules = o.Rules(),
    intervals: o.Intervals = o.Intervals(),
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Measure every depth K and advise one.

    The advice is the smallest K that loses little against the most passages that a prompt can show.
    """
    chosen_format(format, output, TABLE_FORMATS)
    result = rs.sweep(
        labels_of(qrels, form.qrels_format, form.judge, human),
        named_files(run),
        **corpus.given(),
        controls=rs.read_qrels(controls) if controls is not None else None,
        max_depth=max_depth,
        tokens=tokens_of(tokens, tokenizer),
        max_tokens=max_tokens,
        min_success=min_success,
        rel=rel,
        m=m,
        max_k=max_k,
        max_loss=max_loss,
        scale=scale,
        grade_map=form.grade_map,
        bootstrap=intervals.bootstrap(),
        ids=form.ids,
        human=human,
        scores=scores,
        score_column=score_column,
        score_range=score_range_of(score_range),
        **rules.chosen(),
    )
    show(result, format, output)
