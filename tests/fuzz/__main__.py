"""`python -m tests.fuzz --inputs 1000000 --seed S`: run the fuzzer; what it found is grouped by place.

An input depends on the seed, its number and its kind: `--start N` goes on where a run ended. `--kind NAME` tries one
kind alone; with `--start N --inputs 1` it repeats one input.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections import Counter

from tests.fuzz.kinds import KINDS
from tests.fuzz.running import Finding, tried

#: A file system in memory, where Linux has it.
IN_MEMORY = "/dev/shm"


def main() -> int:
    """1 if something was found, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=2000, help="how many inputs to try")
    parser.add_argument("--seed", type=int, default=7, help="chooses the inputs")
    parser.add_argument("--start", type=int, default=0, help="number of the first input")
    parser.add_argument("--quick", action="store_true", help="without the kinds that import frameworks")
    names = [kind.name for kind in KINDS]
    parser.add_argument(
        "--kind",
        action="append",
        choices=names,
        metavar="NAME",
        help=f"only this kind; repeat for more: {', '.join(names)}",
    )
    options = parser.parse_args()
    # What a monitor or a writer tells of lines that it left out.
    logging.disable(logging.CRITICAL)
    if os.access(IN_MEMORY, os.W_OK):
        # Stores and reports wait for the disk otherwise, for a fifth of the time.
        tempfile.tempdir = IN_MEMORY
    kinds = [kind for kind in KINDS if not (options.quick and kind.slow)]
    if options.kind:
        kinds = [kind for kind in KINDS if kind.name in options.kind]
    first: dict[str, Finding] = {}
    places: Counter[str] = Counter()
    end, started = options.start + options.inputs, time.process_time()
    try:
        for number in range(options.start, end):
            finding = tried(options.seed, number, kinds=kinds, measured=number >= options.start + len(kinds))
            if finding is not None:
                places[finding.place] += 1
                if first.setdefault(finding.place, finding) is finding:
                    print(f"{finding}\n", flush=True)
            if (number + 1) % 10_000 == 0:
                print(f"{number + 1 - options.start:,} inputs, go on with --start {number + 1}", file=sys.stderr)
    except KeyboardInterrupt:
        end = number
    print(f"seed {options.seed}: {end - options.start:,} inputs, {places.total():,} findings at {len(places)} places")
    took = 1000 * (time.process_time() - started) / max(1, end - options.start)
    print(f"{took:.2f} ms of the processor for each input")
    for place, count in places.most_common():
        print(f"{count:6,}  {place}  ({first[place].kind}, --start {first[place].number})")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
