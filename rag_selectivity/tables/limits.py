"""JSON of files and of models, whose faults end in one kind of error."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from rag_selectivity.tables.exact import whole_text


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


def json_document(path: Path) -> Any:
    """The value of a file with one JSON document, which holds neither NaN nor Infinity.

    Raises
    ------
    InputError
        If the file cannot be read.
    ValueError
        As `json_value`, or if it is not UTF-8.
    """
    return json_value(whole_text(path), stored=True)


def toml_document(path: Path) -> dict[str, Any]:
    """The table of a TOML file.

    Raises
    ------
    InputError
        If the file cannot be read.
    ValueError
        If it is not UTF-8, is no TOML, or is nested too deep.
    """
    import tomllib

    try:
        return tomllib.loads(whole_text(path))
    except RecursionError:
        raise ValueError("it is nested too deep") from None
