"""`foretold`: whether offline measures had said what online experiments found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rag_selectivity.data.cells import iterated, shown
from rag_selectivity.errors import InputError
from rag_selectivity.online.records import check_level, finite
from rag_selectivity.results.online import (
    BETTER,
    EQUAL,
    NOT_YET,
    WORSE,
    ArmComparison,
    Foretold,
    ForetoldMeasure,
    Preference,
)
from rag_selectivity.statistics import sign_share
from rag_selectivity.statistics.rank_correlation import kendall
from rag_selectivity.wording import counted


def foretold(experiments: Iterable[Mapping[str, Any]], *, level: float = 0.95) -> Foretold:
    """For past experiments with both: which offline measure had the sign of the online winner.

    Parameters
    ----------
    experiments : iterable of {"online": …, "offline": {measure: difference}}
        `online` is an `ArmComparison`, a `Preference`, or the difference b − a as a number, signed so that higher is
        better. `offline` has the difference b − a of each measure, in the same direction, as `Measure@K` names it: of
        Harm, give a − b. With a number, `winner` says who won: `b`, `a`, or None where neither was shown to, or the
        verdict on b (`better`, `worse`, `equal within the margin`, `not yet`). Without it, the sign of the number
        counts, shown or not.
    level : float

    Returns
    -------
    Foretold
        A row for each measure, over the experiments that have it.

    Raises
    ------
    InputError
        If there is no experiment, one lacks a part, or a figure is not a finite number.

    Examples
    --------
    >>> past = [{"online": x, "offline": {"RA-nWG@10": x / 2, "nDCG@10": y}} for x, y in
    ...         [(0.02, 0.1), (-0.01, 0.0), (0.03, -0.1), (0.01, 0.2), (-0.02, 0.1)]]
    >>> table = foretold(past)
    >>> [(row.measure, row.agreed, row.decided, round(row.tau, 2)) for row in table.measures]
    [('RA-nWG@10', 5, 5, 1.0), ('nDCG@10', 2, 5, -0.32)]
    """
    given = iterated(experiments, "experiments must be a list")
    numbered = ((f"experiment {number}", experiment) for number, experiment in enumerate(given, 1))
    return foretold_of(numbered, level=level)


def foretold_of(experiments: Iterable[tuple[str, Mapping[str, Any]]], *, level: float) -> Foretold:
    """`foretold` of (where, experiment): errors name the place."""
    check_level(level)
    pairs: dict[str, list[tuple[float, float, int | None]]] = {}
    number, unshown, undecided = 0, 0, 0
    for where, experiment in experiments:
        number += 1
        if not isinstance(experiment, Mapping) or "online" not in experiment:
            raise InputError(
                f"{where}: must be {{'online': …, 'offline': {{measure: difference}}}}, got {shown(experiment)}"
            )
        offline = experiment.get("offline")
        if not isinstance(offline, Mapping) or not offline:
            raise InputError(f"{where}: offline must be {{measure: difference}}, got {shown(offline)}")
        online, sign, is_shown = _online(experiment, where)
        unshown += not is_shown
        undecided += sign is None
        for measure, difference in offline.items():
            figure = finite(difference, where, f"the difference of {measure}")
            pairs.setdefault(str(measure), []).append((figure, online, sign))
    if not number:
        raise InputError("there are no experiments")
    rows = [_row(measure, of_measure, level) for measure, of_measure in pairs.items()]
    rows.sort(key=lambda row: (-_or(row.share), -_or(row.tau), row.measure))
    notes = []
    if unshown:
        notes.append(
            f"{counted(unshown, 'experiment')} with no `winner` field: the sign of the difference counts, and whether "
            "it was shown is not known."
        )
    if undecided:
        notes.append(
            f"{counted(undecided, 'experiment')} without a winner online: counted in tau, and not in the share of the "
            "same sign."
        )
    if len(rows) > 1:
        notes.append(
            f"The best of {counted(len(rows), 'measure')} looks better than it is: choose a measure on some "
            "experiments, and check it on others."
        )
    return Foretold(tuple(rows), number, level, tuple(notes))


def _or(value: float) -> float:
    return -2.0 if math.isnan(value) else value


def _online(experiment: Mapping[str, Any], where: str) -> tuple[float, int | None, bool]:
    """The difference online, the sign of the winner, and whether somebody said that it was shown."""
    online = experiment["online"]
    if isinstance(online, Preference):
        return (0.0 if math.isnan(online.share) else online.share - 0.5), _sign(online.verdict), True
    if isinstance(online, ArmComparison):
        difference = online.difference if online.higher_is_better else -online.difference
        return difference, _sign(online.verdict), True
    difference = finite(online, where, "online")
    if "winner" in experiment:
        winner = experiment["winner"]
        signs = {"b": 1, "a": -1, None: None, "": None, BETTER: 1, WORSE: -1, EQUAL: None, NOT_YET: None}
        if not (winner is None or isinstance(winner, str)) or winner not in signs:
            raise InputError(
                f"{where}: winner must be 'a', 'b', None (an empty cell) or a verdict on b ({BETTER}, {WORSE}, "
                f"{EQUAL}, {NOT_YET}), got {shown(winner)}"
            )
        return difference, signs[winner], True
    return difference, int(np.sign(difference)) or None, False


def _sign(verdict: str) -> int | None:
    return {BETTER: 1, WORSE: -1}.get(verdict)


def _row(measure: str, pairs: list[tuple[float, float, int | None]], level: float) -> ForetoldMeasure:
    decided = [(figure, sign) for figure, _, sign in pairs if sign is not None]
    agreed = sum(figure * sign > 0 for figure, sign in decided)
    found = sign_share.exact(agreed, len(decided) - agreed, level)
    low, high = (found.low, found.high) if decided else (math.nan, math.nan)
    figures, online = (np.array([pair[side] for pair in pairs], np.float64) for side in (0, 1))
    return ForetoldMeasure(
        measure, len(pairs), len(decided), agreed, found.share, low, high, *kendall(figures, online, level)
    )
