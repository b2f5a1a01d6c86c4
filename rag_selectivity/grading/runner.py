"""The runner: asks a judge many tasks at the same time, each until it has an answer or has failed."""

import asyncio
import functools
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, TypeVar, cast

from pydantic import BaseModel

from rag_selectivity.errors import GradingError
from rag_selectivity.grading.gate import LONGEST_BACKOFF, Gate, Stopped
from rag_selectivity.grading.judge import ADAPTED, PASSING, Ask, Judge, JudgeFailure, Message, Reply, opened
from rag_selectivity.grading.reading import Unreadable, answer_text
from rag_selectivity.results.usage import Usage
from rag_selectivity.wording import counted, visible

P = ParamSpec("P")
T = TypeVar("T")

#: How often a task may be asked for an answer that can be read.
_READINGS = 3
#: How often a task is asked after a failure that seems to last.
_LASTING = 2
#: A rate limit concerns all tasks, so that one task gets so many times as many attempts as for another failure.
_RATE_LIMITED = 4
#: A limit that cut an answer is raised once, by this factor.
_MORE_TOKENS = 4
#: An endpoint that has not answered for so long, and has failed so often, is down.
_DOWN_SECONDS, _DOWN_FAILURES = 30.0, 20
_FEWEST_FAILURES = 5
#: Seconds for the requests under way after Ctrl-C.
_GRACE = 1.0
_LONGEST_ANSWER_KEPT = 500
#: What to try when every request fails for the same reason.
_ADVICE = {
    "off_schema": "Try a larger model, a lower judge.temperature or a larger judge.max_answer_tokens",
    "cut": "Give a larger judge.max_answer_tokens, or use a model that reasons less",
    "refusal": "Try another model, or a rubric in plainer words",
    "content_filter": "Try another endpoint, or one whose filter can be turned off",
    "timeout": "Give a longer judge.timeout or a lower --concurrency",
    "too_long": "Shorten the passages, lower --batch, or serve the model with a larger context",
    "rejected": "Read the message of the endpoint, and change the options that it names",
}


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """What a judge is asked, and how its reply is read. Grades, claims and answers are all asked as tasks.

    Attributes
    ----------
    key : object
        Where the store keeps the answer, for whoever stores it.
    messages, schema
    read : function
        Makes the answer of a reply, or raises Unreadable, whose `part` is taken if no reply is better.
    answer_tokens : int
        Tokens added to the limit of answers that all tasks share.
    repeat : bool
        Whether to ask again after an answer that is cut or cannot be read. If not, the caller asks in another way, and
        such an answer does not count as a sign that the endpoint is useless.
    answer : object, optional
        The answer, where it is known without the judge: nothing is sent.
    """

    key: Any
    messages: Sequence[Message]
    schema: type[BaseModel]
    read: Callable[[Reply], T]
    answer_tokens: int = 0
    repeat: bool = True
    answer: T | None = None


@dataclass(slots=True)
class Outcome(Generic[T]):
    """A task under way or done: what was read or why it failed, and the tokens, cost, seconds and attempts so far."""

    task: Task[T]
    messages: Sequence[Message]
    read: T | None
    attempts: int = 0
    unread: int = 0
    more_tokens: int = 1
    sent_tokens: int = 0
    problem: JudgeFailure | None = None
    reply: Reply | None = None
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    seconds: float = 0.0

    @property
    def answer(self) -> T | None:
        """What was read of the replies, unless the task failed."""
        return None if self.problem is not None else self.read

    @property
    def failure(self) -> str | None:
        """The kind of the failure."""
        return None if self.problem is None else self.problem.kind

    def count(self, usage: Usage | None, cost: float | None) -> None:
        """Count an attempt, and what it took."""
        self.attempts += 1
        self.usage += usage or Usage()
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost

    def correct(self, problem: JudgeFailure) -> None:
        """Show the judge its answer and what is wrong with it."""
        self.messages = [
            *self.task.messages,
            Message(role="assistant", content=(problem.answer or "")[:4000]),
            Message(role="user", content=f"That answer is not valid: {problem}. Answer again, with valid JSON only."),
        ]

    def record(self, sharing: int = 1) -> dict[str, Any]:
        """What the task took and why it failed, as a stored label or answer has it; of several, the share of each."""
        problem, reply = self.problem, self.reply
        answer = None if problem is None else problem.answer
        return {
            "prompt_tokens": self.usage.prompt_tokens // sharing,
            "completion_tokens": self.usage.completion_tokens // sharing,
            "cost": None if self.cost is None else self.cost / sharing,
            "seconds": round(self.seconds, 4),
            "attempts": self.attempts,
            "served_model": None if reply is None else reply.model,
            "way": None if reply is None else reply.way,
            "failure": self.failure,
            "error": None if problem is None else str(problem),
            "last_answer": None if answer is None else answer[:_LONGEST_ANSWER_KEPT],
        }


#: Stores an outcome, and returns the number of pairs that it finishes, by an answer or a failure.
Storing = Callable[[Outcome[Any]], Awaitable[int]]


class Runner:
    """Asks a judge, with the limits and the budget of a gate.

    Attributes
    ----------
    gate : Gate
    answered, failed : int
        What was done so far, in pairs.
    errors : {kind of failure: pairs}
    last_error, last_answer : str or None
        The message of the last failure, and what the judge said.
    served : set of str
        The models that the server named.
    way : str or None
        How the server was asked, as JSON.
    needs_answer : bool
        Whether a run without any answer is an error, whose failures are not stored: nothing was known before.
    bar : tqdm or None
        Shows what is done of what this judge is asked.
    """

    needs_answer = False

    def __init__(self, judge: Judge, gate: Gate, bar: Any = None) -> None:
        self.gate = gate
        self.limits = gate.limits
        self.answered = self.failed = 0
        self.errors: Counter[str] = Counter()
        self.last_error: str | None = None
        self.last_answer: str | None = None
        self.served: set[str] = set()
        self.way: str | None = None
        self._sending: set[asyncio.Task[Any]] = set()
        self.turn_to(judge, bar)

    def turn_to(self, judge: Judge, bar: Any = None) -> None:
        """Ask this judge from now on, of which nothing is known yet."""
        self.judge = judge
        self._judge_asks: Ask = judge.ask
        self.bar = bar
        self._more_tokens = 1
        self._same: tuple[str | None, int] = (None, 0)
        self._held: list[Outcome[Any]] = []
        self._has_answered = False
        self._silence: tuple[float, int] = (time.monotonic(), 0)

    async def run(self, tasks: Iterator[Task[Any]], store: Storing) -> None:
        """Ask the tasks; a worker begins its next task when the outcome of the last one is stored.

        A failure is stored after the next answer, or at the end: if all tasks fail for the same reason, the pairs are
        not the cause, and these failures are not stored.
        """
        failure: list[BaseException] = []

        async def work() -> None:
            try:
                while self.gate.stop is None and (task := next(tasks, None)) is not None:
                    outcome, start = Outcome(task, task.messages, task.answer), time.monotonic()
                    if task.answer is not None:
                        self._count(outcome, await store(outcome))
                        continue
                    if not await self._ask(outcome):
                        continue
                    outcome.seconds = time.monotonic() - start
                    if outcome.failure is None:
                        await self._settle(store, outcome)
                    elif task.repeat or outcome.failure in PASSING:
                        self._held.append(outcome)
                    else:
                        self._count(outcome, await store(outcome))
            except BaseException as error:
                self.gate.shut(f"{type(error).__name__}: {error}", "error")
                failure.append(error)

        async with opened(self.judge) as self._judge_asks:
            await asyncio.gather(*(work() for _ in range(self.limits.concurrency)))
            for error in failure:
                if not isinstance(error, asyncio.CancelledError):
                    raise error
            if failure:
                raise asyncio.CancelledError
            cause = None if self.gate.stop is None else self.gate.stop.cause
            if cause in ("budget", "interrupted") or (cause is None and (self._has_answered or not self.needs_answer)):
                await self._settle(store)

    def interrupt(self) -> None:
        """Send nothing more; the requests under way have one second to end."""
        self.gate.shut("interrupted", "interrupted")
        asyncio.get_running_loop().call_later(_GRACE, lambda: [task.cancel() for task in self._sending])

    # -- one task ----------------------------------------------------------------------------------

    async def _ask(self, asked: Outcome[Any]) -> bool:
        """Ask a task, with all its attempts; False if the whole run has to stop."""
        while True:
            try:
                reply = await self._send(asked)
            except (Stopped, asyncio.CancelledError):
                if self.gate.stop is None:
                    raise
                return False
            except JudgeFailure as failure:
                if failure.kind == ADAPTED:
                    continue
                if failure.kind == "fatal" or (failure.kind == "unreachable" and not self._has_answered):
                    self.gate.shut(str(failure), "fatal")
                    return False
                asked.problem = failure
                asked.count(failure.usage, self.gate.budget.price(failure.usage))
                self._note_failure(asked, failure)
                if await self._may_pass(asked, failure):
                    continue
                return self.gate.stop is None
            priced = self.gate.budget.price(reply.usage)
            asked.reply = reply
            asked.count(reply.usage, reply.cost if priced is None else priced)
            asked.problem = self._read(asked, reply)
            if asked.problem is not None:
                self._note_failure(asked, asked.problem)
                if self._ask_again(asked, asked.problem):
                    continue
                if asked.read is not None:
                    asked.problem = None
            if asked.problem is None:
                self._note_answer(asked, reply)
            return True

    async def _may_pass(self, asked: Outcome[Any], failure: JudgeFailure) -> bool:
        """Wait, and say whether to send the request again. After a rate limit the gate waits, not this."""
        if failure.kind == "rate_limit":
            return asked.attempts < _RATE_LIMITED * self.limits.attempts
        attempts = min(_LASTING, self.limits.attempts) if failure.lasting else self.limits.attempts
        if failure.kind not in PASSING or asked.attempts >= attempts:
            return False
        return await self.gate.sleep(min(LONGEST_BACKOFF, self.limits.backoff * 2 ** (asked.attempts - 1)))

    async def _send(self, asked: Outcome[Any]) -> Reply:
        again = asked.sent_tokens > 0

        def answer_tokens() -> int:
            asked.sent_tokens = max(self._more_tokens, asked.more_tokens)
            return (self.limits.max_answer_tokens + asked.task.answer_tokens) * asked.sent_tokens

        sending = cast("asyncio.Task[Any]", asyncio.current_task())
        self._sending.add(sending)
        try:
            return await self.gate.request(
                self._judge_asks, asked.messages, asked.task.schema, answer_tokens, again=again
            )
        finally:
            self._sending.discard(sending)

    def _read(self, asked: Outcome[T], reply: Reply) -> JudgeFailure | None:
        """Read the answer of a reply, or what can be read of it, into `asked`; the failure if it is not whole."""
        try:
            asked.read = asked.task.read(reply)
        except Unreadable as error:
            asked.read = asked.read if error.part is None else cast("T", error.part)
            text = answer_text(reply)
            if reply.finish == "length":
                return JudgeFailure("the answer was cut at its limit of tokens", "cut", answer=text)
            if reply.finish == "content_filter":
                return JudgeFailure("the endpoint's content filter refused the answer", "content_filter", answer=text)
            return JudgeFailure(str(error), "off_schema", answer=text)
        return None

    def _ask_again(self, asked: Outcome[Any], problem: JudgeFailure) -> bool:
        """Whether to ask again after an answer that could not be read; if so, `asked` is prepared for it."""
        nothing_read = not self._has_answered and asked.read is None
        if nothing_read and problem.kind == "off_schema" and hasattr(self.judge, "unreadable"):
            self.judge.unreadable()
        if not asked.task.repeat:
            return False
        if problem.kind == "cut" and asked.sent_tokens == 1:
            asked.more_tokens = _MORE_TOKENS
            return True
        asked.unread += 1
        if problem.kind != "off_schema" or asked.unread >= min(_READINGS, self.limits.attempts):
            return False
        asked.correct(problem)
        return True

    # -- all tasks ---------------------------------------------------------------------------------

    def _note_answer(self, asked: Outcome[Any], reply: Reply) -> None:
        self._has_answered = True
        self._same = (None, 0)
        self._silence = (time.monotonic(), 0)
        # A limit that cut this answer would cut others too, so all tasks get the larger one.
        self._more_tokens = max(self._more_tokens, asked.more_tokens)
        self.way = reply.way
        if reply.model:
            self.served.add(reply.model)
        self.gate.probed()

    def _note_failure(self, asked: Outcome[Any], failure: JudgeFailure) -> None:
        """Stop the run if the endpoint is down, or every answer is useless for the same reason."""
        if failure.kind not in ("off_schema", "rate_limit", "server_error", "unreachable"):
            # The endpoint understands the request, or is too slow for one request at a time.
            self.gate.probed()
        if failure.kind not in PASSING and not asked.task.repeat:
            return
        kind, count = self._same
        count = count + 1 if kind == failure.kind else 1
        self._same = (failure.kind, count)
        if failure.kind in ("rate_limit", "server_error", "unreachable") and not failure.lasting:
            since, failures = self._silence
            self._silence = (since, failures + 1)
            seconds = time.monotonic() - since
            patience = min(_DOWN_SECONDS, self.limits.max_wait)
            down = failure.kind != "rate_limit" and failures + 1 >= _DOWN_FAILURES and seconds >= patience
            if down or (failures + 1 >= _FEWEST_FAILURES and seconds >= self.limits.max_wait):
                last = str(failure).rstrip(".")
                why = f"no answer for {seconds:.0f} s, the last failure: {last}; is the endpoint up? Go on later"
                self.gate.shut(why, "endpoint")
        elif count >= self.limits.give_up_after:
            self._stop_for(f"{count} requests in a row failed for the same reason", failure)

    def _stop_for(self, what: str, failure: JudgeFailure) -> None:
        """Stop the run with a cause, an example and what to try."""
        shown = f" The last answer: {failure.answer[:200]!r}." if failure.answer else ""
        advice = _ADVICE.get(failure.kind, "Look at the endpoint")
        self.gate.shut(f"{what} ({failure.kind}: {failure}).{shown} {advice}", "endpoint")

    def conclude(self) -> None:
        """Stop for the reason of most of the failures, if an answer is needed and all tasks have failed."""
        if self.gate.stop is not None or not self._held:
            return
        problems = [outcome.problem for outcome in self._held if outcome.problem is not None]
        kind, count = Counter(problem.kind for problem in problems).most_common(1)[0]
        last = next(problem for problem in reversed(problems) if problem.kind == kind)
        self._stop_for(f"{count} of {counted(len(problems), 'call')} failed", last)

    async def _settle(self, store: Storing, *outcomes: Outcome[Any]) -> None:
        """Store the failures that are held, and these outcomes behind them."""
        held, self._held = self._held, []
        for outcome in (*held, *outcomes):
            self._count(outcome, await store(outcome))

    def _count(self, outcome: Outcome[Any], pairs: int) -> None:
        if outcome.failure is None:
            self.answered += pairs
        elif pairs:
            self.failed += pairs
            self.errors[outcome.failure] += pairs
            self.last_error = f"{outcome.failure}: {outcome.problem}"
            self.last_answer = outcome.record()["last_answer"]
        if self.bar is not None:
            spending = self.gate.spending
            failed = ", ".join(f"{count} {kind}" for kind, count in self.errors.items())
            spent = f"{spending.usage.total:,} tokens" if spending.cost is None else f"cost {spending.cost:.4g}"
            self.bar.set_postfix_str(", ".join(filter(None, [failed and f"failed: {failed}", spent])), refresh=False)
            self.bar.update(pairs)

    # -- results -----------------------------------------------------------------------------------

    def told(self) -> dict[str, Any]:
        """What the results of all runs say: what was spent, what failed, and why the run stopped."""
        spending, stop = self.gate.spending, self.gate.stop
        return {
            "usage": spending.usage,
            "cost": spending.cost,
            "failed": self.failed,
            "errors": dict(self.errors),
            "last_error": self.last_error,
            "stopped": None if stop is None else stop.why,
            "stopped_by": None if stop is None else stop.cause,
        }

    def raise_if_fatal(self, more: str = "") -> None:
        """A GradingError if no request can succeed, or if an answer is needed and none came."""
        stop = self.gate.stop
        if stop is not None and stop.cause == "fatal":
            raise GradingError(f"{stop.why}; nothing more was sent{more} (how-to: stopped-grading)")
        if stop is not None and stop.cause == "endpoint" and self.needs_answer and not self._has_answered:
            why = "none of the pairs was graded, and all of them will be asked for again"
            raise GradingError(f"{why}: {stop.why} (how-to: stopped-grading)")


@contextmanager
def asking(judge: Judge, gate: Gate, total: int, what: str, progress: bool) -> Iterator[Runner]:
    """A runner for a judge, with a progress line on a terminal: what is done, failed and spent, rate and time left.

    The first Ctrl-C lets requests under way land for a second; the second one ends everything at once.
    """
    bar = None
    if progress and sys.stderr.isatty():
        with suppress(ImportError):
            from tqdm import tqdm

            bar = tqdm(total=total, desc=visible(what), unit="pair", dynamic_ncols=True)
    runner, loop = Runner(judge, gate, bar), asyncio.get_running_loop()

    def interrupt() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        runner.interrupt()

    # Not in the main thread, or on a platform without signal handlers: Ctrl-C raises KeyboardInterrupt as usual.
    with suppress(NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield runner
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGINT)
        if bar is not None:
            bar.close()


#: The event loop that the next call takes, by process.
_KEPT: dict[int, asyncio.Runner] = {}


def _run_in_kept_loop(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, in the loop of the last call: the connections of a model's client die with their loop."""
    last = _KEPT.pop(os.getpid(), None)
    with ExitStack() as to_close:
        runner = to_close.enter_context(last or asyncio.Runner(loop_factory=asyncio.new_event_loop))
        result = runner.run(work, context=copy_context())
        # Threads that call at the same time have a loop each, and one of these is kept.
        if _KEPT.setdefault(os.getpid(), runner) is runner:
            to_close.pop_all()
        return result


def blocking(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The coroutine function `aNAME` as the function `NAME` for ordinary code, with its signature and documentation."""

    @functools.wraps(work)
    def run(*args: P.args, **options: P.kwargs) -> T:
        async def awaited(on_interrupt: Any = None) -> T:
            if on_interrupt is signal.default_int_handler and threading.current_thread() is threading.main_thread():
                # asyncio delays Ctrl-C until the next await, and there is none while files are read before the first.
                signal.signal(signal.SIGINT, on_interrupt)
            return await work(*args, **options)

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return _run_in_kept_loop(awaited(signal.getsignal(signal.SIGINT)))
        # An event loop runs, as in a notebook.
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(_run_in_kept_loop, awaited()).result()

    run.__name__ = run.__qualname__ = work.__name__.removeprefix("a")
    return run
