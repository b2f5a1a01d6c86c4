"""What watches an application shares: faults stay here, and figures come from a monitor."""

import os
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from inspect import signature
from types import TracebackType
from typing import Any, Self, TypeVar

from rag_selectivity.errors import InputError, SelectivityWarning, did_you_mean
from rag_selectivity.log import LOG

Value = TypeVar("Value")

#: What a child process finds free, though a thread that it does not have held it at the fork.
_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def shared_lock() -> threading.Lock:
    """A lock that whoever held it at a fork does not keep from the child."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def _after_fork_in_child() -> None:
    for lock in list(_locks):
        # As `threading` and `logging` do: a thread that was about to take a lock has it before the lock says so.
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class Shared:
    """What has no copies: it holds the locks, files and figures of a process. A copy of what uses it shares it."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self


class Faults:
    """Keeps what goes wrong in an adapter from the application: each fault is counted and logged.

    Parameters
    ----------
    what_is_lost : str
        What the log says of each: "a retrieval was not recorded". The first comes with its traceback.

    Examples
    --------
    >>> faults = Faults("a retrieval was not recorded")
    >>> with faults:
    ...     raise KeyError("url")
    >>> faults.count
    1

    Attributes
    ----------
    count : int
    last : str or None
        The message of the last fault.
    """

    def __init__(self, what_is_lost: str) -> None:
        self.what_is_lost = what_is_lost
        self.count = 0
        self.last: str | None = None

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.count += 1
        self.last = str(error) or type(error).__name__
        LOG.warning("%s: %s", self.what_is_lost, error, exc_info=error if self.count == 1 else None)
        return True


class Watcher(Shared):
    """An adapter that watches an application: a fault in it is logged, counted, and never reaches the application.

    Attributes
    ----------
    monitor : Monitor or ToolMonitor
        Where what was seen goes.
    guard : Faults
    """

    def __init__(self, monitor: Any, what_is_lost: str = "a retrieval was not recorded") -> None:
        super().__init__()
        self.monitor, self.guard = monitor, Faults(what_is_lost)

    @property
    def faults(self) -> int:
        """How often something went wrong in here, or in `on_alert`; each time is in the log `rag_selectivity`."""
        return self.guard.count + int(self.monitor.guard.count)

    @property
    def traffic(self) -> Any:
        """What was seen so far, labelled or not."""
        return self.monitor.traffic

    def report(self, **options: Any) -> Any:
        """The monitor's report on what was seen so far."""
        return self.monitor.report(**options)


class Latest(OrderedDict[Any, Value]):
    """What belongs to calls that are under way, by their ids: the latest, since some never end."""

    def __init__(self, most: int = 10_000) -> None:
        super().__init__()
        self._most, self._lock = most, shared_lock()

    def keep(self, call: Any, value: Value) -> None:
        """Keep the value of a call."""
        with self._lock:
            self[call] = value
            if len(self) > self._most:
                self.popitem(last=False)

    def take(self, call: Any) -> Value | None:
        """The value of a call, which is over."""
        with self._lock:
            return self.pop(call, None)


def tell(text: str, code: str = "ids-do-not-match") -> None:
    """Warn of something, and log it: an application may show no warnings."""
    warning = SelectivityWarning(text, code)
    LOG.warning("%s", warning)
    warnings.warn(warning, stacklevel=4)


def check_options(given: Mapping[str, Any], *takers: Callable[..., Any]) -> None:
    """An InputError for an option that none of those takes to which options are passed on."""
    known = {name for taker in takers for name in signature(taker).parameters}
    for name in given.keys() - known:
        raise InputError(f"there is no option {name!r}{did_you_mean(name, known)}")
