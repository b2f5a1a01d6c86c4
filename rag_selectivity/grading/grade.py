"""`grade`: has a judge grade the (query, passage) pairs of a pool, and keeps the grades in a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.judge import PASSING, Judge, judge_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.prompts import EXTRAS, PROMPT_VERSION, GradingPrompt
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.runner import Runner
from rag_selectivity.grading.session import asking, blocking, raise_if_fatal, told
from rag_selectivity.grading.sources import Loaded, load_pool
from rag_selectivity.grading.store import Settings, Store
from rag_selectivity.grading.store.pool import CONTROL, TAIL, TOP
from rag_selectivity.grading.work import GradingWork
from rag_selectivity.results.grading import Grading, PartCost
from rag_selectivity.results.usage import Usage
from rag_selectivity.statistics.control_power import ControlPower

ORDERS = ("rank", "query")
#: The parts of a run, as `Grading.part_costs` names them.
PARTS = {TOP: "pool", TAIL: "tail", CONTROL: "controls"}
#: The kinds of failures that the store may hold.
FAILURES = (*PASSING, "rejected", "too_long", "refusal", "content_filter", "cut", "off_schema")


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
    tail: str | None = None,
    controls: int = 0,
    samples: int = 1,
    batch: int = 1,
    order: str = "rank",
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    gate: Gate | None = None,
    retry_failed: bool | Sequence[str] = False,
    dry_run: bool = False,
    show_bits: float | None = None,
    show_k: int = 10,
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
        Further fields that the judge fills for each passage, in the same call.
    pool_depth : int, optional
        Ranks of each run to grade; default: all.
    tail : str, optional
        Passages to draw at random from the ranks below, as `LAST:COUNT`: "200:10" draws ten passages of each query from
        the ranks pool_depth + 1 to 200. Several runs are fused (`Run.fused`): it then draws from the fused order down
        to rank 200, without what any run has in its top ranks. It needs a pool_depth. A query with fewer such passages
        gives what it has; `Grading.tail` counts such queries.
    controls : int
        Passages of the corpus to draw at random for each query, from those outside its pool and its tail. Their
        grades show how often the judge calls a random passage relevant.
    samples : int
        Grades of each pair, from 1 to 100. The store keeps all of them; the grade of the pair is their median.
    batch : int
        The most passages of one query in a call, from 1 to 100.
    order : {"rank", "query"}
        What to grade first. `rank` starts with the top ranks of all queries and systems, so that the grades of a
        stopped run can be used; `query` finishes one query after the other.
    limits, budget : Limits, Budget
    gate : Gate, optional
        Counts and limits all requests. Give the same gate to several runs that share a budget; `limits` and `budget`
        are then not used. Default: a new gate of `limits` and `budget`.
    retry_failed : bool or sequence of str
        Grade again the pairs that failed in an earlier run: all (True), or those that failed for some reasons
        (`JudgeFailure.kind`). Pairs that failed for a temporary reason are always graded again.
    dry_run : bool
        Send no request; estimate pairs, tokens and cost, and say what the controls can show.
    show_bits : float, optional
        For a dry run with controls: bits over random for which to say how many controls or queries they need.
    show_k : int
        For a dry run with controls: K at which the bits are shown.
    seed : int
        For the order of passages within a batch, the tail and the controls. The same seed draws the same pairs again.
    progress : bool
        Show a progress bar on a terminal.

    Returns
    -------
    Grading

    Raises
    ------
    InputError
        If an argument is out of its range, a query or passage has no text, the store cannot be used, or a tail or
        controls cannot be drawn (a pool without depth, a corpus smaller than the draw).
    GradingError
        If no request can succeed (a wrong key, an empty account, an unknown model).
    """
    _check(extras, samples, batch, order)
    retried = _kinds(retry_failed)
    gate = gate or Gate(limits, budget)
    asked = judge_of(judge)
    instructions = rubric if isinstance(rubric, Rubric) else Rubric.read(rubric)
    prompt = GradingPrompt(instructions, tuple(extras))
    pools = pool if isinstance(pool, list) and not (pool and isinstance(pool[0], (tuple, list))) else [pool]
    settings = settings_of(asked, instructions, extras, batch, seed)
    with Store(store) as labels:
        drawn = load_pool(labels, queries, corpus, pools, pool_depth, tail, controls, seed)
        loaded = drawn.pool
        work = GradingWork(labels, loaded, settings, prompt, samples=samples, batch=batch, order=order, seed=seed)
        before = work.find_gaps(retried)
        common: dict[str, Any] = {
            "judge": asked.name,
            "store": labels.path,
            "pairs": loaded.count(),
            "cached": before.cached,
            "earlier_failures": before.failed,
            "tail": drawn.tail,
            "controls": drawn.controls,
        }
        if dry_run:
            power = _power(drawn, show_bits, show_k)
            plan = _plan(work, before.missing, gate, by_part=drawn.tail is not None or drawn.controls is not None)
            return Grading(**common, **plan, control_power=power)
        loaded.record_texts()
        with asking(asked, gate, before.missing, "grading", progress) as session:
            runner = session.runner
            await work.finish(runner, gate.limits)
            left = work.missing()
        answered = runner.progress.answered
        raise_if_fatal(gate, f"; new grades in {labels.path}: {answered:,}" if answered else "")
        return Grading(**common, **_done(runner), left=left)


grade = blocking(agrade)


def _plan(work: GradingWork, missing: int, gate: Gate, *, by_part: bool) -> dict[str, Any]:
    prices = gate.budget.prices
    parts = {}
    estimate = work.estimate()
    for part, (left, asked, usage) in sorted(estimate.items()):
        cost = None if prices is None else prices.of(usage)
        parts[PARTS[part]] = PartCost(left=left, requests=work.calls(asked), usage=usage, cost=cost)
    usage = sum((part.usage for part in parts.values()), Usage())
    return {
        "left": missing,
        "usage": usage,
        "usage_from": "estimate",
        "requests": work.calls(sum(asked for _, asked, _ in estimate.values())),
        "cost": None if prices is None else prices.of(usage),
        "cost_from": None if prices is None else "prices",
        "dry_run": True,
        "part_costs": {name: parts.get(name, PartCost()) for name in PARTS.values()} if by_part else {},
    }


def _power(drawn: Loaded, show_bits: float | None, show_k: int) -> ControlPower | None:
    """What the controls can show; None without controls."""
    if drawn.controls is None:
        if show_bits is not None:
            raise InputError("show_bits (--show-bits) is about controls: give controls (--controls) too, such as 3")
        return None
    return ControlPower.of(drawn.controls.queries, drawn.controls.each, show_k, show_bits)


def _done(runner: Runner) -> dict[str, Any]:
    done, spending = runner.progress, runner.gate.spending
    counted = {"requests": spending.requests, "usage_from": spending.usage_from, "cost_from": spending.cost_from}
    said = {"served_models": tuple(sorted(done.served)), "way": done.way, "last_answer": done.last_answer}
    return {**told(runner), "graded": done.answered, **counted, **said}


def settings_of(judge: Judge, rubric: Rubric, extras: Sequence[str] = (), batch: int = 1, seed: int = 7) -> Settings:
    """Everything that can change a grade, except the texts; the store keeps each grade with it."""
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
            raise InputError(f"an extra (--extra) must be {' or '.join(EXTRAS)}, got {name!r}")
    for name, value, highest in (("samples", samples, 100), ("batch", batch, 100)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= highest:
            raise InputError(f"{name} must be a whole number from 1 to {highest}, got {value!r}")
    if order not in ORDERS:
        raise InputError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")


def _kinds(retry_failed: bool | Sequence[str]) -> Sequence[str] | None:
    """The kinds of failures to try again; None for all."""
    if isinstance(retry_failed, bool):
        return None if retry_failed else ()
    if isinstance(retry_failed, str):
        raise InputError(f"retry_failed must be True, False or a list of reasons, got {retry_failed!r}")
    for kind in retry_failed:
        if kind not in FAILURES:
            raise InputError(
                f"retry_failed (--retry-failed) must be all or reasons of {', '.join(FAILURES)}, got {kind!r}"
            )
    return tuple(retry_failed)
