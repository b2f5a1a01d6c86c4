"""`preference`: which of two interleaved systems got more credit."""

from collections import Counter
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.inference import sign_share
from rag_selectivity.online.arms import verdict_on
from rag_selectivity.online.joining import JoinedRecords, join_records
from rag_selectivity.online.records import AUTO, UNITS, Record, Unit, check_flag, check_share
from rag_selectivity.results.workflows import Preference
from rag_selectivity.tables.cells import check_number, check_one_of, shown

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
) -> Preference:
    """Which of two interleaved systems got more credit, by the exact sign test.

    Each impression is won by the system whose passages got more credit in sum; equal sums are a tie. With sessions or
    users, each of them has one vote: that of the system which won more of its impressions. If `sequential`, it is that
    of the system which won the first of them that was no tie: a vote that could change at each look would be another
    chance of an error.

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
    check_one_of("unit", unit, (AUTO, *UNITS))
    check_share("level", level)
    check_share("power", power)
    check_flag("sequential", sequential)
    check_number("margin, the distance of a share of wins from 1/2,", margin, above=0, most=0.49)
    if detect is not None and not (isinstance(detect, (int, float)) and 0 < detect < 1 and detect != 0.5):
        raise InputError(f"detect must be a share of wins between 0 and 1, other than 1/2, got {detect!r}")
    joined = records if isinstance(records, JoinedRecords) else join_records(records)
    votes = _Votes(unit, sequential)
    for row in joined:
        votes.add(row, joined.where)
    first, second = votes.order(baseline)
    unit, (wins, losses, ties) = votes.of(second)
    found = (sign_share.any_time if sequential else sign_share.exact)(wins, losses, level)
    units, differing, needed = wins + losses + ties, wins + losses, None
    if detect is not None and differing:
        needed = sign_share.units_needed(detect, differing / units, level, power, sequential=sequential)
    notes = joined.faults.notes()
    if not sequential:
        notes += (f"p and the interval are for one look, at a number of {unit}s that was fixed beforehand.",)
    return Preference(
        baseline=first,
        candidate=second,
        wins=wins,
        losses=losses,
        ties=ties,
        share=found.value,
        p=found.p,
        low=found.low,
        high=found.high,
        level=level,
        margin=margin,
        verdict=verdict_on(found.low - 0.5, found.high - 0.5, margin),
        unit=unit,
        impressions=votes.impressions,
        sequential=sequential,
        credits=joined.faults.credits,
        detect=detect if differing else None,
        needed=needed,
        still_needed=None if needed is None else max(0, needed - units),
        power=power,
        notes=notes,
    )


class _Votes:
    """Wins and losses of the systems, counted record by record."""

    def __init__(self, unit: str, sequential: bool) -> None:
        self._unit = Unit(unit, 'give unit="impression", if impressions are independent')
        self._sequential = sequential
        self._systems: list[str] = []
        self._named: list[str] = []
        self.impressions = 0
        #: Impressions by their vote: 1 for the second system, −1 for the first.
        self._counts: Counter[int] = Counter()
        #: Of users or sessions: the sum of their impressions' votes; if sequential, the first that is for a system.
        self._nets: Counter[str] = Counter()

    def add(self, row: Record, where: str) -> None:
        """Count a record."""
        self.impressions += 1
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
        vote = 0 if abs(difference) <= _SAME else 1 if difference > 0 else -1
        name = self._unit.of(row, where)
        if name is None:
            self._counts[vote] += 1
        # Where one may look at any time, a vote that is cast must stand.
        elif not (self._sequential and self._nets[name]):
            self._nets[name] += vote

    def of(self, system: str) -> tuple[str, tuple[int, int, int]]:
        """What casts a vote; and how many are for a system, against it, and for none."""
        counts = Counter((net > 0) - (net < 0) for net in self._nets.values()) if self._nets else self._counts
        sign = 1 if system == self._systems[-1] else -1
        return self._unit.name, (counts[sign], counts[-sign], counts[0])

    def order(self, baseline: str | None) -> tuple[str, str]:
        """The baseline and the candidate."""
        names = self._named or sorted(self._systems)
        if not self.impressions:
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
