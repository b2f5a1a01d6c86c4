"""`rag-selectivity answers`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import rag_selectivity as rs
from rag_selectivity.cli import judging as j
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import named_files, score_range_of, whole_numbers
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, note, put_rows, show
from rag_selectivity.cli.writable import OF_TABLE
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity answers --run bm25.trec --run dense.trec --corpus corpus.jsonl --queries queries.jsonl "
    "--references ragas.jsonl --qrels grades.trec --scale utility --depths 3,10 --store answers.db --model gpt-5-mini "
    "--scores answer-scores.csv",
    "rag-selectivity answers --given answer-scores.csv --run bm25.trec --run dense.trec",
)


def answers(
    run: o.OptionalRunOption = None,
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
    score_range: o.ScoreRangeOption = None,
    correct_from: float | None = o.option(
        o.INPUT, "SCORE", "Score of --given from which an answer counts as right, for bits over random."
    ),
    baseline: o.BaselineOption = None,
    model: str | None = o.option(o.JUDGE, "NAME", "Name of the model that answers."),
    server: j.Server = j.Server(),
    served: str | None = o.option(
        o.JUDGE,
        "NAME",
        "Name that the server gives the model: only its answers count, and the others are asked for again.",
    ),
    instructions: Path | None = o.input_file("Text that the model is told first, in place of the default.", o.JUDGE),
    no_citations: bool = o.flag(o.JUDGE, "--no-citations", "Do not ask which passages an answer rests on."),
    no_abstention: bool = o.flag(o.JUDGE, "--no-abstention", "Do not let the model decline to answer."),
    judge_model: str | None = o.option(
        o.JUDGE, "NAME", "Judge that grades answers from 1 to 5 and checks their claims."
    ),
    judge_base_url: str | None = o.option(
        o.JUDGE, "URL", "Address of the judge's server (default: that of the model)."
    ),
    judge_api_key_env: str | None = o.option(
        o.JUDGE, "NAME", "Environment variable that holds the judge's key (default: that of the model)."
    ),
    rubric: Path | None = o.input_file("Rubric of the judge (TOML).", o.JUDGE),
    score: list[str] | None = o.option(
        o.MEASURES,
        "NAME",
        "Score: choice, exact_match, f1, judge, judged_right, claims, cited or abstained (default: all that the "
        "input allows). Repeat for more.",
    ),
    depths: str = o.option(
        o.MEASURES, "K,K", "Passages of each list to show, as in 10,100.", "--depths", "-k", default="10"
    ),
    control: list[str] | None = o.option(
        o.MEASURES,
        "NAME",
        "Control: closed-book (no passages), random (K random passages) or ideal (all relevant passages and "
        "nothing else). Default: all three; ideal needs --qrels. Repeat for more.",
    ),
    order: list[str] | None = o.option(
        o.MEASURES,
        "NAME",
        "Further order of the passages: worst-first, shuffled or middle (the best relevant passage in the middle). "
        "Repeat for more.",
    ),
    junk: str | None = o.option(
        o.MEASURES, "N,N", "Numbers of hard negatives to add to the relevant passages, as in 0,2,5,10,20."
    ),
    scale: o.ScaleOption = None,
    intervals: o.Intervals = o.Intervals(),
    dry_run: bool = o.flag(o.BUDGET, "--dry-run", "Count prompts and estimate tokens; send nothing."),
    asking: j.Asking = j.Asking(),
    store: j.OptionalStoreOption = None,
    scores: Path | None = o.option(
        o.OUTPUT,
        OF_TABLE,
        "Table of query_id, run, k and the first score to write, for `validate` and `sweep` (.csv, .jsonl or "
        ".parquet).",
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

    The key is read from OPENAI_API_KEY, or from the variable of --api-key-env.
    """
    chosen_format(format, output, TABLE_FORMATS)
    bootstrap = intervals.bootstrap()
    if given is not None:
        from rag_selectivity.answers.given import answers_given

        _refuse_beside_given(corpus=corpus, queries=queries, references=references, model=model, store=store)
        result = answers_given(
            given,
            column=score_column,
            ends=score_range_of(score_range) or (0.0, 1.0),
            correct_from=correct_from,
            run=dict(named_files(run)) if run else None,
            baseline=baseline,
            bootstrap=bootstrap,
        )
        show(result, format, output)
        return
    if not run or corpus is None or queries is None or references is None or model is None or store is None:
        raise InputError(
            "say what to ask: give --run, --corpus, --queries, --references, --model and --store; or --given FILE with "
            "scores that exist"
        )
    from rag_selectivity.answers.prompt import INSTRUCTIONS
    from rag_selectivity.answers.scoring import ANSWER_RUBRIC
    from rag_selectivity.grading.rubric import Rubric

    asked = server.judge(model, key=not dry_run)
    judge = None
    if judge_model is not None:
        address, key = judge_base_url or server.base_url, judge_api_key_env or server.api_key_env
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
            controls=control,
            orders=order or (),
            junk=whole_numbers(junk, "--junk") or (),
            scores=score,
            judge=judge,
            rubric=ANSWER_RUBRIC if rubric is None else Rubric.read(rubric),
            instructions=INSTRUCTIONS if instructions is None else _text_of(instructions),
            cite=not no_citations,
            abstain=not no_abstention,
            served=served,
            baseline=baseline,
            **asking.options(),
            bootstrap=bootstrap,
            seed=intervals.seed,
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
