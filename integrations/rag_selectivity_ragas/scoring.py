"""The figures of one row after the other."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_selectivity import Measure
from rag_selectivity.errors import SelectivityWarning, examples
from rag_selectivity.hosted import AUTO
from rag_selectivity.single import Labels, OfRepeats, QueryFigure, figures_of_query
from rag_selectivity.tables.matching import LISTS_BEFORE_DOUBT, Meeting, labels_found
from rag_selectivity_ragas.corpus import corpus_of
from rag_selectivity_ragas.rows import ID, IDS, UTILITY_GRADES, Row, row_of

_NO_SIZE = "the sample has no corpus_size N, and a random draw needs one"


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
        self.measures, self.labels = measures, Labels.of(labels, grade_map=grade_map, scale=scale, measures=measures)
        if self._given:
            for measure in measures:
                self.labels.require_for(measure)
        labelled_ids = {passage for grades in self.labels.by_query.values() for passage in grades}
        self._size, self._passages_of, _ = corpus_of(corpus_size, passages_of, labelled_ids)
        self._pool, self._scale, self._identity = pool, scale, ID if identity == IDS else identity
        self._met = Meeting()

    def figures(self, sample: Any) -> tuple[QueryFigure, ...]:
        """The figures of a sample, in the order of the measures."""
        row = row_of(sample)
        expected = None if self._given else row.expected()
        grades = row.own_grades or self.labels.of_query(row.query, row.user_input, relevant=expected)
        passages = self._named(row, grades or {})
        if grades is None:
            return figures_of_query(self.measures, None, passages)
        size = self._size
        if isinstance(size, Mapping):
            size = size.get(row.query, size.get(row.user_input))
        size, is_own = row.corpus_size if size is None else size, row.own_grades is not None
        is_sized = size is not None or self._passages_of is not None
        found = figures_of_query(
            [each for each in self.measures if is_sized or not each.needs_corpus_size],
            grades,
            passages,
            pool=None if self._pool is None else row.pooled(self._pool.get(row.query, ()), grades),
            corpus_size=size,
            passages_of=self._passages_of,
            scale=self._scale or ("utility" if is_own else self.labels.scale),
            levels=UTILITY_GRADES if is_own else self.labels.levels,
        )
        known = {figure.measure: self._marked(figure, passages) for figure in found}
        doubt = self._doubt(passages, grades)
        if doubt is not None:
            known = {measure: QueryFigure(measure, math.nan, doubt) for measure in known}
        return tuple(known.get(each, QueryFigure(each, math.nan, _NO_SIZE)) for each in self.measures)

    def _named(self, row: Row, grades: Mapping[str, int]) -> list[str]:
        """The passages by the id that finds most labels: their own, unless another one alone finds some."""
        passages, taken = row.passages(grades), self._identity
        if taken == AUTO:
            found = labels_found([(grades, passages)])
            taken = ID if found.get(ID) else max(found, key=lambda name: len(found[name]), default=ID)
        return [ids.get(taken, ids[ID]) for ids in passages]

    def _marked(self, figure: QueryFigure, passages: Sequence[str]) -> QueryFigure:
        """RandomSuccess marked where the list repeats a passage within its top K, and no rule says what that means."""
        if figure.measure.name != "RandomSuccess" or self._passages_of is not None:
            return figure
        top = passages[: figure.measure.at] if isinstance(figure.measure.at, int) else passages
        return replace(figure, value=OfRepeats(figure.value)) if len(set(top)) < len(top) else figure

    def _doubt(self, passages: Sequence[str], grades: Mapping[str, int]) -> str | None:
        """Why there are no figures, if no row of many held a labelled passage; a warning says it once."""
        was_nothing = self._met.nothing
        if grades:
            self._met.add(passages, grades)
        if not self._met.nothing:
            return None
        if not was_nothing:
            doubt = (
                f"not one of the first {LISTS_BEFORE_DOUBT} labelled samples retrieved a labelled passage, so ids may "
                f"differ: {self._met.sides('and retrieved were')}. Figures are NaN until a labelled passage is "
                f"retrieved, and were those of lists without evidence before; give labels by these ids, or the "
                f"identity that the labels name, as in identity='text'"
            )
            warnings.warn(SelectivityWarning(doubt, "ids-do-not-match"), stacklevel=4)
        return (
            f"no labelled passage was retrieved in {LISTS_BEFORE_DOUBT} labelled samples, so ids may differ: the "
            f"labels name {examples(grades)}, and retrieved were {examples(passages)}"
        )
