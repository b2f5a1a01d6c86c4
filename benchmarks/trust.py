"""Every table of what labels are worth: closed labels, placebos, random controls, calibrated figures, and tails.

    python -m benchmarks.trust [TABLE ...] [--quick] [--data FOLDER]

The data are the public test collections; FOLDER is ../shared/data by default. `--quick` has few repetitions: it shows
that all runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.trust_tables import calibrated, controls, placebos, worlds


def of_cells(cells: Iterable[calibrated.Cell], times: int) -> str:
    """The table of these cells; with one repetition, of some of them."""
    return calibrated.table(list(cells)[:: 8 if times == 1 else 1])


#: What makes each table, of (the folder, repetitions), and how many there are in docs/reference/simulations.md.
TABLES: dict[str, tuple[int, Callable[[Path, int], str]]] = {
    "closed": (1, lambda data, _: placebos.closed_table(data)),
    "placebos": (1000, placebos.placebo_table),
    "controls": (300, lambda data, n: controls.table("Random controls", controls.controls_rows(n, data))),
    "held-out-controls": (60, lambda data, n: controls.table("The same, held out", controls.held_out_rows(n, data))),
    "calibrated": (8, lambda _, n: of_cells(calibrated.figure_cells(n, (100, 200, 400)), n)),
    "slices": (10, lambda _, n: of_cells(calibrated.slice_cells(n), n)),
    "differences": (8, lambda _, n: calibrated.differences_table(n)),
    "tails": (10, lambda _, n: of_cells(calibrated.tail_cells(n), n)),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"some of: {', '.join(TABLES)}")
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--data", type=Path, default=worlds.SHARED, help="folder of the test collections")
    given = parser.parse_args()
    if unknown := sorted(set(given.tables) - set(TABLES)):
        parser.error(f"there is no table {', '.join(unknown)}; there are {', '.join(TABLES)}")
    if not given.data.is_dir():
        sys.exit(f"{given.data}: the test collections are not there; give their folder with --data")
    worlds.SHARED = given.data
    for name in given.tables or TABLES:
        repetitions, make = TABLES[name]
        print(f"{name}\n{make(given.data, max(1, repetitions // 30) if given.quick else repetitions)}\n", flush=True)


if __name__ == "__main__":
    main()
