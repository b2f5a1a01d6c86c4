"""What surrounds a run of a judge: Ctrl-C, the progress line, and calls from code without an event loop."""

from __future__ import annotations

import asyncio
import functools
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.judge import GradingError, Judge
from rag_selectivity.grading.runner import Runner, Watch
from rag_selectivity.wording import visible

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class Session:
    """What Ctrl-C ends: the runner that is at work."""

    runner: Runner


@contextmanager
def asking(judge: Judge, gate: Gate, total: int, what: str, progress: bool) -> Iterator[Session]:
    """A runner for a judge, with a progress line.

    The first Ctrl-C lets requests under way land for a second; the second one ends everything at once.
    """
    watch, close = _progress_line(total, what, progress)
    session, loop = Session(Runner(judge, gate, watch)), asyncio.get_running_loop()

    def interrupt() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        session.runner.interrupt()

    # Not in the main thread, or on a platform without signal handlers: Ctrl-C raises KeyboardInterrupt as usual.
    with suppress(NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield session
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGINT)
        close()


def told(runner: Runner) -> dict[str, Any]:
    """What the results of all runs say of it: what was spent, what failed, and why it stopped."""
    done, spending, stop = runner.progress, runner.gate.spending, runner.stop
    return {
        "usage": spending.usage,
        "cost": spending.cost,
        "failed": done.failed,
        "errors": dict(done.errors),
        "last_error": done.last_error,
        "stopped": None if stop is None else stop.why,
        "stopped_by": None if stop is None else stop.cause,
    }


def raise_if_fatal(gate: Gate, more: str = "") -> None:
    """A GradingError if no request can succeed."""
    if gate.stop is not None and gate.stop.cause == "fatal":
        raise GradingError(f"{gate.stop.why}; nothing more was sent{more} (how-to: stopped-grading)")


def _progress_line(total: int, what: str, shown: bool) -> tuple[Watch | None, Callable[[], None]]:
    """A line on a terminal: done, failed by reason, spent, rate and time left; nothing elsewhere, or without tqdm."""
    if not shown or not sys.stderr.isatty():
        return None, lambda: None
    try:
        from tqdm import tqdm
    except ImportError:
        return None, lambda: None
    bar = tqdm(total=total, desc=visible(what), unit="pair", dynamic_ncols=True)

    def watch(runner: Runner, pairs: int) -> None:
        spending = runner.gate.spending
        failed = ", ".join(f"{count} {kind}" for kind, count in runner.progress.errors.items())
        spent = f"{spending.usage.total:,} tokens" if spending.cost is None else f"cost {spending.cost:.4g}"
        bar.set_postfix_str(", ".join(filter(None, [failed and f"failed: {failed}", spent])), refresh=False)
        bar.update(pairs)

    return watch, bar.close


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
            return asyncio.run(awaited(signal.getsignal(signal.SIGINT)))
        # An event loop runs, as in a notebook.
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: asyncio.run(awaited())).result()

    run.__name__ = run.__qualname__ = work.__name__.removeprefix("a")
    return run
