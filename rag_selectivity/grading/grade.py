"""`grade`: a pool of (query, passage) pairs in, grades in the store out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.judge import PASSING, GradingError, Judge, judge_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.prompts import EXTRAS, PROMPT_VERSION, GradingPrompt
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.runner import Runner
from rag_selectivity.grading.session import interruptible, progress_line, run_blocking
from rag_selectivity.grading.sources import load_pool
from rag_selectivity.grading.store import Settings, Store
from rag_selectivity.grading.work import GradingWork
from rag_selectivity.results.grading import Grading
from rag_selectivity.results.usage import Usage

ORDERS = ("rank", "query")
#: The kinds of failures that the store may hold.
FAILURES = (*PASSING, "rejected", "too_long", "refusal", "content_filter", "cut", "off_schema")


def grade(
    queries: Any,
    corpus: Any,
    pool: Any,
    *,
    store: str | Path,
    judge: Any,
    rubric: Rubric | str | Path = DEFAULT_RUBRIC,
    extras: Sequence[str] = (),
    pool_depth: int | None = None,
    samples: int = 1,
    batch: int = 1,
    order: str = "rank",
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    gate: Gate | None = None,
    retry_failed: bool | Sequence[str] = False,
    dry_run: bool = False,
    seed: int = 7,
    progress: bool = True,
) -> Grading:
    """Have an LLM grade every (query, passage) pair of a pool from 1 to 5, and keep the grades.

    Parameters
    ----------
    queries, corpus : {id: text}, records, DataFrame or path
        Texts by id. Files are BEIR's JSONL, TSV without a header, CSV or Parquet. A title is put before its text.
    pool : run, or list of runs
        Passages to grade for each query, such as the runs of all systems: dicts, Runs, frames or files.
    store : str or Path
        The label store, created if it does not exist. A pair whose label it holds is not graded again.
    judge : Judge or async function
        See `rag_selectivity.grading.judge`.
    rubric : Rubric or path
    extras : sequence of {"relevant_span", "misleading"}
        What the judge says about each passage besides its grade, in the same call.
    pool_depth : int, optional
        Ranks of each run to grade; default: all.
    samples : int
        Grades of each pair. The store keeps them all, and their median counts.
    batch : int
        Passages of one query in a call.
    order : {"rank", "query"}
        What to grade first. `rank` starts with the top ranks of all queries and systems, so that the grades of a
        stopped run can be used; `query` finishes one query after the other.
    limits, budget : Limits, Budget
    gate : Gate, optional
        Counts, limits and pays every request; give one gate to several runs that share a budget. Default: a new one
        of `limits` and `budget`, which a gate that is given replaces.
    retry_failed : bool or sequence of str
        Grade again the pairs that failed in an earlier run: all, or those of some kinds (`JudgeFailure.kind`).
    dry_run : bool
        Ask nothing; estimate pairs, tokens and cost.
    seed : int
        For the order of passages within a batch.
    progress : bool
        Show a progress bar on a terminal.

    Returns
    -------
    Grading

    Raises
    ------
    InputError
        If ids and texts do not fit together.
    GradingError
        If the judge cannot be used at all (a wrong key, an unknown model).
    """
    return run_blocking(
        lambda: agrade(
            queries,
            corpus,
            pool,
            store=store,
            judge=judge,
            rubric=rubric,
            extras=extras,
            pool_depth=pool_depth,
            samples=samples,
            batch=batch,
            order=order,
            limits=limits,
            budget=budget,
            gate=gate,
            retry_failed=retry_failed,
            dry_run=dry_run,
            seed=seed,
            progress=progress,
        )
    )


async def agrade(
    queries: Any,
    corpus: Any,
    pool: Any,
    *,
    store: str | Path,
    judge: Any,
    rubric: Rubric | str | Path = DEFAULT_RUBRIC,
    extras: Sequence[str] = (),
    pool_depth: int | None = None,
    samples: int = 1,
    batch: int = 1,
    order: str = "rank",
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    gate: Gate | None = None,
    retry_failed: bool | Sequence[str] = False,
    dry_run: bool = False,
    seed: int = 7,
    progress: bool = True,
) -> Grading:
    """`grade` for a running event loop."""
    _check(extras, samples, batch, order)
    retried = _kinds(retry_failed)
    gate = gate or Gate(limits, budget)
    asked = judge_of(judge)
    instructions = rubric if isinstance(rubric, Rubric) else Rubric.read(rubric)
    pools = pool if isinstance(pool, list) and not _is_rows(pool) else [pool]
    settings = settings_of(asked, instructions, extras, batch, seed)
    with Store(store) as labels:
        loaded = load_pool(labels, queries, corpus, pools, pool_depth)
        prompt = GradingPrompt(instructions, tuple(extras))
        work = GradingWork(labels, loaded, settings, prompt, samples=samples, batch=batch, order=order, seed=seed)
        before = work.find_gaps(retried)
        done = _Described(asked, labels.path, loaded.count(), before.cached, before.failed)
        if dry_run:
            usage = work.estimate(before.missing)
            return done.plan(before.missing, usage, work.calls(before.missing), gate)
        loaded.record_texts()
        watch, close = progress_line(before.missing, "grading", progress)
        runner = Runner(asked, gate, watch)
        try:
            with interruptible(runner):
                await work.finish(runner, gate.limits)
        finally:
            close()
        if runner.stop is not None and runner.stop.cause == "fatal":
            answered = runner.progress.answered
            stored = f", {answered} new grades are in {labels.path}" if answered else ""
            raise GradingError(f"{runner.stop.why}; nothing more was sent{stored}")
        return done.after(runner, work.missing(), work.flagged)


class _Described:
    """What a Grading says of every run, planned or made."""

    def __init__(self, judge: Judge, store: Path, pairs: int, cached: int, earlier_failures: int) -> None:
        self._common: dict[str, Any] = {
            "judge": judge.name,
            "store": store,
            "pairs": pairs,
            "cached": cached,
            "earlier_failures": earlier_failures,
        }

    def plan(self, missing: int, usage: Usage, calls: int, gate: Gate) -> Grading:
        cost = gate.budget.price(usage)
        return Grading(
            **self._common,
            left=missing,
            usage=usage,
            usage_from="estimate",
            requests=calls,
            cost=cost,
            cost_from=None if cost is None else "prices",
            dry_run=True,
        )

    def after(self, runner: Runner, missing: int, flagged: int) -> Grading:
        done, spending = runner.progress, runner.gate.spending
        return Grading(
            **self._common,
            graded=done.answered,
            failed=done.failed,
            left=missing,
            flagged=flagged,
            requests=spending.requests,
            usage=spending.usage,
            usage_from=spending.usage_from,
            cost=spending.cost,
            cost_from=spending.cost_from,
            served_models=tuple(sorted(done.served)),
            way=done.way,
            stopped=None if runner.stop is None else runner.stop.why,
            stopped_by=None if runner.stop is None else runner.stop.cause,
            errors=dict(done.errors),
            last_error=done.last_error,
            last_answer=done.last_answer,
        )


def settings_of(judge: Judge, rubric: Rubric, extras: Sequence[str] = (), batch: int = 1, seed: int = 7) -> Settings:
    """Everything that can change a grade except the texts: the store keeps a grade under it."""
    batched = {"batch": batch, "seed": seed} if batch > 1 else {}
    return Settings(
        kind="grade",
        model=judge.name,
        parameters={**judge.parameters, **batched, **({"extras": sorted(extras)} if extras else {})},
        rubric=rubric.name,
        rubric_version=rubric.version,
        prompt_version=PROMPT_VERSION,
    )


def _check(extras: Sequence[str], samples: int, batch: int, order: str) -> None:
    for name in extras:
        if name not in EXTRAS:
            raise InputError(f"extras are {' and '.join(EXTRAS)}, got {name!r}")
    for name, value, highest in (("samples", samples, 100), ("batch", batch, 100)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= highest:
            raise InputError(f"{name} must be a whole number from 1 to {highest}, got {value!r}")
    if order not in ORDERS:
        raise InputError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")


def _is_rows(pool: list[Any]) -> bool:
    return bool(pool) and isinstance(pool[0], (tuple, list))


def _kinds(retry_failed: bool | Sequence[str]) -> Sequence[str] | None:
    """The kinds of failures to try again; None for all."""
    if isinstance(retry_failed, bool):
        return None if retry_failed else ()
    if isinstance(retry_failed, str):
        raise InputError(f"retry_failed must be true, false or a list of kinds, got {retry_failed!r}")
    for kind in retry_failed:
        if kind not in FAILURES:
            raise InputError(f"there is no failure of the kind {kind!r}: the kinds are {', '.join(FAILURES)}")
    return tuple(retry_failed)
