"""`rag-selectivity claims`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from rag_selectivity.cli import judging as j
from rag_selectivity.cli import options as o
from rag_selectivity.cli.files import Writes


@dataclass(frozen=True)
class Checking:
    """What is asked for seldom.

    [intervals]
    -----------
    resamples
        Bootstrap resamples.
    """

    resamples: int = 5000


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
    samples: Path | None = None,
    baseline: str | None = None,
    server: j.Server = j.Server(),
    check: o.Names = None,
    k: int | None = None,
    depths: o.Depths = None,
    more: Checking = Checking(),
    drawing: o.Drawing = o.Drawing(),
    asking: j.Asking = j.Asking(),
    gating: o.Gating = o.Gating(),
    printer: ClaimOutput = ClaimOutput(),
) -> None:
    """Check which claims of reference answers the passages support.

    An LLM reads the passages. The result is context precision, recall, entity recall and relevance at every depth, and
    with several runs their differences.

    The key is read from OPENAI_API_KEY, or from the variable of judge.api_key_env.

    Arguments
    ---------
    files : FILE
        Runs: FILE or NAME=FILE (default: runs of selectivity.toml).

    Data
    ----
    references : FILE
        Right answers: a table of query_id and reference (or answer, or text).
    samples : FILE
        Samples, in place of a run: JSONL or Parquet of user_input, retrieved_contexts, reference.

    Measures
    --------
    check : NAME
        Check: precision, recall, entities or relevance (default: all four). Repeat for more.
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

    Usual options
    -------------
    files corpus queries references samples model check depths k store fail_if output

    Examples
    --------
    $ rag-selectivity claims bm25.trec dense.trec --corpus corpus.jsonl --queries queries.jsonl \
        --references ragas.jsonl -k 3 --store claims.db --model gpt-5-mini --output claims.html
    $ rag-selectivity claims --samples ragas.jsonl --store claims.db --model gpt-5-mini --check recall \
        --format json
    """
    from rag_selectivity.cli.gates import Gates
    from rag_selectivity.grading.claims import check_claims
    from rag_selectivity.results.claims import SAMPLES, ClaimReport

    gates = Gates.parse(**vars(gating), of_claims=True)
    bootstrap = drawing.bootstrap(more.resamples)
    judge = server.judge(model, key=True)
    if isinstance(gates.against, ClaimReport):
        gates.against.refuse_other(judge.name, list(files or [SAMPLES]))
    with j.resumable():
        result = check_claims(
            samples=samples,
            run=files,
            corpus=corpus,
            queries=queries,
            references=references,
            k=k,
            baseline=baseline,
            store=store,
            judge=judge,
            checks=check,
            depths=depths,
            measures=gates.measures,
            **asking.options(),
            bootstrap=bootstrap,
        )
    result = result if result.stopped is None else replace(result, resume=j.resume_command())
    printer.show(result)
    j.exit_unless_complete(result.stopped_by, result.failed)
    gates.check(result)
