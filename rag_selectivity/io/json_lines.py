"""JSON objects a line: row by row, or in chunks of lines that are written as the first one is."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.arrow import IrregularCells, texts_of
from rag_selectivity.errors import InputError
from rag_selectivity.io.chunks import Chunk, Row
from rag_selectivity.io.opening import decoded_lines, opened
from rag_selectivity.io.separated import parsed

_BLOCK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: A key and a value that is a string without escapes, or a number.
_PAIR = re.compile(rb'([{,]\s*"([^"\\\x00-\x1f]+)"\s*:\s*"?)(?:(?<=")[^"\\\x00-\x1f]*|(?<!")-?[0-9][0-9.eE+-]*)')
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
#: Control characters that mark the ends of values; a tab and line ends are none of them.
_MARKS = bytes(range(1, 9)) + bytes(range(14, 32))


@dataclass(frozen=True, slots=True)
class Template:
    """How a line is written: what stands before each of its values, and after the last one.

    `keys` and `between` belong to each value; `bare` are the keys of numbers.
    """

    keys: Sequence[str]
    between: Sequence[bytes]
    end: bytes
    bare: frozenset[str]

    @classmethod
    def of(cls, line: bytes) -> Template:
        """That of a line.

        Raises
        ------
        IrregularCells
            If a value is neither a plain string nor a number, a key comes twice, or there are too many.
        """
        keys, between, bare = [], [], set()
        end = start = 0
        lead = b""
        while match := _PAIR.match(line, end):
            is_text = match[1].endswith(b'"')
            key = match[2].decode("utf-8", "replace")
            keys.append(key)
            between.append(lead + match[1])
            bare |= set() if is_text else {key}
            lead = b'"' if is_text else b""
            end = match.end() + len(lead)
            start = match.end()
        if not keys or len(set(keys)) < len(keys) or len(keys) > len(_MARKS) or line[end:].strip() != b"}":
            raise IrregularCells
        return cls(keys, between, line[start:], frozenset(bare))

    def separated(self, text: bytes) -> bytes:
        """The values of lines that are written so, separated by tabs.

        Raises
        ------
        IrregularCells
            If a line is written in another way.
        """
        if not text.endswith(b"\n"):
            text += self.end[len(self.end.rstrip(b"\r\n")) :]
        first, end = self.between[0], self.end
        if b"\\" in text or not text.startswith(first) or not text[len(first) :].endswith(end):
            raise IrregularCells
        text = text[len(first) : len(text) - len(end)].replace(end + first, b"\n")
        for mark, between in zip(_MARKS, self.between[1:], strict=False):
            text = text.replace(between, bytes([mark]))
        if b'"' in text:
            raise IrregularCells
        letters = np.frombuffer(text, np.uint8)
        marks = letters[letters < ord(" ")]
        pattern = np.frombuffer(_MARKS[: len(self.keys) - 1] + b"\n", np.uint8)
        marks = np.append(marks, ord("\n"))
        if len(marks) % len(pattern) or (marks.reshape(-1, len(pattern)) != pattern).any():
            raise IrregularCells
        return text.translate(_TO_TABS) + b"\n"


_TO_TABS = bytes.maketrans(_MARKS, b"\t" * len(_MARKS))


@dataclass(frozen=True, slots=True)
class JsonLinesChunk(Chunk):
    """Whole lines of a file; `columns` names the key of each array."""

    path: Path
    template: Template
    columns: Mapping[str, str]
    text: bytes
    first_line: int

    def arrays(self) -> dict[str, Any]:
        """By pyarrow, as a table whose cells are separated by tabs."""

        keys = self.template.keys
        wanted = {role: keys.index(key) for role, key in self.columns.items() if key in keys}
        if len(wanted) < len(self.columns):
            raise IrregularCells
        of_key = {key: role for role, key in self.columns.items()}
        bare = {of_key.get(key, f"beside {key}"): keys.index(key) for key in self.template.bare}
        quoted_numbers = [role for role in ("score", "rank", "tokens") if role not in bare]
        arrays = parsed(self.template.separated(self.text), "\t", len(keys), {**wanted, **bare}, quoted_numbers)
        for role in bare:
            if role in ("query", "grade"):
                if not all(map(_INTEGER.fullmatch, arrays[role].dictionary.to_pylist())):
                    raise IrregularCells
            else:
                arrays[role] = _numbers(arrays[role], whole=role == "passage")
        return {role: arrays[role] for role in wanted}

    def rows(self) -> Iterator[tuple[int, Row]]:
        """By the json module."""
        return json_rows(self.path, decoded_lines(self.path, io.BytesIO(self.text), self.first_line))


def json_chunks(path: Path, columns: Mapping[str, str]) -> Iterator[JsonLinesChunk]:
    """The lines of a file."""
    with opened(path) as file:
        text = (file.read(_BLOCK) + file.readline()).removeprefix(_BYTE_ORDER_MARK)
        template = Template.of(text[: text.find(b"\n") + 1] or text)
        line = 1
        while text:
            yield JsonLinesChunk(path, template, columns, text, line)
            line += text.count(b"\n")
            text = file.read(_BLOCK) + file.readline()


def json_rows(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, Row]]:
    """(line, object) of lines."""
    for number, line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{number}: not a JSON object ({error})") from None
        if not isinstance(row, dict):
            raise InputError(f"{path}:{number}: expected a JSON object, got {type(row).__name__}")
        yield number, row


def _numbers(column: Any, *, whole: bool) -> Any:
    """A column of numbers as JSON writes them; whole ones stay text, as ids are.

    Raises
    ------
    IrregularCells
        If a value is something else.
    """
    import pyarrow

    offsets, data = texts_of(column)
    letters = data[: int(offsets[-1])]
    if not _IN_NUMBERS[0 if whole else 1][letters].all() or (offsets[1:] == offsets[:-1]).any():
        raise IrregularCells
    first, last = offsets[:-1], offsets[1:] - 1
    signed = letters[first] == ord("-")
    first = first + signed
    if (first > last).any() or not (_DIGIT[letters[first]].all() and _DIGIT[letters[last]].all()):
        raise IrregularCells
    padded = np.append(letters, 0)
    if ((padded[first] == ord("0")) & (first < last) & _DIGIT[padded[first + 1]]).any():
        raise IrregularCells
    if whole:
        return column
    if not _DIGIT[padded[np.flatnonzero(letters == ord(".")) + 1]].all():
        raise IrregularCells
    try:
        return column.cast(pyarrow.float64())
    except pyarrow.ArrowException:
        raise IrregularCells from None


def _table_of(letters: bytes) -> NDArray[np.bool_]:
    table = np.zeros(256, bool)
    table[list(letters)] = True
    return table


_DIGIT = _table_of(b"0123456789")
_IN_NUMBERS = (_DIGIT, _table_of(b"0123456789+-.eE"))
