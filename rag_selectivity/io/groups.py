"""Groups of passages, from tables and from texts that are nearly the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.columns import PASSAGE_NAMES, as_frame, column_names, column_values, find_column, is_frame
from rag_selectivity.data.forms import AS_THEY_ARE, IdForm
from rag_selectivity.data.groups import Groups
from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.io.reading import is_path, read_records
from rag_selectivity.io.tables import NoRowsError
from rag_selectivity.io.texts import read_texts

GROUP_NAMES = ("group", "group_id", "duplicate_of", "canonical_id")
#: Words of a shingle: most runs of five words stand in one text only.
WORDS = 5
#: The share of common shingles from which two texts are nearly the same.
THRESHOLD = 0.8
#: Candidates are looked for this far below the threshold, so that few pairs above it are missed.
_MARGIN = 0.2
_PERMUTATIONS = 128
_WORD = re.compile(r"\w+")


def groups_of(given: Any, form: IdForm = AS_THEY_ARE) -> Groups:
    """Groups from {passage: group}, a frame or a table with a passage and a group column; there may be none.

    Raises
    ------
    InputError
        If a passage has two groups, an id is empty, or a column is missing.

    >>> len(groups_of({"d1": "same", "d7": "same"}))
    2
    """
    group_of: dict[str, str] = {}
    for where, passage, group in _rows(given):
        name, of = form.of_cell(passage, where, "passage"), AS_THEY_ARE.of_cell(group, where, "group")
        if group_of.setdefault(name, of) != of:
            raise InputError(
                f"{where}: passage {name!r} is in the groups {group_of[name]!r} and {of!r}: keep one of them"
            )
    return Groups(group_of)


def near_duplicates(corpus: Any, *, threshold: float = THRESHOLD, words: int = WORDS) -> dict[str, str]:
    """{passage: group} of the passages whose text is nearly that of another one.

    Two texts are nearly the same if their sets of shingles (runs of words, in lower case) have a Jaccard index of at
    least the threshold. Candidates come from MinHash with banding (Broder 1997; Leskovec, Rajaraman and Ullman,
    Mining of Massive Datasets, chapter 3), and each is then counted exactly: no group holds a pair that was only
    estimated to be alike, and a pair just above the threshold may rarely be missed. Groups are chains: a passage
    belongs to a group if it is nearly the same as one of its passages. A group is called after its first passage.

    Parameters
    ----------
    corpus : {passage: text}, DataFrame, path, or iterable of records or pairs
    threshold : float
        From .3 to 1.
    words : int
        Words of a shingle, at least 1. A shorter text is one shingle.

    Raises
    ------
    InputError
        If the threshold or the number of words is out of range, a text is missing, or an id has two texts.
    MissingExtraError
        Without datasketch (`pip install "rag-selectivity[duplicates]"`).
    """
    if not isinstance(threshold, (int, float)) or not 0.3 <= threshold <= 1:
        raise InputError(f"threshold must be from 0.3 to 1, got {threshold!r}")
    if isinstance(words, bool) or not isinstance(words, int) or words < 1:
        raise InputError(f"words must be a whole number ≥ 1, got {words!r}")
    try:
        from datasketch import MinHash, MinHashLSH
    except ImportError:
        raise MissingExtraError("datasketch", "duplicates", "grouping near-duplicates") from None

    ids: dict[str, None] = {}
    sets: list[NDArray[np.uint64]] = []
    candidates = MinHashLSH(threshold=max(0.1, threshold - _MARGIN), num_perm=_PERMUTATIONS)
    leader: list[int] = []
    for passage, text in read_texts(corpus, "corpus"):
        if passage in ids:
            continue
        shingles = _shingles(text, words)
        number = len(ids)
        ids[passage] = None
        sets.append(shingles)
        leader.append(number)
        if not len(shingles):
            continue
        signature = MinHash(num_perm=_PERMUTATIONS, seed=1, hashfunc=int)
        signature.update_batch((shingles & np.uint64(0xFFFFFFFF)).tolist())
        for other in sorted(candidates.query(signature)):
            if _jaccard(shingles, sets[other]) >= threshold:
                one, two = _leader(leader, number), _leader(leader, other)
                leader[max(one, two)] = min(one, two)
        candidates.insert(number, signature, check_duplication=False)
    of = [_leader(leader, number) for number in range(len(ids))]
    sizes = np.bincount(of, minlength=len(ids))
    names = list(ids)
    return {names[number]: names[first] for number, first in enumerate(of) if sizes[first] > 1}


def _shingles(text: str, words: int) -> NDArray[np.uint64]:
    """Hashes of the runs of words, each once, in order."""
    found = _WORD.findall(text.lower())
    runs = [" ".join(found[i : i + words]) for i in range(max(1, len(found) - words + 1))]
    hashed = b"".join(blake2b(run.encode(), digest_size=8).digest() for run in runs if run)
    return np.unique(np.frombuffer(hashed, np.uint64))


def _jaccard(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> float:
    common = len(np.intersect1d(one, other, assume_unique=True))
    return common / (len(one) + len(other) - common)


def _leader(leader: list[int], number: int) -> int:
    while leader[number] != number:
        leader[number] = leader[leader[number]]
        number = leader[number]
    return number


def _rows(given: Any) -> Iterator[tuple[str, Any, Any]]:
    """(where, passage, group) rows."""
    passage_names = ("_id", "id", *PASSAGE_NAMES)
    if isinstance(given, Mapping):
        yield from ((f"groups: passage {passage!r}", passage, group) for passage, group in given.items())
    elif is_frame(given):
        frame = as_frame(given, "groups frame")
        names = column_names(frame)
        passages = column_values(frame, find_column(names, passage_names, "passage", "groups frame"))
        groups = column_values(frame, find_column(names, GROUP_NAMES, "group", "groups frame"))
        for passage, group in zip(passages, groups, strict=True):
            yield f"groups: passage {passage!r}", passage, group
    elif is_path(given):
        with suppress(NoRowsError):  # no two passages are alike
            for line, row in read_records(given):
                where = f"{given}:{line}"
                passage = row[find_column(list(row), passage_names, "passage", where)]
                yield where, passage, row[find_column(list(row), GROUP_NAMES, "group", where)]
    else:
        raise InputError(f"groups: expected {{passage: group}}, a DataFrame or a path, got {type(given).__name__}")
