"""All figures of a row in one call, as plain numbers for the row of an experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rag_selectivity import Measure, parse_measure
from rag_selectivity.measures import default_query_measures
from rag_selectivity.single import Labels, per_query_measure
from rag_selectivity_ragas.identity import AUTO
from rag_selectivity_ragas.scoring import Figures, RowScorer, Together, figures_or_raise


class RowFigures:
    """The figures of one sample after another, for `@experiment`: `{**row, **await figures.ascore(**row)}`.

    The experiment's rows then hold what `selectivity` needs for the whole report.

    Parameters
    ----------
    labels : qrels, label store or {query: {passage: grade}}, optional
        As in `selectivity`; without them the sample's own grades or references serve.
    measures : sequence of str or Measure, optional
        Measures with a figure for one query, at every depth or with their own (`RA-nWG@10`). Default: Success, with N
        RandomSuccess (the two make BoR), on the utility scale RA-nWG and Harm.
    depths : sequence of int
    corpus_size : int, {query: int}, index, vector store or retriever, optional
        N, or what knows it; else the sample's `corpus_size` or `rubrics["corpus_size"]`. With an index also the number
        of passages of each labelled document is taken from it.
    passages_of : {document: number of its passages}, optional
        As in `rag_selectivity.evaluate`, if ids name documents and passages (chunks) are retrieved.
    pool : {query: [passage, …]}, optional
        The candidates before reranking, for PROC and %PROC.
    scale, grade_map
        As in `selectivity`.
    identity : str
        As in `selectivity`.

    Raises
    ------
    InputError
        If a measure is a ratio of means, or labels lack the grades that a measure needs.
    """

    def __init__(
        self,
        labels: Any = None,
        *,
        measures: Sequence[str | Measure] | None = None,
        depths: Sequence[int] = (10,),
        corpus_size: Any = None,
        passages_of: Any = None,
        pool: Mapping[str, Sequence[str]] | None = None,
        scale: str | None = None,
        grade_map: Any = None,
        identity: str = AUTO,
    ) -> None:
        given = None if labels is None else Labels.of(labels, grade_map=grade_map, scale=scale, measures=measures)
        if measures is None:
            known = (scale or "trec") if given is None else given.scale
            measures = default_query_measures(known, sized=corpus_size is not None or passages_of is not None)
        self._scorer = RowScorer(
            _at_depths(measures, depths),
            given,
            corpus_size=corpus_size,
            passages_of=passages_of,
            pool=pool,
            scale=scale,
            identity=identity,
        )
        self._together = Together(self._scorer.figures_of)

    async def ascore(self, **fields: Any) -> dict[str, float | None]:
        """{measure: figure} of a sample by its fields; None if the figure is undefined for it."""
        return _plain(figures_or_raise(await self._together.result_of(fields)))

    def score(self, **fields: Any) -> dict[str, float | None]:
        """`ascore` from ordinary code."""
        return _plain(figures_or_raise(self._scorer.figures_of([fields])[0]))


def _at_depths(measures: Sequence[str | Measure], depths: Sequence[int]) -> list[Measure]:
    chosen = []
    for measure in map(parse_measure, measures):
        fixed = measure.at is not None or measure.takes_whole_lists
        chosen += [per_query_measure(measure if fixed else measure @ depth) for depth in ((0,) if fixed else depths)]
    return list(dict.fromkeys(chosen))


def _plain(figures: Figures) -> dict[str, float | None]:
    return {str(each.measure): None if math.isnan(each.value) else each.value for each in figures}
