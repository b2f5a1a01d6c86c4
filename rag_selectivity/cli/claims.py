"""`rag-selectivity claims`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from rag_selectivity.cli import judging as j
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import named_files, one_or_named, runs_given, whole_numbers
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, note, put, show
from rag_selectivity.cli.writable import OF_TABLE

EXAMPLES = (
    "rag-selectivity claims bm25.trec dense.trec --corpus corpus.jsonl --queries queries.jsonl "
    "--references ragas.jsonl -k 3 --store claims.db --model gpt-5-mini --output claims.html",
    "rag-selectivity claims --samples ragas.jsonl --store claims.db --model gpt-5-mini --check recall --batch "
    "--format json",
)
#: What `--help` shows.
USUAL = "files corpus queries references responses samples model check depths k store fail_if output"
_PAGES = (".html", ".htm")


@dataclass(frozen=True)
class Checking:
    """What is asked for seldom."""

    whole_context: Annotated[
        list[int], o.setting("judge", "Depths at which the judge reads all passages together as well.")
    ] = field(default_factory=list)
    resamples: Annotated[int, o.setting("intervals", "Bootstrap resamples.")] = 5000
    sheet_pairs: Annotated[int, o.setting("judge", "Claims with a passage on the sheet for people.")] = 200


def claims(
    store: j.StoreOption,
    model: j.ModelOption,
    files: o.RunsArgument = None,
    corpus: o.PassageTextsOption = None,
    queries: o.QueryTextsOption = None,
    references: Annotated[
        Path | None, o.input_file("Right answers: a table of query_id and reference (or answer, or text).")
    ] = None,
    responses: Annotated[
        list[str] | None,
        o.input_file("What was answered: a table of query_id and response. FILE, or NAME=FILE for each run."),
    ] = None,
    samples: Annotated[
        Path | None,
        o.input_file("Samples, in place of a run: JSONL or Parquet of user_input, retrieved_contexts, reference."),
    ] = None,
    baseline: o.BaselineOption = None,
    human: Annotated[
        Path | None,
        o.input_file("Verdicts by people, as --sheet draws them, to see how far the judge agrees.", o.TESTS),
    ] = None,
    server: j.Server = j.Server(),
    batch: Annotated[
        bool, o.flag(o.MEASURES, "--batch", "Send all passages of a sample in one call: cheaper, less reliable.")
    ] = False,
    check: Annotated[
        list[str] | None,
        o.option(
            o.MEASURES,
            "NAME",
            "Check: precision, recall, entities, relevance or groundedness (default: the first four; with --responses "
            "all). Repeat for more.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        o.option(
            o.BUDGET,
            "K",
            "Passages of each list to check (default: the deepest of --depths, else 10; of samples all).",
            "--k",
            "-k",
        ),
    ] = None,
    depths: Annotated[str | None, o.option(o.MEASURES, "K,K", "Depths, as in 1,3,5 (default: 1,2,3,5,10,20).")] = None,
    more: Checking = Checking(),
    drawing: o.Drawing = o.Drawing(),
    asking: j.Asking = j.Asking(),
    gating: o.Gating = o.Gating(),
    sheet: Annotated[
        Path | None,
        o.option(
            o.OUTPUT, OF_TABLE, "Sheet to write for people: random claims and passages (.csv, .jsonl or .parquet)."
        ),
    ] = None,
    format: o.TableFormatOption = None,
    output: Annotated[Path | None, o.output_file(*_PAGES, ".txt", ".json", ".csv", ".md")] = None,
) -> None:
    """Check which claims of reference answers the passages support.

    An LLM reads the passages. The result is context precision, recall, entity recall and relevance at every depth, and
    with several runs their differences. With responses it also is groundedness: which claims of the responses the
    passages support.

    The key is read from OPENAI_API_KEY, or from the variable of judge.api_key_env.
    """
    from rag_selectivity.cli.gates import Gates
    from rag_selectivity.grading.claim_verdicts import verdict_sheet
    from rag_selectivity.grading.claims import check_claims
    from rag_selectivity.results.claims import SAMPLES, ClaimReport
    from rag_selectivity.tables.writing import write_rows

    is_page = format is None and output is not None and output.suffix.lower() in _PAGES
    if not is_page:
        chosen_format(format, output, TABLE_FORMATS)
    run = runs_given(files)
    runs = named_files(run) if run else None
    gates = Gates.parse(**vars(gating), of_claims=True)
    bootstrap = drawing.bootstrap(more.resamples)
    judge = server.judge(model, key=True)
    if isinstance(gates.against, ClaimReport):
        gates.against.refuse_other(judge.name, list(runs or [SAMPLES]))
    with j.resumable():
        result = check_claims(
            samples=samples,
            run=runs,
            corpus=corpus,
            queries=queries,
            references=references,
            responses=one_or_named(responses, run or (), "--responses"),
            k=k,
            baseline=baseline,
            store=store,
            judge=judge,
            checks=check,
            depths=whole_numbers(depths, "--depths"),
            measures=gates.measures,
            whole_context=tuple(more.whole_context),
            batch=batch,
            human=human,
            **asking.options(),
            bootstrap=bootstrap,
        )
    result = result if result.stopped is None else replace(result, resume=j.resume_command())
    if sheet is not None and result.stopped is None:
        rows = verdict_sheet(result, more.sheet_pairs, seed=drawing.seed)
        write_rows(sheet, rows)
        note(f"wrote {sheet}: {len(rows)} claims with a passage; fill in the column verdict, and give it as --human")
    if is_page:
        put(result.to_html().rstrip("\n"), output, is_data=True)
        note(f"{output}: open it in a browser")
    else:
        show(result, format, output)
    j.exit_unless_complete(result.stopped_by, result.failed)
    gates.check(result)
