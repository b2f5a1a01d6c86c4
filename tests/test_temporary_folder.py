"""A temporary folder is gone whenever Ctrl-C comes: at every step of Python's that makes or removes it."""

from __future__ import annotations

import gc
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from rag_selectivity.io import own_folder
from rag_selectivity.scale import temporary
from rag_selectivity.scale.temporary import in_temporary_folder


def work(place: Path) -> str:
    (place / "some.arrow").write_bytes(b"rows")
    return "measured"


class Signals:
    """Sends SIGINT before some steps: each bytecode of the module that is tested, each line of what it calls."""

    def __init__(self, at: set[int]) -> None:
        self.at, self.steps = at, 0

    def __enter__(self) -> Signals:
        self._before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *raised: object) -> None:
        sys.settrace(self._before)

    def trace(self, frame, event, _):
        if frame.f_code.co_filename not in {
            temporary.__file__,
            own_folder.__file__,
            tempfile.__file__,
            shutil.__file__,
            __file__,
        }:
            return None
        if frame.f_code in {Signals.__exit__.__code__, Signals.trace.__code__}:
            return None
        tested = frame.f_code.co_filename == temporary.__file__
        frame.f_trace_opcodes, frame.f_trace_lines = tested, not tested
        if event in ("opcode", "line"):
            self.steps += 1
            if self.steps in self.at:
                try:
                    signal.raise_signal(signal.SIGINT)
                finally:  # Python stops tracing where this raises, and a second signal may have to come
                    sys.settrace(self.trace)
        return self.trace


@pytest.fixture(autouse=True)
def default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_folder_goes_at_whatever_step_the_signals_come(tmp_path) -> None:
    assert in_temporary_folder(tmp_path, work) == "measured"  # what the modules do once only is done
    gc.disable()  # a finalizer that runs by chance would hide a folder that was forgotten
    try:
        with Signals(set()) as none:
            assert in_temporary_folder(tmp_path, work) == "measured"
        assert none.steps > 100
        for step in range(1, none.steps + 1):
            for at in ({step}, {step, step + 1 + step % 7})[: 1 + step % 2]:
                with pytest.raises(KeyboardInterrupt), Signals(at):
                    in_temporary_folder(tmp_path, work)
                assert not list(tmp_path.iterdir()), at
                assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, at
    finally:
        gc.enable()


def test_an_interrupt_that_a_library_caught_is_raised_after_all(tmp_path) -> None:
    def caught(place: Path) -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    def caught_and_failed(place: Path) -> None:
        caught(place)
        raise AttributeError("partially initialized module")

    for library in (caught, caught_and_failed):
        with pytest.raises(KeyboardInterrupt):
            in_temporary_folder(tmp_path, library)
        assert not list(tmp_path.iterdir())


def test_errors_of_the_work_pass(tmp_path) -> None:
    def fails(place: Path) -> None:
        raise ValueError("a wrong row")

    with pytest.raises(ValueError, match="a wrong row"):
        in_temporary_folder(tmp_path, fails)
    assert not list(tmp_path.iterdir())


def test_the_folder_of_a_killed_process_goes_when_the_next_is_made(tmp_path) -> None:
    (tmp_path / "rag-selectivity-examples").mkdir()
    (tmp_path / "rag-selectivity-aaaaaaaa.temporary").symlink_to("rag-selectivity-examples")
    code = (
        "import os, sys; from rag_selectivity.scale.temporary import in_temporary_folder\n"
        "in_temporary_folder(sys.argv[1], lambda place: ((place / 'part').touch(), os.kill(os.getpid(), 9)))"
    )
    before = set(tmp_path.iterdir())
    assert subprocess.run([sys.executable, "-c", code, tmp_path]).returncode == -signal.SIGKILL
    assert len(set(tmp_path.iterdir()) - before) == 1

    def while_another_works(mine: Path) -> None:
        assert set(tmp_path.iterdir()) == {*before, mine}
        in_temporary_folder(tmp_path, work)
        assert mine.is_dir(), "its process lives"

    in_temporary_folder(tmp_path, while_another_works)
    assert set(tmp_path.iterdir()) == before
