"""A thread that works off a bounded queue, so that the application's threads do not wait for the work."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Worker"]

Item = TypeVar("Item")

#: Work begins this long after it came: the application is answering its request at that time.
_DELAY = 0.2
#: A pause after each item gives the interpreter's lock to the application, which would else wait for up to 5 ms.
_PAUSE = 0.001
#: A thread without work ends after so many seconds, so that it keeps nothing alive; the next item starts another.
_IDLE = 10.0
#: Seconds that a fork waits for the item that is being worked on.
_LONGEST_FORK = 5.0


class Worker(Generic[Item]):
    """Works off items in the order in which they came, in a daemon thread that the first of them starts.

    Parameters
    ----------
    work : callable
        Takes an item; must not raise.
    most : int
        The sizes of the items that wait may add up to this. A larger item has room while no other waits.
    name : str
        Of the thread.

    What waits at the exit of the interpreter is worked off then. After a fork, the child has an empty queue and no
    thread until it puts an item: what waited belongs to the parent. A fork waits up to five seconds for the item that
    is being worked on, since the child gets the locks that the work uses as they are.
    """

    #: Whether the interpreter is about to end: what is put now may find no thread any more.
    exiting = False
    _thread: threading.Thread | None
    _worked_by: int | None

    def __init__(self, work: Callable[[Item], None], most: int, *, name: str) -> None:
        self._work = work
        self._most = most
        self._name = name
        self._stopped = False
        self._reset()
        _workers.add(self)

    def put(self, item: Item, size: int = 1) -> bool:
        """Queue an item; False if there is no room for it, or if the worker was stopped."""
        with self._lock:
            if self._stopped or (self._waiting and self._waiting + size > self._most):
                return False
            self._queue.append((item, size))
            self._waiting += size
            if self._thread is None:
                self._start()
        if not self._has_items.is_set():
            self._has_items.set()
        return True

    def drain(self, seconds: float) -> bool:
        """Work off what waits, in this thread; False if that takes longer, or if this is called from the work itself.

        The time is looked at between items.
        """
        if self.works_here:
            return False
        until = time.monotonic() + seconds
        while True:
            if not self._working.acquire(timeout=max(0.0, until - time.monotonic())):
                return False
            try:
                if not self._work_on_next():
                    return True
            finally:
                self._working.release()
            if time.monotonic() >= until:
                return not self._queue

    def take(self, most: int | None = None) -> list[Item]:
        """Take out items that wait, as many as their sizes add up to `most`, for the caller to work on."""
        items: list[Item] = []
        with self._lock:
            while self._queue and (most is None or self._queue[0][1] <= most):
                item, size = self._queue.popleft()
                self._waiting -= size
                most = None if most is None else most - size
                items.append(item)
        return items

    @property
    def waiting(self) -> int:
        """How many items wait."""
        return len(self._queue)

    def stop(self, seconds: float) -> int:
        """Take no more items, work off what waits, and end the thread. Returns how many items were given up."""
        with self._lock:
            self._stopped = True
            thread = self._thread
        atexit.unregister(self._at_exit)
        until = time.monotonic() + seconds
        self.drain(seconds)
        with self._lock:
            given_up = len(self._queue)
            self._queue.clear()
            self._waiting = 0
        self._ending.set()
        self._has_items.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, until - time.monotonic()))
        return given_up

    # -- the thread ----------------------------------------------------------------------------------

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # The interpreter is about to end: what waits is worked off at its exit.
            self._thread = None
        atexit.unregister(self._at_exit)
        atexit.register(self._at_exit)

    def _run(self) -> None:
        ending = self._ending
        while not ending.is_set():
            if not self._has_items.wait(_IDLE):
                with self._lock:
                    if not self._queue:
                        self._thread = None
                        atexit.unregister(self._at_exit)
                        return
            ending.wait(_DELAY)
            self._has_items.clear()
            while not ending.is_set():
                with self._working:
                    if not self._work_on_next():
                        break
                time.sleep(_PAUSE)

    def _work_on_next(self) -> bool:
        """Work on an item, with `_working` held; False if none waits."""
        with self._lock:
            if not self._queue:
                return False
            item, size = self._queue.popleft()
            self._waiting -= size
        self._worked_by = threading.get_ident()
        try:
            self._work(item)
        finally:
            self._worked_by = None
        return True

    @property
    def works_here(self) -> bool:
        """Whether this is called from the work itself."""
        return self._worked_by == threading.get_ident()

    def _at_exit(self) -> None:
        Worker.exiting = True
        self.stop(30)

    # -- forks ---------------------------------------------------------------------------------------

    def _before_fork(self) -> None:
        self._holds_for_fork = not self.works_here and self._working.acquire(timeout=_LONGEST_FORK)

    def _after_fork(self) -> None:
        if self._holds_for_fork:
            self._working.release()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._working = threading.Lock()
        self._worked_by = None
        self._queue: deque[tuple[Item, int]] = deque()
        self._waiting = 0
        self._has_items = threading.Event()
        self._ending = threading.Event()
        self._thread = None
        self._holds_for_fork = False


#: The workers of this process: a fork asks all of them, and cannot be told to forget one.
_workers: weakref.WeakSet[Worker[Any]] = weakref.WeakSet()


def _before_fork() -> None:
    for worker in list(_workers):
        worker._before_fork()


def _after_fork() -> None:
    for worker in list(_workers):
        worker._after_fork()


def _after_fork_in_child() -> None:
    for worker in list(_workers):
        worker._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
