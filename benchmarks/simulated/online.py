"""Interleaving and A/B tests and alarms: how often a decision is wrong."""

import math
import random
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.simulated import Line
from rag_selectivity.inference import mcnemar, sign_share
from rag_selectivity.inference.sequential import RiseDetector
from rag_selectivity.online import Metric, TwoArms, interleave

IMPRESSIONS, EVERY = 10_000, 50
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


#: Of equal arms; the one-look test is not made for it.
_LOOKS = ("errs: always valid", "one-look test", "errs: CUPED, always valid")


def of_looks(samples: int) -> Iterator[Line]:
    """Equal arms: the share of experiments in which some look, one after each 50 impressions, has p ≤ .05."""
    for name, (kind, draw) in WORLDS.items():
        rng, rejected = np.random.default_rng(7), np.zeros(3)
        for _ in range(samples):
            assigned, covariate = rng.random(IMPRESSIONS) < 0.5, rng.random(IMPRESSIONS)
            values = draw(rng, IMPRESSIONS)
            metric, other = Metric("outcome", kind), Metric("outcome", kind, covariate="before")
            arms = [TwoArms(metric), TwoArms(metric, sequential=False), TwoArms(other)]
            still = [True, True, True]
            for start in range(0, IMPRESSIONS, EVERY):
                part = slice(start, start + EVERY)
                b = assigned[part]
                for place, arm in enumerate(arms):
                    if still[place]:
                        others = (covariate[part][~b], covariate[part][b]) if place == 2 else None
                        arm.add(values[part][~b], values[part][b], others)
                        still[place] = start + EVERY < 100 or arm.p() > 0.05
            rejected += [not each for each in still]
        shares = (rejected / samples).tolist()
        yield Line(name, dict(zip(_LOOKS, shares, strict=True)))
    rng, rejected = np.random.default_rng(7), np.zeros(2)
    for _ in range(samples):
        n = np.arange(EVERY, IMPRESSIONS + 1, EVERY)
        wins = np.cumsum(rng.random(IMPRESSIONS) < 0.5)[n - 1]
        looked = (sign_share.any_time(int(w), int(m - w), 0.95).p for w, m in zip(wins, n, strict=True))
        rejected += any(p <= 0.05 for p in looked), (mcnemar.two_sided_p(wins, n - wins) <= 0.05).any()
    valid, once = (rejected / samples).tolist()
    yield Line("preference", dict(zip(_LOOKS, (valid, once, math.nan), strict=True)))


def of_sequences(samples: int, looked: int = 20) -> Iterator[Line]:
    """A true difference: how often it was outside the interval at any of the looks, and the width beside one look's."""
    for kind, first, second in (
        *(("rate", 0.02, 0.03), ("rate", 0.2, 0.25), ("rate", 0.5, 0.5), ("rate", 0.95, 0.99)),
        ("mean", 0.2, 0.3),
    ):
        rng, missed, widths, metric = np.random.default_rng(7), 0, [], Metric("outcome", kind)
        for _ in range(samples):
            arms, once, left_out = TwoArms(metric), TwoArms(metric, sequential=False), False
            for _ in range(looked):
                size = IMPRESSIONS // looked // 2
                a, b = (
                    rng.random(size) < mean if kind == "rate" else rng.beta(1, 1 / mean - 1, size)
                    for mean in (first, second)
                )
                arms.add(a, b)
                once.add(a, b)
                found = arms.compared()
                left_out |= not found.low <= second - first <= found.high
            missed += left_out
            last = once.compared()
            widths.append((found.high - found.low, last.high - last.low))
        valid, fixed = np.mean(widths, axis=0)
        yield Line(f"{kind} {first} and {second}", {"errs: left out": missed / samples, "times as wide": valid / fixed})


def _impressions(quality: tuple[float, float], drawn: int, rng: np.random.Generator) -> np.ndarray:
    """int[drawn, 3]: the sign of an interleaved impression, and whether each system's answer alone cites a passage.

    Of 400 queries with 20 passages; a relevant passage is cited with a probability that falls with its position.
    """
    relevant, noise = rng.random((400, 20)) < 0.15, rng.standard_normal((2, 400, 20))
    lists = [
        [[f"d{d}" for d in row] for row in np.argsort(-(strength * relevant + noise[side]), axis=1)]
        for side, strength in enumerate(quality)
    ]

    def cited(query: int, passages: list[str]) -> list[str]:
        come_across = rng.random(len(passages)) < 0.35 * 0.9 ** np.arange(len(passages))
        return [p for p, is_seen in zip(passages, come_across, strict=True) if is_seen and relevant[query, int(p[1:])]]

    rows = []
    for number in range(drawn):
        query = int(rng.integers(400))
        draft = interleave({name: lists[side][query] for side, name in enumerate("ab")}, k=5, seed=number)
        teams = [draft.team[passage] for passage in cited(query, draft.passages)]
        alone = [bool(cited(query, lists[side][query][:5])) for side in (0, 1)]
        rows.append((np.sign(teams.count("b") - teams.count("a")), *alone))
    return np.array(rows, int)


def of_impressions(samples: int) -> Iterator[Line]:
    """Impressions that interleaving and an A/B test need for a power of 80 % at one look, from 120 × the samples."""
    for quality in ((1.0, 1.6), (1.0, 1.3), (1.0, 1.15)):
        rows = _impressions(quality, 120 * samples, np.random.default_rng(7))
        wins, losses = float((rows[:, 0] > 0).mean()), float((rows[:, 0] < 0).mean())
        n = 8
        while mcnemar.power(n, wins, losses, 0.05) < 0.8 and n < 10**7:
            n = math.ceil(n * 1.02)
        probe = TwoArms(Metric("outcome"), sequential=False)
        probe.add(rows[:, 1], rows[:, 2])
        needed = probe.compared(detect=float(abs(rows[:, 2].mean() - rows[:, 1].mean()))).needed or 0
        yield Line(f"quality {quality}", {"wins": wins, "losses": losses, "interleaved": n, "A/B": needed})


def of_fairness(samples: int) -> Iterator[Line]:
    """The share of wins of b among impressions that differ, where neither is better; from 40 × the samples."""
    rng = np.random.default_rng(7)
    best = [f"d{i}" for i in range(10)]

    def read_down(passages: list[str]) -> list[str]:
        return [p for place, p in enumerate(passages) if rng.random() < 0.3 * 0.8**place]

    def relevant_only(passages: list[str]) -> list[str]:
        return [p for p in passages if int(p[1:]) < 4 and rng.random() < 0.3]

    def at_random(passages: list[str]) -> list[str]:
        return [p for p in passages if rng.random() < 0.2]

    cells: dict[str, tuple[Callable[[], tuple[list[str], list[str]]], Callable[[list[str]], list[str]]]] = {
        "the same list twice": (lambda: (best, best), read_down),
        "equally good, drawn apart": (
            lambda: (list(rng.permutation(best)), list(rng.permutation(best))),
            relevant_only,
        ),
        "neighbours swapped, cited by position": (lambda: (best, [best[i ^ 1] for i in range(10)]), read_down),
        "shifted by one, cited at random": (lambda: (best[:4], [*best[1:4], best[0]]), at_random),
        "shifted by one, cited by position": (lambda: (best, [*best[1:], best[0]]), read_down),
    }
    for name, (draw, cited) in cells.items():
        shares = {}
        for method in ("team-draft", "probabilistic"):
            signs = []
            for number in range(40 * samples):
                draft = interleave(dict(zip("ab", draw(), strict=True)), k=4, seed=number, method=method)
                teams = [draft.team[passage] for passage in cited(draft.passages)]
                signs.append(np.sign(teams.count("b") - teams.count("a")))
            shares[method] = float((np.array(signs) > 0).sum() / np.count_nonzero(signs))
        yield Line(name, shares)


# -- alarms of a monitor ---------------------------------------------------------------------------------------


def _share(true: float, limit: float) -> Callable[[random.Random], float]:
    return lambda rng: (rng.random() < true) - limit


def _bits(bits: float, limit: float = 2.0) -> Callable[[random.Random], float]:
    """Limit bits as a multiple of chance minus success, for chances of .002 and .05."""

    def draw(rng: random.Random) -> float:
        chance = rng.choice([0.002, 0.05])
        return 2**limit * chance - (rng.random() < 2**bits * chance)

    return draw


def of_alarms(samples: int, longest: int = 10_000) -> Iterator[Line]:
    """Retrievals until a false alarm at the limit (promise: 1,000), and until the alarm after a change (100,000)."""
    cells = (
        ("Harm > .4, .2 → .6", _share(0.4, 0.4), _share(0.2, 0.4), _share(0.6, 0.4), 0.4),
        ("failed > .01, .002 → .2", _share(0.01, 0.01), _share(0.002, 0.01), _share(0.2, 0.01), 0.01),
        ("p95(seconds) > 2, .02 → .5", _share(0.05, 0.05), _share(0.02, 0.05), _share(0.5, 0.05), 0.05),
        ("BoR < 2, 4 → 0", _bits(2), _bits(4), _bits(0), 1.0),
    )
    for name, at_limit, good, bad, least in cells:
        lengths, delays, false = [], [], 0
        for seed in range(samples):
            rng, detector = random.Random(seed), RiseDetector[int](1000)
            lengths.append(next((i for i in range(1, longest) if detector.add(at_limit(rng), least, i)), longest))
            rng, detector = random.Random(seed), RiseDetector[int](100_000)
            false += any(detector.add(good(rng), least, i) for i in range(longest // 2))
            delays.append(next((i for i in range(1, 50_000) if detector.add(bad(rng), least, i)), 50_000))
        figures = {"mean run length": np.mean(lengths), "median delay": np.median(delays), "false": false / samples}
        yield Line(name, figures)
