"""What a process holds, sampled while it works: live memory, what the allocator keeps, and open files.

Live memory is what the process still refers to: the blocks of Python objects, and what is allocated by C (arrays, and
the tables of dicts). The resident memory holds more: each thread that ever allocated has an arena of the C library,
which keeps what was freed. So an arena for each thread fills up once, while nothing is leaked; `MALLOC_ARENA_MAX=2`
in the environment bounds it.

Flat means: from the second third of the work to the last third, the medians of both kinds of live memory grow by no
more than `MOST_BLOCKS` and `MOST_MEGABYTES`, and neither threads nor open files become more.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median

#: A share of the blocks: one lost object for about 40 retrievals of a million is more.
MOST_BLOCKS = 0.02
MOST_MEGABYTES = 1.0
_FIELDS = ["arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"]


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


def _of_allocator() -> Callable[[], _Mallinfo] | None:
    """glibc's `mallinfo2`; None where there is none."""
    try:
        found = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return None
    found.restype = _Mallinfo
    return found  # type: ignore[no-any-return]


_mallinfo = _of_allocator()


def resident() -> float:
    """The memory of this process, in megabytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def trim() -> None:
    """Have the allocator give back what it can, where it can be asked to."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return


@dataclass(frozen=True, slots=True)
class Sample:
    """What the process held after so much work.

    Attributes
    ----------
    done : int
    resident : float
        Megabytes.
    blocks : int
        Of Python objects.
    in_use, free : float
        Megabytes that C has allocated, and that the allocator keeps; 0 where the C library does not tell.
    files, threads : int
    """

    done: int
    resident: float
    blocks: int
    in_use: float
    free: float
    files: int
    threads: int

    @classmethod
    def now(cls, done: int) -> Sample:
        """Look at this process."""
        info = None if _mallinfo is None else _mallinfo()
        return cls(
            done,
            resident(),
            sys.getallocatedblocks(),
            0.0 if info is None else (info.uordblks + info.hblkhd) / 1e6,
            0.0 if info is None else info.fordblks / 1e6,
            len(os.listdir("/proc/self/fd")),
            threading.active_count(),
        )


@dataclass
class Watch:
    """Samples of a process, in the order of its work."""

    samples: list[Sample] = field(default_factory=list)

    def look(self, done: int) -> None:
        """Take a sample."""
        self.samples.append(Sample.now(done))

    def third(self, number: int, name: str) -> float:
        """The median of a figure in a third of the samples, counted from 0."""
        size = len(self.samples) / 3
        part = self.samples[round(number * size) : round((number + 1) * size)]
        return float(median(getattr(sample, name) for sample in part)) if part else 0.0

    def growth(self, name: str) -> float:
        """From the second third to the last."""
        return self.third(2, name) - self.third(1, name)

    @property
    def is_flat(self) -> bool:
        """As the module defines it."""
        return (
            self.growth("blocks") <= MOST_BLOCKS * self.third(1, "blocks")
            and self.growth("in_use") <= MOST_MEGABYTES
            and self.growth("files") <= 0
            and self.growth("threads") <= 0
        )

    def lines(self) -> Iterator[str]:
        """In words."""
        if not self.samples:
            return
        yield "  median of each third of the work:"
        for name, what, digits in (
            ("blocks", "live blocks of Python objects", 0),
            ("in_use", "live megabytes allocated by C", 1),
            ("free", "megabytes that the allocator keeps free", 1),
            ("resident", "resident megabytes", 1),
            ("files", "open files", 0),
            ("threads", "threads", 0),
        ):
            thirds = ", ".join(f"{self.third(number, name):,.{digits}f}" for number in range(3))
            yield f"    {what}: {thirds}"
        trim()
        first, last = self.samples[0].resident, self.samples[-1].resident
        yield f"    resident: {first:.0f} MB at the start, {last:.0f} at the end, {resident():.0f} after malloc_trim"
        yield (
            f"  live memory is flat (from the second third to the last, blocks grow by at most {MOST_BLOCKS:.0%}, "
            f"C's by {MOST_MEGABYTES:g} MB, files and threads not at all): {'yes' if self.is_flat else 'NO'}"
        )
