"""The fields of lines of text, found by NumPy for a whole block at once: no field is copied.

What this module does not read it leaves to the reader that goes line by line, which says what is wrong and where.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import HashArray, IdColumn, IntArray

_SPACE, _TAB, _LINE_END, _COMMENT = 32, 9, 10, ord("#")
# What `bytes.split` takes for white space.
_IS_WHITE = np.zeros(256, bool)
_IS_WHITE[[9, 10, 11, 12, 13, 32]] = True
_MINUS, _DOT = ord("-"), ord(".")
_WORD, _MOST_WORDS = 8, 3
_PADDING = 2 * _WORD
#: The powers of ten that floats hold exactly.
_POWERS = np.array([float(10**power) for power in range(23)])
_EXACT, _SPLITTER, _LITTLE = np.uint64(1 << 53), float((1 << 27) + 1), 2.0**-40
_ONE, _THREE, _TEN, _HUNDRED, _LOW_BYTE = map(np.uint64, (1, 3, 10, 100, 0xFF))
_SEVENTH, _BYTE, _TWO_BYTES, _FOUR_BYTES, _LAST_BYTE, _WORD_BITS = map(np.uint64, (7, 8, 16, 32, 56, 64))
_EVERY_BIT, _EVERY_FOURTH = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0x000000FF000000FF)
_SEVEN_BITS, _HIGH_BITS = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(0x8080808080808080)
_TEN_TO_HIGH_BIT = np.uint64(0x7676767676767676)
_ZEROS, _DOTS = np.uint64(0x3030303030303030), np.uint64(0x1E1E1E1E1E1E1E1E)  # of "." ^ "0"
_HUNDRED_AND_MILLION, _ONE_AND_TEN_THOUSAND = np.uint64(100 + (1_000_000 << 32)), np.uint64(1 + (10_000 << 32))
_POWERS_OF_WORDS = tuple(np.uint64(10**power) for power in (0, 8, 16))


class PaddedText:
    """A text in the middle of a buffer, so that two words of eight bytes can be read before and behind each character.

    >>> text = PaddedText.of(b"q1 0 d1 5")
    >>> bytes(text), text.buffer[text.begin : text.end]
    (b'q1 0 d1 5', bytearray(b'q1 0 d1 5'))

    Attributes
    ----------
    buffer : bytearray
        What is before `begin` and behind `end` is of no account.
    begin, end : int
    """

    __slots__ = ("buffer", "end")
    begin = _PADDING

    def __init__(self, buffer: bytearray, end: int) -> None:
        self.buffer, self.end = buffer, end

    @classmethod
    def of(cls, text: bytes) -> PaddedText:
        """A copy of a text."""
        return cls(bytearray().join((bytes(_PADDING), text, bytes(_PADDING))), _PADDING + len(text))

    @classmethod
    def read(cls, file: IO[bytes], start: bytes, size: int) -> PaddedText:
        """A beginning, and up to `size` bytes of a file behind it."""
        buffer = bytearray(len(start) + size + 2 * _PADDING)
        end = cls.begin + len(start)
        buffer[cls.begin : end] = start
        with memoryview(buffer) as cells:
            count: int = file.readinto(cells[end : end + size])  # type: ignore[attr-defined]
        return cls(buffer, end + count)

    def __len__(self) -> int:
        return self.end - self.begin

    def __bytes__(self) -> bytes:
        return bytes(self.buffer[self.begin : self.end])

    def until(self, end: int) -> PaddedText:
        """The text before a place in the buffer, in the same buffer."""
        return PaddedText(self.buffer, end)

    def cells(self) -> NDArray[np.uint8]:
        """The text with its padding."""
        return np.frombuffer(self.buffer, np.uint8, self.end + _PADDING)


@dataclass(frozen=True, slots=True)
class Fields:
    """Where the first fields of each line begin and end in a text.

    Attributes
    ----------
    text : uint8[bytes]
        The text with its padding.
    starts, ends : int64[fields, lines]
    lines : int64[lines]
        The number of each line in the text, from 0.
    comments : int
        How many lines were left out because they begin with `#`.
    """

    text: NDArray[np.uint8]
    starts: IntArray
    ends: IntArray
    lines: IntArray
    comments: int = 0

    def __len__(self) -> int:
        return len(self.lines)

    def ids(self, field: int) -> IdColumn:
        """A field as ids, which share the text."""
        return IdColumn(self.text, self.starts[field], self.ends[field])

    def bounds(self, field: int) -> tuple[IntArray, IntArray]:
        """Where a field begins and ends in each line."""
        return self.starts[field], self.ends[field]

    def texts(self, field: int, rows: IntArray) -> list[bytes]:
        """A field of some lines."""
        bounds = zip(self.starts[field, rows].tolist(), self.ends[field, rows].tolist(), strict=True)
        return [self.text[start:end].tobytes() for start, end in bounds]


def fields_of(text: PaddedText, width: int, most: int | None = None) -> Fields | None:
    """The first `width` fields of each line of a text, whose lines are whole; blank lines are left out.

    None where a line has fewer fields or more than `most`, and where the text holds a NUL character or is not UTF-8.
    """
    found = _regular(text.cells(), width)
    if found is None:
        plain = bytes(text)
        if b"\0" in plain or not is_unicode(plain):
            return None
        cells = PaddedText.of(plain.replace(b"\r\n", b"\n") + b"\n" * (not plain.endswith(b"\n"))).cells()
        found = _regular(cells, width) or _irregular(cells, width, most)
    return None if found is None else _without_comments(found)


def is_unicode(text: bytes) -> bool:
    """Whether a text is UTF-8."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _regular(text: NDArray[np.uint8], width: int) -> Fields | None:
    """Lines of exactly `width` fields with one space or tab between them; None for others, and if it is not UTF-8."""
    inside = text[_PADDING:-_PADDING]
    found = np.flatnonzero(inside <= _SPACE)
    lines, rest = divmod(len(found), width)
    if rest or not lines:
        return None
    # A row for each field, so that its columns are read in order.
    starts, ends = np.empty((2, width, lines), np.int64)
    for field in range(width):
        np.add(found[field::width], _PADDING, out=ends[field])
    np.add(ends[:-1], 1, out=starts[1:])
    starts[0, 0] = _PADDING
    np.add(ends[-1, :-1], 1, out=starts[0, 1:])
    if (text.take(ends[-1], mode="clip") != _LINE_END).any() or (starts == ends).any():
        return None
    # Line ends and nothing else below the space; what is above ASCII is a negative number here.
    if np.count_nonzero(inside.view(np.int8) < _SPACE) > lines:
        further = np.count_nonzero(inside < _SPACE) - lines
        if further != np.count_nonzero(inside == _TAB) or np.count_nonzero(inside == _LINE_END) != lines:
            return None
        if not is_unicode(inside.tobytes()):
            return None
    return Fields(text, starts, ends, np.arange(lines))


def _irregular(text: NDArray[np.uint8], width: int, most: int | None) -> Fields | None:
    """Lines with any white space, blank ones and longer ones; None where a line is too short or too long."""
    inside = ~_IS_WHITE[text]
    inside[:_PADDING] = inside[-_PADDING:] = False
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    line_ends = _PADDING + np.flatnonzero(text[_PADDING:-_PADDING] == _LINE_END)
    count = np.diff(np.searchsorted(starts, line_ends), prepend=0)
    first = np.cumsum(count) - count
    lines = np.flatnonzero(count)
    data = lines[text[starts[first[lines]]] != _COMMENT]
    first, count = first[data], count[data]
    if (count < width).any() or (most is not None and (count > most).any()):
        return None
    rows = first + np.arange(width)[:, None]
    return Fields(text, starts[rows], ends[rows], data, len(lines) - len(data))


def _without_comments(fields: Fields) -> Fields:
    data = fields.text.take(fields.starts[0], mode="clip") != _COMMENT
    if data.all():
        return fields
    comments = fields.comments + int((~data).sum())
    starts, ends, lines = fields.starts[:, data], fields.ends[:, data], fields.lines[data]
    return Fields(fields.text, starts, ends, lines, comments)


def ranks_and_scores(
    fields: Fields, rank: int, score: int
) -> tuple[IntArray, NDArray[np.bool_], NDArray[np.float64], NDArray[np.bool_]] | None:
    """`whole_numbers` of one field and `decimals` of the next one, from the same two words of each line.

    None where they do not stand together in two words, in most lines as the first line's score has them.
    """
    text, ends = fields.text, fields.ends[score]
    behind = _decimals_of_first(fields.text, *fields.bounds(score))
    before = ends - fields.starts[score] - (behind + 1)
    digits = fields.ends[rank] - fields.starts[rank]
    if not behind or before.min() < 1 or before.max() + behind > _WORD or (before + digits).max() > _WORD - 1:
        return None
    first, last = _two_words_ending_at(text, ends)
    dot = ((last >> np.uint64(8 * (_WORD - 1 - behind))) & _LOW_BYTE) == _DOT
    # The eight characters before the dot: a rank, a space and the digits before the dot.
    first >>= np.uint64(8 * (_WORD - 1 - behind))
    first |= last << np.uint64(8 * (behind + 1))
    bits = (before << 3).view(np.uint64)
    ranks = first << (bits + _BYTE)
    ranks ^= _ZEROS
    ranks &= _EVERY_BIT << (_WORD_BITS - (digits << 3).view(np.uint64))
    # The score without its dot.
    first ^= _ZEROS
    first &= _EVERY_BIT << (_WORD_BITS - bits)
    first >>= np.uint64(8 * behind)
    last ^= _ZEROS
    last &= _EVERY_BIT << np.uint64(8 * (_WORD - behind))
    first |= last
    whole, read = _eight_digits(first).view(np.int64), dot & _are_digits(first)
    return _eight_digits(ranks).view(np.int64), _are_digits(ranks), whole.astype(np.float64) / _POWERS[behind], read


def whole_numbers(text: NDArray[np.uint8], starts: IntArray, ends: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Numbers of one to eight digits, and which of the fields are such numbers."""
    digits = _ending_at(text, ends, ends - starts)
    return _eight_digits(digits).astype(np.int64), _are_digits(digits) & (ends - starts <= _WORD)


def decimals(
    text: NDArray[np.uint8], starts: IntArray, ends: IntArray
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Decimal numbers of up to 18 digits, and which of the fields are such numbers; each is the closest float."""
    values, read = _with_equal_decimals(text, starts, ends)
    rest = np.flatnonzero(~read)
    if len(rest):
        values[rest], read[rest] = _unsigned(text, starts[rest], ends[rest])
        rest = rest[~read[rest]]
        rest = rest[text[starts[rest]] == _MINUS]
        positive, read[rest] = _unsigned(text, starts[rest] + 1, ends[rest])
        values[rest] = -positive
    return values, read


def _with_equal_decimals(
    text: NDArray[np.uint8], starts: IntArray, ends: IntArray
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers with as many decimals as the first one has, if these are one to seven, behind one to seven digits."""
    behind = _decimals_of_first(text, starts, ends)
    if not behind:
        return np.zeros(len(starts)), np.zeros(len(starts), bool)
    dots = ends - (behind + 1)
    lengths = dots - starts
    decimals = _ending_at(text, ends, behind)
    before = _ending_at(text, np.maximum(dots, _WORD), lengths)
    read = (text[dots] == _DOT) & (lengths > 0) & (lengths < _WORD) & _are_digits(decimals) & _are_digits(before)
    whole = _eight_digits(before) * np.uint64(10**behind) + _eight_digits(decimals)
    return whole.astype(np.float64) / _POWERS[behind], read


def _decimals_of_first(text: NDArray[np.uint8], starts: IntArray, ends: IntArray) -> int:
    """How many characters follow the dot in the first field; 0 if it has no dot, or more than seven."""
    behind = 0 if not len(starts) else text[starts[0] : ends[0]].tobytes()[::-1].find(b".")
    return behind if 0 < behind < _WORD else 0


def _unsigned(
    text: NDArray[np.uint8], starts: IntArray, ends: IntArray
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    lengths = ends - starts
    words = min(_MOST_WORDS, -(-int(lengths.max(initial=1)) // _WORD))
    characters = [
        _ending_at(text, np.maximum(ends - word * _WORD, _WORD), lengths - word * _WORD) for word in range(words)
    ]
    characters.append(np.zeros_like(characters[0]))
    dotted = np.zeros(len(lengths), bool)
    behind = np.zeros(len(lengths), np.int64)
    whole = np.zeros(len(lengths), np.uint64)
    read = lengths <= words * _WORD
    for word, digits in enumerate(characters[:-1]):
        dot = _dots(digits)
        here = dot != 0
        if here.any() or dotted.any():
            # What is before the dot moves up into its place.
            moved = np.where(here, _without(digits, dot), np.where(dotted, digits << _BYTE, digits))
            behind = np.where(here, (word + 1) * _WORD - 1 - _place(dot), behind)
            read &= ~(here & (dotted | ((dot & (dot - _ONE)) != 0)))
            dotted |= here
            digits = np.where(dotted, moved | (characters[word + 1] >> _LAST_BYTE), moved)
        read &= _are_digits(digits)
        number = _eight_digits(digits)
        if word == 2:
            read &= number < _HUNDRED
        whole += number * _POWERS_OF_WORDS[word]
    read &= (lengths > dotted) & (behind < len(_POWERS))
    powers = _POWERS[np.minimum(behind, len(_POWERS) - 1)]
    values = whole.astype(np.float64) / powers
    inexact = np.flatnonzero(read & (whole >= _EXACT))
    if len(inexact):
        values[inexact], sure = _quotients(whole[inexact], powers[inexact])
        read[inexact] &= sure
    return values, read


def _quotients(whole: HashArray, powers: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The closest floats to whole numbers below 10^18 divided by exact powers of ten, and which of them are sure to be.

    A first quotient is corrected by what it leaves over, which Dekker's product gives exactly. It is sure where the
    correction may be a little larger or smaller.
    """
    high = whole.astype(np.float64)
    low = (whole.view(np.int64) - high.astype(np.int64)).astype(np.float64)
    first = high / powers
    product, error = _product(first, powers)
    correction = (((high - product) - error) + low) / powers
    result = first + correction * (1 + _LITTLE)
    return result, result == first + correction * (1 - _LITTLE)


def _product(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A product as the sum of two floats, without an error."""
    product = one * other
    one_high, one_low = _halves(one)
    other_high, other_low = _halves(other)
    error = ((one_high * other_high - product) + one_high * other_low + one_low * other_high) + one_low * other_low
    return product, error


def _halves(number: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two floats of half the digits whose sum is the number."""
    scaled = number * _SPLITTER
    high = scaled - (scaled - number)
    return high, number - high


def _two_words_ending_at(text: NDArray[np.uint8], ends: IntArray) -> tuple[HashArray, HashArray]:
    """The eight characters before the last eight, and the last eight of each field, the last in the highest byte.

    From the three words at multiples of eight that hold them, which is faster than reading at any offset.
    """
    words = text[: len(text) // _WORD * _WORD].view("<u8")
    firsts = ends - 2 * _WORD
    later = (firsts & 7).view(np.uint64) << _THREE
    earlier = _WORD_BITS - later
    firsts >>= 3
    first = words.take(firsts, mode="clip")
    firsts += 1
    middle = words.take(firsts, mode="clip")
    firsts += 1
    last = words.take(firsts, mode="clip")
    first >>= later
    first |= middle << earlier
    middle >>= later
    last <<= earlier
    middle |= last
    return first, middle


def _ending_at(text: NDArray[np.uint8], ends: IntArray, lengths: IntArray | int) -> HashArray:
    """The last eight characters of each field less "0", the last in the highest byte; what is before a field is 0."""
    words = np.ndarray((len(text) - _WORD + 1,), "<u8", text, strides=(1,))
    bits_before = np.maximum(64 - 8 * lengths, 0).astype(np.uint64)
    return (words[ends - _WORD] ^ _ZEROS) & (_EVERY_BIT << bits_before)


def _dots(characters: HashArray) -> HashArray:
    """1 in every byte that is a dot, 0 in all others."""
    other = characters ^ _DOTS
    return (~(((other & _SEVEN_BITS) + _SEVEN_BITS) | other | _SEVEN_BITS)) >> _SEVENTH


def _without(characters: HashArray, dot: HashArray) -> HashArray:
    """The characters without the one at the dot; those before it move up by a byte."""
    before = dot - _ONE
    return (characters & ~(before | dot * _LOW_BYTE)) | ((characters & before) << _BYTE)


def _place(dot: HashArray) -> IntArray:
    """The number of the byte that is 1, from the exponent of the float."""
    result: IntArray = ((dot.astype(np.float64).view(np.int64) >> 52) - 1023) >> 3
    return result


def _are_digits(characters: HashArray) -> NDArray[np.bool_]:
    result: NDArray[np.bool_] = (((characters + _TEN_TO_HIGH_BIT) | characters) & _HIGH_BITS) == 0
    return result


def _eight_digits(digits: HashArray) -> HashArray:
    """The number that eight digits make, by twos, fours and eights."""
    twos = digits * _TEN + (digits >> _BYTE)
    fours = (twos & _EVERY_FOURTH) * _HUNDRED_AND_MILLION
    return (fours + ((twos >> _TWO_BYTES) & _EVERY_FOURTH) * _ONE_AND_TEN_THOUSAND) >> _FOUR_BYTES
