"""The figures of rows as they come, one by one or many at the same time."""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypedDict, TypeVar

from rag_selectivity import Measure
from rag_selectivity.errors import SelectivityError, SelectivityWarning, examples
from rag_selectivity.single import Labels, QueryFigure, evaluate_queries
from rag_selectivity.tables.matching import LISTS_BEFORE_DOUBT, Meeting
from rag_selectivity_ragas.corpus import corpus_of
from rag_selectivity_ragas.identity import AUTO, identified_row
from rag_selectivity_ragas.samples import Row, grades_of, levels_of, pool_of, row_of, scale_of

Figures = tuple[QueryFigure, ...]

NO_SIZE = "the sample has no corpus_size N, and a random draw needs one"


class OfRepeats(float):
    """RandomSuccess of a list that repeats a passage within its top K, where no rule says what that means."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A row with its labels."""

    grades: Mapping[str, int]
    passages: Sequence[str]
    pool: Sequence[str] | None
    corpus_size: int | None
    scale: str
    levels: tuple[int, ...]


class RowOptions(TypedDict, total=False):
    """What a metric of rows may be told, as in `RowFigures`."""

    corpus_size: Any
    passages_of: Any
    pool: Mapping[str, Sequence[str]] | None
    scale: str | None
    grade_map: Any
    identity: str


class RowScorer:
    """The figures of several measures for rows; the arguments are those of `RowFigures`."""

    def __init__(
        self,
        measures: Sequence[Measure],
        labels: Any = None,
        *,
        corpus_size: Any = None,
        passages_of: Any = None,
        pool: Mapping[str, Sequence[str]] | None = None,
        scale: str | None = None,
        grade_map: Any = None,
        identity: str = AUTO,
    ) -> None:
        self.measures = tuple(measures)
        self.labels = None
        if labels is not None:
            self.labels = Labels.of(labels, grade_map=grade_map, scale=scale, measures=self.measures)
        if self.labels is not None:
            for measure in self.measures:
                self.labels.require_for(measure)
        by_query = {} if self.labels is None else self.labels.by_query
        labelled_ids = {passage for grades in by_query.values() for passage in grades}
        self._corpus = corpus_of(corpus_size, passages_of, labelled_ids)
        self._pool = pool
        self._scale, self._identity = scale, identity
        self._met = Meeting()

    @property
    def sized(self) -> bool:
        """Whether N is known whatever the rows say."""
        return self._corpus.size is not None

    def figures_of(self, samples: Sequence[Any]) -> list[Figures | SelectivityError]:
        """The figures of each sample in the order of the measures, or the error that its input is."""
        results: list[Figures | SelectivityError | None] = [None] * len(samples)
        alike: dict[Hashable, tuple[list[int], list[_Prepared]]] = {}
        for i, sample in enumerate(samples):
            try:
                prepared = self._prepared(sample)
            except SelectivityError as error:
                results[i] = error
                continue
            if prepared is None:
                results[i] = evaluate_queries(self.measures, {"row": None}, {})["row"]
                continue
            kind = prepared.scale, prepared.levels, prepared.corpus_size is None
            places, group = alike.setdefault(kind, ([], []))
            places.append(i)
            group.append(prepared)
        self._look_for_hits([prepared for _, group in alike.values() for prepared in group])
        for places, group in alike.values():
            for i, prepared, outcome in zip(places, group, self._figures_of_group(group), strict=True):
                results[i] = self._of_repeats(prepared, self._doubted(prepared, outcome))
        return [each for each in results if each is not None]

    def _prepared(self, sample: Any) -> _Prepared | None:
        """A row with its labels; None if nobody judged it."""
        row = row_of(sample)
        row = identified_row(row, self.labels) if self._identity == AUTO else row.by(self._identity)
        scale = self._scale or scale_of((row,), self.labels, self.measures)
        grades = grades_of(row, self.labels, scale)
        if grades is None:
            return None
        pool = None
        if self._pool is not None:
            pool = pool_of(row, self._pool.get(row.query, ()), "pool")
        levels = levels_of((row,), self.labels) or tuple(sorted({*grades.values()}))
        return _Prepared(grades, row.passages, pool, self._size(row), scale, levels)

    def _size(self, row: Row) -> int | None:
        size = self._corpus.size
        if isinstance(size, Mapping):
            found: int | None = size.get(row.query, size.get(row.user_input))
            return found
        return row.corpus_size if size is None else size

    def _figures_of_group(self, group: Sequence[_Prepared]) -> list[Figures | SelectivityError]:
        """The figures of rows whose labels have the same scale and levels; a faulty row gets its error alone."""
        unsized = group[0].corpus_size is None and self._corpus.passages_of is None
        measures = [each for each in self.measures if not (unsized and each.needs_corpus_size)]
        rows = {str(i): row for i, row in enumerate(group)}
        try:
            found = evaluate_queries(
                measures,
                {key: row.grades for key, row in rows.items()},
                {key: row.passages for key, row in rows.items()},
                pool=None if self._pool is None else {key: row.pool or () for key, row in rows.items()},
                corpus_size={key: size for key, row in rows.items() if (size := row.corpus_size) is not None} or None,
                passages_of=self._corpus.passages_of,
                scale=group[0].scale,
                levels=group[0].levels,
            )
        except SelectivityError as error:
            if len(group) == 1:
                return [error]
            return [self._figures_of_group([each])[0] for each in group]
        return [self._with_unsized(measures, figures) for figures in found.values()]

    def _with_unsized(self, measures: Sequence[Measure], figures: Figures) -> Figures:
        if len(measures) == len(self.measures):
            return figures
        by_measure = dict(zip(measures, figures, strict=True))
        return tuple([by_measure.get(each) or QueryFigure(each, math.nan, NO_SIZE) for each in self.measures])

    def _of_repeats(self, row: _Prepared, outcome: Figures | SelectivityError) -> Figures | SelectivityError:
        """The figures, those of RandomSuccess marked where the list repeats a passage."""
        if isinstance(outcome, SelectivityError) or self._corpus.passages_of is not None:
            return outcome
        if len(set(row.passages)) == len(row.passages):
            return outcome
        return tuple([_marked(figure, row.passages) for figure in outcome])

    # -- ids that meet no label --------------------------------------------------------------------

    def _look_for_hits(self, rows: Sequence[_Prepared]) -> None:
        """Remember whether any row held a labelled passage, and warn once if none of many did."""
        was_nothing = self._met.nothing
        for row in rows:
            if row.grades:
                self._met.add(row.passages, row.grades)
        if self._met.nothing and not was_nothing:
            doubt = (
                f"not one of the first {LISTS_BEFORE_DOUBT} labelled samples retrieved a labelled passage, so ids may "
                f"differ: {self._met.sides('and retrieved were')}. Figures are NaN until a labelled passage is "
                f"retrieved, and were those of lists without evidence before; give labels by these ids, or the "
                f"identity that the labels name, as in identity='text'"
            )
            warnings.warn(SelectivityWarning(doubt, "ids-do-not-match"), stacklevel=2)

    def _doubted(self, row: _Prepared, outcome: Figures | SelectivityError) -> Figures | SelectivityError:
        if not self._met.nothing or isinstance(outcome, SelectivityError):
            return outcome
        reason = (
            f"no labelled passage was retrieved in {LISTS_BEFORE_DOUBT} labelled samples, so ids may differ: the "
            f"labels name {examples(row.grades)}, and retrieved were {examples(row.passages)}"
        )
        return tuple([QueryFigure(measure, math.nan, reason) for measure in self.measures])


def _marked(figure: QueryFigure, passages: Sequence[str]) -> QueryFigure:
    top = passages[: figure.measure.at] if isinstance(figure.measure.at, int) else passages
    repeats = figure.measure.name == "RandomSuccess" and len(set(top)) < len(top)
    return replace(figure, value=OfRepeats(figure.value)) if repeats else figure


def figures_or_raise(outcome: Figures | SelectivityError) -> Figures:
    """The figures of a row, or its error raised."""
    if isinstance(outcome, SelectivityError):
        raise outcome
    return outcome


Result = TypeVar("Result")


class Together(Generic[Result]):
    """Computes at once what is awaited at the same time, since several rows cost little more than one.

    Nothing waits for others: what the event loop holds ready is computed in its next pass.
    """

    def __init__(self, compute: Callable[[Sequence[Any]], Sequence[Result]], *, most: int = 256) -> None:
        self._compute, self._most = compute, most
        self._waiting: dict[asyncio.AbstractEventLoop, list[tuple[Any, asyncio.Future[Result]]]] = {}

    async def result_of(self, item: Any) -> Result:
        """What the function gives for an item."""
        loop = asyncio.get_running_loop()
        waiting = self._waiting.get(loop)
        if waiting is None:
            waiting = self._waiting[loop] = []
            loop.call_soon(self._settle, loop)
        future: asyncio.Future[Result] = loop.create_future()
        waiting.append((item, future))
        return await future

    def _settle(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting.pop(loop)
        for start in range(0, len(waiting), self._most):
            part = waiting[start : start + self._most]
            try:
                results = self._compute([item for item, _ in part])
            except Exception as error:
                for _, future in part:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), result in zip(part, results, strict=True):
                if not future.done():
                    future.set_result(result)
