"""Labels by class: a passage is relevant to the queries of its class. Held as counts, not as pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np

from rag_selectivity.data.cells import label_grade, query_text
from rag_selectivity.data.forms import AS_THEY_ARE, IdForm
from rag_selectivity.data.grades import Scale, implied_scale, parse_grade_map, settled_scale
from rag_selectivity.data.ids import HashArray, IdColumn, IntArray, mix
from rag_selectivity.data.pair_index import PairIndex, pair_keys
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.remarks import NO_REMARKS
from rag_selectivity.errors import InputError, examples

#: What a query or a passage of no class has in place of a class.
_NONE = -1


class ClassQrels(Qrels):
    """Qrels whose labels are all pairs of a query and a passage of one class, with one grade.

    Label i of a query is the i-th passage of its class. What only pairs can tell is asked of columns that are made
    when they are first needed.
    """

    def __init__(
        self,
        queries: list[str],
        of_query: IntArray,
        passages: IdColumn,
        of_passage: IntArray,
        grade: int,
        *,
        exclude_self: bool,
    ) -> None:
        self.remarks, self.form, self.source, self.scale = NO_REMARKS, AS_THEY_ARE, None, None
        self.queries = tuple(queries)
        self.levels, self.repeated, self.negative = (), 0, 0
        self.texts, self._lines, self.origins, self.expected, self._index = None, None, None, None, None
        self._settled: Scale | None = None
        self._position = {query: i for i, query in enumerate(queries)}
        self._of_query, self._of_passage, self._grade, self._exclude_self = of_query, of_passage, grade, exclude_self
        # Each class's passages stand together in `_members`.
        self._all_passages = passages
        order = np.argsort(of_passage, kind="stable")
        self._members = order[np.searchsorted(of_passage[order], 0) :]
        classes = 1 + int(max(of_query.max(initial=_NONE), of_passage.max(initial=_NONE)))
        self._class_size = np.bincount(of_passage[self._members], minlength=classes)
        self._class_start = np.append(0, np.cumsum(self._class_size))
        self._place = np.full(len(passages), _NONE)
        self._place[self._members] = np.arange(len(self._members)) - self._class_start[of_passage[self._members]]
        self._by_id = PairIndex(np.zeros(len(passages), np.int64), passages)
        self._own = self._own_places()
        known = of_query >= 0
        self._counts = np.where(known, self._class_size[np.maximum(of_query, 0)] if classes else 0, 0)
        self._counts -= self._own >= 0
        self._starts = np.append(0, np.cumsum(self._counts))

    @classmethod
    def of_classes(
        cls, query_class: Mapping[Any, Any], passage_class: Mapping[Any, Any], *, grade: int, exclude_self: bool
    ) -> ClassQrels:
        """As `Qrels.from_classes`."""
        for given, what in ((query_class, "query_class"), (passage_class, "passage_class")):
            if not isinstance(given, Mapping):
                raise InputError(
                    f"{what} must be a dict of ids and classes, got {type(given).__name__}; of two columns it is "
                    f"dict(zip(ids, classes))"
                )
        codes: dict[Any, int] = {}
        of_query = _codes(query_class.items(), codes, "query")
        of_passage = _codes(passage_class.items(), codes, "passage")
        queries = [query_text(query, "query_class") for query in query_class]
        value = label_grade(grade, "grade")
        if value < 0:
            raise InputError(f"grade must be a whole number ≥ 0, got {grade!r}")
        if not np.isin(of_query[of_query >= 0], of_passage).any():
            raise InputError(
                f"no query has the class of a passage: queries have classes such as "
                f"{examples(query_class.values())}, passages such as {examples(passage_class.values())}"
            )
        passages = IdColumn.from_strings(list(passage_class))
        _refuse_repeats(queries, passages, "")
        return cls(queries, of_query, passages, of_passage, value, exclude_self=exclude_self)

    def _own_places(self) -> IntArray:
        """Where the passage with a query's own id stands in their class, if it is left out; else −1: int64[queries]."""
        own = np.full(len(self.queries), _NONE)
        if self._exclude_self and self.queries:
            rows, found = self._found(IdColumn.from_strings(list(self.queries)))
            same = (self._of_passage[found] == self._of_query[rows]) & (self._of_query[rows] >= 0)
            own[rows[same]] = self._place[found[same]]
        return own

    def _found(self, ids: IdColumn) -> tuple[IntArray, IntArray]:
        """The rows whose id is that of a passage, and which passage it is."""
        nobody = np.zeros(len(ids), np.int64)
        return self._by_id.lookup(pair_keys(nobody, ids), nobody, ids)

    def __getattr__(self, name: str) -> Any:
        # Only where an attribute is not there yet: the columns of all pairs.
        if name in ("query", "grade", "_passages"):
            self.query = np.repeat(np.arange(len(self.queries)), self._counts)
            self.grade = np.full(self.size, self._grade)
            self._passages = self.passages_at(np.arange(self.size))
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # -- what a join asks ------------------------------------------------------------------------

    @property
    def size(self) -> int:
        return int(self._starts[-1])

    def counts(self) -> IntArray:
        return self._counts

    def counts_by_grade(self, grades: IntArray) -> IntArray:
        counts = np.zeros((len(self.queries), len(grades)), np.int64)
        counts[:, grades == self._grade] = self._counts[:, None]
        return counts

    def grades_present(self) -> list[int]:
        return [self._grade] if self.size else []

    def grades_of(self, judgments: IntArray) -> IntArray:
        return np.full(len(judgments), self._grade)

    def passages_at(self, judgments: IntArray) -> IdColumn:
        query = np.searchsorted(self._starts, judgments, "right") - 1
        place = judgments - self._starts[query]
        own = self._own[query]
        place += (own >= 0) & (place >= own)
        return self._all_passages.take(self._members[self._class_start[self._of_query[query]] + place])

    def distinct_passages(self) -> set[str]:
        of_query = self._of_query[self._of_query >= 0]
        asking = np.bincount(of_query, minlength=len(self._class_size))[self._of_passage[self._members]]
        without = np.flatnonzero(self._own >= 0)
        np.subtract.at(asking, self._class_start[self._of_query[without]] + self._own[without], 1)
        return set(self._all_passages.take(self._members[asking > 0]))

    def label_hashes(self) -> HashArray:
        rows = mix(self._all_passages.hashes()[self._members], np.uint64(self._grade + 1))
        # Unsigned sums wrap around, so their differences are still right.
        totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(rows, dtype=np.uint64)])
        sums = np.zeros(len(self.queries), np.uint64)
        labelled = np.flatnonzero(self._of_query >= 0)
        of = self._of_query[labelled]
        sums[labelled] = totals[self._class_start[of + 1]] - totals[self._class_start[of]]
        without = np.flatnonzero(self._own >= 0)
        sums[without] -= rows[self._class_start[self._of_query[without]] + self._own[without]]
        return sums

    def lookup(
        self, keys: HashArray, query: IntArray, passages: IdColumn, among: IntArray | None = None
    ) -> tuple[IntArray, IntArray]:
        rows, found = self._found(passages)
        of = query[rows]
        relevant = (of >= 0) & (self._of_query[of] >= 0) & (self._of_query[of] == self._of_passage[found])
        relevant &= self._place[found] != self._own[of]
        rows, of, place = rows[relevant], of[relevant], self._place[found[relevant]]
        own = self._own[of]
        return rows, self._starts[of] + place - ((own >= 0) & (place > own))

    def __getitem__(self, query: str) -> dict[str, int]:
        i = self._position[query]
        return dict.fromkeys(self.passages_at(np.arange(self._starts[i], self._starts[i + 1])), self._grade)

    # -- the same labels otherwise ---------------------------------------------------------------

    def regraded(self, grade_map: str | Mapping[int, int] | None) -> Qrels:
        mapping = parse_grade_map(grade_map)
        if mapping is None:
            return self
        if self._grade not in mapping:
            raise InputError(f"qrels: grade {self._grade} is not in the grade map; add {self._grade}:NEW to it")
        if mapping[self._grade] < 0:
            return super().regraded(mapping)
        result = self._with_grade(mapping[self._grade])
        result.scale = implied_scale(mapping)
        return result

    def on_scale(self, given: str | Scale | None) -> Qrels:
        scale = settled_scale(given, self.scale, self.grades_present(), "qrels")
        if self.size and not scale.holds(self._grade):
            raise InputError(
                f"qrels: grade {self._grade} is off the {scale.name} scale ({scale.range_text}); give another grade "
                f"to from_classes (how-to: labels-on-the-wrong-scale)"
            )
        result = copy(self)
        result.scale, result._settled = scale.name, scale
        return result

    def in_form(self, form: IdForm) -> Qrels:
        if not form.changes_ids or form == self.form:
            return self
        queries, passages = [form(query) for query in self.queries], form.column(self._all_passages)
        _refuse_repeats(queries, passages, f" with ids={str(form)!r}")
        result = ClassQrels(
            queries, self._of_query, passages, self._of_passage, self._grade, exclude_self=self._exclude_self
        )
        result.form, result.scale, result._settled = form, self.scale, self._settled
        return result

    def in_order(self, *, by_passage: bool = False) -> Qrels:
        order = self._natural_order()
        if order is None:
            return self
        queries, passages = [self.queries[i] for i in order], self._all_passages
        result = ClassQrels(
            queries, self._of_query[order], passages, self._of_passage, self._grade, exclude_self=self._exclude_self
        )
        result.form, result.scale, result._settled = self.form, self.scale, self._settled
        return result

    def _with_grade(self, grade: int) -> ClassQrels:
        result = copy(self)
        for name in ("query", "grade", "_passages"):
            result.__dict__.pop(name, None)
        result._grade, result._settled = grade, None
        return result


def _codes(items: Iterable[tuple[Any, Any]], codes: dict[Any, int], what: str) -> IntArray:
    """The number of each class; −1 for None and NaN."""
    numbers = []
    for id_, value in items:
        if value is None or value != value:
            numbers.append(_NONE)
            continue
        if not isinstance(value, (str, int, float, np.generic)):
            raise InputError(
                f"{what} {id_!r} has the class {value!r}: give one text or number; if there are several classes each, "
                f"give the pairs with Qrels.from_dict"
            )
        numbers.append(codes.setdefault(value, len(codes)))
    return np.array(numbers, np.int64)


def _refuse_repeats(queries: list[str], passages: IdColumn, how: str) -> None:
    for ids, what in ((queries, "query"), (passages, "passage")):
        if len(set(ids)) < len(ids):
            seen: set[str] = set()
            twice = next(id_ for id_ in ids if id_ in seen or seen.add(id_))  # type: ignore[func-returns-value]
            raise InputError(f"{what} {twice!r} stands twice{how}: an id can have one class only")
