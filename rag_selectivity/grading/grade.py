"""`grade`: has a judge grade the (query, passage) pairs of a pool, and keeps the grades in a store."""

from __future__ import annotations

import asyncio
import json
import random
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.judge import PASSING, Judge, judge_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.pool import CONTROL, TAIL, TOP, Asked, Pool
from rag_selectivity.grading.prompts import PROMPT_VERSION, Grade, grading_messages
from rag_selectivity.grading.reading import read_answer
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.runner import Outcome, Runner, Task, asking, blocking
from rag_selectivity.grading.store import Label, Settings, Store
from rag_selectivity.results.grading import Grading, PartCost
from rag_selectivity.results.usage import Usage
from rag_selectivity.trust.control_power import ControlPower

#: Tokens of a grade, for the estimate of a dry run.
_ANSWER_TOKENS = 60
_LONGEST_REASON = 2000


async def agrade(
    queries: Any,
    corpus: Any,
    pool: Any,
    *,
    store: str | Path,
    judge: Any,
    rubric: Rubric | str | Path = DEFAULT_RUBRIC,
    pool_depth: int | None = None,
    tail: str | None = None,
    controls: int = 0,
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    gate: Gate | None = None,
    retry_failed: bool = False,
    dry_run: bool = False,
    show_bits: float | None = None,
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
    limits, budget : Limits, Budget
    gate : Gate, optional
        Counts and limits all requests. Give the same gate to several runs that share a budget; `limits` and `budget`
        are then not used. Default: a new gate of `limits` and `budget`.
    retry_failed : bool
        Grade again the pairs that failed in an earlier run. Pairs that failed for a temporary reason are always graded
        again.
    dry_run : bool
        Send no request; estimate pairs, tokens and cost, and say what the controls can show.
    show_bits : float, optional
        For a dry run with controls: bits over random for which to say how many controls or queries they need.
    seed : int
        For the tail and the controls. The same seed draws the same pairs again.
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
    gate = gate or Gate(limits, budget)
    asked = judge_of(judge)
    instructions = rubric if isinstance(rubric, Rubric) else Rubric.read(rubric)
    pools = pool if isinstance(pool, list) and not (pool and isinstance(pool[0], (tuple, list))) else [pool]
    with Store(store) as labels:
        drawn = Pool.load(queries, corpus, pools, pool_depth, tail, controls, seed)
        settings = labels.settings_id(settings_of(asked, instructions))
        every = drawn.asked()
        # {key: the kind of its failure, None for a grade}
        known = labels.outcomes(settings, {each.key for each in every})
        retried = {kind for kind in known.values() if kind in PASSING or (retry_failed and kind is not None)}
        missing = [each for each in every if known.get(each.key, "missing") in {"missing", *retried}]
        cached = sum(kind is None for kind in known.values())
        common: dict[str, Any] = {
            "judge": asked.name,
            "store": labels.path,
            "pairs": len(drawn.pairs),
            "cached": cached,
            "earlier_failures": len(every) - cached - len(missing),
            "tail": drawn.tail,
            "controls": drawn.controls,
        }
        if dry_run:
            power = _power(drawn, show_bits)
            return Grading(
                **common, **_plan(missing, drawn, instructions, gate), left=len(missing), control_power=power
            )
        labels.put_pairs(drawn.text_rows(), [(q, p, origin) for (q, p, _), origin in drawn.origins.items()])
        with asking(asked, gate, len(missing), "grading", progress) as runner:
            await _Grading(labels, settings, instructions).finish(runner, missing)
        done, spending = runner.progress, gate.spending
        runner.raise_if_fatal(f"; new grades in {labels.path}: {done.answered:,}" if done.answered else "")
        return Grading(
            **common,
            **runner.told(),
            graded=done.answered,
            left=len(every) - len(labels.outcomes(settings, {each.key for each in every})),
            requests=spending.requests,
            usage_from=spending.usage_from,
            cost_from=spending.cost_from,
            served_models=tuple(sorted(done.served)),
            way=None if done.way is None else json.loads(done.way),
            last_answer=done.last_answer,
        )


grade = blocking(agrade)


class _Grading:
    """Asks for the labels that a pool lacks, and stores them."""

    def __init__(self, store: Store, settings: int, rubric: Rubric) -> None:
        self._store = store
        self._settings = settings
        self._rubric = rubric
        self._from_end = False

    async def finish(self, runner: Runner, missing: Sequence[Asked]) -> None:
        """Ask until no label is missing, or the runner stops."""
        await runner.run(self._tasks(deque(missing)), self._put)

    def _tasks(self, waiting: deque[Asked]) -> Iterator[Task[Grade]]:
        while waiting:
            pair = waiting.pop() if self._from_end else waiting.popleft()
            # Another process may have graded it since the pairs were listed.
            if not self._store.is_graded(self._settings, pair.key):
                # An empty passage helps nobody: nobody is asked.
                known = None if pair.passage.strip() else Grade(reason="the passage is empty", grade=1)
                messages = grading_messages(self._rubric, pair.query, pair.passage)
                yield Task(pair.key, messages, Grade, lambda reply: read_answer(reply, Grade), known)

    async def _put(self, outcome: Outcome[Grade]) -> int:
        key, answer = outcome.task.key, outcome.answer
        if self._store.is_graded(self._settings, key):
            # Another process had the same task on its way: one of the two should go on from the other end.
            self._from_end = bool(random.getrandbits(1))
        grade = None if answer is None else answer.grade
        reason = None if answer is None else answer.reason[:_LONGEST_REASON]
        label = Label((self._settings, *key), grade, reason, **outcome.taken(), **outcome.failed)
        await asyncio.wrap_future(self._store.put([label]))
        return 1


def _plan(missing: Sequence[Asked], pool: Pool, rubric: Rubric, gate: Gate) -> dict[str, Any]:
    """What the missing labels of each part need, at four characters a token."""
    prices = gate.budget.prices
    fixed = sum(len(message["content"]) for message in grading_messages(rubric, "", ""))
    parts = {}
    for part in (TOP, TAIL, CONTROL):
        of_part = [each for each in missing if each.part == part]
        asked = [each for each in of_part if each.passage.strip()]
        characters = sum(len(each.query) + len(each.passage) + fixed for each in asked)
        usage = Usage(characters // 4, len(asked) * _ANSWER_TOKENS)
        cost = None if prices is None else prices.of(usage)
        parts[part] = PartCost(left=len(of_part), requests=len(asked), usage=usage, cost=cost)
    usage = sum((part.usage for part in parts.values()), Usage())
    return {
        "usage": usage,
        "usage_from": "estimate",
        "requests": sum(part.requests for part in parts.values()),
        "cost": None if prices is None else prices.of(usage),
        "cost_from": None if prices is None else "prices",
        "dry_run": True,
        "part_costs": parts if pool.tail is not None or pool.controls is not None else {},
    }


def _power(pool: Pool, show_bits: float | None) -> ControlPower | None:
    """What the controls can show at K = 10; None without controls."""
    if pool.controls is None:
        if show_bits is not None:
            raise InputError("show_bits (--show-bits) is about controls: give controls (--controls) too, such as 3")
        return None
    return ControlPower.of(pool.controls.queries, pool.controls.each, 10, show_bits)


def settings_of(judge: Judge, rubric: Rubric) -> Settings:
    """Everything that can change a grade, except the texts; the store keeps each grade with it."""
    return Settings("grade", judge.name, judge.parameters, rubric.name, rubric.version, PROMPT_VERSION)
