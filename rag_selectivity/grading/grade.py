"""`grade`: a pool of (query, passage) pairs in, grades in the store out."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.grading.judge import Answer, GradingError, Judge, Usage, judge_of
from rag_selectivity.grading.prompts import EXTRAS, PROMPT_VERSION, GradingPrompt, looks_like_instruction
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.runner import (
    PASSING,
    Budget,
    Call,
    Limits,
    Outcome,
    Runner,
    interruptible,
    progress_bar,
    run_blocking,
)
from rag_selectivity.grading.sources import load_pool
from rag_selectivity.grading.store import Key, Label, Settings, Store

ORDERS = ("rank", "query")
_PAIRS_AT_ONCE = 256
_LEASE_MARGIN = 120.0
_ANSWER_TOKENS = 60
_PASSED = "(" + " OR ".join(f"l.error LIKE '{kind}:%'" for kind in PASSING) + ")"


@dataclass(frozen=True, slots=True)
class Grading:
    """What a grading run did, or with `dry_run` would do.

    Attributes
    ----------
    pairs : int
        Pairs in the pool; times samples, what there is to know.
    cached, graded, failed, left : int
        Grades that were there before, new ones, pairs that failed for good, and pairs not tried.
    earlier_failures : int
        Among those not tried: pairs that failed in an earlier run (`retry_failed` tries them again).
    flagged : int
        New labels of passages that look as if they spoke to the judge.
    usage : Usage
    cost : float or None
        Of this run; None where prices were not given. For a dry run, both are estimates.
    stopped : str or None
        Why the run ended before the pool did.
    errors : {kind: pairs}
    last_error : str or None
        What the last of them said.
    """

    judge: str
    store: Path
    pairs: int
    cached: int
    graded: int
    failed: int
    left: int
    earlier_failures: int
    flagged: int
    usage: Usage
    cost: float | None
    stopped: str | None
    dry_run: bool = False
    errors: dict[str, int] = field(default_factory=dict)
    last_error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": "rag-selectivity/grading/1",
            "judge": self.judge,
            "store": str(self.store),
            **{name: getattr(self, name) for name in ("pairs", "cached", "graded", "failed", "left")},
            "earlier_failures": self.earlier_failures,
            "flagged": self.flagged,
            "prompt_tokens": self.usage.prompt_tokens,
            "completion_tokens": self.usage.completion_tokens,
            "cost": self.cost,
            "stopped": self.stopped,
            "dry_run": self.dry_run,
            "errors": dict(self.errors),
            "last_error": self.last_error,
        }

    def __str__(self) -> str:
        tokens = f"{self.usage.prompt_tokens:,} + {self.usage.completion_tokens:,} tokens"
        cost = f", cost {self.cost:.4g}" if self.cost is not None else ""
        if self.dry_run:
            return f"{self.pairs} pairs, {self.cached} cached, {self.left} to grade: about {tokens}{cost}"
        lines = [
            f"{self.pairs} pairs: {self.graded} graded, {self.cached} cached, {self.failed} failed, {self.left} left"
        ]
        lines[0] += f" ({tokens}{cost})"
        if self.errors:
            counted = ", ".join(f"{count} {kind}" for kind, count in sorted(self.errors.items()))
            lines.append(f"failures: {counted}; the last said {self.last_error}")
        if self.earlier_failures:
            lines.append(f"{self.earlier_failures} failed in an earlier run; --retry-failed tries them again")
        if self.flagged:
            lines.append(f"{self.flagged} passages look as if they spoke to the judge; see `flagged` in an export")
        if self.stopped:
            lines.append(f"stopped: {self.stopped}. All grades so far are in {self.store}; the same command goes on")
        return "\n".join(lines)


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
    retry_failed: bool = False,
    dry_run: bool = False,
    seed: int = 7,
    progress: bool = True,
) -> Grading:
    """Have an LLM grade every (query, passage) pair of a pool from 1 to 5, and keep the grades.

    Parameters
    ----------
    queries, corpus : {id: text}, records, DataFrame or path
        Texts by id; BEIR's JSONL, TSV without a header, CSV and Parquet are known, titles go in front.
    pool : run, or list of runs
        Passages to grade for each query: dicts, Runs, frames or files, such as the runs of all systems.
    store : str or Path
        The label store, made if it is not there. What it holds is not asked again.
    judge : Judge or async function
        See `rag_selectivity.grading.judge`.
    rubric : Rubric or path
    extras : sequence of {"relevant_span", "misleading"}
        What else to say of each passage, in the same call.
    pool_depth : int, optional
        How far down each run.
    samples : int
        Grades of each pair; their median counts, and their spread is kept.
    batch : int
        Passages of one query in a call.
    order : {"rank", "query"}
        The top ranks of all queries and systems first, so that a stopped run is worth something; or
        query by query.
    limits, budget : Limits, Budget
    retry_failed : bool
        Try again what failed for good in an earlier run.
    dry_run : bool
        Ask nothing: count pairs, tokens and cost.
    seed : int
        For the order of passages within a batch.
    progress : bool
        A bar, where there is a terminal.

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
    retry_failed: bool = False,
    dry_run: bool = False,
    seed: int = 7,
    progress: bool = True,
) -> Grading:
    """`grade` for a running event loop."""
    _check(extras, samples, batch, order)
    chosen = judge_of(judge)
    words = rubric if isinstance(rubric, Rubric) else Rubric.read(rubric)
    pools = pool if isinstance(pool, list) and not _is_rows(pool) else [pool]
    settings = settings_of(chosen, words, extras, batch, seed)
    with Store(store) as labels:
        pairs = load_pool(labels.connection, queries, corpus, pools, pool_depth)
        work = _Work(labels, settings, GradingPrompt(words, tuple(extras)), samples, batch, order, seed)
        counts = work.begin(retry_failed)
        if dry_run:
            usage = work.estimate(counts.pending)
            return Grading(
                chosen.name,
                labels.path,
                pairs,
                counts.cached,
                0,
                0,
                counts.pending,
                counts.failed,
                0,
                usage,
                budget.price(usage),
                None,
                dry_run=True,
            )
        work.keep_pairs()
        watch, close = progress_bar(counts.pending, "grading", progress)
        runner = Runner(chosen, limits, budget, watch)
        try:
            with interruptible(runner):
                await work.finish(runner, limits)
        finally:
            close()
            await _closed(chosen)
        done = runner.progress
        after = work.count()
        left = after.pending
        if done.stopped is not None and done.stopped.startswith("fatal: "):
            raise GradingError(
                f"{done.stopped.removeprefix('fatal: ')}; nothing more was sent, "
                f"{done.answered} grades are in {labels.path}"
            )
        return Grading(
            chosen.name,
            labels.path,
            pairs,
            counts.cached,
            done.answered,
            done.failed,
            left,
            counts.failed,
            work.flagged,
            done.usage,
            done.cost if budget.price_in is not None else None,
            done.stopped,
            errors=dict(done.errors),
            last_error=done.last_error,
        )


def settings_of(judge: Judge, rubric: Rubric, extras: Sequence[str] = (), batch: int = 1, seed: int = 7) -> Settings:
    """All that can change a grade, but for the texts: under this the store keeps it."""
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


async def _closed(judge: Any) -> None:
    close: Callable[[], Awaitable[None]] | None = getattr(judge, "close", None)
    if close is not None:
        await close()


@dataclass(frozen=True, slots=True)
class _Counts:
    cached: int
    failed: int
    pending: int


@dataclass(frozen=True, slots=True)
class _Subject:
    """The pairs of a call: their keys, whether they look like instructions, and their ids within a batch."""

    keys: tuple[Key, ...]
    flagged: tuple[bool, ...]
    ids: tuple[str, ...] = ()


class _Work:
    """Which pairs of the pool are still to be graded, as calls in order."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        prompt: GradingPrompt,
        samples: int,
        batch: int,
        order: str,
        seed: int,
    ) -> None:
        self.store = store
        self.connection: sqlite3.Connection = store.connection
        self.prompt = prompt
        self.batch = batch
        self.order = order
        self.seed = seed
        self.samples = samples
        self.flagged = 0
        self.settings = store.settings_id(settings)
        self._alone: set[Key] = set()

    def begin(self, retry_failed: bool) -> _Counts:
        """Look for the gaps."""
        self.connection.execute("CREATE TEMP TABLE samples (number INTEGER PRIMARY KEY)")
        self.connection.executemany("INSERT INTO samples VALUES (?)", [(i,) for i in range(self.samples)])
        # Two ids with the same texts are one question.
        self.connection.execute(
            "CREATE TEMP TABLE asked AS SELECT q.hash AS query_hash, p.hash AS passage_hash, min(q.rowid) AS query,"
            " min(p.rowid) AS passage, min(pool.rank) AS rank FROM pool JOIN queries q ON q.id = pool.query_id"
            " JOIN passages p ON p.id = pool.passage_id GROUP BY q.hash, p.hash"
        )
        counts = self.count()
        # What failed for a passing reason in an earlier run is tried again without being asked.
        pending = self._find("true" if retry_failed else _PASSED)
        return _Counts(counts.cached, counts.failed + counts.pending - pending, pending)

    def count(self) -> _Counts:
        """Grades there are, failures, and gaps."""
        cached, failed, total = self.connection.execute(
            "SELECT count(l.grade), count(l.settings) - count(l.grade), count(*) FROM asked a JOIN samples n"
            " LEFT JOIN labels l ON l.settings = ? AND l.query_hash = a.query_hash"
            " AND l.passage_hash = a.passage_hash AND l.sample = n.number",
            (self.settings,),
        ).fetchone()
        return _Counts(cached, failed, total - cached - failed)

    def _find(self, retried: str) -> int:
        """Put the gaps, and the failures that meet a condition, into the table `pending` in the order of asking."""
        self.connection.execute("DROP TABLE IF EXISTS pending")
        block = f"(row_number() OVER (PARTITION BY a.query, n.number ORDER BY a.rank, a.passage) - 1) / {self.batch}"
        first = "block, query" if self.order == "rank" else "query, block"
        self.connection.execute(
            f"CREATE TEMP TABLE pending AS SELECT a.*, n.number AS sample, {block} AS block FROM asked a JOIN samples n"
            " LEFT JOIN labels l ON l.settings = ? AND l.query_hash = a.query_hash"
            " AND l.passage_hash = a.passage_hash AND l.sample = n.number"
            f" WHERE l.settings IS NULL OR (l.grade IS NULL AND {retried})"
            f" ORDER BY n.number, {first}, a.rank, a.passage",
            (self.settings,),
        )
        return int(self.connection.execute("SELECT count(*) FROM pending").fetchone()[0])

    def estimate(self, pending: int) -> Usage:
        """Tokens that the gaps would take, at four characters a token."""
        texts = self.connection.execute(
            "SELECT total(length(q.text) + length(p.text)) FROM pending JOIN queries q ON q.rowid = query"
            " JOIN passages p ON p.rowid = passage"
        ).fetchone()[0]
        messages, _ = self.prompt.one("", "")
        fixed = sum(len(message["content"]) for message in messages)
        return Usage(int((texts + pending * fixed / self.batch) / 4), pending * _ANSWER_TOKENS)

    def keep_pairs(self) -> None:
        """Write down which texts the ids have now."""
        self.connection.execute(
            "INSERT INTO pairs SELECT pool.query_id, pool.passage_id, q.hash, p.hash FROM pool"
            " JOIN queries q ON q.id = pool.query_id JOIN passages p ON p.id = pool.passage_id WHERE true"
            " ON CONFLICT DO UPDATE SET query_hash = excluded.query_hash, passage_hash = excluded.passage_hash"
            " WHERE query_hash != excluded.query_hash OR passage_hash != excluded.passage_hash"
        )

    async def finish(self, runner: Runner, limits: Limits) -> None:
        """Ask until there are no gaps, or the runner stops."""
        reserve = limits.timeout * limits.attempts + _LEASE_MARGIN
        while runner.progress.stopped is None and self.connection.execute("SELECT 1 FROM pending").fetchone():
            before = runner.progress.calls
            await runner.run(self._calls(reserve, max(_PAIRS_AT_ONCE, 4 * limits.concurrency * self.batch)), self._keep)
            if runner.progress.stopped is None:
                self._find("false")
                if runner.progress.calls == before:
                    # All that is left is with another process.
                    await asyncio.sleep(0.5)

    def _calls(self, reserve: float, at_once: int) -> Iterator[Call]:
        last = 0
        while True:
            rows = self.connection.execute(
                "SELECT pending.rowid, query_hash, passage_hash, sample, block, query, q.text, p.text FROM pending"
                " JOIN queries q ON q.rowid = query JOIN passages p ON p.rowid = passage"
                " WHERE pending.rowid > ? ORDER BY pending.rowid LIMIT ?",
                (last, at_once),
            ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            keys = [(self.settings, row[1], row[2], row[3]) for row in rows]
            held = self.store.lease(keys, reserve)
            group: list[tuple[Key, str, str]] = []
            place: tuple[int, ...] = ()
            for key, row in zip(keys, rows, strict=True):
                if key not in held:
                    continue
                if group and (row[3:6] != place or len(group) == self.batch or key in self._alone):
                    yield self._call(group)
                    group = []
                group.append((key, row[6], row[7]))
                place = row[3:6]
                if key in self._alone:
                    yield self._call(group)
                    group = []
            if group:
                yield self._call(group)

    def _call(self, group: Sequence[tuple[Key, str, str]]) -> Call:
        keys = tuple(key for key, _, _ in group)
        query, passages = group[0][1], [passage for _, _, passage in group]
        flagged = tuple(looks_like_instruction(passage) for passage in passages)
        if len(group) == 1:
            messages, shape = self.prompt.one(query, passages[0])
            return Call(messages, shape, _Subject(keys, flagged))
        draw = random.Random(f"{self.seed} {keys[0][1].hex()} {keys[0][2].hex()} {keys[0][3]}").randrange(1 << 30)
        messages, shape, ids = self.prompt.several(query, passages, draw)
        return Call(messages, shape, _Subject(keys, flagged, tuple(ids)))

    async def _keep(self, outcome: Outcome) -> int:
        labels = self._labels(outcome)
        self.flagged += sum(label.flagged for label in labels if label.grade is not None)
        await asyncio.wrap_future(self.store.put(labels))
        return len(labels)

    def _labels(self, outcome: Outcome) -> list[Label]:
        subject: _Subject = outcome.call.subject
        share = len(subject.keys)
        common = {
            "prompt_tokens": outcome.usage.prompt_tokens // share,
            "completion_tokens": outcome.usage.completion_tokens // share,
            "cost": None if outcome.cost is None else outcome.cost / share,
            "seconds": round(outcome.seconds, 4),
            "attempts": outcome.attempts,
        }
        if outcome.answer is None:
            return [
                Label(key, None, flagged=flagged, error=outcome.error, **common)  # type: ignore[arg-type]
                for key, flagged in zip(subject.keys, subject.flagged, strict=True)
            ]
        answers = self._by_pair(outcome.answer, subject)
        found = []
        for key, flagged in zip(subject.keys, subject.flagged, strict=True):
            answer = answers.get(key)
            if answer is None:
                # Skipped or said twice in a batch: it is asked for alone in the next round.
                self._alone.add(key)
                continue
            found.append(
                Label(
                    key,
                    int(answer.grade),
                    reason=str(answer.reason)[:2000],
                    relevant_span=getattr(answer, "relevant_span", None),
                    misleading=getattr(answer, "misleading", None),
                    flagged=flagged,
                    **common,  # type: ignore[arg-type]
                )
            )
        return found

    def _by_pair(self, answer: Answer, subject: _Subject) -> dict[Key, Any]:
        if not subject.ids:
            return {subject.keys[0]: answer.value}
        said: dict[str, list[Any]] = {}
        for item in answer.value.grades:  # type: ignore[attr-defined]
            said.setdefault(item.passage, []).append(item)
        return {
            key: said[id_][0] for key, id_ in zip(subject.keys, subject.ids, strict=True) if len(said.get(id_, ())) == 1
        }
