"""`rag-selectivity answers`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import rag_selectivity as rs
from rag_selectivity.cli import judging as j
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import named_files, runs_given, whole_numbers
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, note, put_rows, show
from rag_selectivity.cli.writable import OF_TABLE
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity answers bm25.trec dense.trec --corpus corpus.jsonl --queries queries.jsonl "
    "--references ragas.jsonl --qrels grades.trec --scale utility --depths 3,10 --store answers.db --model gpt-5-mini "
    "--scores answer-scores.csv",
    "rag-selectivity answers bm25.trec --corpus corpus.jsonl --queries queries.jsonl --references ragas.jsonl "
    "--score exact_match --store answers.db --model gpt-5-mini --dry-run",
)
#: What `--help` shows.
USUAL = "files corpus queries references qrels model judge_model depths store scores dry_run output"


@dataclass(frozen=True)
class Answering:
    """What is asked for seldom."""

    judge_base_url: Annotated[
        str | None, o.setting("judge", "Address of the judge's server (default: that of the model).")
    ] = None
    judge_api_key_env: Annotated[
        str | None, o.setting("judge", "Environment variable that holds the judge's key (default: the model's).")
    ] = None
    rubric: Annotated[Path | None, o.setting("judge", "Rubric of the judge (TOML).")] = None
    controls: Annotated[
        list[str] | None,
        o.setting("judge", "Controls: closed-book, random and ideal, which needs labels (default: all three)."),
    ] = None
    resamples: Annotated[int, o.setting("intervals", "Bootstrap resamples.")] = 5000


def answers(
    files: o.RunsArgument = None,
    corpus: o.PassageTextsOption = None,
    queries: o.QueryTextsOption = None,
    references: Path | None = o.input_file(
        "Right answers: a table of query_id and reference, for multiple choice with a list of choices."
    ),
    qrels: Path | None = o.input_file("Labels, for the ideal sets."),
    more: Answering = Answering(),
    baseline: o.BaselineOption = None,
    model: str | None = o.option(o.JUDGE, "NAME", "Name of the model that answers."),
    server: j.Server = j.Server(),
    judge_model: str | None = o.option(o.JUDGE, "NAME", "Judge that grades answers from 1 to 5."),
    score: list[str] | None = o.option(
        o.MEASURES,
        "NAME",
        "Score: choice, exact_match, f1, judge or judged_right (default: all that the input allows). Repeat for more.",
    ),
    depths: str = o.option(
        o.MEASURES, "K,K", "Passages of each list to show, as in 10,100.", "--depths", "-k", default="10"
    ),
    scale: o.ScaleOption = None,
    drawing: o.Drawing = o.Drawing(),
    dry_run: bool = o.flag(o.BUDGET, "--dry-run", "Count prompts and estimate tokens; send nothing."),
    asking: j.Asking = j.Asking(),
    store: j.OptionalStoreOption = None,
    scores: Path | None = o.option(
        o.OUTPUT,
        OF_TABLE,
        "Table of query_id, run, k and the first score to write, for `validate` (.csv, .jsonl or .parquet).",
    ),
    answer_table: Path | None = o.option(
        o.OUTPUT, OF_TABLE, "Table of all answers with their scores to write (.jsonl, .csv or .parquet).", "--answers"
    ),
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Have an LLM answer from what was retrieved, and score its answers.

    It is shown exactly the passages of each list. The controls are answers without passages, with random passages, and
    with the relevant passages alone. The results are the lift over no passages, and bits over random of right answers.
    The store keeps every answer. If the command stops, run it again to continue.

    The key is read from OPENAI_API_KEY, or from the variable of judge.api_key_env.
    """
    chosen_format(format, output, TABLE_FORMATS)
    run = runs_given(files)
    bootstrap = drawing.bootstrap(more.resamples)
    if not run or corpus is None or queries is None or references is None or model is None or store is None:
        raise InputError("say what to ask: give runs, --corpus, --queries, --references, --model and --store")
    from rag_selectivity.answers.scoring import ANSWER_RUBRIC
    from rag_selectivity.grading.rubric import Rubric

    asked = server.judge(model, key=not dry_run)
    judge = None
    if judge_model is not None:
        address, key = more.judge_base_url or server.base_url, more.judge_api_key_env or server.api_key_env
        of_judge = replace(server, base_url=address, api_key_env=key, temperature=None)
        judge = of_judge.judge(judge_model, key=not dry_run)
    with j.resumable():
        result = rs.measure_answers(
            dict(named_files(run)),
            corpus=corpus,
            queries=queries,
            references=references,
            model=asked,
            store=store,
            depths=whole_numbers(depths, "--depths") or (),
            qrels=qrels,
            scale=scale,
            controls=more.controls,
            scores=score,
            judge=judge,
            rubric=ANSWER_RUBRIC if more.rubric is None else Rubric.read(more.rubric),
            baseline=baseline,
            **asking.options(),
            bootstrap=bootstrap,
            seed=drawing.seed,
            dry_run=dry_run,
        )
    spent = result.spent
    if spent.stopped is not None or spent.failed:
        result = replace(result, resume=j.resume_command())
    if not dry_run:
        name = next(iter(result.kinds))
        if scores is not None:
            rows = result.score_rows()
            if rows:
                put_rows(rows, scores)
                note(f"wrote {scores}: {len(rows)} scores ({name})")
        if answer_table is not None and result.answers:
            put_rows([row.to_row() for row in result.answers], answer_table)
            note(f"wrote {answer_table}: {len(result.answers)} answers")
    show(result, format, output)
    j.exit_unless_complete(spent.stopped_by, spent.failed)
