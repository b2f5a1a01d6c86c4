"""What a random draw of as many tools would serve, and the advice that follows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rag_selectivity.advice.planning import plan
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.chance import DEGRADED_FROM, BoR_max, Lambda
from rag_selectivity.wording import percent


def of_shapes(size: int, shapes: Mapping[tuple[int, int], int]) -> tuple[float, float]:
    """lambda and the ceiling over calls of which there were so many with K and R."""
    if not shapes:
        return math.nan, math.nan
    shown, relevant = (np.minimum(np.array(column), size) for column in zip(*shapes, strict=True))
    judged = JudgedRun.from_counts(np.full(len(shown), size), shown, relevant, np.zeros(len(shown), np.int64))
    depths = np.array([int(shown.max())])
    weights = np.array(list(shapes.values()), float)
    lam, ceiling = (measure.outcome(judged, depths).value(weights)[0] for measure in (Lambda(), BoR_max()))
    return float(lam), float(ceiling)


def healthy_depth(size: int, relevant: float) -> int:
    """The most tools of which a random draw would serve in less than 1 − 1/e of the calls."""
    return int(plan(size, max(1, round(relevant)), depths=[1])["max_K_for_random_success"])


def warning(size: int, shown: int, relevant: int | None, warn_from: float) -> str | None:
    """What to say of a call in which so many tools at random would serve too often; None if they would not.

    `relevant` is None if it is not known how many apply.
    """
    planned = plan(size, relevant or 1, depths=[min(shown, size)])
    row = planned["rows"][0]
    if row["random_success"] < warn_from:
        return None
    if relevant is None and shown >= size:
        return f"All {size} tools are shown, so there is no selection to measure"
    said = (
        f"{shown} of {size} tools shown, and as many at random would serve in {percent(row['random_success'])} of such"
    )
    if relevant is None:
        return f"{said} calls, even if only one tool applies"
    advised = advice(planned["max_K_for_random_success"])
    return f"{said} calls: a perfect selector could show {row['BoR_max']:.2g} bits. {advised}"


def advice(healthy: int) -> str:
    """How many tools to show, given the most that are healthy."""
    if healthy < 1:
        return f"Even one tool at random would serve in {percent(DEGRADED_FROM)} or more"
    return f"Show {healthy} or fewer, of which a random draw would serve in less than {percent(DEGRADED_FROM)}"
