"""`rag-selectivity answers`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import rag_selectivity as rs
from rag_selectivity.cli import judging as j
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import named_files, runs_given, score_range_of, whole_numbers
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, note, put_rows, show
from rag_selectivity.cli.writable import OF_TABLE
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity answers bm25.trec dense.trec --corpus corpus.jsonl --queries queries.jsonl "
    "--references ragas.jsonl --qrels grades.trec --scale utility --depths 3,10 --store answers.db --model gpt-5-mini "
    "--scores answer-scores.csv",
    "rag-selectivity answers bm25.trec dense.trec --given answer-scores.csv",
)
#: What `--help` shows.
USUAL = "files corpus queries references qrels model judge_model depths store scores dry_run output"


@dataclass(frozen=True)
class Answering:
    """What is asked for seldom."""

    score_range: Annotated[str | None, o.setting("judge", "Lowest and highest possible score, as in 1,5.")] = None
    correct_from: Annotated[
        float | None, o.setting("judge", "Score of --given from which an answer counts as right.")
    ] = None
    served: Annotated[
        str | None, o.setting("judge", "Name that the server gives the model: only its answers count.")
    ] = None
    instructions: Annotated[Path | None, o.setting("judge", "File with what the model is told first.")] = None
    citations: Annotated[bool, o.setting("judge", "Ask which passages an answer rests on.")] = True
    abstention: Annotated[bool, o.setting("judge", "Let the model decline to answer.")] = True
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
    orders: Annotated[
        list[str], o.setting("judge", "Further orders of the passages: worst-first, shuffled or middle.")
    ] = field(default_factory=list)
    junk: Annotated[
        list[int], o.setting("judge", "Numbers of hard negatives to add to the relevant passages, as in [0, 2, 5].")
    ] = field(default_factory=list)
    resamples: Annotated[int, o.setting("intervals", "Bootstrap resamples.")] = 5000


def answers(
    files: o.RunsArgument = None,
    corpus: o.PassageTextsOption = None,
    queries: o.QueryTextsOption = None,
    references: Path | None = o.input_file(
        "Right answers: a table of query_id and reference, for multiple choice with a list of choices."
    ),
    qrels: Path | None = o.input_file("Labels, for ideal sets, junk, the order `middle` and citations."),
    given: Path | None = o.input_file(
        "Scores that exist, in place of a model: a table of query_id, run, k and score. The runs closed-book, "
        "random and ideal are controls."
    ),
    score_column: o.ScoreColumnOption = None,
    more: Answering = Answering(),
    baseline: o.BaselineOption = None,
    model: str | None = o.option(o.JUDGE, "NAME", "Name of the model that answers."),
    server: j.Server = j.Server(),
    judge_model: str | None = o.option(
        o.JUDGE, "NAME", "Judge that grades answers from 1 to 5 and checks their claims."
    ),
    score: list[str] | None = o.option(
        o.MEASURES,
        "NAME",
        "Score: choice, exact_match, f1, judge, judged_right, claims, cited or abstained (default: all that the "
        "input allows). Repeat for more.",
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
    if given is not None:
        from rag_selectivity.answers.given import answers_given

        _refuse_beside_given(corpus=corpus, queries=queries, references=references, model=model, store=store)
        result = answers_given(
            given,
            column=score_column,
            ends=score_range_of(more.score_range) or (0.0, 1.0),
            correct_from=more.correct_from,
            run=dict(named_files(run)) if run else None,
            baseline=baseline,
            bootstrap=bootstrap,
        )
        show(result, format, output)
        return
    if not run or corpus is None or queries is None or references is None or model is None or store is None:
        raise InputError(
            "say what to ask: give runs, --corpus, --queries, --references, --model and --store; or --given FILE with "
            "scores that exist"
        )
    from rag_selectivity.answers.prompt import INSTRUCTIONS
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
            orders=more.orders,
            junk=more.junk,
            scores=score,
            judge=judge,
            rubric=ANSWER_RUBRIC if more.rubric is None else Rubric.read(more.rubric),
            instructions=INSTRUCTIONS if more.instructions is None else _text_of(more.instructions),
            cite=more.citations,
            abstain=more.abstention,
            served=more.served,
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


def _refuse_beside_given(**others: object) -> None:
    named = [f"--{name}" for name, value in others.items() if value]
    if named:
        raise InputError(f"--given holds scores that exist, and no model is asked: leave {', '.join(named)} out")


def _text_of(path: Path) -> str:
    from rag_selectivity.tables.files import text_lines

    text = "\n".join(line for _, line in text_lines(path)).strip()
    if not text:
        raise InputError(f"{path}: the instructions are empty")
    return text
