"""Qrels: all judgments that a run is measured against, query id → {passage id: grade}."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import chain, islice, pairwise, repeat
from operator import eq, le
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, examples
from rag_selectivity.judged.origins import NO_GRADE, LabelOrigins
from rag_selectivity.tables.cells import id_text
from rag_selectivity.tables.columns import Columns, read
from rag_selectivity.tables.exact import STORES, kind_of
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.grades import Scale, implied_scale, parse_grade_map, settled_scale
from rag_selectivity.tables.ids import HashArray, IntArray, id_hashes, mix, natural_key, numbered, ranges
from rag_selectivity.tables.small import per

#: Grades below are counted, to find which there are.
_FEW = 1 << 10


@dataclass(eq=False, repr=False)
class Qrels:
    """Judgments: one grade for each (query, passage) pair.

    Stored in columns; reads like a dict of dicts:

    >>> qrels = Qrels.of({"q1": {"d1": 5, "d2": 1}, "q2": {"d7": 4}})
    >>> qrels["q1"], len(qrels), "q3" in qrels
    ({'d1': 5, 'd2': 1}, 2, False)

    Attributes
    ----------
    queries : tuple of str
        Query ids in order of first appearance; queries without judgments are included.
    query, grade : int64[judgments]
        The position of each judgment's query in `queries`, and its grade; sorted by query.
    passages : list of str
        The passage of each judgment.
    repeated, negative : int
        Judgments that were left out: repetitions with the same grade, and grades below zero (TREC: not judged).
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

    queries: tuple[str, ...]
    query: IntArray
    passages: list[str]
    grade: IntArray
    source: str | None = None
    lines: IntArray | None = None
    expected: NDArray[np.bool_] | None = None
    scale: str | None = None
    levels: tuple[int, ...] = ()
    origins: LabelOrigins | None = None
    form: IdForm = AS_THEY_ARE
    repeated: int = 0
    negative: int = 0
    #: The scale that all grades are known to be on.
    _settled: Scale | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._position = {query_id: i for i, query_id in enumerate(self.queries)}
        if "" in self._position:
            raise InputError(f"{self.source or 'qrels'}: a query id is empty")
        if self.expected is not None and not self.expected.any():
            self.expected = None
        below = self.grade < 0
        if below.any():
            self.negative += int(below.sum())
            self._keep(np.flatnonzero(~below))
        if (self.query[1:] < self.query[:-1]).any():
            self._keep(np.argsort(self.query, kind="stable"))
        self._starts: list[int] = np.searchsorted(self.query, np.arange(len(self.queries) + 1)).tolist()
        doubles = self._doubles()
        if doubles:
            self.repeated += len(doubles)
            self._keep(np.delete(np.arange(len(self.query)), doubles))
            self._starts = np.searchsorted(self.query, np.arange(len(self.queries) + 1)).tolist()

    # -- making one ------------------------------------------------------------------------------

    @classmethod
    def from_columns(cls, columns: Columns, **about: Any) -> Qrels:
        """From the columns of labels, as `rag_selectivity.tables` reads them, and further arguments of the class."""
        grade = np.empty(0, np.int64) if columns.grade is None else columns.grade
        of_columns: dict[str, Any] = {
            "source": columns.source if columns.source not in ("qrels", "qrels frame") else None,
            "lines": columns.lines,
            "expected": columns.expected,
        }
        return cls(columns.queries, columns.query, columns.passage, grade, **of_columns | about)

    @classmethod
    def of(
        cls, source: Any, *, format: str | None = None, judges: Sequence[str] | None = None, humans: bool = True
    ) -> Qrels:
        """From a Qrels, a dict, rows, a frame (of pandas, polars or Arrow) or a path; the rest is as in `read_qrels`.

        A dict is {query: {passage: grade}}; in place of the inner dict, a list or set names the relevant passages.

        Raises
        ------
        InputError
            For anything else, and for what is wrong in it.
        """
        if isinstance(source, cls):
            return source
        if is_path(source) and (kind := kind_of(Path(source), format)) in STORES:
            stored: Qrels = import_module(STORES[kind]).read_labels(kind, Path(source), judges, humans)
            stored.source = str(source)
            return stored
        if judges:
            raise InputError(f"{source} is no label store: its labels have no judges to choose from")
        return cls.from_columns(read(source, "labels", format=format))

    @classmethod
    def from_records(
        cls,
        records: Iterable[Any],
        *,
        queries: Iterable[Any] = (),
        source: str | None = None,
        expected: Sequence[bool] | None = None,
        **about: Any,
    ) -> Qrels:
        """From (query, passage, grade) rows or dicts; `queries` names further queries, which may have no judgment.

        `expected` marks the rows that are expected ids without a grade. Further arguments are those of the class.
        """
        given = read(records, "labels")
        further = [id_text(query, source or "qrels", "query") for query in queries]
        queries, place = numbered([*further, *given.queries])
        query = place[len(further) :][given.query]
        named = replace(given, queries=tuple(queries), query=query, source=source or given.source)
        marked = given.expected if expected is None else np.array(expected, bool)
        return cls.from_columns(named, expected=marked, **about)

    def under(self, names: Mapping[str, str], passage: Callable[[str, str], str] | None = None) -> Qrels:
        """The judgments with queries renamed by {name: query}; a query may get several names.

        `passage(name, id)` gives the passages other ids; default: their own.

        >>> qrels = Qrels.of({"q1": {"d1": 5}, "q2": {"d7": 4}})
        >>> qrels.under({"monday": "q1", "tuesday": "q1"}).to_dict()
        {'monday': {'d1': 5}, 'tuesday': {'d1': 5}}
        """
        of = np.array([self._position[query] for query in names.values()], np.int64)
        start, stop = np.searchsorted(self.query, of), np.searchsorted(self.query, of, side="right")
        count = stop - start
        rows = ranges(start, count)
        query, passages = np.repeat(np.arange(len(of)), count), self.passages_at(rows)
        if passage is not None:
            names_of_rows = map(tuple(names).__getitem__, query.tolist())
            given = map(passage, names_of_rows, passages)
            passages = [id_text(each, "qrels", "passage") for each in given]
        named = {"queries": tuple(names), "query": query, "passages": passages}
        return replace(self, **self._rows(rows) | named, repeated=0, negative=0)

    def inherit(self, documents: Any) -> Qrels:
        """The judgments of chunks: every chunk of a judged document has the grade of its document.

        Parameters
        ----------
        documents : {chunk: document}, DataFrame with a chunk and a document column, or rows of (chunk, document)

        Raises
        ------
        InputError
            If a judged document has no chunk, or a chunk has two documents.

        >>> qrels = Qrels.of({"q1": {"d1": 5, "d2": 1}})
        >>> qrels.inherit({"d1#0": "d1", "d1#1": "d1", "d2#0": "d2", "d3#0": "d3"}).to_dict()
        {'q1': {'d1#0': 5, 'd1#1': 5, 'd2#0': 1}}
        """
        chunks_of: dict[str, list[str]] = {}
        for chunk, document in per("chunk", documents, "document", str, name="documents").items():
            chunks_of.setdefault(document, []).append(chunk)
        absent = sorted({name for name in self.passages if name not in chunks_of})
        if absent:
            raise InputError(
                f"{len(absent)} judged documents have no chunk ({examples(absent[:3])}): add their chunks, or leave "
                f"out the labels of documents that the index lacks"
            )
        of_rows = [chunks_of[name] for name in self.passages]
        rows = np.repeat(np.arange(len(of_rows)), np.array([len(chunks) for chunks in of_rows], np.int64))
        return replace(self, **self._rows(rows) | {"passages": list(chain.from_iterable(of_rows))})

    def in_form(self, form: IdForm) -> Qrels:
        """The same judgments with all ids in a form.

        >>> Qrels.of({"Q1": {"D1": 5}, "q1": {"d2": 4}}).in_form(IdForm.of("casefold")).to_dict()
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
        passages = [*map(form, self.passages)]
        return replace(self, queries=tuple(position), query=renumbered[self.query], passages=passages, form=form)

    def only(self, rows: NDArray[np.bool_]) -> Qrels:
        """Some of the judgments, bool[judgments]; all queries stay."""
        return self.take(np.flatnonzero(rows))

    def take(self, rows: IntArray) -> Qrels:
        """Some of the judgments by their rows; all queries stay."""
        return replace(self, **self._rows(rows))

    def without_self(self) -> Qrels:
        """The judgments without those of the passage that has the id of its query; all queries stay."""
        own = np.fromiter(map(eq, map(self.queries.__getitem__, self.query.tolist()), self.passages), bool, self.size)
        return self.only(~own) if own.any() else self

    def in_order(self, *, by_passage: bool = False) -> Qrels:
        """The judgments in the natural order of their queries (q2 before q10), and `by_passage` of their passages.

        Resamples are drawn by position, so that the order of a file must not decide what they hold.

        >>> Qrels.of({"q10": ["b"], "q2": ["c", "a"]}).in_order(by_passage=True).to_dict()
        {'q2': {'a': 1, 'c': 1}, 'q10': {'b': 1}}
        """
        keys = list(map(natural_key, self.queries))
        if all(map(le, keys, keys[1:])) and not by_passage:
            return self
        order = sorted(range(len(keys)), key=keys.__getitem__)
        place = np.argsort(np.array(order, np.int64))
        query = place[self.query]
        if by_passage:
            of_row = query.tolist()
            key = lambda row: (of_row[row], self.passages[row])  # noqa: E731
            rows = np.array(sorted(range(self.size), key=key), np.int64)
        else:
            rows = np.argsort(query, kind="stable")
        queries = tuple(self.queries[i] for i in order)
        return replace(self, **self._rows(rows) | {"queries": queries, "query": query[rows]})

    # -- reading it ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __contains__(self, query: object) -> bool:
        return query in self._position

    def __getitem__(self, query: str) -> dict[str, int]:
        rows = self.rows(self._position[query])
        return dict(zip(self.passages[rows], self.grade[rows].tolist(), strict=True))

    def to_dict(self) -> dict[str, dict[str, int]]:
        """As {query: {passage: grade}}."""
        labels = zip(self.passages, self.grade.tolist(), strict=True)
        counts = self.counts().tolist()
        return {query: dict(islice(labels, count)) for query, count in zip(self.queries, counts, strict=True)}

    def rows(self, position: int) -> slice:
        """The rows of the query at a position."""
        return slice(self._starts[position], self._starts[position + 1])

    def judgments_of(self, position: int) -> dict[str, int]:
        """{passage: the row of its judgment} of the query at a position."""
        rows = self.rows(position)
        return dict(zip(self.passages[rows], range(rows.start, rows.stop), strict=True))

    def judgments(self, query: IntArray, passages: Sequence[str]) -> IntArray:
        """The judgment of each pair: int64[pairs], a row of these columns, −1 for a pair that nobody judged.

        `query` is a position in `queries`, −1 for a query that is not there.
        """
        known: dict[int, dict[str, int]] = {-1: {}}
        found = []
        for position, passage in zip(query.tolist(), passages, strict=True):
            if position not in known:
                known[position] = self.judgments_of(position)
            found.append(known[position].get(passage, -1))
        return np.array(found, np.int64)

    @property
    def size(self) -> int:
        """How many judgments there are."""
        return len(self.query)

    def counts(self) -> IntArray:
        """How many judgments each query has: int64[queries]."""
        return np.diff(self._starts)

    def counts_by_grade(self, grades: IntArray) -> IntArray:
        """How many judgments of each grade each query has: int64[queries, grades]; the grades are all that occur."""
        cells = self.query * len(grades) + np.searchsorted(grades, self.grade)
        counts = np.bincount(cells, minlength=len(self.queries) * len(grades))
        return counts.reshape(len(self.queries), len(grades))

    def grades_present(self) -> list[int]:
        """The grades that occur, in order."""
        return distinct_grades(self.grade)

    def passages_at(self, rows: IntArray) -> list[str]:
        """The passages of some judgments."""
        return list(map(self.passages.__getitem__, rows.tolist()))

    def label_hashes(self) -> HashArray:
        """A hash of each query's judgments in any order: uint64[queries]; 0 for a query without judgments.

        >>> one = Qrels.of({"q": {"d1": 5, "d2": 1}}).label_hashes()
        >>> other = Qrels.of({"q": {"d2": 1, "d1": 5}}).label_hashes()
        >>> one.tolist() == other.tolist()
        True
        """
        rows = mix(id_hashes(self.passages), self.grade.astype(np.uint64) + np.uint64(1))
        # The sums may overflow: unsigned sums wrap around, so their differences are still right.
        totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(rows, dtype=np.uint64)])
        sums: HashArray = totals[self._starts[1:]] - totals[self._starts[:-1]]
        return sums

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
        mapped = np.ones(self.size, bool) if self.expected is None else ~self.expected
        grades, first = np.unique(self.grade[mapped], return_index=True)
        for row, grade in zip(np.flatnonzero(mapped)[first], grades, strict=True):
            if int(grade) not in mapping:
                raise InputError(f"{self._row_text(int(row))} is not in the grade map; add {int(grade)}:NEW to it")
        # An expected id has no grade to map.
        grades, back = np.unique(self.grade, return_inverse=True)
        new = np.array([mapping.get(int(grade), 1) for grade in grades], np.int64)[back] if len(grades) else self.grade
        origins = self.origins
        if origins is not None:
            by_judge = [mapping.get(grade, NO_GRADE) for grade in origins.judge_grade.tolist()]
            origins = replace(origins, judge_grade=np.array(by_judge, np.int64))
        return replace(self, grade=new, scale=implied_scale(mapping), origins=origins)

    def on_scale(self, given: str | Scale | None) -> Qrels:
        """The same judgments with their scale settled: the given one, or the one that the source implies.

        An expected id without a grade gets the lowest relevant grade. `settled_scale` says which labels need no scale.

        >>> Qrels.of({"q1": ["d1"], "q2": {"d2": 5}}).on_scale("utility").to_dict()
        {'q1': {'d1': 4}, 'q2': {'d2': 5}}

        Raises
        ------
        InputError
            If the scale is not known, or a grade is not on it.
        """
        if self._settled is not None and given in (self._settled, self._settled.name):
            return self
        expected = np.zeros(self.size, bool) if self.expected is None else self.expected
        scale = settled_scale(given, self.scale, distinct_grades(self.grade[~expected]), self.source or "qrels")
        grades = np.where(expected, scale.relevant_from, self.grade)
        settled = replace(self, grade=grades) if (grades != self.grade).any() else copy(self)
        settled.check_scale(scale)
        settled.scale, settled._settled = scale.name, scale
        return settled

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

    # -- inside ----------------------------------------------------------------------------------

    def _rows(self, rows: IntArray) -> dict[str, Any]:
        """The columns of some of the judgments, in this order."""
        columns = {name: getattr(self, name) for name in ("query", "grade", "lines", "expected")}
        some = {name: None if column is None else column[rows] for name, column in columns.items()}
        origins = None if self.origins is None else self.origins.take(rows)
        return some | {"passages": self.passages_at(rows), "origins": origins}

    def _keep(self, rows: IntArray) -> None:
        for name, column in self._rows(rows).items():
            setattr(self, name, column)

    def _doubles(self) -> list[int]:
        """The rows of pairs that an earlier row has with the same grade; an InputError if the grades differ."""
        doubles = []
        for start, stop in pairwise(self._starts):
            passages = self.passages[start:stop]
            if len(set(passages)) == len(passages):
                continue
            first_of: dict[str, int] = {}
            for row, passage in enumerate(passages, start):
                first = first_of.setdefault(passage, row)
                if first != row:
                    doubles.append(row)
                    if self.grade[first] != self.grade[row]:
                        raise InputError(
                            f"{self._row_text(row)}, but {self._row_text(first)}: one pair cannot have two grades; "
                            f"remove one"
                        )
        return doubles

    def _row_text(self, row: int) -> str:
        line = "" if self.lines is None else f":{self.lines[row]}"
        return (
            f"{self.source or 'qrels'}{line}: query {self.queries[self.query[row]]!r}, "
            f"passage {self.passages[row]!r}: grade {self.grade[row]}"
        )

    def __repr__(self) -> str:
        return f"<Qrels: {len(self.queries)} queries, {self.size} judgments>"


def distinct_grades(grades: NDArray[np.int64]) -> list[int]:
    """Which grades there are, in order; none of them is negative.

    >>> distinct_grades(np.array([5, 1, 5])), distinct_grades(np.array([1 << 20, 0]))
    ([1, 5], [0, 1048576])
    """
    few = grades.max(initial=0) < _FEW
    found: list[int] = (np.flatnonzero(np.bincount(grades)) if few else np.unique(grades)).tolist()
    return found
