"""Online evaluation where the truth is known: looks, power, fairness, speed.

python benchmarks/online.py looks      # false winners with a look after each 50 of 10,000 impressions
python benchmarks/online.py coverage   # how often a confidence sequence ever left out a true difference
python benchmarks/online.py needed     # impressions that interleaving needs against an A/B test
python benchmarks/online.py fairness   # equal systems, swapped neighbours, and the bias of balanced interleaving
python benchmarks/online.py speed      # a draft, and 1,000,000 records from a file
"""

from __future__ import annotations

import json
import math
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from rag_selectivity.online import TwoArms, compare_arms, interleave, preference
from rag_selectivity.online.interleaving import METHODS
from rag_selectivity.statistics import mcnemar, sign_share

Draw = Callable[[np.random.Generator, int], np.ndarray]


def _rate(rate: float) -> Draw:
    return lambda rng, n: (rng.random(n) < rate).astype(np.float64)


WORLDS: dict[str, tuple[str, Draw]] = {
    "rate .02": ("rate", _rate(0.02)),
    "rate .20": ("rate", _rate(0.2)),
    "rate .50": ("rate", _rate(0.5)),
    "mean, uniform": ("mean", lambda rng, n: rng.random(n)),
    "mean, mostly 0": ("mean", lambda rng, n: np.where(rng.random(n) < 0.01, rng.random(n), 0.0)),
    "mean, 1 in 200 is 1": ("mean", lambda rng, n: np.where(rng.random(n) < 0.005, 1.0, 0.02 * rng.random(n))),
}
#: CUPED takes the same code for all of them.
_WITH_COVARIATE = ("rate .20", "mean, uniform")


def looks(trials: int = 500, impressions: int = 10_000, every: int = 50) -> None:
    """Equal arms: the share of experiments in which some look has p ≤ .05."""
    print(f"{trials:,} experiments of {impressions:,} impressions, a look after each {every}; the level is .05,")
    print(f"and .05 + 2 SE is {0.05 + 2 * math.sqrt(0.05 * 0.95 / trials):.4f}")
    print(f"{'outcome':<22}{'always valid':>14}{'one-look test':>15}{'CUPED, always valid':>21}")
    for name, (kind, draw) in WORLDS.items():
        rng, rejected = np.random.default_rng(7), np.zeros(3)
        for _ in range(trials):
            assigned = rng.random(impressions) < 0.5
            covariate = rng.random(impressions)
            values = draw(rng, impressions)
            arms = [TwoArms(kind), TwoArms(kind, sequential=False), TwoArms(kind, has_covariate=True)]
            is_open = [True, True, name in _WITH_COVARIATE]
            for start in range(0, impressions, every):
                part = slice(start, start + every)
                b = assigned[part]
                for place, arm in enumerate(arms):
                    if not is_open[place]:
                        continue
                    others = (covariate[part][~b], covariate[part][b]) if place == 2 else None
                    arm.add(values[part][~b], values[part][b], others)
                    if start + every >= 100 and arm.p() <= 0.05:
                        is_open[place] = False
                        rejected[place] += 1
        shares = rejected / trials
        of_cuped = f"{shares[2]:.3f}" if name in _WITH_COVARIATE else "–"
        print(f"{name:<22}{shares[0]:>14.3f}{shares[1]:>15.3f}{of_cuped:>21}", flush=True)
    rng, rejected = np.random.default_rng(7), np.zeros(2)
    for _ in range(trials):
        won = np.cumsum(rng.random(impressions) < 0.5)
        n = np.arange(every, impressions + 1, every)
        wins = won[n - 1]
        rejected[0] += any(
            sign_share.any_time(int(w), int(m - w), 0.95).p <= 0.05 for w, m in zip(wins, n, strict=True)
        )
        rejected[1] += (mcnemar.two_sided_p(wins, n - wins) <= 0.05).any()
    print(f"{'preference':<22}{rejected[0] / trials:>14.3f}{rejected[1] / trials:>15.3f}{'–':>21}")


def coverage(trials: int = 100, impressions: int = 10_000, looked: int = 20) -> None:
    """A true difference: how often it was outside the interval at any of the looks."""
    print(f"{trials} experiments of {impressions:,} impressions, {looked} looks; at most .05 may leave out the truth")
    cells = [("rate", 0.02, 0.03), ("rate", 0.2, 0.25), ("rate", 0.5, 0.5), ("rate", 0.95, 0.99), ("mean", 0.2, 0.3)]
    for kind, first, second in cells:
        rng, missed, widths, fixed = np.random.default_rng(7), 0, [], []
        for _ in range(trials):
            arms, once, left_out = TwoArms(kind), TwoArms(kind, sequential=False), False
            for _ in range(looked):
                size = impressions // looked // 2
                if kind == "rate":
                    a, b = rng.random(size) < first, rng.random(size) < second
                else:
                    a, b = rng.beta(1, 1 / first - 1, size), rng.beta(1, 1 / second - 1, size)
                arms.add(a, b)
                once.add(a, b)
                found = arms.compared()
                left_out |= not found.low <= second - first <= found.high
            missed += left_out
            widths.append(found.high - found.low)
            last = once.compared()
            fixed.append(last.high - last.low)
        wider = np.mean(widths) / np.mean(fixed)
        print(
            f"{kind} {first} and {second}: left out in {missed / trials:.3f}; {wider:.2f} times as wide as at one look"
        )


class World:
    """Queries with 20 passages, two rankings of them, and users who cite relevant passages that they come across."""

    def __init__(self, quality: tuple[float, float], rng: np.random.Generator, queries: int = 400) -> None:
        self.rng, self.k = rng, 5
        self.relevant = rng.random((queries, 20)) < 0.15
        noise = rng.standard_normal((2, queries, 20))
        self.lists = [
            [[f"d{d}" for d in row] for row in np.argsort(-(strength * self.relevant + noise[side]), axis=1)]
            for side, strength in enumerate(quality)
        ]

    def cited(self, query: int, passages: list[str]) -> list[str]:
        """Each relevant passage is cited with a probability that falls with its position."""
        chances = self.rng.random(len(passages)) < 0.35 * 0.9 ** np.arange(len(passages))
        return [
            p for p, is_cited in zip(passages, chances, strict=True) if is_cited and self.relevant[query, int(p[1:])]
        ]

    def impression(self, number: int) -> tuple[int, int, int]:
        """The sign of an interleaved impression, and whether an answer of each system alone cites a passage."""
        query = int(self.rng.integers(len(self.relevant)))
        ranked = {name: self.lists[side][query] for side, name in enumerate("ab")}
        draft = interleave(ranked, k=self.k, seed=number)
        credit = [0, 0]
        for passage in self.cited(query, draft.passages):
            credit["ab".index(draft.team[passage])] += 1
        alone = [bool(self.cited(query, ranked[name][: self.k])) for name in "ab"]
        return int(np.sign(credit[1] - credit[0])), int(alone[0]), int(alone[1])


def needed(drawn: int = 60_000) -> None:
    """Impressions for a power of 80 % at one look, and a check by simulation."""
    print(
        f"{'quality':<14}{'answers citing: a':>18}{'b':>8}{'wins':>8}{'losses':>8}"
        f"{'interleaved':>13}{'A/B':>10}{'ratio':>7}"
    )
    for quality in ((1.0, 1.6), (1.0, 1.3), (1.0, 1.15)):
        world = World(quality, np.random.default_rng(7))
        rows = np.array([world.impression(i) for i in range(drawn)])
        wins, losses = (rows[:, 0] > 0).mean(), (rows[:, 0] < 0).mean()
        a, b = rows[:, 1].mean(), rows[:, 2].mean()
        n = 8
        while mcnemar.power(n, float(wins), float(losses), 0.05) < 0.8:
            n = math.ceil(n * 1.02)
        probe = TwoArms("rate", sequential=False)
        probe.add(rows[:, 1], rows[:, 2])
        of_arms = probe.compared(detect=float(abs(b - a))).needed or 0
        print(
            f"{quality!s:<14}{a:>18.3f}{b:>8.3f}{wins:>8.3f}{losses:>8.3f}{n:>13,}{of_arms:>10,}{of_arms / n:>7.1f}",
            flush=True,
        )
        rng = np.random.default_rng(8)
        shown = [0, 0]
        for _ in range(300):
            some = rows[rng.integers(0, drawn, n), 0]
            shown[0] += sign_share.exact(int((some > 0).sum()), int((some < 0).sum()), 0.95).low > 0.5
            first, second = (rows[rng.integers(0, drawn, of_arms // 2), column] for column in (1, 2))
            shown[1] += compare_arms(first, second, sequential=False).low > 0
        print(f"{'':<14}shown in {shown[0] / 300:.2f} and {shown[1] / 300:.2f} of 300 experiments of these sizes")


def fairness(impressions: int = 20_000) -> None:
    """Wins of b among impressions that differ, where neither system is better."""
    rng = np.random.default_rng(7)
    best = [f"d{i}" for i in range(10)]
    swapped = [best[i ^ 1] for i in range(10)]
    shifted = [*best[1:], best[0]]

    def read_down(passages: list[str]) -> list[str]:
        return [p for place, p in enumerate(passages) if rng.random() < 0.3 * 0.8**place]

    def relevant_only(passages: list[str]) -> list[str]:
        return [p for p in passages if int(p[1:]) < 4 and rng.random() < 0.3]

    def at_random(passages: list[str]) -> list[str]:
        return [p for p in passages if rng.random() < 0.2]

    cells = [
        ("the same list twice", lambda: (best, best), read_down),
        ("equally good, drawn apart", lambda: tuple(list(rng.permutation(best)) for _ in "ab"), relevant_only),
        ("neighbours swapped, cited by position", lambda: (best, swapped), read_down),
        ("shifted by one, cited at random", lambda: (best[:4], [*best[1:4], best[0]]), at_random),
        ("shifted by one, cited by position", lambda: (best, shifted), read_down),
    ]
    print(f"share of wins of b in {impressions:,} impressions; 2 SE of a fair share is about .01")
    print(f"{'':<40}" + "".join(f"{method:>15}" for method in METHODS))
    for name, draw, cited in cells:
        line = f"{name:<40}"
        for method in METHODS:
            wins = losses = 0
            for number in range(impressions):
                first, second = draw()
                draft = interleave({"a": first, "b": second}, k=4, seed=number, method=method)
                credit = [0, 0]
                for passage in cited(draft.passages):
                    credit["ab".index(draft.team[passage])] += 1
                wins += credit[1] > credit[0]
                losses += credit[1] < credit[0]
            line += f"{wins / (wins + losses):>15.3f}"
        print(line, flush=True)


def _records(count: int) -> Iterator[dict[str, object]]:
    rng = np.random.default_rng(7)
    a, b = [f"d{i}" for i in range(10)], [f"d{i}" for i in range(3, 13)]
    drafts = [interleave({"a": a, "b": b}, k=10, seed=i).record("q") for i in range(500)]
    for number in range(count):
        row = drafts[number % 500]
        cited = row["passages"][int(rng.integers(10))]
        yield {**row, "impression": f"i{number}", "credit": {cited: 1.0}}


def speed(count: int = 1_000_000) -> None:
    """A draft at K = 10, and a decision on a file of records, with its memory."""
    lists = {"a": [f"d{i}" for i in range(100)], "b": [f"d{i}" for i in range(5, 105)]}
    for method in METHODS:
        best = min(
            _seconds(lambda each=method: [interleave(lists, k=10, seed=i, method=each) for i in range(2000)])
            for _ in range(5)
        )
        print(f"a draft, {method}: {best / 2000 * 1e6:.1f} µs")
    with tempfile.TemporaryDirectory() as folder:
        for n in (count // 10, count):
            path = Path(folder) / "records.jsonl"
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(f"{json.dumps(row)}\n" for row in _records(n))
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            start, cpu = time.perf_counter(), time.process_time()
            found = preference(path)
            took, worked = time.perf_counter() - start, time.process_time() - cpu
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            size = path.stat().st_size / 1e6
            print(
                f"{n:,} records ({size:.0f} MB): {took:.1f} s, {worked:.1f} s of processor time, "
                f"{(after - before) / 1024:.1f} MB more memory ({found.wins + found.losses + found.ties:,} votes)",
                flush=True,
            )


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    parts = {each.__name__: each for each in (looks, coverage, needed, fairness, speed)}
    for name in sys.argv[1:] or parts:
        parts[name]()
