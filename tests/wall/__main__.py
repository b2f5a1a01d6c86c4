"""The wall from the command line: `python -m tests.wall [--accept] [NAME …]`, `--commits BASE..HEAD`."""

import argparse
import contextlib
import io
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor

from tests.wall.commits import mixed_commits
from tests.wall.wall import Missing, Result, accept, differences, run, scenarios, stored

#: Differences of a scenario that are printed.
SHOWN = 8


def group(names: list[str]) -> list[tuple[str, Result | None, str, float]]:
    """(name, what it returned, why it did not, seconds) of the scenarios of a module."""
    found = []
    for name in names:
        start, heard = time.perf_counter(), io.StringIO()
        result: Result | None = None
        try:
            with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
                result, problem = run(scenarios()[name]), ""
        except Missing as missing:
            problem = f"skipped: {missing}"
        except Exception:
            problem = traceback.format_exc()
        found.append((name, result, problem, time.perf_counter() - start))
    return found


def main() -> int:
    """Run scenarios; 1 if one differs or fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.wall", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; default: all")
    parser.add_argument("--accept", action="store_true", help="store what the named scenarios (or `all`) return now")
    parser.add_argument("--commits", metavar="BASE..HEAD", help="check that no commit touches scenarios and stored")
    parser.add_argument("--times", action="store_true", help="print the seconds of each scenario")
    chosen = parser.parse_args()
    if chosen.commits:
        return commits(chosen.commits)
    if chosen.accept and not chosen.names:
        parser.error("--accept needs the name of a scenario, or all")
    parts = [part for part in chosen.names if part != "all"]
    names = [name for name in scenarios() if not parts or any(part in name for part in parts)]
    if not names:
        parser.error(f"no scenario is named {' or '.join(parts)}")
    start, counts = time.perf_counter(), dict.fromkeys(("equal", "stored", "new", "skipped", "differ"), 0)
    modules = dict.fromkeys(name.split("/")[0] for name in names)
    with ProcessPoolExecutor(2) as pool:
        groups = pool.map(group, [[name for name in names if name.split("/")[0] == module] for module in modules])
        for name, result, problem, seconds in (each for done in groups for each in done):
            if chosen.times:
                print(f"{seconds:6.1f} s  {name}")
            counts[report(name, result, problem, chosen.accept)] += 1
    print(", ".join(f"{count} {word}" for word, count in counts.items() if count), end="; ")
    print(f"{len(names)} scenarios in {time.perf_counter() - start:.0f} s")
    return 1 if counts["differ"] else 0


def report(name: str, result: Result | None, problem: str, accepted: bool) -> str:
    """Print what became of a scenario, store it if it is accepted, and say in a word what it was."""
    if result is None:
        print(f"{name}: {problem}")
        return "skipped" if problem.startswith("skipped") else "differ"
    before = stored(name)
    found = [] if before is None else differences(before, result)
    if accepted and (before is None or found):
        accept(name, result)
        return "stored"
    if before is None:
        print(f"{name}: nothing is stored yet (--accept {name})")
        return "new"
    if found:
        print(f"{name}: {len(found)} difference{'s' * (len(found) > 1)}")
        print("".join(f"    {line}\n" for line in found[:SHOWN]), end="")
        return "differ"
    return "equal"


def commits(wanted: str) -> int:
    """Print the commits of a range that touch both; 1 if there are any."""
    found = mixed_commits(wanted)
    if found is None:
        print(f"the commits {wanted} are not in this clone, so nothing is checked")
        return 0
    for title in found:
        print(f"touches scenarios and what is stored: {title}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
