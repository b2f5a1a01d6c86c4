"""Qrels: all judgments that a run is measured against, query id → {passage id: grade}."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.cells import label_grade, locate, query_text
from rag_selectivity.data.chunks import chunks_by_document
from rag_selectivity.data.columns import (
    PASSAGE_NAMES,
    QUERY_NAMES,
    column_values,
    find_column,
    grade_column,
    ranking_columns,
)
from rag_selectivity.data.forms import AS_THEY_ARE, IdForm
from rag_selectivity.data.grades import Scale, implied_scale, parse_grade_map, settled_scale
from rag_selectivity.data.held import Held
from rag_selectivity.data.ids import HashArray, IdColumn, IntArray, mix
from rag_selectivity.data.origins import NO_GRADE, LabelOrigins
from rag_selectivity.data.remarks import NO_REMARKS, counted
from rag_selectivity.errors import InputError, examples


class Qrels(Held):
    """Judgments: one grade for each (query, passage) pair.

    Stored in columns; reads like a dict of dicts:

    >>> qrels = Qrels.from_dict({"q1": {"d1": 5, "d2": 1}, "q2": {"d7": 4}})
    >>> qrels["q1"], len(qrels), "q3" in qrels
    ({'d1': 5, 'd2': 1}, 2, False)

    Attributes
    ----------
    queries : tuple of str
        Query ids in order of first appearance; queries without judgments are included.
    query, grade : int64[judgments]
        The position of each judgment's query in `queries`, and its grade; sorted by query.
    passages : IdColumn
        The passage of each judgment.
    repeated, negative : int
        Judgments that were left out: repetitions with the same grade, and grades below zero (TREC: not judged).
    remarks : {code: count}
        What was noticed when they were read; `rag_selectivity.data.remarks` lists the codes.
    form : IdForm
        The form that the ids were brought into.
    expected : bool[judgments] or None
        The judgments that are expected ids without a grade; None if all have grades. Such a passage is relevant: on the
        scale, it has the lowest relevant grade.
    scale : str or None
        The scale, if the source names it, as a label store does.
    levels : tuple of int
        Grades that the judge could give, besides those that it gave.
    origins : LabelOrigins or None
        Where the judgments come from, if the source says so, as a label store does.
    """

    kind = "qrels"

    def __init__(
        self,
        queries: Sequence[str],
        query: NDArray[np.integer[Any]],
        passages: IdColumn,
        grade: NDArray[np.integer[Any]],
        *,
        source: str | None = None,
        lines: NDArray[np.integer[Any]] | None = None,
        remarks: Mapping[str, int] = NO_REMARKS,
        expected: NDArray[np.bool_] | None = None,
        scale: str | None = None,
        levels: Iterable[int] = (),
        origins: LabelOrigins | None = None,
    ) -> None:
        self.remarks = remarks
        self.form = AS_THEY_ARE
        self.queries = tuple(queries)
        self.source = source
        self.scale = scale
        self.levels = tuple(levels)
        self._position: dict[str, int] = {query_id: i for i, query_id in enumerate(self.queries)}
        if "" in self._position:
            raise InputError(f"{source or 'qrels'}: a query id is empty")

        judged_rows = np.flatnonzero(grade >= 0)
        self.negative = len(grade) - len(judged_rows)
        order = judged_rows[np.argsort(query[judged_rows], kind="stable")]
        self.query: IntArray = query[order].astype(np.int64)
        self.grade: IntArray = grade[order].astype(np.int64)
        self.passages = passages.take(order)
        self._lines = lines[order] if lines is not None else None
        self.expected = expected[order] if expected is not None and expected.any() else None
        self.origins = origins.take(order) if origins is not None else None
        self.repeated = 0
        self._build_index()

    # -- making one ------------------------------------------------------------------------------

    @classmethod
    def from_dict(cls, judgments: Mapping[Any, Any]) -> Qrels:
        """From {query: {passage: grade}}; in place of a dict, a list or set of passages names the relevant ones."""
        rows: list[tuple[Any, Any, Any]] = []
        expected: list[bool] = []
        listed = 0
        for query, judged in judgments.items():
            if isinstance(judged, Mapping):
                rows.extend((query, passage, grade) for passage, grade in judged.items())
            elif isinstance(judged, str) or not isinstance(judged, Iterable):
                raise InputError(
                    f"qrels of query {query!r}: expected {{passage: grade}} or a list of ids, got {judged!r}"
                )
            else:
                rows.extend((query, passage, 1) for passage in judged)
                listed += 1
            expected.extend([not isinstance(judged, Mapping)] * (len(rows) - len(expected)))
        remarks = counted(lists_as_labels=listed)
        return cls.from_records(rows, queries=judgments, expected=expected, remarks=remarks)

    @classmethod
    def from_records(
        cls,
        records: Iterable[Sequence[Any]],
        *,
        queries: Iterable[Any] = (),
        source: str | None = None,
        lines: Sequence[int] | None = None,
        remarks: Mapping[str, int] = NO_REMARKS,
        expected: Sequence[bool] | None = None,
        scale: str | None = None,
        levels: Iterable[int] = (),
        origins: LabelOrigins | None = None,
    ) -> Qrels:
        """From (query, passage, grade) rows; `queries` names further queries, which may have no judgment."""
        position: dict[str, int] = {}
        for query in queries:
            position.setdefault(query_text(query, source or "qrels"), len(position))
        query_column, passages, grades = [], [], []
        for number, record in enumerate(records):
            where = locate(source or "qrels", lines[number] if lines is not None else None)
            try:
                query, passage, grade = record
            except (TypeError, ValueError):
                raise InputError(f"{where}: expected (query, passage, grade), got {record!r}") from None
            name = query_text(query, where)
            query_column.append(position.setdefault(name, len(position)))
            passages.append(passage)
            grades.append(label_grade(grade, f"{where}: query {name!r}, passage {passage!r}"))
        return cls(
            tuple(position),
            np.array(query_column, np.int64),
            IdColumn.from_strings(passages),
            np.array(grades, np.int64),
            source=source,
            lines=np.array(lines, np.int64) if lines is not None else None,
            remarks=remarks,
            expected=np.array(expected, bool) if expected is not None else None,
            scale=scale,
            levels=levels,
            origins=origins,
        )

    @classmethod
    def from_dataframe(cls, frame: Any) -> Qrels:
        """From a pandas or polars frame with a query, a passage and a grade column; common names are recognised."""
        names = list(frame.columns)
        chosen = [
            find_column(names, QUERY_NAMES, "query", "qrels frame"),
            find_column(names, PASSAGE_NAMES, "passage", "qrels frame"),
            grade_column(names, "qrels frame"),
        ]
        return cls.from_records(
            zip(*(column_values(frame, name) for name in chosen), strict=True),
            remarks=counted(ranking_columns_in_labels=len(ranking_columns(names, chosen[-1]))),
        )

    def under(self, names: Mapping[str, str], passage: Callable[[str, str], str] | None = None) -> Qrels:
        """The judgments with queries renamed by {name: query}; a query may get several names.

        `passage(name, id)` gives the passages other ids; default: their own.

        >>> qrels = Qrels.from_dict({"q1": {"d1": 5}, "q2": {"d7": 4}})
        >>> qrels.under({"monday": "q1", "tuesday": "q1"}).to_dict()
        {'monday': {'d1': 5}, 'tuesday': {'d1': 5}}
        """
        of = np.array([self._position[query] for query in names.values()], np.int64)
        start, stop = np.searchsorted(self.query, of), np.searchsorted(self.query, of, side="right")
        count = stop - start
        rows = np.repeat(start - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(count.sum())
        query, passages = np.repeat(np.arange(len(of)), count), self.passages.take(rows)
        if passage is not None:
            names_of_rows = map(tuple(names).__getitem__, query.tolist())
            passages = IdColumn.from_strings(list(map(passage, names_of_rows, passages)))
        return self._derived(tuple(names), query, rows, passages)

    def inherit(self, documents: Any) -> Qrels:
        """The judgments of chunks: every chunk of a judged document has the grade of its document.

        Parameters
        ----------
        documents : {chunk: document}, DataFrame with a chunk and a document column, or rows of (chunk, document)

        Raises
        ------
        InputError
            If a judged document has no chunk, or a chunk has two documents.

        >>> qrels = Qrels.from_dict({"q1": {"d1": 5, "d2": 1}})
        >>> qrels.inherit({"d1#0": "d1", "d1#1": "d1", "d2#0": "d2", "d3#0": "d3"}).to_dict()
        {'q1': {'d1#0': 5, 'd1#1': 5, 'd2#0': 1}}
        """
        chunks_of = chunks_by_document(documents)
        judged = list(self.passages)
        absent = sorted({name for name in judged if name not in chunks_of})
        if absent:
            raise InputError(
                f"{len(absent)} judged documents have no chunk ({examples(absent[:3])}): add their chunks, or leave "
                f"out the labels of documents that the index lacks"
            )
        count = np.array([len(chunks_of[name]) for name in judged], np.int64)
        rows = np.repeat(np.arange(len(self.query)), count)
        chunks = IdColumn.from_strings([chunk for name in judged for chunk in chunks_of[name]])
        result = self._derived(self.queries, self.query[rows], rows, chunks)
        result.repeated, result.negative = self.repeated, self.negative
        return result

    def in_form(self, form: IdForm) -> Qrels:
        """The same judgments with all ids in a form.

        >>> Qrels.from_dict({"Q1": {"D1": 5}, "q1": {"d2": 4}}).in_form(IdForm.of("casefold")).to_dict()
        {'q1': {'d1': 5, 'd2': 4}}

        Raises
        ------
        InputError
            If two judgments with different grades become those of one pair.
        """
        if not form.changes_ids or form == self.form:
            return self
        position: dict[str, int] = {}
        renumbered = np.array([position.setdefault(form(query), len(position)) for query in self.queries], np.int64)
        rows = np.arange(len(self.query))
        result = self._derived(tuple(position), renumbered[self.query], rows, form.column(self.passages))
        result.form = form
        result.repeated += self.repeated
        result.negative = self.negative
        return result

    def only(self, rows: NDArray[np.bool_]) -> Qrels:
        """Some of the judgments, bool[judgments]; all queries stay."""
        kept = np.flatnonzero(rows)
        result = self._derived(self.queries, self.query[kept], kept, self.passages.take(kept))
        result.repeated, result.negative = self.repeated, self.negative
        return result

    def _derived(
        self, queries: Sequence[str], query: IntArray, rows: IntArray, passages: IdColumn, grade: IntArray | None = None
    ) -> Qrels:
        """Judgments made of some of these rows, with other queries, passages or grades; the rest is the same."""
        result = Qrels(
            queries,
            query,
            passages,
            self.grade[rows] if grade is None else grade,
            source=self.source,
            lines=None if self._lines is None else self._lines[rows],
            remarks=self.remarks,
            expected=None if self.expected is None else self.expected[rows],
            scale=self.scale,
            levels=self.levels,
            origins=None if self.origins is None else self.origins.take(rows),
        )
        result.form = self.form
        return result

    # -- reading it ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __contains__(self, query: object) -> bool:
        return query in self._position

    def __getitem__(self, query: str) -> dict[str, int]:
        start, stop = np.searchsorted(self.query, [self._position[query], self._position[query] + 1])
        return dict(zip(self.passages[start:stop], self.grade[start:stop].tolist(), strict=True))

    def to_dict(self) -> dict[str, dict[str, int]]:
        """As {query: {passage: grade}}."""
        return {query: self[query] for query in self.queries}

    def position(self, query: str) -> int:
        """The query's position in `queries`; −1 if it is not there."""
        return self._position.get(query, -1)

    def positions(self, queries: Sequence[str]) -> IntArray:
        """The `position` of each of some queries."""
        return np.fromiter(map(self._position.get, queries, repeat(-1)), np.int64, len(queries))

    def regraded(self, grade_map: str | Mapping[int, int] | None) -> Qrels:
        """The same judgments with grades mapped to another scale by a grade map such as `0:1,1:3,2:4,3:5`."""
        mapping = parse_grade_map(grade_map)
        if mapping is None:
            return self
        mapped = np.ones(len(self.grade), bool) if self.expected is None else ~self.expected
        grades, first = np.unique(self.grade[mapped], return_index=True)
        for row, grade in zip(np.flatnonzero(mapped)[first], grades, strict=True):
            if int(grade) not in mapping:
                raise InputError(f"{self._row_text(int(row))} is not in the grade map; add {int(grade)}:NEW to it")
        # An expected id has no grade to map.
        grades, back = np.unique(self.grade, return_inverse=True)
        new = np.array([mapping.get(int(grade), 1) for grade in grades], np.int64)[back] if len(grades) else self.grade
        result = self._with_grades(new, implied_scale(mapping))
        if result.origins is not None:
            by_judge = [mapping.get(grade, NO_GRADE) for grade in result.origins.judge_grade.tolist()]
            result.origins = replace(result.origins, judge_grade=np.array(by_judge, np.int64))
        return result

    def on_scale(self, given: str | Scale | None) -> Qrels:
        """The same judgments with their scale settled: the given one, or the one that the source implies.

        An expected id without a grade gets the lowest relevant grade. `settled_scale` says which labels need no scale.

        >>> Qrels.from_dict({"q1": ["d1"], "q2": {"d2": 5}}).on_scale("utility").to_dict()
        {'q1': {'d1': 4}, 'q2': {'d2': 5}}

        Raises
        ------
        InputError
            If the scale is not known, or a grade is not on it.
        """
        graded = self.grade if self.expected is None else self.grade[~self.expected]
        scale = settled_scale(given, self.scale, np.unique(graded).tolist(), self.source or "qrels")
        grades = self.grade
        if self.expected is not None:
            grades = np.where(self.expected, scale.relevant_from, grades)
        settled = self
        if (grades != self.grade).any():
            settled = self._with_grades(grades, scale.name)
        elif self.scale != scale.name:
            settled = copy(self)
            settled.scale = scale.name
        settled.check_scale(scale)
        return settled

    def _with_grades(self, grades: IntArray, scale: str | None) -> Qrels:
        result = self._derived(self.queries, self.query, np.arange(len(self.query)), self.passages, grades)
        result.scale = scale
        result.repeated, result.negative = self.repeated, self.negative + result.negative
        return result

    def label_hashes(self) -> HashArray:
        """A hash of each query's judgments in any order: uint64[queries]; 0 for a query without judgments.

        >>> one = Qrels.from_dict({"q": {"d1": 5, "d2": 1}}).label_hashes()
        >>> other = Qrels.from_dict({"q": {"d2": 1, "d1": 5}}).label_hashes()
        >>> one.tolist() == other.tolist()
        True
        """
        rows = mix(self.passages.hashes(), self.grade.astype(np.uint64) + np.uint64(1))
        # The sums may overflow: unsigned sums wrap around, so their differences are still right.
        totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(rows, dtype=np.uint64)])
        cuts = np.searchsorted(self.query, np.arange(len(self.queries) + 1))
        sums: HashArray = totals[cuts[1:]] - totals[cuts[:-1]]
        return sums

    def check_scale(self, scale: Scale) -> None:
        """Refuse a grade that is not on the scale; the error says where it is and what to do."""
        off = (self.grade < scale.lowest) | (self.grade > (scale.highest or np.iinfo(np.int64).max))
        if off.any():
            row = int(np.flatnonzero(off)[0])
            raise InputError(
                f"{self._row_text(row)} is off the {scale.name} scale ({scale.range_text}); "
                f"map other grades with a grade map, as in 0:1,1:3,2:4,3:5, or choose another scale "
                f"(how-to: labels-on-the-wrong-scale)"
            )

    def lookup(self, keys: HashArray, query: IntArray, passages: IdColumn) -> tuple[IntArray, IntArray]:
        """The rows that are judged, and their judgments.

        Parameters
        ----------
        keys : uint64[rows]
            `pair_keys(query, passages)`.
        query : int64[rows]
            Position in `queries`; −1 for a query that is not in the qrels.
        passages : IdColumn[rows]

        Returns
        -------
        rows, judgments : int64[hits]
            Positions among the given rows, and the positions of their judgments.
        """
        candidates = np.flatnonzero(self._filter[keys >> self._filter_shift] & (query >= 0))
        rows, judgments = [], []
        place = np.searchsorted(self._sorted_keys, keys[candidates])
        while len(candidates):
            # Two pairs may share a hash: go on to the next key until the keys differ.
            inside = place < len(self._sorted_keys)
            candidates, place = candidates[inside], place[inside]
            same_key = self._sorted_keys[place] == keys[candidates]
            candidates, place = candidates[same_key], place[same_key]
            judgment = self._by_key[place]
            match = (self.query[judgment] == query[candidates]) & passages.equal(candidates, self.passages, judgment)
            rows.append(candidates[match])
            judgments.append(judgment[match])
            candidates, place = candidates[~match], place[~match] + 1
        if not rows:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        all_rows = np.concatenate(rows)
        order = np.argsort(all_rows, kind="stable")
        return all_rows[order], np.concatenate(judgments)[order]

    # -- inside ----------------------------------------------------------------------------------

    def _build_index(self) -> None:
        keys = pair_keys(self.query, self.passages)
        by_key = np.argsort(keys, kind="stable")
        keys = keys[by_key]
        doubles = self._find_doubles(keys, by_key)
        if len(doubles):
            self.repeated = len(doubles)
            is_first = np.ones(len(self.query), bool)
            is_first[doubles] = False
            rows = np.flatnonzero(is_first)
            self.query, self.grade = self.query[rows], self.grade[rows]
            self.passages = self.passages.take(rows)
            self._lines = self._lines[rows] if self._lines is not None else None
            self.expected = self.expected[rows] if self.expected is not None else None
            self.origins = self.origins.take(rows) if self.origins is not None else None
            self._build_index_from(pair_keys(self.query, self.passages))
        else:
            self._sorted_keys, self._by_key = keys, by_key
            self._build_filter()

    def _build_index_from(self, keys: HashArray) -> None:
        self._by_key = np.argsort(keys, kind="stable")
        self._sorted_keys = keys[self._by_key]
        self._build_filter()

    def _build_filter(self) -> None:
        # A bit table before the search: most rows of a run are unjudged, and this table rules most of them out.
        # Where it is small enough for the processor's cache it has more places, so that fewer rows pass by chance.
        judgments = (len(self._sorted_keys) + 1).bit_length()
        bits = max(10, min(judgments + 6, 20), judgments + 4)
        self._filter_shift = np.uint64(64 - bits)
        self._filter = np.zeros(1 << bits, bool)
        self._filter[self._sorted_keys >> self._filter_shift] = True

    def _find_doubles(self, keys: HashArray, by_key: IntArray) -> IntArray:
        shared = np.flatnonzero(keys[1:] == keys[:-1])
        first_of: dict[tuple[int, str], int] = {}
        doubles = []
        for row in np.unique(by_key[np.concatenate([shared, shared + 1])]).tolist():
            first = first_of.setdefault((int(self.query[row]), self.passages[row]), row)
            if first == row:
                continue
            if self.grade[first] != self.grade[row]:
                raise InputError(
                    f"{self._row_text(row)}, but {self._row_text(first)}: one pair cannot have two grades; remove one"
                )
            doubles.append(row)
        return np.array(doubles, np.int64)

    def _row_text(self, row: int) -> str:
        line = int(self._lines[row]) if self._lines is not None else None
        return (
            f"{locate(self.source or 'qrels', line)}: query {self.queries[self.query[row]]!r}, "
            f"passage {self.passages[row]!r}: grade {self.grade[row]}"
        )

    def __repr__(self) -> str:
        return f"<Qrels: {len(self.queries)} queries, {len(self.query)} judgments>"


def pair_keys(query: IntArray, passages: IdColumn) -> HashArray:
    """A 64-bit key for each (query, passage) pair."""
    return mix(passages.hashes(), query.astype(np.uint64) + np.uint64(1))
