"""Single values of labels and runs: query ids, grades, and where they stand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError

#: Grades are smaller.
LARGEST_GRADE = 1 << 31


def query_text(query: Any, where: str) -> str:
    """A query id as a non-empty string."""
    if isinstance(query, (int, np.integer)) and not isinstance(query, bool):
        return str(query)
    if not isinstance(query, str) or not query:
        raise InputError(f"{where}: query id {query!r} is not a non-empty string or an integer")
    return query


def whole_grade(value: Any, where: str) -> int:
    """A grade as an int; a fractional or non-numeric grade is an InputError."""
    try:
        grade = int(value)
        if (isinstance(value, str) or grade == value) and abs(grade) < LARGEST_GRADE:
            return grade
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{where}: grade {value!r} is not a whole number")


def label_grade(value: Any, where: str) -> int:
    """A grade as an int; a fractional one may be the score of a run."""
    try:
        return whole_grade(value, where)
    except InputError as error:
        if _is_fraction(value):
            raise InputError(f"{error}: is this a run? The labels come first") from None
        raise


def _is_fraction(value: Any) -> bool:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return False
    return math.isfinite(number) and not number.is_integer()


def locate(source: str, line: int | None) -> str:
    """`file:line`, or the file if the line is unknown."""
    return f"{source}:{line}" if line is not None else source
