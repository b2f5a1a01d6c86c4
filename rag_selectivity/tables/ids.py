"""Ids of queries and passages: what can be one, and hashes, numbers and an order of them."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError

IntArray = NDArray[np.int64]
HashArray = NDArray[np.uint64]

_WORD, _SHIFT = 8, np.uint64(32)
_MULTIPLIER, _SECOND_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_NUMBERS = re.compile("([0-9]+)")


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
    if isinstance(ids, (str, bytes, Mapping)) or not (hasattr(ids, "__len__") and getattr(ids, "shape", True)):
        mend = f"; give [{ids!r}]" if isinstance(ids, str) and len(ids) < 80 else ""
        raise InputError(f"{what} must be a list of ids in rank order, got {repr(ids)[:80]}{mend}")


def refuse_set(ranking: object, what: str) -> None:
    """An InputError for a set in the place of a ranking: its order changes from one process to the next."""
    if isinstance(ranking, (set, frozenset)):
        raise InputError(f"{what}: a set has no order; give a list, the best first")


def natural_key(name: str) -> tuple[Any, ...]:
    """A sort key by which numbers in ids count as numbers.

    >>> sorted(["q10", "q2", "q02", "q"], key=natural_key)
    ['q', 'q02', 'q2', 'q10']
    """
    pieces = enumerate(_NUMBERS.split(name))
    return tuple((len(each.lstrip("0")), each.lstrip("0")) if i % 2 else each for i, each in pieces), name


def id_hashes(ids: Iterable[str]) -> HashArray:
    """A 64-bit hash of each id. Equal ids have equal hashes; different ids may have equal hashes too.

    >>> hashes = id_hashes(["d1", "d2", "d1", "a longer id"])
    >>> bool(hashes[0] == hashes[2]), len(set(hashes.tolist()))
    (True, 3)
    """
    encoded = [id_.encode() for id_ in ids]
    lengths = np.fromiter(map(len, encoded), np.uint64, len(encoded))
    result = lengths.copy()
    for start in range(0, int(lengths.max(initial=0)), _WORD):
        longer = np.flatnonzero(lengths > start)
        words = b"".join([encoded[row][start : start + _WORD].rjust(_WORD, b"\0") for row in longer.tolist()])
        result[longer] = mix(result[longer], np.frombuffer(words, "<u8"))
    return result


def numbered(ids: Iterable[str]) -> tuple[list[str], IntArray]:
    """The different ids in order of first appearance, and the number of each among them: int64[ids].

    >>> numbered(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    listed = list(ids)
    names = list(dict.fromkeys(listed))
    position = dict(zip(names, range(len(names)), strict=True))
    return names, np.fromiter(map(position.__getitem__, listed), np.int64, len(listed))


def ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """The numbers of several ranges one after another.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    result: IntArray = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    return result


def mix(state: HashArray, value: HashArray | np.uint64) -> HashArray:
    mixed = state ^ value
    mixed *= _MULTIPLIER
    mixed ^= mixed >> _SHIFT
    mixed *= _SECOND_MULTIPLIER
    mixed ^= mixed >> _SHIFT
    return mixed


TEXT_PREFIX = "text:"


def text_id(text: str) -> str:
    """An id for a passage that has none: a hash of its text that does not depend on spacing and Unicode form.

    >>> text_id("Paris is  the capital.\\n") == text_id("Paris is the capital.")
    True
    """
    plain = " ".join(unicodedata.normalize("NFC", text).split())
    return TEXT_PREFIX + blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
