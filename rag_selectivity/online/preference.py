"""`preference`: which of two interleaved systems got more credit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.online.joining import MAX_FAULTS, JoinedRecords, join_records
from rag_selectivity.online.records import Record, check_flag, check_share, named
from rag_selectivity.results.online import BETTER, EQUAL, NOT_YET, WORSE, Preference
from rag_selectivity.statistics import sign_share
from rag_selectivity.tables.cells import shown

#: What may cast a vote, the widest first: all impressions of a user, or of a session, belong together.
UNITS = USER, SESSION, IMPRESSION = ("user", "session", "impression")
AUTO = "auto"
#: Sums of credit that differ by less are equal.
_SAME = 1e-12


def preference(
    records: Any,
    *,
    baseline: str | None = None,
    unit: str = AUTO,
    sequential: bool = False,
    level: float = 0.95,
    margin: float | None = None,
    detect: float | None = None,
    power: float = 0.8,
    max_faults: float = MAX_FAULTS,
) -> Preference:
    """Which of two interleaved systems got more credit, by the exact sign test.

    Each impression is won by the system whose passages got more credit in sum; equal sums are a tie. With sessions or
    users, each of them has one vote: that of the system which won more of its impressions.

    Parameters
    ----------
    records : path, or iterable of {query, team, credit}
        A log of `RecordLog`, which is joined, or records as `join_records` and `Draft.record` make them. `team` is
        {passage: system}, `credit` {passage: number}. Further fields: `impression` (its id), `session`, `user`,
        `systems` (both names, the baseline first), `passages` (the order in the prompt).
    baseline : str, optional
        The system that the other one is compared with. Default: the first of `systems`, else the first by name.
    unit : {"auto", "user", "session", "impression"}
        What casts a vote. `auto`: the user if records name one, else the session, else the impression.
    sequential : bool
        True: p and the interval are valid however often one looks (an e-value). False: the exact sign test and Clopper
        and Pearson's interval, for one look at a number of units fixed beforehand.
    level : float
    margin : float, optional
        Shares of wins within 1/2 ± margin do not matter.
    detect : float, optional
        The share of wins that shall be found, such as .55: says how many units that needs.
    power : float
    max_faults : float
        The share of credits that may be for passages that were not shown, or of impressions that were never drafted.

    Returns
    -------
    Preference
        Wins are the candidate's, that is the system that is not the baseline; `verdict` is on it.

    Raises
    ------
    InputError
        If the records are not of exactly two systems, a system never got a slot, some records lack the unit, or as
        `join_records`.

    Notes
    -----
    If both systems are equally good, a coin decides in each team draft which of them a passage is from, so that a unit
    that differs is a win with a probability of 1/2, whatever users are like.

    References
    ----------
    Chapelle, Joachims, Radlinski and Yue 2012, Large-scale validation and analysis of interleaved search evaluation.

    Examples
    --------
    >>> won = {"query": "q", "team": {"d1": "a", "d2": "b"}, "credit": {"d2": 1}}
    >>> lost = {"query": "q", "team": {"d1": "a", "d2": "b"}, "credit": {"d1": 1}}
    >>> found = preference([won] * 30 + [lost] * 10)
    >>> found.candidate, found.wins, found.losses, found.verdict, round(found.p, 4)
    ('b', 30, 10, 'better', 0.0022)
    """
    if not isinstance(unit, str) or unit not in (AUTO, *UNITS):
        raise InputError(f"unit must be auto, {', '.join(UNITS[:-1])} or {UNITS[-1]}, got {unit!r}")
    check_share("level", level)
    check_share("power", power)
    check_flag("sequential", sequential)
    if margin is not None and not (isinstance(margin, (int, float)) and 0 < margin < 0.5):
        raise InputError(
            f"margin must be above 0 and below 0.5, the distance of a share of wins from 1/2, got {margin!r}"
        )
    if detect is not None and not (isinstance(detect, (int, float)) and 0 < detect < 1 and detect != 0.5):
        raise InputError(f"detect must be a share of wins between 0 and 1, other than 1/2, got {detect!r}")
    joined = records if isinstance(records, JoinedRecords) else join_records(records, max_faults=max_faults)
    votes = _Votes(unit)
    for row in joined:
        votes.add(row, joined.where)
    found = votes.preference(baseline, sequential, level, margin, joined)
    units, differing = found.wins + found.losses + found.ties, found.wins + found.losses
    if detect is None or not differing:
        return found
    needed = sign_share.units_needed(detect, differing / units, level, power, sequential=sequential)
    still = None if needed is None else max(0, needed - units)
    return replace(found, detect=detect, needed=needed, still_needed=still, power=power)


class _Votes:
    """Wins and losses of the systems, counted record by record."""

    def __init__(self, unit: str) -> None:
        self._unit, self._is_auto = unit, unit == AUTO
        self._systems: list[str] = []
        self._named: list[str] = []
        self._impressions = 0
        #: Votes of impressions for the second system, for the first, and for none.
        self._counts = [0, 0, 0]
        #: Of users or sessions: the impressions that the second system won, minus those that the first won.
        self._nets: dict[str, int] = {}

    def add(self, row: Record, where: str) -> None:
        """Count a record."""
        self._impressions += 1
        for system in row["team"].values():
            if system not in self._systems:
                if len(self._systems) == 2:
                    raise InputError(
                        f"{where}: team names the system {shown(system)}, besides {self._systems[0]!r} and "
                        f"{self._systems[1]!r}; preference takes two systems"
                    )
                self._systems.append(system)
        self._named = self._named or list(row.get("systems") or ())
        sums = [0.0, 0.0]
        for passage, number in row["credit"].items():
            if passage in row["team"]:
                sums[row["team"][passage] != self._systems[0]] += number
        difference = sums[1] - sums[0]
        self._vote(row, 0 if abs(difference) <= _SAME else 1 if difference > 0 else -1, where)

    def _vote(self, row: Record, vote: int, where: str) -> None:
        unit = self._unit
        if unit == AUTO:
            unit = self._unit = next((each for each in (USER, SESSION) if row.get(each) is not None), IMPRESSION)
        if unit == IMPRESSION:
            if self._is_auto and (USER in row or SESSION in row) and (row.get(USER) or row.get(SESSION)) is not None:
                raise InputError(
                    f"{where}: names a user or a session, and records before it do not: name it in all of them, or "
                    'give unit="impression", if impressions are independent'
                )
            self._counts[vote] += 1
            return
        name = named(row, unit, where)
        if name is None:
            raise InputError(
                f"{where}: lacks its {unit}, which casts the vote: name it in every record, or give another unit"
            )
        self._nets[name] = self._nets.get(name, 0) + vote

    def preference(
        self,
        baseline: str | None,
        sequential: bool,
        level: float,
        margin: float | None,
        joined: JoinedRecords,
    ) -> Preference:
        """What was counted, as a result."""
        first, second = self._order(baseline)
        counts = list(self._counts)
        unit = IMPRESSION if self._unit == AUTO else self._unit
        if unit != IMPRESSION:
            nets = np.fromiter(self._nets.values(), np.int64, len(self._nets))
            counts = [int((nets == 0).sum()), int((nets > 0).sum()), int((nets < 0).sum())]
        ties, wins, losses = counts[0], counts[1], counts[-1]
        if second != self._systems[-1]:
            wins, losses = losses, wins
        notes = list(joined.faults.notes())
        if not sequential:
            notes.append(f"p and the interval are for one look, at a number of {unit}s that was fixed beforehand.")
        found = (sign_share.any_time if sequential else sign_share.exact)(wins, losses, level)
        return Preference(
            baseline=first,
            candidate=second,
            wins=wins,
            losses=losses,
            ties=ties,
            share=found.share,
            p=found.p,
            low=found.low,
            high=found.high,
            level=level,
            margin=margin,
            verdict=_verdict(found.low, found.high, margin),
            unit=unit,
            impressions=self._impressions,
            sequential=sequential,
            credits=joined.faults.credits,
            notes=tuple(notes),
        )

    def _order(self, baseline: str | None) -> tuple[str, str]:
        """The baseline and the candidate."""
        names = self._named or sorted(self._systems)
        if not self._impressions:
            raise InputError("there are no records of interleaved lists")
        if not self._systems:
            raise InputError("nothing was drafted in any record: the teams are empty")
        if len(self._systems) < 2:
            raise InputError(
                f"all slots were drafted by {self._systems[0]!r}: the other system has no traffic. Is its retriever "
                "empty, or were the records of one arm alone given?"
            )
        if not set(self._systems).issuperset(names):
            raise InputError(f"systems names {names[0]!r} and {names[1]!r}, but the teams {self._systems}")
        if baseline is not None:
            if not isinstance(baseline, str) or baseline not in names:
                raise InputError(f"baseline {baseline!r} is none of the systems {names[0]!r} and {names[1]!r}")
            return baseline, names[1] if baseline == names[0] else names[0]
        return names[0], names[1]


def _verdict(low: float, high: float, margin: float | None) -> str:
    if low > 0.5:
        return BETTER
    if high < 0.5:
        return WORSE
    if margin is not None and 0.5 - margin < low and high < 0.5 + margin:
        return EQUAL
    return NOT_YET
