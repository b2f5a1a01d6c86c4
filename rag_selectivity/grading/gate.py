"""The gate that every request to a judge passes: it counts requests, keeps rates and budgets, and makes them wait.

One gate may serve several threads and event loops; its budget then holds for all of them together.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from rag_selectivity.errors import warn
from rag_selectivity.grading.judge import JudgeFailure, Reply
from rag_selectivity.grading.limits import Budget, Limits, Prices
from rag_selectivity.log import LOG
from rag_selectivity.results.usage import Usage
from rag_selectivity.tables.cells import shown
from rag_selectivity.wording import counted

_FIRST_CONCURRENCY = 4
_WINDOW = 60.0
#: Requests may arrive at the endpoint closer together than they were sent.
_PACE_MARGIN = 1.01
_LONGEST_BACKOFF = 60.0
#: Tokens in a byte, until the endpoint has counted a prompt; four characters are about one token.
_TOKENS_IN_A_BYTE = 0.25
_MARGIN = 1.1
#: No request costs more, in any currency.
_HIGHEST_COST = 1e9
_MAY_BE_PAID = ("timeout", "server_error")


class Stopped(Exception):
    """The gate is shut: no request is sent any more."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run stopped.

    Attributes
    ----------
    why : str
        In words.
    cause : {"budget", "endpoint", "fatal", "interrupted", "error"}
        `budget`: no budget is left for another request. `endpoint`: the endpoint is down, asks for too long a wait, or
        gives no usable answer. `fatal`: no request can succeed. `error`: an exception in this process.
    """

    why: str
    cause: str


@dataclass(slots=True)
class Spending:
    """What all requests used.

    Attributes
    ----------
    requests : int
        Requests sent, whatever they were for.
    usage : Usage
    counted, estimated : int
        Requests whose tokens the endpoint counted, and those whose tokens are estimated.
    cost : float or None
        In the currency of the prices; None without prices, unless the endpoint says what a request costs.
    cost_from : {"prices", "server"} or None
    """

    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    counted: int = 0
    estimated: int = 0
    cost: float | None = None
    cost_from: str | None = None

    @property
    def usage_from(self) -> str | None:
        """Who counted the tokens: "server", "estimate", "both"; None before the first request."""
        if self.counted and self.estimated:
            return "both"
        return "server" if self.counted else "estimate" if self.estimated else None


@dataclass(eq=False, slots=True)
class _Ticket:
    """A request that may be sent, and what is reserved for it."""

    worst: Usage
    prompt_bytes: int
    answer_tokens: int
    prices: Prices | None
    cost: float = 0.0
    sent: float = 0.0


_Waiter = asyncio.Future[None]


def _finish(waiter: _Waiter) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _wake(waiter: _Waiter) -> None:
    """End the waiting, from whatever thread."""
    waiter.get_loop().call_soon_threadsafe(_finish, waiter)


class Gate:
    """Decides when a request may be sent, so that the limits and the budget hold over all requests.

    Parameters
    ----------
    limits : Limits
    budget : Budget

    Attributes
    ----------
    spending : Spending
    stop : Stop or None
        Why no further request is sent; None while requests are sent.
    concurrency : int
        The most requests that may be under way now.
    """

    def __init__(self, limits: Limits = Limits(), budget: Budget = Budget()) -> None:
        self.limits = limits
        self.budget = budget
        self._has_ignored = False
        self.spending = Spending()
        self.stop: Stop | None = None
        self.concurrency = 1
        self._probing = True
        self._lock = threading.RLock()
        self._waiters: deque[_Waiter] = deque()
        self._under_way: set[_Ticket] = set()
        self._taken: deque[tuple[float, int]] = deque()
        self._not_before = 0.0
        self._next_turn = 0.0
        self._halved = 0.0
        self._holds_in_a_row = 0
        self._tokens_in_a_byte = _TOKENS_IN_A_BYTE
        self._longest_answer = 0
        self._dearest_token = 0.0
        self._random = random.Random()

    # -- for those who ask -------------------------------------------------------------------------

    async def request(
        self,
        prompt_bytes: int,
        answer_tokens: Callable[[], int],
        send: Callable[[int], Awaitable[Reply]],
        prices: Prices | None = None,
    ) -> Reply:
        """Send one request when it is its turn.

        Parameters
        ----------
        prompt_bytes : int
            Length of the messages in UTF-8.
        answer_tokens : function
            Returns the most tokens of the answer. It is called when it is the request's turn, since they may change.
        send : async function
            Sends the request; its argument is the most tokens of the answer.
        prices : Prices, optional
            Of the model; None if they are unknown.

        Raises
        ------
        Stopped
            If the run has stopped, so that the request was not sent.
        JudgeFailure
            If the request failed.
        """
        ticket = await self._enter(prompt_bytes, answer_tokens, prices)
        usage, ended = ticket.worst, "answered"
        cost: float | None = None
        try:
            async with asyncio.timeout(self.limits.timeout):
                reply = await send(ticket.answer_tokens)
            reply = self._with_possible_usage(reply)
            usage, cost = reply.usage or self._estimate(ticket, reply), reply.cost
            self._succeeded(ticket, reply)
            return reply
        except asyncio.CancelledError:
            usage, ended = self._cancelled(ticket), "given up"
            raise
        except TimeoutError:
            late = JudgeFailure(f"no answer within {self.limits.timeout:g} s", "timeout")
            ended = "no answer in time"
            self._failed(ticket, late)
            raise late from None
        except JudgeFailure as failure:
            ended = f"{failure.kind}: {failure}"
            if failure.usage is not None and not failure.usage.is_possible:
                self._say_ignored(failure.usage)
                failure.usage = None
            # The endpoint may have answered in full and may charge for it, although its reply was lost.
            if failure.usage is not None or failure.kind not in _MAY_BE_PAID:
                usage = failure.usage or Usage()
            self._failed(ticket, failure)
            raise
        finally:
            self._leave(ticket, usage, cost)
            if LOG.isEnabledFor(logging.DEBUG):
                seconds = time.monotonic() - ticket.sent
                LOG.debug("request: %s, %.3f s, %s", ended, seconds, usage)

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds.

        Raises
        ------
        Stopped
            As soon as the gate is shut.
        """
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            with self._lock:
                if self.stop is not None:
                    raise Stopped
                waiter = self._waiter()
            await self._wait(waiter, left)

    def shut(self, why: str, cause: str) -> None:
        """Send no further request; of several reasons, the first one is kept."""
        with self._lock:
            self.stop = self.stop or Stop(why, cause)
        self._wake_all()

    def reopen(self) -> None:
        """Send requests again, unless a budget was the reason to stop."""
        with self._lock:
            if self.stop is not None and self.stop.cause != "budget":
                self.stop = None

    def probed(self) -> None:
        """The endpoint has shown what it can do: several requests may go at once."""
        with self._lock:
            if self._probing:
                self._probing = False
                self.concurrency = min(_FIRST_CONCURRENCY, self.limits.concurrency)
        self._wake_all()

    # -- one request -------------------------------------------------------------------------------

    async def _enter(self, prompt_bytes: int, answer_tokens: Callable[[], int], prices: Prices | None) -> _Ticket:
        while True:
            with self._lock:
                if self.stop is not None:
                    raise Stopped
                ticket = self._ticket(prompt_bytes, answer_tokens(), prices)
                seconds, why = self._obstacle(ticket)
                if seconds == 0:
                    ticket.sent = now = time.monotonic()
                    self._under_way.add(ticket)
                    self.spending.requests += 1
                    if self.limits.rpm is not None:
                        self._next_turn = max(now, self._next_turn) + _WINDOW / self.limits.rpm * _PACE_MARGIN
                    return ticket
                if why is not None:
                    self.stop = Stop(why, "budget")
                else:
                    waiter = self._waiter()
            if why is not None:
                self._wake_all()
                raise Stopped
            await self._wait(waiter, seconds)

    def _ticket(self, prompt_bytes: int, answer_tokens: int, prices: Prices | None) -> _Ticket:
        prompt = int(prompt_bytes * self._tokens_in_a_byte * _MARGIN) + 16
        worst = Usage(prompt, max(answer_tokens, self._longest_answer))
        cost = worst.total * self._dearest_token if prices is None else prices.of(worst)
        return _Ticket(worst, prompt_bytes, answer_tokens, prices, cost)

    def _obstacle(self, ticket: _Ticket) -> tuple[float, str | None]:
        """Seconds to wait (0: none; infinite: until a request ends), and why the budget allows no request, if so."""
        now = time.monotonic()
        if self._under_way and len(self._under_way) >= self.concurrency:
            return float("inf"), None
        why = self._used_up(ticket)
        if why is not None:
            return float("inf"), None if self._under_way else why
        # The requests of --rpm are spaced evenly, so that no minute has too many.
        turn = 0.0 if self.limits.rpm is None else self._next_turn - now
        return max(0.0, self._not_before - now, turn, self._tokens_in(ticket, now)), None

    def _used_up(self, ticket: _Ticket) -> str | None:
        """Which budget this request could exceed, together with the requests under way; None if none."""
        budget = self.budget
        requests, spent_tokens = self.spending.requests, self.spending.usage.total
        spent = self.spending.cost or 0.0
        if budget.calls is not None and requests >= budget.calls:
            return f"the budget of {counted(budget.calls, 'request')} is used up"
        if budget.tokens is not None:
            tokens = ticket.worst.total + sum(each.worst.total for each in self._under_way)
            if spent_tokens + tokens > budget.tokens:
                return (
                    f"the budget of {budget.tokens:,} tokens (--max-tokens) is too small for another request: "
                    f"{spent_tokens:,.0f} are spent, and the next request may take {ticket.worst.total:,}"
                )
        if budget.cost is not None:
            cost = ticket.cost + sum(each.cost for each in self._under_way)
            if spent + cost > budget.cost:
                return (
                    f"the budget of {budget.cost:g} (--max-cost) is too small for another request: "
                    f"{spent:.6g} is spent, and the next request may cost {ticket.cost:.2g}"
                )
        return None

    def _tokens_in(self, ticket: _Ticket, now: float) -> float:
        """Seconds until --tpm allows this request. A request larger than --tpm is sent when a minute has no other."""
        if self.limits.tpm is None:
            return 0.0
        while self._taken and self._taken[0][0] <= now - _WINDOW:
            self._taken.popleft()
        room = self.limits.tpm - ticket.worst.total - sum(each.worst.total for each in self._under_way)
        over = sum(tokens for _, tokens in self._taken) - room
        if over <= 0:
            return 0.0
        for landed, tokens in self._taken:
            over -= tokens
            if over <= 0:
                return max(0.001, landed + _WINDOW - now)
        return float("inf") if self._under_way else max(0.0, self._taken[-1][0] + _WINDOW - now if self._taken else 0.0)

    def _leave(self, ticket: _Ticket, usage: Usage, cost: float | None) -> None:
        with self._lock:
            self._under_way.discard(ticket)
            spending = self.spending
            spending.usage += usage
            if ticket.prices is not None:
                spending.cost, spending.cost_from = (spending.cost or 0.0) + ticket.prices.of(usage), "prices"
            elif cost is not None:
                spending.cost, spending.cost_from = (spending.cost or 0.0) + cost, "server"
                if usage.total:
                    self._dearest_token = max(self._dearest_token, cost / usage.total)
            if self.limits.tpm is not None:
                self._taken.append((time.monotonic(), usage.total))
            everybody = self.budget.tokens is not None or self.budget.cost is not None or self.limits.tpm is not None
            awakened = [] if everybody else [self._waiters.popleft() for _ in range(min(2, len(self._waiters)))]
        if everybody:
            self._wake_all()
        for waiter in awakened:
            _wake(waiter)

    # -- what replies teach ------------------------------------------------------------------------

    def _with_possible_usage(self, reply: Reply) -> Reply:
        """The reply without tokens and a cost that no request can have taken."""
        usage = reply.usage if reply.usage is None or reply.usage.is_possible else None
        cost = reply.cost if reply.cost is None or 0 <= reply.cost <= _HIGHEST_COST else None
        if usage is reply.usage and cost is reply.cost:
            return reply
        self._say_ignored(reply.usage if usage is not reply.usage else reply.cost)
        return replace(reply, usage=usage, cost=cost)

    def _say_ignored(self, said: Any) -> None:
        with self._lock:
            first, self._has_ignored = not self._has_ignored, True
        if first:
            warn(
                f"the endpoint says that one request took {shown(said)}, which none can: such figures are ignored, "
                f"and the tokens are estimated",
                "usage-ignored",
                stacklevel=3,
            )

    def _succeeded(self, ticket: _Ticket, reply: Reply) -> None:
        with self._lock:
            self._holds_in_a_row = 0
            if self.budget.cost is not None and reply.cost is None and ticket.prices is None:
                why = "this endpoint does not say what a request costs, so a budget in money needs prices: give "
                self.stop = self.stop or Stop(f"{why}--price-in and --price-out", "fatal")
            if not self._probing and ticket.sent >= self._halved:
                self.concurrency = min(self.limits.concurrency, self.concurrency + 1)
            if reply.usage is None:
                self.spending.estimated += 1
                return
            self.spending.counted += 1
            self._longest_answer = max(self._longest_answer, reply.usage.completion_tokens)
            if ticket.prompt_bytes and reply.usage.prompt_tokens:
                share = reply.usage.prompt_tokens / ticket.prompt_bytes
                first = self.spending.counted == 1
                self._tokens_in_a_byte = share if first else max(share, self._tokens_in_a_byte)

    def _failed(self, ticket: _Ticket, failure: JudgeFailure) -> None:
        with self._lock:
            if failure.usage is not None:
                self.spending.counted += 1
            elif failure.kind in _MAY_BE_PAID:
                self.spending.estimated += 1
            if failure.overloaded and ticket.sent >= self._halved:
                # Requests that were sent before the last halving say nothing about the concurrency since.
                self.concurrency = max(1, self.concurrency // 2)
                self._halved = time.monotonic()
            if failure.overloaded or failure.retry_after is not None:
                self._hold(failure)

    def _cancelled(self, ticket: _Ticket) -> Usage:
        """The usage of a request that was given up: the endpoint may still finish it, with a typical answer."""
        with self._lock:
            spending = self.spending
            answers = spending.counted + spending.estimated
            typical = spending.usage.completion_tokens // answers if answers else 0
            spending.estimated += 1
            return Usage(int(ticket.prompt_bytes * self._tokens_in_a_byte), typical)

    def _hold(self, failure: JudgeFailure) -> None:
        """Send nothing for as long as the endpoint asks, or for a growing time if it does not say."""
        seconds = failure.retry_after
        if seconds is None:
            growing = self.limits.backoff * 2**self._holds_in_a_row * self._random.uniform(0.5, 1.0)
            seconds = min(_LONGEST_BACKOFF, self.limits.max_wait, growing)
        if seconds > self.limits.max_wait:
            why = (
                f"the endpoint asks for a wait of {seconds:,.0f} s, longer than --max-wait ({self.limits.max_wait:g} s)"
            )
            self.stop = self.stop or Stop(f"{why}: go on later, or give a longer --max-wait", "endpoint")
            self._wake_all()
            return
        now = time.monotonic()
        if now >= self._not_before:
            self._holds_in_a_row += 1
        self._not_before = max(self._not_before, now + seconds)

    def _estimate(self, ticket: _Ticket, reply: Reply) -> Usage:
        content = "" if reply.content is None else str(reply.content)
        written = len(content.encode(errors="replace")) + len((reply.reasoning or "").encode())
        return Usage(int(ticket.prompt_bytes * self._tokens_in_a_byte) + 8, int(written * _TOKENS_IN_A_BYTE) + 1)

    # -- waiting -----------------------------------------------------------------------------------

    def _waiter(self) -> _Waiter:
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return waiter

    async def _wait(self, waiter: _Waiter, seconds: float) -> None:
        timer = None if seconds == float("inf") else waiter.get_loop().call_later(seconds, _finish, waiter)
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
            with self._lock:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)

    def _wake_all(self) -> None:
        with self._lock:
            waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            _wake(waiter)


def prompt_bytes(messages: Any) -> int:
    """The length of messages in UTF-8."""
    return sum(len(message["content"].encode("utf-8", "surrogatepass")) for message in messages)
