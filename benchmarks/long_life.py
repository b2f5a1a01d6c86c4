"""A long life: a disturbed monitor, a service, a label store that eight processes use, and processes that are killed.

    python -m benchmarks.long_life [--retrievals 1000000] [--seconds 60] [--kills 10] [--repetitions 2000]

It takes up to ten minutes on two cores that do nothing else, and says how much time of the processor each part takes.
`python -m benchmarks.kills 40` kills more often.

Eight threads record retrievals with a trace, while the trace is renamed and removed, its disk is full, its folder is
taken away and the clock jumps. Every retrieval must then be in a figure, and in the trace or in the count of those that
it lacks; no call may raise, and the live memory may not grow: `benchmarks/memory.py` says what that means, and why the
resident memory grows nevertheless. `benchmarks/service.py`, `benchmarks/shared_store.py` and `benchmarks/kills.py` say
what the other parts do.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from benchmarks.memory import Watch
from rag_selectivity import Monitor
from rag_selectivity.live.retrieval import Retrieval

THREADS, QUERIES, DOCUMENTS, CORPUS = 8, 200, 10, 5000
#: One retrieval in so many has labels; one in so many has an outcome that becomes known late.
LABELLED, LATE = 5, 10
DISK_MEGABYTES = 256
_ID = re.compile(rb'"(?:id|outcome_of)": "(r|o)?(\d+)"')


@dataclass
class Life:
    """What a monitor lived through, and what became of it.

    Attributes
    ----------
    disturbed : Counter
        How often each thing was done to it.
    raised : list of Exception
        What came out of its methods.
    missing, counted : int
        Retrievals and outcomes that are in no file of the trace, and those that the monitor says are not.
    retrievals, labelled, measured : int
        As the monitor counts.
    expected : tuple of int
        What these three should be.
    memory : Watch
        The memory of the process, sampled.
    """

    retrievals: int = 0
    labelled: int = 0
    measured: int = 0
    outcomes: int = 0
    missing: int = 0
    counted: int = 0
    seconds: float = 0.0
    expected: tuple[int, int, int] = (0, 0, 0)
    disk: str = ""
    disturbed: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    raised: list[BaseException] = field(default_factory=list)
    memory: Watch = field(default_factory=Watch)

    @property
    def lost_nothing(self) -> bool:
        """Whether every retrieval and outcome is where it should be, or counted as lost."""
        found = (self.retrievals, self.labelled, self.measured)
        return not self.raised and self.missing == self.counted and found == self.expected


class Said(logging.Handler):
    """Counts what the log says, by its beginning."""

    def __init__(self, into: Counter[str]) -> None:
        super().__init__()
        self.into = into

    def emit(self, record: logging.LogRecord) -> None:
        """Count a record."""
        self.into[re.sub(r"\S*/|[\d,.]+", "", record.getMessage())[:60]] += 1


class TraceFiles:
    """Which lines the files of a trace hold: those that were renamed or removed are read when nobody writes to them."""

    def __init__(self, path: Path, retrievals: int) -> None:
        self.path = path
        self.there = bytearray(retrievals)
        self.outcomes = bytearray(retrievals)
        self._moved: list[BinaryIO] = []

    def move(self, how: str) -> None:
        """Rename or remove the file."""
        self.read_moved()
        with suppress(FileNotFoundError):
            file = self.path.open("rb")
            if how == "rename":
                self.path.rename(self.path.with_suffix(".1"))
            else:
                self.path.unlink()
            self._moved.append(file)

    def read_moved(self) -> None:
        """Read what was moved some time ago."""
        while self._moved:
            self._read(self._moved.pop())
        with suppress(FileNotFoundError):
            self.path.with_suffix(".1").unlink()

    def read_all(self) -> None:
        """Read everything."""
        self.read_moved()
        with suppress(FileNotFoundError):
            self._read(self.path.open("rb"))

    def _read(self, file: BinaryIO) -> None:
        with file:
            for line in file:
                assert line.endswith(b"}\n"), line
                _, number = _ID.findall(line)[0]
                (self.outcomes if b'"outcome_of"' in line else self.there)[int(number)] = 1


@contextmanager
def small_disk(folder: Path) -> Iterator[tuple[Path, str]]:
    """A small disk of its own, or a folder where this may not be mounted."""
    disk = folder / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "none", str(disk)]
    mounted = hasattr(os, "geteuid") and os.geteuid() == 0
    with suppress(OSError):
        mounted = mounted and not subprocess.run(command, capture_output=True).returncode
    try:
        yield disk, f"tmpfs of {DISK_MEGABYTES} MB" if mounted else "limit of file sizes"
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(disk)], check=True)


@contextmanager
def full_disk(disk: Path, how: str) -> Iterator[None]:
    """No file can grow meanwhile."""
    if how.startswith("tmpfs"):
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            for block in (b"x" * (1 << 20), b"x" * 1000, b"x"):
                with suppress(OSError):
                    while True:
                        file.write(block)
        try:
            yield
        finally:
            filler.unlink()
        return
    import resource
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def live(retrievals: int, folder: Path, *, seconds_between: float = 0.7) -> Life:
    """Let a monitor live through so many retrievals."""
    life = Life()
    draw = random.Random(5)
    corpus = [f"d{i}" for i in range(CORPUS)]
    lists = [draw.sample(corpus, DOCUMENTS) for _ in range(QUERIES)]
    labels = {f"query {q}": dict(zip(lists[q][::2], (5, 4, 3, 2, 1), strict=True)) for q in range(QUERIES)}
    logger = logging.getLogger("rag_selectivity")
    handler = Said(life.said)
    logger.addHandler(handler)
    logger.propagate = False
    real_time = time.time
    jump = [0.0]
    time.time = lambda: real_time() + jump[0]  # type: ignore[assignment]
    done = [0] * THREADS
    start = time.monotonic()
    try:
        with small_disk(folder) as (disk, life.disk):
            place = disk / "traces"
            place.mkdir()
            files = TraceFiles(place / "trace.jsonl", retrievals)
            monitor = Monitor(
                labels,
                scale="utility",
                corpus_size=CORPUS,
                alerts=["BoR < 2", "tokens > 8000", "outcome < .1", "p95(seconds) > 2"],
                trace=files.path,
            )

            def serve(thread: int) -> None:
                for i in range(thread, retrievals, THREADS):
                    q = i // LABELLED % QUERIES
                    query = f"query {q}" if i % LABELLED == 0 else f"question {i}"
                    try:
                        monitor.record(
                            Retrieval(query, lists[q], tokens=i % 999, seconds=0.1, id=f"r{i}", arm="ab"[i % 2])
                        )
                        if i % LATE == 0:
                            monitor.outcome(f"r{i}", i % 3 == 0)
                    except BaseException as error:  # what must not be is listed
                        life.raised.append(error)
                    done[thread] += 1

            threads = [threading.Thread(target=serve, args=(thread,)) for thread in range(THREADS)]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                disturb(life, files, disk, jump, draw)
                end = time.monotonic() + seconds_between
                while time.monotonic() < end and any(thread.is_alive() for thread in threads):
                    life.memory.look(sum(done))
                    time.sleep(seconds_between / 3)
            for thread in threads:
                thread.join()
            try:
                monitor.close()
                life.measured = monitor.report()["BoR"].n
            except BaseException as error:
                life.raised.append(error)
            files.read_all()
    finally:
        time.time = real_time
        logger.removeHandler(handler)
        logger.propagate = True
    life.seconds = time.monotonic() - start
    traffic = monitor.traffic
    life.retrievals, life.labelled, life.outcomes = traffic.retrievals, traffic.labelled, traffic.outcomes
    late = -(-retrievals // LATE)
    life.missing = retrievals - sum(files.there) + late - sum(files.outcomes)
    life.counted = traffic.not_traced
    with_labels = -(-retrievals // LABELLED)
    life.expected = (retrievals, with_labels, with_labels)
    return life


def disturb(life: Life, files: TraceFiles, disk: Path, jump: list[float], draw: random.Random) -> None:
    """Do one of the things that happen to a service."""
    kinds = ("rename", "remove", "rename", "full disk", "rename", "folder away", "rename", "clock")
    kind = kinds[sum(life.disturbed.values()) % len(kinds)]
    life.disturbed[kind] += 1
    if kind == "full disk":
        with full_disk(disk, life.disk):
            time.sleep(0.3)
    elif kind == "folder away":
        away = files.path.parent.with_suffix(".away")
        files.path.parent.rename(away)
        time.sleep(0.3)
        away.rename(files.path.parent)
    elif kind == "clock":
        jump[0] = draw.choice([0.0, -86_400.0, 86_400.0, -1.7e9, 3e9, 31_536_000.0, -3600.0])
    else:
        files.move(kind)


def lines_of(life: Life) -> Iterator[str]:
    """What the command prints of a life."""
    done = ", ".join(f"{kind} {count}" for kind, count in life.disturbed.items())
    yield f"{life.retrievals:,} retrievals and {life.outcomes:,} outcomes, {THREADS} threads, {life.seconds:.0f} s"
    yield f"  disturbed ({life.disk}): {done}"
    yield from life.memory.lines()
    yield f"  counted, labelled, measured: {life.retrievals:,}, {life.labelled:,}, {life.measured:,} of {life.expected}"
    yield f"  not in the trace: {life.missing:,}; counted as lost: {life.counted:,}; exceptions: {len(life.raised)}"
    for text, count in life.said.most_common(12):
        yield f"  log, {count} ×: {text}"
    yield f"  nothing lost without a count: {'yes' if life.lost_nothing else 'no'}"


def _processor_seconds() -> float:
    """Of this process and of its children that have ended."""
    return sum(os.times()[:4])


def main() -> None:
    """Run all parts; the exit code is 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--retrievals", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=2000)
    options: Any = parser.parse_args()
    # The kills come first: they fork, which a process with threads should not do.
    from benchmarks import kills, service, shared_store

    def monitored(folder: Path) -> bool:
        life = live(options.retrievals, folder)
        print("\n".join(lines_of(life)), flush=True)
        return life.lost_nothing and life.memory.is_flat

    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: list[tuple[str, bool, Callable[[], bool]]] = [
            ("kills", options.kills, lambda: kills.run(folder / "kills", options.kills)),
            ("store", options.seconds, lambda: shared_store.run(folder / "store", options.seconds)),
            ("monitor", options.retrievals, lambda: monitored(folder)),
            ("service", options.repetitions, lambda: service.run(folder / "service", options.repetitions)),
        ]
        for part, is_wanted, work in parts:
            if is_wanted:
                before, began = _processor_seconds(), time.monotonic()
                good &= work()
                used = _processor_seconds() - before
                print(f"{part}: {time.monotonic() - began:.0f} s, {used:.0f} s of the processor", flush=True)
    sys.exit(not good)


if __name__ == "__main__":
    main()
