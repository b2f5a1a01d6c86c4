"""Everything that speed and memory are promised for, measured, with the peers beside it.

    python -m benchmarks.speed [PART ...]

A part is the name of a module of this folder that has `rows`. Without parts all are measured, which takes about half an
hour. What is to be reached, and by how much it is, is on each line; the last column says whether it is.
"""

from __future__ import annotations

import argparse
import importlib

PARTS = (
    "load_and_measure",
    "columns",
    "small",
    "intervals",
    "startup",
    "live",
    "page",
    "slices",
)
_MARKS = {True: "yes", False: "**no**", None: "no peer here"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {', '.join(PARTS)}")
    parts = parser.parse_args().parts or PARTS
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    print("| work | reach | measured | peer, or what it is compared with | reached |")
    print("|---|---|---|---|---|")
    for part in parts:
        for row in importlib.import_module(f"benchmarks.{part}").rows():
            cells = (row.work, row.reach, row.measured, row.peer, _MARKS[row.reached])
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
