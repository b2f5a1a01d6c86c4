"""Every table of what labels are worth: closed labels, placebos, random controls, calibrated figures, and tails.

    python benchmarks/trust.py [--short] [--data FOLDER]

The data are the public test collections; FOLDER is ../shared/data by default.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.trust_tables import calibrated, controls, held_out, held_out_controls, placebos, tails, worlds


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="few repetitions")
    parser.add_argument("--data", type=Path, default=placebos.DATA, help="folder of the test collections")
    given = parser.parse_args()
    if not given.data.is_dir():
        sys.exit(f"{given.data}: the test collections are not there; give their folder with --data")
    worlds.SHARED = given.data
    print("Closed labels\n" + "\n".join(placebos.closed_table(given.data)), end="\n\n")
    shuffles = 200 if given.short else 1000
    print("Placebos beside shuffled grades\n" + "\n".join(placebos.placebo_table(given.data, shuffles)), end="\n\n")
    print(
        "Random controls\n" + controls.controls_table(20 if given.short else 60, given.data / "cranfield"), end="\n\n"
    )
    print(held_out_controls.table(2 if given.short else 60, given.data), end="\n\n")
    times, sizes = (2, [200]) if given.short else (8, [100, 200, 400])
    print("Calibrated by people's labels\n" + calibrated.calibrated_table(times, sizes), end="\n\n")
    print("The same, held out\n" + held_out.table(1 if given.short else 5, sizes), end="\n\n")
    print("Differences\n" + calibrated.differences_table(2 if given.short else 5), end="\n\n")
    print("The same, held out\n" + held_out.differences_table(1 if given.short else 5), end="\n\n")
    print("A tail, completed\n" + tails.table(1 if given.short else 10), end="\n\n")
    print(calibrated.cost())


if __name__ == "__main__":
    main()
