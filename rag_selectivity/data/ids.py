"""A column of ids, stored as UTF-8 bytes with offsets: seven million ids take 100 MB instead of a gigabyte."""

from __future__ import annotations

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


def check_ids(ids: object, what: str) -> None:
    """An InputError for a text, a dict or anything without a length in the place of a list of ids.

    >>> check_ids("d1", "the list")
    Traceback (most recent call last):
        ...
    rag_selectivity.errors.InputError: the list must be a list of ids in rank order, got 'd1'; give ['d1']
    """
    if isinstance(ids, (list, tuple)):
        return
    if isinstance(ids, (str, bytes, Mapping)) or not hasattr(ids, "__len__"):
        mend = f"; give [{ids!r}]" if isinstance(ids, str) and len(ids) < 80 else ""
        raise InputError(f"{what} must be a list of ids in rank order, got {repr(ids)[:80]}{mend}")


class IdColumn:
    """An immutable sequence of non-empty ids, stored as bytes and offsets (Arrow's layout).

    Indexing returns a `str`; slices share the bytes. Ids are ordered by their UTF-8 bytes, as by
    trec_eval's `strcmp`.

    >>> column = IdColumn.from_strings(["d1", "d20", "d3"])
    >>> column[1], len(column), list(column[1:])
    ('d20', 3, ['d20', 'd3'])
    """

    __slots__ = ("_hashes", "_padded", "offsets")

    def __init__(self, padded: NDArray[np.uint8], offsets: IntArray) -> None:
        # One word of padding at the end, so that eight bytes can be read from any position.
        self._padded = padded
        self.offsets = offsets
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
        return cls(padded, cuts - base)

    @classmethod
    def concatenate(cls, columns: Sequence[IdColumn]) -> IdColumn:
        """Put columns one after the other."""
        starts = np.cumsum([0] + [column.offsets[-1] - column.offsets[0] for column in columns])
        padded = np.zeros(int(starts[-1]) + _WORD, np.uint8)
        offsets = [np.zeros(1, np.int64)]
        for column, start in zip(columns, starts[:-1], strict=True):
            first, last = int(column.offsets[0]), int(column.offsets[-1])
            padded[start : start + last - first] = column._padded[first:last]
            offsets.append(column.offsets[1:] - first + start)
        return cls(padded, np.concatenate(offsets))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return self.take(np.arange(start, stop, step))
            part = IdColumn(self._padded, self.offsets[start : max(start, stop) + 1])
            if self._hashes is not None:
                part._hashes = self._hashes[start:stop]
            return part
        i = range(len(self))[index]
        return self._padded[self.offsets[i] : self.offsets[i + 1]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        base = int(self.offsets[0])
        text = self._padded[base : self.offsets[-1]].tobytes()
        cuts = (self.offsets - base).tolist()
        for start, stop in pairwise(cuts):
            yield text[start:stop].decode()

    def buffers(self) -> tuple[IntArray, NDArray[np.uint8]]:
        """(offsets, data) in Arrow's layout: id i is `data[offsets[i]:offsets[i + 1]]`."""
        base = int(self.offsets[0])
        return self.offsets - base, self._padded[base : int(self.offsets[-1])]

    @property
    def lengths(self) -> IntArray:
        """Length of each id in bytes."""
        return np.diff(self.offsets)

    def take(self, positions: NDArray[np.integer[Any]]) -> IdColumn:
        """The ids at the given positions, as a new column."""
        lengths = self.lengths[positions]
        offsets = np.zeros(len(positions) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        source = np.repeat(self.offsets[:-1][positions] - offsets[:-1], lengths) + np.arange(offsets[-1])
        padded = np.zeros(int(offsets[-1]) + _WORD, np.uint8)
        padded[:-_WORD] = self._padded[source]
        return IdColumn(padded, offsets)

    def fixed_width(self, positions: NDArray[np.integer[Any]]) -> NDArray[np.bytes_]:
        """The chosen ids as a NumPy byte-string array, as wide as the longest id; it can be compared and sorted."""
        chosen = self.take(positions)
        width = max(1, int(chosen.lengths.max(initial=1)))
        cells = np.zeros((len(chosen), width), np.uint8)
        row = np.repeat(np.arange(len(chosen)), chosen.lengths)
        cells[row, np.arange(chosen.offsets[-1]) - chosen.offsets[row]] = chosen._padded[:-_WORD]
        return cells.view(f"S{width}")[:, 0]

    def hashes(self) -> HashArray:
        """A 64-bit hash of each id. Equal ids have equal hashes; different ids may have equal hashes too."""
        if self._hashes is None:
            starts, lengths = self.offsets[:-1], self.lengths
            words = np.ndarray((len(self._padded) - _WORD + 1,), "<u8", self._padded, strides=(1,))
            result = mix(lengths.astype(np.uint64), _first_bytes(words, starts, lengths))
            for word in range(1, -(-int(lengths.max(initial=0)) // _WORD)):
                longer = np.flatnonzero(lengths > word * _WORD)
                value = _first_bytes(words, starts[longer] + word * _WORD, lengths[longer] - word * _WORD)
                result[longer] = mix(result[longer], value)
            self._hashes = result
        return self._hashes

    def equal(
        self, positions: NDArray[np.integer[Any]], other: IdColumn, theirs: NDArray[np.integer[Any]]
    ) -> NDArray[np.bool_]:
        """Whether the id at each position equals the other column's id at the corresponding position."""
        same: NDArray[np.bool_] = self.lengths[positions] == other.lengths[theirs]
        left, right = self.take(positions[same]), other.take(theirs[same])
        differing = left._padded[:-_WORD] != right._padded[:-_WORD]
        if differing.any():
            unequal = np.repeat(np.arange(len(left)), left.lengths)[differing]
            survivors = np.flatnonzero(same)
            same[survivors[unequal]] = False
        return same


def _first_bytes(words: NDArray[np.uint64], starts: IntArray, lengths: IntArray) -> HashArray:
    """The first eight bytes from each start as a number; bytes beyond the length are shifted out."""
    missing = (8 * (_WORD - np.minimum(lengths, _WORD))).astype(np.uint64)
    return words[starts] << missing


def mix(state: HashArray, value: HashArray) -> HashArray:
    with np.errstate(over="ignore"):
        mixed = (state ^ value) * _MULTIPLIER
        mixed ^= mixed >> _SHIFT
        mixed *= _SECOND_MULTIPLIER
        mixed ^= mixed >> _SHIFT
    return mixed


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
