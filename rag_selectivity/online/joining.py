"""`join_records`: drafts and credits of a log, in any order, joined to one record for each impression."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.live.trace_writer import SCHEMA as TRACE_SCHEMA
from rag_selectivity.online.faults import MAX_FAULTS, Faults
from rag_selectivity.online.records import SCHEMA, Record, credit_of, finite, named, numbered, passages_of, team_of
from rag_selectivity.results.shapes import check_version
from rag_selectivity.tables.cells import shown

#: Impressions that wait for credit, and credits that wait for their draft.
REMEMBERED = 200_000
_DRAFT = ("query", "team", "passages", "systems", "session", "user")


@dataclass(slots=True)
class _Open:
    """An impression that may still get credit; `draft` is None until its draft was read."""

    draft: dict[str, Any] | None = None
    credit: dict[str, tuple[float, float]] = field(default_factory=dict)
    where: str = ""
    outcome: float | None = None


class JoinedRecords:
    """Joined records, to be iterated over once; afterwards `faults` has the counts.

    Attributes
    ----------
    faults : Faults
    """

    def __init__(self, source: Any, *, remember: int = REMEMBERED, max_faults: float = MAX_FAULTS) -> None:
        self.faults = Faults()
        self._source, self._remember, self._max_faults = source, remember, max_faults

    def __iter__(self) -> Iterator[dict[str, Any]]:
        waiting: OrderedDict[str, _Open] = OrderedDict()
        for where, row in numbered(self._source):
            if "schema" in row:
                if row["schema"] == TRACE_SCHEMA and "outcome_of" not in row:
                    continue
                if row["schema"] != TRACE_SCHEMA:
                    check_version(row["schema"], SCHEMA, f"{where}: schema", f"not a line of a log ({SCHEMA})")
            self._take(waiting, row, where)
            while len(waiting) > self._remember:
                yield from self._complete(*waiting.popitem(last=False))
        for id_, impression in waiting.items():
            yield from self._complete(id_, impression)
        self.faults.refuse(self._max_faults)

    def _take(self, waiting: OrderedDict[str, _Open], row: Record, where: str) -> None:
        """Put a line to its impression."""
        late = named(row, "credit_of", where) or named(row, "outcome_of", where)
        id_ = late or named(row, "impression", where)
        if id_ is None:
            raise InputError(
                f"{where}: neither a draft (`impression` with `team`) nor credit (`credit_of` with `credit`): "
                "`RecordLog` writes both"
            )
        impression = waiting.setdefault(id_, _Open(where=where))
        if late is None:
            self._draft(impression, row, id_, where)
        if "outcome_of" in row:
            impression.outcome = finite(row.get("outcome"), where, "outcome")
            return
        at = finite(row.get("time", 0.0), where, "time")
        for passage, number in credit_of(row, where).items():
            self._credit(impression, str(passage), finite(number, where, f"the credit of {passage!r}"), at, where)

    def _draft(self, impression: _Open, row: Record, id_: str, where: str) -> None:
        if row.get("passages") is not None:
            passages_of(row, where)
        _check_fields(row, where)
        draft = {"impression": id_, **{name: row[name] for name in _DRAFT if name in row}}
        if not team_of(row, where) and not row.get("passages"):
            # Nothing was retrieved, or the record was made without a draft; credit will tell.
            draft["team"] = {}
        if impression.draft is None:
            impression.draft, impression.where = draft, where
        elif impression.draft == draft:
            self.faults.add("drafted_again", f"{where}: {id_!r}")
        else:
            raise InputError(
                f"{where}: impression {id_!r} was drafted at {impression.where} already, with another list: give each "
                "impression an id of its own"
            )

    def _credit(self, impression: _Open, passage: str, number: float, at: float, where: str) -> None:
        self.faults.credits += 1
        before = impression.credit.get(passage)
        if before is not None:
            self.faults.add("repeated" if before[0] == number else "changed", f"{where}: {passage!r}")
        if before is None or at >= before[1]:
            impression.credit[passage] = number, at

    def _complete(self, id_: str, impression: _Open) -> Iterator[dict[str, Any]]:
        """The record of an impression, unless it was never drafted."""
        if impression.draft is None:
            for passage in impression.credit:
                self.faults.add("never_drafted", f"{impression.where}: {id_!r}, passage {passage!r}")
            return
        placed = impression.draft.get("passages") or impression.draft.get("team") or ()
        credit: dict[str, float] = {}
        for passage, (number, _) in impression.credit.items():
            if passage in placed:
                credit[passage] = number
            else:
                self.faults.add("not_shown", f"{impression.where}: {id_!r}, passage {passage!r}")
        record = {"schema": SCHEMA, **impression.draft, "credit": credit}
        yield record if impression.outcome is None else {**record, "outcome": impression.outcome}


def _check_fields(row: Record, where: str) -> None:
    """Refuse fields of a draft that are not of their type: a record that is written must be readable."""
    for name in ("query", "session", "user"):
        value = row.get(name)
        if isinstance(value, bool) or not isinstance(value, (str, int, type(None))):
            raise InputError(f"{where}: {name} must be a text or a whole number, got {shown(value)}")
    systems = row.get("systems", ())
    if not isinstance(systems, (list, tuple)) or not all(isinstance(each, str) for each in systems):
        raise InputError(f"{where}: systems must be the names of both systems, got {shown(systems)}")
    for passage, system in team_of(row, where).items():
        if not isinstance(system, str):
            raise InputError(f"{where}: the team of {shown(passage)} must be the name of a system, got {shown(system)}")


def join_records(source: Any, *, remember: int = REMEMBERED, max_faults: float = MAX_FAULTS) -> JoinedRecords:
    """Join drafts and credits by the id of the impression.

    Parameters
    ----------
    source : path, list of paths, or iterable of rows
        Lines that `RecordLog` wrote, in any order. Outcomes of a monitor's trace (`outcome_of`) are joined too.
    remember : int
        Impressions that wait for late credit; beyond these the oldest is given out, and credit that comes later counts
        as of an impression that was never drafted. It bounds the memory.
    max_faults : float
        The share of credits that may be wrong.

    Returns
    -------
    JoinedRecords
        An iterable of records {impression, query, team, passages, credit …}, in the order in which their impressions
        were first seen. An impression without credit is a record too.

    Raises
    ------
    InputError
        While it is read: for a line of another kind; for two different drafts of one impression; at the end, if more
        than `max_faults` of the credits are of impressions that were never drafted, or for passages that were not
        shown.

    Examples
    --------
    >>> late = {"credit_of": "i1", "credit": {"d2": 1}}
    >>> draft = {"impression": "i1", "query": "q1", "team": {"d1": "a", "d2": "b"}}
    >>> [(row["query"], row["credit"]) for row in join_records([late, draft, late])]
    [('q1', {'d2': 1.0})]
    """
    for name, value in (("remember", remember), ("max_faults", max_faults)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise InputError(f"{name} must be a number ≥ 0, got {shown(value)}")
    if remember == math.inf:
        raise InputError("remember must be a number of impressions, which bounds the memory, got inf")
    if max_faults > 1:
        raise InputError(f"max_faults must be a share from 0 to 1, got {shown(max_faults)}")
    if isinstance(source, Mapping):
        raise InputError("join_records takes many rows or a file, got one row: give a list")
    if isinstance(source, (list, tuple)):
        from pathlib import Path

        source = [Path(each) if isinstance(each, str) else each for each in source]
    return JoinedRecords(source, remember=int(remember), max_faults=max_faults)
