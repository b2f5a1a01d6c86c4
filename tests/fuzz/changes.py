"""Random changes: of the bytes of a file, of the fields of a text, and of Python values."""

from __future__ import annotations

import datetime
import decimal
import fractions
import json
import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

#: What stands for a field or a value: each was the cause of a fault in some program.
NUMBERS = ("0", "-1", "1", "5", "1.5", "nan", "-inf", "1e400", "1e-400", "9223372036854775808", "9" * 30, "0x10", "1_0")
WORDS = ("", " ", "null", "true", "[]", "{}", '"', "'", "a\tb", "=1+1", "q1", "d1", "٣", "é", "\u2028", "\x85", "\x00")
BYTES = (
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\r",
    b"\n",
    b"\t",
    b",",
    b'"',
    b"{",
    b"]",
    b"\xed\xa0\x80",
    b"\\",
)
ATOMS: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    5,
    7,
    2**31,
    2**63,
    -(2**70),
    10**400,
    0.0,
    0.5,
    1.5,
    -2.5,
    1e308,
    math.nan,
    math.inf,
    -math.inf,
    "",
    " ",
    "x",
    "q1",
    "d1",
    "1",
    "nan",
    "\x00",
    "\ud800",
    "\u2028",
    "é",
    "a\tb",
    "a\nb",
    "BoR@10",
    "utility",
    "trec",
    "x" * 300,
    b"",
    b"d1",
    b"\xff",
    [],
    {},
    (),
    [[]],
    [None],
    {"q1": None},
    {"d1": 1},
    {1: 2},
    ["d1", "d1"],
    [1, "1"],
    {"a", 1},
    frozenset(),
    object,
    object(),
    len,
    range(3),
    1j,
    np.int64(3),
    np.float32("nan"),
    np.float64(2.0),
    np.bool_(True),
    np.array([1, 2]),
    np.array([]),
    np.array(["d1"]),
    np.array(3),
    np.str_("d1"),
    decimal.Decimal("1.5"),
    decimal.Decimal("NaN"),
    fractions.Fraction(1, 3),
    datetime.date(2020, 1, 1),
    Path("missing"),
    Path("."),
    bytearray(b"a"),
    memoryview(b"a"),
    Ellipsis,
    NotImplemented,
    ("d1", 1.0),
    [("d1", 1.0)],
    {"d1": math.nan},
    slice(1),
)


def changed_bytes(random: Random, data: bytes) -> bytes:
    """The bytes with one to four changes."""
    for _ in range(random.choice((1, 1, 2, 4))):
        data = random.choice(_OF_BYTES)(random, data)
    return data[:20_000]


def _flip(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]


def _insert(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(BYTES) + data[at:]


def _cut(random: Random, data: bytes) -> bytes:
    start, end = sorted(random.randrange(len(data) + 1) for _ in range(2))
    return data[:start] + data[random.choice((end, len(data))) :]


def _again(random: Random, data: bytes) -> bytes:
    start, end = sorted(random.randrange(len(data) + 1) for _ in range(2))
    return data[:end] + data[start:]


def _nulls(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + bytes(16) + data[at + 16 :]


_OF_BYTES: tuple[Callable[[Random, bytes], bytes], ...] = (_flip, _flip, _insert, _cut, _again, _nulls)


def changed_text(random: Random, text: str, separators: str = " ,:\t\n") -> str:
    """The text with fields exchanged, doubled, left out or replaced by awkward ones."""
    for _ in range(random.choice((1, 1, 2, 3))):
        separator = random.choice(separators)
        fields = text.split(separator)
        at = random.randrange(len(fields))
        match random.randrange(6):
            case 0:
                del fields[at]
            case 1:
                fields.insert(at, fields[random.randrange(len(fields))])
            case 2:
                other = random.randrange(len(fields))
                fields[at], fields[other] = fields[other], fields[at]
            case 3:
                fields[at] = random.choice(WORDS)
            case 4:
                fields[at] = random.choice(NUMBERS)
            case _:
                place = random.randrange(len(fields[at]) + 1)
                fields[at] = fields[at][:place] + random.choice(WORDS) + fields[at][place + 1 :]
        text = separator.join(fields)
    return text


def changed_value(random: Random, value: Any, atoms: tuple[Any, ...] = ATOMS) -> Any:
    """A copy of a value with one part, at any depth, replaced, left out, doubled or of another type."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(list(value))
        match random.randrange(12):
            case 0:
                return {name: each for name, each in value.items() if name is not key}
            case 1:
                return {**value, _hashable(random, atoms): random.choice(list(value.values()))}
            case 2:
                return {_hashable(random, atoms) if name is key else name: each for name, each in value.items()}
            case _:
                return {n: changed_value(random, each, atoms) if n is key else each for n, each in value.items()}
    if isinstance(value, (list, tuple)) and value and random.random() < 0.85:
        at, items = random.randrange(len(value)), list(value)
        match random.randrange(10):
            case 0:
                del items[at]
            case 1:
                items.insert(at, items[random.randrange(len(items))])
            case 2:
                items.append(random.choice(atoms))
            case _:
                items[at] = changed_value(random, items[at], atoms)
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, str) and random.random() < 0.3:
        return changed_text(random, value)
    if isinstance(value, (list, dict)) and atoms is ATOMS and random.random() < 0.3:
        try:
            return random.choice((tuple, list, set, iter, np.array, str))(value)
        except (TypeError, ValueError):  # what is no set or array
            return value
    return random.choice(atoms)


def _hashable(random: Random, atoms: tuple[Any, ...]) -> Any:
    found = random.choice(atoms)
    try:
        hash(found)
    except (TypeError, ValueError):
        return "key"
    return found


#: The atoms that JSON has.
JSON_ATOMS = tuple(
    each
    for each in ATOMS
    if isinstance(each, (bool, int, float, str, list, type(None))) and type(each) is not np.float64
)


def changed_json(random: Random, text: str, *, lines: bool = False) -> str:
    """JSON, or lines of it, with a value changed; what Python's writer writes beyond JSON is kept (NaN)."""
    if not lines:
        return json.dumps(changed_value(random, json.loads(text), JSON_ATOMS), default=str)
    rows = text.splitlines()
    at = random.randrange(len(rows))
    rows[at] = json.dumps(changed_value(random, json.loads(rows[at]), JSON_ATOMS), default=str)
    return "\n".join(rows) + "\n"
