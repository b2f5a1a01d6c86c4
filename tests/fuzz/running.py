"""Runs one input, and says what is wrong with what happened."""

from __future__ import annotations

import json
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType

from rag_selectivity.errors import SelectivityError
from tests.fuzz.kind import Kind
from tests.fuzz.kinds import KINDS

#: What an input of some kB may cost, in seconds of the processor and in MB; and when a call is stopped.
SECONDS, MEGABYTES, HUNG = 2.0, 500.0, 60
_OUTPUTS = ("out.json", "out.jsonl")


class Hung(BaseException):
    """A call did not come back; no `except Exception` holds it."""


@dataclass(frozen=True)
class Finding:
    """What must not happen: an error that is not ours, a file left half-written, or too much time or memory."""

    kind: str
    seed: int
    number: int
    place: str
    lines: str

    def __str__(self) -> str:
        return f"--kind '{self.kind}' --seed {self.seed} --start {self.number} --inputs 1\n{self.lines}"


def kind_of(number: int, kinds: Sequence[Kind]) -> Kind:
    """The kind of an input: they take turns."""
    return kinds[number % len(kinds)]


def tried(seed: int, number: int, *, kinds: Sequence[Kind] = KINDS, measured: bool = True) -> Finding | None:
    """Run an input, which its seed and its number decide. Unless `measured`, time and memory are not looked at."""
    kind = kind_of(number, kinds)
    found = None
    with tempfile.TemporaryDirectory() as name, _alarm():
        folder = Path(name)
        memory, start = _peak(), time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.filterwarnings("error", category=RuntimeWarning, module="rag_selectivity")
                kind.run(Random(f"{seed}:{number}:{kind.name}"), folder)
        except SelectivityError:
            pass
        except (Exception, Hung) as error:
            found = _place(error), "".join(traceback.format_exception(error)[-5:])
        seconds, more = time.process_time() - start, _peak() - memory
        wrong = _wrong_files(folder)
    if found is None and wrong:
        found = wrong, wrong
    if found is None and measured and number >= 0 and (seconds > SECONDS or more > MEGABYTES):
        found = f"too much: {kind.name}", f"{seconds:.1f} s, {more:.0f} MB"
    return None if found is None else Finding(kind.name, seed, number, *found)


def _peak() -> float:
    """The largest memory of this process so far in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _place(error: BaseException) -> str:
    """The error's type, and the last line of the package that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "rag_selectivity" in frame.filename.split("/tests/")[0]] or frames
    at = own[-1]
    return f"{type(error).__name__} at {'/'.join(Path(at.filename).parts[-3:])}:{at.lineno} in {at.name}"


def _wrong_files(folder: Path) -> str | None:
    """What is wrong with the files that a call left: temporary ones, or an output that does not read."""
    for path in folder.rglob("*"):
        if path.name.endswith((".tmp", "-journal", ".part")) or path.name.startswith("."):
            return f"left behind: {path.suffix or path.name}"
        if path.name in _OUTPUTS:
            try:
                for document in path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]:
                    json.loads(document)
            except ValueError:
                return f"half-written: {path.name}"
    return None


@contextmanager
def _alarm() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Hung(f"a call took more than {HUNG} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HUNG)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
