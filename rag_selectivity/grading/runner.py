"""The runner: makes many calls to a judge at the same time, each until it has an answer or has failed."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel

from rag_selectivity.grading.answers import Unreadable, answer_text
from rag_selectivity.grading.gate import Gate, Stop, Stopped, prompt_bytes
from rag_selectivity.grading.judge import ADAPTED, PASSING, Judge, JudgeFailure, Message, Reply, Request, opened
from rag_selectivity.results.usage import Usage

T = TypeVar("T")

#: How often a call may be asked for an answer that can be read.
_READINGS = 3
#: How often a call is asked after a failure that seems to last.
_LASTING = 2
#: A rate limit concerns all calls, so that one call gets so many times as many attempts as for another failure.
_RATE_LIMITED = 4
#: A limit that cut an answer is raised once, by this factor.
_MORE_TOKENS = 4
_LONGEST_BACKOFF = 60.0
#: An endpoint that has not answered for so long, and has failed so often, is down.
_DOWN_SECONDS, _DOWN_FAILURES = 30.0, 20
_FEWEST_FAILURES = 5
#: Seconds for the requests under way after Ctrl-C.
_GRACE = 1.0
_LONGEST_ANSWER_KEPT = 500
#: What to try when every request fails for the same reason.
_ADVICE = {
    "off_schema": "Try a larger model, a lower --temperature or a larger --max-answer-tokens",
    "cut": "Give a larger --max-answer-tokens, or use a model that reasons less",
    "refusal": "Try another model, or a rubric in plainer words",
    "content_filter": "Try another endpoint, or one whose filter can be turned off",
    "timeout": "Give a longer --timeout or a lower --concurrency",
    "too_long": "Shorten the passages, lower --batch, or serve the model with a larger context",
    "rejected": "Read the message of the endpoint, and change the options that it names",
}


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """Messages and a schema for the judge, and how to read the answer.

    Attributes
    ----------
    messages, schema
    subject : object
        What the answer is about, for the caller.
    read : function
        Makes the answer of a reply, or raises Unreadable, whose `part` is taken if no reply is better.
    answer_tokens : int
        Tokens added to the limit of answers that all calls share.
    repeat : bool
        Whether to ask again after an answer that is cut or cannot be read. If not, the caller asks in another way, and
        such an answer does not count as a sign that the endpoint is useless.
    answer : object, optional
        The answer, where it is known without the judge: nothing is sent.
    """

    messages: Sequence[Message]
    schema: type[BaseModel]
    subject: Any
    read: Callable[[Reply], T]
    answer_tokens: int = 0
    repeat: bool = True
    answer: T | None = None


class Outcome(Generic[T]):
    """A call under way or done: an answer or a failure, and the tokens, cost, seconds and attempts so far."""

    def __init__(self, call: Call[T]) -> None:
        self.call = call
        self.messages: Sequence[Message] = call.messages
        self.read: T | None = call.answer
        self.attempts = self.unread = 0
        self.more_tokens = self.sent_tokens = 1
        self.problem: JudgeFailure | None = None
        self.reply: Reply | None = None
        self.usage = Usage()
        self.cost: float | None = None
        self.seconds = 0.0
        self._started = time.monotonic()

    @property
    def answer(self) -> T | None:
        """What was read of the replies, unless the call failed."""
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

    def done(self) -> Outcome[T]:
        """The outcome, with the seconds that it took."""
        self.seconds = time.monotonic() - self._started
        return self

    def correct(self, problem: JudgeFailure) -> None:
        """Show the judge its answer and what is wrong with it."""
        self.messages = [
            *self.call.messages,
            Message(role="assistant", content=(problem.answer or "")[:4000]),
            Message(role="user", content=f"That answer is not valid: {problem}. Answer again, with valid JSON only."),
        ]

    def taken(self, sharing: int = 1) -> dict[str, Any]:
        """What the call took as fields of a stored label or answer; of a call for several, the share of each."""
        return {
            "prompt_tokens": self.usage.prompt_tokens // sharing,
            "completion_tokens": self.usage.completion_tokens // sharing,
            "cost": None if self.cost is None else self.cost / sharing,
            "seconds": round(self.seconds, 4),
            "attempts": self.attempts,
            "served_model": None if self.reply is None else self.reply.model,
            "way": None if self.reply is None else self.reply.way,
        }

    @property
    def failed(self) -> dict[str, Any]:
        """Why there is no answer, as fields of a stored label or answer."""
        problem = self.problem
        last = None if problem is None or problem.answer is None else problem.answer[:_LONGEST_ANSWER_KEPT]
        return {"failure": self.failure, "error": None if problem is None else str(problem), "last_answer": last}


@dataclass(slots=True)
class Progress:
    """What a runner has done so far, in pairs."""

    answered: int = 0
    failed: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    last_error: str | None = None
    last_answer: str | None = None
    served: set[str] = field(default_factory=set)
    way: str | None = None


Watch = Callable[["Runner", int], None]


class Runner:
    """Asks a judge.

    Parameters
    ----------
    judge : Judge
    gate : Gate
    watch : callable, optional
        Called after every call, with the runner and the number of pairs that the call finished.
    """

    def __init__(self, judge: Judge, gate: Gate, watch: Watch | None = None) -> None:
        self.judge = judge
        self.gate = gate
        self.prices = gate.budget.prices
        self.limits = gate.limits
        self.progress = Progress()
        self._watch = watch
        self._sending: set[asyncio.Task[Any]] = set()
        self._more_tokens = 1
        self._same: tuple[str | None, int] = (None, 0)
        self._held: list[Outcome[Any]] = []
        self._has_answered = False
        self._silence: tuple[float, int] = (time.monotonic(), 0)

    @property
    def stop(self) -> Stop | None:
        """Why the run has stopped; None while it goes on."""
        return self.gate.stop

    async def run(self, calls: Iterator[Call[Any]], store: Callable[[Outcome[Any]], Awaitable[int]]) -> None:
        """Make the calls; a worker begins its next call when the outcome of the last one is stored.

        `store` stores an outcome and returns the number of pairs that it finishes, by an answer or a failure. A failure
        is stored after the next answer, or at the end: if all calls fail for the same reason, the pairs are not the
        cause, and these failures are not stored.
        """
        failure: list[BaseException] = []

        async def work() -> None:
            try:
                while self.stop is None:
                    call = next(calls, None)
                    if call is None:
                        return
                    if call.answer is not None:
                        self._count(known := Outcome(call).done(), await store(known))
                        continue
                    outcome = await self._ask(call)
                    if outcome is None:
                        continue
                    if outcome.failure is not None and (call.repeat or outcome.failure in PASSING):
                        self._held.append(outcome)
                    else:
                        await self._settle(store, outcome)
            except BaseException as error:
                self.gate.shut(f"{type(error).__name__}: {error}", "error")
                failure.append(error)

        async with opened(self.judge):
            await asyncio.gather(*(work() for _ in range(self.limits.concurrency)))
            for error in failure:
                if not isinstance(error, asyncio.CancelledError):
                    raise error
            if failure:
                raise asyncio.CancelledError
            if self.stop is None or self.stop.cause in ("budget", "interrupted"):
                await self._settle(store)

    def interrupt(self) -> None:
        """Send nothing more; the requests under way have one second to end."""
        self.gate.shut("interrupted", "interrupted")
        asyncio.get_running_loop().call_later(_GRACE, lambda: [task.cancel() for task in self._sending])

    # -- one call ----------------------------------------------------------------------------------

    async def _ask(self, call: Call[T]) -> Outcome[T] | None:
        """Make a call, with all its attempts; None if the whole run has to stop."""
        asked = Outcome(call)
        while True:
            try:
                reply = await self._send(asked)
            except (Stopped, asyncio.CancelledError):
                if self.stop is None:
                    raise
                return None
            except JudgeFailure as failure:
                if failure.kind == ADAPTED:
                    continue
                if failure.kind == "fatal" or (failure.kind == "unreachable" and not self._has_answered):
                    self.gate.shut(str(failure), "fatal")
                    return None
                asked.problem = failure
                asked.count(failure.usage, self._price(failure.usage))
                self._note_failure(asked, failure)
                if not await self._may_pass(asked, failure):
                    return None if self.stop is not None else asked.done()
                continue
            priced = self._price(reply.usage)
            asked.reply = reply
            asked.count(reply.usage, reply.cost if priced is None else priced)
            problem = asked.problem = self._read(asked, reply)
            if problem is not None:
                self._note_failure(asked, problem)
                if self._ask_again(asked, problem):
                    continue
                if asked.read is not None:
                    asked.problem = None
            if asked.problem is None:
                self._note_answer(asked, reply)
            return asked.done()

    def _price(self, usage: Usage | None) -> float | None:
        return None if usage is None or self.prices is None else self.prices.of(usage)

    async def _may_pass(self, asked: Outcome[Any], failure: JudgeFailure) -> bool:
        """Wait, and say whether to send the request again. After a rate limit the gate waits, not this."""
        if failure.kind == "rate_limit":
            return asked.attempts < _RATE_LIMITED * self.limits.attempts
        attempts = min(_LASTING, self.limits.attempts) if failure.lasting else self.limits.attempts
        if failure.kind not in PASSING or asked.attempts >= attempts:
            return False
        try:
            await self.gate.sleep(min(_LONGEST_BACKOFF, self.limits.backoff * 2 ** (asked.attempts - 1)))
        except Stopped:
            return False
        return True

    async def _send(self, asked: Outcome[Any]) -> Reply:
        def answer_tokens() -> int:
            asked.sent_tokens = max(self._more_tokens, asked.more_tokens)
            return (self.limits.answer_tokens + asked.call.answer_tokens) * asked.sent_tokens

        def send(tokens: int) -> Awaitable[Reply]:
            return self.judge.ask(Request(asked.messages, asked.call.schema, tokens))

        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._sending.add(task)
        try:
            return await self.gate.request(prompt_bytes(asked.messages), answer_tokens, send, self.prices)
        finally:
            self._sending.discard(task)

    def _read(self, asked: Outcome[T], reply: Reply) -> JudgeFailure | None:
        """Read the answer of a reply, or what can be read of it, into `asked`; the failure if it is not whole."""
        try:
            asked.read = asked.call.read(reply)
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
        if not asked.call.repeat:
            return False
        if problem.kind == "cut" and asked.sent_tokens == 1:
            asked.more_tokens = _MORE_TOKENS
            return True
        asked.unread += 1
        if problem.kind != "off_schema" or asked.unread >= min(_READINGS, self.limits.attempts):
            return False
        asked.correct(problem)
        return True

    # -- all calls ---------------------------------------------------------------------------------

    def _note_answer(self, asked: Outcome[Any], reply: Reply) -> None:
        self._has_answered = True
        self._same = (None, 0)
        self._silence = (time.monotonic(), 0)
        # A limit that cut this answer would cut others too, so all calls get the larger one.
        self._more_tokens = max(self._more_tokens, asked.more_tokens)
        self.progress.way = reply.way
        if reply.model:
            self.progress.served.add(reply.model)
        self.gate.probed()

    def _note_failure(self, asked: Outcome[Any], failure: JudgeFailure) -> None:
        """Stop the run if the endpoint is down, or every answer is useless for the same reason."""
        if failure.kind not in ("off_schema", "rate_limit", "server_error", "unreachable"):
            # The endpoint understands the request, or is too slow for one request at a time.
            self.gate.probed()
        if failure.kind not in PASSING and not asked.call.repeat:
            return
        kind, count = self._same
        self._same = (failure.kind, count + 1 if kind == failure.kind else 1)
        count = self._same[1]
        if failure.kind in ("rate_limit", "server_error", "unreachable") and not failure.lasting:
            since, failures = self._silence
            self._silence = (since, failures + 1)
            seconds = time.monotonic() - since
            patience = min(_DOWN_SECONDS, self.limits.max_wait)
            down = failure.kind != "rate_limit" and failures + 1 >= _DOWN_FAILURES and seconds >= patience
            if down or (failures + 1 >= _FEWEST_FAILURES and seconds >= self.limits.max_wait):
                last = str(failure).rstrip(".")
                self.gate.shut(
                    f"no answer for {seconds:.0f} s, the last failure: {last}; is the endpoint up? Go on later",
                    "endpoint",
                )
        elif count >= self.limits.give_up_after:
            shown = f" The last answer: {failure.answer[:200]!r}." if failure.answer else ""
            advice = _ADVICE.get(failure.kind, "Look at the endpoint")
            why = f"{count} requests in a row failed for the same reason ({failure.kind}: {failure})"
            self.gate.shut(f"{why}.{shown} {advice}", "endpoint")

    async def _settle(self, store: Callable[[Outcome[Any]], Awaitable[int]], *outcomes: Outcome[Any]) -> None:
        """Store the failures that are held, and these outcomes behind them."""
        held, self._held = self._held, []
        for outcome in (*held, *outcomes):
            self._count(outcome, await store(outcome))

    def _count(self, outcome: Outcome[Any], pairs: int) -> None:
        progress = self.progress
        if outcome.failure is None:
            progress.answered += pairs
        elif pairs:
            progress.failed += pairs
            progress.errors = dict(Counter(progress.errors) + Counter({outcome.failure: pairs}))
            progress.last_error = f"{outcome.failure}: {outcome.problem}"
            progress.last_answer = outcome.failed["last_answer"]
        if self._watch is not None:
            self._watch(self, pairs)
