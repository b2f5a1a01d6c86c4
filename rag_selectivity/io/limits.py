"""Limits of what is read, so that a damaged or hostile file ends in an error and not in a full memory."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.data.cells import MOST_DIGITS
from rag_selectivity.errors import InputError

#: Bytes of a line of TREC, JSONL, CSV and TSV files.
LONGEST_LINE = 16_000_000
#: Levels of lists and objects in JSON and TOML.
DEEPEST = 100


@dataclass
class MaxInput:
    """How far a compressed file may grow.

    Attributes
    ----------
    bytes : int
        To so many bytes. Default: 64 GB.
    ratio : int
        To so many times its size. Default: 1,000.
    """

    bytes: int = 64 * 10**9
    ratio: int = 1000


#: What holds for all files.
MAX_INPUT = MaxInput()


#: Below this, the ratio says nothing: a short text of one letter is packed well too.
_SMALL = 1 << 20


def most_growth(size: int) -> int:
    """The bytes to which a compressed file of so many bytes may grow."""
    return min(MAX_INPUT.bytes, max(_SMALL, size * MAX_INPUT.ratio))


def refuse_growth(path: Path, size: int, unpacked: int, mend: str = "unpack it first") -> None:
    """An InputError for a file of so many bytes whose content takes too many; `mend` says what to do with real data."""
    if unpacked > MAX_INPUT.bytes:
        raise InputError(
            f"{path}: the compressed file of {size:,} bytes grows above {MAX_INPUT.bytes:,}; unpack it first if it "
            f"really is so large"
        )
    if unpacked > most_growth(size):
        raise InputError(
            f"{path}: the compressed file grows to more than {MAX_INPUT.ratio:,} times its size of {size:,} bytes, as "
            f"no real data do; {mend} if they are real"
        )


def last_line_is_too_long(text: bytes | bytearray, begin: int = 0, end: int | None = None) -> bool:
    """Whether the last line of a text, or of a part of it, is longer than the limit."""
    end = len(text) if end is None else end
    end -= text.endswith(b"\n", begin, end)
    return end - max(begin, text.rfind(b"\n", begin, end) + 1) > LONGEST_LINE


def too_long(path: Path, number: int) -> InputError:
    """The error for a line above `LONGEST_LINE`."""
    return InputError(
        f"{path}:{number}: this line is longer than {LONGEST_LINE // 10**6:,} MB, the limit of a line; check that the "
        f"lines of the file end in a line feed"
    )


def json_value(text: str, *, stored: bool = False) -> Any:
    """The value of a JSON text.

    Python reads NaN, Infinity and 1e999 too: people's tables may hold them, and what this package has `stored` does
    not.

    Raises
    ------
    ValueError
        If it is not JSON, is nested too deep, or holds a number of too many digits, or if it is `stored` and holds a
        number that is not finite.
    """
    refuse_deep(text)
    if stored:
        return _STORED.decode(text)
    if len(text) > MOST_DIGITS and may_hold_long_number(text):
        return _CAREFUL.decode(text)
    return json.loads(text)


def may_break_limits(text: str) -> bool:
    """Whether a JSON text has to be read with care: it may be nested too deep, or hold a number of too many digits."""
    # Finding is many times as fast as counting, and most objects hold neither lists nor objects.
    nested = "[" in text or text.find("{", 1) > 0
    if nested and text.count("[") + text.count("{") > DEEPEST:
        return True
    return len(text) > MOST_DIGITS and may_hold_long_number(text)


def refuse_deep(text: str) -> None:
    """A ValueError for a JSON or TOML text that is nested too deep."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    steps = _STEPS[np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)]
    # Brackets in strings count too; a text that seems deep is looked at closely.
    if np.cumsum(steps[np.flatnonzero(steps)], dtype=np.int64).max() > DEEPEST and nesting(text) > DEEPEST:
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")


def nesting(text: str) -> int:
    """How deep the brackets of a JSON or TOML text are nested, those in strings left out.

    >>> nesting('{"a": [["[[["]]}')
    3
    """
    deepest = depth = 0
    for match in _BRACKETS.finditer(text):
        bracket = match[0][0]
        if bracket in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif bracket in "]}":
            depth -= 1
    return deepest


def may_hold_long_number(text: str | bytes) -> bool:
    """Whether more digits may follow each other than a number may have."""
    # So many of them hold one of these places, and half of them are on one side of it.
    half = MOST_DIGITS // 2
    places = range(MOST_DIGITS - 1, len(text), MOST_DIGITS)
    return any(text[i - half : i].isdigit() or text[i : i + half].isdigit() for i in places)


def _number(text: str, of: type) -> Any:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number has {len(text):,} digits, and may have {MOST_DIGITS:,}")
    return of(text)


def _finite(text: str) -> float:
    value: float = _number(text, float)
    if not math.isfinite(value):
        raise ValueError(f"it holds {text[:80]}, which is no finite number")
    return value


_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1
#: A bracket, or a whole string.
_BRACKETS = re.compile(r'[\[\]{}]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_CAREFUL = json.JSONDecoder(parse_int=lambda text: _number(text, int), parse_float=lambda text: _number(text, float))
_STORED = json.JSONDecoder(parse_int=lambda text: _number(text, int), parse_float=_finite, parse_constant=_finite)
