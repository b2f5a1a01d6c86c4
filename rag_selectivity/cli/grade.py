"""`rag-selectivity grade`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_selectivity.cli import judging as j
from rag_selectivity.cli import options as o
from rag_selectivity.cli.retrieved import Spans
from rag_selectivity.cli.settings import SETTINGS, refuse_typed
from rag_selectivity.errors import InputError
from rag_selectivity.grading.limits import Budget, Limits


def grade(
    *,
    store: Path,
    model: str,
    queries: Path | None = None,
    corpus: Path | None = None,
    pool: o.Names = None,
    pool_depth: int | None = None,
    tail: str | None = None,
    controls: int = 0,
    trace: Path | None = None,
    spans: Spans = Spans(),
    server: j.Server = j.Server(),
    rubric: Path | None = None,
    samples: int = 1,
    batch: int = 1,
    dry_run: bool = False,
    show_bits: float | None = None,
    retry_failed: bool = False,
    budget: Budget = Budget(),
    limits: Limits = Limits(),
    extra: o.Names = None,
    order: str = "rank",
    seed: int = 7,
    printer: o.TextOrJson = o.TextOrJson(),
) -> None:
    """Have an LLM grade (query, passage) pairs from 1 to 5.

    The store keeps every grade. If the run stops, the same command continues it.

    The key is read from OPENAI_API_KEY, or from the variable of judge.api_key_env.

    Data
    ----
    pool : FILE
        Run whose passages to grade. Repeat for more.
    tail : LAST:COUNT
        Also grade random passages from the ranks below --pool-depth; 200:10 is ten a query, down to rank 200.
    trace : FILE
        Trace (a monitor's, or spans in OTLP JSON) in place of --queries and --pool, with texts or a --corpus.

    Judge
    -----
    pool_depth : K
        Passages to grade at the top of each list (default: all).
    controls : COUNT
        Also grade random passages of the corpus for each query, outside its pool.
    samples : COUNT
        Grades of each pair; their median counts.
    batch : COUNT
        Most passages of one query in a call.

    Number of queries
    -----------------
    show_bits : BITS
        Bits over random to be shown: prints how many --controls, or how many queries, they need.

    Budget
    ------
    dry_run
        Send no request; print the pairs, tokens and cost to expect.
    retry_failed
        Grade again what failed in an earlier run.

    Output
    ------
    store : STORE
        Label store that keeps the grades; created if it does not exist.

    [judge]
    -------
    extra
        Further fields to ask for: relevant_span, misleading or both.
    order
        What to grade first: rank (the top of all lists) or query (query by query).

    [intervals]
    -----------
    seed
        Seed of everything drawn at random.

    Usual options
    -------------
    queries corpus pool pool_depth tail controls trace model store max_calls dry_run

    Examples
    --------
    $ rag-selectivity grade --queries queries.jsonl --corpus corpus.jsonl --pool bm25.trec --pool-depth 3 --tail 5:2 \
        --controls 3 --store new.db --model gpt-5-mini --dry-run
    $ rag-selectivity grade --queries queries.jsonl --corpus corpus.jsonl --pool bm25.trec --pool dense.trec \
        --pool-depth 5 --store new.db --model gpt-5-mini --max-calls 500 --concurrency 4
    """
    from rag_selectivity.grading.grade import grade as grade_pool
    from rag_selectivity.grading.rubric import DEFAULT_RUBRIC

    what: Any = queries, corpus, pool
    if trace is not None:
        refuse_typed(("queries", "pool"), "--trace holds its own questions and candidates")
        from rag_selectivity.live.trace import Trace

        what = Trace.read(trace, **vars(spans)).to_grade(corpus)
    elif not all(what):
        raise InputError("say what to grade: give --queries, --corpus and --pool, or --trace")
    judge = server.judge(model, key=not dry_run)
    with j.resumable():
        result = grade_pool(
            *what,
            store=store,
            judge=judge,
            rubric=rubric if rubric is not None else DEFAULT_RUBRIC,
            extras=extra or (),
            pool_depth=pool_depth,
            tail=tail,
            controls=controls,
            samples=samples,
            batch=batch,
            order=order,
            budget=budget,
            limits=limits,
            progress=not SETTINGS.quiet,
            retry_failed=retry_failed,
            dry_run=dry_run,
            show_bits=show_bits,
            seed=seed,
        )
    if not dry_run and (result.stopped is not None or result.left):
        result = replace(result, resume=j.resume_command())
    printer.show(result)
    if not dry_run:
        j.exit_unless_complete(result, result.failed + result.left + result.earlier_failures, is_file=printer.is_file)
