"""How long the package and its command line take to start, beside numpy and an empty program.

    python -m benchmarks.startup

Every start is a process of its own, with bytecode written and files in the cache of the system; the contenders take
turns, and the fastest of 15 starts counts, so that other work of the machine does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.speed_row import Row

ROUNDS = 15
_PATHS = [Path(__file__).parents[1], Path(__file__).parents[1] / "integrations"]
#: What is started, as words for the interpreter.
STARTS = {
    "nothing": ("-c", "pass"),
    "numpy": ("-c", "import numpy"),
    "package": ("-c", "import rag_selectivity"),
    "first use": ("-c", "import rag_selectivity as rs; rs.evaluate"),
    "--version": ("-m", "rag_selectivity", "--version"),
    "--help": ("-m", "rag_selectivity", "--help"),
    "sample --help": ("-m", "rag_selectivity", "sample", "--help"),
    "evaluate --help": ("-m", "rag_selectivity", "evaluate", "--help"),
}


def seconds(words: Iterable[str]) -> float:
    """The wall time of a start."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, _PATHS))
    began = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - began


def fastest() -> dict[str, float]:
    """{start: its shortest time}; the first round writes the bytecode and does not count."""
    rounds = [{name: seconds(words) for name, words in STARTS.items()} for _ in range(ROUNDS + 1)][1:]
    return {name: min(each[name] for each in rounds) for name in STARTS}


def rows() -> Iterable[Row]:
    """The rows of the table of speed."""
    took = fastest()
    numpy = took["numpy"]
    yield Row(
        "import rag_selectivity",
        "≤ numpy's import + .03 s",
        f"{took['package']:.3f} s; with `rs.evaluate` {took['first use']:.3f} s",
        f"import numpy {numpy:.3f} s; an empty program {took['nothing']:.3f} s",
        took["package"] <= numpy + 0.03,
    )
    of_commands = f"; of `sample` {took['sample --help']:.3f} s, of `evaluate` {took['evaluate --help']:.3f} s"
    for option, limit, more in (("--version", 0.1, ""), ("--help", 0.3, of_commands)):
        yield Row(
            f"rag-selectivity {option}",
            f"≤ {limit:g} s",
            f"{took[option]:.3f} s{more}",
            f"import numpy {numpy:.3f} s",
            took[option] <= limit,
        )


if __name__ == "__main__":
    for row in rows():
        print(f"{row.work:26} {row.reach:26} {row.measured:66} {row.peer}")
