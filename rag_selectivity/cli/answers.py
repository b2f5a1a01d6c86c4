"""`rag-selectivity answers`."""

from dataclasses import dataclass, replace
from pathlib import Path

import rag_selectivity as rs
from rag_selectivity.cli import judging as j
from rag_selectivity.cli import options as o
from rag_selectivity.cli.output import note, put_rows
from rag_selectivity.cli.settings import SETTINGS, refuse_typed
from rag_selectivity.errors import InputError
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.wording import enumeration


@dataclass(frozen=True)
class Answering:
    """What is asked for seldom.

    [judge]
    -------
    score_range
        Lowest and highest possible score of --given, as in 1,5.
    correct_from
        Score of --given from which an answer counts as right.
    served
        Name that the server gives the model: only its answers count.
    instructions
        File with what the model is told first.
    citations
        Ask which passages an answer rests on.
    abstention
        Let the model decline to answer.
    judge_base_url
        Address of the judge's server (default: that of the model).
    judge_api_key_env
        Environment variable that holds the judge's key (default: the model's).
    rubric
        Rubric of the judge (TOML).
    controls
        Controls: closed-book, random and ideal, which needs labels (default: all three).
    orders
        Further orders of the passages: worst-first, shuffled or middle.
    junk
        Numbers of hard negatives to add to the relevant passages, as in [0, 2, 5].

    [intervals]
    -----------
    resamples
        Bootstrap resamples.
    """

    score_range: list[float] | None = None
    correct_from: float | None = None
    served: str | None = None
    instructions: Path | None = None
    citations: bool = True
    abstention: bool = True
    judge_base_url: str | None = None
    judge_api_key_env: str | None = None
    rubric: Path | None = None
    controls: o.Names = None
    orders: o.Names = None
    junk: list[int] | None = None
    resamples: int = 5000


def answers(
    files: o.RunsOrSettings = None,
    *,
    corpus: Path | None = None,
    queries: Path | None = None,
    references: Path | None = None,
    qrels: Path | None = None,
    given: Path | None = None,
    score_column: str | None = None,
    more: Answering = Answering(),
    baseline: str | None = None,
    model: str | None = None,
    server: j.Server = j.Server(),
    judge_model: str | None = None,
    score: o.Names = None,
    depths: o.Depths = None,
    scale: str | None = None,
    drawing: o.Drawing = o.Drawing(),
    dry_run: bool = False,
    budget: Budget = Budget(),
    limits: Limits = Limits(),
    store: Path | None = None,
    scores: o.Table = None,
    answer_table: o.Table = None,
    printer: o.Output = o.Output(),
) -> None:
    """Have an LLM answer from what was retrieved, and score its answers.

    The LLM gets exactly the passages of each list, and as controls none, random ones, and the relevant ones alone. The
    store keeps every answer. If the command stops, run it again to continue.

    The key is read from OPENAI_API_KEY, or from the variable of judge.api_key_env.

    Arguments
    ---------
    files : FILE
        Runs: FILE or NAME=FILE (default: runs of selectivity.toml).

    Data
    ----
    references : FILE
        Right answers: a table of query_id and reference, for multiple choice with a list of choices.
    qrels : FILE
        Labels, for ideal sets, junk, the order `middle` and citations.
    given : FILE
        Scores that exist, in place of a model: a table of query_id, run, k and score. The runs closed-book, random and
        ideal are controls.

    Judge
    -----
    model : NAME
        Name of the model that answers.
    judge_model : NAME
        Judge that grades answers from 1 to 5 and checks their claims.

    Measures
    --------
    score : NAME
        Score: choice, exact_match, f1, judge, judged_right, claims, cited or abstained (default: all that the input
        allows). Repeat for more.
    depths : K,K, -k
        Passages of each list to show, as in 10,100 (default: 10).

    Budget
    ------
    dry_run
        Count prompts and estimate tokens; send nothing.

    Output
    ------
    store : STORE
        Label store that keeps the answers; created if it does not exist.
    scores : FILE
        File for query_id, run, k and the first score, which `validate` reads (.csv, .jsonl or .parquet).
    answer_table : FILE, --answers
        File for all answers with their scores (.jsonl, .csv or .parquet).

    Usual options
    -------------
    files corpus queries references qrels model judge_model depths store dry_run output

    Examples
    --------
    $ rag-selectivity answers bm25.trec dense.trec --corpus corpus.jsonl --queries queries.jsonl \
        --references ragas.jsonl --qrels grades.trec --scale utility --depths 3,10 --store answers.db \
        --model gpt-5-mini --scores answer-scores.csv
    $ rag-selectivity answers bm25.trec dense.trec --given answer-scores.csv
    """
    bootstrap = drawing.bootstrap(more.resamples)
    if given is not None:
        from rag_selectivity.answers.given import answers_given
        from rag_selectivity.tables.cells import ends_of

        needless = ("corpus", "queries", "references", "model", "store")
        refuse_typed(needless, "--given holds scores that exist, and no model is asked")
        found = answers_given(
            given,
            column=score_column,
            ends=ends_of(more.score_range or (0.0, 1.0), "judge.score_range"),
            correct_from=more.correct_from,
            run=files,
            baseline=baseline,
            bootstrap=bootstrap,
        )
        printer.show(found)
        return
    texts = {"RUN": files, "--corpus": corpus, "--queries": queries, "--references": references}
    lacking = [name for name, value in {**texts, "--model": model, "--store": store}.items() if value is None]
    if lacking or model is None or store is None:
        raise InputError(f"give {enumeration(lacking)} too; or --given FILE with scores that exist")
    from rag_selectivity.answers.prompt import INSTRUCTIONS
    from rag_selectivity.answers.scoring import ANSWER_RUBRIC
    from rag_selectivity.grading.rubric import Rubric

    answering, judge = server.judge(model, key=not dry_run), None
    if judge_model is not None:
        address, key = more.judge_base_url or server.base_url, more.judge_api_key_env or server.api_key_env
        of_judge = replace(server, base_url=address, api_key_env=key, temperature=None)
        judge = of_judge.judge(judge_model, key=not dry_run)
    with j.resumable():
        result = rs.measure_answers(
            files,
            corpus=corpus,
            queries=queries,
            references=references,
            model=answering,
            store=store,
            depths=depths or [10],
            qrels=qrels,
            scale=scale,
            controls=more.controls,
            orders=more.orders or (),
            junk=more.junk or (),
            scores=score,
            judge=judge,
            rubric=ANSWER_RUBRIC if more.rubric is None else Rubric.read(more.rubric),
            instructions=INSTRUCTIONS if more.instructions is None else _text_of(more.instructions),
            cite=more.citations,
            abstain=more.abstention,
            served=more.served,
            baseline=baseline,
            budget=budget,
            limits=limits,
            progress=not SETTINGS.quiet,
            bootstrap=bootstrap,
            seed=drawing.seed,
            dry_run=dry_run,
        )
    if (spent := result.spent).stopped is not None or spent.failed:
        result = replace(result, resume=j.resume_command())
    if scores is not None and not dry_run and (rows := result.score_rows()):
        put_rows(rows, scores)
        note(f"wrote {scores}: {len(rows)} scores ({next(iter(result.kinds))})")
    if answer_table is not None and result.answers and not dry_run:
        put_rows([row.to_row() for row in result.answers], answer_table)
        note(f"wrote {answer_table}: {len(result.answers)} answers")
    printer.show(result)
    j.exit_unless_complete(spent, spent.failed, is_file=printer.is_file)


def _text_of(path: Path) -> str:
    from rag_selectivity.tables.files import text_lines

    if not (text := "\n".join(line for _, line in text_lines(path)).strip()):
        raise InputError(f"{path}: the instructions are empty")
    return text
