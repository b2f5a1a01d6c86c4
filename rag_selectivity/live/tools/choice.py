"""Model calls as rows, and what they make: the choice of tools, and what a random draw of as many would serve."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.advice.planning import plan
from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.live.tools.report import Confusion, ToolChoice
from rag_selectivity.measures.chance import COLLAPSE_FROM, DEGRADED_FROM, BoR_max, Lambda
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.wording import percent

_TAIL = 0.025


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of a model.

    `misfits` are why the arguments of each called tool do not fit: empty if they do, None if that is not known.
    `expected` are the tools that apply to its query, None without labels; `relevant` is R, None where nobody knows it.
    """

    shown: tuple[str, ...]
    called: tuple[str, ...]
    misfits: tuple[str | None, ...]
    tokens: int
    expected: frozenset[str] | None
    relevant: int | None
    after_results: bool

    @property
    def is_answer(self) -> bool:
        """Whether it had the results of tools and called no other."""
        return self.after_results and not self.called

    @property
    def wrong(self) -> list[str]:
        """The called tools that do not apply."""
        return [] if self.expected is None else [name for name in self.called if name not in self.expected]

    @property
    def is_right(self) -> bool:
        """Whether it called nothing but tools that apply; or none, where none applies."""
        return not self.wrong and bool(self.called) == bool(self.expected)


def rate(count: int, total: int, of: str) -> Estimate:
    """A share with Clopper and Pearson's interval, which takes the calls as independent; `of` says what is counted."""
    if not total:
        return Estimate(math.nan, math.nan, math.nan, 0, 0, reason=f"there were no {of}")
    low, high = clopper_pearson(count, total, _TAIL)
    return Estimate(count / total, float(low), float(high), total, total)


def choice_of(calls: Collection[ModelCall]) -> ToolChoice | None:
    """Which tools were called; None without a call that has labels."""
    labelled = [(call, call.expected) for call in calls if call.expected is not None]
    if not labelled:
        return None
    chosen = [(call, expected) for call, expected in labelled if not call.is_answer]
    offered = [call for call, expected in chosen if not expected.isdisjoint(call.shown)]
    right, wrong = sum(call.is_right for call, _ in chosen), sum(bool(call.wrong) for call, _ in chosen)
    pairs = Counter((tuple(sorted(expected)), name) for call, expected in chosen for name in call.called or (None,))
    cells = [Confusion(expected, called, number) for (expected, called), number in pairs.items()]
    of, total = "model calls with labels in which a tool could be chosen", len(chosen)
    if_shown = "model calls to which a tool that applies was shown"
    return ToolChoice(
        total,
        len(labelled) - total,
        rate(right, total, of),
        rate(wrong, total, of),
        rate(total - right - wrong, total, of),
        rate(sum(call.is_right for call in offered), len(offered), if_shown),
        tuple(sorted(cells, key=lambda cell: (cell.right, -cell.calls, cell.expected, cell.called or ""))),
    )


# -- a random draw ---------------------------------------------------------------------------------------


def lambda_and_ceiling(size: int, calls: Sequence[ModelCall]) -> tuple[float, float]:
    """lambda and the ceiling over calls whose R is known."""
    if not calls:
        return math.nan, math.nan
    shown = np.array([min(len(call.shown), size) for call in calls])
    relevant = np.array([min(call.relevant or 0, size) for call in calls])
    judged = JudgedRun.from_counts(np.full(len(calls), size), shown, relevant, np.zeros_like(shown))
    lam, ceiling = (measure.outcome(judged, shown.max(keepdims=True)).value()[0] for measure in (Lambda(), BoR_max()))
    return float(lam), float(ceiling)


def healthy_depth(size: int, relevant: float) -> int:
    """The most tools of which a random draw would serve in less than 1 − 1/e of the calls."""
    return int(plan(size, max(1, round(relevant)), depths=[1])["max_K_for_random_success"])


def warning(size: int, shown: int, relevant: int | None) -> str | None:
    """What to say of a call in which so many tools at random would serve too often; None if they would not.

    `relevant` is None if it is not known how many apply.
    """
    planned = plan(size, relevant or 1, depths=[min(shown, size)])
    row = planned["rows"][0]
    if row["random_success"] < COLLAPSE_FROM:
        return None
    if relevant is None and shown >= size:
        return f"All {size} tools are shown, so there is no selection to measure"
    chance = percent(row["random_success"])
    said = f"{shown} of {size} tools shown, and as many at random would serve in {chance} of such calls"
    if relevant is None:
        return f"{said}, even if only one tool applies"
    advised = advice(planned["max_K_for_random_success"])
    return f"{said}: a perfect selector could show {row['BoR_max']:.2g} bits. {advised}"


def advice(healthy: int) -> str:
    """How many tools to show, given the most that are healthy."""
    if healthy < 1:
        return f"Even one tool at random would serve in {percent(DEGRADED_FROM)} or more"
    return f"Show {healthy} or fewer, of which a random draw would serve in less than {percent(DEGRADED_FROM)}"
