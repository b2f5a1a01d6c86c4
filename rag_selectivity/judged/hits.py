"""The rows of a join: judged passages of lists, judged documents of queries, and counts of what was left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.tables.ids import IntArray


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of what the join left out, added or treated specially, and of labels without and with a grade."""

    missing_from_run: int = 0
    not_in_qrels: int = 0
    duplicates: int = 0
    repeated_judgments: int = 0
    negative_judgments: int = 0
    outside_pool: int = 0
    missing_from_pool: int = 0
    expected: int = 0
    graded: int = 0


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of rows, each of a query, which is a position in `JudgedRun.queries`."""

    query: IntArray

    def chosen(self, rows: NDArray[Any]) -> Self:
        """Some of the rows, by mask or by position."""
        at = np.flatnonzero(rows) if rows.dtype == bool else rows
        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(self, **{name: of[at] for name, of in columns.items() if isinstance(of, np.ndarray)})

    def over(self, chosen: NDArray[np.bool_]) -> Self:
        """The rows of some queries; the queries are renumbered."""
        part = self.chosen(chosen[self.query])
        return replace(part, query=(np.cumsum(chosen) - 1)[part.query])


@dataclass(frozen=True, slots=True)
class Hits(Rows):
    """The judged passages of every list, by query and then rank.

    `query` is a position in `JudgedRun.queries`; `rank` starts at 1; `repeated` marks the second and
    further copies of a passage in its list; `judgment` is the same for copies of the same passage.
    """

    rank: IntArray
    grade: IntArray
    repeated: NDArray[np.bool_]
    judgment: IntArray

    @classmethod
    def together(cls, parts: Iterable[Hits]) -> Hits:
        """All hits of some parts, by query; those of one query stay in the order of the parts."""
        every = [_NO_HITS, *parts]
        hits = cls(*(np.concatenate([getattr(part, each.name) for part in every]) for each in fields(cls)))
        return hits if (hits.query[1:] >= hits.query[:-1]).all() else hits.chosen(np.argsort(hits.query, kind="stable"))


_NONE = np.empty(0, np.int64)
_NO_HITS = Hits(_NONE, _NONE, _NONE, np.empty(0, bool), _NONE)


@dataclass(frozen=True, slots=True)
class Documents(Rows):
    """The judged documents of every query, if lists name documents and each slot is one of their passages (chunks).

    `query` is a position in `JudgedRun.queries`; `judgment` is that of `Hits`; `passages` is the number of the
    document's passages, 0 if it is unknown, or if the corpus is `complete` and lacks the document. `fingerprint`
    identifies the numbers of all documents of the corpus.
    """

    judgment: IntArray
    grade: IntArray
    passages: IntArray
    fingerprint: int
    complete: bool = False
