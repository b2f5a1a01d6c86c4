"""Qrels: all judgments that a run is measured against, query id → {passage id: grade}."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import chain, islice, pairwise
from operator import le
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, examples
from rag_selectivity.judged.origins import NO_GRADE, Chosen, LabelOrigins
from rag_selectivity.judged.rows import Pairs
from rag_selectivity.tables.cells import id_text
from rag_selectivity.tables.columns import Columns, read
from rag_selectivity.tables.exact import STORES, kind_of
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.grades import Scale, implied_scale, parse_grade_map, settled_scale
from rag_selectivity.tables.ids import HashArray, IntArray, id_hashes, mix, natural_key, numbered, ranges
from rag_selectivity.tables.small import per


@dataclass(eq=False, repr=False)
class Qrels(Pairs):
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
    #: The queries that are an earlier one under another name.
    again: frozenset[str] = frozenset()
    #: The scale that all grades are known to be on.
    _settled: Scale | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if "" in self.place:
            raise InputError(f"{self.source or 'qrels'}: a query id is empty")
        if self.expected is not None and not self.expected.any():
            self.expected = None
        if (below := self.grade < 0).any():
            self.negative += int(below.sum())
            self._keep(~below)
        if (self.query[1:] < self.query[:-1]).any():
            self._keep(np.argsort(self.query, kind="stable"))
        if len(doubles := self._doubles()):
            self.repeated += len(doubles)
            self._keep(np.delete(np.arange(self.size), doubles))

    def _keep(self, rows: NDArray[Any]) -> None:
        self.__dict__.update(self.columns_at(rows))
        self.__dict__.pop("offsets", None)

    # -- making one ------------------------------------------------------------------------------

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
        if isinstance(source, cls) and not judges:
            return source
        if is_path(source) and (kind := kind_of(Path(source), format)) in STORES:
            stored: Qrels = import_module(STORES[kind]).read_labels(kind, Path(source), judges, humans)
            stored.source = str(source)
            return stored
        if judges:
            raise InputError(f"{source if is_path(source) else 'labels'}: only a label store has judges (--judge)")
        return cls._of_columns(read(source, "labels", format=format))

    @classmethod
    def _of_columns(cls, columns: Columns, **about: Any) -> Qrels:
        source = columns.source if columns.source != "qrels" else None
        grade = np.empty(0, np.int64) if columns.grade is None else columns.grade
        rows: dict[str, Any] = {"lines": columns.lines, "expected": columns.expected, "source": source}
        return cls(columns.queries, columns.query, columns.passage, grade, **rows | about)

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
        names, place = numbered([*further, *given.queries])
        marked = given.expected if expected is None else np.array(expected, bool)
        named = replace(given, queries=tuple(names), query=place[len(further) :][given.query], expected=marked)
        return cls._of_columns(named, **({} if source is None else {"source": source}), **about)

    def under(self, names: Mapping[str, str], passage: Callable[[str, str], str] | None = None) -> Qrels:
        """The judgments with queries renamed by {name: query}; a query may get several names.

        `passage(name, id)` gives the passages other ids; default: their own.

        >>> qrels = Qrels.of({"q1": {"d1": 5}, "q2": {"d7": 4}})
        >>> qrels.under({"monday": "q1", "tuesday": "q1"}).to_dict()
        {'monday': {'d1': 5}, 'tuesday': {'d1': 5}}
        """
        of = np.array([self.place[query] for query in names.values()], np.int64)
        query = np.repeat(np.arange(len(of)), self.lengths[of])
        columns = self.columns_at(ranges(self.offsets[of], self.lengths[of]))
        if passage is not None:
            given = map(passage, map(tuple(names).__getitem__, query.tolist()), columns["passages"])
            columns["passages"] = [id_text(each, "qrels", "passage") for each in given]
        columns |= {"queries": tuple(names), "query": query, "again": again_in(names)}
        return replace(self, **columns | {"repeated": 0, "negative": 0})

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
        if absent := sorted({name for name in self.passages if name not in chunks_of}):
            raise InputError(
                f"{len(absent)} judged documents have no chunk ({examples(absent[:3])}): add their chunks, or leave "
                f"out the labels of documents that the index lacks"
            )
        chunks = [chunks_of[name] for name in self.passages]
        rows = np.repeat(np.arange(self.size), np.fromiter(map(len, chunks), np.int64, self.size))
        return replace(self, **self.columns_at(rows) | {"passages": list(chain.from_iterable(chunks))})

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
        queries, place = numbered(map(form, self.queries))
        passages = [*map(form, self.passages)]
        again = frozenset(map(form, self.again))
        return replace(self, queries=tuple(queries), query=place[self.query], passages=passages, form=form, again=again)

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
        query = np.argsort(np.array(order, np.int64))[self.query]
        rows = np.array(sorted(range(self.size), key=self.passages.__getitem__ if by_passage else None), np.int64)
        rows = rows[np.argsort(query[rows], kind="stable")]
        queries = tuple(self.queries[i] for i in order)
        return replace(self, **self.columns_at(rows) | {"queries": queries, "query": query[rows]})

    # -- random controls -------------------------------------------------------------------------

    @property
    def controls(self) -> NDArray[np.bool_]:
        """The judgments that are random controls and nothing else: bool[judgments].

        A passage that was graded as a part of a list too is a label.
        """
        if self.origins is None:
            return np.zeros(self.size, bool)
        return self.origins.are(Chosen.CONTROL) & ~self.origins.are(Chosen.POOL | Chosen.TAIL)

    def without_controls(self) -> Qrels:
        """The judgments without the random controls; all queries stay."""
        controls = self.controls
        return self.take(~controls) if controls.any() else self

    def with_controls(self, controls: Qrels) -> Qrels:
        """The judgments and separate controls as one Qrels, whose origins tell them apart.

        A control that the qrels judge too is left out of the controls.

        Raises
        ------
        InputError
            If there is no control, or a control is of a query that the qrels lack.
        """
        where = controls.source or "controls"
        if unknown := [query for query in controls.queries if query not in self]:
            raise InputError(f"{where}: the qrels lack queries of these controls ({examples(unknown)}): remove them")
        query = self.positions(controls.queries)[controls.query]
        new = self.judgments(query, controls.passages) < 0
        if not new.any():
            raise InputError(
                f"{where}: there are no controls that the qrels lack; draw them from the passages that are not in the "
                f"qrels, or leave them out"
            )
        further = controls.take(new)
        known = LabelOrigins.unknown(self.size) if self.origins is None else self.origins
        return replace(
            self,
            query=np.append(self.query, query[new]),
            passages=[*self.passages, *further.passages],
            grade=np.append(self.grade, further.grade),
            lines=None,
            expected=None if self.expected is None else np.append(self.expected, np.zeros(further.size, bool)),
            levels=(*self.levels, *controls.levels),
            origins=known.beside([LabelOrigins.unknown(further.size, Chosen.CONTROL)]),
        )

    # -- reading it ------------------------------------------------------------------------------

    def __getitem__(self, query: str) -> dict[str, int]:
        rows = self.rows(self.place[query])
        return dict(zip(self.passages[rows], self.grade[rows].tolist(), strict=True))

    def to_dict(self) -> dict[str, dict[str, int]]:
        """As {query: {passage: grade}}."""
        labels = zip(self.passages, self.grade.tolist(), strict=True)
        return {query: dict(islice(labels, n)) for query, n in zip(self.queries, self.lengths.tolist(), strict=True)}

    def judgments(self, query: IntArray, passages: Sequence[str]) -> IntArray:
        """The judgment of each pair: int64[pairs], a row of these columns, −1 for a pair that nobody judged.

        `query` is a position in `queries`, −1 for a query that is not there.
        """
        known: dict[int, dict[str, int]] = {-1: {}}
        found = []
        for position, passage in zip(query.tolist(), passages, strict=True):
            if position not in known:
                rows = self.rows(position)
                known[position] = dict(zip(self.passages[rows], range(rows.start, rows.stop), strict=True))
            found.append(known[position].get(passage, -1))
        return np.array(found, np.int64)

    @property
    def size(self) -> int:
        """How many judgments there are."""
        return len(self.query)

    def label_hashes(self) -> HashArray:
        """A hash of each query's judgments in any order: uint64[queries]; 0 for a query without judgments.

        >>> one = Qrels.of({"q": {"d1": 5, "d2": 1}}).label_hashes()
        >>> other = Qrels.of({"q": {"d2": 1, "d1": 5}}).label_hashes()
        >>> one.tolist() == other.tolist()
        True
        """
        sums = np.zeros(len(self), np.uint64)
        # The sums may overflow: unsigned sums wrap around.
        np.add.at(sums, self.query, mix(id_hashes(self.passages), self.grade.astype(np.uint64) + np.uint64(1)))
        return sums

    # -- grades and their scale ------------------------------------------------------------------

    def regraded(self, grade_map: str | Mapping[int, int] | None) -> Qrels:
        """The same judgments with grades mapped to another scale by a grade map such as `0:1,1:3,2:4,3:5`."""
        mapping = parse_grade_map(grade_map)
        if mapping is None:
            return self
        # An expected id has no grade to map.
        graded = np.ones(self.size, bool) if self.expected is None else ~self.expected
        if len(off := np.flatnonzero(graded & ~np.isin(self.grade, list(mapping)))):
            raise InputError(f"{self._row_text(off[0])} is not in the grade map; add {self.grade[off[0]]}:NEW to it")
        new = np.array([mapping.get(grade, 1) for grade in self.grade.tolist()], np.int64)
        if (origins := self.origins) is not None:
            given = origins.judge_grade, origins.of_people(self.grade)
            judge, person = (np.array([mapping.get(each, NO_GRADE) for each in of.tolist()], np.int64) for of in given)
            origins = replace(origins, judge_grade=judge, person_grade=person)
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
        scale = settled_scale(given, self.scale, np.unique(self.grade[~expected]).tolist(), self.source or "qrels")
        grades = np.where(expected, scale.relevant_from, self.grade)
        settled = replace(self, grade=grades) if (grades != self.grade).any() else copy(self)
        settled.check_scale(scale)
        settled.scale, settled._settled = scale.name, scale
        return settled

    def check_scale(self, scale: Scale) -> None:
        """Refuse a grade that is not on the scale; the error says where it is and what to do."""
        is_off = (self.grade < scale.lowest) | (self.grade > (scale.highest or np.iinfo(np.int64).max))
        if len(off := np.flatnonzero(is_off)):
            reach = "and up" if scale.highest is None else f"to {scale.highest}"
            raise InputError(
                f"{self._row_text(off[0])} is off the {scale.name} scale ({scale.lowest} {reach}); "
                f"map other grades with a grade map, as in 0:1,1:3,2:4,3:5, or choose another scale "
                f"(how-to: labels-on-the-wrong-scale)"
            )

    # -- inside ----------------------------------------------------------------------------------

    def _doubles(self) -> IntArray:
        """The rows of pairs that an earlier row has with the same grade; an InputError if the grades differ."""
        ends = enumerate(pairwise(self.offsets.tolist()))
        repeating = [i for i, (start, stop) in ends if len(set(self.passages[start:stop])) < stop - start]
        rows, earlier = self.copies(np.array(repeating, np.int64))
        if len(off := np.flatnonzero(self.grade[rows] != self.grade[earlier])):
            raise InputError(
                f"{self._row_text(rows[off[0]])}, but {self._row_text(earlier[off[0]])}: one pair cannot have two "
                f"grades; remove one, or import them as samples of a judge (labels import --judge NAME)"
            )
        return rows

    def _row_text(self, row: int) -> str:
        line = "" if self.lines is None else f":{self.lines[row]}"
        return (
            f"{self.source or 'qrels'}{line}: query {self.queries[self.query[row]]!r}, "
            f"passage {self.passages[row]!r}: grade {self.grade[row]}"
        )


def again_in(names: Mapping[str, str]) -> frozenset[str]:
    """The names of a query that has an earlier one in {name: query}.

    >>> sorted(again_in({"monday": "q1", "tuesday": "q1", "sunday": "q2"}))
    ['tuesday']
    """
    first = {query: name for name, query in reversed([*names.items()])}
    return frozenset(names.keys() - first.values())
