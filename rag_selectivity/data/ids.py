"""A column of ids, stored as UTF-8 bytes with offsets: seven million ids take 100 MB instead of a gigabyte."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError

IntArray = NDArray[np.int64]
HashArray = NDArray[np.uint64]

_WORD = 8
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SECOND_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)
_NO_ROWS = np.empty(0, np.int64)
_NUMBERS = re.compile("([0-9]+)")
#: The numbers of so few rows take two bytes each.
_FEW_ROWS = 1 << 16


def check_ids(ids: object, what: str) -> None:
    """An InputError for a text, a dict or anything without a length in the place of a list of ids.

    >>> check_ids("d1", "the list")
    Traceback (most recent call last):
        ...
    rag_selectivity.errors.InputError: the list must be a list of ids in rank order, got 'd1'; give ['d1']
    """
    if isinstance(ids, (list, tuple)):
        return
    refuse_set(ids, what)
    if isinstance(ids, (str, bytes, Mapping)) or not _has_length(ids):
        mend = f"; give [{ids!r}]" if isinstance(ids, str) and len(ids) < 80 else ""
        raise InputError(f"{what} must be a list of ids in rank order, got {repr(ids)[:80]}{mend}")


def refuse_set(ranking: object, what: str) -> None:
    """An InputError for a set in the place of a ranking: its order changes from one process to the next."""
    if isinstance(ranking, (set, frozenset)):
        raise InputError(f"{what}: a set has no order; give a list, the best first")


def _has_length(ids: Any) -> bool:
    """Whether a value is of a known length, which an array without dimensions is not."""
    try:
        return len(ids) >= 0
    except TypeError:
        return False


def natural_key(name: str) -> tuple[Any, ...]:
    """A sort key by which numbers in ids count as numbers.

    >>> sorted(["q10", "q2", "q02", "q"], key=natural_key)
    ['q', 'q02', 'q2', 'q10']
    """
    pieces = enumerate(_NUMBERS.split(name))
    return tuple((len(each.lstrip("0")), each.lstrip("0")) if i % 2 else each for i, each in pieces), name


class IdColumn:
    """An immutable sequence of non-empty ids: where each begins and ends in a buffer of UTF-8 bytes.

    The buffer may be a file's own text, so that reading copies no id. Indexing returns a `str`; slices and `take`
    share the buffer. Ids are ordered by their UTF-8 bytes, as by trec_eval's `strcmp`.

    >>> column = IdColumn.from_strings(["d1", "d20", "d3"])
    >>> column[1], len(column), list(column[1:])
    ('d20', 3, ['d20', 'd3'])
    """

    __slots__ = ("_hashes", "_padded", "ends", "starts")

    def __init__(self, padded: NDArray[np.uint8], starts: IntArray, ends: IntArray) -> None:
        # One word of padding at the end, so that eight bytes can be read from any position.
        self._padded = padded
        self.starts = starts
        self.ends = ends
        self._hashes: HashArray | None = None

    @classmethod
    def from_strings(cls, ids: Iterable[Any]) -> IdColumn:
        """Make a column from strings or integers; an empty id, or an id of another type, is an InputError."""
        values = ids if isinstance(ids, list) else list(ids)
        lengths, data = _ascii(values) or _one_by_one(values)
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return cls.from_buffer(data, offsets)

    @classmethod
    def from_buffer(cls, data: Any, offsets: NDArray[np.integer[Any]]) -> IdColumn:
        """Make a column from concatenated bytes: id i is `data[offsets[i]:offsets[i + 1]]`."""
        cuts: IntArray = offsets.astype(np.int64)
        base, end = int(cuts[0]), int(cuts[-1])
        padded = np.zeros(end - base + _WORD, np.uint8)
        padded[: end - base] = np.frombuffer(data, np.uint8, count=end)[base:] if end else 0
        return cls._of_offsets(padded, cuts - base)

    @classmethod
    def _of_offsets(cls, padded: NDArray[np.uint8], offsets: IntArray) -> IdColumn:
        return cls(padded, offsets[:-1], offsets[1:])

    @classmethod
    def concatenate(cls, columns: Sequence[IdColumn]) -> IdColumn:
        """Put columns one after the other."""
        parts = [column.buffers() for column in columns]
        starts = np.cumsum([0] + [int(offsets[-1]) for offsets, _ in parts])
        padded = np.zeros(int(starts[-1]) + _WORD, np.uint8)
        offsets = np.zeros(1 + sum(map(len, columns)), np.int64)
        row = 1
        for (cuts, data), start in zip(parts, starts[:-1], strict=True):
            padded[start : start + len(data)] = data
            offsets[row : row + len(cuts) - 1] = cuts[1:] + start
            row += len(cuts) - 1
        return cls._of_offsets(padded, offsets)

    @classmethod
    def side_by_side(cls, columns: Sequence[IdColumn]) -> IdColumn:
        """Put columns one after the other, each with the buffer that it has, unless most of that is something else."""
        own = [
            column if len(column._padded) <= 2 * int(column.lengths.sum()) + _WORD else column.compact()
            for column in columns
        ]
        shifts = np.cumsum([0] + [len(column._padded) for column in own])
        return cls(
            np.concatenate([column._padded for column in own] or [np.zeros(_WORD, np.uint8)]),
            np.concatenate([column.starts + shift for column, shift in zip(own, shifts, strict=False)] or [_NO_ROWS]),
            np.concatenate([column.ends + shift for column, shift in zip(own, shifts, strict=False)] or [_NO_ROWS]),
        )

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = IdColumn(self._padded, self.starts[index], self.ends[index])
            if self._hashes is not None:
                part._hashes = self._hashes[index]
            return part
        return self._padded[self.starts[index] : self.ends[index]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        offsets, data = self.buffers()
        text = data.tobytes()
        for start, stop in pairwise(offsets.tolist()):
            yield text[start:stop].decode()

    def __reduce__(self) -> tuple[Any, ...]:
        offsets, data = self.buffers()
        return IdColumn.from_buffer, (data, offsets)

    def buffers(self) -> tuple[IntArray, NDArray[np.uint8]]:
        """(offsets, data) in Arrow's layout: id i is `data[offsets[i]:offsets[i + 1]]`."""
        if not len(self):
            return np.zeros(1, np.int64), np.empty(0, np.uint8)
        if (self.starts[1:] == self.ends[:-1]).all():
            base = int(self.starts[0])
            return np.append(self.starts, self.ends[-1]) - base, self._padded[base : int(self.ends[-1])]
        lengths = self.lengths
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return offsets, self._padded[np.repeat(self.starts - offsets[:-1], lengths) + np.arange(offsets[-1])]

    @property
    def lengths(self) -> IntArray:
        """Length of each id in bytes."""
        return self.ends - self.starts

    def compact(self) -> IdColumn:
        """The same ids in a buffer of their own, so that the text that they were read from can go."""
        return IdColumn.concatenate([self])

    def take(self, positions: NDArray[np.integer[Any]]) -> IdColumn:
        """The ids at the given positions."""
        part = IdColumn(self._padded, self.starts[positions], self.ends[positions])
        if self._hashes is not None:
            part._hashes = self._hashes[positions]
        return part

    def fixed_width(self, positions: NDArray[np.integer[Any]]) -> NDArray[np.bytes_]:
        """The chosen ids as a NumPy byte-string array, as wide as the longest id; it can be compared and sorted."""
        offsets, data = self.take(positions).buffers()
        lengths = np.diff(offsets)
        width = max(1, int(lengths.max(initial=1)))
        cells = np.zeros((len(lengths), width), np.uint8)
        row = np.repeat(np.arange(len(lengths)), lengths)
        cells[row, np.arange(offsets[-1]) - offsets[row]] = data
        return cells.view(f"S{width}")[:, 0]

    def hashes(self) -> HashArray:
        """A 64-bit hash of each id. Equal ids have equal hashes; different ids may have equal hashes too."""
        if self._hashes is None:
            lengths = self.lengths
            result = mix(lengths.view(np.uint64), self._word(0, slice(None)))
            for word in range(1, self._words()):
                longer = np.flatnonzero(lengths > word * _WORD)
                result[longer] = mix(result[longer], self._word(word, longer))
            self._hashes = result
        return self._hashes

    def equal(
        self, positions: NDArray[np.integer[Any]], other: IdColumn, theirs: NDArray[np.integer[Any]]
    ) -> NDArray[np.bool_]:
        """Whether the id at each position equals the other column's id at the corresponding position."""
        return self.take(positions).equal_rows(other.take(theirs))

    def equal_rows(self, other: IdColumn) -> NDArray[np.bool_]:
        """Whether each id equals the other column's id in the same row."""
        lengths = self.lengths
        same: NDArray[np.bool_] = lengths == other.lengths
        hashed = self._hashes is not None and other._hashes is not None
        if hashed:
            # Each step of a hash can be undone: where hashes and all words but one are equal, this one is too.
            same &= self._hashes == other._hashes
        for word in range(int(hashed), self._words()):
            rows = np.flatnonzero(same & (lengths > word * _WORD))
            same[rows] = self._word(word, rows) == other._word(word, rows)
        return same

    def smaller_rows(self, other: IdColumn) -> NDArray[np.bool_]:
        """Whether each id comes before the other column's id in the same row, in the order of ids.

        >>> IdColumn.from_strings(["d1", "d2"]).smaller_rows(IdColumn.from_strings(["d10", "d10"])).tolist()
        [True, False]
        """
        smaller = np.zeros(len(self), bool)
        rows = np.arange(len(self))
        for word in range(max(self._words(), other._words())):
            own, theirs = self._ordering_word(word, rows), other._ordering_word(word, rows)
            smaller[rows] = own < theirs
            rows = rows[own == theirs]
            if not len(rows):
                break
        return smaller

    def _ordering_word(self, number: int, rows: IntArray) -> HashArray:
        """The eight bytes of each id from `number` times eight on, as a number that orders like its bytes."""
        missing = np.clip((number + 1) * _WORD - self.lengths[rows], 0, _WORD) << 3
        word = self._word(number, rows).byteswap()
        # No id holds a NUL, so that what is missing comes before every byte. A shift by a whole word is undefined.
        word[missing == _WORD << 3] = 0
        return word << (missing & 63).view(np.uint64)

    def factorized(self) -> tuple[list[str], NDArray[np.int32]]:
        """The different ids in order of first appearance, and the number of each row's id among them."""
        _, first, back = np.unique(self.hashes(), return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        if self.equal(np.arange(len(self)), self, first[back]).all():
            return list(self.take(first[order])), place[back]
        # Two ids have one hash.
        names: dict[str, int] = {}
        codes = np.array([names.setdefault(id_, len(names)) for id_ in self], np.int32)
        return list(names), codes

    def _words(self) -> int:
        """How many words of eight bytes the longest id has."""
        return -(-int(self.lengths.max(initial=0)) // _WORD)

    def _word(self, number: int, rows: Any) -> HashArray:
        """The eight bytes of each id from `number` times eight on, as a number with the first byte lowest.

        Of an id that has fewer of them the number is shifted up; of one that has none it is 0.
        """
        starts, ends = self.starts[rows], self.ends[rows]
        words = np.ndarray((len(self._padded) - _WORD + 1,), "<u8", self._padded, strides=(1,))
        if number:
            starts = starts + number * _WORD
        missing = starts - ends
        missing += _WORD
        np.maximum(missing, 0, out=missing)
        if number:
            np.minimum(missing, _WORD, out=missing)
            starts = np.minimum(starts, len(words) - 1)
        missing <<= 3
        result: HashArray = words[starts]
        result <<= missing.view(np.uint64)
        return result


def mix(state: HashArray, value: HashArray | np.uint64) -> HashArray:
    mixed = state ^ value
    mixed *= _MULTIPLIER
    mixed ^= mixed >> _SHIFT
    mixed *= _SECOND_MULTIPLIER
    mixed ^= mixed >> _SHIFT
    return mixed


def rows_that_may_repeat(keys: HashArray, offsets: IntArray | None = None) -> IntArray:
    """The rows whose key occurs more than once, in their order.

    With `offsets`, list i is rows offsets[i] to offsets[i + 1], and equal keys are in one list: a few lists at a time
    take tables that stay in the processor's cache.
    """
    if len(keys) < 2:
        return np.empty(0, np.int64)
    pieces = [slice(0, len(keys))] if offsets is None else _of_whole_lists(offsets)
    rows = np.concatenate([piece.start + _sharing_a_slot(keys[piece], 0) for piece in pieces])
    if len(rows):
        rows = rows[_sharing_a_slot(keys[rows], 1)]
    order = np.argsort(keys[rows], kind="stable")
    ordered = keys[rows][order]
    shared = np.flatnonzero(ordered[1:] == ordered[:-1])
    if not len(shared):
        return shared
    return np.unique(rows[order[np.concatenate([shared, shared + 1])]])


def _of_whole_lists(offsets: IntArray) -> list[slice]:
    """The rows of all lists in pieces of as many lists as have few rows, one list at least."""
    pieces = []
    start, last = 0, len(offsets) - 1
    while start < last:
        few = int(np.searchsorted(offsets, offsets[start] + _FEW_ROWS, "right")) - 1
        stop = max(start + 1, few)
        pieces.append(slice(int(offsets[start]), int(offsets[stop])))
        start = stop
    return pieces


def _sharing_a_slot(keys: HashArray, number: int) -> IntArray:
    """The rows that share a slot of one of several tables: all whose keys are equal, and few others."""
    bits = min(30, max(10, int(len(keys) - 1).bit_length() + 3))
    slots = ((keys << np.uint64(number * bits)) >> np.uint64(64 - bits)).view(np.int64)
    narrow = np.uint16 if len(keys) <= _FEW_ROWS else np.int32
    numbers = np.arange(len(keys), dtype=narrow)
    table = np.empty(1 << bits, narrow)
    # The last row with each slot is the one that is left in it.
    table[slots] = numbers
    last = table.take(slots, mode="clip")
    earlier = np.flatnonzero(last != numbers)
    shares = np.zeros(len(keys), bool)
    shares[earlier] = shares[last[earlier]] = True
    return np.flatnonzero(shares)


def _ascii(values: list[Any]) -> tuple[list[int], bytes] | None:
    """The lengths and bytes of non-empty ASCII ids in one step; None if any value is something else."""
    try:
        text = "".join(values)
    except TypeError:
        return None
    lengths = list(map(len, values))
    return (lengths, text.encode()) if text.isascii() and "\0" not in text and 0 not in lengths else None


def _one_by_one(values: list[Any]) -> tuple[list[int], bytes]:
    encoded = [_encode(value, position) for position, value in enumerate(values)]
    return [len(value) for value in encoded], b"".join(encoded)


def _encode(value: Any, position: int) -> bytes:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise InputError(
            f"passage id number {position + 1} is {value!r} ({type(value).__name__}); ids must be strings or integers"
        )
    if not value or "\0" in value:
        raise InputError(f"passage id number {position + 1} is empty or contains a NUL character: {value!r}")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InputError(f"passage id number {position + 1} is not valid Unicode: {value!r}") from None


TEXT_PREFIX = "text:"


def text_id(text: str) -> str:
    """An id for a passage that has none: a hash of its text that does not depend on spacing and Unicode form.

    >>> text_id("Paris is  the capital.\\n") == text_id("Paris is the capital.")
    True
    """
    plain = " ".join(unicodedata.normalize("NFC", text).split())
    return TEXT_PREFIX + blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
