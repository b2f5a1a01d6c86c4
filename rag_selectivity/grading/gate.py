"""The gate that every request to a judge passes: it counts requests, keeps rates and budgets, and makes them wait.

One gate may serve several threads and event loops; its budget then holds for all of them together.
"""

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from pydantic import BaseModel

from rag_selectivity.errors import warn
from rag_selectivity.grading.judge import Ask, JudgeFailure, Message, Reply, Request
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.log import LOG
from rag_selectivity.results.usage import Usage
from rag_selectivity.tables.cells import shown
from rag_selectivity.wording import counted

_FIRST_CONCURRENCY = 4
_WINDOW = 60.0
#: Requests may arrive at the endpoint closer together than they were sent.
_PACE_MARGIN = 1.01
#: Seconds after which a request that waits looks again whether it may go, if nothing has woken it.
_LOOK_AGAIN = 0.05
LONGEST_BACKOFF = 60.0
#: Tokens in a byte, until the endpoint has counted a prompt; four characters are about one token.
_TOKENS_IN_A_BYTE = 0.25
#: In a byte beyond ASCII at least so many are reserved, whatever prompts in English have taught: a Chinese or Thai
#: character has three bytes, and takes up to 1.5 tokens.
_BEYOND_ASCII = 0.5
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
    """A request that may be sent, and what is reserved for it; its prompt has bytes of ASCII, and others."""

    worst: Usage
    prompt_bytes: tuple[int, int]
    answer_tokens: int
    cost: float
    sent: float = 0.0


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
        self.spending = Spending()
        self.stop: Stop | None = None
        self.concurrency = 1
        self._probing = True
        self._has_ignored = False
        self._lock = threading.RLock()
        #: Requests are sent in the order in which they came.
        self._line: deque[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = deque()
        self._under_way: set[_Ticket] = set()
        self._taken: deque[tuple[float, int]] = deque()
        self._not_before = self._next_turn = self._halved = 0.0
        self._holds_in_a_row = 0
        self._tokens_in_a_byte = _TOKENS_IN_A_BYTE
        self._longest_answer = 0
        self._dearest_token = 0.0

    # -- for those who ask -------------------------------------------------------------------------

    async def request(
        self,
        ask: Ask,
        messages: Sequence[Message],
        schema: type[BaseModel],
        answer_tokens: Callable[[], int],
        *,
        again: bool = False,
    ) -> Reply:
        """Send one request when it is its turn.

        `answer_tokens` returns the most tokens of the answer. It is called when it is the request's turn, since they
        may change. A task that is asked `again` goes before those that wait for their first time.

        Raises
        ------
        Stopped
            If the run has stopped, so that the request was not sent.
        JudgeFailure
            If the request failed.
        """
        prompt = "".join(message["content"] for message in messages)
        of_ascii = len(prompt.encode("ascii", "ignore"))
        prompt_bytes = of_ascii, len(prompt.encode("utf-8", "surrogatepass")) - of_ascii
        ticket = await self._enter(prompt_bytes, answer_tokens, again)
        usage, ended = ticket.worst, "answered"
        cost: float | None = None
        try:
            reply = await self._answer(ask, Request(messages, schema, ticket.answer_tokens))
            possible, cost = self._possible(reply.usage, reply.cost)
            reply = replace(reply, usage=possible, cost=cost)
            usage = possible or self._estimate(ticket, reply)
            self._succeeded(ticket, reply)
            return reply
        except asyncio.CancelledError:
            usage, ended = self._cancelled(ticket), "given up"
            raise
        except JudgeFailure as failure:
            ended = f"{failure.kind}: {failure}"
            failure.usage, _ = self._possible(failure.usage, None)
            # The endpoint may have answered in full and may charge for it, although its reply was lost.
            if failure.usage is not None or failure.kind not in _MAY_BE_PAID:
                usage = failure.usage or Usage()
            self._failed(ticket, failure)
            raise
        finally:
            self._leave(ticket, usage, cost)
            LOG.debug("request: %s, %.3f s, %s", ended, time.monotonic() - ticket.sent, usage)

    async def sleep(self, seconds: float) -> bool:
        """Wait for so many seconds, or until the gate is shut; whether it is open."""
        until = time.monotonic() + seconds
        while self.stop is None and (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _LOOK_AGAIN))
        return self.stop is None

    def shut(self, why: str, cause: str) -> None:
        """Send no further request; of several reasons, the first one is kept."""
        with self._lock:
            self.stop = self.stop or Stop(why, cause)

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
        self._wake()

    # -- one request -------------------------------------------------------------------------------

    async def _answer(self, ask: Ask, request: Request) -> Reply:
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await ask(request)
        except TimeoutError:
            raise JudgeFailure(f"no answer within {self.limits.timeout:g} s", "timeout") from None

    async def _enter(self, prompt_bytes: tuple[int, int], answer_tokens: Callable[[], int], again: bool) -> _Ticket:
        may_go = asyncio.Event()
        place = asyncio.get_running_loop(), may_go
        with self._lock:
            self._line.insert(0 if again else len(self._line), place)
        try:
            while True:
                seconds = _LOOK_AGAIN
                with self._lock:
                    if self.stop is not None:
                        raise Stopped
                    if self._line[0] is place:
                        ticket = self._ticket(prompt_bytes, answer_tokens())
                        seconds = min(seconds, self._obstacle(ticket))
                    if seconds == 0:
                        ticket.sent = now = time.monotonic()
                        self._under_way.add(ticket)
                        self.spending.requests += 1
                        if self.limits.rpm is not None:
                            self._next_turn = max(now, self._next_turn) + _WINDOW / self.limits.rpm * _PACE_MARGIN
                        return ticket
                    may_go.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(may_go.wait(), seconds)
        finally:
            with self._lock:
                self._line.remove(place)
            self._wake()

    def _wake(self) -> None:
        """Let as many requests in line, of whatever thread, look whether they may go as there is room for."""
        with self._lock:
            room = max(1, self.concurrency - len(self._under_way))
            for loop, may_go in islice(self._line, room):
                loop.call_soon_threadsafe(may_go.set)

    def _prompt_tokens(self, prompt_bytes: tuple[int, int]) -> float:
        return prompt_bytes[0] * self._tokens_in_a_byte + prompt_bytes[1] * max(self._tokens_in_a_byte, _BEYOND_ASCII)

    def _ticket(self, prompt_bytes: tuple[int, int], answer_tokens: int) -> _Ticket:
        worst = Usage(int(self._prompt_tokens(prompt_bytes) * _MARGIN) + 16, max(answer_tokens, self._longest_answer))
        price = self.budget.price(worst)
        cost = worst.total * self._dearest_token if price is None else price
        return _Ticket(worst, prompt_bytes, answer_tokens, cost)

    def _obstacle(self, ticket: _Ticket) -> float:
        """Seconds to wait, 0 for none; the gate shuts where the budget allows no request."""
        now = time.monotonic()
        if self._under_way and len(self._under_way) >= self.concurrency:
            return _LOOK_AGAIN
        if (why := self._used_up(ticket)) is not None:
            if not self._under_way:
                self.shut(why, "budget")
            return _LOOK_AGAIN
        # The requests of `rpm` are spaced evenly, so that no minute has too many.
        wait = max(0.0, self._not_before - now, self._next_turn - now)
        if self.limits.tpm is not None:
            while self._taken and self._taken[0][0] <= now - _WINDOW:
                self._taken.popleft()
            taken = sum(tokens for _, tokens in self._taken) + sum(each.worst.total for each in self._under_way)
            # A request larger than `tpm` is sent when a minute has no other.
            if (self._taken or self._under_way) and taken + ticket.worst.total > self.limits.tpm:
                return max(wait, _LOOK_AGAIN)
        return wait

    def _used_up(self, ticket: _Ticket) -> str | None:
        """Which budget this request could exceed, together with the requests under way; None if none."""
        budget, spent = self.budget, self.spending
        if budget.max_calls is not None and spent.requests >= budget.max_calls:
            return f"the budget of {counted(budget.max_calls, 'request')} is used up"
        reserved = [ticket, *self._under_way]
        tokens = spent.usage.total + sum(each.worst.total for each in reserved)
        if budget.max_tokens is not None and tokens > budget.max_tokens:
            return (
                f"the budget of {budget.max_tokens:,} tokens (judge.max_tokens) is too small for another request: "
                f"{spent.usage.total:,.0f} are spent, and the next request may take {ticket.worst.total:,}"
            )
        if budget.max_cost is not None and (spent.cost or 0.0) + sum(each.cost for each in reserved) > budget.max_cost:
            return (
                f"the budget of {budget.max_cost:g} (--max-cost) is too small for another request: "
                f"{spent.cost or 0.0:.6g} is spent, and the next request may cost {ticket.cost:.2g}"
            )
        return None

    def _leave(self, ticket: _Ticket, usage: Usage, cost: float | None) -> None:
        with self._lock:
            self._under_way.discard(ticket)
            spending, price = self.spending, self.budget.price(usage)
            spending.usage += usage
            if price is not None:
                spending.cost, spending.cost_from = (spending.cost or 0.0) + price, "prices"
            elif cost is not None:
                spending.cost, spending.cost_from = (spending.cost or 0.0) + cost, "server"
                if usage.total:
                    self._dearest_token = max(self._dearest_token, cost / usage.total)
            if self.limits.tpm is not None:
                self._taken.append((time.monotonic(), usage.total))
        self._wake()

    # -- what replies teach ------------------------------------------------------------------------

    def _possible(self, usage: Usage | None, cost: float | None) -> tuple[Usage | None, float | None]:
        """The tokens and the cost that an endpoint names, None for what no request can have taken."""
        taken = usage if usage is None or usage.is_possible else None
        paid = cost if cost is None or 0 <= cost <= _HIGHEST_COST else None
        if (taken is not usage or paid is not cost) and not self._has_ignored:
            self._has_ignored = True
            warn(
                f"the endpoint says that one request took {shown(cost if taken is usage else usage)}, which none can: "
                f"such figures are ignored, and the tokens are estimated",
                "usage-ignored",
                stacklevel=3,
            )
        return taken, paid

    def _succeeded(self, ticket: _Ticket, reply: Reply) -> None:
        with self._lock:
            self._holds_in_a_row = 0
            if self.budget.max_cost is not None and reply.cost is None and self.budget.price_in is None:
                why = "this endpoint does not say what a request costs, so a budget in money needs prices: give "
                self.shut(f"{why}judge.price_in and judge.price_out", "fatal")
            if not self._probing and ticket.sent >= self._halved:
                self.concurrency = min(self.limits.concurrency, self.concurrency + 1)
            if reply.usage is None:
                self.spending.estimated += 1
                return
            self.spending.counted += 1
            self._longest_answer = max(self._longest_answer, reply.usage.completion_tokens)
            if (size := sum(ticket.prompt_bytes)) and reply.usage.prompt_tokens:
                share = reply.usage.prompt_tokens / size
                self._tokens_in_a_byte = share if self.spending.counted == 1 else max(share, self._tokens_in_a_byte)

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
            typical = spending.usage.completion_tokens // max(1, spending.counted + spending.estimated)
            spending.estimated += 1
            return Usage(int(self._prompt_tokens(ticket.prompt_bytes)), typical)

    def _hold(self, failure: JudgeFailure) -> None:
        """Send nothing for as long as the endpoint asks, or for a growing time if it does not say."""
        longest = self.limits.max_wait
        growing = self.limits.backoff * 2**self._holds_in_a_row * random.uniform(0.5, 1.0)
        seconds = min(LONGEST_BACKOFF, longest, growing) if failure.retry_after is None else failure.retry_after
        if seconds > longest:
            why = f"the endpoint asks for a wait of {seconds:,.0f} s, longer than judge.max_wait ({longest:g} s)"
            self.shut(f"{why}: go on later, or give a longer judge.max_wait", "endpoint")
            return
        now = time.monotonic()
        if now >= self._not_before:
            self._holds_in_a_row += 1
        self._not_before = max(self._not_before, now + seconds)

    def _estimate(self, ticket: _Ticket, reply: Reply) -> Usage:
        written = len(str(reply.content or "").encode(errors="replace")) + len((reply.reasoning or "").encode())
        return Usage(int(self._prompt_tokens(ticket.prompt_bytes)) + 8, int(written * _TOKENS_IN_A_BYTE) + 1)
