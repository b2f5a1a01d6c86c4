"""`join_records`: drafts and credits of a log, in any order, joined to one record for each impression."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Strict

from rag_selectivity.errors import InputError
from rag_selectivity.online.records import SCHEMA, Record, finite, mapping_of, named, numbered
from rag_selectivity.results.shapes import Shape, check_version, fitted
from rag_selectivity.results.shapes import kind as are
from rag_selectivity.tables.cells import shown

#: Impressions that wait for credit, and credits that wait for their draft.
REMEMBERED = 50_000
#: The share of credits that may be wrong before there is no verdict.
_MOST_WRONG = 0.01
_DRAFT = ("query", "team", "passages", "systems", "session", "user")
_EXAMPLES = 3
#: What is wrong, with the mend.
_WRONG = {
    "never_drafted": (
        "credits of an impression that was never drafted",
        "is a part of the log missing, or do ids differ between the retriever and what collects the credit?",
    ),
    "not_shown": (
        "credits for a passage that was not shown",
        "give credit only for the passages of the impression's draft, by the same ids",
    ),
}
#: What is no fault, and is told.
_TWICE = {
    "repeated": "came a second time, and count once",
    "changed": "gave a passage another number than before, of which the latest counts",
}


@dataclass(slots=True)
class Faults:
    """Counts of credits, and of what was wrong with them.

    Attributes
    ----------
    credits : int
        Credits that were read.
    counts : {kind: count}
        `never_drafted`, `not_shown`, `repeated` (the same credit again, which counts once), and `changed` (another
        number for the same passage, of which the latest counts).
    """

    credits: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    _examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, example: str) -> None:
        """Count one, and keep the first few as examples."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if self.counts[kind] <= _EXAMPLES:
            self._examples.setdefault(kind, []).append(example)

    def refuse(self) -> None:
        """An InputError if more than one in a hundred of the credits is wrong.

        Credit that is lost is not lost at random: a client that sends no ids, say, is used by certain users.
        """
        for kind, (words, mend) in _WRONG.items():
            if self.counts.get(kind, 0) > _MOST_WRONG * self.credits:
                raise InputError(f"{self._said(kind, words)}, more than {_MOST_WRONG:.0%}: {mend}")

    def notes(self) -> tuple[str, ...]:
        """What was left out, and what came twice, in sentences."""
        left_out = [
            f"{self._said(kind, words)} left out." for kind, (words, _) in _WRONG.items() if kind in self.counts
        ]
        twice = [f"{self._said(kind, f'credits {words}')}." for kind, words in _TWICE.items() if kind in self.counts]
        return (*left_out, *twice)

    def _said(self, kind: str, words: str) -> str:
        return f"{self.counts[kind]:,} of {self.credits:,} {words} ({'; '.join(self._examples[kind])})"


@dataclass(slots=True)
class _Open:
    """An impression that may still get credit; `draft` is None until its draft was read."""

    id: str | None
    where: str
    draft: dict[str, Any] | None = None
    credit: dict[str, tuple[float, float]] = field(default_factory=dict)


class JoinedRecords:
    """Joined records, to be iterated over once; afterwards `faults` has the counts.

    Attributes
    ----------
    faults : Faults
    where : str
        Where the draft of the present record stands.
    """

    def __init__(self, source: Any) -> None:
        self.faults, self.where, self._source = Faults(), "", source

    def __iter__(self) -> Iterator[dict[str, Any]]:
        waiting: dict[str, _Open] = {}
        for where, row in numbered(self._source):
            if "schema" in row:
                what = f"{shown(row['schema'])} is not a record of {SCHEMA}: give what `RecordLog` writes"
                check_version(row["schema"], SCHEMA, f"{where}: schema", what)
            late = named(row, "credit_of", where)
            id_ = late or named(row, "impression", where)
            if row.get("team") is None and row.get("credit") is None:
                raise InputError(
                    f"{where}: neither a draft (`impression` with `team`) nor credit (`credit_of` with `credit`): "
                    "`RecordLog` writes both"
                )
            impression = _Open(None, where) if id_ is None else waiting.setdefault(id_, _Open(id_, where))
            if late is None and row.get("team") is not None:
                self._draft(impression, row, where)
            self._credit(impression, row, where)
            if id_ is None:
                yield from self._complete(impression)
            elif len(waiting) > REMEMBERED:
                yield from self._complete(waiting.pop(next(iter(waiting))))
        for impression in waiting.values():
            yield from self._complete(impression)
        self.faults.refuse()

    def _draft(self, impression: _Open, row: Record, where: str) -> None:
        fitted(_Drafted, {name: value for name, value in row.items() if value is not None}, where)
        draft = {"impression": impression.id, **{name: row[name] for name in _DRAFT if name in row}}
        if impression.draft is None:
            impression.draft, impression.where = draft, where
        elif impression.draft != draft:
            raise InputError(
                f"{where}: impression {impression.id!r} was drafted at {impression.where} already, with another list: "
                "give each impression an id of its own"
            )

    def _credit(self, impression: _Open, row: Record, where: str) -> None:
        at = finite(row.get("time", 0.0), where, "time")
        for passage, number in mapping_of(row.get("credit"), where, "credit", "{passage: number}").items():
            self.faults.credits += 1
            value, before = finite(number, where, f"the credit of {passage!r}"), impression.credit.get(passage)
            if before is not None:
                self.faults.add("repeated" if before[0] == value else "changed", f"{where}: {passage!r}")
            if before is None or at >= before[1]:
                impression.credit[passage] = value, at

    def _complete(self, impression: _Open) -> Iterator[dict[str, Any]]:
        """The record of an impression, unless it was never drafted."""
        if impression.draft is None:
            for passage in impression.credit:
                self.faults.add("never_drafted", f"{impression.where}: {impression.id!r}, passage {passage!r}")
            return
        placed = impression.draft.get("passages") or impression.draft["team"]
        for passage in [passage for passage in impression.credit if passage not in placed]:
            self.faults.add("not_shown", f"{impression.where}: {impression.id!r}, passage {passage!r}")
            del impression.credit[passage]
        self.where = impression.where
        credit = {passage: number for passage, (number, _) in impression.credit.items()}
        yield {"schema": SCHEMA, **impression.draft, "credit": credit}


_Name = str | int | None


class _Drafted(Shape):
    """The fields of a draft: a record that is written must be readable."""

    query: _Name = None
    session: _Name = None
    user: _Name = None
    systems: Annotated[
        tuple[str, ...],
        Strict(False),
        are("the names of both systems", lambda names: len(set(names)) == len(names) == 2),
    ] = ("a", "b")
    team: dict[str, str]
    passages: Annotated[
        tuple[str, ...], Strict(False), are("ids, each once", lambda ids: len(set(ids)) == len(ids))
    ] = ()


def join_records(source: Any) -> JoinedRecords:
    """Join drafts and credits by the id of the impression.

    Parameters
    ----------
    source : path, list of paths, or iterable of rows
        Lines that `RecordLog` wrote, in any order. A row without an id is an impression of its own.

    Returns
    -------
    JoinedRecords
        An iterable of records {impression, query, team, passages, credit …}, in the order in which their impressions
        were first seen. An impression without credit is a record too. 50,000 impressions wait for late credit; credit
        that comes after so many others counts as of an impression that was never drafted.

    Raises
    ------
    InputError
        While it is read: for a line of another kind; for two different drafts of one impression; at the end, if more
        than one in a hundred of the credits are of impressions that were never drafted, or for passages that were not
        shown.

    Examples
    --------
    >>> late = {"credit_of": "i1", "credit": {"d2": 1}}
    >>> draft = {"impression": "i1", "query": "q1", "team": {"d1": "a", "d2": "b"}}
    >>> [(row["query"], row["credit"]) for row in join_records([late, draft, late])]
    [('q1', {'d2': 1.0})]
    """
    return JoinedRecords(source)
