"""JSON objects a line: row by row, or in chunks of lines that are written as the first one is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.arrow import IrregularCells, texts_of
from rag_selectivity.errors import InputError
from rag_selectivity.io.chunks import Chunk, Row
from rag_selectivity.io.limits import json_value
from rag_selectivity.io.opening import Lines, line_blocks, opened
from rag_selectivity.io.separated import array_types, parsed

#: What holds few different values.
_REPEATED = ("query", "grade")
#: A key and a value that is a string without escapes, or a number.
_PAIR = re.compile(rb'[{,]\s*"([^"\\\x00-\x1f]+)"\s*:\s*(?:"([^"\\\x00-\x1f]*)"|(-?[0-9][0-9.eE+-]*))')
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class Value:
    """Where a line has a value, if it is split at quotation marks: a whole piece, or what stands between two texts."""

    piece: int
    before: bytes = b""
    after: bytes = b""

    @property
    def is_number(self) -> bool:
        """Whether it is a number; else it is a string."""
        return bool(self.before)


@dataclass(frozen=True, slots=True)
class Template:
    """How a line is written: its values by their keys, and the pieces that are the same in every line."""

    width: int
    values: Mapping[str, Value]
    same: Mapping[int, bytes]

    @classmethod
    def of(cls, line: bytes) -> Template:
        """That of a line.

        Raises
        ------
        IrregularCells
            If a value is neither a plain string nor a number, or a key comes twice.
        """
        line = line.rstrip(b"\r\n")
        pieces = line.split(b'"')
        values: dict[str, Value] = {}
        end = 0
        while match := _PAIR.match(line, end):
            key, end = match[1].decode("utf-8", "replace"), match.end()
            if key in values:
                raise IrregularCells
            if match[3] is None:
                values[key] = Value(line.count(b'"', 0, match.start(2)))
                continue
            piece = line.count(b'"', 0, match.start(3))
            before = line[line.rfind(b'"', 0, match.start(3)) + 1 : match.start(3)]
            values[key] = Value(piece, before, pieces[piece][len(before) + len(match[3]) :])
        if not values or line[end:].strip() != b"}":
            raise IrregularCells
        varying = {value.piece for value in values.values()}
        return cls(len(pieces), values, {i: piece for i, piece in enumerate(pieces) if i not in varying})


@dataclass(frozen=True, slots=True)
class JsonLinesChunk(Chunk):
    """Whole lines of a file; `columns` names the key of each array."""

    path: Path
    template: Template
    columns: Mapping[str, str]
    lines: Lines

    def arrays(self) -> dict[str, Any]:
        """By pyarrow, as a table whose cells are separated by quotation marks."""
        import pyarrow

        template = self.template
        text = np.frombuffer(self.lines.text, np.uint8)
        line_ends = self.lines.ends + (self.lines.text.count(b"\r") if b"\r" in self.lines.text else 0)
        if b"\\" in self.lines.text or int(np.count_nonzero(text < ord(" "))) != line_ends:
            raise IrregularCells
        types = array_types()
        role_of = {key: role for role, key in self.columns.items()}
        wanted = {f"same {i}": (i, pyarrow.binary(len(piece))) for i, piece in template.same.items()}
        for key, value in template.values.items():
            role = role_of.get(key)
            if value.is_number:
                type = pyarrow.string() if role not in _REPEATED else types[role]
                wanted[role or f"beside {key}"] = value.piece, type
            elif role is not None:
                wanted[role] = value.piece, types[role]
        arrays = parsed(self.lines, '"', template.width, wanted)
        for i, piece in template.same.items():
            if not _all_are(arrays[f"same {i}"], piece):
                raise IrregularCells
        for key, value in template.values.items():
            role = role_of.get(key, f"beside {key}")
            if value.is_number and role in _REPEATED:
                arrays[role] = _integers(arrays[role], value)
            elif value.is_number:
                arrays[role] = _numbers(arrays[role], value, whole=role == "passage")
        if not arrays.keys() >= self.columns.keys():
            raise IrregularCells
        return {role: arrays[role] for role in self.columns}

    @property
    def first_line(self) -> int:
        """The line of the first row."""
        return self.lines.first

    def rows(self) -> Iterator[tuple[int, Row]]:
        """By the json module."""
        return json_rows(self.path, self.lines.decoded(self.path))


def json_chunks(path: Path, columns: Mapping[str, str]) -> Iterator[JsonLinesChunk]:
    """The lines of a file."""
    template = None
    with opened(path) as file:
        for lines in line_blocks(path, file):
            if template is None:
                template = Template.of(lines.text.partition(b"\n")[0])
            yield JsonLinesChunk(path, template, columns, lines)


def json_rows(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, Row]]:
    """(line, object) of lines."""
    for number, line in lines:
        try:
            row = json_value(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{number}: not a JSON object ({error})") from None
        if not isinstance(row, dict):
            raise InputError(f"{path}:{number}: expected a JSON object, got {type(row).__name__}")
        yield number, row


def _all_are(column: Any, piece: bytes) -> bool:
    """Whether every value of a column of bytes of one length is the same given one."""
    size = len(piece)
    values = np.frombuffer(column.buffers()[1], np.uint8, len(column) * size, column.offset * size)
    return values.tobytes() == piece * len(column)


def _integers(column: Any, value: Value) -> Any:
    """A column of whole numbers by its distinct values, which stay text."""
    import pyarrow

    bare = []
    for text in column.dictionary.to_pylist():
        cell = text.encode()
        number = cell.removeprefix(value.before).removesuffix(value.after)
        if value.before + number + value.after != cell or not _INTEGER.fullmatch(number):
            raise IrregularCells
        bare.append(number)
    ends = np.cumsum([0, *map(len, bare)], dtype=np.int32)
    return pyarrow.DictionaryArray.from_arrays(column.indices, _strings(ends, b"".join(bare)))


def _numbers(column: Any, value: Value, *, whole: bool) -> Any:
    """A column of numbers as JSON writes them; whole ones stay text, as ids are.

    Raises
    ------
    IrregularCells
        If a value is something else.
    """
    import pyarrow

    cuts, data = texts_of(column)
    lead, tail = len(value.before), len(value.after)
    if not len(column) or (np.diff(cuts) <= lead + tail).any():
        raise IrregularCells
    inside = np.ones(int(cuts[-1]), bool)
    places = [(cuts[:-1] + i, letter) for i, letter in enumerate(value.before)]
    places += [(cuts[1:] - tail + i, letter) for i, letter in enumerate(value.after)]
    for place, letter in places:
        if (data[place] != letter).any():
            raise IrregularCells
        inside[place] = False
    letters = data[: len(inside)][inside]
    cuts = cuts - np.arange(len(cuts), dtype=np.int32) * np.int32(lead + tail)
    # As JSON writes them: no sign but the minus, no zero before another digit, digits around a point.
    first, last = cuts[:-1], cuts[1:] - 1
    first = first + (letters[first] == ord("-"))
    if (first > last).any() or (whole and not _DIGIT[letters].all()):
        raise IrregularCells
    leading_zero = (letters[first] == ord("0")) & (first < last) & _DIGIT[letters[np.minimum(first + 1, last)]]
    if leading_zero.any() or not (_DIGIT[letters[first]] & _DIGIT[letters[last]]).all():
        raise IrregularCells
    numbers = _strings(cuts.astype(np.int32, copy=False), letters)
    if whole:
        return numbers
    text = letters.tobytes()
    if b".e" in text or b".E" in text:
        raise IrregularCells
    try:
        return numbers.cast(pyarrow.float64())
    except pyarrow.ArrowException:
        raise IrregularCells from None


def _strings(offsets: NDArray[np.int32], data: Any) -> Any:
    import pyarrow

    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(offsets) - 1, buffers)


_DIGIT = np.isin(np.arange(256), np.frombuffer(b"0123456789", np.uint8))
