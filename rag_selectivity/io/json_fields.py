"""The values of JSON lines that are written as the first one is, found by NumPy for a whole block at once.

No value is copied. What this module does not read it leaves to the json module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.arrow import IrregularCells
from rag_selectivity.data.cells import label_grade
from rag_selectivity.data.ids import IdColumn, IntArray
from rag_selectivity.data.rows import FloatArray
from rag_selectivity.errors import InputError
from rag_selectivity.io.trec_fields import decimals, is_unicode, whole_numbers

#: A key and a value that is a string without escapes, or a number.
_PAIR = re.compile(rb'[{,]\s*"([^"\\\x00-\x1f]+)"\s*:\s*(?:"([^"\\\x00-\x1f]*)"|(-?[0-9][0-9.eE+-]*))')
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,17}")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
#: Python reads longer numbers in other ways.
_LONGEST_NUMBER = 300
_QUOTE, _MINUS, _DOT, _ZERO, _NINE = b'"-.09'
_WORD = 8
_PADDING = bytes(_WORD)


@dataclass(frozen=True, slots=True)
class Value:
    """A value of each line: the quotation mark before it and after it, and how far from these it is.

    Attributes
    ----------
    number : int
        Its place among the values of a line.
    is_number : bool
        Else it is a string.
    mark : int
        How many quotation marks of the line are before it.
    lead, tail : int
        How many characters are between it and the quotation marks before and after it.
    before : bytes
        What is between the value before it and this one; for the first one, from the last value of the line before.
    """

    number: int
    is_number: bool
    mark: int
    lead: int
    tail: int
    before: bytes


@dataclass(frozen=True, slots=True)
class Template:
    """How a line is written: its values by their keys, what is before the first one, and how the line ends."""

    values: Mapping[str, Value]
    start: bytes
    line_end: bytes
    marks: int

    @classmethod
    def of(cls, line: bytes) -> Template:
        """That of a line.

        Raises
        ------
        IrregularCells
            If a value is neither a plain string nor a number, or a key comes twice.
        """
        text = line.rstrip(b"\r\n")
        line_end = line[len(text) :] or b"\n"
        keys: list[str] = []
        bounds: list[tuple[int, int]] = []
        are_numbers: list[bool] = []
        end = 0
        while match := _PAIR.match(text, end):
            group, end = 2 if match[3] is None else 3, match.end()
            keys.append(match[1].decode("utf-8", "replace"))
            bounds.append(match.span(group))
            are_numbers.append(group == 3)
        if not keys or len(set(keys)) < len(keys) or text[end:].strip() != b"}":
            raise IrregularCells
        start = text[: bounds[0][0]]
        before = [text[stop:start] for (_, stop), (start, _) in pairwise(bounds)]
        before = [text[bounds[-1][1] :] + line_end + start, *before]
        values = {
            key: Value(
                i,
                are_numbers[i],
                text.count(b'"', 0, bounds[i][0]),
                len(before[i]) - 1 - before[i].rindex(b'"'),
                before[(i + 1) % len(before)].index(b'"'),
                before[i],
            )
            for i, key in enumerate(keys)
        }
        return cls(values, start, line_end, text.count(b'"'))


@dataclass(frozen=True, slots=True)
class JsonFields:
    """Where the values of each line begin and end in a text.

    Attributes
    ----------
    text : uint8[bytes]
        The text with a word of padding on both sides.
    starts, ends : sequences of int64[lines]
        By the place of each value in a line.
    """

    template: Template
    text: NDArray[np.uint8]
    starts: list[IntArray]
    ends: list[IntArray]

    def __len__(self) -> int:
        return len(self.starts[0])

    def first(self, rows: int) -> JsonFields:
        """Those of the first lines."""
        starts, ends = [column[:rows] for column in self.starts], [column[:rows] for column in self.ends]
        return JsonFields(self.template, self.text, starts, ends)

    def line_start(self, row: int) -> int:
        """Where a line begins in the text without its padding."""
        return int(self.starts[0][row]) - len(self.template.start) - _WORD

    def strings(self, key: str) -> IdColumn:
        """What stands for a value, without quotation marks."""
        value = self._value(key)
        return IdColumn(self.text, self.starts[value.number], self.ends[value.number])

    def ids(self, key: str) -> IdColumn:
        """Strings that are not empty, or whole numbers as Python writes them."""
        value = self._value(key)
        starts, ends = self.starts[value.number], self.ends[value.number]
        if (starts == ends).any():
            raise IrregularCells
        if value.is_number:
            self._check_whole(starts, ends)
        return IdColumn(self.text, starts, ends)

    def numbers(self, key: str) -> FloatArray:
        """Numbers, also those that are written as strings."""
        value = self._value(key)
        starts, ends = self.starts[value.number], self.ends[value.number]
        numbers, read = decimals(self.text, starts, ends)
        if not value.is_number:
            if not read.all():
                raise IrregularCells
            return numbers
        # Of what was read JSON has no zero before another digit, and digits on both sides of a point.
        odd = np.flatnonzero(
            ~(read & (self.text[starts] - (_ZERO + 1) < _NINE - _ZERO) & (self.text[ends - 1] != _DOT))
        )
        first = starts[odd]
        first = first + (self.text[first] == _MINUS)
        leading = self.text[first]
        zero = (leading == _ZERO) & ((first + 1 == ends[odd]) | (self.text[first + 1] == _DOT))
        plain = read[odd] & (zero | (leading - (_ZERO + 1) < _NINE - _ZERO)) & (self.text[ends[odd] - 1] != _DOT)
        for row in odd[~plain].tolist():
            number = self.text[starts[row] : ends[row]].tobytes()
            if len(number) > _LONGEST_NUMBER or not _NUMBER.fullmatch(number):
                raise IrregularCells
            numbers[row] = float(number)
        return numbers

    def check_others(self, keys: Iterable[str]) -> None:
        """Whether the values of the other keys are strings or numbers, as those of the first line are."""
        for key, value in self.template.values.items():
            if value.is_number and key not in keys:
                self.numbers(key)

    def grades(self, key: str) -> IntArray:
        """Whole grades, also those that are written as strings."""
        value = self._value(key)
        starts, ends = self.starts[value.number], self.ends[value.number]
        grades, read = whole_numbers(self.text, starts, ends)
        read &= starts < ends
        if value.is_number:
            read &= (self.text[starts] != _ZERO) | (ends - starts == 1)
        for row in np.flatnonzero(~read).tolist():
            cell = self.text[starts[row] : ends[row]].tobytes()
            if value.is_number and not _INTEGER.fullmatch(cell):
                raise IrregularCells
            try:
                grades[row] = label_grade(cell.decode(), "")
            except InputError:
                raise IrregularCells from None
        return grades

    def _value(self, key: str) -> Value:
        try:
            return self.template.values[key]
        except KeyError:
            raise IrregularCells from None

    def _check_whole(self, starts: IntArray, ends: IntArray) -> None:
        lengths = ends - starts
        longest = int(lengths.max(initial=0))
        whole = (self.text[starts] != _ZERO) | (lengths == 1)
        for word in range(0, min(longest, _LONGEST_NUMBER), _WORD):
            rows = np.flatnonzero(lengths > word)
            begin = starts[rows] + word
            whole[rows] &= whole_numbers(self.text, begin, np.minimum(ends[rows], begin + _WORD))[1]
        for row in np.flatnonzero(~whole).tolist():
            if not _INTEGER.fullmatch(self.text[starts[row] : ends[row]].tobytes()):
                raise IrregularCells
        if longest > _LONGEST_NUMBER:
            raise IrregularCells


def fields_of(text: bytes, template: Template) -> JsonFields | None:
    """The values of each line of a text, whose lines are whole; None where a line is written in another way."""
    if b"\\" in text or not text.startswith(template.start) or not is_unicode(text):
        return None
    values = list(template.values.values())
    # With the beginning of one line more, what is after the last value of each line is the same.
    ending = template.start if text.endswith(b"\n") else template.line_end + template.start
    padding = bytes(max(_WORD, *(len(value.before) for value in values)))
    padded = np.frombuffer(b"".join((_PADDING, text, ending, padding)), np.uint8)
    marks = np.flatnonzero(padded == _QUOTE)
    lines, rest = divmod(len(marks) - template.start.count(b'"'), template.marks)
    controls = np.count_nonzero(padded[_WORD : -len(padding)] < ord(" "))
    if rest or not lines or controls != lines * len(template.line_end):
        return None
    starts = [marks[value.mark - 1 :: template.marks][:lines] + (value.lead + 1) for value in values]
    ends = [marks[value.mark :: template.marks][:lines] - value.tail for value in values]
    if any((starts[value.number] >= ends[value.number]).any() for value in values if value.is_number):
        return None
    # The quotation marks of what follows a value are the next ones, so that the next value begins behind it.
    if not all(_all_follow(padded, ends[value.number - 1], value.before) for value in values):
        return None
    return JsonFields(template, padded, starts, ends)


def _all_follow(text: NDArray[np.uint8], ends: IntArray, same: bytes) -> bool:
    """Whether the same text follows each end."""
    pieces = np.ndarray((len(text) - len(same) + 1,), f"V{len(same)}", text, strides=(1,))
    return bool(pieces[ends].tobytes() == same * len(ends))
