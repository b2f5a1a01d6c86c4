"""How often intervals hold the truth, tests err and decisions are wrong, in made worlds whose truth is known.

    python -m benchmarks.simulations [SECTION ...] [--samples N] [--quick] [--data FOLDER]

Prints a table a section. A column that `holds` counts the intervals that hold the truth (.93 is promised), one that
`errs` the errors where nothing is to be shown (at most .06). A † marks what breaks the promise by more than two
standard errors: .95 has one of .007 with 1,000 samples and of .015 with 200. The last column says of each cell whether
it keeps its promise, and the last table has the worst cell of each section.
`--quick` takes few samples: it shows that all runs, and its shares say nothing. Sections of judges need the public test
collections; FOLDER is ../shared/data by default.
"""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.simulated import BROKEN, ERRS, HOLDS, Line, answers, depth, figures, labels, online, weighted
from benchmarks.trust_tables import calibrated, controls, worlds

#: The samples of a cell that the tables of docs/reference/simulations.md have, and what makes them.
SECTIONS: dict[str, tuple[str, int, Callable[[int], Iterator[Line]]]] = {
    "rates": ("Success and BoR of two runs", 1000, figures.of_rates),
    "baselines": ("BoR of two runs with baselines of their own", 1000, figures.of_baselines),
    "means": ("Means of two runs", 1000, figures.of_means),
    "arms": ("Runs over different queries", 1000, figures.of_arms),
    "bits": ("BoR of one run", 1000, figures.of_single_figures),
    "one-run": ("Rates and means of one run", 1000, figures.of_single_means),
    "clusters": ("Clusters of queries, and a slice of them", 300, figures.of_clusters),
    "power": ("What was called detectable", 1000, figures.of_power),
    "weights": ("Weighted figures, the worst of four rates", 150, weighted.of_weights),
    "agreement": ("Intervals of `agree`, the lowest of 44 worlds", 240, labels.of_agreement),
    "verdicts": ("Verdicts of `agree`", 400, labels.of_verdicts),
    "ranking": ("Does a judge rank two runs as people do?", 27, labels.of_ranking),
    "correlations": ("Intervals of correlations with answers", 200, answers.of_correlations),
    "measures": ("Two measures that follow the answers equally", 200, answers.of_measures),
    "detectable": ("A correlation of the detectable size", 200, answers.of_detectable),
    "lift": ("Lift and bits of answers", 2000, answers.of_lift),
    "slope": ("Slope of the accuracy with junk", 250, answers.of_slope),
    "looks": ("Equal arms, a look after each 50 of 10,000 impressions", 500, online.of_looks),
    "sequences": ("A true difference at any of 20 looks", 100, online.of_sequences),
    "impressions": ("Impressions that are needed", 500, online.of_impressions),
    "fairness": ("Wins of b where neither system is better", 500, online.of_fairness),
    "alarms": ("Alarms of a monitor", 51, online.of_alarms),
    "which-k": ("Which K", 300, depth.of_which_k),
    "controls": ("Random controls", 300, lambda n: iter(controls.controls_rows(n, worlds.SHARED))),
    "held-out-controls": ("Held out", 60, lambda n: iter(controls.held_out_rows(n, worlds.SHARED))),
    "calibrated": ("Figures calibrated by people", 8, partial(calibrated.lines, calibrated.figure_cells)),
    "settled": ("Labels that settle queries", 16, partial(calibrated.lines, calibrated.settled_cells)),
    "slices": ("Calibrated figures of slices", 10, partial(calibrated.lines, calibrated.slice_cells)),
    "differences": ("Calibrated differences", 8, calibrated.of_differences),
    "tails": ("A tail of the pool", 10, partial(calibrated.lines, calibrated.tail_cells)),
}
#: A share of the samples, and at least one.
QUICK = 30


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"some of: {', '.join(SECTIONS)}")
    parser.add_argument("--samples", type=int, help="samples of a cell")
    parser.add_argument("--quick", action="store_true", help="few samples")
    parser.add_argument("--data", type=Path, default=worlds.SHARED, help="folder of the test collections")
    given = parser.parse_args()
    if unknown := sorted(set(given.sections) - set(SECTIONS)):
        parser.error(f"there is no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    worlds.SHARED = given.data
    worst = ["| section | cells | samples | holds, at least | errs, at most | broken |", "|---|---|---|---|---|---|"]
    for name in given.sections or SECTIONS:
        title, samples, lines = SECTIONS[name]
        samples = max(1, samples // QUICK) if given.quick else given.samples or samples
        print(f"\n## {title}\n\n{samples} samples a cell\n")
        seen: list[Line] = []
        for line in lines(samples):
            if not seen:
                header = ["cell", *line.figures, "keeps its promise"]
                print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
            print(line.text(samples), flush=True)
            seen.append(line)
        worst.append(worst_of(name, seen, samples))
    print("\n## The worst cell of each section\n")
    print("\n".join(worst))


def worst_of(name: str, lines: Sequence[Line], samples: int) -> str:
    """A section as a row: its lowest coverage, its highest share of errors, and how many figures break a promise."""
    ends = []
    for promise, end in ((HOLDS, min), (ERRS, max)):
        shares = [
            (value, f"{value:.3f} ({line.cell})")
            for line in lines
            for figure, value in line.figures.items()
            if figure.startswith(promise) and not math.isnan(value)
        ]
        ends.append(end(shares)[1] if shares else "–")
    broken = sum(len(line.broken(samples)) for line in lines)
    return f"| {name} | {len(lines)} | {samples} | {' | '.join(ends)} | {broken}{BROKEN if broken else ''} |"


if __name__ == "__main__":
    main()
