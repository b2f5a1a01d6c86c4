"""`rag-selectivity grade`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from rag_selectivity.cli import judging as j
from rag_selectivity.cli import options as o
from rag_selectivity.cli.output import Format, chosen_format, put
from rag_selectivity.cli.retrieved import Spans
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity grade --queries queries.jsonl --corpus corpus.jsonl --pool bm25.trec --pool-depth 3 "
    "--tail 5:2 --controls 3 --store new.db --model gpt-5-mini --dry-run",
    "rag-selectivity grade --queries queries.jsonl --corpus corpus.jsonl --pool bm25.trec --pool dense.trec "
    "--pool-depth 5 --store new.db --model gpt-5-mini --max-calls 500 --concurrency 4",
)
#: What `--help` shows.
USUAL = "queries corpus pool pool_depth tail controls trace model store max_calls retry_failed dry_run"


@dataclass(frozen=True)
class Grading:
    """What is asked for seldom."""

    seed: Annotated[int, o.setting("intervals", "Seed of everything drawn at random.")] = 7


def grade(
    store: j.StoreOption,
    model: j.ModelOption,
    queries: o.QueryTextsOption = None,
    corpus: o.PassageTextsOption = None,
    pool: list[str] | None = o.input_file("Run whose passages to grade. Repeat for more."),
    pool_depth: int | None = o.option(o.JUDGE, "K", "Passages to grade at the top of each list (default: all)."),
    tail: str | None = o.option(
        o.INPUT,
        "LAST:COUNT",
        "Also grade random passages from the ranks below --pool-depth; 200:10 is ten a query, down to rank 200.",
    ),
    controls: int = o.option(
        o.JUDGE, "COUNT", "Also grade random passages of the corpus for each query, outside its pool.", default=0
    ),
    trace: Path | None = o.input_file(
        "Trace with texts (a monitor's, or spans in OTLP JSON), in place of --queries, --corpus and --pool."
    ),
    spans: Spans = Spans(),
    more: Grading = Grading(),
    server: j.Server = j.Server(),
    rubric: Path | None = o.input_file("Rubric of your own, in TOML.", o.JUDGE),
    dry_run: bool = o.flag(o.BUDGET, "--dry-run", "Send no request; print the pairs, tokens and cost to expect."),
    show_bits: o.ShowBitsOption = None,
    retry_failed: bool = o.flag(o.BUDGET, "--retry-failed", "Grade again what failed in an earlier run."),
    asking: j.Asking = j.Asking(),
    format: o.TextOrJsonOption = None,
    output: o.TextOrJsonOutputOption = None,
) -> None:
    """Have an LLM grade (query, passage) pairs from 1 to 5.

    The store keeps every grade. If the run stops, the same command continues it.

    The key is read from OPENAI_API_KEY, or from the variable of judge.api_key_env.
    """
    from rag_selectivity.grading.grade import grade as grade_pool
    from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
    from rag_selectivity.tables.writing import json_text

    chosen = chosen_format(format, output, (Format.table, Format.json))
    what = _texts_and_pools(queries, corpus, pool, trace, spans)
    judge = server.judge(model, key=not dry_run)
    with j.resumable():
        result = grade_pool(
            *what,
            store=store,
            judge=judge,
            rubric=rubric if rubric is not None else DEFAULT_RUBRIC,
            pool_depth=pool_depth,
            tail=tail,
            controls=controls,
            **asking.options(),
            retry_failed=retry_failed,
            dry_run=dry_run,
            show_bits=show_bits,
            seed=more.seed,
        )
    if not dry_run and (result.stopped is not None or result.left):
        result = replace(result, resume=j.resume_command())
    put(json_text(result.to_dict()) if chosen is Format.json else str(result), output)
    if not dry_run:
        j.exit_unless_complete(result.stopped_by, result.failed + result.left + result.earlier_failures)


def _texts_and_pools(
    queries: Path | None, corpus: Path | None, pool: list[str] | None, trace: Path | None, spans: Spans
) -> tuple[Any, Any, Any]:
    """Texts of queries and passages, and the pools to grade, from files or a trace."""
    if trace is not None:
        if queries or corpus or pool:
            raise InputError("--trace holds its own texts and candidates: leave --queries, --corpus and --pool out")
        from rag_selectivity.live.trace import Trace

        return Trace.read(trace, **vars(spans)).to_grade()
    if queries is None or corpus is None or not pool:
        raise InputError("say what to grade: give --queries, --corpus and --pool, or --trace")
    return queries, corpus, list(pool)
