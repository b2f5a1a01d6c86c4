"""The runner: many calls to a judge at once, within limits and a budget."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from rag_selectivity.errors import InputError
from rag_selectivity.grading.judge import Answer, Judge, JudgeFailure, Message
from rag_selectivity.results.usage import Usage

T = TypeVar("T")

#: Kinds of failures after which another attempt, now or in a later run, may succeed.
PASSING = ("rate_limit", "transient")
_IN_A_ROW = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many calls to make, how fast, and how often to try again.

    Attributes
    ----------
    concurrency : int
        Calls at the same time.
    rpm, tpm : float or None
        Requests and tokens per minute.
    timeout : float
        Seconds for a call.
    attempts : int
        Attempts of a call that fails with `rate_limit` or `transient`.
    backoff : float
        Seconds before the second attempt. They double with every attempt, up to a minute, with jitter.
    """

    concurrency: int = 16
    rpm: float | None = None
    tpm: float | None = None
    timeout: float = 60.0
    attempts: int = 6
    backoff: float = 1.0

    def __post_init__(self) -> None:
        for name in ("concurrency", "attempts"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise InputError(f"{name} must be a whole number ≥ 1, got {getattr(self, name)!r}")
        for name in ("rpm", "tpm", "timeout"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} must be more than 0, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most calls, tokens or money to spend. Prices are for a million tokens, in the currency of `cost`."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    price_in: float | None = None
    price_out: float | None = None

    def __post_init__(self) -> None:
        if self.cost is not None and (self.price_in is None or self.price_out is None):
            raise InputError("a budget in money needs the prices of a million tokens: price_in and price_out")

    def price(self, usage: Usage) -> float | None:
        """What the tokens cost; None without prices."""
        if self.price_in is None or self.price_out is None:
            return None
        return (usage.prompt_tokens * self.price_in + usage.completion_tokens * self.price_out) / 1e6

    def after(self, calls: int, usage: Usage, cost: float | None) -> Budget:
        """The budget that is left after some calls."""
        return replace(
            self,
            calls=None if self.calls is None else max(0, self.calls - calls),
            tokens=None if self.tokens is None else max(0, self.tokens - usage.total),
            cost=None if self.cost is None else max(0.0, self.cost - (cost or 0.0)),
        )


@dataclass(frozen=True, slots=True)
class Call:
    """Messages and a schema for the judge, and a `subject` that tells the caller what the answer is about."""

    messages: Sequence[Message]
    schema: type[BaseModel]
    subject: Any

    @property
    def estimated_tokens(self) -> int:
        """The approximate length of the prompt, at four characters a token."""
        return sum(len(message["content"]) for message in self.messages) // 4 + 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call: an answer or an error, and what it took."""

    call: Call
    answer: Answer | None
    error: str | None
    usage: Usage
    cost: float | None
    seconds: float
    attempts: int

    @property
    def failure(self) -> str | None:
        """The kind of the error."""
        return None if self.error is None else self.error.split(":", 1)[0]


@dataclass(slots=True)
class Progress:
    """What a runner has done so far."""

    answered: int = 0
    failed: int = 0
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0
    stopped: str | None = None
    errors: dict[str, int] = field(default_factory=dict)
    last_error: str | None = None


Watch = Callable[[Progress, int], None]


class Runner:
    """Asks a judge.

    Parameters
    ----------
    judge, limits, budget
    watch : callable, optional
        Called after every call, with the progress and the number of pairs that the call finished.
    """

    def __init__(
        self, judge: Judge, limits: Limits = Limits(), budget: Budget = Budget(), watch: Watch | None = None
    ) -> None:
        self.judge = judge
        self.limits = limits
        self.budget = budget
        self.progress = Progress()
        self._watch = watch
        self._throttle = _Throttle(limits)
        self._random = random.Random()
        self._typical_output = 120.0
        self._tokens_per_estimate = 1.0
        self._landed = asyncio.Event()
        self._failed_in_a_row = 0
        self._in_flight: dict[int, int] = {}

    def stop(self, why: str) -> None:
        """Begin no more calls; the calls in flight are finished and stored."""
        self.progress.stopped = self.progress.stopped or why

    async def run(self, calls: Iterator[Call], store: Callable[[Outcome], Awaitable[int]]) -> None:
        """Make the calls; a worker begins its next call when the outcome of the last one is stored.

        `store` stores an outcome and returns how many pairs it finishes, by an answer or an error.
        """
        failure: list[BaseException] = []

        async def work(number: int) -> None:
            try:
                while self.progress.stopped is None:
                    call = next(calls, None)
                    if call is None:
                        return
                    if not await self._affordable(call):
                        return
                    self._in_flight[number] = call.estimated_tokens
                    outcome = await self._ask(call)
                    if outcome is not None:
                        self._count(outcome, await store(outcome))
                    self._in_flight.pop(number, None)
                    self._landed.set()
            except BaseException as error:
                self.stop("error")
                self._landed.set()
                failure.append(error)

        await asyncio.gather(*(work(number) for number in range(self.limits.concurrency)))
        for error in failure:
            if not isinstance(error, asyncio.CancelledError):
                raise error
        if failure:
            raise asyncio.CancelledError

    async def _ask(self, call: Call) -> Outcome | None:
        """Make a call, with all its attempts; None if the whole run has to stop."""
        started = time.monotonic()
        usage = Usage()
        attempt = 0
        while True:
            attempt += 1
            await self._throttle.wait(call.estimated_tokens)
            self.progress.calls += 1
            try:
                async with asyncio.timeout(self.limits.timeout):
                    answer = await self.judge.ask(call.messages, call.schema)
            except TimeoutError:
                failure = JudgeFailure(f"no answer within {self.limits.timeout:g} s", "transient")
            except JudgeFailure as error:
                failure = error
            else:
                usage += answer.usage
                self._throttle.spent(answer.usage.total - call.estimated_tokens)
                return self._outcome(call, answer, None, usage, started, attempt)
            usage += failure.usage
            if failure.kind == "fatal":
                self.stop(f"fatal: {failure}")
                return None
            passing = failure.kind in PASSING
            if not passing or attempt >= self.limits.attempts:
                return self._outcome(call, None, f"{failure.kind}: {failure}", usage, started, attempt)
            wait = min(60.0, self.limits.backoff * 2 ** (attempt - 1)) * self._random.uniform(0.5, 1.0)
            if failure.retry_after is not None:
                wait = failure.retry_after + wait * 0.1
            if failure.kind == "rate_limit":
                # All workers share the limit, so all of them wait.
                self._throttle.pause(wait)
            else:
                await asyncio.sleep(wait)

    def _outcome(
        self, call: Call, answer: Answer | None, error: str | None, usage: Usage, started: float, attempts: int
    ) -> Outcome:
        seconds = time.monotonic() - started
        return Outcome(call, answer, error, usage, self.budget.price(usage), seconds, attempts)

    def _count(self, outcome: Outcome, pairs: int) -> None:
        progress = self.progress
        progress.usage += outcome.usage
        progress.cost += outcome.cost or 0.0
        if outcome.error is None:
            self._failed_in_a_row = 0
            progress.answered += pairs
            self._typical_output += 0.1 * (outcome.usage.completion_tokens - self._typical_output)
            share = outcome.usage.prompt_tokens / outcome.call.estimated_tokens
            self._tokens_per_estimate += 0.1 * (share - self._tokens_per_estimate)
        else:
            progress.failed += pairs
            kind = outcome.error.split(":", 1)[0]
            progress.errors[kind] = progress.errors.get(kind, 0) + pairs
            progress.last_error = outcome.error
            # An endpoint that is down must not make a failure of every pair.
            self._failed_in_a_row = self._failed_in_a_row + 1 if kind in PASSING else 0
            if self._failed_in_a_row >= max(_IN_A_ROW, 2 * self.limits.concurrency):
                self.stop(f"{self._failed_in_a_row} calls in a row failed, the last with {outcome.error}")
        if self._watch is not None:
            self._watch(progress, pairs)

    async def _affordable(self, call: Call) -> bool:
        """Whether the budget allows one more call. Near its end, wait first for the cost of the calls in flight."""
        while self.progress.stopped is None:
            reason = self._used_up(call)
            if reason is None:
                return True
            if not self._in_flight:
                self.stop(reason)
                return False
            self._landed.clear()
            await self._landed.wait()
        return False

    def _used_up(self, call: Call) -> str | None:
        """Which budget one more call would exceed, besides the calls in flight; None if none."""
        budget, progress = self.budget, self.progress
        if budget.calls is not None and progress.calls >= budget.calls:
            return f"the budget of {budget.calls} calls is used up"
        prompts = (sum(self._in_flight.values()) + call.estimated_tokens) * self._tokens_per_estimate
        ahead = Usage(round(prompts), round((len(self._in_flight) + 1) * self._typical_output))
        if budget.tokens is not None and (progress.usage + ahead).total > budget.tokens:
            return f"the budget of {budget.tokens} tokens is used up"
        if budget.cost is not None and progress.cost + (budget.price(ahead) or 0.0) > budget.cost:
            return f"the budget of {budget.cost:g} is used up"
        return None


class _Throttle:
    """Limits of requests and tokens per minute for all workers, and the pauses that an endpoint asks for."""

    def __init__(self, limits: Limits) -> None:
        now = time.monotonic()
        self._buckets = [_Bucket(rate, now) for rate in (limits.rpm, limits.tpm)]
        self._until = 0.0
        self._turn = asyncio.Lock()

    async def wait(self, tokens: int) -> None:
        """Return when a call of this many tokens is allowed."""
        if self._until <= time.monotonic() and all(bucket.rate is None for bucket in self._buckets):
            return
        async with self._turn:
            while True:
                now = time.monotonic()
                requests, budget = self._buckets
                pause = max(self._until - now, requests.delay(1, now), budget.delay(tokens, now))
                if pause <= 0:
                    requests.take(1)
                    budget.take(tokens)
                    return
                await asyncio.sleep(pause)

    def spent(self, more: int) -> None:
        """Count the tokens that a call took beyond its estimate."""
        self._buckets[1].take(more)

    def pause(self, seconds: float) -> None:
        """Allow no call for this long."""
        self._until = max(self._until, time.monotonic() + seconds)


class _Bucket:
    """A token bucket: a rate per minute, of which a second and a half may be saved up."""

    def __init__(self, rate: float | None, now: float) -> None:
        self.rate = rate
        self._size = max(1.0, (rate or 0.0) / 40)
        self._level = self._size
        self._then = now

    def delay(self, amount: float, now: float) -> float:
        if self.rate is None:
            return 0.0
        self._level = min(self._size, self._level + (now - self._then) * self.rate / 60)
        self._then = now
        # A call larger than the bucket waits until the bucket is full, and makes its level negative.
        return max(0.0, (min(amount, self._size) - self._level) * 60 / self.rate)

    def take(self, amount: float) -> None:
        if self.rate is not None:
            self._level -= amount


@contextmanager
def interruptible(runner: Runner) -> Iterator[None]:
    """The first Ctrl-C lets the calls in flight finish; the second one cancels them."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def interrupt() -> None:
        if runner.progress.stopped is None:
            runner.stop("interrupted")
        elif task is not None:
            task.cancel()

    try:
        loop.add_signal_handler(signal.SIGINT, interrupt)
    except (NotImplementedError, RuntimeError, ValueError):
        # Not the main thread, or a platform without signal handlers: Ctrl-C raises KeyboardInterrupt as usual.
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def progress_bar(total: int, what: str, shown: bool = True) -> tuple[Watch | None, Callable[[], None]]:
    """A progress bar on a terminal, with cost and failures; nothing elsewhere, or without tqdm."""
    if not shown or not sys.stderr.isatty():
        return None, lambda: None
    try:
        from tqdm import tqdm
    except ImportError:
        return None, lambda: None
    bar = tqdm(total=total, desc=what, unit="pair")

    def watch(progress: Progress, pairs: int) -> None:
        bar.set_postfix(cost=f"{progress.cost:.3f}", failed=progress.failed, refresh=False)
        bar.update(pairs)

    return watch, bar.close


def run_blocking(work: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine from ordinary code, even while an event loop runs, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_awaited(work, signal.getsignal(signal.SIGINT)))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(_awaited(work))).result()


async def _awaited(work: Callable[[], Awaitable[T]], on_interrupt: Any = None) -> T:
    if on_interrupt is signal.default_int_handler and threading.current_thread() is threading.main_thread():
        # asyncio delays Ctrl-C until the next await, and there is none while files are read before the first call.
        signal.signal(signal.SIGINT, on_interrupt)
    return await work()
