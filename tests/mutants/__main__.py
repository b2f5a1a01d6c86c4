"""`python -m tests.mutants --count 600 --seed S`: how many of the faults put into the formulas the tests notice.

A mutant is one change that cosmic-ray's operators make in `measures/`, `statistics/` or `join/`. It is killed if a test
that reaches it fails. Tests that take seconds, start processes or need a framework are not run, so that a fault that
only they notice counts as a survivor. What is measured and drawn is kept in a folder, where a stopped run goes on.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import resource
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from random import SystemRandom

# Threads do not survive a fork.
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

from tests.mutants.drawing import Mutant, draw, possible_mutants
from tests.mutants.forked import Tree
from tests.mutants.reach import measure_reach
from tests.mutants.trying import BROKEN, KILLED, LATE, SURVIVED, UNREACHED, Tried, Trier, all_killers, digest_of

ROOT = Path(__file__).resolve().parents[2]
CONTROL = "without any change"
#: One mutant in so many is also tried without its change: a failure then would show that kills are not real.
CONTROLS = 20


def main() -> int:
    """1 if the tests fail without any change, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=600, help="how many mutants to draw")
    parser.add_argument("--seed", type=int, default=None, help="chooses the mutants; drawn and printed if not given")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of tests for a mutant that survives")
    parser.add_argument("--workers", type=int, default=1, help="how many are tried at the same time")
    parser.add_argument("--again", action="store_true", help="try those again that survived the last run of this seed")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "rag-selectivity-mutants",
        help="the folder that keeps what was measured and drawn",
    )
    options = parser.parse_args()
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    work: Path = options.work
    work.mkdir(parents=True, exist_ok=True)
    mutants, left_out = possible_mutants(ROOT)
    print(f"seed {seed}: {options.count} of {len(mutants):,} mutants; {left_out:,} more change no figure", flush=True)
    drawn = draw(ROOT, mutants, options.count, seed)
    tree = Tree(ROOT, work)
    reach = measure_reach(tree, work / "reach.json")

    results = work / f"results-{seed}.jsonl"
    known = _stored(results)
    waiting = []
    for mutant, source in drawn:
        before = known.get(mutant.key)
        done = before is not None and before.digest == digest_of(source)
        if before is None or not done or (options.again and before.outcome not in (KILLED, LATE)):
            waiting.append((mutant, source))
    workers = []
    for number in range(options.workers):
        pid = os.fork()
        if pid == 0:
            own = Trier(Tree(ROOT, work / f"worker-{number}", tree), reach)
            _work(own, waiting[number :: options.workers], results, options.budget)
            os._exit(0)
        workers.append(pid)
    if any(os.waitpid(pid, 0)[1] for pid in workers):
        return 1
    known = _stored(results)
    tried_now = [known[mutant.key] for mutant, _ in drawn]
    failing = [f"{key}: {each.killer} {each.error}" for key, each in known.items() if key.startswith(CONTROL)]
    failing += Trier(tree, reach).pass_unmutated(all_killers(tried_now))
    for (mutant, source), tried in zip(drawn, tried_now, strict=True):
        if tried.outcome not in (KILLED, LATE):
            print(
                f"\n{tried.outcome}, {tried.run} tests run, {tried.left} left: {mutant.key}\n{_change(mutant, source)}"
            )
    _print_counts(seed, tried_now)
    for line in failing:
        print(f"fails without any change: {line}", file=sys.stderr)
    return 1 if failing or any(tried.outcome == BROKEN for tried in tried_now) else 0


def _work(trier: Trier, waiting: list[tuple[Mutant, str]], results: Path, budget: float) -> None:
    for number, (mutant, source) in enumerate(waiting):
        tried = [trier.attempt(mutant, source, budget)]
        if number % CONTROLS == 0:
            control = trier.attempt(mutant, None, budget)
            if control.outcome not in (SURVIVED, UNREACHED):
                tried.append(replace(control, key=f"{CONTROL} {control.key}"))
        # One write, since several processes write.
        with results.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(asdict(each)) + "\n" for each in tried))
        print(f"{tried[0].outcome} {tried[0].seconds:.1f} s {mutant.key} {tried[0].killer}", flush=True)


def _stored(results: Path) -> dict[str, Tried]:
    if not results.exists():
        return {}
    rows = [Tried(**json.loads(line)) for line in results.read_text(encoding="utf-8").splitlines()]
    return {row.key: row for row in rows}


def _change(mutant: Mutant, source: str) -> str:
    before = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()
    lines = difflib.unified_diff(before, source.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---"))


def _print_counts(seed: int, tried: list[Tried]) -> None:
    print(f"\nseed {seed}, {len(tried)} mutants")
    for name, of_kind in (
        ("in functions", [each for each in tried if not each.imported]),
        ("run at import only", [each for each in tried if each.imported]),
        ("all", tried),
    ):
        counts = Counter(each.outcome for each in of_kind)
        share = (counts[KILLED] + counts[LATE]) / max(1, len(of_kind))
        parts = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
        print(f"{name}: {len(of_kind)}, {share:.1%} killed ({parts})")
    unimported = sum(each.outcome == KILLED and not each.killer for each in tried)
    print(f"{unimported} of those killed kept the tests from being imported, or ended the process")
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{sum(each.ru_utime + each.ru_stime for each in (own, children)):.0f} s of the processor")


if __name__ == "__main__":
    sys.exit(main())
