"""`grade`: has a judge grade the (query, passage) pairs of a pool, and keeps the grades in a store."""

import asyncio
import json
import random
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, warn
from rag_selectivity.grading.drawing import fill_pool
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.judge import PASSING, Judge, Reply, judge_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.prompts import EXTRAS, PROMPT_VERSION, GradingPrompt, batch_item, batch_shape, grade_shape
from rag_selectivity.grading.reading import Unreadable, read_answer, read_batch
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.runner import Outcome, Runner, Task, asking, blocking
from rag_selectivity.grading.store import Label, Settings, Store
from rag_selectivity.grading.store.pool import CONTROL, TAIL, TOP, Gap, Pool
from rag_selectivity.results.grading import Grading, PartCost
from rag_selectivity.results.usage import Usage
from rag_selectivity.tables.cells import check_one_of, names_in
from rag_selectivity.trust.controls import ControlPower
from rag_selectivity.wording import counted

ORDERS = ("rank", "query")
#: The parts of a run, as `Grading.part_costs` names them.
PARTS = {TOP: "pool", TAIL: "tail", CONTROL: "controls"}
#: The kinds of failures that the store may hold.
FAILURES = (*PASSING, "rejected", "too_long", "refusal", "content_filter", "cut", "off_schema")
_GAPS_AT_ONCE = 256
#: Times that number of pairs, where another process asks for the same ones.
_SHARED_FACTOR = 16
#: Tokens of a grade, for the estimate of a dry run.
_ANSWER_TOKENS = 60
#: Tokens that each passage of a batch adds to the limit of an answer.
_TOKENS_OF_A_PASSAGE = 150
_LONGEST_REASON = 2000


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
    judge : Judge, async function, or model of Ragas, LlamaIndex or LangChain
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
        For a dry run with controls: K at which the bits are shown; at most the pool_depth.
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
        If no request can succeed (a wrong key, an empty account, an unknown model), or if no pair could be graded and
        the store holds none.
    """
    _check(extras, samples, batch, order)
    retried = _kinds(retry_failed)
    gate = gate or Gate(limits, budget)
    asked = judge_of(judge)
    pools = pool if isinstance(pool, list) and not (pool and isinstance(pool[0], (tuple, list))) else [pool]
    prompt = GradingPrompt(Rubric.of(rubric), tuple(extras))
    with Store.of_run(store, dry_run=dry_run) as labels:
        pairs = labels.new_pool()
        in_tail, drawn = fill_pool(pairs, queries, corpus, pools, pool_depth, tail, controls, seed)
        settings = labels.settings_id(settings_of(asked, prompt.rubric, extras, batch, seed))
        pairs.ask_for(settings, samples=samples, batch=batch, by_rank=order == "rank")
        cached, failed, absent = pairs.counts()
        missing = pairs.find(retried=None if retried is None else (*PASSING, *retried))
        common: dict[str, Any] = {
            "judge": asked.name,
            "store": Path(store),
            "pairs": pairs.count(),
            "cached": cached,
            "same_texts": pairs.count() - (cached + failed + absent) // samples,
            "earlier_failures": failed + absent - missing,
            "tail": in_tail,
            "controls": drawn,
        }
        if dry_run:
            if drawn is None and show_bits is not None:
                raise InputError("show_bits (--show-bits) is about controls: give controls (--controls) too, such as 3")
            depth = min(show_k, pool_depth or show_k)
            power = None if drawn is None else ControlPower.of(drawn.queries, drawn.each, depth, show_bits)
            plan = _plan(pairs.sizes(), prompt, gate, by_part=in_tail is not None or drawn is not None)
            return Grading(**common, **plan, left=missing, control_power=power)
        if changed := pairs.record():
            said = f"{labels.path}: ids of {counted(changed, 'earlier pair')} have other texts"
            mend = "those grades do not count (give other questions and corpora their own ids or store)"
            warn(f"{said}: {mend}", "outdated-labels", stacklevel=2)
        with asking(asked, gate, missing, "grading", progress) as runner:
            runner.needs_answer = not cached
            await _Grading(labels, pairs, prompt, batch, seed).finish(runner)
        runner.raise_if_fatal(f"; new grades in {labels.path}: {runner.answered:,}" if runner.answered else "")
        with_grade, *without = pairs.counts()
        return Grading(
            **common,
            **runner.told(),
            graded=runner.answered,
            by_others=max(0, with_grade - cached - runner.answered),
            left=max(0, sum(without) - runner.failed - common["earlier_failures"]),
            requests=gate.spending.requests,
            usage_from=gate.spending.usage_from,
            cost_from=gate.spending.cost_from,
            served_models=tuple(sorted(runner.served)),
            way=None if runner.way is None else json.loads(runner.way),
            last_answer=runner.last_answer,
        )


grade = blocking(agrade)


#: The answer for each pair of a task, in the order of its pairs; None for one that a batch left without.
Judgments = list[Any]


class _Grading:
    """Asks for the labels that a pool lacks, and stores them."""

    def __init__(self, store: Store, pool: Pool, prompt: GradingPrompt, batch: int, seed: int) -> None:
        self._store = store
        self._pool = pool
        self._prompt = prompt
        self._batch = batch
        self._seed = seed
        #: Parts of batches that were left without a grade.
        self._to_split: deque[list[Gap]] = deque()
        #: Whether another process grades the same pairs.
        self._is_shared = self._from_end = False

    async def finish(self, runner: Runner) -> None:
        """Ask until no label is missing, or the runner stops."""
        at_once = max(_GAPS_AT_ONCE, 4 * runner.limits.concurrency * self._batch)
        while runner.gate.stop is None and self._pool.after(0, 1):
            await runner.run(self._tasks(at_once), self._put)
            while self._to_split and runner.gate.stop is None:
                await runner.run(self._parts(), self._put)
            runner.conclude()
            if runner.gate.stop is None:
                self._pool.find(retried=())

    def _tasks(self, at_once: int) -> Iterator[Task[Judgments]]:
        place = 0
        while gaps := self._pool.after(place, at_once * (_SHARED_FACTOR if self._is_shared else 1)):
            place = gaps[-1].place
            waiting = deque[list[Gap]]()
            for _, group in groupby(gaps, lambda gap: gap.group):
                together = list(group)
                # An empty passage has a task of its own.
                waiting += [[gap] for gap in together if not gap.passage.strip()]
                waiting += [[gap for gap in together if gap.passage.strip()]]
            while waiting:
                if batch := self._not_graded(waiting.pop() if self._from_end else waiting.popleft()):
                    yield self._task(batch)
                yield from self._parts()

    def _parts(self) -> Iterator[Task[Judgments]]:
        while self._to_split:
            yield self._task(self._to_split.popleft())

    def _not_graded(self, gaps: Sequence[Gap]) -> list[Gap]:
        """Those that have no grade by now; another process may have graded some since they were listed."""
        left = [gap for gap in gaps if not self._pool.is_graded(gap.key)]
        self._is_shared |= len(left) < len(gaps)
        return left

    def _task(self, gaps: list[Gap]) -> Task[Judgments]:
        query, passages, extras = gaps[0].query, [gap.passage for gap in gaps], self._prompt.extras
        if len(gaps) == 1:
            shape = grade_shape(extras)
            # An empty passage helps nobody: nobody is asked.
            known = None if passages[0].strip() else [shape.model_construct(reason="the passage is empty", grade=1)]
            messages = self._prompt.one(query, passages[0])
            return Task(gaps, messages, shape, lambda reply: [read_answer(reply, shape)], answer=known)
        _, query_hash, passage_hash, sample = gaps[0].key
        draw = random.Random(f"{self._seed} {query_hash.hex()} {passage_hash.hex()} {sample}").randrange(1 << 30)
        messages, ids = self._prompt.several(query, passages, draw)

        def read(reply: Reply) -> Judgments:
            if not (by_id := read_batch(reply, batch_item(extras), ids)):
                raise Unreadable("the answer holds no grade for any passage of the batch")
            return [by_id.get(id_) for id_ in ids]

        return Task(gaps, messages, batch_shape(extras), read, _TOKENS_OF_A_PASSAGE * (len(gaps) - 1), repeat=False)

    async def _put(self, outcome: Outcome[Judgments]) -> int:
        """Store the labels of a task; a batch with passages that have no grade is split in halves."""
        gaps: list[Gap] = outcome.task.key
        if len(self._not_graded(gaps)) < len(gaps):
            # Another process had the same task on its way: one of the two should go on from the other end.
            self._from_end = bool(random.getrandbits(1))
        judged = [*zip(gaps, outcome.answer or [None] * len(gaps), strict=True)]
        without = [gap for gap, judgment in judged if judgment is None]
        record = outcome.record(len(gaps) - len(without) or len(gaps))
        labels = [_label(gap, judgment, record) for gap, judgment in judged if judgment is not None]
        if outcome.failure is not None and (len(gaps) == 1 or outcome.failure in PASSING):
            labels += [Label(gap.key, None, **record) for gap in without]
        elif without:
            middle = (len(without) + 1) // 2
            self._to_split.extend(half for half in (without[:middle], without[middle:]) if half)
        await asyncio.wrap_future(self._store.put(labels))
        return len(labels)


def _label(gap: Gap, judgment: Any, record: dict[str, Any]) -> Label:
    return Label(
        gap.key,
        int(judgment.grade),
        reason=judgment.reason[:_LONGEST_REASON],
        relevant_span=getattr(judgment, "relevant_span", None),
        misleading=getattr(judgment, "misleading", None),
        **record,
    )


def _plan(
    sizes: dict[int, tuple[int, int, int, int]], prompt: GradingPrompt, gate: Gate, *, by_part: bool
) -> dict[str, Any]:
    """What the missing labels of each part need, at four characters a token."""
    fixed = sum(len(message["content"]) for message in prompt.one("", ""))
    parts = dict.fromkeys(PARTS.values(), PartCost())
    for part, (left, asked, requests, characters) in sorted(sizes.items()):
        usage = Usage((characters + requests * fixed) // 4, asked * _ANSWER_TOKENS)
        parts[PARTS[part]] = PartCost(left=left, requests=requests, usage=usage, cost=gate.budget.price(usage))
    usage = sum((part.usage for part in parts.values()), Usage())
    cost = gate.budget.price(usage)
    return {
        "usage": usage,
        "usage_from": "estimate",
        "requests": sum(part.requests for part in parts.values()),
        "cost": cost,
        "cost_from": None if cost is None else "prices",
        "dry_run": True,
        "part_costs": parts if by_part else {},
    }


def settings_of(judge: Judge, rubric: Rubric, extras: Sequence[str] = (), batch: int = 1, seed: int = 7) -> Settings:
    """Everything that can change a grade, except the texts; the store keeps each grade with it."""
    parameters = {**judge.parameters, **({"batch": batch, "seed": seed} if batch > 1 else {})}
    if extras:
        parameters["extras"] = sorted(extras)
    return Settings("grade", judge.name, parameters, rubric.name, rubric.version, PROMPT_VERSION)


def _check(extras: Sequence[str], samples: int, batch: int, order: str) -> None:
    for name in extras:
        check_one_of("extra (judge.extra)", name, EXTRAS)
    for name, value in (("samples", samples), ("batch", batch)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100:
            raise InputError(f"{name} must be a whole number from 1 to 100, got {value!r}")
    check_one_of("order", order, ORDERS)


def _kinds(retry_failed: bool | Sequence[str]) -> Sequence[str] | None:
    """The kinds of failures to try again; None for all."""
    if isinstance(retry_failed, bool):
        return None if retry_failed else ()
    kinds = names_in(retry_failed, "retry_failed (--retry-failed)")
    for kind in kinds:
        check_one_of("each reason of retry_failed (--retry-failed)", kind, FAILURES)
    return kinds
