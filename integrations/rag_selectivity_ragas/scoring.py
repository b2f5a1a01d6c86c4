"""The figures of rows as they come, one by one or many at the same time."""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakSet

from rag_selectivity import Measure
from rag_selectivity.errors import SelectivityError, SelectivityWarning, examples
from rag_selectivity.hosted import AUTO
from rag_selectivity.single import Labels, OfRepeats, QueryFigure, evaluate_queries
from rag_selectivity.tables.matching import LISTS_BEFORE_DOUBT, Meeting
from rag_selectivity_ragas.corpus import corpus_of
from rag_selectivity_ragas.rows import UTILITY_GRADES, row_of

Figures = dict[Measure, QueryFigure]

_NO_SIZE = "the sample has no corpus_size N, and a random draw needs one"
#: Rows that are measured without a pause for the event loop.
_MOST_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class _Judged:
    """A row with its labels."""

    query: str
    grades: Mapping[str, int]
    passages: Sequence[str]
    pool: Sequence[str] | None
    corpus_size: int | None
    scale: str
    levels: tuple[int, ...]


class RowScorer:
    """The figures of rows by labels; the arguments are those of `RowFigures`."""

    def __init__(
        self,
        labels: Any = None,
        *,
        measures: Sequence[Measure] = (),
        corpus_size: Any = None,
        passages_of: Any = None,
        pool: Mapping[str, Sequence[str]] | None = None,
        scale: str | None = None,
        grade_map: Any = None,
        identity: str = AUTO,
    ) -> None:
        self._given = labels is not None
        self.labels = Labels.of(labels, grade_map=grade_map, scale=scale, measures=measures)
        if self._given:
            for measure in measures:
                self.labels.require_for(measure)
        labelled_ids = {passage for grades in self.labels.by_query.values() for passage in grades}
        self._size, self._passages_of, _ = corpus_of(corpus_size, passages_of, labelled_ids)
        self._pool, self._scale, self._identity = pool, scale, identity
        #: Equal for scorers that give the same figures; None for one that shares nothing, since its N is a large table.
        self.kind: Any = None
        if self._passages_of is None and (self._size is None or isinstance(self._size, (int, Mapping))):
            self.kind = self._given, self.labels, self._size, id(pool), scale, identity
        self._met, self._counted = Meeting(), set[tuple[str, ...]]()
        self._waiting: dict[
            asyncio.AbstractEventLoop, list[tuple[Any, Sequence[Measure], asyncio.Future[Figures]]]
        ] = {}

    @classmethod
    def shared(cls, labels: Any = None, **options: Any) -> RowScorer:
        """A scorer of equal labels and options that another metric has already, or a new one."""
        made = cls(labels, **options)
        same = next((each for each in _SCORERS if made.kind is not None and each.kind == made.kind), made)
        _SCORERS.add(same)
        return same

    # -- together ------------------------------------------------------------------------------------

    async def figures(self, sample: Any, measures: Sequence[Measure]) -> Figures:
        """The figures of a sample, computed at once with all others that are awaited at the same time.

        Nothing waits for others: what the event loop holds ready is computed in its next pass.
        """
        loop = asyncio.get_running_loop()
        waiting = self._waiting.get(loop)
        if waiting is None:
            waiting = self._waiting[loop] = []
            loop.call_soon(self._settle, loop)
        future: asyncio.Future[Figures] = loop.create_future()
        waiting.append((sample, measures, future))
        return await future

    def _settle(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting.pop(loop)
        for start in range(0, len(waiting), _MOST_AT_ONCE):
            part = waiting[start : start + _MOST_AT_ONCE]
            # Several metrics of a sample share its row.
            samples = {id(sample): sample for sample, _, _ in part}
            measures = list(dict.fromkeys(measure for _, of_one, _ in part for measure in of_one))
            try:
                outcomes = dict(zip(samples, self.figures_of(list(samples.values()), measures), strict=True))
            except Exception as error:
                outcomes = dict.fromkeys(samples, error)
            for sample, _, future in part:
                outcome = outcomes[id(sample)]
                if future.done():
                    continue
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

    def figures_now(self, sample: Any, measures: Sequence[Measure]) -> Figures:
        """The figures of a sample, from ordinary code."""
        (outcome,) = self.figures_of([sample], measures)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def figures_of(self, samples: Sequence[Any], measures: Sequence[Measure]) -> list[Figures | Exception]:
        """The figures of each sample, or the error that its input is."""
        results: dict[int, Figures | Exception] = {}
        alike: dict[Any, dict[int, _Judged]] = {}
        for i, sample in enumerate(samples):
            try:
                row = self._judged(sample)
            except SelectivityError as error:
                results[i] = error
                continue
            if row is None:
                results[i] = dict(zip(measures, evaluate_queries(measures, {"row": None}, {})["row"], strict=True))
            else:
                alike.setdefault((row.scale, row.levels, row.corpus_size is None), {})[i] = row
        self._look_for_hits([row for rows in alike.values() for row in rows.values()])
        for rows in alike.values():
            results |= self._of_rows(rows, measures)
        return [results[i] for i in range(len(samples))]

    # -- rows ----------------------------------------------------------------------------------------

    def _judged(self, sample: Any) -> _Judged | None:
        """A row with its labels; None if nobody judged it."""
        row = row_of(sample)
        grades = row.grades(self.labels, given=self._given)
        identity = row.best_identity(grades or (), given=self._given) if self._identity == AUTO else self._identity
        passages = row.named(identity, grades or ())
        if grades is None:
            return None
        pool = None if self._pool is None else row.pooled(self._pool.get(row.query, ()), grades)
        size = self._size
        if isinstance(size, Mapping):
            size = size.get(row.query, size.get(row.user_input))
        own = row.own_grades is not None
        return _Judged(
            row.query,
            grades,
            passages,
            pool,
            row.corpus_size if size is None else size,
            self._scale or ("utility" if own else self.labels.scale),
            UTILITY_GRADES if own else self.labels.levels,
        )

    def _of_rows(self, rows: Mapping[int, _Judged], measures: Sequence[Measure]) -> dict[int, Figures | Exception]:
        """The figures of rows whose labels have the same scale and levels; a faulty row gets its error alone."""
        any_row = next(iter(rows.values()))
        unsized = any_row.corpus_size is None and self._passages_of is None
        able = [each for each in measures if not (unsized and each.needs_corpus_size)]
        by_key = {str(i): row for i, row in rows.items()}
        sizes = {key: row.corpus_size for key, row in by_key.items() if row.corpus_size is not None}
        try:
            found = evaluate_queries(
                able,
                {key: row.grades for key, row in by_key.items()},
                {key: row.passages for key, row in by_key.items()},
                pool=None if self._pool is None else {key: row.pool or () for key, row in by_key.items()},
                corpus_size=sizes or None,
                passages_of=self._passages_of,
                scale=any_row.scale,
                levels=any_row.levels,
            )
        except SelectivityError as error:
            if len(rows) == 1:
                return dict.fromkeys(rows, error)
            return {i: outcome for i in rows for outcome in self._of_rows({i: rows[i]}, measures).values()}
        nowhere = {each: QueryFigure(each, math.nan, _NO_SIZE) for each in measures}
        return {
            i: self._doubted(row, nowhere | {each.measure: self._marked(row, each) for each in found[str(i)]})
            for i, row in rows.items()
        }

    def _marked(self, row: _Judged, figure: QueryFigure) -> QueryFigure:
        """RandomSuccess marked where the list repeats a passage within its top K, and no rule says what that means."""
        if figure.measure.name != "RandomSuccess" or self._passages_of is not None:
            return figure
        top = row.passages[: figure.measure.at] if isinstance(figure.measure.at, int) else row.passages
        return replace(figure, value=OfRepeats(figure.value)) if len(set(top)) < len(top) else figure

    # -- ids that meet no label ----------------------------------------------------------------------

    def _look_for_hits(self, rows: Sequence[_Judged]) -> None:
        """Remember whether any row held a labelled passage, and warn once if none of many did."""
        was_nothing = self._met.nothing
        for row in rows:
            # Several metrics measure a row; it counts once.
            key = row.query, *row.passages
            if row.grades and key not in self._counted:
                self._met.add(row.passages, row.grades)
                if self._met.lists <= LISTS_BEFORE_DOUBT:
                    self._counted.add(key)
        if self._met.nothing and not was_nothing:
            doubt = (
                f"not one of the first {LISTS_BEFORE_DOUBT} labelled samples retrieved a labelled passage, so ids may "
                f"differ: {self._met.sides('and retrieved were')}. Figures are NaN until a labelled passage is "
                f"retrieved, and were those of lists without evidence before; give labels by these ids, or the "
                f"identity that the labels name, as in identity='text'"
            )
            warnings.warn(SelectivityWarning(doubt, "ids-do-not-match"), stacklevel=2)

    def _doubted(self, row: _Judged, figures: Figures) -> Figures:
        if not self._met.nothing:
            return figures
        reason = (
            f"no labelled passage was retrieved in {LISTS_BEFORE_DOUBT} labelled samples, so ids may differ: the "
            f"labels name {examples(row.grades)}, and retrieved were {examples(row.passages)}"
        )
        return {measure: QueryFigure(measure, math.nan, reason) for measure in figures}


#: Those that metrics have, so that metrics of the same labels measure a sample together.
_SCORERS: WeakSet[RowScorer] = WeakSet()
