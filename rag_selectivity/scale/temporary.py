"""A temporary folder that is gone afterwards, also if Ctrl-C is pressed while it is made or removed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeVar

from rag_selectivity.io.own_folder import OwnFolder

T = TypeVar("T")


def in_temporary_folder(parent: str | Path | None, work: Callable[[Path], T]) -> T:
    """What `work` returns when it is given a new folder in `parent` (None: the system's), which is removed afterwards.

    Between the making of a folder and the beginning of a `with` statement that would remove it, and while its files
    are removed, Python may raise KeyboardInterrupt at any step, which would leave the folder on disk. Ctrl-C is
    therefore held back in these moments and raised after them.
    """
    interrupts = _Interrupts()
    place = None
    try:
        try:
            interrupts.take_over()
            place = OwnFolder(parent)
            interrupts.let_through()
            result = work(Path(place.name))
        finally:
            interrupts.hold_back()
            if place is not None:
                place.cleanup()
    except Exception as error:
        if interrupts.raised:
            # A library caught KeyboardInterrupt and failed later because of it.
            raise KeyboardInterrupt from error
        raise
    finally:
        # Again, since Ctrl-C may have come in before the first line of the `finally` above.
        interrupts.hold_back()
        if place is not None:
            place.cleanup()
        interrupts.give_back()
    if interrupts.raised:
        # A library caught KeyboardInterrupt and went on.
        raise KeyboardInterrupt
    return result


class _Interrupts:
    """Handles SIGINT in place of the handler before it, and can hold it back.

    Python runs handlers in the main thread only, so that in another thread there is nothing to do. Nor is there if the
    handler before is none of Python's.
    """

    def __init__(self) -> None:
        self.raised = False
        self._held = True
        self._waits: tuple[int, FrameType | None] | None = None
        self._before: object = None

    def take_over(self) -> None:
        """Handle SIGINT from now on, and hold it back."""
        before = signal.getsignal(signal.SIGINT)
        if callable(before):
            self._before = before
            try:
                signal.signal(signal.SIGINT, self._handle)
            except ValueError:  # not the main thread
                self._before = None

    def hold_back(self) -> None:
        """Keep a signal that comes now until `let_through` or `give_back`."""
        self._held = True

    def let_through(self) -> None:
        """Pass signals to the handler before, and begin with one that waits."""
        self._held = False
        self._pass_on()

    def give_back(self) -> None:
        """Restore the handler before, and pass it a signal that waits."""
        if callable(self._before):
            signal.signal(signal.SIGINT, self._before)
            self._pass_on()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._waits = number, frame
        if not self._held:
            self._pass_on()

    def _pass_on(self) -> None:
        waits, self._waits = self._waits, None
        if waits is not None and callable(self._before):
            try:
                self._before(*waits)
            except BaseException:
                self.raised = True
                raise
