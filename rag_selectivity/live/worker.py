"""A thread that works off a bounded queue, so that the application's threads do not wait for the work."""

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")

#: A pause after each piece of work gives the interpreter's lock to the application, which would else wait for 5 ms.
_PAUSE = 0.001
#: Seconds that a fork waits for what is being worked on, and the exit of the interpreter for all that waits.
_LONGEST_FORK, _LONGEST_EXIT = 5.0, 30.0


class Worker(Generic[Item]):
    """Works off items in the order in which they came, in a daemon thread that lasts as long as items wait.

    Parameters
    ----------
    work : callable
        Takes a list of items; must not raise. It may drain what waits meanwhile.
    most : int
        At most so many items wait.
    delay : float
        Work begins so many seconds after the first item came: the application is answering its request at that time.
    at_once : int
        The most items that are handed to `work` together. The delay ends as soon as so many wait.

    What waits at the exit of the interpreter is worked off then. After a fork, the child has an empty queue and no
    thread until it puts an item: what waited belongs to the parent. A fork waits up to five seconds for what is being
    worked on, since the child gets the locks that the work uses as they are.
    """

    def __init__(self, work: Callable[[list[Item]], None], most: int, *, delay: float, at_once: int) -> None:
        self._work, self._most, self._delay, self._at_once = work, most, delay, at_once
        self._is_stopped = False
        self._begin()
        _workers.add(self)

    def _begin(self) -> None:
        self._lock, self._working = threading.Lock(), threading.RLock()
        self._queue: deque[Item] = deque()
        self._timer: threading.Timer | None = None

    def put(self, item: Item) -> bool:
        """Queue an item; False if there is no room for it, or if the interpreter is about to end."""
        with self._lock:
            if self._is_stopped or len(self._queue) >= self._most:
                return False
            self._queue.append(item)
            if len(self._queue) in (1, self._at_once):
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = threading.Timer(self._delay if len(self._queue) == 1 else 0, self.drain)
                self._timer.daemon = True
                self._timer.start()
                # Before what was registered earlier, such as the end of a trace.
                atexit.unregister(_stop_all)
                atexit.register(_stop_all)
        return True

    def drain(self, patience: float = threading.TIMEOUT_MAX) -> bool:
        """Work off what waits, in this thread; False if another thread works on the same items for so many seconds."""
        while self._working.acquire(timeout=patience):
            try:
                with self._lock:
                    items = [self._queue.popleft() for _ in range(min(self._at_once, len(self._queue)))]
                if not items:
                    return True
                self._work(items)
            finally:
                self._working.release()
            time.sleep(_PAUSE)
        return False


#: The workers of this process: the exit and a fork ask all of them, and cannot be told to forget one.
_workers: weakref.WeakSet[Worker[Any]] = weakref.WeakSet()
#: Those whose work a fork has stopped.
_held: list[Worker[Any]] = []


def _stop_all() -> None:
    """Take no more items, and work off what waits."""
    for worker in list(_workers):
        worker._is_stopped = True
        worker.drain(_LONGEST_EXIT)


def _before_fork() -> None:
    _held[:] = [each for each in list(_workers) if each._working.acquire(timeout=_LONGEST_FORK)]


def _after_fork() -> None:
    for worker in _held:
        worker._working.release()


def _after_fork_in_child() -> None:
    for worker in list(_workers):
        worker._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
