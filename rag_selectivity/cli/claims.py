"""`rag-selectivity claims`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from rag_selectivity.cli import judging as j
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import named_files, runs_given, whole_numbers
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, note, put, show

EXAMPLES = (
    "rag-selectivity claims bm25.trec dense.trec --corpus corpus.jsonl --queries queries.jsonl "
    "--references ragas.jsonl -k 3 --store claims.db --model gpt-5-mini --output claims.html",
    "rag-selectivity claims --samples ragas.jsonl --store claims.db --model gpt-5-mini --check recall --format json",
)
#: What `--help` shows.
USUAL = "files corpus queries references samples model check depths k store fail_if output"
_PAGES = (".html", ".htm")


@dataclass(frozen=True)
class Checking:
    """What is asked for seldom."""

    resamples: Annotated[int, o.setting("intervals", "Bootstrap resamples.")] = 5000


def claims(
    store: j.StoreOption,
    model: j.ModelOption,
    files: o.RunsArgument = None,
    corpus: o.PassageTextsOption = None,
    queries: o.QueryTextsOption = None,
    references: Annotated[
        Path | None, o.input_file("Right answers: a table of query_id and reference (or answer, or text).")
    ] = None,
    samples: Annotated[
        Path | None,
        o.input_file("Samples, in place of a run: JSONL or Parquet of user_input, retrieved_contexts, reference."),
    ] = None,
    baseline: o.BaselineOption = None,
    server: j.Server = j.Server(),
    check: Annotated[
        list[str] | None,
        o.option(
            o.MEASURES,
            "NAME",
            "Check: precision, recall, entities or relevance (default: all four). Repeat for more.",
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
    format: o.TableFormatOption = None,
    output: Annotated[Path | None, o.output_file(*_PAGES, ".txt", ".json", ".csv", ".md")] = None,
) -> None:
    """Check which claims of reference answers the passages support.

    An LLM reads the passages. The result is context precision, recall, entity recall and relevance at every depth, and
    with several runs their differences.

    The key is read from OPENAI_API_KEY, or from the variable of judge.api_key_env.
    """
    from rag_selectivity.cli.gates import Gates
    from rag_selectivity.grading.claims import check_claims
    from rag_selectivity.results.claims import SAMPLES, ClaimReport

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
            k=k,
            baseline=baseline,
            store=store,
            judge=judge,
            checks=check,
            depths=whole_numbers(depths, "--depths"),
            measures=gates.measures,
            **asking.options(),
            bootstrap=bootstrap,
        )
    result = result if result.stopped is None else replace(result, resume=j.resume_command())
    if is_page:
        put(result.to_html().rstrip("\n"), output, is_data=True)
        note(f"{output}: open it in a browser")
    else:
        show(result, format, output)
    j.exit_unless_complete(result.stopped_by, result.failed)
    gates.check(result)
