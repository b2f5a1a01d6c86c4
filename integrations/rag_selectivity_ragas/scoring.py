"""The figures of rows as they come, one by one or many at the same time."""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from rag_selectivity import Measure
from rag_selectivity.errors import SelectivityError, SelectivityWarning, examples
from rag_selectivity.single import Labels, QueryFigure, QueryLists, evaluate_queries, plain_figures
from rag_selectivity_ragas.corpus import corpus_of
from rag_selectivity_ragas.identity import AUTO, identified_row
from rag_selectivity_ragas.samples import IDS, Row, grades_of, has_columns, levels_of, pool_of, row_of, scale_of

Figures = tuple[QueryFigure, ...]
_ONLY_STR = frozenset([str])

NO_LABELS = "nobody judged this query"
NO_SIZE = "the sample has no corpus_size N, and a random draw needs one"
#: Rows that all lack a labelled passage before ids are doubted.
ROWS_BEFORE_DOUBT = 10


class OfRepeats(float):
    """RandomSuccess of a list that repeats a passage within its top K, where no rule says what that means."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A row with its labels; no lists if nobody judged it."""

    lists: QueryLists | None
    scale: str
    levels: tuple[int, ...]


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
        size = self._corpus.size
        self._one_size = size if isinstance(size, int) else None
        sized = self._one_size is not None or not any(each.needs_corpus_size for each in self.measures)
        self._needs_little = sized and pool is None and identity in (AUTO, IDS)
        self._without_hit = 0
        self._ids_meet = False
        self._levels = () if self.labels is None else self.labels.levels

    @property
    def sized(self) -> bool:
        """Whether N is known whatever the rows say."""
        return self._corpus.size is not None

    def figures_of(self, samples: Sequence[Any]) -> list[Figures | SelectivityError]:
        """The figures of each sample in the order of the measures, or the error that its input is."""
        results: list[Figures | SelectivityError | None] = [None] * len(samples)
        alike: dict[Hashable, tuple[list[int], list[_Prepared]]] = {}
        for i, sample in enumerate(samples):
            at_once = self._at_once(sample)
            plain = None if at_once is None else self._plain(at_once)
            if plain is not None:
                results[i] = plain
                continue
            try:
                prepared = at_once or self._prepared(sample)
            except SelectivityError as error:
                results[i] = error
                continue
            if prepared.lists is None:
                results[i] = self._undefined(NO_LABELS)
                continue
            kind = prepared.scale, prepared.levels, prepared.lists.corpus_size is None
            places, group = alike.setdefault(kind, ([], []))
            places.append(i)
            group.append(prepared)
        self._look_for_hits([prepared for _, group in alike.values() for prepared in group])
        for places, group in alike.values():
            for i, prepared, outcome in zip(places, group, self._figures_of_group(group), strict=True):
                lists = prepared.lists
                results[i] = outcome if lists is None else self._of_repeats(lists, self._doubted(lists, outcome))
        return [each for each in results if each is not None]

    def figures_at_once(self, sample: Any) -> Figures | None:
        """The figures of a sample if they cost so little that it is not worth while to wait for other samples."""
        prepared = self._at_once(sample)
        return None if prepared is None else self._plain(prepared)

    def _plain(self, prepared: _Prepared) -> Figures | None:
        if prepared.lists is None or self._corpus.passages_of is not None:
            return None
        figures = plain_figures(self.measures, prepared.lists, scale=prepared.scale, levels=prepared.levels)
        # Without an earlier hit, such a row holds a labelled passage itself.
        self._ids_meet = self._ids_meet or figures is not None
        return figures

    def _at_once(self, sample: Any) -> _Prepared | None:
        """A row whose ids are those of its labels, and which needs no more; None for any other."""
        fields = sample if type(sample) is dict else None
        if fields is None or self.labels is None or not self._needs_little:
            return None
        ids, texts = fields.get(IDS), fields.get("retrieved_contexts")
        question = fields.get("user_input")
        if type(question) is not str or not question.strip():
            return None
        grades = self.labels.by_query.get(question)
        if type(ids) is not list or type(grades) is not dict or fields.get("utility_grades") or fields.get("rubrics"):
            return None
        if texts is not None and len(texts) != len(ids):
            return None
        if not _ONLY_STR.issuperset(map(type, ids)) or "" in ids:
            return None
        if grades.keys().isdisjoint(ids) and not self._has_no_other_ids(fields, texts):
            return None
        lists = QueryLists(grades, ids, None, self._one_size, checked=True)
        return _Prepared(lists, self._scale or self.labels.scale, self._levels)

    def _has_no_other_ids(self, fields: Mapping[str, Any], texts: Any) -> bool:
        """Whether ids that meet no label are known to be right: other rows' did, and the row has nothing else."""
        return self._ids_meet and texts is None and (self._identity == IDS or not has_columns(fields))

    def _prepared(self, sample: Any) -> _Prepared:
        row = row_of(sample)
        row = identified_row(row, self.labels) if self._identity == AUTO else row.by(self._identity)
        scale = self._scale or scale_of((row,), self.labels, self.measures)
        grades = grades_of(row, self.labels, scale)
        if grades is None:
            return _Prepared(None, scale, ())
        pool = None
        if self._pool is not None:
            pool = pool_of(row, self._pool.get(row.query, ()), "pool")
        levels = levels_of((row,), self.labels) or tuple(sorted({*grades.values()}))
        return _Prepared(QueryLists(grades, row.passages, pool, self._size(row), checked=True), scale, levels)

    def _size(self, row: Row) -> int | None:
        size = self._corpus.size
        if isinstance(size, Mapping):
            found: int | None = size.get(row.query, size.get(row.user_input))
            return found
        return row.corpus_size if size is None else size

    def _figures_of_group(self, group: Sequence[_Prepared]) -> list[Figures | SelectivityError]:
        """The figures of rows whose labels have the same scale and levels; a faulty row gets its error alone."""
        lists = [prepared.lists for prepared in group if prepared.lists is not None]
        unsized = lists[0].corpus_size is None and self._corpus.passages_of is None
        measures = [each for each in self.measures if not (unsized and each.needs_corpus_size)]
        try:
            found = evaluate_queries(
                measures,
                lists,
                passages_of=self._corpus.passages_of,
                scale=group[0].scale,
                levels=group[0].levels,
            )
        except SelectivityError as error:
            if len(group) == 1:
                return [error]
            return [self._figures_of_group([each])[0] for each in group]
        if len(measures) == len(self.measures):
            return list(found)
        return [self._with_unsized(measures, figures) for figures in found]

    def _with_unsized(self, measures: Sequence[Measure], figures: Figures) -> Figures:
        by_measure = dict(zip(measures, figures, strict=True))
        return tuple([by_measure.get(each) or QueryFigure(each, math.nan, NO_SIZE) for each in self.measures])

    def _undefined(self, reason: str) -> Figures:
        return tuple([QueryFigure(measure, math.nan, reason) for measure in self.measures])

    def _of_repeats(self, lists: QueryLists, outcome: Figures | SelectivityError) -> Figures | SelectivityError:
        """The figures, those of RandomSuccess marked where the list repeats a passage."""
        if isinstance(outcome, SelectivityError) or self._corpus.passages_of is not None:
            return outcome
        if len(set(lists.passages)) == len(lists.passages):
            return outcome
        return tuple([_marked(figure, lists.passages) for figure in outcome])

    # -- ids that meet no label --------------------------------------------------------------------

    def _look_for_hits(self, rows: Sequence[_Prepared]) -> None:
        """Remember whether any row held a labelled passage, and warn once if none of many did."""
        if self._ids_meet:
            return
        for prepared in rows:
            lists = prepared.lists
            if lists is None or not lists.passages or not lists.grades:
                continue
            if any(passage in lists.grades for passage in lists.passages):
                self._ids_meet = True
                return
            self._without_hit += 1
            if self._without_hit == ROWS_BEFORE_DOUBT:
                warnings.warn(SelectivityWarning(self._doubt(lists), "ids-do-not-match"), stacklevel=2)

    @staticmethod
    def _doubt(lists: QueryLists) -> str:
        return (
            f"not one of the first {ROWS_BEFORE_DOUBT} labelled samples retrieved a labelled passage, so ids may "
            f"differ: the labels name {examples(lists.grades)}, and retrieved were {examples(lists.passages)}. "
            f"Figures are NaN until a labelled passage is retrieved, and were those of lists without evidence before; "
            f"give labels by these ids, or the identity that the labels name, as in identity='text'"
        )

    def _doubted(self, lists: QueryLists, outcome: Figures | SelectivityError) -> Figures | SelectivityError:
        if self._ids_meet or self._without_hit < ROWS_BEFORE_DOUBT or isinstance(outcome, SelectivityError):
            return outcome
        return self._undefined(
            f"no labelled passage was retrieved in {ROWS_BEFORE_DOUBT} labelled samples, so ids may differ: the labels "
            f"name {examples(lists.grades)}, and retrieved were {examples(lists.passages)}"
        )


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
