"""The grammar of conditions on figures, which gates and alerts share: `high(drop(RA-nWG@10)) > .02`."""

import math
import re
from typing import NamedTuple

from rag_selectivity.errors import InputError

_CONDITION = re.compile(r"\s*(?P<what>[^<>]+?)\s*(?P<sign>[<>]=?)\s*(?P<limit>\S+)\s*")


class Parts(NamedTuple):
    """A condition in parts: what stands around the name, from the outside in; the name; the sign; the limit as text."""

    calls: tuple[str, ...]
    name: str
    sign: str
    limit: str


def parts_of(text: object, calls: str) -> Parts | None:
    """A text as a condition, None if it is none; `calls` are the names that may stand around another, as a pattern.

    >>> parts_of("high( drop(RA-nWG@10) ) > .02", "high|drop")
    Parts(calls=('high', 'drop'), name='RA-nWG@10', sign='>', limit='.02')
    """
    found = _CONDITION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    around, name = [], found["what"]
    while call := re.fullmatch(rf"({calls})\((.+)\)", name):
        around.append(call[1])
        name = call[2].strip()
    return Parts(tuple(around), name, found["sign"], found["limit"])


def limit_of(text: str, named: str) -> float:
    """A limit as a finite number; an InputError that names the condition for anything else."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InputError(f"{named}: {text!r} is not a number")
    if math.isinf(value):
        raise InputError(f"{named}: the limit is not a finite number: the condition would hold always or never")
    return value
