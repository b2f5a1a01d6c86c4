"""What a command that takes long shows while it works: its name and how long it has worked."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

#: Seconds before a terminal shows anything, between its updates, and between lines of a file.
_FIRST, _EACH, _OF_A_FILE = 3.0, 1.0, 60.0
_LOCK = threading.Lock()
#: The terminal whose last line is that of a command at work.
_shown_on: list[TextIO] = []


@contextmanager
def waiting(what: str, *, first: float = _FIRST, each: float = _EACH, of_a_file: float = _OF_A_FILE) -> Iterator[None]:
    """Show on standard error how long the work takes: on a terminal each second, else a line a minute."""
    done = threading.Event()
    stream, begin = sys.stderr, time.monotonic()
    is_terminal = stream.isatty()

    def show() -> None:
        pause = first if is_terminal else of_a_file
        while not done.wait(pause):
            pause = each if is_terminal else of_a_file
            text = f"{what}: {time.monotonic() - begin:,.0f} s"
            with _LOCK:
                _shown_on[:] = [stream] if is_terminal else []
                stream.write(f"\r{text}" if is_terminal else f"{text}\n")
                stream.flush()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        clear()


def clear() -> None:
    """Take the line away, as before anything is printed."""
    with _LOCK:
        for stream in _shown_on:
            stream.write("\r\033[K")
            stream.flush()
        _shown_on.clear()
