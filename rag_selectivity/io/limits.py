"""JSON of files and of models, whose faults end in one kind of error."""

from __future__ import annotations

import json
import math
from typing import Any


def json_value(text: str, *, stored: bool = False) -> Any:
    """The value of a JSON text.

    Python reads NaN, Infinity and 1e999 too: people's tables may hold them, and what this package has `stored` does
    not.

    Raises
    ------
    ValueError
        If it is not JSON or is nested too deep, or if it is `stored` and holds a number that is not finite.
    """
    try:
        return _STORED.decode(text) if stored else json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"it holds {text[:80]}, which is no finite number")
    return value


_STORED = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
