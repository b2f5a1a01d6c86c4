"""Tables of columns: pairs of a query and a passage, and the rows of a join, which are of queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import repeat
from operator import eq
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.ids import IntArray, numbered, ranges
from rag_selectivity.wording import counted


class Rows:
    """The base of dataclasses whose arrays, lists of texts and further Rows have one value for each row."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]
    #: The query of each row, as a position.
    query: IntArray

    def columns_at(self, rows: NDArray[Any]) -> dict[str, Any]:
        """All columns at some rows, by mask or by position."""
        at = np.flatnonzero(rows) if rows.dtype == bool else rows
        return {each.name: _at(getattr(self, each.name), at) for each in fields(self) if each.init}

    def take(self, rows: NDArray[Any]) -> Self:
        """Some of the rows, by mask or by position."""
        return replace(self, **self.columns_at(rows))

    def beside(self, others: Iterable[Self]) -> Self:
        """These rows and then those of others, arrays alone; what is no array is that of these."""
        parts = [self, *others]
        arrays = [each.name for each in fields(self) if isinstance(getattr(self, each.name), np.ndarray)]
        together = {name: np.concatenate([getattr(part, name) for part in parts]) for name in arrays}
        return replace(self, **together)

    def over(self, queries: NDArray[np.bool_]) -> Self:
        """The rows of some queries, bool[queries], which are renumbered."""
        part = self.take(queries[self.query])
        return replace(part, query=(np.cumsum(queries) - 1)[part.query])


def _at(value: Any, at: IntArray) -> Any:
    """A field at some rows."""
    if isinstance(value, np.ndarray):
        return value[at]
    if isinstance(value, Rows):
        return value.take(at)
    if isinstance(value, list):
        return list(map(value.__getitem__, at.tolist()))
    # Of a part of a large file, passages are a Series of Polars.
    return value.gather(at) if hasattr(value, "gather") else value


class Pairs(Rows):
    """The base of labels and runs: rows of a query and a passage, sorted by query.

    Attributes
    ----------
    queries : tuple of str
        Those without rows too.
    query : int64[rows]
        The position of each row's query in `queries`.
    passages : list of str
        The passage of each row.
    form : IdForm
        The form that the ids were brought into.
    """

    queries: tuple[str, ...]
    passages: list[str]
    form: IdForm

    @cached_property
    def offsets(self) -> IntArray:
        """The rows of query i are `offsets[i]:offsets[i + 1]`: int64[queries + 1]."""
        return np.asarray(np.searchsorted(self.query, np.arange(len(self.queries) + 1)))

    @property
    def lengths(self) -> IntArray:
        """How many rows each query has: int64[queries]."""
        return np.diff(self.offsets)

    def ranks(self, rows: IntArray) -> IntArray:
        """The number of each of some rows among all of its query, from 1."""
        return np.asarray(rows - self.offsets[self.query[rows]] + 1)

    def rows(self, position: int) -> slice:
        """The rows of the query at a position."""
        return slice(int(self.offsets[position]), int(self.offsets[position + 1]))

    def copies(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """The rows of some queries with a passage that the query has in an earlier row, and the first such row."""
        rows = ranges(self.offsets[queries], self.lengths[queries])
        names, number = numbered(self.passages[row] for row in rows.tolist())
        pairs = self.query[rows] * len(names) + number
        _, first, of = np.unique(pairs, return_index=True, return_inverse=True)
        earlier = rows[first[of]]
        return rows[rows != earlier], earlier[rows != earlier]

    @cached_property
    def place(self) -> dict[str, int]:
        """The position of each query."""
        return dict(zip(self.queries, range(len(self.queries)), strict=True))

    def positions(self, queries: Sequence[str]) -> IntArray:
        """The position of each of some queries; −1 for one that is not there."""
        return np.fromiter(map(self.place.get, queries, repeat(-1)), np.int64, len(queries))

    def without_self(self) -> Self:
        """The rows without those of the passage that has the id of its query; all queries stay."""
        owners = map(self.queries.__getitem__, self.query.tolist())
        own = np.fromiter(map(eq, owners, self.passages), bool, len(self.query))
        return self.take(~own) if own.any() else self

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __contains__(self, query: object) -> bool:
        return query in self.place

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.queries)} queries, {len(self.query)} passages>"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of what the join left out, added or treated specially, and of labels without and with a grade.

    `first_missing` and `first_unknown` name the first queries that the run or the qrels lack.
    """

    missing_from_run: int = 0
    not_in_qrels: int = 0
    duplicates: int = 0
    repeated_judgments: int = 0
    negative_judgments: int = 0
    outside_pool: int = 0
    missing_from_pool: int = 0
    expected: int = 0
    graded: int = 0
    first_missing: tuple[str, ...] = ()
    first_unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hits(Rows):
    """The judged passages of every list, by query and then rank.

    `query` is a position in `JudgedRun.queries`; `rank` starts at 1; `repeated` marks the second and
    further copies of a passage in its list; `judgment` is the same for copies of the same passage.
    """

    query: IntArray
    rank: IntArray
    grade: IntArray
    repeated: NDArray[np.bool_]
    judgment: IntArray

    @classmethod
    def together(cls, parts: Iterable[Hits]) -> Hits:
        """All hits of some parts, by query; those of one query stay in the order of the parts."""
        hits = NO_HITS.beside(parts)
        return hits if (hits.query[1:] >= hits.query[:-1]).all() else hits.take(np.argsort(hits.query, kind="stable"))


_NONE = np.empty(0, np.int64)
NO_HITS = Hits(_NONE, _NONE, _NONE, np.empty(0, bool), _NONE)


@dataclass(frozen=True, slots=True)
class Documents(Rows):
    """The judged documents of every query, if lists name documents and each slot is one of their passages (chunks).

    `query` is a position in `JudgedRun.queries`; `passages` is the number of the document's passages, 0 if it is
    unknown, or if the corpus is `complete` and lacks the document. `fingerprint` identifies the numbers of all
    documents of the corpus.
    """

    query: IntArray
    grade: IntArray
    passages: IntArray
    fingerprint: int
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Controls(Rows):
    """Random controls: passages drawn at random from the corpus and graded by the judge of the lists.

    `query` is a position in `JudgedRun.queries`, `grade` is the judge's, and `rank` is the first one in the run's list;
    0 if the list does not hold it.
    """

    query: IntArray
    grade: IntArray
    rank: IntArray

    def counts(self, queries: int, threshold: int, depth: int) -> tuple[IntArray, IntArray]:
        """Graded and relevant controls of each query that are not in its top K: int64[queries] each."""
        outside = (self.rank == 0) | (self.rank > depth)
        return (
            np.bincount(self.query[outside], minlength=queries),
            np.bincount(self.query[outside & (self.grade >= threshold)], minlength=queries),
        )

    def notes_at(self, depth: int) -> list[str]:
        """How many controls are in the top K of their query's list."""
        listed = int(((self.rank > 0) & (self.rank <= depth)).sum())
        are = counted(listed, "control is", "controls are")
        return [f"{are} in the top {depth} of the query's list, and left out of the controls there"] if listed else []
