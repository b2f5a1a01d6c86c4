"""`rag-selectivity claims`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from rag_selectivity.cli import judging as j
from rag_selectivity.cli import options as o
from rag_selectivity.cli.files import Writes
from rag_selectivity.cli.inputs import one_or_named
from rag_selectivity.cli.output import note
from rag_selectivity.cli.settings import SETTINGS, refuse_typed
from rag_selectivity.grading.limits import Budget, Limits


@dataclass(frozen=True)
class ClaimOutput(o.Output):
    """The result of a check, which can be a page.

    Output
    ------
    format : FORMAT
        Format: table (default), json, csv or markdown.
    output : FILE, -o
        File to write: .html, .txt, .json, .csv or .md. Default: standard output.
    """

    output: Annotated[Path | None, Writes((".html", ".txt", ".json", ".csv", ".md"))] = None


def claims(
    files: o.RunsOrSettings = None,
    *,
    store: Path,
    model: str,
    corpus: Path | None = None,
    queries: Path | None = None,
    references: Path | None = None,
    responses: o.Names = None,
    samples: Path | None = None,
    baseline: str | None = None,
    human: Path | None = None,
    server: j.Server = j.Server(),
    batch: bool = False,
    check: o.Names = None,
    k: int | None = None,
    depths: o.Depths = None,
    resamples: int = 5000,
    whole_context: list[int] | None = None,
    drawing: o.Drawing = o.Drawing(),
    budget: Budget = Budget(),
    limits: Limits = Limits(),
    gating: o.Gating = o.Gating(),
    sheet: o.Table = None,
    sheet_pairs: int = 200,
    printer: ClaimOutput = ClaimOutput(),
) -> None:
    """Check which claims of reference answers the passages support.

    The result is context precision, recall, entity recall and relevance at every depth, with responses groundedness
    too, and with several runs the differences.

    The key is read from OPENAI_API_KEY, or from the variable of judge.api_key_env.

    Arguments
    ---------
    files : FILE
        Runs: FILE or NAME=FILE (default: runs of selectivity.toml).

    Data
    ----
    references : FILE
        Right answers: a table of query_id and reference (or answer, or text).
    responses : FILE
        What was answered: a table of query_id and response. FILE, or NAME=FILE for each run.
    samples : FILE
        Samples, in place of a run: JSONL or Parquet of user_input, retrieved_contexts, reference.

    Tests
    -----
    human : FILE
        Verdicts by people, as --sheet draws them, to see how far the judge agrees.

    Measures
    --------
    batch
        Send all passages of a sample in one call: cheaper, less reliable.
    check : NAME
        Check: precision, recall, entities, relevance or groundedness (default: the first four; with --responses all).
        Repeat for more.
    depths : K,K
        Depths, as in 1,3,5 (default: 1,2,3,5,10,20).

    Budget
    ------
    k : K, --k, -k
        Passages of each list to check (default: the deepest of --depths, else 10; of samples all).

    Output
    ------
    store : STORE
        Label store that keeps the answers; created if it does not exist.
    sheet : FILE
        Sheet to write for people: random claims and passages (.csv, .jsonl or .parquet).

    [intervals]
    -----------
    resamples
        Bootstrap resamples.

    [judge]
    -------
    whole_context
        Depths at which the judge reads all passages together as well.
    sheet_pairs
        Claims with a passage on the sheet for people.

    Usual options
    -------------
    files corpus queries references samples model check depths k store output

    Examples
    --------
    $ rag-selectivity claims bm25.trec dense.trec --corpus corpus.jsonl --queries queries.jsonl \
        --references ragas.jsonl -k 3 --store claims.db --model gpt-5-mini --output claims.html
    $ rag-selectivity claims --samples ragas.jsonl --store claims.db --model gpt-5-mini --check recall \
        --format json
    """
    from rag_selectivity.cli.gates import Gates, end_with
    from rag_selectivity.grading.claim_verdicts import verdict_sheet
    from rag_selectivity.grading.claims import check_claims
    from rag_selectivity.results.claims import SAMPLES, ClaimReport
    from rag_selectivity.tables.writing import write_rows

    gates = Gates.parse(gating, of_claims=True)
    judge = server.judge(model, key=True)
    if samples is not None:
        refuse_typed(("files", "corpus", "queries", "references", "responses"), "--samples hold their own texts")
        files = corpus = queries = references = responses = None
    if isinstance(gates.against, ClaimReport):
        gates.against.refuse_other(model, list(files or [SAMPLES]))
    with j.resumable():
        result = check_claims(
            samples=samples,
            run=files,
            corpus=corpus,
            queries=queries,
            references=references,
            responses=one_or_named(responses, files or {}, "--responses"),
            k=k,
            baseline=baseline,
            store=store,
            judge=judge,
            checks=check,
            depths=depths,
            measures=gates.measures,
            whole_context=tuple(whole_context or ()),
            batch=batch,
            human=human,
            budget=budget,
            limits=limits,
            progress=not SETTINGS.quiet,
            bootstrap=drawing.bootstrap(resamples),
        )
    result = result if result.stopped is None else replace(result, resume=j.resume_command())
    if sheet is not None and result.stopped is None:
        rows = verdict_sheet(result, sheet_pairs, seed=drawing.seed)
        write_rows(sheet, rows)
        note(f"wrote {sheet}: {len(rows)} claims with a passage; fill in the column verdict, and give it as --human")
    printer.show(result)
    j.exit_unless_complete(result, result.failed, is_file=printer.is_file)
    end_with(gates.failed(result))
