"""Records of credit, one for each impression: its query, the team of each passage, the credit; and the log of them."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.live.trace import LineWriter, Trace, trace_lines
from rag_selectivity.online.interleaving import Draft
from rag_selectivity.tables.cells import is_missing, iterated, shown

#: The name and the version that each line of a log of drafts, credits and records carries.
SCHEMA = "rag-selectivity/online/1"
Record = Mapping[str, Any]
#: What may count once, the widest first: all impressions of a user, or of a session, belong together.
UNITS = USER, SESSION, IMPRESSION = ("user", "session", "impression")
AUTO = "auto"
_EXPECTED = "records must be a file or many rows such as {query, team, credit}"


def numbered(source: Any) -> Iterator[tuple[str, Record]]:
    """(where, row) of a file of JSON lines, of several, or of rows in memory.

    Raises
    ------
    InputError
        If the source is none of these, or a row is no object.
    """
    if isinstance(source, (str, Path)):
        for line, row in trace_lines(source):
            yield f"{source}:{line}", row
        return
    if isinstance(source, Mapping):
        raise InputError(f"{_EXPECTED}, got {shown(source)}")
    for number, row in enumerate(iterated(source, _EXPECTED), 1):
        if isinstance(row, (str, Path)):
            yield from numbered(row)
        elif isinstance(row, Mapping):
            yield f"record {number}", row
        else:
            raise InputError(f"record {number}: must be an object such as {{query, team, credit}}, got {shown(row)}")


def outcomes_of_trace(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, {arm, outcome, seconds, tokens}) of each request of a monitor's trace that names an arm, in their order.

    The retrievals of one `id` are one request: their seconds and tokens are summed, and the last outcome counts, late
    ones included.

    Raises
    ------
    InputError
        If a request was in two arms, or no retrieval names its arm.
    """
    requests: dict[str, dict[str, Any]] = {}
    for number, retrieval in enumerate(Trace.read(path).retrievals.values(), 1):
        if retrieval.arm is None:
            continue
        where = f"{path}: retrieval {number}" if retrieval.id is None else f"{path}: request {retrieval.id!r}"
        request = requests.setdefault(where, {"arm": retrieval.arm})
        if request["arm"] != retrieval.arm:
            raise InputError(f"{where} is in arm {retrieval.arm!r}, and was in {request['arm']!r} before")
        for name in ("seconds", "tokens"):
            if (value := getattr(retrieval, name)) is not None:
                request[name] = request.get(name, 0.0) + float(value)
        if retrieval.outcome is not None:
            request["outcome"] = float(retrieval.outcome)
    if not requests:
        raise InputError(f"{path}: no retrieval names its arm: give Retrieval(arm=…), or monitor.request(arm=…)")
    yield from requests.items()


def mapping_of(value: Any, where: str, what: str, example: str) -> Mapping[Any, Any]:
    """A mapping as it is, an empty one for None; an InputError for another value."""
    if value is None:
        return {}
    if value.__class__ is not dict and not isinstance(value, Mapping):
        raise InputError(f"{where}: {what} must be {example}, got {shown(value)}")
    return value


def check_share(what: str, value: Any) -> None:
    """An InputError where a level or a power is not between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise InputError(f"{what} must be more than 0 and less than 1, got {shown(value)}")


def check_flag(what: str, value: Any) -> None:
    """An InputError where a value is neither true nor false."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise InputError(f"{what} must be True or False, got {shown(value)}")


def finite(number: Any, where: str, what: str) -> float:
    """A number as a float; an InputError for another value, NaN or an infinite one."""
    if isinstance(number, Real):
        with suppress(OverflowError):
            if math.isfinite(value := float(number)):
                return value
    raise InputError(f"{where}: {what} must be a finite number, got {shown(number)}")


def named(row: Record, field: str, where: str) -> str | None:
    """A text or whole number of a row as text; None where it is not there."""
    value = row.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise InputError(f"{where}: {field} must be a text or a whole number, got {shown(value)}")
    return str(value)


class Unit:
    """What counts once: a column of the records; if `auto`, the user if the first names one, else the session.

    Attributes
    ----------
    name : str
        One of `UNITS`, or `auto` before the first record.
    """

    def __init__(self, name: str, otherwise: str) -> None:
        self.name, self._is_auto, self.otherwise = name, name == AUTO, otherwise

    def of(self, row: Record, where: str) -> str | None:
        """Whose record this is; None where each impression counts.

        Raises
        ------
        InputError
            If some records name it and others do not.
        """
        found = next((each for each in (USER, SESSION) if not is_missing(row.get(each))), IMPRESSION)
        if self.name == AUTO:
            self.name = found
        asked = found if self._is_auto and self.name == IMPRESSION else self.name
        if asked != self.name or (asked != IMPRESSION and is_missing(row.get(asked))):
            raise InputError(f"{where}: not every record names its {asked}: name it in all, or {self.otherwise}")
        return None if asked == IMPRESSION else named(row, asked, where)


class RecordLog(LineWriter):
    """A log of drafts and credits, which `join_records` joins by the id of the impression.

    Threads and processes may write to one file. A file that cannot be written does not end the application: the log
    `rag_selectivity` says it, and `lost` counts the lines.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    InputError
        If the file cannot be written at the beginning.
    """

    def draft(self, draft: Draft, query: str, *, session: str | None = None, user: str | None = None) -> None:
        """Append what an impression was shown; `query` is its id or text, and texts stay in the log."""
        row = draft.record(query, session=session, user=user)
        self.append({"schema": SCHEMA, "time": round(time.time(), 3), **row})

    def credit(self, impression: str, credit: Mapping[str, float]) -> None:
        """Append credit of an impression, {passage: number}; it may come late, and in parts."""
        given = mapping_of(credit, "credit", "the credit of an impression", "{passage: number}")
        numbers = {name: finite(number, "credit", f"the credit of {name!r}") for name, number in given.items()}
        row = {"credit_of": str(impression), "credit": numbers}
        self.append({"schema": SCHEMA, "time": round(time.time(), 3), **row})
